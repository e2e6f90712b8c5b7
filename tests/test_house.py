"""The house rules that no linter knows: floors, doors, and documents that keep up with the code."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from appliance import config, events

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("firmware", "appliance", "models")

DOORS = {
    "ai_edge_litert": ["appliance/runtime/tfl.py"],
    "cryptography": ["appliance/skills/signature.py"],
    "gguf": ["models/quantized/recipes/gguf_file.py"],
    "hassil": ["appliance/skills/intents/templates.py"],
    "jinja2": ["appliance/runtime/chat.py"],
    "jsonschema": ["appliance/skills/manifest.py", "appliance/voice/form.py"],
    "livekit": ["firmware/apm.py"],
    "llguidance": ["appliance/runtime/grammar.py"],
    "markdown_it": ["appliance/store/knowblocks.py"],
    "miniaudio": ["firmware/codec.py"],
    "onnx": ["models/quantized/graph.py", "models/quantized/recipes/piper.py"],
    "onnxruntime": ["appliance/runtime/ort.py"],
    "paho": ["appliance/sync/mqtt.py"],
    "psutil": ["appliance/doctor.py"],
    "pyaudio": ["firmware/device.py"],
    "pymicro_features": ["firmware/wake.py"],
    "rapidfuzz": [
        "appliance/skills/intents/recognise.py",
        "appliance/skills/intents/sounds.py",
        "appliance/store/knowalign.py",
    ],
    "rich": ["appliance/commands/console.py"],
    "safetensors": ["models/quantized/recipes/minilm.py"],
    "tflite_runtime": ["appliance/runtime/tfl.py"],
    "tokenizers": ["appliance/runtime/tokenizer.py"],
    "sqlite_utils": ["appliance/store/db.py"],
    "unicode_rbnf": ["appliance/runtime/numerals.py"],
    "wasmtime": ["appliance/skills/sandbox.py"],
    "yaml": ["appliance/skills/intents/templates.py"],
}
"""The places that import each library: one, but that graphs are written in one and cut open in another. numpy is a
language here, not a library."""
EVERYWHERE = {"numpy", *PACKAGES}


def imports(path: Path) -> Iterator[str]:
    """The top-level names that a file imports, at any depth of nesting."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"build_{name}", ROOT / f"build/{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_floors() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_library_has_one_door() -> None:
    found: dict[str, list[str]] = {}
    for path in sources():
        for name in set(imports(path)) - EVERYWHERE - sys.stdlib_module_names:
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: sorted(places) for name, places in found.items()} == DOORS


def test_peers_know_nothing_of_ours() -> None:
    """They run in an environment of their own, on whatever Python it has."""
    for path in (ROOT / "tests/bench/peers").glob("*.py"):
        assert not {*PACKAGES, "harness"} & set(imports(path)), path.name


@pytest.mark.parametrize(
    "name", [path.stem for path in (ROOT / "tests/bench").glob("*.py") if "def main" in path.read_text()]
)
def test_every_measurement_starts(name: str) -> None:
    command = [sys.executable, "tests/bench", *([] if name == "__main__" else [name]), "--help"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "--json" in result.stdout


def test_build_is_no_package() -> None:
    """With an __init__.py in it, `python -m build` would import the folder instead of the tool."""
    assert not (ROOT / "build/__init__.py").exists()


def test_no_test_folder_is_a_package() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names)), "test files need names of their own"


def test_reference_is_up_to_date() -> None:
    assert (ROOT / "REFERENCE.md").read_text() == script("reference").render(), "run `./just reference`"


def test_reference_names_everything() -> None:
    text = (ROOT / "REFERENCE.md").read_text()
    vocabulary = [n for n, kind in vars(events).items() if isinstance(kind, type) and issubclass(kind, events.Event)]
    keys = [f"`{setting.section}.{setting.key}`" for setting in config.documented()]
    assert vocabulary
    for name in (*(f"`{event}`" for event in vocabulary), *keys):
        assert name in text, f"{name} is not documented"


def test_every_setting_says_what_it_is() -> None:
    assert not [s for s in config.documented() if len(s.doc) < 8]


def test_licences_are_up_to_date_in_names() -> None:
    licences = script("licences")
    absent = licences.direct() - licences.names((ROOT / "LICENCES.md").read_text())
    assert not absent, f"not in LICENCES.md: {absent}; run `./just licences`"


def test_nothing_that_is_shipped_is_copyleft() -> None:
    licences = script("licences")
    for name, licence in licences.shipped():
        assert not any(word in licence.upper() for word in ("GPL", "AGPL", "SSPL")), f"{name}: {licence}"


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "DECISIONS.md", "CHANGELOG.md", "LOG.md"])
def test_documents_exist(name: str) -> None:
    assert (ROOT / name).stat().st_size > 100


def test_readme_shows_every_command_and_exit_code() -> None:
    from appliance.__main__ import EXIT_CODES, parser

    text = (ROOT / "README.md").read_text()
    commands = next(a for a in parser()._actions if a.dest == "command").choices
    assert commands
    for name in commands:
        assert f"parley {name}" in text, f"`parley {name}` is not in the README"
    for code in EXIT_CODES:
        assert f"| {code} |" in text, f"exit code {code} is not in the README"
