//! The car, by COVESA VSS signals over MQTT: what is wanted goes to vehicle/set/PATH, what is so comes from
//! vehicle/state/PATH. Only what the car confirms is said to be done.

const std = @import("std");
const parley = @import("parley");

/// Seconds in which the car has to confirm.
const patience = 0.6;
/// Kilometers per hour above which no window is opened.
const fast = 130;

const doors = [_][]const u8{ "Row1.DriverSide", "Row1.PassengerSide", "Row2.DriverSide", "Row2.PassengerSide" };
const wheels = [_][]const u8{ "Row1.Wheel.Left", "Row1.Wheel.Right", "Row2.Wheel.Left", "Row2.Wheel.Right" };
const wheel_names = [_][]const u8{ "front left", "front right", "rear left", "rear right" };

comptime {
    parley.entry(answer);
}

fn answer(call: parley.Call) !parley.Reply {
    const name = call.name();
    if (is(name, "SetTemperature")) return temperature(call);
    if (is(name, "Warmer")) return step(call, 1.5);
    if (is(name, "Cooler")) return step(call, -1.5);
    if (is(name, "Switch")) return toggle(call);
    if (is(name, "SeatHeating")) return seat(call);
    if (is(name, "Window")) return window(call);
    if (is(name, "Lock")) return lock(true);
    if (is(name, "Unlock")) return lock(false);
    if (is(name, "Tyres")) return tyres();
    if (is(name, "Warnings")) return warnings();
    return tell(call.str("signal"));
}

// --- climate ---------------------------------------------------------------------------------------------------------

fn temperature(call: parley.Call) !parley.Reply {
    var degrees = parley.number(call.get("degrees")) orelse return .{ .say = "To how many degrees?" };
    if (degrees >= 50) degrees = @round((degrees - 32) * 10 / 9) / 2; // Fahrenheit, to half a degree Celsius
    return warm(call, degrees);
}

fn step(call: parley.Call, by: f64) !parley.Reply {
    const signal = try find("temperature");
    const now = try state(try path(signal, "{seat}", side(call)));
    const degrees = now orelse return .{ .say = "The car has not told me how warm it is set.", .failed = true };
    const low = limit(signal, "low");
    const high = limit(signal, "high");
    if ((by > 0 and degrees >= high) or (by < 0 and degrees <= low)) {
        return .{ .say = parley.format("It is at {s} degrees already, which is as far as it goes.", .{plain(degrees)}) };
    }
    return warm(call, @min(high, @max(low, degrees + by)));
}

fn warm(call: parley.Call, degrees: f64) !parley.Reply {
    const signal = try find("temperature");
    if (outside(signal, degrees)) |refused| return refused;
    const where = if (call.str("seat").len == 0) "" else if (is(call.str("seat"), "Passenger")) " on the passenger side" else " on the driver side";
    const target = try path(signal, "{seat}", side(call));
    return done(try set(target, plain(degrees)), parley.format("The temperature is set to {s} degrees{s}.", .{ plain(degrees), where }));
}

fn toggle(call: parley.Call) !parley.Reply {
    const device = call.str("device");
    const on = call.get("state") == .bool and call.get("state").bool;
    const signal = try find(device);
    const title = if (is(device, "ac")) "air conditioning" else if (is(device, "rear_defrost")) "rear defroster" else "front defroster";
    const word = if (on) "on" else "off";
    return done(try set(parley.text(parley.member(signal, "path")), if (on) "true" else "false"), parley.format("The {s} is {s} now.", .{ title, word }));
}

fn seat(call: parley.Call) !parley.Reply {
    const level = parley.number(call.get("level")) orelse 2;
    const signal = try find("seat_heating");
    const percent = @round(level * 100 / 3);
    const target = try path(signal, "{seat}", side(call));
    return done(try set(target, plain(percent)), parley.format("The seat heating is set to {s}.", .{plain(level)}));
}

// --- windows and doors -----------------------------------------------------------------------------------------------

fn window(call: parley.Call) !parley.Reply {
    const open = is(call.str("move"), "open");
    const part = parley.number(call.get("part")) orelse 100;
    const position = if (open) part else if (part < 100) part else 0;
    if (open) {
        const speed = try state(parley.text(parley.member(try find("speed"), "path")));
        if (speed != null and speed.? > fast) return .{ .say = "Not at this speed.", .failed = true };
    }
    const which = call.str("which");
    if (is(which, "sunroof")) {
        const signal = try find("sunroof");
        return done(try set(parley.text(parley.member(signal, "path")), plain(position)), moved("sunroof", open, part));
    }
    const signal = try find("window");
    if (is(which, "all")) {
        var confirmed = true;
        for (doors) |door| confirmed = (try set(try path(signal, "{which}", door), plain(position))) and confirmed;
        return done(confirmed, if (open) "All windows are open now." else "All windows are closed now.");
    }
    const door = if (which.len == 0) doors[0] else which;
    return done(try set(try path(signal, "{which}", door), plain(position)), moved("window", open, part));
}

fn moved(what: []const u8, open: bool, part: f64) []const u8 {
    if (!open) return parley.format("The {s} is closed now.", .{what});
    if (part < 100) return parley.format("The {s} is open by {s} percent now.", .{ what, plain(part) });
    return parley.format("The {s} is open now.", .{what});
}

fn lock(locked: bool) !parley.Reply {
    const signal = try find("lock");
    var confirmed = true;
    for (doors) |door| {
        confirmed = (try set(try path(signal, "{which}", door), if (locked) "true" else "false")) and confirmed;
    }
    return done(confirmed, if (locked) "The doors are locked now." else "The doors are unlocked now.");
}

