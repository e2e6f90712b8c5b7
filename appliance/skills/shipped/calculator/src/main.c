/* Arithmetic and units: what a language model cannot be trusted with. */

#include "parley.h"

/* Factors to the first unit of each kind (NIST SP 811, appendix B); temperatures are handled apart. */
typedef struct {
  const char *id, *one, *many;
  char kind;
  double factor;
} Unit;

static const Unit units[] = {
    {"millimeter", "millimeter", "millimeters", 'l', 0.001},
    {"centimeter", "centimeter", "centimeters", 'l', 0.01},
    {"meter", "meter", "meters", 'l', 1},
    {"kilometer", "kilometer", "kilometers", 'l', 1000},
    {"inch", "inch", "inches", 'l', 0.0254},
    {"foot", "foot", "feet", 'l', 0.3048},
    {"yard", "yard", "yards", 'l', 0.9144},
    {"mile", "mile", "miles", 'l', 1609.344},
    {"gram", "gram", "grams", 'm', 1},
    {"kilogram", "kilogram", "kilograms", 'm', 1000},
    {"tonne", "tonne", "tonnes", 'm', 1000000},
    {"ounce", "ounce", "ounces", 'm', 28.349523125},
    {"pound", "pound", "pounds", 'm', 453.59237},
    {"stone", "stone", "stone", 'm', 6350.29318},
    {"milliliter", "milliliter", "milliliters", 'v', 0.001},
    {"liter", "liter", "liters", 'v', 1},
    {"teaspoon", "teaspoon", "teaspoons", 'v', 0.00492892159375},
    {"tablespoon", "tablespoon", "tablespoons", 'v', 0.01478676478125},
    {"fluid ounce", "fluid ounce", "fluid ounces", 'v', 0.0295735295625},
    {"cup", "cup", "cups", 'v', 0.2365882365},
    {"pint", "pint", "pints", 'v', 0.473176473},
    {"quart", "quart", "quarts", 'v', 0.946352946},
    {"gallon", "gallon", "gallons", 'v', 3.785411784},
    {"second", "second", "seconds", 't', 1},
    {"minute", "minute", "minutes", 't', 60},
    {"hour", "hour", "hours", 't', 3600},
    {"day", "day", "days", 't', 86400},
    {"week", "week", "weeks", 't', 604800},
    {"kilometer per hour", "kilometer per hour", "kilometers per hour", 's', 1 / 3.6},
    {"meter per second", "meter per second", "meters per second", 's', 1},
    {"mile per hour", "mile per hour", "miles per hour", 's', 0.44704},
    {"knot", "knot", "knots", 's', 1852.0 / 3600},
    {"square meter", "square meter", "square meters", 'a', 1},
    {"square foot", "square foot", "square feet", 'a', 0.09290304},
    {"hectare", "hectare", "hectares", 'a', 10000},
    {"acre", "acre", "acres", 'a', 4046.8564224},
    {"bar", "bar", "bar", 'p', 100000},
    {"psi", "P.S.I.", "P.S.I.", 'p', 6894.757293168},
    {"kilopascal", "kilopascal", "kilopascals", 'p', 1000},
    {"joule", "joule", "joules", 'e', 1},
    {"calorie", "kilocalorie", "kilocalories", 'e', 4184},
    {"kilowatt hour", "kilowatt hour", "kilowatt hours", 'e', 3600000},
    {"megabyte", "megabyte", "megabytes", 'd', 1e6},
    {"gigabyte", "gigabyte", "gigabytes", 'd', 1e9},
    {"terabyte", "terabyte", "terabytes", 'd', 1e12},
    {"celsius", "degree Celsius", "degrees Celsius", 'T', 0},
    {"fahrenheit", "degree Fahrenheit", "degrees Fahrenheit", 'T', 0},
    {"kelvin", "kelvin", "kelvin", 'T', 0},
};

static const Unit *unit(const char *id) {
  for (u32 i = 0; i < sizeof units / sizeof *units; i++)
    if (same(units[i].id, id)) return units + i;
  return 0;
}

static double magnitude(double value) { return value < 0 ? -value : value; }

/* As many digits as the ear can use: exact where it is short, else "about" and four figures. */
static void say_value(double value) {
  double size = magnitude(value);
  if (!(size < 1e15)) {
    fail("That is too large for me.");
    return;
  }
  int places = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : size >= 0.01 ? 4 : 6;
  double scale = 1;
  for (int i = 0; i < places; i++) scale *= 10;
  double rounded = (double)(u64)(size * scale + 0.5) / scale;
  if (magnitude(rounded - size) > 1e-9 * (size + 1e-6)) say("about ");
  say_decimal(value, places);
}

