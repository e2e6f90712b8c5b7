"""What differs between languages when text is made ready for the ear. A new language is another `Locale`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from appliance.runtime.numerals import spell

Pair = tuple[str, str]
"""A counted noun: the whole phrase for exactly one ("a mile" has its article or numeral in it), and the plural."""


@dataclass(frozen=True, slots=True)
class Currency:
    major: Pair
    minor: Pair


@dataclass(frozen=True, slots=True)
class Locale:
    """Data and the few small functions that a grammar needs. Patterns are regular-expression sources."""

    code: str
    language: str
    decimal: str
    grouping: str
    cardinal: str
    year: str
    words: Mapping[str, str]
    """What signs are called: point, minus, to (of a range), dot, at, number (of "#5"), over, plus, equals..."""

    currencies: Mapping[str, Currency]
    magnitudes: Mapping[str, Pair]
    units: Mapping[str, Pair]
    months: tuple[str, ...]
    month_forms: Mapping[str, int]
    """Abbreviations of months (lower case, without a full stop) to 1..12."""

    abbreviations: Mapping[str, str]
    """Pattern to expansion, tried in order, case-sensitive, on word boundaries."""

    date: Callable[[int, int, int | None, str], str]
    """(day, month, year or None, the word in front) to words."""

    clock: Callable[[int, int], str]
    """(hour 0..24, minute) to words."""

    money: Callable[[str, str, str], str]
    """(major in words with its noun, minor in words with its noun, minor number in words) to words."""

    ordinal: Callable[[int, str], str]
    """(number, the suffix as written; in German the word in front) to words."""

    ordinals: str
    """Pattern of an ordinal; group 1 is the number, group 2 the suffix."""

    fraction: Callable[[int, int], str]
    day_first: bool
    clock_separators: str = ":"
    clock_suffix: str = ""
    """Pattern of a word that belongs to a clock time and is said by `clock` already ("Uhr")."""

    of_money: Callable[[str], str] = " {}".format
    """How a currency follows a magnitude: "millions d'euros"."""

    decimals: Literal["digits", "number"] = "digits"
    day_suffix: str = ""
    month_joiner: str = r"\s+"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _pairs(table: str) -> dict[str, Pair]:
    """Lines of: symbols (space between) = one | many."""
    found: dict[str, Pair] = {}
    for line in table.strip().split("\n"):
        symbols, _, names = line.partition(" = ")
        one, _, many = names.partition(" | ")
        for symbol in symbols.split():
            found[symbol] = (one.strip(), (many or one).strip())
    return found


def _money(table: str) -> dict[str, Currency]:
    """Lines of: symbols = one major | majors | one minor | minors."""
    found: dict[str, Currency] = {}
    for line in table.strip().split("\n"):
        symbols, _, names = line.partition(" = ")
        one, many, small, smalls = (name.strip() for name in names.split("|"))
        for symbol in symbols.split():
            found[symbol] = Currency((one, many), (small, smalls))
    return found


def _forms(names: tuple[str, ...], length: int, extra: Mapping[str, int] | None = None) -> dict[str, int]:
    full = {name.lower(): n for n, name in enumerate(names, start=1)}
    return full | {name[:length].lower(): n for n, name in enumerate(names, start=1)} | dict(extra or {})


# --- English -----------------------------------------------------------------------------------------------------

_EN_MONTHS = _words("January February March April May June July August September October November December")

_EN_UNITS = """
km = one kilometer | kilometers
m = one meter | meters
cm = one centimeter | centimeters
mm = one millimeter | millimeters
µm μm um = one micrometer | micrometers
mi = one mile | miles
ft = one foot | feet
yd yds = one yard | yards
in. inch = one inch | inches
kg = one kilogram | kilograms
g = one gram | grams
mg = one milligram | milligrams
lb lbs lb. lbs. = one pound | pounds
oz oz. = one ounce | ounces
l L = one liter | liters
ml mL = one milliliter | milliliters
gal = one gallon | gallons
km/h kph kmh = one kilometer per hour | kilometers per hour
mph = one mile per hour | miles per hour
m/s = one meter per second | meters per second
rpm = one revolution per minute | revolutions per minute
bpm = one beat per minute | beats per minute
°C ºC = one degree Celsius | degrees Celsius
°F ºF = one degree Fahrenheit | degrees Fahrenheit
° º = one degree | degrees
K = one kelvin | kelvins
kB KB = one kilobyte | kilobytes
MB = one megabyte | megabytes
GB = one gigabyte | gigabytes
TB = one terabyte | terabytes
kbps Kbps = one kilobit per second | kilobits per second
Mbps Mb/s = one megabit per second | megabits per second
Gbps Gb/s = one gigabit per second | gigabits per second
MB/s = one megabyte per second | megabytes per second
Hz = one hertz | hertz
kHz = one kilohertz | kilohertz
MHz = one megahertz | megahertz
GHz = one gigahertz | gigahertz
W = one watt | watts
kW = one kilowatt | kilowatts
kWh = one kilowatt hour | kilowatt hours
V = one volt | volts
mV = one millivolt | millivolts
A = one amp | amps
mA = one milliamp | milliamps
mAh = one milliamp hour | milliamp hours
Pa = one pascal | pascals
kPa = one kilopascal | kilopascals
psi = one pound per square inch | pounds per square inch
dB = one decibel | decibels
kcal = one kilocalorie | kilocalories
cal = one calorie | calories
ms = one millisecond | milliseconds
s sec sec. secs = one second | seconds
min min. mins = one minute | minutes
h hr hr. hrs = one hour | hours
m² m2 = one square meter | square meters
km² km2 = one square kilometer | square kilometers
m³ m3 = one cubic meter | cubic meters
cm² cm2 = one square centimeter | square centimeters
cm³ cm3 = one cubic centimeter | cubic centimeters
sq_ft = one square foot | square feet
px = one pixel | pixels
% = one percent | percent
‰ = one per mille | per mille
"""

_EN_MONEY = """
$ US$ USD = one dollar | dollars | one cent | cents
€ EUR = one euro | euros | one cent | cents
£ GBP = one pound | pounds | one penny | pence
¥ JPY = one yen | yen | one sen | sen
₹ INR = one rupee | rupees | one paisa | paise
₩ KRW = one won | won | one jeon | jeon
₿ BTC = one bitcoin | bitcoins | one satoshi | satoshis
C$ CAD = one Canadian dollar | Canadian dollars | one cent | cents
A$ AUD = one Australian dollar | Australian dollars | one cent | cents
CHF = one Swiss franc | Swiss francs | one centime | centimes
¢ = one cent | cents | one cent | cents
"""

_EN_ABBREVIATIONS = {
    r"Mr\.?": "Mister",
    r"Mrs\.?": "Missus",
    r"Ms\.?": "Miz",
    r"Dr\.?(?=\s+[A-Z])": "Doctor",
    r"(?<=[a-z] )Dr(?:\.(?=\s|$)|(?=\s*(?:,|$)))": "Drive",
    r"Prof\.?": "Professor",
    r"St\.?(?=\s+[A-Z])": "Saint",
    r"(?<=\w )St(?:\.|(?=\s*(?:[,;]|$)))": "Street",
    r"(?<=\w )Ave\.?": "Avenue",
    r"(?<=\w )Blvd\.?": "Boulevard",
    r"(?<=\w )Rd\.?": "Road",
    r"(?<=\w )Ln\.": "Lane",
    r"(?<=\w )Hwy\.?": "Highway",
    r"Mt\.?(?=\s+[A-Z])": "Mount",
    r"Ft\.?(?=\s+[A-Z])": "Fort",
    r"Jr\.?": "Junior",
    r"Sr\.?": "Senior",
    r"Gen\.(?=\s+[A-Z])": "General",
    r"Col\.(?=\s+[A-Z])": "Colonel",
    r"Capt\.": "Captain",
    r"Lt\.": "Lieutenant",
    r"Sgt\.": "Sergeant",
    r"Rev\.": "Reverend",
    r"Sen\.(?=\s+[A-Z])": "Senator",
    r"Gov\.(?=\s+[A-Z])": "Governor",
    r"Rep\.(?=\s+[A-Z])": "Representative",
    r"[Ee]\.\s?g\.,?": "for example,",
    r"[Ii]\.\s?e\.,?": "that is,",
    r"etc\.(?=\s+[A-Z]|\s*$)": "et cetera.",
    r"etc\.?": "et cetera",
    r"vs\.?": "versus",
    r"approx\.?": "approximately",
    r"[Nn]o\.(?=\s*\d)": "number",
    r"[Nn]os\.(?=\s*\d)": "numbers",
    r"№\s*": "number ",
    r"Inc\.": "Incorporated",
    r"Ltd\.?": "Limited",
    r"Corp\.": "Corporation",
    r"(?<=\w )Co\.": "Company",
    r"[Dd]ept\.": "department",
    r"[Ee]st\.(?=\s*\d)": "established",
    r"[Ff]igs?\.(?=\s*\d)": "figure",
    r"[Vv]ol\.(?=\s*\d)": "volume",
    r"[Cc]h\.(?=\s*\d)": "chapter",
    r"pp?\.(?=\s*\d)": "page",
    r"[Ee]xt\.": "extension",
    r"[Tt]el\.": "telephone",
    r"[Mm]isc\.": "miscellaneous",
    r"[Mm]ax\.": "maximum",
    r"[Mm]in\.(?!\s*\d)": "minimum",
    r"[Aa]pt\.": "apartment",
    r"[Aa]vg\.?": "average",
    r"w/o": "without",
    r"w/(?=\s*\w)": "with ",
    r"b/c": "because",
    r"a\.k\.a\.": "also known as",
    r"Ph\.?D\.?": "P H D",
    r"O\.?K\.": "okay",
    r"24/7": "twenty-four seven",
    r"9/11": "nine eleven",
    r"Mon\.": "Monday",
    r"Tues?\.": "Tuesday",
    r"Wed\.": "Wednesday",
    r"Thu(?:rs?)?\.": "Thursday",
    r"Fri\.": "Friday",
    r"Sat\.(?=,|\s+(?:at|\d|[A-Z]))": "Saturday",
    r"Sun\.(?=,|\s+(?:at|\d|[A-Z]))": "Sunday",
}


def _en_clock(hour: int, minute: int) -> str:
    said = spell("en", hour, "spellout-cardinal")
    if minute == 0:
        return "midnight" if hour in {0, 24} else f"{said} o'clock" if hour <= 12 else f"{said} hundred"
    return f"{said} {'oh ' if minute < 10 else ''}{spell('en', minute, 'spellout-cardinal')}"


def _en_ordinal(number: int, suffix: str) -> str:
    return spell("en", number, "spellout-ordinal")


def _en_date(day: int, month: int, year: int | None, before: str) -> str:
    said = f"{_EN_MONTHS[month - 1]} {spell('en', day, 'spellout-ordinal')}"
    return f"{said}, {spell('en', year, 'spellout-numbering-year')}" if year is not None else said


def _gb_date(day: int, month: int, year: int | None, before: str) -> str:
    article = "" if before.lower() == "the" else "the "
    said = f"{article}{spell('en', day, 'spellout-ordinal')} of {_EN_MONTHS[month - 1]}"
    return f"{said} {spell('en', year, 'spellout-numbering-year')}" if year is not None else said


def _en_fraction(top: int, bottom: int) -> str:
    if bottom == 2:
        part = "half" if top == 1 else "halves"
    elif bottom == 4:
        part = "quarter" if top == 1 else "quarters"
    else:
        part = spell("en", bottom, "spellout-ordinal") + ("" if top == 1 else "s")
    return f"{spell('en', top, 'spellout-cardinal')} {part}"


_EN_WORDS = {
    "point": "point", "minus": "minus", "to": "to", "dot": "dot", "at": "at",
    "number": "number", "hashtag": "hashtag", "and": "and", "over": "over", "plus": "plus", "equals": "equals",
    "times": "times", "by": "by", "divided": "divided by", "less": "less than", "more": "greater than",
    "less_equal": "at most", "more_equal": "at least", "not_equal": "not equal to", "about": "about",
    "plus_minus": "plus or minus", "squared": "squared", "cubed": "cubed", "root": "square root of", "pi": "pi",
    "section": "section", "dash": "dash", "underscore": "underscore", "degrees": "degrees",
    "infinity": "infinity", "version": "version",
}  # fmt: skip

EN_US = Locale(
    code="en-US",
    language="en",
    decimal=".",
    grouping=",",
    cardinal="spellout-cardinal",
    year="spellout-numbering-year",
    words=_EN_WORDS,
    currencies=_money(_EN_MONEY),
    magnitudes=_pairs("k K = thousand\nm M mn = million\nb B bn = billion\nT tn = trillion"),
    units=_pairs(_EN_UNITS),
    months=_EN_MONTHS,
    month_forms=_forms(_EN_MONTHS, 3, {"sept": 9}),
    abbreviations=_EN_ABBREVIATIONS,
    date=_en_date,
    clock=_en_clock,
    money=lambda major, minor, _: f"{major} and {minor}",
    ordinal=_en_ordinal,
    ordinals=r"(\d{1,3}(?:,\d{3})+|\d+)(st|nd|rd|th)",
    fraction=_en_fraction,
    day_first=False,
    day_suffix=r"(?:st|nd|rd|th)?",
    month_joiner=r"\s+(?:of\s+)?",
)


def _british(text: str) -> str:
    return text.replace("meter", "metre").replace("liter", "litre")


EN_GB = Locale(
    code="en-GB",
    language="en",
    decimal=".",
    grouping=",",
    cardinal="spellout-cardinal-verbose",
    year="spellout-numbering-year",
    words=_EN_WORDS,
    currencies=EN_US.currencies,
    magnitudes=EN_US.magnitudes,
    units={symbol: (_british(one), _british(many)) for symbol, (one, many) in EN_US.units.items()},
    months=_EN_MONTHS,
    month_forms=EN_US.month_forms,
    abbreviations=_EN_ABBREVIATIONS,
    date=_gb_date,
    clock=_en_clock,
    money=lambda major, minor, _: f"{major} and {minor}",
    ordinal=_en_ordinal,
    ordinals=EN_US.ordinals,
    fraction=_en_fraction,
    day_first=True,
    clock_separators=":.",
    day_suffix=EN_US.day_suffix,
    month_joiner=EN_US.month_joiner,
)

# --- German ------------------------------------------------------------------------------------------------------

_DE_MONTHS = _words("Januar Februar März April Mai Juni Juli August September Oktober November Dezember")
_DE_INFLECTED = frozenset(_words("am vom zum im beim den dem des bis ab seit nach vor"))

_DE_UNITS = """
km = ein Kilometer | Kilometer
m = ein Meter | Meter
cm = ein Zentimeter | Zentimeter
mm = ein Millimeter | Millimeter
kg = ein Kilogramm | Kilogramm
g = ein Gramm | Gramm
mg = ein Milligramm | Milligramm
l L = ein Liter | Liter
ml = ein Milliliter | Milliliter
km/h = ein Kilometer pro Stunde | Kilometer pro Stunde
m/s = ein Meter pro Sekunde | Meter pro Sekunde
°C ºC = ein Grad Celsius | Grad Celsius
°F = ein Grad Fahrenheit | Grad Fahrenheit
° º = ein Grad | Grad
kB KB = ein Kilobyte | Kilobyte
MB = ein Megabyte | Megabyte
GB = ein Gigabyte | Gigabyte
TB = ein Terabyte | Terabyte
Hz = ein Hertz | Hertz
kHz = ein Kilohertz | Kilohertz
MHz = ein Megahertz | Megahertz
GHz = ein Gigahertz | Gigahertz
W = ein Watt | Watt
kW = ein Kilowatt | Kilowatt
kWh = eine Kilowattstunde | Kilowattstunden
V = ein Volt | Volt
dB = ein Dezibel | Dezibel
ms = eine Millisekunde | Millisekunden
s Sek. = eine Sekunde | Sekunden
min Min. = eine Minute | Minuten
h Std. = eine Stunde | Stunden
m² m2 qm = ein Quadratmeter | Quadratmeter
km² km2 = ein Quadratkilometer | Quadratkilometer
m³ m3 = ein Kubikmeter | Kubikmeter
% = ein Prozent | Prozent
‰ = ein Promille | Promille
"""

_DE_MONEY = """
€ EUR = ein Euro | Euro | ein Cent | Cent
$ US$ USD = ein Dollar | Dollar | ein Cent | Cent
£ GBP = ein Pfund | Pfund | ein Penny | Pence
¥ JPY = ein Yen | Yen | ein Sen | Sen
CHF = ein Franken | Franken | ein Rappen | Rappen
"""

_DE_ABBREVIATIONS = {
    r"z\.\s?B\.": "zum Beispiel",
    r"d\.\s?h\.": "das heißt",
    r"u\.\s?a\.": "unter anderem",
    r"z\.\s?T\.": "zum Teil",
    r"usw\.": "und so weiter",
    r"bzw\.": "beziehungsweise",
    r"ca\.": "circa",
    r"evtl\.": "eventuell",
    r"ggf\.": "gegebenenfalls",
    r"inkl\.": "inklusive",
    r"exkl\.": "exklusive",
    r"Nr\.": "Nummer",
    r"Hr\.": "Herr",
    r"Fr\.(?=\s+[A-ZÄÖÜ])": "Frau",
    r"Dr\.": "Doktor",
    r"Prof\.": "Professor",
    r"St\.(?=\s+[A-ZÄÖÜ])": "Sankt",
    r"Mio\.?": "Millionen",
    r"Mrd\.?": "Milliarden",
    r"Tel\.": "Telefon",
    r"S\.(?=\s*\d)": "Seite",
    r"Abb\.": "Abbildung",
    r"vgl\.": "vergleiche",
    r"geb\.": "geboren",
    r"max\.": "maximal",
    r"mind\.": "mindestens",
}


def _de_ordinal(number: int, before: str) -> str:
    form = "-n" if before.lower() in _DE_INFLECTED else "" if before.lower() in {"der", "die", "das"} else "-r"
    return spell("de", number, f"spellout-ordinal{form}")


def _de_date(day: int, month: int, year: int | None, before: str) -> str:
    said = f"{_de_ordinal(day, before)} {_DE_MONTHS[month - 1]}"
    return f"{said} {spell('de', year, 'spellout-numbering-year')}" if year is not None else said


def _de_clock(hour: int, minute: int) -> str:
    said = f"{spell('de', hour, 'spellout-cardinal-masculine')} Uhr"
    return f"{said} {spell('de', minute, 'spellout-numbering')}" if minute else said


def _de_fraction(top: int, bottom: int) -> str:
    if bottom == 2:
        return "ein halb" if top == 1 else f"{spell('de', top, 'spellout-numbering')} halbe"
    stem = spell("de", bottom, "spellout-ordinal").removesuffix("e") + "el"
    return f"{'ein' if top == 1 else spell('de', top, 'spellout-numbering')} {stem.capitalize()}"


DE = Locale(
    code="de-DE",
    language="de",
    decimal=",",
    grouping=".",
    cardinal="spellout-numbering",
    year="spellout-numbering-year",
    words={
        "point": "Komma", "minus": "minus", "to": "bis", "dot": "Punkt", "at": "ät",
        "number": "Nummer", "hashtag": "Hashtag", "and": "und", "over": "zu", "plus": "plus", "equals": "gleich",
        "times": "mal", "by": "mal", "divided": "geteilt durch", "less": "kleiner als", "more": "größer als",
        "less_equal": "höchstens", "more_equal": "mindestens", "not_equal": "ungleich", "about": "etwa",
        "plus_minus": "plus minus", "squared": "hoch zwei", "cubed": "hoch drei", "root": "Wurzel aus", "pi": "Pi",
        "section": "Paragraf", "dash": "Bindestrich", "underscore": "Unterstrich",
        "degrees": "Grad", "infinity": "unendlich", "version": "Version",
    },
    currencies=_money(_DE_MONEY),
    magnitudes=_pairs("Tsd. Tsd = tausend\nMio. Mio = Million | Millionen\nMrd. Mrd = Milliarde | Milliarden"),
    units=_pairs(_DE_UNITS),
    months=_DE_MONTHS,
    month_forms=_forms(_DE_MONTHS, 3, {"jänner": 1, "mrz": 3, "sept": 9}),
    abbreviations=_DE_ABBREVIATIONS,
    date=_de_date,
    clock=_de_clock,
    money=lambda major, _, minor: f"{major} {minor}",
    ordinal=_de_ordinal,
    ordinals=r"(\d{1,2})(\.)(?=\s+(?:[A-ZÄÖÜ]\w+|\w+e[nrs]?\b))",
    fraction=_de_fraction,
    day_first=True,
    clock_separators=":.",
    clock_suffix=r"\s*Uhr",
    day_suffix=r"\.",
    month_joiner=r"\s*",
)  # fmt: skip

# --- French ------------------------------------------------------------------------------------------------------

_FR_MONTHS = _words("janvier février mars avril mai juin juillet août septembre octobre novembre décembre")

_FR_UNITS = """
km = un kilomètre | kilomètres
m = un mètre | mètres
cm = un centimètre | centimètres
mm = un millimètre | millimètres
kg = un kilogramme | kilogrammes
g = un gramme | grammes
mg = un milligramme | milligrammes
l L = un litre | litres
ml mL = un millilitre | millilitres
km/h = un kilomètre par heure | kilomètres par heure
m/s = un mètre par seconde | mètres par seconde
°C ºC = un degré Celsius | degrés Celsius
°F = un degré Fahrenheit | degrés Fahrenheit
° º = un degré | degrés
ko Ko kB = un kilooctet | kilooctets
Mo MB = un mégaoctet | mégaoctets
Go GB = un gigaoctet | gigaoctets
To TB = un téraoctet | téraoctets
Hz = un hertz | hertz
kHz = un kilohertz | kilohertz
MHz = un mégahertz | mégahertz
GHz = un gigahertz | gigahertz
W = un watt | watts
kW = un kilowatt | kilowatts
kWh = un kilowattheure | kilowattheures
V = un volt | volts
dB = un décibel | décibels
ms = une milliseconde | millisecondes
s sec = une seconde | secondes
min = une minute | minutes
h = une heure | heures
m² m2 = un mètre carré | mètres carrés
km² km2 = un kilomètre carré | kilomètres carrés
m³ m3 = un mètre cube | mètres cubes
% = un pour cent | pour cent
‰ = un pour mille | pour mille
"""

_FR_MONEY = """
€ EUR = un euro | euros | un centime | centimes
$ US$ USD = un dollar | dollars | un cent | cents
£ GBP = une livre | livres | un penny | pence
¥ JPY = un yen | yens | un sen | sens
CHF = un franc suisse | francs suisses | un centime | centimes
"""

_FR_ABBREVIATIONS = {
    r"M\.(?=\s+[A-ZÉÈ])": "monsieur",
    r"MM\.": "messieurs",
    r"Mmes": "mesdames",
    r"Mme\.?": "madame",
    r"Mlle\.?": "mademoiselle",
    r"Dr\.?": "docteur",
    r"Pr\.?(?=\s+[A-Z])": "professeur",
    r"Me(?=\s+[A-Z])": "maître",
    r"St(?=[-\s][A-Z])": "Saint",
    r"Ste(?=[-\s][A-Z])": "Sainte",
    r"[Nn]°\s*|№\s*": "numéro ",
    r"etc\.(?=\s+[A-Z]|\s*$)": "et cetera.",
    r"etc\.?": "et cetera",
    r"p\.\s?ex\.": "par exemple",
    r"c\.-à-d\.": "c'est-à-dire",
    r"env\.": "environ",
    r"av\.(?=\s+[A-Z])": "avenue",
    r"bd\.?(?=\s+[A-Z])": "boulevard",
    r"[Tt]él\.": "téléphone",
    r"p\.(?=\s*\d)": "page",
    r"max\.": "maximum",
    r"min\.(?!\s*\d)": "minimum",
    r"svp": "s'il vous plaît",
    r"[Rr]dv": "rendez-vous",
}


def _fr_ordinal(number: int, suffix: str) -> str:
    gender = "feminine" if suffix in {"re", "ère"} else "masculine"
    return spell("fr", number, f"spellout-ordinal-{gender}")


def _fr_date(day: int, month: int, year: int | None, before: str) -> str:
    said = f"{'premier' if day == 1 else spell('fr', day, 'spellout-cardinal-masculine')} {_FR_MONTHS[month - 1]}"
    return f"{said} {spell('fr', year, 'spellout-cardinal-masculine')}" if year is not None else said


def _fr_clock(hour: int, minute: int) -> str:
    if not minute and hour in {0, 12, 24}:
        return "midi" if hour == 12 else "minuit"
    said = f"{spell('fr', hour, 'spellout-cardinal-feminine')} heure{'s' if hour > 1 else ''}"
    return f"{said} {spell('fr', minute, 'spellout-cardinal-feminine')}" if minute else said


def _fr_fraction(top: int, bottom: int) -> str:
    names = {2: "demi", 3: "tiers", 4: "quart"}
    part = names.get(bottom) or spell("fr", bottom, "spellout-ordinal-masculine")
    plural = "s" if top > 1 and not part.endswith("s") else ""
    return f"{spell('fr', top, 'spellout-cardinal-masculine')} {part}{plural}"


def _fr_of(name: str) -> str:
    return f" d'{name}" if name[0] in "aeiouy" else f" de {name}"


FR = Locale(
    code="fr-FR",
    language="fr",
    decimal=",",
    grouping=" ",
    cardinal="spellout-numbering",
    year="spellout-cardinal-masculine",
    words={
        "point": "virgule", "minus": "moins", "to": "à", "dot": "point", "at": "arobase",
        "number": "numéro", "hashtag": "hashtag", "and": "et", "over": "sur", "plus": "plus", "equals": "égale",
        "times": "fois", "by": "par", "divided": "divisé par", "less": "inférieur à", "more": "supérieur à",
        "less_equal": "au plus", "more_equal": "au moins", "not_equal": "différent de", "about": "environ",
        "plus_minus": "plus ou moins", "squared": "au carré", "cubed": "au cube", "root": "racine de", "pi": "pi",
        "section": "paragraphe", "dash": "tiret", "underscore": "tiret bas", "degrees": "degrés",
        "infinity": "infini", "version": "version",
    },
    currencies=_money(_FR_MONEY),
    magnitudes=_pairs("M = million | millions\nMd Mds = milliard | milliards"),
    units=_pairs(_FR_UNITS),
    months=_FR_MONTHS,
    month_forms=_forms(
        _FR_MONTHS, 4, {"janv": 1, "févr": 2, "fév": 2, "avr": 4, "sept": 9, "oct": 10, "nov": 11, "déc": 12}
    ),
    abbreviations=_FR_ABBREVIATIONS,
    date=_fr_date,
    clock=_fr_clock,
    money=lambda major, _, minor: f"{major} {minor}",
    ordinal=_fr_ordinal,
    ordinals=r"(\d+)(ers?|ère|re|ème|èmes|es?|nde?)",
    fraction=_fr_fraction,
    day_first=True,
    clock_separators=":hH",
    of_money=_fr_of,
    decimals="number",
    day_suffix=r"(?:er)?",
)  # fmt: skip

# --- Spanish -----------------------------------------------------------------------------------------------------

_ES_MONTHS = _words("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre")

_ES_UNITS = """
km = un kilómetro | kilómetros
m = un metro | metros
cm = un centímetro | centímetros
mm = un milímetro | milímetros
kg = un kilogramo | kilogramos
g = un gramo | gramos
mg = un miligramo | miligramos
l L = un litro | litros
ml mL = un mililitro | mililitros
km/h = un kilómetro por hora | kilómetros por hora
m/s = un metro por segundo | metros por segundo
°C ºC = un grado Celsius | grados Celsius
°F = un grado Fahrenheit | grados Fahrenheit
° = un grado | grados
kB KB = un kilobyte | kilobytes
MB = un megabyte | megabytes
GB = un gigabyte | gigabytes
TB = un terabyte | terabytes
Hz = un hercio | hercios
kHz = un kilohercio | kilohercios
MHz = un megahercio | megahercios
GHz = un gigahercio | gigahercios
W = un vatio | vatios
kW = un kilovatio | kilovatios
kWh = un kilovatio hora | kilovatios hora
V = un voltio | voltios
dB = un decibelio | decibelios
ms = un milisegundo | milisegundos
s seg = un segundo | segundos
min = un minuto | minutos
h = una hora | horas
m² m2 = un metro cuadrado | metros cuadrados
km² km2 = un kilómetro cuadrado | kilómetros cuadrados
m³ m3 = un metro cúbico | metros cúbicos
% = uno por ciento | por ciento
‰ = uno por mil | por mil
"""

_ES_MONEY = """
€ EUR = un euro | euros | un céntimo | céntimos
$ US$ USD = un dólar | dólares | un centavo | centavos
£ GBP = una libra | libras | un penique | peniques
¥ JPY = un yen | yenes | un sen | senes
MXN = un peso | pesos | un centavo | centavos
CHF = un franco suizo | francos suizos | un céntimo | céntimos
"""

_ES_ABBREVIATIONS = {
    r"Sres\.": "señores",
    r"Sra\.": "señora",
    r"Srta\.": "señorita",
    r"Sr\.": "señor",
    r"Dra\.": "doctora",
    r"Dr\.": "doctor",
    r"D\.ª": "doña",
    r"Ud(?:s?)\.": "usted",
    r"EE\.?\s?UU\.?": "Estados Unidos",
    r"p\.\s?ej\.": "por ejemplo",
    r"etc\.(?=\s+[A-Z]|\s*$)": "etcétera.",
    r"etc\.?": "etcétera",
    r"aprox\.": "aproximadamente",
    r"[Nn]\.?[º°]\s*|[Nn]úm\.|№\s*": "número ",
    r"[Tt]el\.": "teléfono",
    r"[Pp]ág\.": "página",
    r"Avda?\.": "avenida",
    r"C/(?=\s*[A-Z])": "calle ",
    r"máx\.": "máximo",
    r"mín\.": "mínimo",
    r"a\.\s?C\.": "antes de Cristo",
    r"d\.\s?C\.": "después de Cristo",
}


def _es_ordinal(number: int, suffix: str) -> str:
    form = (
        "feminine" if suffix.endswith(("ª", "a")) else "masculine-adjective" if suffix.endswith("er") else "masculine"
    )
    return spell("es", number, f"spellout-ordinal-{form}")


def _es_date(day: int, month: int, year: int | None, before: str) -> str:
    said = f"{'primero' if day == 1 else spell('es', day, 'spellout-numbering')} de {_ES_MONTHS[month - 1]}"
    return f"{said} de {spell('es', year, 'spellout-numbering')}" if year is not None else said


def _es_clock(hour: int, minute: int) -> str:
    said = spell("es", hour, "spellout-cardinal-feminine")
    if not minute:
        return f"{said} en punto"
    parts = {15: "y cuarto", 30: "y media"} if hour <= 12 else {}
    return f"{said} {parts.get(minute) or 'y ' + spell('es', minute, 'spellout-numbering')}"


def _es_fraction(top: int, bottom: int) -> str:
    names = {2: "medio", 3: "tercio", 4: "cuarto"}
    part = names.get(bottom) or spell("es", bottom, "spellout-ordinal-masculine")
    return f"{spell('es', top, 'spellout-cardinal-masculine')} {part}{'s' if top > 1 else ''}"


ES = Locale(
    code="es-ES",
    language="es",
    decimal=",",
    grouping=".",
    cardinal="spellout-numbering",
    year="spellout-numbering",
    words={
        "point": "coma", "minus": "menos", "to": "a", "dot": "punto", "at": "arroba",
        "number": "número", "hashtag": "etiqueta", "and": "y", "over": "sobre", "plus": "más", "equals": "igual a",
        "times": "por", "by": "por", "divided": "dividido entre", "less": "menor que", "more": "mayor que",
        "less_equal": "como máximo", "more_equal": "como mínimo", "not_equal": "distinto de", "about": "unos",
        "plus_minus": "más o menos", "squared": "al cuadrado", "cubed": "al cubo", "root": "raíz de", "pi": "pi",
        "section": "sección", "dash": "guion", "underscore": "guion bajo", "degrees": "grados",
        "infinity": "infinito", "version": "versión",
    },
    currencies=_money(_ES_MONEY),
    magnitudes=_pairs("M = millón | millones"),
    units=_pairs(_ES_UNITS),
    months=_ES_MONTHS,
    month_forms=_forms(_ES_MONTHS, 3, {"sept": 9, "setiembre": 9}),
    abbreviations=_ES_ABBREVIATIONS,
    date=_es_date,
    clock=_es_clock,
    money=lambda major, minor, _: f"{major} con {minor}",
    ordinal=_es_ordinal,
    ordinals=r"(\d+)(\.?(?:º|ª|er))",
    fraction=_es_fraction,
    day_first=True,
    of_money=" de {}".format,
    decimals="number",
    day_suffix=r"º?",
    month_joiner=r"\s+(?:de\s+)?",
)  # fmt: skip

LOCALES: dict[str, Locale] = {locale.code: locale for locale in (EN_US, EN_GB, DE, FR, ES)}
