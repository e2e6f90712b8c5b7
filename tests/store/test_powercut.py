"""Power cuts at every boundary of what is written: nothing acknowledged is lost, nothing is damaged; and the proof that
this test can fail: without full syncs it loses, and on a disk that lies it finds damage."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import powercut
import pytest
from powercut import WRITERS, Step, Verdict, recorded, replayed

pytestmark = pytest.mark.skipif(powercut.compiler() is None, reason="no C compiler: what is written cannot be logged")


@pytest.fixture(scope="module")
def library() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield powercut.built(Path(folder))


def steps_of(library: Path, tmp_path: Path, what: str, count: int, mode: str = "full") -> list[Step]:
    folder = tmp_path / what
    folder.mkdir()
    return recorded(library, folder, WRITERS[what][0], str(count), mode)


def cut(steps: list[Step], tmp_path: Path, what: str, cuts: int, **how: object) -> Verdict:
    return replayed(steps, tmp_path / "cuts", WRITERS[what][1], cuts, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(("what", "count", "cuts"), [("memory", 40, 250), ("cells", 60, 150), ("alarms", 70, 150)])
def test_nothing_is_damaged_and_nothing_acknowledged_lost(library, tmp_path, what, count, cuts):
    steps = steps_of(library, tmp_path, what, count)
    verdict = cut(steps, tmp_path, what, cuts)
    assert verdict.cuts == cuts
    assert verdict.syncs >= count
    assert (verdict.damaged, verdict.losing) == (0, 0), verdict.first


def test_without_full_syncs_this_test_fails(library, tmp_path):
    verdict = cut(steps_of(library, tmp_path, "memory", 40, "normal"), tmp_path, "memory", 150)
    assert verdict.losing > 20
    assert verdict.most > 1


def test_on_a_disk_that_ignores_syncs_this_test_fails(library, tmp_path):
    verdict = cut(steps_of(library, tmp_path, "memory", 25), tmp_path, "memory", 80, honest=False)
    assert verdict.damaged + verdict.losing > 40


def test_a_cut_while_the_last_one_is_recovered_from(library, tmp_path):
    """What a cut left is opened under the eyes of the logger, and the power goes again."""
    import random

    steps = steps_of(library, tmp_path, "memory", 20)
    disk, chance = powercut.Disk(), random.Random(3)
    for step in steps[: len(steps) * 2 // 3]:
        disk.step(step)
    for number in range(3):
        left = disk.cut(chance)
        folder = tmp_path / f"again-{number}"
        folder.mkdir()
        for name, content in left.items():
            (folder / name).write_bytes(content)
        again = recorded(library, folder, powercut.MEMORY, "3", "full")

        def check(found: Path, acks: list[str]) -> tuple[bool, int]:
            return powercut.check_memory(found, [*disk.acks.splitlines(), *acks])

        verdict = replayed(again, tmp_path / "cuts", check, 30, seed=number, before=left)
        assert (verdict.damaged, verdict.losing) == (0, 0), verdict.first
