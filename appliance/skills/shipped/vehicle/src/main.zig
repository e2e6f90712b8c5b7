//! The car, by COVESA VSS signals over MQTT (data/signals.toml): what is wanted goes to vehicle/set/PATH, what is so comes
//! from vehicle/state/PATH. Only what the car confirms is said to be done, and what it sends is never said as it stands:
//! numbers, yes or no, and fault codes, or nothing.

const std = @import("std");
const parley = @import("parley");

const Reply = parley.Reply;
const Place = struct { row: []const u8, side: []const u8 };
const Wish = struct { path: []const u8, value: []const u8 };

const driver = Place{ .row = "Row1", .side = "Driver" };
const passenger = Place{ .row = "Row1", .side = "Passenger" };
const behind_driver = Place{ .row = "Row2", .side = "Driver" };
const behind_passenger = Place{ .row = "Row2", .side = "Passenger" };
const everywhere = [_]Place{ driver, passenger, behind_driver, behind_passenger };

const wheels = [_]struct { at: []const u8, name: []const u8 }{
    .{ .at = "Row1.Wheel.Left", .name = "front left" },
    .{ .at = "Row1.Wheel.Right", .name = "front right" },
    .{ .at = "Row2.Wheel.Left", .name = "rear left" },
    .{ .at = "Row2.Wheel.Right", .name = "rear right" },
};
/// Kilopascals between which a tyre is fine.
const soft = 200;
const hard = 320;

const moving = Reply{ .say = "Not while the car moves.", .failed = true };

comptime {
    parley.entry(answer);
}

fn answer(call: parley.Call) !Reply {
    const name = call.name();
    if (is(name, "SetTemperature")) return temperature(call);
    if (is(name, "Warmer")) return warmer(call, 1.5);
    if (is(name, "Cooler")) return warmer(call, -1.5);
    if (is(name, "Fan")) return fan(call);
    if (is(name, "Switch")) return toggle(call);
    if (is(name, "SeatHeating")) return seat(call);
    if (is(name, "Window")) return window(call);
    if (is(name, "Lock")) return lock(true);
    if (is(name, "Unlock")) return lock(false);
    if (is(name, "OpenTrunk")) return trunk();
    if (is(name, "Ask")) return tell(call.str("signal"));
    if (is(name, "Unknown")) return unknown;
    if (is(name, "Charging")) return charging();
    if (is(name, "Locked")) return locked();
    if (is(name, "Windows")) return windows();
    if (is(name, "Tyres")) return tyres();
    if (is(name, "Warnings")) return warnings();
    if (is(name, "Meaning")) return meaning(call.str("warning"));
    return error.Unknown;
}

// --- climate ---------------------------------------------------------------------------------------------------------

fn temperature(call: parley.Call) !Reply {
    var degrees = parley.number(call.get("degrees")) orelse return .{ .say = "To how many degrees?", .failed = true };
    if (degrees >= 50) degrees = @round((degrees - 32) * 10 / 9) / 2; // Fahrenheit, to half a degree Celsius
    return warm(call.str("where"), degrees);
}

fn warmer(call: parley.Call, by: f64) !Reply {
    const signal = try find("actuators", "temperature");
    const where = call.str("where");
    const now = try number(try filled(signal, (try places(where))[0]));
    const degrees = now orelse return .{ .say = "The car has not told me how warm it is set.", .failed = true };
    const low = limit(signal, "low");
    const high = limit(signal, "high");
    if ((by > 0 and degrees >= high) or (by < 0 and degrees <= low)) {
        return .{ .say = parley.format("It is at {s} degrees already, which is as far as it goes.", .{plain(degrees)}) };
    }
    return warm(where, @min(high, @max(low, degrees + by)));
}

fn warm(where: []const u8, degrees: f64) !Reply {
    const signal = try find("actuators", "temperature");
    if (outside(signal, degrees)) |refused| return refused;
    const said = parley.format("The temperature is set to {s} degrees{s}.", .{ plain(degrees), at(where) });
    return carry(try wishes(signal, where, plain(degrees)), said);
}

