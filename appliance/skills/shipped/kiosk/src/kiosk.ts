// Ordering by voice. One question at a time, what was understood is said back, and an order is placed only when exactly
// what was read out has been confirmed.

import { Value, parseJson } from "json";
import { Call, Reply, clock, give, memory, mqtt, take } from "parley";
import { capital, join } from "words";
import { Menu, available, cents, sizes, tableOf } from "./menu";
import { apply, soldOut } from "./options";
import { Lost, Order, quantity } from "./order";

export { parley_alloc } from "parley";

const KEPT = 100;
const NUMBERS = 999;

export function parley_call(at: i32, size: i32): i64 {
  return give(answer(take(at, size)));
}

function answer(call: Call): Reply {
  const menu = new Menu();
  if (menu.error != "") return new Reply("I cannot read the menu: " + menu.error + ". Please tell the staff.").fail();
  if (call.name == "Menu") return list(menu, call);
  if (call.name == "Price" || call.name == "Have") return price(menu, call);
  if (call.name == "NotOnMenu") return unknown(menu, call);
  if (call.name == "WhatCanISay") return help();
  const order = new Order(menu);
  if (call.name == "Begin") return begin(order);
  if (call.name == "Order") return add(menu, order, call);
  if (call.name == "Change") return change(menu, order, call, order.meant(call));
  if (call.name == "Another") return another(order, call);
  if (call.name == "Remove") return remove(order, call);
  if (call.name == "ReadBack") return readBack(order, call);
  if (call.name == "Total") return total(menu, order);
  if (call.name == "Finish") return finish(menu, order);
  if (call.name == "Place") return place(menu, order, call);
  if (call.name == "CancelOrder") return cancel(order);
  return new Reply("I do not know what " + call.name + " is.").fail();
}

function begin(order: Order): Reply {
  if (order.length > 0) return carryOn(order, "You have " + order.spoken + ".", -1);
  return new Reply("What would you like?").ask("Order", "drink");
}

// --- taking the order ------------------------------------------------------------------------------------------------

function add(menu: Menu, order: Order, call: Call): Reply {
  const asked = <i32>call.context.num("asked", -1);
  const wished = call.str("drink");
  const pending = asked >= 0 && asked == order.open;
  if (pending && (wished == "" || wished == order.line(asked).str("drink"))) return change(menu, order, call, asked);
  let line = Value.table().set("drink", Value.of(wished));
  if (wished == "") {
    const offered = call.context.get("offer");
    if (offered.str("drink") != "") line = offered;
    else if (order.length > 0 && call.arguments.length > 0) return change(menu, order, call, order.meant(call));
    else if (call.context.get("all").truth)
      return finish(menu, order); // yes, that is all
    else return begin(order);
  } else if (corrects(call) && order.length > 0) {
    return change(menu, order, call, order.meant(call));
  }
  const drink = menu.row("drinks", line.str("drink"));
  if (drink.isNull) return carryOn(order, "Sorry, " + line.str("drink") + " is not on the menu.", -1);
  if (!available(drink)) return offer(menu, drink, line, call);
  const applied = apply(menu, line, call);
  order.lines.push(line);
  const said = capital(order.words(line)) + ".";
  return settle(order, order.length - 1, said, applied.refused, applied.slot);
}

/** What was said puts right what was ordered just before, rather than ordering more. */
function corrects(call: Call): bool {
  if (call.context.get("amend").truth) return true;
  if (!call.context.has("last")) return false;
  const words = call.text.toLowerCase();
  const openings = ["no ", "no,", "sorry", "i meant", "i mean", "make it", "make that", "not "];
  for (let i = 0; i < openings.length; i++) if (words.startsWith(openings[i])) return !words.includes("also");
  return false;
}

function offer(menu: Menu, drink: Value, line: Value, call: Call): Reply {
  const others = menu.instead("drinks", drink);
  const sorry = "Sorry, " + drink.str("name") + " is sold out.";
  if (others.length == 0) return new Reply(sorry + " What else would you like?").ask("Order", "drink");
  const reply = new Reply(sorry + " Would you like " + one(others[0]) + " instead?").ask("Order", "drink", true);
  line.set("drink", Value.of(others[0]));
  apply(menu, line, call);
  reply.context.set("offer", line);
  return reply;
}

