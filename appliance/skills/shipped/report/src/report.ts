// A field report, filled in by voice: question by question in the form's order, with every answer kept at once.

import { Value, parseJson } from "json";
import { Call, Reply, clock, give, memory, take } from "parley";
import { capital, count, join } from "words";
import { Draft, spoken } from "./draft";
import { Field, Form, dayWords } from "./form";

export { parley_alloc } from "parley";

const ECHOED_WORDS = 12;
const LISTED = 5;

export function parley_call(at: i32, size: i32): i64 {
  return give(answer(take(at, size)));
}

function answer(call: Call): Reply {
  const form = new Form();
  if (form.error != "") return new Reply("I cannot read the form: " + form.error + ".").fail();
  if (call.name == "Reports") return reports();
  if (call.name == "ReadStored") return readStored(form, call);
  if (call.name == "Delete") return remove(call);
  if (call.name == "WhatCanISay") return help();
  const draft = new Draft(form);
  if (call.name == "Start") return start(form, draft);
  if (!draft.open) return new Reply("No report is open.").suggest("start a report");
  return fill(form, draft, call);
}

function fill(form: Form, draft: Draft, call: Call): Reply {
  const at = cursor(form, draft, call);
  if (call.name == "Answer") return accept(form, draft, call, at);
  if (call.name == "Correct") return correct(form, draft, call, at);
  if (call.name == "AddTo") return addTo(form, draft, call, at);
  if (call.name == "Next") return next(form, draft, at);
  if (call.name == "Back") return back(form, draft, at);
  if (call.name == "RepeatQuestion") return ask(form, draft, at, "");
  if (call.name == "Skip") return skip(form, draft, call, at);
  if (call.name == "Resume") return resume(form, draft, at);
  if (call.name == "ReadBack") return readBack(form, draft, at);
  if (call.name == "Pause") return pause(form, draft);
  if (call.name == "Finish") return finish(form, draft);
  if (call.name == "Store") return store(form, draft, call);
  if (call.name == "Discard") return discard(draft);
  return new Reply("I do not know what " + call.name + " is.").fail();
}

/** The field that the dialogue is at, else the first open one, else the last. */
function cursor(form: Form, draft: Draft, call: Call): i32 {
  const at = form.find(call.context.str("at"));
  if (at >= 0) return at;
  const open = draft.after(-1);
  return open >= 0 ? open : form.fields.length - 1;
}

/** Asks for a field; what it holds already is said first. */
function ask(form: Form, draft: Draft, at: i32, said: string): Reply {
  const field = form.fields[at];
  const held = draft.answered(field) ? "So far: " + field.words(draft.values.get(field.id)) + ". " : "";
  const reply = new Reply((said == "" ? "" : said + " ") + held + field.question).ask("Answer", field.type);
  reply.context.set("at", Value.of(field.id));
  return reply.suggest("skip").suggest("read it back");
}

// --- going through the form ------------------------------------------------------------------------------------------

function start(form: Form, draft: Draft): Reply {
  if (draft.open && draft.count > 0) {
    const since = dayWords(draft.started.substring(0, 10));
    return new Reply("A report of " + since + " is open, with " + progress(form, draft) + ". Shall I continue it?")
      .ask("Resume", "", true)
      .suggest("discard the report");
  }
  draft.started = "";
  const kept = draft.save();
  if (!kept.ok) return lost(kept.error);
  return ask(form, draft, 0, "New " + form.title + ".");
}

function progress(form: Form, draft: Draft): string {
  const answers = draft.count == 1 ? " answer of " : " answers of ";
  return count(draft.count) + answers + count(form.fields.length);
}

function resume(form: Form, draft: Draft, at: i32): Reply {
  const open = draft.answered(form.fields[at]) ? draft.after(at) : at;
  const said = capital(progress(form, draft)) + ".";
  return open < 0 ? finish(form, draft) : ask(form, draft, open, said);
}

function next(form: Form, draft: Draft, at: i32): Reply {
  return at + 1 < form.fields.length ? ask(form, draft, at + 1, "") : done(form, draft, "That was the last question.");
}

function back(form: Form, draft: Draft, at: i32): Reply {
  return at > 0 ? ask(form, draft, at - 1, "") : ask(form, draft, 0, "This is the first question.");
}

