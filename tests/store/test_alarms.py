"""Timers and alarms against clocks that jump, machines that restart and processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from appliance.errors import Fault, StorageFault
from appliance.skills.skill import Alarm
from appliance.skills.skill import Alarms as Contract
from appliance.store.alarms import DAYS, LATE, MOST, Alarms, Clocks

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2026, 12, 1, 12, 0, tzinfo=BERLIN)


@dataclass
class World:
    """A machine with two clocks."""

    folder: Path
    wall: float = START.timestamp()
    steady: float = 1000.0
    boot: str = "one"
    zone: ZoneInfo = BERLIN
    opened: list[Alarms[Alarm]] = field(default_factory=list)

    def open(self) -> Alarms[Alarm]:
        clocks = Clocks(lambda: self.wall, lambda: self.steady, lambda: self.boot)
        self.opened.append(Alarms(self.folder / "alarms.db", Alarm, self.zone, clocks))
        return self.opened[-1]

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def restarts(self, seconds: float = 0.0) -> None:
        self.passes(seconds)
        self.boot, self.steady = self.boot + "+", 5.0


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


def goes(world: World, alarms: Alarms[Alarm], text: str) -> None:
    """To that time, with somebody looking now and then."""
    while world.wall < at(text, world.zone).timestamp():
        world.passes(min(3600.0, at(text, world.zone).timestamp() - world.wall))
        alarms.look()


def rung(alarms: Alarms[Alarm]) -> list[str]:
    return [due.alarm.name for due in alarms.look()]


def test_what_skills_see(world):
    alarms: Contract = world.open()
    made = alarms.add("timer", name="pasta", seconds=480)
    assert made == Alarm(1, "timer", "pasta", datetime.fromtimestamp(world.wall + 480, UTC), 480)
    assert alarms.all() == [made]


def test_a_timer_rings_and_is_gone_when_dismissed(world):
    alarms = world.open()
    alarms.add("timer", name="pasta", seconds=480)
    world.passes(479.9)
    assert not alarms.look()
    world.passes(0.2)
    assert alarms.stirs
    (due,) = alarms.look()
    assert (due.alarm.name, due.alarm.state, due.late) == ("pasta", "ringing", 0)
    assert not alarms.look()
    assert alarms.dismiss() == 1
    assert not alarms.all()
    assert alarms.dismiss() == 0


@pytest.mark.parametrize("jump", [3600, -3600, 86_400 * 400, -1_700_000_000])
def test_a_clock_that_is_set_changes_no_timer(world, jump):
    alarms = world.open()
    alarms.add("timer", seconds=600)
    world.passes(100)
    world.wall += jump
    world.passes(1)
    assert not alarms.look()
    assert alarms.all()[0].due.timestamp() == pytest.approx(world.wall + 499)
    world.passes(498.5)
    assert not alarms.look()
    world.passes(1)
    assert len(alarms.look()) == 1


def test_ten_minutes_over_a_process_that_was_killed(world):
    world.open().add("timer", seconds=600)
    world.passes(240)
    world.wall += 3600
    world.passes(120)
    alarms = world.open()
    world.passes(239)
    assert not alarms.look()
    world.passes(1)
    (due,) = alarms.look()
    assert due.late == 0


def test_ten_minutes_over_a_machine_that_was_off(world):
    world.open().add("timer", seconds=600)
    world.passes(240)
    world.restarts(120)
    alarms = world.open()
    world.passes(239)
    assert not alarms.look()
    world.passes(1)
    assert len(alarms.look()) == 1


def test_a_clock_set_before_the_machine_restarts(world):
    alarms = world.open()
    alarms.add("timer", seconds=600)
    world.passes(100)
    world.wall -= 7200
    assert alarms.stirs
    alarms.look()
    world.restarts(100)
    alarms = world.open()
    world.passes(399)
    assert not alarms.look()
    world.passes(1)
    assert len(alarms.look()) == 1


def test_past_due_while_off_is_late(world):
    world.open().add("timer", seconds=600)
    world.passes(240)
    world.restarts(360 + 300)
    alarms = world.open()
    (due,) = alarms.look()
    assert due.late == pytest.approx(300)
    alarms.finish([due.alarm.id])
    assert not alarms.all()


def test_a_little_past_due_rings(world):
    world.open().add("timer", seconds=600)
    world.passes(600 + LATE - 1)
    (due,) = world.open().look()
    assert due.late == 0


def test_a_machine_that_slept_through_it(world):
    alarms = world.open()
    alarms.add("timer", seconds=600)
    alarms.look()
    world.passes(4200)
    (due,) = alarms.look()
    assert due.late == pytest.approx(3600)


def test_a_clock_without_a_battery(world):
    """After a power cut it shows 1970 until the network comes: the time that was known last counts meanwhile."""
    alarms = world.open()
    alarms.add("timer", name="left", seconds=600)
    alarms.add("alarm", name="seven", due=at("2026-12-01T12:20"))
    world.passes(60)
    alarms.look()
    noon = world.wall
    world.restarts(120)
    world.wall = 100.0
    alarms = world.open()
    new = alarms.add("timer", name="new", seconds=600)
    world.passes(30)
    assert not alarms.look()
    world.wall = noon + 150
    assert not alarms.look()
    left = {alarm.name: alarm.due.timestamp() - world.wall for alarm in alarms.all()}
    assert left == pytest.approx({"left": 390, "new": 570, "seven": 20 * 60 - 60 - 150})
    assert new.seconds == 600


def test_what_rang_when_the_power_went_rings_again(world):
    alarms = world.open()
    alarms.add("timer", name="pasta", seconds=60)
    world.passes(60)
    assert rung(alarms) == ["pasta"]
    world.restarts(20)
    assert rung(world.open()) == ["pasta"]


def test_what_rang_when_the_process_was_killed_rings_again(world):
    alarms = world.open()
    alarms.add("timer", name="pasta", seconds=60)
    world.passes(60)
    assert rung(alarms) == ["pasta"]
    world.passes(20)
    alarms = world.open()
    alarms.rewind()
    assert rung(alarms) == ["pasta"]


def test_another_process_sets_timers_too(world):
    daemon = world.open()
    daemon.add("timer", name="pasta", seconds=60)
    daemon.look()
    world.passes(60)
    assert rung(daemon) == ["pasta"]
    other = world.open()
    assert daemon.ringing == other.ringing, "to open them ends nothing"
    other.add("timer", name="tea", seconds=30)
    world.passes(30)
    assert daemon.stirs
    assert rung(daemon) == ["tea"]
    assert other.dismiss() == 2
    assert not daemon.ringing
    assert not daemon.all()


def test_several_due_at_once_are_several(world):
    alarms = world.open()
    for name in ("pasta", "tea"):
        alarms.add("timer", name=name, seconds=60)
    world.passes(61)
    assert sorted(rung(alarms)) == ["pasta", "tea"]
    assert alarms.dismiss() == 2


def test_pausing(world):
    alarms = world.open()
    timer = alarms.add("timer", seconds=600)
    world.passes(100)
    assert alarms.pause(timer.id)
    assert not alarms.pause(timer.id)
    world.restarts(86_400)
    alarms = world.open()
    assert alarms.all()[0].paused == 500
    assert not alarms.look()
    assert alarms.resume(timer.id)
    assert not alarms.resume(timer.id)
    world.passes(499)
    assert not alarms.look()
    world.passes(1)
    assert len(alarms.look()) == 1


def test_adding_time(world):
    alarms = world.open()
    timer = alarms.add("timer", seconds=600)
    world.passes(60)
    assert alarms.extend(timer.id, 300)
    assert alarms.all()[0].due.timestamp() == pytest.approx(world.wall + 840)
    assert alarms.extend(timer.id, -10_000)
    world.passes(2)
    assert len(alarms.look()) == 1
    assert alarms.extend(timer.id, 120), "one that rings goes on"
    assert not alarms.ringing
    world.passes(121)
    assert len(alarms.look()) == 1
    assert not alarms.extend(99, 1)


def test_snoozing_what_rings_and_what_was_just_dismissed(world):
    alarms = world.open()
    alarms.add("alarm", name="up", due=at("2026-12-01T12:10"))
    goes(world, alarms, "2026-12-01T12:09:59")
    world.passes(2)
    assert rung(alarms) == ["up"]
    assert alarms.snooze(300) == 1
    assert not alarms.ringing
    world.passes(299)
    assert not alarms.look()
    world.passes(1)
    assert rung(alarms) == ["up"]
    alarms.dismiss()
    world.passes(5)
    assert alarms.snooze(60) == 1
    world.passes(60)
    assert rung(alarms) == ["up"]
    alarms.dismiss()
    world.passes(600)
    assert alarms.snooze(60) == 0


def test_a_snoozed_alarm_comes_again_at_its_own_time(world):
    alarms = world.open()
    alarms.add("alarm", due=at("2026-12-01T12:10"), repeat=DAYS)
    goes(world, alarms, "2026-12-01T12:10")
    assert alarms.snooze(600) == 1
    goes(world, alarms, "2026-12-01T12:20")
    assert alarms.dismiss() == 1
    assert alarms.all()[0].due == at("2026-12-02T12:10")


def test_seven_on_weekdays(world):
    alarms = world.open()
    alarms.add("alarm", due=at("2026-12-01T07:00"), repeat=DAYS[:5])
    seen = []
    for _ in range(5):
        seen.append(alarms.all()[0].due.astimezone(BERLIN).strftime("%a %H:%M"))
        goes(world, alarms, alarms.all()[0].due.astimezone(BERLIN).replace(tzinfo=None).isoformat())
        assert alarms.dismiss() == 1
    assert seen == ["Wed 07:00", "Thu 07:00", "Fri 07:00", "Mon 07:00", "Tue 07:00"]


@pytest.mark.parametrize(
    ("now", "time", "expected"),
    [
        ("2026-03-28T12:00", "07:00", ["2026-03-29T07:00+02:00", "2026-03-30T07:00+02:00"]),  # an hour shorter
        ("2026-03-28T12:00", "02:30", ["2026-03-29T03:30+02:00", "2026-03-30T02:30+02:00"]),  # not on that day
        ("2026-10-24T12:00", "02:30", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),  # twice on that day
    ],
)
def test_days_with_other_hours(world, now, time, expected):
    world.wall = at(now).timestamp()
    alarms = world.open()
    alarms.add("alarm", due=at(f"{now[:10]}T{time}"), repeat=DAYS)
    for wanted in expected:
        due = datetime.fromisoformat(wanted)
        assert alarms.all()[0].due == due
        world.passes(due.timestamp() - world.wall - 1)
        assert not alarms.look()
        world.passes(1)
        assert len(alarms.look()) == 1
        alarms.dismiss()


def test_seven_is_seven_in_another_zone(world):
    world.open().add("alarm", due=at("2026-12-02T07:00"))
    world.zone = ZoneInfo("America/New_York")
    assert world.open().all()[0].due == at("2026-12-02T07:00", world.zone)


def test_a_clock_put_right_rings_what_it_skipped_and_not_as_late(world):
    alarms = world.open()
    alarms.add("alarm", due=at("2026-12-01T12:30"))
    alarms.look()
    world.wall += 3600
    (due,) = alarms.look()
    assert due.late == 0


def test_a_clock_put_back_brings_today_back(world):
    alarms = world.open()
    alarms.add("alarm", due=at("2026-12-01T12:30"), repeat=DAYS)
    goes(world, alarms, "2026-12-01T12:30")
    alarms.dismiss()
    world.wall -= 3600
    alarms.look()
    assert alarms.all()[0].due == at("2026-12-01T12:30")


def test_what_is_no_time_is_refused(world):
    alarms = world.open()
    for seconds in (0, -1, float("nan"), float("inf"), 1e12):
        with pytest.raises(Fault):
            alarms.add("timer", seconds=seconds)
    with pytest.raises(Fault, match="weekday"):
        alarms.add("alarm", due=at("2026-12-02T07:00"), repeat=["someday"])
    for _ in range(MOST):
        alarms.add("timer", seconds=60)
    with pytest.raises(StorageFault, match="waiting already"):
        alarms.add("timer", seconds=60)


def test_what_cannot_be_written_did_not_happen(world):
    alarms = world.open()
    timer = alarms.add("timer", seconds=600)
    world.opened[0]._database.execute("pragma query_only = on")
    with pytest.raises(StorageFault):
        alarms.add("timer", seconds=5)
    with pytest.raises(StorageFault):
        alarms.cancel(timer.id)
    assert len(alarms.all()) == 1


def test_little_is_written_while_nothing_happens(world):
    alarms = world.open()
    alarms.add("timer", seconds=86_000)
    alarms.look()
    before = alarms._database.conn.total_changes
    for _ in range(4 * 3600):
        world.passes(0.25)
        if alarms.stirs:
            alarms.look()
    assert alarms._database.conn.total_changes - before <= 2 * 61


CHILD = """
import sys, time
from pathlib import Path
from datetime import UTC
from appliance.skills.skill import Alarm
from appliance.store.alarms import Alarms, Clocks
alarms = Alarms(Path(sys.argv[1]), Alarm, UTC, Clocks(lambda: 1e9, lambda: 50.0, lambda: "boot"))
alarms.add("timer", name="pasta", seconds=600)
print("set", flush=True)
time.sleep(60)
"""


def test_a_process_that_is_killed_loses_nothing(tmp_path):
    """Set to ten minutes, killed at four, down for two: rings four minutes later."""
    file = tmp_path / "alarms.db"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(file)], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "set\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    child.stdout.close()
    passed = 240.0 + 120.0
    clocks = Clocks(lambda: 1e9 + passed, lambda: 50.0 + passed, lambda: "boot")
    alarms = Alarms(file, Alarm, UTC, clocks)
    passed = 599.5
    assert not alarms.look()
    passed = 600.5
    (due,) = alarms.look()
    assert (due.alarm.name, due.late) == ("pasta", 0)


# --- days of it, against a model ---------------------------------------------------------------------------------

STEP = 20.0
SECONDS = st.integers(1, 20_000).map(float)


@dataclass
class Wanted:
    """`left` of a timer is true time; `due` of an alarm is what the wall clock shows."""

    left: float | None = None
    due: float | None = None
    paused: bool = False


class Days(RuleBasedStateMachine):
    """Somebody looks every STEP seconds while the box is on."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self.folder.name))
        self.alarms = self.world.open()
        self.wanted: dict[int, Wanted] = {}
        self.ringing: set[int] = set()
        self.look()

    def teardown(self) -> None:
        for alarms in self.world.opened:
            alarms.close()
        self.folder.cleanup()

    def over(self, wanted: Wanted) -> float:
        """Seconds for which it has been due."""
        if wanted.paused:
            return -1.0
        return -wanted.left if wanted.left is not None else self.world.wall - (wanted.due or 0.0)

    def passes(self, seconds: float) -> None:
        self.world.passes(seconds)
        for wanted in self.wanted.values():
            if wanted.left is not None and not wanted.paused:
                wanted.left -= seconds

    def look(self, *, away: bool = False) -> None:
        found = {due.alarm.id: due.late for due in self.alarms.look()} if self.alarms.stirs else {}
        due = {id: self.over(one) for id, one in self.wanted.items() if id not in self.ringing and self.over(one) >= 0}
        assert set(found) == set(due)
        for id, late in found.items():
            assert late == pytest.approx(due[id] if away and due[id] > LATE else 0.0, abs=1e-3)
        self.ringing |= set(found)

    @rule(seconds=SECONDS)
    def timer(self, seconds: float) -> None:
        self.wanted[self.alarms.add("timer", seconds=seconds).id] = Wanted(left=seconds)

    @rule(ahead=SECONDS)
    def alarm(self, ahead: float) -> None:
        due = float(int(self.world.wall + ahead) + 1)
        made = self.alarms.add("alarm", due=datetime.fromtimestamp(due, BERLIN))
        assert made.due == datetime.fromtimestamp(due, UTC)
        self.wanted[made.id] = Wanted(due=due)

    @rule(seconds=st.floats(1, 3000))
    def time(self, seconds: float) -> None:
        while seconds > 0:
            self.passes(min(STEP, seconds))
            seconds -= STEP
            self.look()

    @rule(seconds=st.integers(-20_000, 20_000))
    def clock_is_set(self, seconds: float) -> None:
        self.world.wall += seconds
        self.look()

    @rule(seconds=st.floats(0, 5000), reboot=st.booleans())
    def off(self, seconds: float, reboot: bool) -> None:
        self.ringing.clear()
        self.passes(seconds)
        if reboot:
            self.world.restarts()
        self.alarms = self.world.open()
        self.alarms.rewind()
        self.look(away=True)

    @precondition(lambda self: self.wanted)
    @rule(data=st.data(), seconds=SECONDS)
    def changed(self, data: st.DataObject, seconds: float) -> None:
        id = data.draw(st.sampled_from(sorted(self.wanted)))
        wanted = self.wanted[id]
        match data.draw(st.sampled_from(["cancel", "pause", "resume", "extend", "dismiss"])):
            case "cancel":
                assert self.alarms.cancel(id)
                del self.wanted[id]
                self.ringing.discard(id)
            case "pause":
                can = wanted.left is not None and not wanted.paused and id not in self.ringing
                assert self.alarms.pause(id) == can
                wanted.paused = wanted.paused or can
            case "resume":
                assert self.alarms.resume(id) == wanted.paused
                wanted.paused = False
            case "extend" if wanted.left is not None:
                assert self.alarms.extend(id, seconds)
                wanted.left = seconds if id in self.ringing else wanted.left + seconds
                self.ringing.discard(id)
            case "dismiss":
                assert self.alarms.dismiss() == len(self.ringing)
                for rung in self.ringing:
                    del self.wanted[rung]
                self.ringing.clear()

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "wanted"):
            assert {alarm.id for alarm in self.alarms.all()} == set(self.wanted)
            assert self.alarms.ringing == self.ringing
            for alarm in self.alarms.all():
                wanted = self.wanted[alarm.id]
                if alarm.id not in self.ringing and wanted.left is not None and not wanted.paused:
                    left = alarm.due.timestamp() - self.world.wall
                    assert left == pytest.approx(wanted.left, abs=0.01)


Days.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
test_days = Days.TestCase


def test_a_week_of_sevens(world):
    """Killed and restarted at odd times, nobody is woken twice, nor left asleep."""
    alarms = world.open()
    alarms.add("alarm", due=at("2026-12-02T07:00"), repeat=DAYS)
    rang = []
    for step in range(7 * 24 * 6):
        world.passes(600)
        if step % 37 == 0:
            alarms = world.open()
        if step % 101 == 0:
            world.restarts()
            alarms = world.open()
        if alarms.look():
            rang.append(datetime.fromtimestamp(world.wall, BERLIN))
            alarms.dismiss()
    assert rang == [START.replace(day=2 + n, hour=7) for n in range(7)]
