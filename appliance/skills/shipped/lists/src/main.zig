//! Lists: what to buy, what to do, and any other that is named. Each is a text of lines in the skill's memory.

const std = @import("std");
const parley = @import("parley");

const longest = 100;

const Lines = std.ArrayList([]const u8);

comptime {
    parley.entry(answer);
}

fn answer(call: parley.Call) !parley.Reply {
    const name = if (call.str("list").len > 0) call.str("list") else "shopping";
    const asked = call.name();
    if (std.mem.eql(u8, asked, "Add")) return add(name, call.str("item"));
    if (std.mem.eql(u8, asked, "Remove")) return remove(name, call.str("item"));
    if (std.mem.eql(u8, asked, "Has")) return has(name, call.str("item"));
    if (std.mem.eql(u8, asked, "Clear")) return clear(name);
    if (std.mem.eql(u8, asked, "Lists")) return all();
    return read(name);
}

fn add(name: []const u8, said: []const u8) !parley.Reply {
    var lines = try load(name);
    var added: Lines = .empty;
    var there: Lines = .empty;
    for ((try items(said)).items) |item| {
        if (find(lines, item) != null) {
            try there.append(parley.allocator, item);
        } else if (lines.items.len < longest) {
            try lines.append(parley.allocator, item);
            try added.append(parley.allocator, item);
        } else {
            return .{ .say = parley.format("Your {s} list is full.", .{name}), .failed = true };
        }
    }
    if (added.items.len == 0) {
        if (there.items.len == 0) return .{ .say = "What shall I add?", .ask_intent = "Add", .ask_slot = "item" };
        const verb = if (there.items.len > 1) "are" else "is";
        return .{ .say = parley.format("{s} {s} already on your {s} list.", .{ try together(there), verb, name }) };
    }
    store(name, lines) catch return .{ .say = "I could not write that down.", .failed = true };
    const also = if (there.items.len == 0) "" else parley.format(" {s} was there already.", .{try together(there)});
    return .{ .say = parley.format("Added {s} to your {s} list.{s}", .{ try together(added), name, also }) };
}

fn remove(name: []const u8, said: []const u8) !parley.Reply {
    var lines = try load(name);
    var removed: Lines = .empty;
    var missing: Lines = .empty;
    for ((try items(said)).items) |item| {
        if (find(lines, item)) |place| {
            try removed.append(parley.allocator, lines.orderedRemove(place));
        } else {
            try missing.append(parley.allocator, item);
        }
    }
    if (removed.items.len == 0) {
        return .{ .say = parley.format("There is no {s} on your {s} list.", .{ try together(missing), name }) };
    }
    store(name, lines) catch return .{ .say = "I could not take that off.", .failed = true };
    const rest = if (missing.items.len == 0) "" else parley.format(" There was no {s}.", .{try together(missing)});
    return .{ .say = parley.format("Removed {s} from your {s} list.{s}", .{ try together(removed), name, rest }) };
}

fn has(name: []const u8, said: []const u8) !parley.Reply {
    const lines = try load(name);
    const wanted = try items(said);
    for (wanted.items) |item| {
        if (find(lines, item) == null) {
            return .{ .say = parley.format("No, there is no {s} on your {s} list.", .{ item, name }) };
        }
    }
    return .{ .say = parley.format("Yes, your {s} list has {s}.", .{ name, try together(wanted) }) };
}

fn read(name: []const u8) !parley.Reply {
    const lines = try load(name);
    if (lines.items.len == 0) return .{ .say = parley.format("Your {s} list is empty.", .{name}) };
    if (lines.items.len == 1) return .{ .say = parley.format("Your {s} list has one item: {s}.", .{ name, lines.items[0] }) };
    return .{ .say = parley.format("Your {s} list has {d} items: {s}.", .{ name, lines.items.len, try together(lines) }) };
}

fn clear(name: []const u8) !parley.Reply {
    parley.forget(key(name)) catch return .{ .say = "I could not clear it.", .failed = true };
    return .{ .say = parley.format("I cleared your {s} list.", .{name}) };
}

fn all() !parley.Reply {
    const found = try parley.keys("list ");
    var names: Lines = .empty;
    if (found == .array) for (found.array.items) |one| try names.append(parley.allocator, parley.text(one)["list ".len..]);
    if (names.items.len == 0) return .{ .say = "You have no lists yet." };
    return .{ .say = parley.format("You have these lists: {s}.", .{try together(names)}) };
}

// --- what is remembered ----------------------------------------------------------------------------------------------

fn key(name: []const u8) []const u8 {
    return parley.format("list {s}", .{name});
}

fn load(name: []const u8) !Lines {
    var lines: Lines = .empty;
    var parts = std.mem.splitScalar(u8, parley.text(try parley.remembered(key(name))), '|');
    while (parts.next()) |line| {
        if (line.len > 0) try lines.append(parley.allocator, line);
    }
    return lines;
}

fn store(name: []const u8, lines: Lines) !void {
    if (lines.items.len == 0) return parley.forget(key(name));
    try parley.remember(key(name), try std.mem.join(parley.allocator, "|", lines.items));
}

// --- words -----------------------------------------------------------------------------------------------------------

/// "milk, eggs and bread": the words come without commas, so "and" is what parts them.
fn items(said: []const u8) !Lines {
    var found: Lines = .empty;
    var parts = std.mem.splitSequence(u8, said, " and ");
    while (parts.next()) |part| {
        var item = std.mem.trim(u8, part, " |");
        for ([_][]const u8{ "some ", "a ", "an ", "the ", "more " }) |lead| {
            if (std.mem.startsWith(u8, item, lead)) item = item[lead.len..];
        }
        if (item.len > 0) try found.append(parley.allocator, item);
    }
    return found;
}

fn find(lines: Lines, item: []const u8) ?usize {
    for (lines.items, 0..) |line, place| {
        if (alike(line, item)) return place;
    }
    return null;
}

/// The same but for a plural.
fn alike(one: []const u8, other: []const u8) bool {
    return std.mem.eql(u8, std.mem.trimEnd(u8, one, "s"), std.mem.trimEnd(u8, other, "s"));
}

fn together(lines: Lines) ![]const u8 {
    var made: std.ArrayList(u8) = .empty;
    for (lines.items, 0..) |line, place| {
        if (place > 0) {
            const between = if (place + 1 < lines.items.len) ", " else if (lines.items.len > 2) ", and " else " and ";
            try made.appendSlice(parley.allocator, between);
        }
        try made.appendSlice(parley.allocator, line);
    }
    return made.items;
}
