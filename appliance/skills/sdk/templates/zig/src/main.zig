//! One answer to one sentence. `parley skill build` compiles this, `parley skill test` says the sentences of tests.yaml.

const parley = @import("parley");

comptime {
    parley.entry(answer);
}

fn answer(call: parley.Call) !parley.Reply {
    const name = call.str("name");
    if (name.len == 0) return .{ .say = "Hello." };
    return .{ .say = parley.format("Hello, {s}.", .{name}) };
}
