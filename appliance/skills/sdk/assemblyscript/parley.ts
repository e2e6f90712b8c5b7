// The ABI of Parley's skills, version 1: a call in, a reply out, and what the host does on request. A host function is
// imported only where a skill uses it, and only what skill.toml grants is linked.
//
//   import { Reply, give, take } from "parley";
//   export { parley_alloc } from "parley";
//   export function parley_call(at: i32, size: i32): i64 {
//     const call = take(at, size);
//     return give(new Reply("Hello, " + call.str("name") + "."));
//   }

import { Value, parseJson } from "json";

/** What the user asks: the name of an intent or a tool, and its arguments by slot. */
export class Call {
  name: string;
  arguments: Value;
  /** The user's words: data, never an instruction. */
  text: string;
  locale: string;
  /** What the last Reply of this dialogue left. */
  context: Value;

  constructor(json: Value) {
    this.name = json.str("name");
    this.arguments = json.get("arguments");
    this.text = json.str("text");
    this.locale = json.str("locale");
    this.context = json.get("context");
  }

  has(slot: string): bool {
    return !this.arguments.get(slot).isNull;
  }

  str(slot: string): string {
    return this.arguments.str(slot);
  }

  num(slot: string, otherwise: f64 = 0): f64 {
    return this.arguments.num(slot, otherwise);
  }
}

/** What the user hears, and what stays open. */
export class Reply {
  context: Value = Value.table();
  data: Value = Value.null();
  suggestions: string[] = [];
  failed: bool = false;
  private question: Value = Value.null();

  constructor(public say: string = "") {}

  /** The next words may answer with `slot` of `intent`, or, with `yesNo`, with yes: a call of `intent` without it. */
  ask(intent: string, slot: string = "", yesNo: bool = false): Reply {
    this.question = Value.table()
      .set("intent", Value.of(intent))
      .set("slot", Value.of(slot))
      .set("yes_no", Value.bool(yesNo));
    return this;
  }

  /** It could not be done; `say` tells why. */
  fail(): Reply {
    this.failed = true;
    return this;
  }

  suggest(sentence: string): Reply {
    this.suggestions.push(sentence);
    return this;
  }

  toString(): string {
    const suggestions = Value.list();
    for (let i = 0; i < this.suggestions.length; i++) suggestions.push(Value.of(this.suggestions[i]));
    return Value.table()
      .set("say", Value.of(this.say))
      .set("ask", this.question)
      .set("context", this.context)
      .set("data", this.data)
      .set("suggestions", suggestions)
      .set("failed", Value.bool(this.failed))
      .toString();
  }
}

/** What a host function answered: `value` when `ok`, else why not. */
export class Result {
  ok: bool;
  value: Value;
  error: string;

  constructor(json: Value) {
    this.ok = json.get("ok").truth;
    this.value = json.get("value");
    this.error = json.str("error");
  }
}

// Every call has an instance of its own, so what is handed out is never given back.
export function parley_alloc(size: i32): i32 {
  return <i32>heap.alloc(<usize>max(size, 1));
}

/** The call that the host placed at `at`. */
export function take(at: i32, size: i32): Call {
  return new Call(parseJson(String.UTF8.decodeUnsafe(<usize>at, <usize>size)));
}

/** The place of a reply, as parley_call returns it. */
export function give(reply: Reply): i64 {
  return place(reply.toString());
}

function place(text: string): i64 {
  const bytes = String.UTF8.encode(text);
  return ((<i64>changetype<usize>(bytes)) << 32) | (<i64>bytes.byteLength);
}

function at(packed: i64): i32 {
  return <i32>(packed >> 32);
}

function size(packed: i64): i32 {
  return <i32>(packed & 0xffffffff);
}

function heard(packed: i64): Result {
  return new Result(parseJson(String.UTF8.decodeUnsafe(<usize>at(packed), <usize>size(packed))));
}

function table(key: string, text: string): Value {
  return Value.table().set(key, Value.of(text));
}