static void say_amount(double value, const Unit *of) {
  say_value(value);
  if (parley_failed) return;
  say(" ");
  say(value == 1 ? of->one : of->many);
}

static double to_celsius(double value, const char *id) {
  if (same(id, "fahrenheit")) return (value - 32) * 5 / 9;
  return same(id, "kelvin") ? value - 273.15 : value;
}

static double from_celsius(double value, const char *id) {
  if (same(id, "fahrenheit")) return value * 9 / 5 + 32;
  return same(id, "kelvin") ? value + 273.15 : value;
}

static void convert(Call *call) {
  char from[40], to[40];
  double amount = 1;
  number(call, "amount", &amount);
  if (!text(call, "from", from, sizeof from) || !text(call, "to", to, sizeof to)) {
    fail("Please say from which unit to which.");
    return;
  }
  const Unit *one = unit(from), *other = unit(to);
  /* "Ounces" of something that is poured are fluid ounces. */
  if (one && other && one->kind == 'v' && same(to, "ounce")) other = unit("fluid ounce");
  if (one && other && other->kind == 'v' && same(from, "ounce")) one = unit("fluid ounce");
  if (!one || !other || one->kind != other->kind) {
    fail("I can't convert that: they measure different things.");
    return;
  }
  if (one->kind == 'T' && to_celsius(amount, from) < -273.15) {
    fail("Nothing can be as cold as that.");
    return;
  }
  double result = one->kind == 'T' ? from_celsius(to_celsius(amount, from), to) : amount * one->factor / other->factor;
  u32 start = parley_size;
  say_amount(amount, one);
  say(" is ");
  say_amount(result, other);
  say(".");
  if (parley_failed) {
    parley_size = start;
    say("That is too large for me.");
  }
}

/* --- arithmetic: first, operator, second, and perhaps a third ----------------------------------------------------- */

static int power_of(double base, double exponent, double *into) {
  if (exponent != (double)(int)exponent || magnitude(exponent) > 64) return 0;
  double value = 1;
  for (int i = 0; i < (int)magnitude(exponent); i++) value *= base;
  if (exponent < 0 && value == 0) return 0;
  *into = exponent < 0 ? 1 / value : value;
  return 1;
}

static int rank(const char *operator) { return same(operator, "plus") || same(operator, "minus") ? 1 : same(operator, "power") ? 3 : 2; }

static int apply(double one, const char *operator, double other, double *into) {
  if (same(operator, "plus")) *into = one + other;
  else if (same(operator, "minus")) *into = one - other;
  else if (same(operator, "times")) *into = one * other;
  else if (same(operator, "percent")) *into = one * other / 100;
  else if (same(operator, "power")) return power_of(one, other, into);
  else if (same(operator, "divided") && other != 0) *into = one / other;
  else return 0;
  return 1;
}

static void calculate(Call *call) {
  double first, second, third, result;
  char operator[16], next[16];
  if (!number(call, "first", &first) || !number(call, "second", &second) || !text(call, "operator", operator, sizeof operator)) {
    fail("Please say two numbers and what to do with them.");
    return;
  }
  int chained = text(call, "next", next, sizeof next) && number(call, "third", &third);
  int right_first = chained && rank(next) > rank(operator);
  int fine = right_first ? apply(second, next, third, &result) && apply(first, operator, result, &result)
                         : apply(first, operator, second, &result) && (!chained || apply(result, next, third, &result));
  if (!fine) {
    int zero = (same(operator, "divided") && second == 0) || (chained && same(next, "divided") && third == 0);
    fail(zero ? "Nothing can be divided by zero." : "I can't work that out.");
    return;
  }
  u32 start = parley_size;
  say("That is ");
  say_value(result);
  say(".");
  if (parley_failed) {
    parley_size = start;
    say("That is too large for me.");
  }
}

static void square_root(Call *call) {
  double value;
  if (!number(call, "value", &value)) {
    fail("The square root of what?");
  } else if (value < 0) {
    fail("A negative number has no square root that can be measured.");
  } else {
    say("The square root is ");
    say_value(__builtin_sqrt(value));
    say(".");
  }
}

static void answer(Call *call) {
  if (same(call->name, "Convert") || same(call->name, "convert_units")) convert(call);
  else if (same(call->name, "SquareRoot")) square_root(call);
  else calculate(call);
}
