// The menu: data/menu.toml, or the shop's own in its place. Money is whole cents, read from the digits as written.

import { Value } from "json";
import { data } from "parley";
import { parseToml } from "toml";

/** The tables of the menu by the slot that takes a value of them. */
export function tableOf(slot: string): string {
  if (slot == "drink" || slot == "which") return "drinks";
  if (slot == "size") return "sizes";
  if (slot == "shots") return "shots";
  if (slot == "roast") return "roasts";
  if (slot == "milk") return "milks";
  if (slot == "sugar") return "sugars";
  return "extras";
}

export const OPTIONS: string[] = ["size", "shots", "roast", "milk", "sugar"];

export class Menu {
  /** What is wrong with the file: "" when nothing is. */
  error: string = "";
  root: Value;

  constructor() {
    const file = data("menu.toml");
    const toml = parseToml(file.value.text);
    this.root = toml.root;
    if (!file.ok) this.error = file.error;
    else if (toml.error != "") this.error = "menu.toml, " + toml.error;
    else this.check();
  }

  private check(): void {
    const tables = ["drinks", "sizes", "shots", "roasts", "milks", "sugars", "extras"];
    for (let t = 0; t < tables.length; t++) {
      const rows = this.root.get(tables[t]);
      for (let i = 0; i < rows.length; i++) {
        const row = rows.at(i);
        const name = row.str("name");
        if (name == "") this.error = "menu.toml, " + tables[t] + " number " + (i + 1).toString() + " has no name";
        if (row.has("price") && cents(row.get("price")) < 0) this.error = wrong(name);
        const prices = row.get("prices");
        for (let p = 0; p < prices.length; p++) if (cents(prices.at(p)) < 0) this.error = wrong(name);
        if (t == 0 && !row.has("price") && prices.length == 0) this.error = wrong(name);
      }
    }
  }

  rows(table: string): Value {
    return this.root.get(table);
  }

  /** The row whose name or id this is; the null value: not on the menu. */
  row(table: string, name: string): Value {
    const rows = this.rows(table);
    for (let i = 0; i < rows.length; i++) {
      const row = rows.at(i);
      if (row.str("name") == name || row.str("id") == name) return row;
    }
    return Value.null();
  }

  /** The row that is called so, in any table, by its name or another; the null value: there is none. */
  called(words: string): Value {
    const said = words.toLowerCase().trim();
    const tables = ["drinks", "milks", "extras", "sugars", "shots", "roasts"];
    for (let t = 0; t < tables.length; t++) {
      const rows = this.rows(tables[t]);
      for (let i = 0; i < rows.length; i++) {
        const row = rows.at(i);
        if (row.str("name").toLowerCase() == said || plural(row) == said) return row;
        const also = row.get("also");
        for (let a = 0; a < also.length; a++) if (also.at(a).text.toLowerCase() == said) return row;
      }
    }
    return Value.null();
  }

  /** Names that can be had, in the menu's order. */
  names(table: string): string[] {
    const rows = this.rows(table);
    const names: string[] = [];
    for (let i = 0; i < rows.length; i++) if (available(rows.at(i))) names.push(rows.at(i).str("name"));
    return names;
  }

  /** What takes the place of a row that is sold out. */
  instead(table: string, row: Value): string[] {
    const wished = row.get("instead");
    const names: string[] = [];
    for (let i = 0; i < wished.length; i++) {
      const other = this.row(table, wished.at(i).text);
      if (!other.isNull && available(other)) names.push(other.str("name"));
    }
    return names;
  }

  money(cents: i32): string {
    const rest = cents % 100;
    const currency = this.root.str("currency");
    return (
      (currency == "" ? "$" : currency) + (cents / 100).toString() + "." + (rest < 10 ? "0" : "") + rest.toString()
    );
  }

  get taxIncluded(): bool {
    return this.root.get("tax").get("included").truth;
  }

  /** The tax on top of `sum`, rounded half up; 0 where the prices have it in them. */
  tax(sum: i32): i32 {
    if (this.taxIncluded) return 0;
    // Percents have up to three decimals: thousandths keep the sum in whole numbers.
    const thousandths = <i64>Math.round(this.root.get("tax").num("percent") * 1000);
    return <i32>((<i64>sum * thousandths + 50_000) / 100_000);
  }

  get abandonSeconds(): f64 {
    return this.root.num("abandon_minutes", 10) * 60;
  }

  get topic(): string {
    const topic = this.root.str("topic");
    return topic == "" ? "kiosk/orders" : topic;
  }
}

function wrong(name: string): string {
  return "menu.toml, the price of " + name + " is missing or no amount with two decimals at most";
}

/** There is such a row, and it is not sold out. */
export function available(row: Value): bool {
  return !row.isNull && (row.get("available").isNull || row.get("available").truth);
}

export function plural(row: Value): string {
  const own = row.str("plural");
  return own != "" ? own : row.str("name") + "s";
}

/** The sizes a drink is sold in; none: it has one price. */
export function sizes(drink: Value): string[] {
  return drink.get("prices").keys;
}

/** Cents of an amount as it was written ("4.5" is 450); -1: no amount, or more than two decimals. */
export function cents(amount: Value): i32 {
  const text = amount.text;
  let whole = 0;
  let places = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code == 0x2e && places < 0) {
      places = 0;
      continue;
    }
    if (code < 0x30 || code > 0x39 || whole > 10_000_000) return -1;
    whole = whole * 10 + (code - 0x30);
    if (places >= 0) places++;
  }
  if (text.length == 0 || places > 2) return -1;
  for (let i = max(places, 0); i < 2; i++) whole *= 10;
  return whole;
}
