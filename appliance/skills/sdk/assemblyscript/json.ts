// A value of JSON (and of TOML), with a parser and a writer. A member or an item that is missing is the null value, so
// that chains of `get` need no checks; the wrong kind reads as "", 0, false or nothing to walk over.

export enum Kind {
  Null,
  Bool,
  Number,
  Text,
  List,
  Table,
}

export class Value {
  kind: Kind = Kind.Null;
  /** The text; of a number the digits as they were written: no float touches an amount of money. */
  text: string = "";
  number: f64 = 0;
  // Memory is never given back during a call, so what has no members shares one empty list of them.
  keys: string[] = NO_KEYS;
  items: Value[] = NO_ITEMS;

  static null(): Value {
    return NULL;
  }

  static of(text: string): Value {
    const value = new Value();
    value.kind = Kind.Text;
    value.text = text;
    return value;
  }

  static num(number: f64): Value {
    const value = new Value();
    value.kind = Kind.Number;
    value.number = number;
    value.text = digits(number);
    return value;
  }

  static bool(truth: bool): Value {
    const value = new Value();
    value.kind = Kind.Bool;
    value.number = truth ? 1 : 0;
    return value;
  }

  static list(): Value {
    const value = new Value();
    value.kind = Kind.List;
    value.items = [];
    return value;
  }

  static table(): Value {
    const value = new Value();
    value.kind = Kind.Table;
    value.keys = [];
    value.items = [];
    return value;
  }

  get isNull(): bool {
    return this.kind == Kind.Null;
  }

  get truth(): bool {
    return this.kind == Kind.Bool && this.number != 0;
  }

  get length(): i32 {
    return this.items.length;
  }

  has(key: string): bool {
    return this.keys.includes(key);
  }

  get(key: string): Value {
    const at = this.keys.indexOf(key);
    return at < 0 ? Value.null() : this.items[at];
  }

  at(index: i32): Value {
    return index < 0 || index >= this.items.length ? Value.null() : this.items[index];
  }

  /** The text of a member: "" when it is missing or something else. */
  str(key: string): string {
    const value = this.get(key);
    return value.kind == Kind.Text ? value.text : "";
  }

  /** The number of a member, or `otherwise`. */
  num(key: string, otherwise: f64 = 0): f64 {
    const value = this.get(key);
    return value.kind == Kind.Number ? value.number : otherwise;
  }

  /** Only a table takes members, as only a list takes items: anything else ends the call. */
  set(key: string, value: Value): Value {
    assert(this.kind == Kind.Table);
    const at = this.keys.indexOf(key);
    if (at >= 0) {
      this.items[at] = value;
    } else {
      this.keys.push(key);
      this.items.push(value);
    }
    return this;
  }

  drop(key: string): Value {
    assert(this.kind == Kind.Table);
    const at = this.keys.indexOf(key);
    if (at >= 0) {
      this.keys.splice(at, 1);
      this.items.splice(at, 1);
    }
    return this;
  }

  push(value: Value): Value {
    assert(this.kind == Kind.List);
    this.items.push(value);
    return this;
  }

  toString(): string {
    switch (this.kind) {
      case Kind.Bool:
        return this.number != 0 ? "true" : "false";
      case Kind.Number:
        return this.text;
      case Kind.Text:
        return quoted(this.text);
      case Kind.List: {
        const parts: string[] = ["["];
        for (let i = 0; i < this.items.length; i++) {
          if (i > 0) parts.push(",");
          parts.push(this.items[i].toString());
        }
        parts.push("]");
        return glue(parts);
      }
      case Kind.Table: {
        const parts: string[] = ["{"];
        for (let i = 0; i < this.items.length; i++) {
          if (i > 0) parts.push(",");
          parts.push(quoted(this.keys[i]));
          parts.push(":");
          parts.push(this.items[i].toString());
        }
        parts.push("}");
        return glue(parts);
      }
      default:
        return "null";
    }
  }
}

const NO_KEYS: string[] = [];
const NO_ITEMS: Value[] = [];
const NULL: Value = new Value();

/** A number as JSON writes it: whole numbers without a point; null for what JSON does not know. */
export function digits(number: f64): string {
  if (!isFinite(number)) return "null";
  if (Math.floor(number) == number && Math.abs(number) < 1e15) return (<i64>number).toString();
  return number.toString();
}

/** The texts one behind the other. Of what is optimised for size, `join` and `+=` take the square of the length. */
export function glue(parts: string[]): string {
  let length = 0;
  for (let i = 0; i < parts.length; i++) length += parts[i].length;
  const start = heap.alloc((<usize>length) << 1);
  let at = start;
  for (let i = 0; i < parts.length; i++) {
    const bytes = (<usize>parts[i].length) << 1;
    memory.copy(at, changetype<usize>(parts[i]), bytes);
    at += bytes;
  }
  return String.UTF16.decodeUnsafe(start, at - start);
}

const HEX = "0123456789abcdef";

