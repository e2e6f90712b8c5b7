"""Memory: what was told is found, corrected, forgotten, and survives whatever disk and clock do."""

import hashlib
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from appliance.errors import Fault, StorageFault
from appliance.store import tables
from appliance.store.db import backup_of
from appliance.store.decay import DAY, YEAR
from appliance.store.memory import Memory, MemoryRules
from appliance.store.units import Turn

CANARY = "Zanzibar4711"


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Words in a bag: texts that share words are near."""
    rows = np.zeros((len(texts), 384), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            row[int(hashlib.sha256(word.strip(".?!,").encode()).hexdigest(), 16) % 384] += 1.0
    rows += 1e-6
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass
class Clock:
    wall: float = 1_790_000_000.0
    steady: float = 1_000.0

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@dataclass
class Box:
    folder: Path
    clock: Clock = field(default_factory=Clock)
    forgot: int = 0

    @contextmanager
    def open(self, **rules: object) -> Iterator[Memory]:
        def forgotten() -> None:
            self.forgot += 1

        made = MemoryRules(**{"retry_s": 0.01, **rules})  # type: ignore[arg-type]
        wall, steady = (lambda: self.clock.wall), (lambda: self.clock.steady)
        memory = Memory(self.folder, embed, made, wall=wall, steady=steady, forgotten=forgotten)
        with closing(memory):
            yield memory

    def bytes(self) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file())


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def tell(memory: Memory, *texts: str) -> None:
    for text in texts:
        memory.keep(Turn(text, "Okay.")).result(5)


def said(memory: Memory, question: str) -> str:
    known = memory.answer(question)
    return known.text if known else ""


# --- telling and asking ------------------------------------------------------------------------------------------


def test_what_was_told_is_answered_after_a_restart(box):
    with box.open() as memory:
        tell(memory, "My name is Anna.", "I live in Lyon", "my daughter is called Mia and she is eight")
    with box.open() as memory:
        assert said(memory, "What's my name?") == "Your name is Anna."
        assert said(memory, "where do I live") == "You live in Lyon."
        assert said(memory, "how old is Mia?") == "Your daughter is eight."
        assert said(memory, "what is my dog called") == ""


def test_another_person_s_facts_are_not_the_user_s(box):
    with box.open() as memory:
        tell(memory, "My boss lives in Metz", "my brother's name is Tom", "my mother is allergic to nuts")
        assert said(memory, "where do I live") == ""
        assert said(memory, "what is my name") == ""
        assert said(memory, "what am I allergic to") == ""
        assert said(memory, "where does my boss live") == "Your boss lives in Metz."


def test_the_assistant_s_words_are_never_facts(box):
    with box.open() as memory:
        memory.keep(
            Turn("What is my name?", "Your name is Bob. You live in Rome and your order number is 9911.")
        ).result(5)
        assert memory.units() == []
        assert memory.find("Bob Rome order number") == []


def test_a_newer_value_takes_the_old_one_s_place_and_the_old_one_is_kept_as_past(box):
    with box.open() as memory:
        tell(memory, "I live in Lyon")
        box.clock.passes(DAY)
        tell(memory, "I've moved to Paris")
        old, new = memory.units(past=True)
        assert (old.value, new.value) == ("Lyon", "Paris")
        assert old.ended == new.born
        assert old.successor == new.id
        assert [unit.value for unit in memory.units()] == ["Paris"]
        assert memory.find("where do I live Lyon")[0].unit.value == "Paris"
        assert {one.unit.value for one in memory.find("Lyon", past=True)} == {"Lyon", "Paris"}


def test_contradictions_corrections_and_endings(box):
    with box.open() as memory:
        tell(
            memory, "I like olives", "I live in Lyon", "My order number is AB4711", "I need to pay the electricity bill"
        )
        tell(
            memory,
            "I can't stand olives any more",
            "No, it's AB4712",
            "I don't live in Lyon any more",
            "I've paid the bill",
        )
        assert said(memory, "do I like olives") == "No. You cannot stand olives any more."
        assert said(memory, "what is my order number") == "Your order number is AB4712."
        assert said(memory, "where do I live") == ""
        assert said(memory, "what do I have to do") == ""


def test_what_is_not_the_same_thing_does_not_end_what_was_said(box):
    with box.open() as memory:
        tell(
            memory,
            "I'm allergic to nuts",
            "I'm allergic to eggs",
            "my sister's name is Eva",
            "my brother's name is Tom",
        )
        assert said(memory, "what am I allergic to") == "You are allergic to eggs. You are allergic to nuts."
        assert said(memory, "what is my sister called") == "Your sister's name is Eva."


def test_saying_it_again_makes_it_more_present_not_twice(box):
    with box.open() as memory:
        tell(
            memory,
            "I live in Lyon",
            "I live in Lyon.",
            "the boiler makes a strange noise",
            "The boiler makes a strange noise",
        )
        assert [unit.used for unit in memory.units()] == [2, 2]


def test_a_skill_s_command_tells_nothing_but_what_it_is_about(box):
    with box.open() as memory:
        turn = Turn("My usual is a large latte", by="skill", intent="kiosk.Order", slots={"drink": "latte", "count": 2})
        memory.keep(turn).result(5)
        assert memory.units() == []
        assert "latte" in memory.heat.words()


def test_profiles_are_apart_and_what_is_everybody_s_is_shared(box):
    with box.open() as memory:
        tell(memory, "The wifi password is hunter22")
        memory.person = "Anna"
        tell(memory, "My name is Anna")
        memory.person = "bob"
        assert said(memory, "what is my name") == ""
        assert said(memory, "what is the wifi password") == "The wifi password is hunter22."
        memory.person = "anna"
        assert said(memory, "what is my name") == "Your name is Anna."
        assert memory.people() == ["anna"]


def test_the_heat_map_follows_the_conversation(box):
    with box.open() as memory:
        tell(memory, "My order number is AB4711")
        assert "AB4711" in memory.heat.critical()
        for _ in range(20):
            tell(memory, "nice weather")
        assert memory.heat.words() == []


def test_a_conversation_is_taken_up_again_while_it_may_still_be_going_on(box):
    with box.open() as memory:
        tell(memory, "hello", "what is the capital of France")
    box.clock.passes(60)
    with box.open() as memory:
        assert [turn.asked for turn in memory.resume()] == ["hello", "what is the capital of France"]
        tell(memory, "thanks")
        assert len({turn.conversation for turn in memory.turns()}) == 1
    box.clock.passes(7_200)
    with box.open() as memory:
        assert memory.resume() == []
        tell(memory, "hello again")
        assert len({turn.conversation for turn in memory.turns()}) == 2


# --- forgetting --------------------------------------------------------------------------------------------------


def test_what_is_forgotten_is_in_no_file_any_more(box):
    with box.open() as memory:
        tell(memory, "I live in Lyon", f"my locker code is {CANARY}", "I like olives")
        memory.keep(Turn("what is my locker code", f"Your locker code is {CANARY}."), cites=[2]).result(5)
        memory.tidy()
        assert backup_of(memory.path).exists()
        assert CANARY.encode() in box.bytes()
        assert memory.forget_about("my locker code") == 1
        assert CANARY.lower().encode() not in box.bytes().lower()
        assert memory.find(f"locker code {CANARY}", past=True) == [] or all(
            CANARY not in one.unit.text for one in memory.find(f"locker code {CANARY}", past=True)
        )
        assert CANARY not in "".join(turn.asked + turn.said for turn in memory.turns())
        assert not any(CANARY in word for word in memory.heat.words())
        assert said(memory, "where do I live") == "You live in Lyon."
        assert [row["why"] for row in memory.gone()] == ["asked to", "asked to"]
        assert box.forgot == 1
    assert CANARY.lower().encode() not in box.bytes().lower()


@pytest.mark.parametrize("way", ["about", "everything", "last", "ids", "statement"])
def test_every_way_to_forget(box, way):
    with box.open() as memory:
        tell(memory, "My name is Anna", f"my order number is {CANARY}")
        match way:
            case "about":
                assert memory.forget_about("order number")
            case "everything":
                assert memory.forget_everything() == 4
            case "last":
                assert [unit.value for unit in memory.forget_last()] == [CANARY]
            case "ids":
                assert memory.forget([2]) == 1
            case "statement":
                assert memory.forget_about(f"my order number is {CANARY}") == 1
        assert CANARY.lower().encode() not in box.bytes().lower()
        assert said(memory, "what is my name") == ("" if way == "everything" else "Your name is Anna.")


def test_nothing_to_forget(box):
    with box.open() as memory:
        assert memory.forget_about("the order") == 0
        assert memory.forget_last() == []
        assert memory.forget([99]) == 0
        assert memory.forget_everything() == 0


def test_a_correction_by_number(box):
    with box.open() as memory:
        tell(memory, "My name is Ana")
        unit = memory.edit(1, "My name is Anna")
        assert said(memory, "what is my name") == "Your name is Anna."
        assert unit.id != 1
        assert [one.current for one in memory.units(past=True)] == [False, True]
        with pytest.raises(Fault, match="no memory 99"):
            memory.edit(99, "x")
        with pytest.raises(Fault, match="empty"):
            memory.edit(unit.id, "  ")


def test_in_private_nothing_is_kept(box):
    with box.open() as memory:
        memory.private = True
        assert memory.keep(Turn(f"my code is {CANARY}")).result(5).turn == 0
        memory.private = False
        tell(memory, "hello")
    assert CANARY.encode() not in box.bytes()


@pytest.mark.parametrize("mode", ["session", "off"])
def test_modes_that_keep_nothing_on_the_disk(box, mode):
    with box.open(mode=mode) as memory:
        tell(memory, f"my order number is {CANARY}")
        assert bool(said(memory, "what is my order number")) == (mode == "session")
        memory.tidy()
        if mode == "session":
            assert memory.forget_everything() == 2
            assert said(memory, "what is my order number") == ""
    assert list(box.folder.iterdir()) == []


# --- budget ------------------------------------------------------------------------------------------------------


def test_a_budget_takes_what_matters_least_and_says_so(box):
    with box.open(largest_bytes=400_000) as memory:
        tell(memory, f"my order number is {CANARY}", "I'm allergic to nuts")
        for number in range(1_500):
            memory.keep(Turn(f"the weather was quite nice on the walk number {number} through the park", "Yes. " * 10))
        assert memory.flush(60)
        tidied = memory.tidy()
        assert tidied.bytes <= 400_000
        assert tidied.turns + tidied.units > 500
        assert said(memory, "what is my order number")
        assert said(memory, "am I allergic to nuts")
        assert {row["why"] for row in memory.gone()} == {"byte budget: worth least"}
        count = sum(int(str(row["count"])) for row in memory.gone())
        assert count == tidied.turns + tidied.units
    size = sum(path.stat().st_size for path in box.folder.iterdir() if "backup" not in path.name)
    assert size < 2_000_000


def test_old_conversations_are_summed_up_with_links_back(box):
    with box.open() as memory:
        tell(memory, "My name is Anna", "I live in Lyon", "nice weather", "my order number is AB4711")
        box.clock.passes(8 * DAY)
        assert memory.tidy().summaries == 1
        (summary,) = [unit for unit in memory.units() if unit.kind == "summary"]
        assert "AB4711" in summary.text
        assert memory.tidy().summaries == 0
        with closing(sqlite3.connect(memory.path)) as database:
            assert database.execute("select count(*) from link where summary = ?", [summary.id]).fetchone()[0] == 4
        memory.forget_about("order number")
        assert not [unit for unit in memory.units() if "AB4711" in unit.text]


def test_turns_are_kept_as_long_as_the_user_wants(box):
    with box.open(keep_days=3) as memory:
        tell(memory, "My name is Anna")
        box.clock.passes(4 * DAY)
        tell(memory, "hello")
        assert memory.tidy().turns == 1
        assert [turn.asked for turn in memory.turns()] == ["hello"]
        assert said(memory, "what is my name") == "Your name is Anna."


@pytest.mark.parametrize("jump", [-56 * YEAR, 50 * YEAR, -50 * YEAR])
def test_a_clock_that_jumps_forgets_nothing(box, jump):
    with box.open(keep_days=30) as memory:
        tell(memory, "My name is Anna", "I'm tired", "the boiler makes a strange noise")
        before = [one.unit.id for one in memory.find("boiler noise")]
    box.clock.wall += jump
    with box.open(keep_days=30) as memory:
        tell(memory, "hello")
        box.clock.wall -= jump / 2
        memory.tidy()
        assert [one.unit.id for one in memory.find("boiler noise")] == before
        assert len(memory.turns()) == 4
        assert memory.gone() == []
        assert memory.find("boiler")[0].activation > 0.99


# --- the disk ----------------------------------------------------------------------------------------------------


def test_while_the_disk_is_full_turns_wait_in_memory_and_are_written_when_there_is_room(box, caplog):
    with box.open() as memory:
        tell(memory, "My name is Anna")
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, limit[1]))
            waits = memory.keep(Turn(f"my order number is {CANARY}"))
            with pytest.raises(TimeoutError):
                waits.result(0.3)
            assert not memory.health.ok
            assert memory.health.pending == 1
            assert said(memory, "what is my order number") == f"Your order number is {CANARY}."
            assert said(memory, "what is my name") in ("Your name is Anna.", "")
            with pytest.raises(StorageFault):
                memory.forget([1])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, before)
        kept = waits.result(5)
        assert memory.health.ok
        assert [unit.value for unit in kept.units] == [CANARY]
    with box.open() as memory:
        assert said(memory, "what is my order number") == f"Your order number is {CANARY}."


def test_a_folder_that_cannot_be_written_is_told_and_turns_go_on(tmp_path):
    place = tmp_path / "file"
    place.write_text("no folder")
    memory = Memory(place, None, MemoryRules(retry_s=0.01))
    with closing(memory):
        assert "cannot be opened" in memory.health.problem
        waits = memory.keep(Turn("My name is Anna"))
        with pytest.raises(TimeoutError):
            waits.result(0.2)
        assert said(memory, "what is my name") == "Your name is Anna."
        place.unlink()
        assert waits.result(5).turn == 1


def test_a_newer_memory_is_left_alone_and_the_box_works(box):
    with box.open() as memory:
        tell(memory, "My name is Anna")
    with closing(sqlite3.connect(box.folder / "memory.db")) as database:
        database.execute("pragma user_version = 99")
    before = (box.folder / "memory.db").read_bytes()
    with box.open() as memory:
        assert "newer version" in memory.health.problem
        memory.keep(Turn("I live in Lyon"))
        memory.flush(0.1)
        assert said(memory, "where do I live") == "You live in Lyon."
    assert (box.folder / "memory.db").read_bytes() == before


def test_a_damaged_memory_is_moved_aside_and_the_last_copy_taken(box):
    with box.open() as memory:
        tell(memory, "My name is Anna")
        memory.tidy()
        tell(memory, "I live in Lyon")
    path = box.folder / "memory.db"
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])
    with box.open() as memory:
        assert memory.health.ok
        assert Path(memory.health.quarantined).exists()
        assert said(memory, "what is my name") == "Your name is Anna."


def test_what_another_process_changes_is_seen(box):
    with box.open() as memory, box.open() as other:
        tell(memory, "My name is Ana")
        other.edit(1, "My name is Anna")
        assert said(memory, "what is my name") == "Your name is Anna."
        other.forget_everything()
        assert said(memory, "what is my name") == ""
        assert memory.find("name Anna") == []


KILLED = """
import sys
from pathlib import Path
from appliance.store.memory import Memory
from appliance.store.units import Turn
memory = Memory(Path(sys.argv[1]), None)
for number in range(10_000):
    memory.keep(Turn(f"my locker code is {number}")).result(5)
    print(number, flush=True)
