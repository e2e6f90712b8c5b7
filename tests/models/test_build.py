"""What can happen to a build, and what must be true afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from small import ID, shelf, write_manifest, write_source

from appliance.errors import (
    DeadlineFault,
    ManifestFault,
    ModelDamaged,
    ModelFault,
    ModelMissing,
    SourceFault,
    StorageFault,
)
from appliance.runtime.card import RECORD, Shelf
from models.quantized import build as building
from models.quantized.build import build, build_many, listing, remove_model
from models.quantized.files import digest, locked, require_space
from models.quantized.recipes import silero

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "origin" / "weights.onnx"
    path.parent.mkdir()
    write_source(path)
    write_manifest(tmp_path / "manifests", path, f'file = "{path}"')
    return path


class Phases(list[str]):
    def __call__(self, model: str, phase: str, fraction: float) -> None:
        self.append(phase)


def test_a_model_is_built_once(tmp_path: Path, source: Path) -> None:
    first, second = Phases(), Phases()
    built = build(shelf(tmp_path), shelf(tmp_path).card(ID), first)
    build(shelf(tmp_path), shelf(tmp_path).card(ID), second)
    assert "convert" in first
    assert first[-1] == "ready"
    assert second == ["ready"]
    found = json.loads((built.folder / RECORD).read_text())
    assert found["artefacts"]["vad.onnx"]["sha256"] == digest(built.file("graph"))
    assert found["checks"][0]["value"] <= found["checks"][0]["limit"]
    assert not list((tmp_path / "cache/tmp").iterdir())


def test_the_same_sources_give_the_same_bytes(tmp_path: Path, source: Path) -> None:
    first = digest(build(shelf(tmp_path), shelf(tmp_path).card(ID)).file("graph"))
    phases = Phases()
    again = build(shelf(tmp_path), shelf(tmp_path).card(ID), phases, force=True)
    assert digest(again.file("graph")) == first
    assert "convert" in phases


@pytest.mark.parametrize("harm", ["a bit", "the end", "the file", "the record"])
def test_a_damaged_file_is_named_and_only_its_model_is_rebuilt(tmp_path: Path, source: Path, harm: str) -> None:
    write_manifest(tmp_path / "manifests", source, f'file = "{source}"', id="other")
    build_many(shelf(tmp_path))
    path = shelf(tmp_path).built(ID).file("graph")
    good = digest(path)
    content = path.read_bytes()
    if harm == "a bit":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif harm == "the end":
        path.write_bytes(content[:-1])
    elif harm == "the file":
        path.unlink()
    else:
        (path.parent / RECORD).write_text("{")
    if harm != "a bit":  # only a digest shows that, and those are for `verify` and `build`
        with pytest.raises(ModelDamaged):
            shelf(tmp_path).built(ID)
    phases: list[tuple[str, str]] = []
    build_many(shelf(tmp_path), progress=lambda model, phase, fraction: phases.append((model, phase)))
    named = RECORD if harm == "the record" else "vad.onnx"
    assert any(model == ID and phase.startswith("damaged") and named in phase for model, phase in phases)
    assert [phase for model, phase in phases if model == "other"] == ["ready"]
    assert digest(path) == good


def test_an_artefact_of_another_digest_is_refused(tmp_path: Path, source: Path) -> None:
    write_manifest(tmp_path / "manifests", source, f'file = "{source}"', built="00" * 32)
    with pytest.raises(ModelFault, match=rf"vad\.onnx of {ID} passes its golden checks.*{'00' * 32}"):
        build_many(shelf(tmp_path))
    assert listing(shelf(tmp_path))[0].state == "missing"


def test_a_recipe_whose_bytes_depend_on_the_cpu_may_differ(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(tmp_path / "manifests", source, f'file = "{source}"', built="00" * 32)
    monkeypatch.setattr(silero, "EXACT", False, raising=False)
    (built,) = build_many(shelf(tmp_path))
    assert json.loads((built.folder / RECORD).read_text())["differs"] == ["vad.onnx"]


def test_what_fails_its_golden_checks_is_not_published(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "manifests" / f"{ID}.toml"
    path.write_text(path.read_text().replace("probabilities = [", "probabilities = [1, "))
    with pytest.raises(ModelFault, match=r"built but is not right.*probability"):
        build_many(shelf(tmp_path))
    assert not list((tmp_path / "cache/tmp").iterdir())
    with pytest.raises(ModelMissing):
        shelf(tmp_path).built(ID)


def test_a_newer_recipe_rebuilds(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_many(shelf(tmp_path))
    monkeypatch.setattr(silero, "VERSION", 2, raising=False)
    phases = Phases()
    build_many(shelf(tmp_path), progress=phases)
    assert "convert" in phases


def test_a_changed_manifest_replaces_the_older_build(tmp_path: Path, source: Path) -> None:
    build_many(shelf(tmp_path))
    path = tmp_path / "manifests" / f"{ID}.toml"
    path.write_text(path.read_text().replace('precision = "fp32"', 'precision = "fp32"\nthreads = 1'))
    build_many(shelf(tmp_path))
    assert len(list((tmp_path / "cache/built").iterdir())) == 1
    shelf(tmp_path).built(ID)


def test_an_unknown_recipe_or_model_is_found_before_anything_is_built(tmp_path: Path, source: Path) -> None:
    with pytest.raises(ModelMissing, match=f"did you mean '{ID}'"):
        build_many(shelf(tmp_path), [ID, f"{ID}y"])
    assert listing(shelf(tmp_path))[0].state == "missing"
    path = tmp_path / "manifests" / f"{ID}.toml"
    path.write_text(path.read_text().replace('"silero"', '"sillero"'))
    with pytest.raises(ManifestFault, match="sillero"):
        build_many(shelf(tmp_path))


def test_a_manifest_that_does_not_fit_its_recipe_is_named(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "manifests" / f"{ID}.toml"
    path.write_text(path.read_text().replace("prefix =", "prefixx ="))
    with pytest.raises(ManifestFault, match=rf"{ID}\.toml: recipe silero.*KeyError 'prefix'"):
        build_many(shelf(tmp_path))


def test_a_source_of_another_kind_is_named(tmp_path: Path, source: Path) -> None:
    write_manifest(tmp_path / "manifests", source, f'file = "{source}"')
    manifest = (tmp_path / "manifests" / f"{ID}.toml").read_text()
    good = digest(source)
    source.write_text("a text")
    (tmp_path / "manifests" / f"{ID}.toml").write_text(manifest.replace(good, digest(source)))
    with pytest.raises(SourceFault, match=r"weights\.onnx is no ONNX graph"):
        build_many(shelf(tmp_path))


def test_all_failures_are_told(tmp_path: Path, source: Path) -> None:
    for id in ("bad-one", "bad-two"):
        write_manifest(tmp_path / "manifests", source, f'file = "{source}"', id=id, sha256="11" * 32)
    with pytest.raises(ModelFault, match=r"2 models could not be built.*bad-one.*bad-two"):
        build_many(shelf(tmp_path))
    shelf(tmp_path).built(ID)


def test_one_failure_leaves_the_others_built(tmp_path: Path, source: Path) -> None:
    write_manifest(tmp_path / "manifests", source, f'file = "{source}"', id="a-bad-one", sha256="11" * 32)
    with pytest.raises(ModelFault, match="a-bad-one"):
        build_many(shelf(tmp_path))
    shelf(tmp_path).built(ID)


def test_optional_models_are_built_only_by_name(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "manifests" / f"{ID}.toml"
    path.write_text("optional = true\n" + path.read_text())
    assert build_many(shelf(tmp_path)) == []
    assert len(build_many(shelf(tmp_path), [ID])) == 1


def test_removing(tmp_path: Path, source: Path) -> None:
    build_many(shelf(tmp_path))
    write_manifest(tmp_path / "manifests", source, f'file = "{source}"', id=f"{ID}-two")
    build_many(shelf(tmp_path))
    assert remove_model(shelf(tmp_path), ID) > 1_000_000
    assert [entry.state for entry in listing(shelf(tmp_path))] == ["missing", "built"]
    with pytest.raises(ModelMissing, match="nothing to remove"):
        remove_model(shelf(tmp_path), ID)


# --- interruptions ---------------------------------------------------------------------------------------------------

BUILDER = """
import resource, sys
from pathlib import Path
from appliance.runtime.card import Shelf
from appliance.errors import Fault
from models.quantized.build import build_many