fn fan(call: parley.Call) !Reply {
    const signal = try find("actuators", "fan");
    const where = call.str("where");
    var percent = parley.number(call.get("percent")) orelse 0;
    if (parley.number(call.get("step"))) |by| {
        const now = try number(try filled(signal, (try places(where))[0]));
        const speed = now orelse return .{ .say = "The car has not told me how fast the fan runs.", .failed = true };
        percent = @min(limit(signal, "high"), @max(limit(signal, "low"), speed + by));
    }
    if (outside(signal, percent)) |refused| return refused;
    const said = if (percent == 0) "The fan is off now." else parley.format("The fan is set to {s} percent.", .{plain(percent)});
    return carry(try wishes(signal, where, plain(percent)), said);
}

fn seat(call: parley.Call) !Reply {
    const signal = try find("actuators", "seat_heating");
    const off = call.get("state") == .bool and !call.get("state").bool;
    const level = if (off) 0 else parley.number(call.get("level")) orelse 2;
    if (level < 0 or level > 3) return .{ .say = "It goes from 0 to 3.", .failed = true };
    const where = call.str("where");
    const said = if (level == 0) "off now" else parley.format("set to {s}", .{plain(level)});
    return carry(
        try wishes(signal, where, plain(@round(level * 100 / 3))),
        parley.format("The seat heating{s} is {s}.", .{ at(where), said }),
    );
}

// --- switches, windows and doors -------------------------------------------------------------------------------------

fn toggle(call: parley.Call) !Reply {
    const device = call.str("device");
    const signal = find("switches", device) catch return unknown;
    const on = call.get("state") == .bool and call.get("state").bool;
    const keep = parley.member(signal, "keep");
    if (!on and keep == .bool and keep.bool and try faster("moving")) {
        return moving;
    }
    const verb = if (parley.member(signal, "plural") == .bool) "are" else "is";
    return carry(
        &.{.{ .path = parley.text(parley.member(signal, "path")), .value = if (on) "true" else "false" }},
        parley.format("The {s} {s} {s} now.", .{ device, verb, if (on) "on" else "off" }),
    );
}

fn window(call: parley.Call) !Reply {
    // Without a word of its own the call is the yes to the question below, and what was asked comes with it.
    const again = call.str("move").len == 0;
    const asked = if (again) call.context("window") else parley.member(call.json, "arguments");
    const move = parley.text(parley.member(asked, "move"));
    if (move.len == 0) return .{ .say = "Which window?", .failed = true };
    const open = is(move, "open");
    const where = parley.text(parley.member(asked, "where"));
    const part = parley.number(parley.member(asked, "part")) orelse 100;
    const position = if (open) part else 100 - part;
    const roof = is(where, "sunroof");
    const signal = try find("actuators", if (roof) "sunroof" else "window");
    if (outside(signal, position)) |refused| return refused;
    if (open and !again and try faster("fast")) {
        const what = if (roof) "the sunroof" else if (is(where, "all")) "all windows" else "the window";
        return .{
            .say = parley.format("The car drives fast. Shall I open {s} all the same?", .{what}),
            .ask_intent = "Window",
            .yes_no = true,
            .context = parley.format(
                "{{\"window\":{{\"move\":\"open\",\"where\":{s},\"part\":{s}}}}}",
                .{ parley.quoted(where), plain(part) },
            ),
        };
    }
    const name = if (roof) "The sunroof is" else if (is(where, "all")) "All windows are" else if (is(where, "front") or is(where, "rear"))
        parley.format("The {s} windows are", .{where})
    else
        parley.format("The window{s} is", .{at(where)});
    const said = if (position == 0) parley.format("{s} closed now.", .{name}) else if (position == 100)
        parley.format("{s} open now.", .{name})
    else
        parley.format("{s} open by {s} percent now.", .{ name, plain(position) });
    if (roof) return carry(&.{.{ .path = parley.text(parley.member(signal, "path")), .value = plain(position) }}, said);
    return carry(try wishes(signal, where, plain(position)), said);
}