"""


@pytest.mark.parametrize("after", [1, 7, 40])
def test_what_was_acknowledged_is_there_after_a_kill(tmp_path, after):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) >= after:
                child.kill()
                break
    memory = Memory(tmp_path, None)
    with closing(memory):
        known = memory.answer("what is my locker code")
        assert known is not None
        assert int(known.units[0].value) >= after
        assert memory.health.quarantined == ""


# --- anything ----------------------------------------------------------------------------------------------------


def test_strange_texts_are_kept_without_what_cannot_be(box):
    with box.open() as memory:
        tell(memory, "my name is \udcffAnna", "I live in\0 Lyon", "\x1b[31mI like olives", "", " \n ", "😀" * 100)
        tell(memory, "My order number is AB4711 " + "blah " * 250_000)
        assert len(memory.turns()) == 7
        assert said(memory, "what is my order number").startswith("Your order number is AB4711")
        assert all(c.isprintable() or c == "\n" for turn in memory.turns() for c in turn.asked)
        memory.find("\0\udcff'\"*^()[]{} OR NEAR -- ;drop table unit")
        assert list(memory.export())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=5), st.text(max_size=60))
def test_anything_may_be_told_and_asked(tmp_path_factory, texts, question):
    memory = Memory(tmp_path_factory.mktemp("any"), embed, MemoryRules(mode="session"))
    with closing(memory):
        tell(memory, *texts)
        memory.find(question)
        memory.answer(question)
        memory.forget_about(question)
        memory.tidy()
        assert memory.health.ok


def test_the_index_follows_what_is_added_and_dropped(box):
    with box.open() as memory:
        for number in range(40):
            memory.keep(Turn(f"the report number {number} is about topic{number}"))
        memory.flush()
        memory.forget([unit.id for unit in memory.units()[:20]])
        for number in (25, 39):
            assert memory.find(f"topic{number}")[0].unit.text.endswith(f"topic{number}")
        assert all(one.unit.text.split()[-1] != "topic3" for one in memory.find("topic3"))
        with closing(sqlite3.connect(memory.path)) as database:
            assert database.execute("select count(*) from vector").fetchone()[0] == 20
            assert database.execute("select count(*) from word").fetchone()[0] == 20
    assert tables.moment(1e300) == tables.EPOCH


def test_of_two_that_say_nearly_the_same_the_later_comes_first(box):
    """Without rules that know the words, too."""
    with box.open() as memory:
        tell(memory, "the choir sings in the old church on Mondays with Nadja")
        box.clock.passes(DAY)
        tell(memory, "the choir sings in the town hall on Tuesdays with Nadja")
        assert len(memory.units()) == 2
        found = [one.unit.text for one in memory.find("where does the choir sing with Nadja")]
        assert "town hall" in found[0]


def test_half_the_bytes_are_pruned_before_many_units_are(box):
    with box.open() as memory:
        for number in range(300):
            memory.keep(Turn(f"the parcel number{number} lies in the room of visitor{number}", "Thank you. " * 8))
        assert memory.flush(60)
        whole = memory.tidy().bytes
        memory.rules = MemoryRules(largest_bytes=whole // 2)
        tidied = memory.tidy()
        assert tidied.bytes <= whole // 2
        assert tidied.units < 30  # a small database is mostly fixed costs
        assert tidied.turns == 300
        assert sum(memory.find(f"number{n} visitor{n}")[0].unit.id == n + 1 for n in range(0, 300, 10)) >= 25
