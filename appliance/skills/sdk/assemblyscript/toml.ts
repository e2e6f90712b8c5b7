// The part of TOML that a menu or a form is written in, so that a shop edits one file, which the recogniser reads as
// well: tables, arrays of tables, inline tables, arrays, strings of one line, numbers, true and false. Dates, strings of
// many lines and numbers in other bases are refused with their line.

import { Value } from "json";

export class Toml {
  root: Value = Value.table();
  /** What is wrong, and where: "" when nothing is. */
  error: string = "";
}

/** Reads TOML; after an error `root` holds what came before it. */
export function parseToml(text: string): Toml {
  const out = new Toml();
  const reader = new Reader(text);
  let table = out.root;
  while (true) {
    reader.gap();
    if (reader.peek() < 0) break;
    if (reader.peek() == 0x5b) table = reader.header(out.root);
    else reader.member(table);
    reader.end();
    if (reader.error != "") {
      out.error = "line " + reader.line.toString() + ": " + reader.error;
      break;
    }
  }
  return out;
}

const DEEPEST = 16;

class Reader {
  at: i32 = 0;
  line: i32 = 1;
  error: string = "";

  constructor(private text: string) {}

  peek(ahead: i32 = 0): i32 {
    return this.at + ahead < this.text.length ? this.text.charCodeAt(this.at + ahead) : -1;
  }

  fail(what: string): void {
    if (this.error == "") this.error = what;
  }

  take(code: i32): void {
    if (this.peek() == code) this.at++;
    else this.fail("'" + String.fromCharCode(code) + "' is missing");
  }

  blanks(): void {
    while (this.peek() == 0x20 || this.peek() == 0x09) this.at++;
  }

  /** Blanks, ends of lines and comments. */
  gap(): void {
    while (true) {
      const code = this.peek();
      if (code == 0x23) {
        while (this.peek() >= 0 && this.peek() != 0x0a) this.at++;
      } else if (code == 0x20 || code == 0x09 || code == 0x0d || code == 0x0a || code == 0xfeff) {
        if (code == 0x0a) this.line++;
        this.at++;
      } else {
        return;
      }
    }
  }

  end(): void {
    this.blanks();
    const code = this.peek();
    if (code >= 0 && code != 0x23 && code != 0x0a && code != 0x0d) this.fail("there is more than one value");
  }

  header(root: Value): Value {
    this.at++;
    const many = this.peek() == 0x5b;
    if (many) this.at++;
    let table = root;
    while (this.error == "") {
      this.blanks();
      const key = this.key();
      this.blanks();
      const last = this.peek() != 0x2e;
      table = last && many ? this.append(table, key) : this.enter(table, key);
      if (last) break;
      this.at++;
    }
    this.take(0x5d);
    if (many) this.take(0x5d);
    return table;
  }

  append(table: Value, key: string): Value {
    if (!table.has(key)) table.set(key, Value.list());
    const entry = Value.table();
    table.get(key).push(entry);
    return entry;
  }

  /** The table under a key; of an array of tables the last one. */
  enter(table: Value, key: string): Value {
    if (!table.has(key)) table.set(key, Value.table());
    const found = table.get(key);
    return found.keys.length == 0 && found.length > 0 ? found.at(found.length - 1) : found;
  }

  member(table: Value): void {
    const key = this.key();
    this.blanks();
    if (this.peek() == 0x2e) {
      this.at++;
      this.blanks();
      this.member(this.enter(table, key));
      return;
    }
    this.take(0x3d);
    this.blanks();
    const value = this.value(0);
    if (table.has(key)) this.fail("'" + key + "' is there twice");
    if (this.error == "") table.set(key, value);
  }

  key(): string {
    const code = this.peek();
    if (code == 0x22 || code == 0x27) return this.string();
    const from = this.at;
    while (bare(this.peek())) this.at++;
    if (this.at == from) this.fail("a name is missing");
    return this.text.substring(from, this.at);
  }

  value(depth: i32): Value {
    const code = this.peek();
    if (depth > DEEPEST) this.fail("this is nested too deeply");
    if (this.error != "") return Value.null();
    if (code == 0x22 || code == 0x27) return Value.of(this.string());
    if (code == 0x5b) return this.list(depth);
    if (code == 0x7b) return this.inline(depth);
    const from = this.at;
    while (bare(this.peek()) || this.peek() == 0x2e || this.peek() == 0x2b || this.peek() == 0x3a) this.at++;
    const word = this.text.substring(from, this.at);
    if (word == "true" || word == "false") return Value.bool(word == "true");
    return this.amount(word);
  }

  amount(word: string): Value {
    const text = word.replaceAll("_", "");
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      const sign = (code == 0x2b || code == 0x2d) && i == 0;
      if (!sign && code != 0x2e && (code < 0x30 || code > 0x39))
        this.fail("'" + word + "' is no number or text in quotes");
    }
    const number = parseFloat(text);
    if (isNaN(number)) this.fail("a value is missing");
    const value = Value.num(number);
    value.text = text;
    return value;
  }

  list(depth: i32): Value {
    const list = Value.list();
    this.at++;
    this.gap();
    while (this.error == "" && this.peek() != 0x5d) {
      list.push(this.value(depth + 1));
      this.gap();
      if (this.peek() != 0x2c) break;
      this.at++;
      this.gap();
    }
    this.take(0x5d);
    return list;
  }

  inline(depth: i32): Value {
    const table = Value.table();
    this.at++;
    this.blanks();
    while (this.error == "" && this.peek() != 0x7d) {
      const key = this.key();
      this.blanks();
      this.take(0x3d);
      this.blanks();
      table.set(key, this.value(depth + 1));
      this.blanks();
      if (this.peek() != 0x2c) break;
      this.at++;
      this.blanks();
    }
    this.take(0x7d);
    return table;
  }

  string(): string {
    const quote = this.peek();
    if (this.peek(1) == quote && this.peek(2) == quote) this.fail("a text of many lines is not read here");
    this.at++;
    let out = "";
    let from = this.at;
    while (this.peek() != quote) {
      const code = this.peek();
      if (code < 0x20 && code != 0x09) {
        this.fail("a quote is not closed");
        return out;
      }
      if (code == 0x5c && quote == 0x22) {
        const next = this.peek(1);
        out += this.text.substring(from, this.at);
        if (next == 0x6e) out += "\n";
        else if (next == 0x74) out += "\t";
        else if (next == 0x22 || next == 0x5c) out += String.fromCharCode(next);
        else this.fail("a backslash stands before n, t, a quote or a backslash");
        this.at += 2;
        from = this.at;
      } else {
        this.at++;
      }
    }
    out += this.text.substring(from, this.at++);
    return out;
  }
}

function bare(code: i32): bool {
  return (
    (code >= 0x30 && code <= 0x39) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    code == 0x2d ||
    code == 0x5f
  );
}
