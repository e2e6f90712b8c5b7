// The form: data/form.toml, or the user's own in its place; what its fields take, and how their values are said.

import { Kind, Value } from "json";
import { Call, data } from "parley";
import { join } from "words";
import { parseToml } from "toml";

const TYPES: string[] = ["text", "number", "choice", "date"];
const MONTHS: string[] = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

export class Form {
  /** What is wrong with the file: "" when nothing is. */
  error: string = "";
  title: string = "report";
  fields: Field[] = [];

  constructor() {
    const file = data("form.toml");
    const toml = parseToml(file.value.text);
    if (!file.ok) this.error = file.error;
    else if (toml.error != "") this.error = "form.toml, " + toml.error;
    else this.read(toml.root);
  }

  private read(root: Value): void {
    if (root.str("title") != "") this.title = root.str("title");
    const rows = root.get("fields");
    for (let i = 0; i < rows.length; i++) {
      const field = new Field(rows.at(i), root.get("choices"));
      if (field.error != "") this.error = "form.toml, field " + (i + 1).toString() + ": " + field.error;
      this.fields.push(field);
    }
    if (rows.length == 0) this.error = "form.toml has no fields";
  }

  /** The place of the field with this id or name; -1: there is none. */
  find(id: string): i32 {
    for (let i = 0; i < this.fields.length; i++) if (this.fields[i].id == id || this.fields[i].name == id) return i;
    return -1;
  }
}

export class Field {
  error: string = "";
  id: string = "";
  name: string = "";
  type: string = "";
  unit: string = "";
  required: bool = false;
  choices: string[] = [];
  private also: Value[] = [];

  constructor(
    private row: Value,
    choices: Value,
  ) {
    this.name = row.str("name");
    this.id = row.str("id") == "" ? this.name : row.str("id");
    this.type = row.str("type") == "" ? "text" : row.str("type");
    this.unit = row.str("unit");
    this.required = row.get("required").truth;
    for (let i = 0; i < choices.length; i++) {
      if (choices.at(i).str("field") != this.id) continue;
      this.choices.push(choices.at(i).str("name"));
      this.also.push(choices.at(i).get("also"));
    }
    if (this.name == "") this.error = "the name is missing";
    else if (!TYPES.includes(this.type)) this.error = "the type is one of " + TYPES.join(", ");
    else if (this.type == "choice" && this.choices.length == 0) this.error = "there are no choices for " + this.id;
    else if (row.num("low", -Infinity) > row.num("high", Infinity)) this.error = "low is above high";
  }

  get question(): string {
    const asked = this.row.str("question");
    const question = asked == "" ? "What is the " + this.name + "?" : asked;
    return this.type == "choice" ? question + " " + this.offer : question;
  }

  /** "Good, worn or leaking?" */
  get offer(): string {
    return join(this.choices, "or") + "?";
  }

  /** What an answer holds for this field; null: nothing that it could take. */
  value(call: Call): Value {
    if (this.type == "number") return whole(call.arguments.get("number"));
    if (this.type == "date") return day(call.str("date"));
    if (this.type == "choice") {
      const chosen = this.choice(call.str("choice"));
      return chosen.isNull ? this.choice(call.str("text") == "" ? call.text : call.str("text")) : chosen;
    }
    const text = (call.str("text") == "" ? call.text : call.str("text")).trim();
    return text == "" ? Value.null() : Value.of(text);
  }

  private choice(words: string): Value {
    const said = words.toLowerCase().trim();
    for (let i = 0; i < this.choices.length; i++) {
      if (this.choices[i].toLowerCase() == said) return Value.of(this.choices[i]);
      for (let a = 0; a < this.also[i].length; a++) {
        if (this.also[i].at(a).text.toLowerCase() == said) return Value.of(this.choices[i]);
      }
    }
    return Value.null();
  }

  /** Why a value is doubted: "" when it is not. */
  doubt(value: Value): string {
    if (this.type != "number") return "";
    const low = this.row.get("low");
    const high = this.row.get("high");
    if (high.kind == Kind.Number && value.number > high.number) return "above the limit of " + this.words(high);
    if (low.kind == Kind.Number && value.number < low.number) return "below the limit of " + this.words(low);
    return "";
  }

  /** "4.2 bar", "March 3, 2026", text in quotes. */
  words(value: Value): string {
    if (this.type == "number") return value.toString() + (this.unit == "" ? "" : " " + this.unit);
    if (this.type == "date") return dayWords(value.text);
    // Dictation is somebody's words and not the box's: it claims nothing.
    return this.type == "text" ? '"' + value.text.replaceAll('"', "'") + '"' : value.text;
  }

  /** What to say when an answer was none. */
  get expects(): string {
    if (this.type == "number") return "I need a number" + (this.unit == "" ? "." : " in " + this.unit + ".");
    if (this.type == "date") return "I need a day.";
    return this.type == "choice" ? "That is none of the choices." : "I did not get that.";
  }

  /** Another unit than the field's was said. */
  foreign(unit: string): bool {
    return this.type == "number" && unit != "" && singular(unit) != singular(this.unit);
  }
}

function singular(unit: string): string {
  return unit.endsWith("s") ? unit.substring(0, unit.length - 1) : unit;
}

function whole(value: Value): Value {
  return value.kind == Kind.Number && isFinite(value.number) ? value : Value.null();
}

/** The day of an ISO date, or of a date with a time. */
function day(iso: string): Value {
  if (iso.length < 10 || iso.charAt(4) != "-" || iso.charAt(7) != "-") return Value.null();
  const month = parseInt(iso.substring(5, 7));
  return month >= 1 && month <= 12 ? Value.of(iso.substring(0, 10)) : Value.null();
}

/** "March 3, 2026" of "2026-03-03". */
export function dayWords(iso: string): string {
  if (day(iso).isNull) return iso;
  const month = MONTHS[<i32>parseInt(iso.substring(5, 7)) - 1];
  return month + " " + (<i32>parseInt(iso.substring(8, 10))).toString() + ", " + iso.substring(0, 4);
}
