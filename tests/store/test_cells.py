"""What skills remember: like a dictionary each, within its quota, and still there after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import SkillFault, StorageFault
from appliance.store import db
from appliance.store.cells import Cells

text = st.text(max_size=20)
writes = st.tuples(st.sampled_from(["a", "b"]), text, st.one_of(st.none(), text))


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(writes, max_size=30), prefix=st.text(max_size=2))
def test_a_space_is_like_a_dictionary(steps: list[tuple[str, str, str | None]], prefix: str) -> None:
    cells, model = Cells(Path(":memory:")), {"a": {}, "b": {}}  # type: ignore[var-annotated]
    spaces = {name: cells.space(name, 10_000) for name in model}
    for name, key, value in steps:
        if value is None:
            assert spaces[name].delete(key) == (model[name].pop(key, None) is not None)
        else:
            spaces[name].write(key, value)
            model[name][key] = value
    for name, space in spaces.items():
        found = space.keys()
        assert found == sorted(model[name], key=str.encode)
        assert space.keys(prefix) == [key for key in found if key.startswith(prefix)]
        assert {key: space.read(key) for key in found} == model[name]
    cells.close()


def test_a_full_space_keeps_what_it_has(tmp_path: Path) -> None:
    space = Cells(tmp_path / "cells.db").space("lists", 20)
    space.write("key", "ä" * 8)
    with pytest.raises(SkillFault, match="memory of lists is full: 25 of 20 bytes"):
        space.write("other", "x")
    with pytest.raises(SkillFault):
        space.write("key", "ä" * 9)
    assert space.read("key") == "ä" * 8
    assert space.keys() == ["key"]


def test_one_skill_is_erased_and_the_other_not(tmp_path: Path) -> None:
    cells = Cells(tmp_path / "cells.db")
    for name in ("a", "b"):
        cells.space(name, 100).write("k", name)
    assert cells.erase("a") == 1
    assert (cells.space("a", 100).read("k"), cells.space("b", 100).read("k")) == (None, "b")


def test_a_file_that_is_no_database_is_moved_aside_unchanged(tmp_path: Path) -> None:
    path, content = tmp_path / "cells.db", b"something else" * 100
    path.write_bytes(content)
    with closing(Cells(path)) as cells:
        assert cells.space("lists", 1_000).keys() == []
    (moved,) = tmp_path.glob("cells.db.damaged-*")
    assert moved.read_bytes() == content


def test_a_newer_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cells.db"
    database = db.open_database(path, ["create table t (x)", "create table u (x)"])
    database.close()
    with pytest.raises(StorageFault, match="newer version"):
        db.open_database(path, ["create table t (x)"])


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = db.open_database(tmp_path / "x.db", ["create table t (x unique)"])

    def twice() -> None:
        with db.writing(database) as connection:
            connection.execute("insert into t values (1)")
            connection.execute("insert into t values (1)")

    with pytest.raises(StorageFault):
        twice()
    assert database.execute("select count(*) from t").fetchone()[0] == 0


WRITER = """
import sys
from pathlib import Path
from appliance.store.cells import Cells
space = Cells(Path(sys.argv[1])).space("s", 1_000_000)
for number in range(100_000):
    space.write(f"{number:06}", "x" * 50)
    print(number, flush=True)
"""


def test_what_was_written_is_there_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "cells.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        for line in child.stdout:
            if int(line) >= 20:
                os.kill(child.pid, signal.SIGKILL)
                break
        last = max([20, *(int(line) for line in child.stdout if line.strip().isdigit())])
    kept = Cells(path).space("s", 1_000_000).keys()
    assert len(kept) >= last + 1


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 1)])
def test_a_commit_is_on_the_disk_where_it_has_to_be(tmp_path: Path, durable: bool, level: int) -> None:
    """A kill does not show it, a power cut would: full synchronisation is 2 (sqlite.org/pragma.html)."""
    database = db.open_database(tmp_path / "x.db", ["create table t (x)"], durable=durable)
    assert database.execute("pragma synchronous").fetchone()[0] == level
    assert database.execute("pragma journal_mode").fetchone()[0] == "wal"