fn lock(shut: bool) !Reply {
    if (!shut and try faster("moving")) return moving;
    const signal = try find("actuators", "lock");
    return carry(
        try wishes(signal, "all", if (shut) "true" else "false"),
        if (shut) "The doors are locked now." else "The doors are unlocked now.",
    );
}

fn trunk() !Reply {
    if (try faster("moving")) return moving;
    const path = parley.text(parley.member(try find("actuators", "trunk"), "path"));
    return carry(&.{.{ .path = path, .value = "true" }}, "The trunk is open now.");
}

// --- what the car knows ----------------------------------------------------------------------------------------------

const untold = Reply{ .say = "The car has not told me that.", .failed = true };
const unknown = Reply{ .say = "I don't know that about the car.", .failed = true };

fn tell(name: []const u8) !Reply {
    const signal = find("readings", name) catch return unknown;
    const value = (try number(parley.text(parley.member(signal, "path")))) orelse return untold;
    const scaled = value * (parley.number(parley.member(signal, "scale")) orelse 1);
    const say = parley.text(parley.member(signal, "say"));
    return .{ .say = try std.mem.replaceOwned(u8, parley.allocator, say, "{}", plain(@round(scaled))) };
}

fn charging() !Reply {
    const told = try last("Vehicle.Powertrain.TractionBattery.Charging.IsCharging");
    const on = truth(told) orelse return untold;
    if (!on) return .{ .say = "The battery is not being charged." };
    const left = try tell("charging time");
    return .{ .say = if (left.failed) "The battery is being charged." else left.say };
}

fn locked() !Reply {
    const signal = try find("actuators", "lock");
    var known: usize = 0;
    for (everywhere) |place| {
        const shut = truth(try last(try filled(signal, place))) orelse continue;
        known += 1;
        if (!shut) return .{ .say = parley.format("The {s} door is not locked.", .{door(place)}) };
    }
    if (known < everywhere.len) return .{ .say = "The car has not told me that of all doors.", .failed = true };
    return .{ .say = "All doors are locked." };
}

fn windows() !Reply {
    const signal = try find("actuators", "window");
    var known: usize = 0;
    for (everywhere) |place| {
        const position = (try number(try filled(signal, place))) orelse continue;
        known += 1;
        if (position > 0) {
            return .{ .say = parley.format("The {s} window is open by {s} percent.", .{ door(place), plain(position) }) };
        }
    }
    if (known < everywhere.len) return .{ .say = "The car has not told me that of all windows.", .failed = true };
    return .{ .say = "All windows are closed." };
}

fn door(place: Place) []const u8 {
    if (is(place.row, "Row1")) return if (is(place.side, "Driver")) "driver's" else "passenger's";
    return if (is(place.side, "Driver")) "door behind the driver's" else "rear passenger's";
}

fn tyres() !Reply {
    var known: usize = 0;
    for (wheels) |wheel| {
        const path = parley.format("Vehicle.Chassis.Axle.{s}.Tire.Pressure", .{wheel.at});
        const pressure = (try number(path)) orelse continue;
        known += 1;
        if (pressure < soft or pressure > hard) return .{ .say = parley.format(
            "The {s} tyre is at {s} bar. Please check it.",
            .{ wheel.name, plain(@round(pressure / 10) / 10) },
        ) };
    }
    if (known == 0) return .{ .say = "The car has not told me its tyre pressures.", .failed = true };
    return .{ .say = if (known == wheels.len) "All four tyres are fine." else "The tyres that I know of are fine." };
}