// --- what the car knows ----------------------------------------------------------------------------------------------

fn tell(name: []const u8) !parley.Reply {
    const signal = find(name) catch return .{ .say = "I don't know that signal.", .failed = true };
    const found = try state(parley.text(parley.member(signal, "path")));
    const value = found orelse return .{ .say = "The car has not told me that.", .failed = true };
    const scaled = value * (parley.number(parley.member(signal, "scale")) orelse 1);
    const unit = parley.text(parley.member(signal, "unit"));
    const lead = if (is(name, "range")) "You can drive about" else if (is(name, "charge")) "The battery is at" else if (is(name, "fuel")) "The tank is at" else if (is(name, "outside")) "Outside it is" else if (is(name, "speed")) "You are driving at" else "The odometer shows";
    return .{ .say = parley.format("{s} {s} {s}.", .{ lead, plain(@round(scaled)), unit }) };
}

fn tyres() !parley.Reply {
    const signal = try find("tyre");
    var known: usize = 0;
    for (wheels, wheel_names) |wheel, title| {
        const pressure = (try state(try path(signal, "{which}", wheel))) orelse continue;
        known += 1;
        if (pressure < limit(signal, "low") or pressure > limit(signal, "high")) {
            return .{ .say = parley.format("The {s} tyre is at {s} bar. Please check it.", .{ title, plain(@round(pressure / 10) / 10) }) };
        }
    }
    if (known == 0) return .{ .say = "The car has not told me its tyre pressures.", .failed = true };
    return .{ .say = if (known == wheels.len) "All four tyres are fine." else "The tyres that I know of are fine." };
}

fn warnings() !parley.Reply {
    const list = try parley.last(topic("state", parley.text(parley.member(try find("warnings"), "path"))));
    if (list != .string) return .{ .say = "The car has not told me about faults.", .failed = true };
    const codes = parley.parse(list.string);
    if (codes != .array) return .{ .say = "I can't read what the car reports.", .failed = true };
    if (codes.array.items.len == 0) return .{ .say = "The car reports no faults." };
    const first = parley.text(codes.array.items[0]);
    const count = codes.array.items.len;
    if (count == 1) return .{ .say = parley.format("The car reports one fault: {s}. Please have it checked.", .{first}) };
    return .{ .say = parley.format("The car reports {d} faults, the first is {s}. Please have it checked.", .{ count, first }) };
}

// --- signals ---------------------------------------------------------------------------------------------------------

fn find(name: []const u8) !parley.Json {
    const all = parley.parse(parley.text(try parley.data("signals.json")));
    const signal = parley.member(all, name);
    return if (signal == .object) signal else error.Unknown;
}

fn path(signal: parley.Json, place: []const u8, with: []const u8) ![]const u8 {
    return std.mem.replaceOwned(u8, parley.allocator, parley.text(parley.member(signal, "path")), place, with);
}

fn topic(way: []const u8, of: []const u8) []const u8 {
    const slashed = parley.allocator.dupe(u8, of) catch @panic("no memory");
    std.mem.replaceScalar(u8, slashed, '.', '/');
    return parley.format("vehicle/{s}/{s}", .{ way, slashed });
}

/// What the car says of a signal; null where it has not said anything, or no number.
fn state(of: []const u8) !?f64 {
    const found = try parley.last(topic("state", of));
    if (found != .string) return null;
    return std.fmt.parseFloat(f64, std.mem.trim(u8, found.string, " \"")) catch null;
}

/// Whether the car has confirmed it in time.
fn set(of: []const u8, value: []const u8) !bool {
    try parley.publish(topic("set", of), value);
    const start = try unix();
    const used = parley.mark();
    while (true) {
        parley.release(used);
        const found = try parley.last(topic("state", of));
        if (found == .string and alike(found.string, value)) return true;
        if ((try unix()) - start > patience) return false;
    }
}

fn alike(told: []const u8, wanted: []const u8) bool {
    const plain_told = std.mem.trim(u8, told, " \"");
    if (std.mem.eql(u8, plain_told, wanted)) return true;
    const one = std.fmt.parseFloat(f64, plain_told) catch return false;
    const other = std.fmt.parseFloat(f64, wanted) catch return false;
    return @abs(one - other) < 0.05;
}

fn unix() !f64 {
    return parley.number(parley.member(try parley.clock(), "unix")) orelse 0;
}

fn outside(signal: parley.Json, value: f64) ?parley.Reply {
    const low = limit(signal, "low");
    const high = limit(signal, "high");
    if (value >= low and value <= high) return null;
    return .{ .say = parley.format("It goes from {s} to {s} degrees.", .{ plain(low), plain(high) }), .failed = true };
}

fn limit(signal: parley.Json, name: []const u8) f64 {
    return parley.number(parley.member(signal, name)) orelse 0;
}

fn done(confirmed: bool, said: []const u8) parley.Reply {
    if (confirmed) return .{ .say = said };
    return .{ .say = "I have told the car, but it does not confirm it.", .failed = true };
}

fn side(call: parley.Call) []const u8 {
    return if (call.str("seat").len > 0) call.str("seat") else "Driver";
}

fn is(one: []const u8, other: []const u8) bool {
    return std.mem.eql(u8, one, other);
}

/// A number as it is said: 22, or 21.5.
fn plain(value: f64) []const u8 {
    const whole = @round(value);
    if (@abs(value - whole) < 0.05) return parley.format("{d}", .{@as(i64, @intFromFloat(whole))});
    return parley.format("{d:.1}", .{value});
}
