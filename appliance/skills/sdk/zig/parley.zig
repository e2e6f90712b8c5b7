//! Skills in Zig: the ABI and the host functions. A skill is `fn answer(call: Call) !Reply`, given to `entry`:
//!
//!     const parley = @import("parley");
//!     fn answer(call: parley.Call) !parley.Reply { return .{ .say = "Hello." }; }
//!     comptime { parley.entry(answer); }
//!
//! Every call has an instance of its own, so memory is never freed.
//!
//!     zig build-exe -target wasm32-freestanding -OReleaseSmall -fno-entry -fstrip --export=parley_alloc
//!       --export=parley_call --dep parley -Mroot=src/main.zig -Mparley=SDK/parley.zig -femit-bin=skill.wasm

const std = @import("std");

pub const Json = std.json.Value;

var heap: [1 << 20]u8 = undefined;
var fixed = std.heap.FixedBufferAllocator.init(&heap);
pub const allocator = fixed.allocator();

/// How much of the memory is used; what was made since then may be given back, by who waits in a loop.
pub fn mark() usize {
    return fixed.end_index;
}

pub fn release(used: usize) void {
    fixed.end_index = used;
}

/// What the skill is asked: an intent or a tool of its manifest.
pub const Call = struct {
    json: Json,

    pub fn name(self: Call) []const u8 {
        return text(member(self.json, "name"));
    }

    /// An argument; null where there is none.
    pub fn get(self: Call, key: []const u8) Json {
        return member(member(self.json, "arguments"), key);
    }

    pub fn str(self: Call, key: []const u8) []const u8 {
        return text(self.get(key));
    }

    pub fn context(self: Call, key: []const u8) Json {
        return member(member(self.json, "context"), key);
    }
};

pub const Reply = struct {
    say: []const u8 = "",
    failed: bool = false,
    /// The dialogue stays open for `ask_slot` of `ask_intent`, or for yes or no.
    ask_intent: []const u8 = "",
    ask_slot: []const u8 = "",
    yes_no: bool = false,
    /// JSON of an object that comes back with the next call of this dialogue.
    context: []const u8 = "{}",
};

pub fn member(value: Json, key: []const u8) Json {
    return switch (value) {
        .object => |object| object.get(key) orelse .null,
        else => .null,
    };
}

pub fn text(value: Json) []const u8 {
    return switch (value) {
        .string => |string| string,
        else => "",
    };
}

pub fn number(value: Json) ?f64 {
    return switch (value) {
        .integer => |whole| @floatFromInt(whole),
        .float => |float| float,
        else => null,
    };
}

/// A text put together.
pub fn format(comptime pattern: []const u8, parts: anytype) []const u8 {
    return std.fmt.allocPrint(allocator, pattern, parts) catch @panic("no memory");
}

/// As a JSON text, with its quotation marks.
pub fn quoted(string: []const u8) []const u8 {
    var made: std.ArrayList(u8) = .empty;
    made.append(allocator, '"') catch @panic("no memory");
    for (string) |char| {
        if (char == '"' or char == '\\') made.append(allocator, '\\') catch @panic("no memory");
        made.append(allocator, if (char < 32) ' ' else char) catch @panic("no memory");
    }
    made.append(allocator, '"') catch @panic("no memory");
    return made.items;
}

pub fn parse(string: []const u8) Json {
    return std.json.parseFromSliceLeaky(Json, allocator, string, .{}) catch .null;
}

/// The rows [[name]] of a TOML file, as an array of objects; with "" the keys above all tables, as one row. Values stand
/// on their own line, and are written as JSON writes them too; a file that is written otherwise gives null.
pub fn table(source: []const u8, name: []const u8) Json {
    var made: std.ArrayList(u8) = .empty;
    var inside = name.len == 0;
    var rows: usize = 0;
    var fields: usize = 0;
    add(&made, if (inside) "[{" else "[");
    var lines = std.mem.splitScalar(u8, source, '\n');
    while (lines.next()) |full| {
        const line = std.mem.trim(u8, uncommented(full), " \t\r");
        if (line.len == 0) continue;
        if (line[0] == '[') {
            if (inside) add(&made, "}");
            inside = std.mem.eql(u8, std.mem.trim(u8, line, "[]"), name);
            if (!inside) continue;
            add(&made, if (rows > 0) ",{" else "{");
            rows += 1;
            fields = 0;
        } else if (inside) {
            const equals = std.mem.indexOfScalar(u8, line, '=') orelse return .null;
            if (fields > 0) add(&made, ",");
            fields += 1;
            add(&made, quoted(std.mem.trim(u8, line[0..equals], " \t")));
            add(&made, ":");
            add(&made, std.mem.trim(u8, line[equals + 1 ..], " \t"));
        }
    }
    add(&made, if (inside) "}]" else "]");
    return parse(made.items);
}