function skip(form: Form, draft: Draft, call: Call, at: i32): Reply {
  const named = form.find(call.str("field"));
  const place = named >= 0 ? named : at;
  const field = form.fields[place];
  if (draft.answered(field)) return onward(form, draft, place, capital(field.name) + " stays as it is.");
  if (!draft.isSkipped(field)) draft.skipped.push(Value.of(field.id));
  const kept = draft.save();
  if (!kept.ok) return lost(kept.error);
  const later = field.required ? "Skipped for now: it is needed before the report can be stored." : "Skipped.";
  return onward(form, draft, place, later);
}

/** The next open question, or the end. */
function onward(form: Form, draft: Draft, at: i32, said: string): Reply {
  const open = draft.after(at);
  return open >= 0 ? ask(form, draft, open, said) : done(form, draft, said);
}

function done(form: Form, draft: Draft, said: string): Reply {
  const reply = finish(form, draft);
  reply.say = said + " " + reply.say;
  return reply;
}

function pause(form: Form, draft: Draft): Reply {
  return new Reply("The report is kept, with " + progress(form, draft) + ".").suggest("continue the report");
}

// --- answers ---------------------------------------------------------------------------------------------------------

function accept(form: Form, draft: Draft, call: Call, at: i32): Reply {
  const named = form.find(call.str("field"));
  const before = call.context.get("amend").truth ? form.find(call.context.str("answered")) : -1;
  // "No, five" behind the next question puts right the answer before it.
  if (named < 0 && before >= 0) return set(form, draft, call, before, at);
  const place = named >= 0 ? named : at;
  const doubted = call.context.get("doubt");
  if (call.arguments.length == 0 && !doubted.isNull) return keep(form, draft, place, doubted);
  const word = (call.str("text") == "" ? call.text : call.str("text")).toLowerCase().trim();
  // Words that are commands are no dictation, whatever a question takes.
  if (named < 0) {
    if (word == "next") return next(form, draft, at);
    if (word == "back" || word == "go back") return back(form, draft, at);
    if (word == "skip" || word == "skip it") return skip(form, draft, call, at);
    if (word == "repeat") return ask(form, draft, at, "");
    if (word == "pause" || word == "cancel" || word == "stop") return pause(form, draft);
  }
  return set(form, draft, call, place);
}

/** Takes the value of a field; behind it goes the question at `back`, if that is still open. */
function set(form: Form, draft: Draft, call: Call, place: i32, back: i32 = -1): Reply {
  const field = form.fields[place];
  const value = field.value(call);
  if (value.isNull) return ask(form, draft, place, field.expects);
  if (field.foreign(call.str("unit")))
    return ask(form, draft, place, capital(field.name) + " is in " + field.unit + ".");
  const doubt = field.doubt(value);
  if (doubt == "") return keep(form, draft, place, value, back);
  const said = "That is " + doubt + ". Is " + value.toString() + " right?";
  const reply = new Reply(said).ask("Answer", field.type, true);
  reply.context.set("at", Value.of(field.id)).set("doubt", value);
  return reply.suggest("yes");
}

function keep(form: Form, draft: Draft, place: i32, value: Value, back: i32 = -1): Reply {
  const field = form.fields[place];
  draft.values.set(field.id, value);
  const kept = draft.save();
  if (!kept.ok) return lost(kept.error);
  const open = back >= 0 && !draft.answered(form.fields[back]);
  const said = capital(field.name) + ": " + echo(field, value) + ".";
  const reply = onward(form, draft, open ? back - 1 : place, said);
  reply.context.set("answered", Value.of(field.id));
  return reply;
}

/** A long dictation is not said back at once: "read it back" does that. */
function echo(field: Field, value: Value): string {
  const parts = value.text.split(" ");
  if (field.type != "text" || parts.length <= ECHOED_WORDS) return field.words(value);
  return field.words(Value.of(parts.slice(0, ECHOED_WORDS).join(" "))) + " and so on";
}

function correct(form: Form, draft: Draft, call: Call, at: i32): Reply {
  const place = form.find(call.str("field"));
  if (place < 0) return new Reply("Which answer shall I correct?").ask("Correct", "field");
  if (call.arguments.length == 1) return ask(form, draft, place, "");
  return set(form, draft, call, place, at);
}

function addTo(form: Form, draft: Draft, call: Call, at: i32): Reply {
  const place = textField(form, form.find(call.str("field")), at);
  if (place < 0) return new Reply("There is nothing in this form that takes text.").fail();
  const field = form.fields[place];
  const text = call.str("text").trim();
  if (text == "") return ask(form, draft, place, "");
  const before = draft.values.get(field.id).text;
  return keep(form, draft, place, Value.of(before == "" ? text : before + ". " + text));
}