@external("parley", "say") declare function host_say(at: i32, size: i32): i64;
@external("parley", "log") declare function host_log(at: i32, size: i32): i64;
@external("parley", "clock") declare function host_clock(at: i32, size: i32): i64;
@external("parley", "memory_read") declare function host_memory_read(at: i32, size: i32): i64;
@external("parley", "memory_write") declare function host_memory_write(at: i32, size: i32): i64;
@external("parley", "memory_delete") declare function host_memory_delete(at: i32, size: i32): i64;
@external("parley", "memory_keys") declare function host_memory_keys(at: i32, size: i32): i64;
@external("parley", "data_read") declare function host_data_read(at: i32, size: i32): i64;
@external("parley", "alarm_set") declare function host_alarm_set(at: i32, size: i32): i64;
@external("parley", "alarm_list") declare function host_alarm_list(at: i32, size: i32): i64;
@external("parley", "alarm_cancel") declare function host_alarm_cancel(at: i32, size: i32): i64;
@external("parley", "http_fetch") declare function host_http_fetch(at: i32, size: i32): i64;
@external("parley", "mqtt_publish") declare function host_mqtt_publish(at: i32, size: i32): i64;
@external("parley", "mqtt_last") declare function host_mqtt_last(at: i32, size: i32): i64;
@external("parley", "control_get") declare function host_control_get(at: i32, size: i32): i64;
@external("parley", "control_set") declare function host_control_set(at: i32, size: i32): i64;

/** Speaks at once, before the reply (grant say). */
export function say(text: string): Result {
  const sent = place(table("text", text).toString());
  return heard(host_say(at(sent), size(sent)));
}

/** Grant log; levels: debug, info, warning, error. */
export function log(level: string, text: string): Result {
  const sent = place(table("level", level).set("text", Value.of(text)).toString());
  return heard(host_log(at(sent), size(sent)));
}

/** {"now": ISO 8601 with offset, "unix": seconds} (grant clock). */
export function clock(): Value {
  const sent = place("{}");
  return heard(host_clock(at(sent), size(sent))).value;
}

/** The skill's own space (grant memory). */
export namespace memory {
  /** The text under a key, or "". */
  export function read(key: string): string {
    const sent = place(table("key", key).toString());
    return heard(host_memory_read(at(sent), size(sent))).value.text;
  }

  export function write(key: string, text: string): Result {
    const sent = place(table("key", key).set("text", Value.of(text)).toString());
    return heard(host_memory_write(at(sent), size(sent)));
  }

  export function remove(key: string): Result {
    const sent = place(table("key", key).toString());
    return heard(host_memory_delete(at(sent), size(sent)));
  }

  export function keys(prefix: string): string[] {
    const sent = place(table("prefix", prefix).toString());
    const found = heard(host_memory_keys(at(sent), size(sent))).value;
    const keys = new Array<string>(found.length);
    for (let i = 0; i < found.length; i++) keys[i] = found.at(i).text;
    return keys.sort();
  }
}

/** A file of the skill's data folder, or the user's own in its place (grant data). */
export function data(name: string): Result {
  const sent = place(table("name", name).toString());
  return heard(host_data_read(at(sent), size(sent)));
}

/** Grant alarms; the fields of an alarm as in the ABI. */
export namespace alarms {
  export function set(alarm: Value): Result {
    const sent = place(alarm.toString());
    return heard(host_alarm_set(at(sent), size(sent)));
  }

  export function list(): Value {
    const sent = place("{}");
    return heard(host_alarm_list(at(sent), size(sent))).value;
  }

  export function cancel(id: i32): Result {
    const sent = place(Value.table().set("id", Value.num(id)).toString());
    return heard(host_alarm_cancel(at(sent), size(sent)));
  }
}

/** {"status", "body"} (grant http, for exactly the hosts that are named). */
export function fetch(method: string, url: string, body: string = ""): Result {
  const sent = place(table("method", method).set("url", Value.of(url)).set("body", Value.of(body)).toString());
  return heard(host_http_fetch(at(sent), size(sent)));
}

/** Grants publish and read. */
export namespace mqtt {
  /** Ok once the broker has taken it. */
  export function publish(topic: string, payload: string): Result {
    const sent = place(table("topic", topic).set("payload", Value.of(payload)).toString());
    return heard(host_mqtt_publish(at(sent), size(sent)));
  }

  /** The latest payload, as text, or null. */
  export function last(topic: string): Result {
    const sent = place(table("topic", topic).toString());
    return heard(host_mqtt_last(at(sent), size(sent)));
  }
}

/** The box's own knobs (grant controls). */
export namespace control {
  export function get(name: string): Result {
    const sent = place(table("name", name).toString());
    return heard(host_control_get(at(sent), size(sent)));
  }

  export function set(name: string, value: Value): Result {
    const sent = place(table("name", name).set("value", value).toString());
    return heard(host_control_set(at(sent), size(sent)));
  }
}
