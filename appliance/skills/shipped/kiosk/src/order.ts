// An order: lines of one drink with its options, kept in memory until it is placed or cancelled.

import { Kind, Value, parseJson } from "json";
import { Call, Result, clock, memory } from "parley";
import { count, join } from "words";
import { Menu, OPTIONS, available, cents, plural, sizes, tableOf } from "./menu";

const KEY = "order";
const MOST_LINES = 20;
const MOST_CUPS = 50;

export class Lost {
  constructor(
    public line: i32,
    public slot: string,
    public name: string,
  ) {}
}

export class Order {
  lines: Value;

  /** The open order; what nobody has touched for long was somebody else's. */
  constructor(private menu: Menu) {
    const kept = parseJson(memory.read(KEY));
    const fresh = clock().num("unix") - kept.num("at") <= menu.abandonSeconds;
    this.lines = fresh && kept.get("lines").kind == Kind.List ? kept.get("lines") : Value.list();
  }

  get length(): i32 {
    return this.lines.length;
  }

  line(index: i32): Value {
    return this.lines.at(index);
  }

  save(): Result {
    const at = Value.num(clock().num("unix"));
    return memory.write(KEY, Value.table().set("at", at).set("lines", this.lines).toString());
  }

  forget(): Result {
    return memory.remove(KEY);
  }

  /** Why another line or this many cups are too many: "" when they are not. */
  tooMuch(): string {
    if (this.length > MOST_LINES) return "That is more than fits into one order.";
    for (let i = 0; i < this.length; i++) {
      if (quantity(this.line(i)) > MOST_CUPS) return "There is a limit of " + MOST_CUPS.toString() + " of one kind.";
    }
    return "";
  }

  /** The first line with a size to be asked for; -1: all are whole. */
  get open(): i32 {
    for (let i = 0; i < this.length; i++) {
      const offered = this.sizes(this.line(i));
      if (offered.length > 0 && !offered.includes(this.line(i).str("size"))) return i;
    }
    return -1;
  }

  /** The first thing that has sold out or left the menu since it was ordered; null: nothing has. */
  get lost(): Lost | null {
    for (let i = 0; i < this.length; i++) {
      const line = this.line(i);
      if (!available(this.menu.row("drinks", line.str("drink")))) return new Lost(i, "drink", line.str("drink"));
      for (let o = 0; o < OPTIONS.length; o++) {
        const name = line.str(OPTIONS[o]);
        if (OPTIONS[o] == "size" || name == "") continue; // Sizes are asked for again.
        if (!available(this.menu.row(tableOf(OPTIONS[o]), name))) return new Lost(i, OPTIONS[o], name);
      }
      const extras = line.get("extras");
      for (let e = 0; e < extras.length; e++) {
        if (!available(this.menu.row("extras", extras.at(e).text))) return new Lost(i, "extra", extras.at(e).text);
      }
    }
    return null;
  }

  /** The sizes that a line may have; none: its drink has one price. */
  sizes(line: Value): string[] {
    return sizes(this.menu.row("drinks", line.str("drink")));
  }

  /** Cents of one line. */
  price(line: Value): i32 {
    const drink = this.menu.row("drinks", line.str("drink"));
    const prices = drink.get("prices");
    let sum = cents(prices.length > 0 ? prices.get(line.str("size")) : drink.get("price"));
    for (let i = 1; i < OPTIONS.length; i++) {
      const amount = OPTIONS[i] == "sugar" ? max(1, <i32>line.num("sugar_amount", 1)) : 1;
      sum += amount * extra(this.menu.row(tableOf(OPTIONS[i]), line.str(OPTIONS[i])));
    }
    const extras = line.get("extras");
    for (let i = 0; i < extras.length; i++) sum += extra(this.menu.row("extras", extras.at(i).text));
    return sum * quantity(line);
  }

  get sum(): i32 {
    let sum = 0;
    for (let i = 0; i < this.length; i++) sum += this.price(this.line(i));
    return sum;
  }

  /** "one large latte with oat milk". */
  words(line: Value): string {
    const drink = this.menu.row("drinks", line.str("drink"));
    const cups = quantity(line);
    const front: string[] = [count(cups)];
    const behind: string[] = [];
    for (let i = 0; i < 3; i++) if (line.str(OPTIONS[i]) != "") front.push(line.str(OPTIONS[i]));
    if (line.str("milk") != "") behind.push(this.part(line, "milk"));
    if (line.str("sugar") != "") behind.push(this.part(line, "sugar"));
    const extras = line.get("extras");
    for (let i = 0; i < extras.length; i++) {
      const before = this.menu.row("extras", extras.at(i).text).get("before").truth;
      if (before) front.push(extras.at(i).text);
      else behind.push(extras.at(i).text);
    }
    front.push(cups == 1 || drink.isNull ? line.str("drink") : plural(drink));
    return front.join(" ") + (behind.length > 0 ? " with " + join(behind) : "");
  }

  /** "two sugars", "a little oat milk", "cream". */
  private part(line: Value, slot: string): string {
    const name = line.str(slot);
    const amount = line.get(slot + "_amount");
    if (amount.kind != Kind.Number) return (amount.text == "" ? "" : amount.text + " ") + name;
    return count(<i32>amount.number) + " " + (amount.number > 1 ? plural(this.menu.row(tableOf(slot), name)) : name);
  }

  get spoken(): string {
    const words = new Array<string>(this.length);
    for (let i = 0; i < this.length; i++) words[i] = this.words(this.line(i));
    return this.length > 2 ? words.slice(0, -1).join("; ") + "; and " + words[words.length - 1] : words.join(" and ");
  }

  /** Stands for exactly this order at this price: what was read out is what is placed. */
  get seal(): string {
    const text = this.lines.toString() + " " + (this.sum + this.menu.tax(this.sum)).toString();
    let hash: u64 = 0xcbf29ce484222325; // FNV-1a
    for (let i = 0; i < text.length; i++) hash = (hash ^ text.charCodeAt(i)) * 0x100000001b3;
    return hash.toString(16);
  }

  /** The line that a call means by its place, its drink, or as the one spoken of last; -1: there is none. */
  meant(call: Call): i32 {
    if (call.has("line")) {
      const place = <i32>call.num("line");
      const index = place < 0 ? this.length + place : place - 1;
      return index < this.length ? index : -1;
    }
    if (call.str("which") != "") {
      for (let i = this.length - 1; i >= 0; i--) if (this.line(i).str("drink") == call.str("which")) return i;
      return -1;
    }
    const last = <i32>call.context.num("last", -1);
    return last >= 0 && last < this.length ? last : this.length - 1;
  }
}

export function quantity(line: Value): i32 {
  return max(1, <i32>line.num("quantity", 1));
}

function extra(row: Value): i32 {
  return row.has("price") ? cents(row.get("price")) : 0;
}
