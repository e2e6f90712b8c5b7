// From the slots of a call to the options of a line. What cannot be had is told, not left out in silence.

import { Kind, Value } from "json";
import { Call } from "parley";
import { capital, join } from "words";
import { Menu, OPTIONS, available, sizes, tableOf } from "./menu";

export class Applied {
  /** What was not on the menu or sold out, in sentences. */
  refused: string[] = [];
  /** The slot of the first refusal that something else could fill. */
  slot: string = "";
  changed: bool = false;
}

/** Sets the options that a call names. */
export function apply(menu: Menu, line: Value, call: Call): Applied {
  const out = new Applied();
  for (let i = 0; i < OPTIONS.length; i++) {
    const slot = OPTIONS[i];
    const wished = call.str(slot);
    if (wished == "" || !fits(menu, line, slot, wished, out)) continue;
    line.set(slot, Value.of(wished));
    line.drop(slot + "_amount");
    out.changed = true;
  }
  amount(line, call, "milk", out);
  amount(line, call, "sugar", out);
  add(menu, line, call.str("extra"), out);
  add(menu, line, call.str("other_extra"), out);
  without(menu, line, call, out);
  if (call.has("quantity") && call.num("quantity") >= 1) {
    line.set("quantity", Value.num(Math.floor(call.num("quantity"))));
    out.changed = true;
  }
  return out;
}

/** Why a row cannot be had, and what can be had instead. */
export function soldOut(menu: Menu, table: string, row: Value): string {
  const others = menu.instead(table, row);
  const offer = others.length == 0 ? "" : " There is " + join(others, "or") + ".";
  return "Sorry, " + row.str("name") + " is sold out." + offer;
}

function fits(menu: Menu, line: Value, slot: string, wished: string, out: Applied): bool {
  const table = tableOf(slot);
  const row = menu.row(table, wished);
  if (row.isNull) {
    out.refused.push("Sorry, " + wished + " is not on the menu.");
  } else if (!available(row)) {
    out.refused.push(soldOut(menu, table, row));
    if (out.slot == "") out.slot = slot;
  } else if (slot == "size") {
    const drink = menu.row("drinks", line.str("drink"));
    const offered = sizes(drink);
    if (offered.includes(wished)) return true;
    const only = offered.length == 0 ? "one size" : join(offered, "or");
    out.refused.push(capital(drink.str("name")) + " comes in " + only + " only.");
  } else {
    return true;
  }
  return false;
}

function amount(line: Value, call: Call, slot: string, out: Applied): void {
  const wished = call.arguments.get(slot + "_amount");
  if (wished.isNull || (wished.kind == Kind.Number && wished.number < 1)) return;
  if (line.str(slot) == "") return;
  line.set(slot + "_amount", wished);
  out.changed = true;
}

function add(menu: Menu, line: Value, wished: string, out: Applied): void {
  if (wished == "" || !fits(menu, line, "extra", wished, out)) return;
  if (!line.has("extras")) line.set("extras", Value.list());
  const extras = line.get("extras");
  out.changed = true;
  for (let i = 0; i < extras.length; i++) if (extras.at(i).text == wished) return;
  extras.push(Value.of(wished));
}

function without(menu: Menu, line: Value, call: Call, out: Applied): void {
  for (let i = 0; i < OPTIONS.length; i++) {
    const slot = OPTIONS[i];
    const unwished = call.str("no_" + slot);
    if (unwished == "") continue;
    if (meant(menu.row(tableOf(slot), unwished), line.str(slot))) {
      line.drop(slot).drop(slot + "_amount");
      out.changed = true;
    } else {
      out.refused.push("There is no " + unwished + " in it.");
    }
  }
  const unwished = call.str("no_extra");
  if (unwished == "") return;
  const extras = line.get("extras");
  for (let i = extras.length - 1; i >= 0; i--) {
    if (extras.at(i).text != unwished) continue;
    extras.items.splice(i, 1);
    out.changed = true;
    return;
  }
  out.refused.push("There is no " + unwished + " in it.");
}

/** "No milk" means whatever milk is in it, "no soy milk" only that one. */
function meant(unwished: Value, held: string): bool {
  const name = unwished.str("name");
  if (held == "" || held == name) return held == name;
  const kind = name.split(" ").pop();
  const also = unwished.get("also");
  let general = name == kind;
  for (let i = 0; i < also.length; i++) if (also.at(i).text == kind) general = true;
  return general && held.endsWith(kind);
}
