// The report that is being filled in, kept after every answer: it outlives pauses, restarts and power cuts.

import { Kind, Value, parseJson } from "json";
import { Result, clock, memory } from "parley";
import { capital } from "words";
import { Field, Form } from "./form";

const KEY = "draft";

export class Draft {
  open: bool;
  values: Value = Value.table();
  skipped: Value = Value.list();
  started: string = "";

  constructor(private form: Form) {
    const kept = parseJson(memory.read(KEY));
    this.open = kept.kind == Kind.Table;
    if (kept.get("values").kind == Kind.Table) this.values = kept.get("values");
    if (kept.get("skipped").kind == Kind.List) this.skipped = kept.get("skipped");
    this.started = kept.str("started");
  }

  save(): Result {
    if (this.started == "") this.started = clock().str("now");
    const kept = Value.table()
      .set("started", Value.of(this.started))
      .set("values", this.values)
      .set("skipped", this.skipped);
    return memory.write(KEY, kept.toString());
  }

  forget(): Result {
    return memory.remove(KEY);
  }

  answered(field: Field): bool {
    return this.values.has(field.id);
  }

  isSkipped(field: Field): bool {
    for (let i = 0; i < this.skipped.length; i++) if (this.skipped.at(i).text == field.id) return true;
    return false;
  }

  /** How many fields of the form have a value. */
  get count(): i32 {
    let count = 0;
    for (let i = 0; i < this.form.fields.length; i++) if (this.answered(this.form.fields[i])) count++;
    return count;
  }

  /** The first field behind `place` that is neither answered nor skipped, from the top at the end; -1: none. */
  after(place: i32): i32 {
    const fields = this.form.fields;
    for (let step = 1; step <= fields.length; step++) {
      const at = (place + step) % fields.length;
      if (!this.answered(fields[at]) && !this.isSkipped(fields[at])) return at;
    }
    return -1;
  }

  /** The first required field without a value, skipped or not; -1: none. */
  get missing(): i32 {
    for (let i = 0; i < this.form.fields.length; i++) {
      if (this.form.fields[i].required && !this.answered(this.form.fields[i])) return i;
    }
    return -1;
  }

  /** "Site: north yard. Pressure: 4.2 bar." */
  get words(): string {
    return spoken(this.form, this.values);
  }
}

export function spoken(form: Form, values: Value): string {
  const parts: string[] = [];
  for (let i = 0; i < form.fields.length; i++) {
    const field = form.fields[i];
    if (values.has(field.id)) parts.push(capital(field.name) + ": " + field.words(values.get(field.id)) + ".");
  }
  return parts.join(" ");
}
