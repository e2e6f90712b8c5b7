"""The command as a program runs it: exit codes, streams, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from appliance.controls import Controls, State

ROOT = Path(__file__).resolve().parents[2]


def environment(home: Path, **extra: str) -> dict[str, str]:
    """No settings and no models but those that a test makes."""
    own = {"XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "cache"), "HOME": str(home)}
    own["XDG_STATE_HOME"] = str(home / "state")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARLEY_")}
    return {**kept, **own, **extra}


def parley(home: Path, *arguments: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "appliance", *arguments]
    env = environment(home, **extra)
    return subprocess.run(command, cwd=ROOT, env=env, input=stdin, capture_output=True, text=True, check=False)


def manifest(folder: Path, id: str, url: str, sha256: str = "0" * 64, size: int = 10_000_000) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{id}.toml").write_text(
        f'''
        id = "{id}"
        kind = "vad"
        summary = "a model for a test"
        licence = "MIT"
        recipe = "silero"
        default_rung = "fp32"
        optional = true
        [[source]]
        name = "weights"
        sha256 = "{sha256}"
        size = {size}
        url = "{url}"
        [[artefact]]
        name = "model.onnx"
        [rung.fp32]
        precision = "fp32"
        files = {{ model = "model.onnx" }}
        '''
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, "exit codes"),
        (["nonsense"], 2, "invalid choice"),
        (["models", "build", "no-such-model"], 4, "there is no model 'no-such-model'"),
        (["models", "rm", "silero-vat"], 4, "did you mean 'silero-vad'"),
        (["--config", "/nowhere.toml", "doctor"], 2, "/nowhere.toml cannot be read"),
        (["wake", "okay-nabbu"], 2, "did you mean 'okay-nabu'"),
        (["wake", "okay-nabu", "high"], 2, "write a number"),
    ],
)
def test_exit_codes(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    result = parley(tmp_path, *arguments)
    assert result.returncode == code
    assert said in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_a_wrong_setting_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "config/parley").mkdir(parents=True)
    (tmp_path / "config/parley/parley.toml").write_text("[hear]\nthread = 2\n")
    result = parley(tmp_path, "models", "list")
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "parley.toml: there is no setting hear.thread" in result.stderr
    assert "fix: did you mean threads?" in result.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = parley(tmp_path, "models", "build", "none", "--debug")
    assert "Traceback" in result.stderr
    assert "ModelMissing" in result.stderr


def test_models_list_json(tmp_path: Path) -> None:
    manifest(tmp_path / "config/parley/models", "mine", "http://127.0.0.1:9/x")
    (tmp_path / "config/parley/models/broken.toml").write_text("id =")
    listed = json.loads(parley(tmp_path, "models", "list", "--json").stdout)
    mine = next(model for model in listed["models"] if model["id"] == "mine")
    assert (mine["state"], mine["bytes"], mine["optional"]) == ("missing", 0, True)
    assert "broken.toml" in listed["faults"][0]


def test_a_running_daemon_follows_the_commands(tmp_path: Path) -> None:
    daemon = Controls(tmp_path / "state/parley", ("okay-nabu",))
    for arguments in (["mute"], ["wake", "okay-nabu", "0.7"], ["press"]):
        result = parley(tmp_path, *arguments)
        assert (result.returncode, result.stderr) == (0, ""), arguments
    daemon.poll()
    assert daemon.state == State(True, {"okay-nabu": 0.7})
    assert daemon.pressed()
    assert "muted" in parley(tmp_path, "wake").stdout
    assert json.loads(parley(tmp_path, "mute", "off", "--json").stdout) == {"muted": False}
    assert parley(tmp_path, "wake", "okay-nabu", "default").returncode == 0
    daemon.poll()
    assert daemon.state == State()
    shown = json.loads(parley(tmp_path, "wake", "--json").stdout)
    assert (shown["mode"], shown["muted"]) == ("word", False)
    assert [word["word"] for word in shown["words"]] == ["okay-nabu", "hey-jarvis"]


def test_damaged_controls_are_told_and_mute(tmp_path: Path) -> None:
    (tmp_path / "state/parley").mkdir(parents=True)
    (tmp_path / "state/parley/controls.json").write_text("{")
    result = parley(tmp_path, "wake", "--json")
    assert json.loads(result.stdout)["muted"]
    assert "controls.json" in result.stderr
    assert "parley mute off" in result.stderr


def test_controls_that_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    for arguments in (["mute"], ["press"]):
        result = parley(tmp_path, *arguments)
        assert result.returncode == 6
        assert "cannot be written" in result.stderr
        assert "fix:" in result.stderr


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m appliance models list --json | head -c 1"
    shell = ["bash", "-o", "pipefail", "-c", command]
    result = subprocess.run(shell, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


class Slow(BaseHTTPRequestHandler):
    """Sends the beginning of a file and then nothing more."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"\0" * 100_000)
        self.wfile.flush()
        self.server.asked.set()  # type: ignore[attr-defined]
        self.server.done.wait(30)  # type: ignore[attr-defined]

    def log_message(self, *arguments: object) -> None:
        pass


def test_ctrl_c_during_a_build_leaves_nothing_half_made(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = True
    server.asked, server.done = threading.Event(), threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    manifest(tmp_path / "config/parley/models", "slow", f"http://127.0.0.1:{server.server_port}/model")
    command = [sys.executable, "-m", "appliance", "models", "build", "slow"]
    env = environment(tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert server.asked.wait(30)  # type: ignore[attr-defined]
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=30)
        finally:
            process.kill()
            server.done.set()  # type: ignore[attr-defined]
            server.shutdown()
            server.server_close()
    assert process.returncode == 130
    assert stderr.rstrip().endswith("stopped")
    assert "Traceback" not in stderr
    cache = tmp_path / "cache/parley/models"
    assert not list((cache / "built").glob("*"))
    assert not list((cache / "tmp").glob("*"))
    assert "missing" in parley(tmp_path, "models", "list", "--json").stdout