function change(menu: Menu, order: Order, call: Call, index: i32): Reply {
  if (order.length == 0) return empty();
  if (index < 0) return carryOn(order, "That is not in the order.", -1);
  const line = order.line(index);
  const refused: string[] = [];
  const wished = call.str("drink");
  let changed = false;
  if (wished != "" && wished != line.str("drink")) {
    const drink = menu.row("drinks", wished);
    if (drink.isNull) refused.push("Sorry, " + wished + " is not on the menu.");
    else if (!available(drink)) refused.push(soldOut(menu, "drinks", drink));
    else {
      line.set("drink", Value.of(wished));
      if (!sizes(drink).includes(line.str("size"))) line.drop("size");
      changed = true;
    }
  }
  const applied = apply(menu, line, call);
  const reasons = refused.concat(applied.refused);
  if (!changed && !applied.changed && reasons.length == 0) {
    const reply = carryOn(order, capital(order.words(line)) + " it is.", index);
    return call.arguments.length > 0 ? reply : nothing(order, index);
  }
  return settle(order, index, capital(order.words(line)) + ".", reasons, applied.slot);
}

function nothing(order: Order, index: i32): Reply {
  const reply = new Reply("What shall I change about the " + order.line(index).str("drink") + "?").ask("Change");
  reply.context.set("last", Value.num(index));
  return reply;
}

function another(order: Order, call: Call): Reply {
  if (order.length == 0) return empty();
  if (call.context.get("amend").truth) return readBack(order, call);
  const index = order.meant(call);
  if (index < 0) return carryOn(order, "That is not in the order.", -1);
  const line = order.line(index);
  line.set("quantity", Value.num(quantity(line) + max(1, <i32>call.num("quantity", 1))));
  return settle(order, index, capital(order.words(line)) + ".", [], "");
}

function remove(order: Order, call: Call): Reply {
  if (order.length == 0) return empty();
  // What was taken off or added is not taken off or added again because it was put otherwise.
  if (call.context.get("amend").truth) return readBack(order, call);
  const index = order.meant(call);
  if (index < 0) return carryOn(order, "That is not in the order.", -1);
  const line = order.line(index);
  const fewer = <i32>call.num("quantity", quantity(line));
  if (fewer >= 1 && fewer < quantity(line)) {
    line.set("quantity", Value.num(quantity(line) - fewer));
    return settle(order, index, capital(order.words(line)) + " left.", [], "");
  }
  const words = order.words(line);
  order.lines.items.splice(index, 1);
  return settle(order, order.length - 1, "Removed " + words + ".", [], "");
}

/** Keeps the order, says what it is now, and asks the next question. */
function settle(order: Order, index: i32, said: string, refused: string[], slot: string): Reply {
  const limit = order.tooMuch();
  if (limit != "") return new Reply(limit + " Please ask the staff for more.").fail();
  const kept = order.save();
  if (!kept.ok) return new Reply("I could not keep that: " + kept.error + ".").fail();
  refused.push(said);
  const reply = carryOn(order, refused.join(" "), index);
  return slot != "" && slot != "size" && order.open < 0 ? reply.ask("Change", slot) : reply;
}

/** `said`, and the next question: a missing size, or whether that is all. */
function carryOn(order: Order, said: string, last: i32): Reply {
  let reply: Reply;
  const open = order.open;
  if (open >= 0) {
    const line = order.line(open);
    const offered = join(order.sizes(line), "or");
    const which = order.length > 1 ? " for the " + line.str("drink") : "";
    reply = new Reply(said + " What size" + which + ": " + offered + "?").ask("Order", "size");
    reply.context.set("asked", Value.num(open));
  } else if (order.length == 0) {
    reply = new Reply(said + " What would you like?").ask("Order", "drink");
  } else {
    // Yes ends the order, and a drink or an option goes on with it: the answer is an Order in any case.
    reply = new Reply(said + " Is that all?").ask("Order", "drink", true);
    reply.context.set("all", Value.bool(true));
    reply.suggest("that's all").suggest("what do I have");
  }
  if (last >= 0) reply.context.set("last", Value.num(last));
  return reply;
}

