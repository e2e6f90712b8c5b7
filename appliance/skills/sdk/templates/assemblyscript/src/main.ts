// One answer to one sentence. `parley skill build` compiles this, `parley skill test` says the sentences of tests.yaml.

import { Call, Reply, give, take } from "parley";

export { parley_alloc } from "parley";

export function parley_call(at: i32, size: i32): i64 {
  return give(answer(take(at, size)));
}

function answer(call: Call): Reply {
  const name = call.str("name");
  return new Reply(name == "" ? "Hello." : "Hello, " + name + ".");
}
