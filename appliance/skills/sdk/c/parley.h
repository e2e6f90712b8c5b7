/* Skills in C: the ABI, and as much JSON as a skill needs. One header; include it once.

   A skill defines `void answer(Call *call)`, which looks at the call (`call->name`, `number(call, "x", &value)`, ...) and
   says its reply (`say("...")`, `say_number(4.5)`). Every call has an instance of its own, so memory is never freed.

   zig cc --target=wasm32-freestanding -nostdlib -Oz -Wl,--no-entry -Wl,--strip-all -o skill.wasm src/main.c */

#ifndef PARLEY_H
#define PARLEY_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define PARLEY_HEAP (1 << 20)
#define PARLEY_REPLY (1 << 14)

static u8 parley_heap[PARLEY_HEAP];
static u32 parley_used;
static char parley_reply[PARLEY_REPLY];
static u32 parley_size;
static int parley_failed;

typedef struct {
  const char *json;
  u32 size;
  char name[64];
} Call;

static void answer(Call *call);

__attribute__((export_name("parley_alloc"))) u8 *parley_alloc(u32 size) {
  u32 start = (parley_used + 7) & ~7u;
  if (size > PARLEY_HEAP - start) __builtin_trap();
  parley_used = start + size;
  return parley_heap + start;
}

/* --- text -------------------------------------------------------------------------------------------------------- */

static u32 length(const char *text) {
  u32 n = 0;
  while (text[n]) n++;
  return n;
}

static int same(const char *one, const char *other) {
  while (*one && *one == *other) one++, other++;
  return *one == *other;
}

static void put(char c) {
  if (parley_size < PARLEY_REPLY - 16) parley_reply[parley_size++] = c;
}

/* Adds to what is said. */
static void say(const char *text) {
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') put('\\');
    put((u8)*text < 32 ? ' ' : *text);
  }
}

static void say_whole(u64 value) {
  char digits[24];
  int n = 0;
  do digits[n++] = (char)('0' + value % 10);
  while (value /= 10);
  while (n) put(digits[--n]);
}

/* With at most `places` digits behind the point, none of them an idle zero. */
static void say_decimal(double value, int places) {
  double scale = 1;
  for (int i = 0; i < places; i++) scale *= 10;
  if (value < 0) {
    say("minus ");
    value = -value;
  }
  u64 all = (u64)(value * scale + 0.5), whole = all / (u64)scale, rest = all % (u64)scale;
  say_whole(whole);
  if (!rest) return;
  put('.');
  for (u64 at = (u64)scale / 10; rest; at /= 10) {
    put((char)('0' + rest / at));
    rest %= at;
  }
}

/* What could not be done: the reply says so to the box. */
static void fail(const char *text) {
  parley_failed = 1;
  say(text);
}

/* --- the call's JSON --------------------------------------------------------------------------------------------- */

static const char *parley_skip(const char *at, const char *end) {
  /* Behind one value. */
  int depth = 0;
  while (at < end) {
    char c = *at++;
    if (c == '"') {
      while (at < end && *at != '"') at += *at == '\\' ? 2 : 1;
      at++;
      if (!depth) return at;
    } else if (c == '{' || c == '[') {
      depth++;
    } else if (c == '}' || c == ']') {
      if (--depth <= 0) return depth < 0 ? at - 1 : at;
    } else if (!depth && (*at == ',' || *at == '}' || *at == ']')) {
      return at;
    }
  }
  return end;
}

/* The value of a member of the object at `at`, or 0. */
static const char *parley_member(const char *at, const char *end, const char *key) {
  u32 n = length(key);
  while (at < end && *at != '{') at++;
  for (at++; at < end && *at != '}';) {
    while (at < end && *at != '"') at++;
    const char *name = at + 1, *behind = parley_skip(at, end);
    int found = (u32)(behind - name) == n + 1;
    for (u32 i = 0; found && i < n; i++) found = name[i] == key[i];
    at = behind;
    while (at < end && (*at == ':' || *at == ' ')) at++;
    if (found) return at;
    at = parley_skip(at, end);
    while (at < end && (*at == ',' || *at == ' ')) at++;
  }
  return 0;
}

static const char *parley_argument(Call *call, const char *key) {
  const char *end = call->json + call->size, *all = parley_member(call->json, end, "arguments");
  return all ? parley_member(all, end, key) : 0;
}

/* An argument that is a text, cut to `size`; whether it is there. */
static int text(Call *call, const char *key, char *into, u32 size) {
  const char *at = parley_argument(call, key), *end = call->json + call->size;
  u32 n = 0;
  if (!at || *at != '"') return 0;
  for (at++; at < end && *at != '"' && n + 1 < size; at++) into[n++] = *at == '\\' ? *++at : *at;
  into[n] = 0;
  return 1;
}

/* An argument that is a number; whether it is there. */
static int number(Call *call, const char *key, double *into) {
  const char *at = parley_argument(call, key), *end = call->json + call->size;
  if (!at) return 0;
  double value = 0, place = 1;
  int minus = *at == '-', digits = 0, power = 0;
  if (minus) at++;
  for (; at < end && *at >= '0' && *at <= '9'; at++, digits++) value = value * 10 + (*at - '0');
  if (at < end && *at == '.')
    for (at++; at < end && *at >= '0' && *at <= '9'; at++, digits++) value += (*at - '0') * (place /= 10);
  if (at < end && (*at == 'e' || *at == 'E')) {
    int down = *++at == '-';
    if (*at == '-' || *at == '+') at++;
    for (; at < end && *at >= '0' && *at <= '9' && power < 400; at++) power = power * 10 + (*at - '0');
    while (power--) value = down ? value / 10 : value * 10;
  }
  *into = minus ? -value : value;
  return digits > 0;
}

__attribute__((export_name("parley_call"))) u64 parley_call(const char *json, u32 size) {
  Call call = {json, size, {0}};
  const char *name = parley_member(json, json + size, "name");
  for (u32 i = 0; name && name[i + 1] != '"' && i < sizeof call.name - 1; i++) call.name[i] = name[i + 1];
  const char *head = "{\"say\":\"", *tail = "\"";
  while (*head) put(*head++);
  answer(&call);
  while (*tail) put(*tail++);
  if (parley_failed)
    for (const char *more = ",\"failed\":true"; *more;) parley_reply[parley_size++] = *more++;
  parley_reply[parley_size++] = '}';
  return (u64)(u32)parley_reply << 32 | parley_size;
}

/* What a compiler may call though nobody wrote it. */
void *memset(void *to, int value, unsigned long size) {
  for (volatile u8 *at = to; size--;) *at++ = (u8)value;
  return to;
}

void *memcpy(void *to, const void *from, unsigned long size) {
  volatile u8 *at = to;
  for (const u8 *of = from; size--;) *at++ = *of++;
  return to;
}

#endif