function empty(): Reply {
  return new Reply("Nothing is ordered yet. What would you like?").ask("Order", "drink");
}

// --- reading back and placing ----------------------------------------------------------------------------------------

function readBack(order: Order, call: Call): Reply {
  if (order.length == 0) return empty();
  return carryOn(order, "You have " + order.spoken + ".", <i32>call.context.num("last", -1));
}

function total(menu: Menu, order: Order): Reply {
  if (order.length == 0) return empty();
  const lost = order.lost;
  if (lost) return without(order, lost);
  if (order.open >= 0) return carryOn(order, "That depends on the size.", -1);
  return carryOn(order, capital(sumOf(menu, order)) + ".", -1);
}

/** "$9.20 and $0.76 tax, $9.96 in all". */
function sumOf(menu: Menu, order: Order): string {
  const sum = order.sum;
  const tax = menu.tax(sum);
  if (tax == 0) return menu.money(sum) + " in all" + (menu.taxIncluded ? ", tax included" : "");
  return menu.money(sum) + " and " + menu.money(tax) + " tax, " + menu.money(sum + tax) + " in all";
}

function finish(menu: Menu, order: Order): Reply {
  if (order.length == 0) return empty();
  const lost = order.lost;
  if (lost) return without(order, lost);
  if (order.open >= 0) return carryOn(order, "One more thing.", -1);
  const read = capital(order.spoken) + ": " + sumOf(menu, order) + ". Shall I place the order?";
  const reply = new Reply(read).ask("Place", "", true).suggest("yes").suggest("no, make it a small");
  reply.context.set("read", Value.of(order.seal));
  return reply;
}

/** Asks what becomes of a line of which something cannot be had any more. */
function without(order: Order, lost: Lost): Reply {
  const sorry = "Sorry, " + lost.name + " has just sold out. ";
  const reply =
    lost.slot == "drink"
      ? new Reply(sorry + "Shall I remove it?").ask("Remove", "", true)
      : new Reply(sorry + "What would you like instead for the " + order.line(lost.line).str("drink") + "?").ask(
          "Change",
          lost.slot,
        );
  reply.context.set("last", Value.num(lost.line));
  return reply.suggest("no " + lost.name);
}

function place(menu: Menu, order: Order, call: Call): Reply {
  if (order.length == 0) return empty();
  if (order.lost != null || order.open >= 0 || call.context.str("read") != order.seal) return finish(menu, order);
  const sequence = <i32>parseInt("0" + memory.read("sequence")) + 1;
  const number = ((sequence - 1) % NUMBERS) + 1;
  const key = "placed/" + sequence.toString().padStart(8, "0");
  const record = recordOf(menu, order, number);
  const counted = memory.write("sequence", sequence.toString());
  const kept = counted.ok ? memory.write(key, record.set("sent", Value.bool(false)).toString()) : counted;
  if (!kept.ok) return new Reply("The order could not be kept, so it is not placed: " + kept.error + ".").fail();
  order.forget();
  record.drop("sent");
  const sent = mqtt.publish(menu.topic, record.toString());
  if (sent.ok) memory.write(key, record.set("sent", Value.bool(true)).toString());
  prune();
  const which = "It is order number " + number.toString();
  if (sent.ok) return new Reply("Thank you. " + which + ", and it has been sent to the counter.");
  return new Reply(which + ", kept on this box. It has not reached the counter: please tell the staff your number.");
}