function quoted(text: string): string {
  const parts: string[] = ['"'];
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // Half a surrogate pair has no UTF-8 form.
    const half = (code & 0xf800) == 0xd800 && !paired(text, i);
    if (code >= 0x20 && code != 0x22 && code != 0x5c && !half) continue;
    parts.push(text.substring(from, i));
    if (code == 0x22) parts.push('\\"');
    else if (code == 0x5c) parts.push("\\\\");
    else if (half) parts.push("\\ufffd");
    else parts.push("\\u00" + HEX.charAt(code >> 4) + HEX.charAt(code & 15));
    from = i + 1;
  }
  parts.push(text.substring(from));
  parts.push('"');
  return glue(parts);
}

function paired(text: string, at: i32): bool {
  const code = text.charCodeAt(at);
  if ((code & 0xfc00) == 0xd800) return at + 1 < text.length && (text.charCodeAt(at + 1) & 0xfc00) == 0xdc00;
  return at > 0 && (text.charCodeAt(at - 1) & 0xfc00) == 0xd800;
}

/** Reads JSON; a text that is none, or nests deeper than 32, gives the null value. */
export function parseJson(text: string): Value {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.blanks();
  return reader.bad || reader.at < text.length ? Value.null() : value;
}

const DEEPEST = 32;

class Reader {
  at: i32 = 0;
  bad: bool = false;

  constructor(private text: string) {}

  blanks(): void {
    while (this.at < this.text.length) {
      const code = this.text.charCodeAt(this.at);
      if (code != 0x20 && code != 0x0a && code != 0x0d && code != 0x09) break;
      this.at++;
    }
  }

  peek(): i32 {
    return this.at < this.text.length ? this.text.charCodeAt(this.at) : -1;
  }

  /** Takes one character, or notes that the text is no JSON. */
  take(code: i32): void {
    if (this.peek() == code) this.at++;
    else this.bad = true;
  }

  word(word: string, value: Value): Value {
    if (this.text.substr(this.at, word.length) != word) this.bad = true;
    this.at += word.length;
    return value;
  }

  value(depth: i32): Value {
    this.blanks();
    if (this.bad || depth > DEEPEST) {
      this.bad = true;
      return Value.null();
    }
    switch (this.peek()) {
      case 0x7b: // {
        return this.members(depth);
      case 0x5b: // [
        return this.list(depth);
      case 0x22: // "
        return Value.of(this.string());
      case 0x74: // t
        return this.word("true", Value.bool(true));
      case 0x66: // f
        return this.word("false", Value.bool(false));
      case 0x6e: // n
        return this.word("null", Value.null());
      default:
        return this.amount();
    }
  }

  members(depth: i32): Value {
    const table = Value.table();
    this.at++;
    this.blanks();
    if (this.peek() == 0x7d) {
      this.at++;
      return table;
    }
    while (!this.bad) {
      this.blanks();
      const key = this.string();
      this.blanks();
      this.take(0x3a);
      table.set(key, this.value(depth + 1));
      this.blanks();
      if (this.peek() != 0x2c) break;
      this.at++;
    }
    this.take(0x7d);
    return table;
  }

  list(depth: i32): Value {
    const list = Value.list();
    this.at++;
    this.blanks();
    if (this.peek() == 0x5d) {
      this.at++;
      return list;
    }
    while (!this.bad) {
      list.push(this.value(depth + 1));
      this.blanks();
      if (this.peek() != 0x2c) break;
      this.at++;
    }
    this.take(0x5d);
    return list;
  }

  string(): string {
    this.take(0x22);
    const parts: string[] = [];
    let from = this.at;
    while (!this.bad) {
      const code = this.peek();
      if (code == 0x22) break;
      if (code < 0x20) {
        this.bad = true;
        return "";
      }
      if (code != 0x5c) {
        this.at++;
        continue;
      }
      parts.push(this.text.substring(from, this.at));
      const escape = this.at + 1 < this.text.length ? this.text.charCodeAt(this.at + 1) : 0;
      this.at += 2;
      if (escape == 0x75) parts.push(this.unicode());
      else if (escape == 0x6e) parts.push("\n");
      else if (escape == 0x74) parts.push("\t");
      else if (escape == 0x72) parts.push("\r");
      else if (escape == 0x62) parts.push("\b");
      else if (escape == 0x66) parts.push("\f");
      else if (escape == 0x22 || escape == 0x5c || escape == 0x2f) parts.push(String.fromCharCode(escape));
      else this.bad = true;
      from = this.at;
    }
    parts.push(this.text.substring(from, this.at));
    this.take(0x22);
    return parts.length == 1 ? parts[0] : glue(parts);
  }

  unicode(): string {
    let code = 0;
    for (let i = 0; i < 4; i++) {
      const digit = HEX.indexOf(this.text.charAt(this.at++).toLowerCase());
      if (digit < 0 || this.at > this.text.length) this.bad = true;
      code = code * 16 + digit;
    }
    return String.fromCharCode(code);
  }

  amount(): Value {
    const from = this.at;
    while (this.at < this.text.length && "+-.0123456789eE".includes(this.text.charAt(this.at))) this.at++;
    const text = this.text.substring(from, this.at);
    const number = parseFloat(text);
    if (text.length == 0 || isNaN(number)) {
      this.bad = true;
      return Value.null();
    }
    const value = Value.num(number);
    value.text = text;
    return value;
  }
}
