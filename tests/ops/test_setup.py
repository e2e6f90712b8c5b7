"""The set-up on machines that lack something: what may be left out is left out and told, and the rest is installed."""

from __future__ import annotations

import importlib.util
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """build/setup.py, with nothing installed and its stamp in a folder of its own."""
    monkeypatch.syspath_prepend(str(ROOT / "build"))
    spec = importlib.util.spec_from_file_location("build_setup", ROOT / "build/setup.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "build_setup", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STAMP", tmp_path / "stamp.json")
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(module, "find_library", lambda name: None)
    return module


class Machine:
    """Runs the steps of a set-up: notes them, and fails those that name one of `fails`."""

    log = "setup.log"

    def __init__(self, setup: ModuleType, *fails: str) -> None:
        self.ran: list[str] = []
        self.notes: list[str] = []
        self._setup, self._fails = setup, fails

    def run(self, title: str, command: Sequence[str], env: object = None) -> None:
        line = " ".join(command)
        self.ran.append(line)
        if any(part in line for part in self._fails):
            raise self._setup.StepFailed(title)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def tail(self) -> str:
        return ""


def machine(
    setup: ModuleType, patch: pytest.MonkeyPatch, *fails: str, root: bool = True, tools: bool = False
) -> Machine:
    patch.setattr(setup, "root_prefix", lambda: [] if root else None)
    patch.setattr(setup, "can_compile", lambda piece: tools)
    patch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    return Machine(setup, *fails)


def left_out(setup: ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(setup.STAMP.read_text())["left out"]
    return found


def test_with_root_the_system_packages_are_installed_first(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = machine(setup, monkeypatch)
    assert setup.install(steps) == 0
    apt = [line for line in steps.ran if "apt-get install" in line]
    assert all(name in apt[0] for name in ("portaudio19-dev", "gcc"))
    assert all(name in apt[1] for name in ("libspeexdsp-dev", "swig", "g++"))
    assert [line.split()[-1] for line in steps.ran if "pip" in line] == [".[dev]", ".[audio]", ".[speex]"]
    assert (steps.notes, left_out(setup)) == ([], {})


def test_live_audio_comes_without_the_second_canceller(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = machine(setup, monkeypatch, "swig", "[speex]")
    assert setup.install(steps) == 0
    assert any(line.endswith(".[audio]") for line in steps.ran)
    assert list(left_out(setup)) == ["speexdsp"]
    assert steps.notes[0].startswith('the echo canceller "speex" is left out, "webrtc" works')
    assert "apt-get install libspeexdsp-dev swig g++ python3-dev" in steps.notes[1]


def test_without_root_both_are_left_out_and_the_rest_works(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = machine(setup, monkeypatch, root=False)
    assert setup.install(steps) == 0
    assert steps.ran == [line for line in steps.ran if line.endswith(".[dev]")]
    assert list(left_out(setup)) == ["pyaudio", "speexdsp"]
    assert all(note in " ".join(steps.notes) for note in ("live audio is left out", "portaudio19-dev", "./just audio"))
    assert len(steps.notes) == 3


def test_without_root_what_can_be_compiled_is(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = machine(setup, monkeypatch, root=False, tools=True)
    assert setup.install(steps) == 0
    assert not [line for line in steps.ran if "apt-get" in line]
    assert left_out(setup) == {}


def test_stale_package_lists_are_fetched_once(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = machine(setup, monkeypatch, "apt-get install")
    setup.install(steps)
    assert sum("apt-get update" in line for line in steps.ran) == 2
    assert list(left_out(setup)) == ["pyaudio", "speexdsp"]


def test_the_systems_speexdsp_does_as_well(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "find_library", lambda name: f"lib{name}.so.1")
    steps = machine(setup, monkeypatch)
    setup.install(steps)
    assert not [line for line in steps.ran if "speex" in line]
    assert [line for line in steps.ran if line.endswith(".[audio]")]


def test_without_the_libraries_there_is_no_stamp(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.install(machine(setup, monkeypatch, ".[dev]")) == 1
    assert "fix:" in capsys.readouterr().err
    assert not setup.STAMP.exists()


@pytest.mark.parametrize("lacking", ["", "g++", "swig", "speex_echo.h", "Python.h"])
def test_what_a_compilation_needs_is_looked_for(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    there = {"g++", "swig", "speex_echo.h", "Python.h"} - {lacking}
    with monkeypatch.context() as patch:
        patch.setattr(setup.shutil, "which", lambda name: name if name in there else None)
        patch.setattr(setup.Path, "exists", lambda path: path.name in there)
        able = setup.can_compile(setup.PIECES[1])
    assert able == (not lacking)


def test_every_piece_is_an_extra_of_the_project(setup: ModuleType) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for piece in setup.PIECES:
        assert any(need.startswith(piece.module) for need in extras[piece.extra])