/** The named field if it takes text, else the one at hand, else the last of the form. */
function textField(form: Form, named: i32, at: i32): i32 {
  if (named >= 0) return form.fields[named].type == "text" ? named : -1;
  if (form.fields[at].type == "text") return at;
  for (let i = form.fields.length - 1; i >= 0; i--) if (form.fields[i].type == "text") return i;
  return -1;
}

function lost(error: string): Reply {
  return new Reply("That could not be kept: " + error + ".").fail();
}

// --- the end ---------------------------------------------------------------------------------------------------------

function readBack(form: Form, draft: Draft, at: i32): Reply {
  const said = draft.count == 0 ? "Nothing is filled in yet." : draft.words;
  const open = draft.answered(form.fields[at]) ? draft.after(at) : at;
  return open >= 0 ? ask(form, draft, open, said) : finish(form, draft);
}

function finish(form: Form, draft: Draft): Reply {
  const missing = draft.missing;
  if (missing >= 0) return ask(form, draft, missing, capital(form.fields[missing].name) + " is missing.");
  const reply = new Reply(draft.words + " Shall I store the report?").ask("Store", "", true);
  reply.context.set("read", Value.of(draft.words));
  return reply.suggest("yes").suggest("correct the " + form.fields[0].name);
}

function store(form: Form, draft: Draft, call: Call): Reply {
  if (draft.missing >= 0 || call.context.str("read") != draft.words) return finish(form, draft);
  const number = <i32>parseInt("0" + memory.read("sequence")) + 1;
  const record = Value.table()
    .set("number", Value.num(number))
    .set("form", Value.of(form.title))
    .set("started", Value.of(draft.started))
    .set("at", Value.of(clock().str("now")))
    .set("values", draft.values)
    .set("state", Value.of("waiting"));
  const counted = memory.write("sequence", number.toString());
  const kept = counted.ok ? memory.write(key(number), record.toString()) : counted;
  if (!kept.ok) return new Reply("The report could not be stored: " + kept.error + ". It is still open.").fail();
  draft.forget();
  return new Reply("Report " + number.toString() + " is stored on this box. It has not been sent yet.");
}

function discard(draft: Draft): Reply {
  const forgotten = draft.forget();
  if (!forgotten.ok) return new Reply("It could not be thrown away: " + forgotten.error + ".").fail();
  return new Reply("The report is thrown away.");
}

// --- stored reports --------------------------------------------------------------------------------------------------

function key(number: i32): string {
  return "stored/" + number.toString().padStart(8, "0");
}

function reports(): Reply {
  const keys = memory.keys("stored/");
  if (keys.length == 0) return new Reply("There are no reports.");
  const parts: string[] = [];
  let waiting = 0;
  for (let i = keys.length - 1; i >= 0; i--) {
    const record = parseJson(memory.read(keys[i]));
    if (record.str("state") == "waiting") waiting++;
    const title = "report " + record.get("number").toString() + " of " + dayWords(record.str("at").substring(0, 10));
    if (parts.length < LISTED) parts.push(title);
  }
  const stored = keys.length == 1 ? "There is one report" : "There are " + count(keys.length) + " reports";
  const newest = keys.length > LISTED ? "; the newest are " : ": ";
  const sent =
    waiting == 0 ? "." : ". " + capital(count(waiting)) + (waiting == 1 ? " has" : " have") + " not been sent yet.";
  return new Reply(stored + newest + join(parts) + sent).suggest("read report " + keys.length.toString());
}

function readStored(form: Form, call: Call): Reply {
  const number = <i32>call.num("number");
  const record = parseJson(memory.read(key(number)));
  if (record.isNull) return none(number);
  return new Reply(
    "Report " + number.toString() + ", " + record.str("form") + ". " + spoken(form, record.get("values")),
  );
}

function remove(call: Call): Reply {
  const number = <i32>call.num("number");
  if (memory.read(key(number)) == "") return none(number);
  const removed = memory.remove(key(number));
  if (!removed.ok)
    return new Reply("Report " + number.toString() + " could not be deleted: " + removed.error + ".").fail();
  return new Reply("Report " + number.toString() + " is deleted.");
}

function none(number: i32): Reply {
  return new Reply("There is no report " + number.toString() + ".").suggest("what reports are stored");
}

function help(): Reply {
  return new Reply(
    'Say "start a report" and answer the questions. "Skip", "back" and "repeat" move you through it, "correct the ' +
      'pressure to four" changes an answer, and "finish the report" reads it out and asks whether to store it.',
  );
}
