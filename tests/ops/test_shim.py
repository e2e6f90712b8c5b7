"""`./just` on machines that lack something. Each test works on a copy: the checkout itself is left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BARE_TOOLS = ("sh", "dirname", "id", "mkdir", "true", "env")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    copy = tmp_path / "a checkout"
    copy.mkdir()
    for name in ("just", "Justfile"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with the shell's own tools and nothing else: no just, no python."""
    path = tmp_path / "bin"
    path.mkdir()
    for tool in BARE_TOOLS:
        found = shutil.which(tool)
        assert found
        (path / tool).symlink_to(found)
    return path


def shim(checkout: Path, path: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": str(path), "HOME": str(checkout), "XDG_CACHE_HOME": str(checkout / "cache"), **extra}
    command = [str(checkout / "just"), *arguments]
    return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, check=False)


def fake_python(path: Path, name: str, body: str) -> None:
    script = path / name
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)


def ready(checkout: Path) -> None:
    """An environment as the shim leaves it."""
    version = next(line for line in (ROOT / "just").read_text().splitlines() if line.startswith("just_version="))
    just = Path(sys.executable).with_name("just")
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/just").symlink_to(just)
    (checkout / ".venv/bin/python").symlink_to(sys.executable)
    (checkout / f".venv/.just-{version.partition('=')[2]}").touch()


def test_without_python_the_message_has_the_fix(checkout: Path, bare_path: Path) -> None:
    result = shim(checkout, bare_path)
    assert result.returncode == 1
    assert "no Python 3.11 or later was found" in result.stderr
    assert "fix:" in result.stderr


def test_an_old_python_is_not_taken(checkout: Path, bare_path: Path) -> None:
    fake_python(bare_path, "python3", "exit 1")
    assert "no Python 3.11" in shim(checkout, bare_path).stderr


def test_a_python_that_cannot_make_environments(checkout: Path, bare_path: Path) -> None:
    """As on a bare Debian without rights: venv and virtualenv fail, there is no uv and no apt."""
    fake_python(bare_path, "python3", f'case "$1" in -c) exec {sys.executable} "$@";; *) exit 1;; esac')
    result = shim(checkout, bare_path)
    assert result.returncode == 1
    assert "cannot make a virtual environment" in result.stderr
    assert "apt-get install python3-venv" in result.stderr


def test_a_ready_checkout_lists_every_command(checkout: Path, bare_path: Path) -> None:
    ready(checkout)
    result = shim(checkout, bare_path)
    assert result.returncode == 0, result.stderr
    for recipe in ("setup", "demo", "run", "test", "check", "bench", "models", "doctor", "licences", "clean"):
        assert f"    {recipe}" in result.stdout


def test_the_exit_code_of_a_recipe_is_the_shims(checkout: Path, bare_path: Path) -> None:
    ready(checkout)
    assert shim(checkout, bare_path, "no-such-recipe").returncode != 0


def test_ci_runs_the_tests_from_anywhere(checkout: Path, bare_path: Path) -> None:
    (checkout / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", checkout / ".ci")
    fake_python(checkout, "just", 'echo "in $PWD: $*"')
    env = {**os.environ, "PATH": str(bare_path)}
    result = subprocess.run([checkout / ".ci/run"], cwd="/", env=env, capture_output=True, text=True, check=False)
    assert result.stdout == f"in {checkout}: test\n"
