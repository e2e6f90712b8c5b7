"""A database is checked when it is opened: what is damaged or foreign is moved aside, whole, and work goes on."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import StorageFault
from appliance.store import db
from appliance.store.tables import STEPS

ONE = ("create table note (text text not null)",)
TWO = (*ONE, "create table tag (name text not null); insert into tag select text from note")


def write(path: Path, texts: list[str], steps: tuple[str, ...] = ONE) -> None:
    with closing(db.open_database(path, steps)) as database, db.writing(database) as connection:
        connection.executemany("insert into note values (?)", [(text,) for text in texts])


def read(path: Path, steps: tuple[str, ...] = ONE) -> list[str]:
    with closing(db.open_database(path, steps)) as database:
        return [row[0] for row in database.execute("select text from note order by rowid")]


def damaged(path: Path) -> list[Path]:
    return sorted(one for one in path.parent.glob(f"{path.name}.damaged-*") if not one.name.endswith(("-wal", "-shm")))


def flip(path: Path, at: int, size: int = 64) -> bytes:
    content = bytearray(path.read_bytes())
    content[at : at + size] = bytes(255 - byte for byte in content[at : at + size])
    path.write_bytes(content)
    return bytes(content)


def test_a_sound_file_stays_where_it_is(tmp_path):
    path = tmp_path / "notes.db"
    write(path, ["one", "two"])
    assert read(path) == ["one", "two"]
    assert damaged(path) == []


@pytest.mark.parametrize("at", [0, 20, 100, 4096, 8192])
def test_a_damaged_file_is_moved_aside_as_it_is_and_a_new_one_begun(tmp_path, at):
    path = tmp_path / "notes.db"
    write(path, [f"note {number}" * 20 for number in range(200)])
    content = flip(path, at, 200)
    told: list[Path] = []
    with closing(db.open_database(path, ONE, saved=told.append)) as database:
        assert database.execute("select count(*) from note").fetchone()[0] in (0, 200)
    if at in (0, 100):  # the header, and the first page's own
        assert damaged(path) == told != []
        assert told[0].read_bytes() == content
    elif told:
        assert told[0].read_bytes() == content


def test_the_last_backup_takes_a_damaged_file_s_place(tmp_path):
    path = tmp_path / "notes.db"
    write(path, ["kept"])
    with closing(db.open_database(path, ONE)) as database:
        db.back_up(database.conn, path)
    write(path, ["later"])
    flip(path, 0, 100)
    assert read(path) == ["kept"]
    assert len(damaged(path)) == 1


def test_a_backup_that_is_damaged_too_is_not_used(tmp_path):
    path = tmp_path / "notes.db"
    write(path, ["kept"])
    with closing(db.open_database(path, ONE)) as database:
        db.back_up(database.conn, path)
    flip(db.backup_of(path), 0, 100)
    flip(path, 0, 100)
    assert read(path) == []


def test_a_backup_that_fails_leaves_the_last_one(tmp_path, monkeypatch):
    path = tmp_path / "notes.db"
    write(path, ["one"])
    with closing(db.open_database(path, ONE)) as database:
        db.back_up(database.conn, path)
        before = db.backup_of(path).read_bytes()

        def full(handle: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(db.os, "fsync", full)
        with pytest.raises(StorageFault, match="cannot be copied"):
            db.back_up(database.conn, path)
    assert db.backup_of(path).read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith(".")) == []


@pytest.mark.parametrize(
    "attack",
    [
        "create trigger gone after insert on note begin delete from note; end",
        "create view tag as select * from note",
        "create table more (x)",
        "drop table note; create table note (text text not null default (randomblob(10)))",
        "pragma writable_schema = on; update sqlite_master set sql = 'create table note (x)' where name = 'note'",
    ],
)
def test_a_schema_that_is_not_ours_is_not_written_to(tmp_path, attack):
    path = tmp_path / "notes.db"
    write(path, ["one"])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(attack)
    assert read(path) == []
    assert len(damaged(path)) == 1


def test_a_newer_file_is_refused_and_unchanged(tmp_path):
    path = tmp_path / "notes.db"
    write(path, ["one"], TWO)
    before = path.read_bytes()
    with pytest.raises(StorageFault, match="newer version"):
        db.open_database(path, ONE)
    assert path.read_bytes() == before
    assert damaged(path) == []


def test_a_migration_is_done_whole_behind_a_backup(tmp_path):
    path = tmp_path / "notes.db"
    write(path, ["one"])
    with closing(db.open_database(path, TWO)) as database:
        assert database.execute("select name from tag").fetchone()[0] == "one"
    with closing(sqlite3.connect(db.backup_of(path))) as backup:
        assert backup.execute("pragma user_version").fetchone()[0] == 1


def test_a_migration_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "notes.db"
    write(path, ["one"])
    with pytest.raises(StorageFault):
        db.open_database(path, (*ONE, "create table tag (name text); insert into nowhere values (1)"))
    assert read(path) == ["one"]


def test_one_process_holds_a_lock(tmp_path):
    with db.sole(tmp_path / "lock"), pytest.raises(StorageFault, match="another Parley"), db.sole(tmp_path / "lock"):
        pass
    with db.sole(tmp_path / "lock"):
        pass


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_file_opens_or_is_refused_and_is_never_lost(tmp_path_factory, data):
    """Bytes of a real memory are changed, cut off, or made up."""
    folder = tmp_path_factory.mktemp("any")
    path = folder / "memory.db"
    with closing(db.open_database(path, STEPS)) as database, db.writing(database) as connection:
        connection.executemany("insert into state values (?, ?)", [(f"key {n}", "1" * 200) for n in range(60)])
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + 8] = data.draw(st.binary(min_size=1, max_size=8))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    path.write_bytes(content)
    try:
        with closing(db.open_database(path, STEPS)) as database:
            database.execute("select * from state").fetchall()
    except (StorageFault, sqlite3.DatabaseError, UnicodeDecodeError):
        pass
    kept = [one.read_bytes() for one in (path, *damaged(path)) if one.exists()]
    assert bytes(content) in kept or not damaged(path)


def test_a_look_changes_nothing(tmp_path):
    path = tmp_path / "a note?.db"
    write(path, ["one"])
    assert db.unsound(path) == ""
    content = flip(path, 0, 100)
    assert "not a database" in db.unsound(path)
    assert path.read_bytes() == content
    assert "unable to open" in db.unsound(tmp_path / "none.db")
