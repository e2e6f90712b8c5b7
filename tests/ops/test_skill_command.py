"""`parley skill`, from the empty folder to the installed skill, and what it says when something is missing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
import wasmtime

from appliance.__main__ import main
from appliance.skills import workshop
from appliance.skills.library import SHIPPED
from appliance.skills.native import NATIVE
from appliance.skills.testing import run_tests

HELLO = "{\\22say\\22: \\22Hello.\\22}"
MODULE = f"""(module (memory (export "memory") 1) (data (i32.const 16) "{HELLO}")
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (i64.const {16 << 32 | 17})))"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return tmp_path


def made(folder: Path) -> Path:
    """A new skill, with a module that no compiler is needed for."""
    assert main(["skill", "new", str(folder)]) == 0
    module = wasmtime.wat2wasm(MODULE)
    (folder / "skill.wasm").write_bytes(module)
    path = folder / "skill.toml"
    digest = hashlib.sha256(module).hexdigest()
    path.write_text(path.read_text().replace('checksum = ""', f'checksum = "sha256:{digest}"'))
    return folder


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    assert main(["skill", "list", "--json"]) == 0
    return {one["name"]: one["version"] for one in json.loads(capsys.readouterr().out)["skills"]}


def test_a_skill_is_made_installed_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(home / "greeter")
    assert main(["skill", "install", str(folder)]) == 0
    assert listed(capsys)["greeter"] == "0.1.0"
    assert main(["skill", "remove", "greeter"]) == 0
    assert "greeter" not in listed(capsys)


def test_what_is_changed_behind_the_installation_is_not_loaded(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill", "install", str(made(home / "greeter"))]) == 0
    with (home / "state/parley/skills/greeter/intents/en.yaml").open("a") as file:
        file.write("# changed\n")
    assert "greeter" not in listed(capsys)


def test_its_tests_are_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(home / "greeter")
    assert main(["skill", "test", str(folder)]) == 1
    assert "'Hello, anna.' is not in the reply" in capsys.readouterr().out
    (folder / "tests.yaml").write_text("- turns:\n    - { say: give me a greeting, intent: Hello, reply: hello }\n")
    assert main(["skill", "test", str(folder)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["install", "nowhere"], "skill.toml cannot be read"),
        (["build", "nowhere"], "holds no skill.toml"),
        (["test", "nowhere"], "tests.yaml cannot be read"),
        (["remove", "nobody"], "no skill 'nobody' is installed"),
        (["remove", "clock"], "clock is part of Parley"),
        (["new", "Bad Name"], "is no name"),
    ],
)
def test_what_cannot_be_done_is_said(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill", *arguments]) == 8
    told = capsys.readouterr().err
    assert message in told
    assert "fix:" in told


def test_a_missing_compiler_is_named(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "greeter"
    assert main(["skill", "new", str(folder), "--language", "assemblyscript"]) == 0
    monkeypatch.setenv("PATH", str(home))
    assert main(["skill", "build", str(folder)]) == 8
    assert "npm install" in capsys.readouterr().err


@pytest.mark.parametrize("language", workshop.LANGUAGES)
def test_a_new_skill_builds_and_passes_its_tests(home: Path, language: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "greeter"
    assert main(["skill", "new", str(folder), "--language", language]) == 0
    if main(["skill", "build", str(folder)]) and "not installed" in capsys.readouterr().err:
        pytest.skip(f"no compiler for {language}")
    assert main(["skill", "test", str(folder)]) == 0


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SHIPPED.glob("*/tests.yaml")))
def test_every_shipped_skill_passes_its_own_tests(name: str) -> None:
    for verdict in run_tests(SHIPPED / name, NATIVE):
        assert verdict.right, [turn for turn in verdict.turns if turn.wrong]


def test_every_shipped_module_is_built_from_its_source(home: Path) -> None:
    if not (shutil.which("zig") and shutil.which("asc")):
        pytest.skip("no compilers")
    for folder in SHIPPED.iterdir():
        if (folder / "src").is_dir():
            copy = Path(shutil.copytree(folder, home / folder.name))
            assert workshop.build(copy).read_bytes() == (folder / "skill.wasm").read_bytes(), folder.name


def test_nothing_runs_as_a_test_may_see_the_users_own(home: Path) -> None:
    assert os.environ["XDG_STATE_HOME"].startswith(str(home))