fn warnings() !Reply {
    var known: usize = 0;
    var active: usize = 0;
    var first: []const u8 = "";
    for (try rows("warnings")) |warning| {
        const on = truth(try last(parley.text(parley.member(warning, "path")))) orelse continue;
        known += 1;
        if (!on) continue;
        active += 1;
        if (active == 1) first = parley.format("the {s}", .{parley.text(parley.member(warning, "name"))});
    }
    const list = parley.parse(try last("Vehicle.OBD.DTCList"));
    if (list == .array) {
        known += 1;
        for (list.array.items) |one| {
            active += 1;
            if (active == 1) first = if (code(parley.text(one))) parley.text(one) else "one that I can't read";
        }
    }
    if (known == 0) return .{ .say = "The car has not told me about warnings.", .failed = true };
    if (active == 0) return .{ .say = "The car reports no faults." };
    if (active == 1) return .{ .say = parley.format("The car reports one fault: {s}. Please have it checked.", .{first}) };
    return .{ .say = parley.format("The car reports {d} faults, the first is {s}. Please have it checked.", .{ active, first }) };
}

/// Of one that is named, or of the first that is on.
fn meaning(name: []const u8) !Reply {
    var known: usize = 0;
    for (try rows("warnings")) |warning| {
        const title = parley.text(parley.member(warning, "name"));
        if (name.len > 0) {
            if (is(title, name)) return .{ .say = parley.text(parley.member(warning, "mean")) };
            continue;
        }
        const on = truth(try last(parley.text(parley.member(warning, "path")))) orelse continue;
        known += 1;
        if (on) return .{ .say = parley.format("It is the {s}. {s}", .{ title, parley.text(parley.member(warning, "mean")) }) };
    }
    if (known == 0) return .{ .say = "The car has not told me about warnings.", .failed = true };
    return .{ .say = "No warning that I know of is on." };
}

/// Whether it is a diagnostic trouble code (SAE J2012): P0420, U0100-00.
fn code(string: []const u8) bool {
    if (string.len < 5 or string.len > 8 or std.mem.indexOfScalar(u8, "PCBU", string[0]) == null) return false;
    for (string[1..]) |char| if (!std.ascii.isHex(char) and char != '-') return false;
    return true;
}

// --- signals ---------------------------------------------------------------------------------------------------------

var source: []const u8 = "";

fn rows(name: []const u8) ![]const parley.Json {
    if (source.len == 0) source = parley.text(try parley.data("signals.toml"));
    const found = parley.table(source, name);
    return if (found == .array) found.array.items else error.Unreadable;
}

fn find(list: []const u8, name: []const u8) !parley.Json {
    for (try rows(list)) |row| {
        const id = parley.member(row, "id");
        if (is(parley.text(if (id == .string) id else parley.member(row, "name")), name)) return row;
    }
    return error.Unknown;
}

fn setting(name: []const u8, otherwise: f64) !f64 {
    return parley.number(parley.member((try rows(""))[0], name)) orelse otherwise;
}

/// Whether the car is known to drive faster than that setting says.
fn faster(name: []const u8) !bool {
    const speed = (try number("Vehicle.Speed")) orelse return false;
    return @abs(speed) > try setting(name, 5);
}

fn places(where: []const u8) ![]const Place {
    const right = is(try last("Vehicle.Cabin.DriverPosition"), "RIGHT");
    if (is(where, "passenger")) return &.{passenger};
    if (is(where, "left")) return if (right) &.{passenger} else &.{driver};
    if (is(where, "right")) return if (right) &.{driver} else &.{passenger};
    if (is(where, "rear left")) return if (right) &.{behind_passenger} else &.{behind_driver};
    if (is(where, "rear right")) return if (right) &.{behind_driver} else &.{behind_passenger};
    if (is(where, "front")) return everywhere[0..2];
    if (is(where, "rear")) return everywhere[2..4];
    if (is(where, "all")) return &everywhere;
    return &.{driver};
}

fn at(where: []const u8) []const u8 {
    if (where.len == 0) return "";
    if (is(where, "all")) return " everywhere";
    if (is(where, "front") or is(where, "rear")) return parley.format(" in the {s}", .{where});
    if (is(where, "driver") or is(where, "passenger")) return parley.format(" on the {s} side", .{where});
    return parley.format(" on the {s}", .{where});
}