function recordOf(menu: Menu, order: Order, number: i32): Value {
  const sum = order.sum;
  const lines = Value.list();
  for (let i = 0; i < order.length; i++) {
    const line = parseJson(order.line(i).toString());
    line.set("words", Value.of(order.words(line))).set("cents", Value.num(order.price(line)));
    lines.push(line);
  }
  return Value.table()
    .set("number", Value.num(number))
    .set("at", Value.of(clock().str("now")))
    .set("lines", lines)
    .set("sum_cents", Value.num(sum))
    .set("tax_cents", Value.num(menu.tax(sum)))
    .set("total_cents", Value.num(sum + menu.tax(sum)));
}

/** The oldest records make room. */
function prune(): void {
  const keys = memory.keys("placed/");
  for (let i = 0; i < keys.length - KEPT && i < 4; i++) memory.remove(keys[i]);
}

function cancel(order: Order): Reply {
  if (order.length == 0) return new Reply("There is no order to cancel.");
  const forgotten = order.forget();
  if (!forgotten.ok) return new Reply("I could not cancel it: " + forgotten.error + ".").fail();
  return new Reply("The order is cancelled.");
}

// --- the menu --------------------------------------------------------------------------------------------------------

function list(menu: Menu, call: Call): Reply {
  const table = call.str("table") == "" ? "drinks" : call.str("table");
  const names = menu.names(table);
  if (names.length == 0) return new Reply("There are no " + table + " today.");
  const reply = new Reply("On the menu: " + join(names) + ".");
  return table == "drinks" ? reply.suggest("how much is " + one(names[0])).suggest("I'd like " + one(names[0])) : reply;
}

function price(menu: Menu, call: Call): Reply {
  const slots = ["drink", "milk", "extra", "sugar", "shots", "roast"];
  for (let i = 0; i < slots.length; i++) {
    const name = call.str(slots[i]);
    if (name == "") continue;
    const table = tableOf(slots[i]);
    const row = menu.row(table, name);
    if (row.isNull) return new Reply("Sorry, " + name + " is not on the menu.");
    if (!available(row)) return new Reply(soldOut(menu, table, row));
    const yes = call.name == "Have" ? "Yes. " : "";
    return new Reply(yes + (i == 0 ? drinkPrice(menu, row, call.str("size")) : extraPrice(menu, row)));
  }
  return new Reply("What would you like to know the price of?").ask("Price", "drink");
}

function drinkPrice(menu: Menu, drink: Value, size: string): string {
  const name = capital(one(drink.str("name")));
  const tax = menu.tax(100_000) > 0 ? " plus tax." : ".";
  const prices = drink.get("prices");
  if (prices.length == 0) return name + " is " + menu.money(cents(drink.get("price"))) + tax;
  if (prices.has(size))
    return capital(one(size + " " + drink.str("name"))) + " is " + menu.money(cents(prices.get(size))) + tax;
  const offered = new Array<string>(prices.length);
  for (let i = 0; i < prices.length; i++) offered[i] = menu.money(cents(prices.at(i))) + " " + prices.keys[i];
  const only = size == "" ? "" : "There is no " + size + " " + drink.str("name") + ". ";
  return only + name + " is " + join(offered) + tax;
}

function extraPrice(menu: Menu, row: Value): string {
  const more = row.has("price") ? cents(row.get("price")) : 0;
  return capital(row.str("name")) + (more == 0 ? " costs nothing more." : " is " + menu.money(more) + " more.");
}

function unknown(menu: Menu, call: Call): Reply {
  const thing = call.str("thing").trim();
  const row = menu.called(thing);
  if (!row.isNull) return new Reply(capital(row.str("name")) + (available(row) ? " is on the menu." : " is sold out."));
  const name = thing.length > 40 ? "that" : thing;
  return new Reply("Sorry, " + (name == "" ? "that" : name) + " is not on the menu.").suggest(
    "what drinks do you have",
  );
}

function help(): Reply {
  return new Reply(
    'Order by name, such as "a large latte with oat milk". Change it with "make it a small" or "the second one ' +
      'decaf". Ask "what do I have" or "how much is it", and say "that\'s all" when you are done.',
  );
}

/** "a latte", "an espresso". */
function one(name: string): string {
  return ("aeiou".includes(name.charAt(0).toLowerCase()) ? "an " : "a ") + name;
}