cache, manifests, stop, limit = sys.argv[1:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))

def progress(model, phase, fraction):
    print(phase, flush=True)
    if phase == stop:
        sys.stdin.read()

try:
    build_many(Shelf(Path(cache), (Path(manifests),)), progress=progress)
except Fault as fault:
    print(type(fault).__name__, fault)
    sys.exit(fault.code)
"""


def start(tmp_path: Path, stop: str = "", limit: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(tmp_path / "cache"), str(tmp_path / "manifests"), stop, str(limit)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=ROOT, text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def wait_for(process: subprocess.Popen[str], phase: str) -> None:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.strip() == phase:
            return
    raise AssertionError(f"never reached {phase}: {seen}")


@pytest.mark.parametrize("stroke", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("phase", ["convert", "verify"])
def test_an_interrupted_build_leaves_nothing_and_goes_on(
    tmp_path: Path, source: Path, phase: str, stroke: signal.Signals
) -> None:
    """The source lies in two pieces, so that it goes through the store: after the interruption it is not needed."""
    half = source.stat().st_size // 2
    content = source.read_bytes()
    pieces = [source.with_name("a"), source.with_name("b")]
    pieces[0].write_bytes(content[:half])
    pieces[1].write_bytes(content[half:])
    parts = "".join(f'\n[[source.part]]\nfile = "{piece}"' for piece in pieces)
    write_manifest(tmp_path / "manifests", source, parts)
    with start(tmp_path, phase) as process:
        wait_for(process, phase)
        process.send_signal(stroke)
        process.wait()
    with pytest.raises(ModelMissing):
        shelf(tmp_path).built(ID)
    for piece in pieces:
        piece.unlink()
    build_many(shelf(tmp_path))
    shelf(tmp_path).built(ID)
    assert not list((tmp_path / "cache/tmp").iterdir())


def test_leftovers_of_other_models_are_swept(tmp_path: Path, source: Path) -> None:
    dead = tmp_path / "cache/tmp/forgotten"
    dead.mkdir(parents=True)
    alive = tmp_path / "cache/tmp/going-on"
    alive.mkdir()
    with locked(tmp_path / "cache/locks/going-on.lock", 1.0):
        build_many(shelf(tmp_path))
    assert not dead.exists()
    assert alive.exists()


def test_builders_at_the_same_time_do_not_collide(tmp_path: Path, source: Path) -> None:
    processes = [start(tmp_path) for _ in range(3)]
    outputs = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum("convert" in output for output in outputs) == 1
    shelf(tmp_path).built(ID)


def test_waiting_for_another_builder_has_an_end(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "PATIENCE", 0.1)
    phases = Phases()
    with (
        locked(tmp_path / "cache/locks" / f"{ID}.lock", 1.0),
        pytest.raises(DeadlineFault, match=rf"{ID}\.lock"),
    ):
        build_many(shelf(tmp_path), progress=phases)
    assert "waiting for another build" in phases


def test_a_limit_on_file_size_is_a_storage_fault(tmp_path: Path, source: Path) -> None:
    with start(tmp_path, limit=500_000) as process:
        output = process.communicate()[0]
    assert process.returncode == StorageFault.code
    assert "StorageFault" in output
    assert str(tmp_path / "cache") in output
    assert not list((tmp_path / "cache/tmp").iterdir())
    build_many(shelf(tmp_path))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Two megabytes; only root may mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as out:
        while out.write(bytes(4096)):
            pass
    return ballast


@pytest.mark.parametrize("foreseen", [True, False])
def test_a_full_disk_is_told_and_loses_nothing(
    tmp_path: Path, source: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, foreseen: bool
) -> None:
    here = Shelf(small_disk, (tmp_path / "manifests",))
    build_many(here)
    path = here.built(ID).file("graph")
    before = digest(path)
    ballast = fill(small_disk)
    if not foreseen:  # somebody else writes at the same time
        monkeypatch.setattr(building, "require_space", lambda *_: None)
    told = r"needs 1\.2 MB.*free are 0\.0 MB" if foreseen else r"No space left.* 0\.0 MB are free"
    with pytest.raises(StorageFault, match=told):
        build(here, here.card(ID), force=True)
    assert digest(path) == before
    assert not list((small_disk / "tmp").iterdir())
    ballast.unlink()
    path.unlink()
    build(here, here.card(ID))
    assert digest(path) == before


def test_room_is_asked_for_beforehand(tmp_path: Path) -> None:
    with pytest.raises(StorageFault, match=r"building x needs 1000000000000\.0 MB.*free are"):
        require_space(tmp_path / "not" / "yet" / "there", 10**18, "building x")