fn filled(signal: parley.Json, place: Place) ![]const u8 {
    const path = parley.text(parley.member(signal, "path"));
    const sided = try std.mem.replaceOwned(u8, parley.allocator, path, "{side}", place.side);
    return std.mem.replaceOwned(u8, parley.allocator, sided, "{row}", place.row);
}

fn wishes(signal: parley.Json, where: []const u8, value: []const u8) ![]const Wish {
    const wanted = try places(where);
    const made = try parley.allocator.alloc(Wish, wanted.len);
    for (wanted, made) |place, *wish| wish.* = .{ .path = try filled(signal, place), .value = value };
    return made;
}

fn topic(way: []const u8, path: []const u8) []const u8 {
    const made = parley.format("vehicle/{s}/{s}", .{ way, path });
    std.mem.replaceScalar(u8, @constCast(made), '.', '/');
    return made;
}

/// What the car says of a signal; "" where it has not said anything.
fn last(path: []const u8) ![]const u8 {
    return std.mem.trim(u8, parley.text(try parley.last(topic("state", path))), " \"\r\n\t");
}

/// A number that can be one; null for anything else.
fn number(path: []const u8) !?f64 {
    const value = std.fmt.parseFloat(f64, try last(path)) catch return null;
    return if (std.math.isFinite(value) and @abs(value) < 1e9) value else null;
}

fn truth(told: []const u8) ?bool {
    if (std.ascii.eqlIgnoreCase(told, "true") or is(told, "1")) return true;
    if (std.ascii.eqlIgnoreCase(told, "false") or is(told, "0")) return false;
    return null;
}

/// Tells the car all of it, and waits until it has confirmed all of it; `said` is said then, and only then.
fn carry(wanted: []const Wish, said: []const u8) !Reply {
    for (wanted) |wish| try parley.publish(topic("set", wish.path), wish.value);
    const patience = @min(1.2, try setting("patience_s", 0.6));
    const start = try unix();
    const used = parley.mark();
    while (true) {
        parley.release(used);
        var confirmed: usize = 0;
        for (wanted) |wish| {
            if (alike(try last(wish.path), wish.value)) confirmed += 1;
        }
        if (confirmed == wanted.len) return .{ .say = said };
        if ((try unix()) - start < patience) continue;
        if (confirmed == 0) return .{ .say = "I have told the car, but it does not confirm it.", .failed = true };
        return .{
            .say = parley.format("I have told the car, but it confirms only {d} of {d}.", .{ confirmed, wanted.len }),
            .failed = true,
        };
    }
}

fn alike(told: []const u8, wanted: []const u8) bool {
    if (truth(wanted)) |yes| if (std.ascii.isAlphabetic(wanted[0])) return truth(told) == yes;
    const one = std.fmt.parseFloat(f64, told) catch return false;
    const other = std.fmt.parseFloat(f64, wanted) catch return false;
    return @abs(one - other) < 0.05;
}

fn unix() !f64 {
    return parley.number(parley.member(try parley.clock(), "unix")) orelse 0;
}

fn outside(signal: parley.Json, value: f64) ?Reply {
    const low = limit(signal, "low");
    const high = limit(signal, "high");
    if (value >= low and value <= high) return null;
    const unit = parley.text(parley.member(signal, "unit"));
    return .{ .say = parley.format("It goes from {s} to {s} {s}.", .{ plain(low), plain(high), unit }), .failed = true };
}

fn limit(signal: parley.Json, name: []const u8) f64 {
    return parley.number(parley.member(signal, name)) orelse 0;
}

fn is(one: []const u8, other: []const u8) bool {
    return std.mem.eql(u8, one, other);
}

/// A number as it is said: 22, or 21.5. Its callers keep it below 1e9.
fn plain(value: f64) []const u8 {
    const whole = @round(value);
    if (@abs(value - whole) < 0.05) return parley.format("{d}", .{@as(i64, @intFromFloat(whole))});
    return parley.format("{d:.1}", .{value});
}