fn uncommented(line: []const u8) []const u8 {
    var within = false;
    for (line, 0..) |char, place| {
        if (char == '"' and (place == 0 or line[place - 1] != '\\')) within = !within;
        if (char == '#' and !within) return line[0..place];
    }
    return line;
}

fn add(made: *std.ArrayList(u8), part: []const u8) void {
    made.appendSlice(allocator, part) catch @panic("no memory");
}

// --- host functions: each has its grant ------------------------------------------------------------------------------

pub const Refused = error{Refused};

fn ask(comptime function: anytype, request: []const u8) Refused!Json {
    const packed_answer = function(request.ptr, request.len);
    const place: usize = @intCast(packed_answer >> 32);
    const size: usize = @intCast(packed_answer & 0xffffffff);
    const answered = parse(@as([*]const u8, @ptrFromInt(place))[0..size]);
    const ok = member(answered, "ok");
    if (ok != .bool or !ok.bool) return error.Refused;
    return member(answered, "value");
}

const host = struct {
    extern "parley" fn memory_read(at: [*]const u8, size: usize) u64;
    extern "parley" fn memory_write(at: [*]const u8, size: usize) u64;
    extern "parley" fn memory_delete(at: [*]const u8, size: usize) u64;
    extern "parley" fn memory_keys(at: [*]const u8, size: usize) u64;
    extern "parley" fn mqtt_publish(at: [*]const u8, size: usize) u64;
    extern "parley" fn mqtt_last(at: [*]const u8, size: usize) u64;
    extern "parley" fn data_read(at: [*]const u8, size: usize) u64;
    extern "parley" fn clock(at: [*]const u8, size: usize) u64;
};

/// What is remembered under a key; null where nothing is.
pub fn remembered(key: []const u8) Refused!Json {
    return ask(host.memory_read, format("{{\"key\":{s}}}", .{quoted(key)}));
}

pub fn remember(key: []const u8, string: []const u8) Refused!void {
    _ = try ask(host.memory_write, format("{{\"key\":{s},\"text\":{s}}}", .{ quoted(key), quoted(string) }));
}

pub fn forget(key: []const u8) Refused!void {
    _ = try ask(host.memory_delete, format("{{\"key\":{s}}}", .{quoted(key)}));
}

/// The keys that begin so.
pub fn keys(prefix: []const u8) Refused!Json {
    return ask(host.memory_keys, format("{{\"prefix\":{s}}}", .{quoted(prefix)}));
}

pub fn publish(topic: []const u8, payload: []const u8) Refused!void {
    _ = try ask(host.mqtt_publish, format("{{\"topic\":{s},\"payload\":{s}}}", .{ quoted(topic), quoted(payload) }));
}

/// The latest payload on a topic; null where nothing was heard.
pub fn last(topic: []const u8) Refused!Json {
    return ask(host.mqtt_last, format("{{\"topic\":{s}}}", .{quoted(topic)}));
}

/// A file of the skill's folder `data`.
pub fn data(name: []const u8) Refused!Json {
    return ask(host.data_read, format("{{\"name\":{s}}}", .{quoted(name)}));
}

/// The time: `now` as ISO 8601, `unix` in seconds.
pub fn clock() Refused!Json {
    return ask(host.clock, "{}");
}

// --- the ABI -----------------------------------------------------------------------------------------------------------

fn alloc(size: usize) callconv(.c) [*]u8 {
    return (allocator.alloc(u8, size) catch @panic("no memory")).ptr;
}

pub fn entry(comptime answer: fn (Call) anyerror!Reply) void {
    const Entry = struct {
        fn call(at: [*]const u8, size: usize) callconv(.c) u64 {
            const asked = Call{ .json = parse(at[0..size]) };
            const reply = answer(asked) catch Reply{ .say = "Sorry, that didn't work.", .failed = true };
            const question = if (reply.ask_intent.len == 0) "null" else format(
                "{{\"intent\":{s},\"slot\":{s},\"yes_no\":{}}}",
                .{ quoted(reply.ask_intent), quoted(reply.ask_slot), reply.yes_no },
            );
            const made = format(
                "{{\"say\":{s},\"failed\":{},\"ask\":{s},\"context\":{s}}}",
                .{ quoted(reply.say), reply.failed, question, reply.context },
            );
            return @as(u64, @intFromPtr(made.ptr)) << 32 | made.len;
        }
    };
    @export(&alloc, .{ .name = "parley_alloc" });
    @export(&Entry.call, .{ .name = "parley_call" });
}
