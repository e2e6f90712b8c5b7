"""The commands that need models, run as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import wave
from pathlib import Path

import numpy as np
import pytest

from appliance.commands.demo import in_a_room
from appliance.controls import Controls
from firmware import wav

ROOT = Path(__file__).resolve().parents[2]


def parley(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "appliance", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=cwd, env=env, input=stdin, capture_output=True, check=False)


@pytest.fixture(scope="module")
def question(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("said") / "question.wav"
    result = parley("say", "What is the capital of France?", "-o", path)
    assert result.returncode == 0, result.stderr
    return path


def test_a_room_keeps_the_speech_and_adds_what_a_room_has() -> None:
    tone = np.sin(np.arange(16_000) * 0.1).astype(np.float32) * 0.3
    heard = in_a_room(tone, 16_000, before=0.5)
    assert np.std(heard[:8_000]) > 0
    assert np.std(heard[:8_000]) < 0.1 * np.std(tone)
    assert np.corrcoef(heard[8_000:24_000], tone)[0, 1] > 0.9
    assert not np.any(np.isnan(in_a_room(np.zeros(100, np.float32), 16_000)))


@pytest.mark.models
def test_what_was_said_is_understood(question: Path) -> None:
    result = parley("transcribe", question)
    assert result.stdout.decode().strip().lower().rstrip("?") == "what is the capital of france"


@pytest.mark.models
def test_pipes_carry_sound_both_ways(question: Path) -> None:
    spoken = parley("say", "-", "-o", "-", stdin=b"Good morning.").stdout
    assert spoken[:4] == b"RIFF"
    line = json.loads(parley("transcribe", "--json", "-", stdin=spoken).stdout)
    assert line["file"] == "-"
    assert "good morning" in line["text"].lower()
    assert 0 < line["passages"][0]["confidence"] <= 1


@pytest.mark.models
def test_a_question_gets_a_spoken_answer(question: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer.wav"
    result = parley("ask", question, "-o", answer, "--json")
    assert result.returncode == 0, result.stderr
    (turn,) = json.loads(result.stdout)["turns"]
    assert "france" in turn["transcript"].lower()
    assert "paris" in turn["answer"].lower()
    assert turn["ended"] == "complete"
    assert {"endpoint decided", "hear words", "say first sound"} <= set(turn["waterfall_ms"])
    assert "paris" in parley("transcribe", answer).stdout.decode().lower()
    with wave.open(str(answer)) as file:
        assert file.getnframes() > file.getframerate() // 2


@pytest.mark.models
def test_silence_is_no_question(tmp_path: Path) -> None:
    wav.write(tmp_path / "silence.wav", np.zeros(32_000, np.int16))
    result = parley("ask", tmp_path / "silence.wav", "--json", "-o", tmp_path / "none.wav")
    assert result.returncode == 0
    assert json.loads(result.stdout)["turns"] == []
    assert not (tmp_path / "none.wav").exists()


@pytest.mark.models
def test_a_typed_question_gets_text() -> None:
    result = parley("chat", "--json", "What is the capital of France?")
    assert "Paris" in json.loads(result.stdout)["answer"]


@pytest.mark.models
def test_a_file_that_is_not_sound_leaves_the_others_alone(question: Path, tmp_path: Path) -> None:
    text = tmp_path / "words.wav"
    text.write_text("these are words")
    result = parley("transcribe", text, question)
    assert result.returncode == 3
    assert b"capital of" in result.stdout
    assert b"is text, not sound" in result.stderr
    assert b"Traceback" not in result.stderr


@pytest.mark.models
def test_a_place_that_cannot_be_written(question: Path) -> None:
    result = parley("say", "Hello.", "-o", "/proc/hello.wav")
    assert result.returncode in (3, 6)
    assert b"/proc/hello.wav" in result.stderr
    assert b"Traceback" not in result.stderr


@pytest.mark.models
def test_ctrl_c_while_speaking_leaves_no_file(tmp_path: Path) -> None:
    out = tmp_path / "long.wav"
    command = [sys.executable, "-m", "appliance", "say", "-", "-o", str(out)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin
        process.stdin.write(b"This sentence is repeated for a long time. " * 500)
        process.stdin.close()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert process.stderr
        stderr = process.stderr.read()
    assert process.returncode == 130
    assert stderr == b"stopped\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.models
def test_the_demo_tells_the_whole_story(tmp_path: Path) -> None:
    result = parley("demo", "-o", tmp_path / "answer.wav", cwd=tmp_path)
    out = result.stdout.decode()
    assert result.returncode == 0, result.stderr
    assert "capital of France" in out
    assert "Parley" in out
    assert "Paris" in out
    assert "first sound" in out
    assert (tmp_path / "answer.wav").stat().st_size > 10_000


@pytest.mark.models
def test_without_a_sound_card_the_daemon_says_so_and_stays(tmp_path: Path) -> None:
    """It is told how to put that right, still takes what the user sets, and ends when it is asked to."""
    command = [sys.executable, "-m", "appliance", "run"]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PARLEY_AUDIO_INPUT": "no such microphone"}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        deadline = threading.Timer(90, process.kill)
        deadline.start()
        try:
            assert process.stderr
            lines = map(json.loads, process.stderr)
            lost = next(line for line in lines if line["event"].startswith("sound lost"))
            assert lost["message"]
            assert lost["fix"]
            Controls(tmp_path / "parley").mute(True)
            assert next(line for line in lines if line["event"] == "muted")
            process.send_signal(signal.SIGTERM)
            assert [line["event"] for line in lines][-1] == "stopped"
            assert process.wait(30) == 0
        finally:
            deadline.cancel()
            process.kill()
