from __future__ import annotations

import importlib.util
import json
import threading
from pathlib import Path

import pytest

from appliance import config, doctor
from appliance.__main__ import main
from appliance.controls import FILE, Controls
from appliance.errors import DeviceFault
from appliance.runtime.card import Shelf
from firmware import apm, device, preflight, speex
from firmware.device import Port
from firmware.preflight import System

LEVELS = {"ok", "warn", "fail"}


def test_json_has_the_documented_shape(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"healthy", "findings"}
    assert report["healthy"] == (code == 0)
    for finding in report["findings"]:
        assert set(finding) == {"check", "level", "found", "fix"}
        assert finding["level"] in LEVELS
        assert finding["found"]
        assert finding["fix"] or finding["level"] != "fail", "a failure must say what to do"
    checks = {finding["check"] for finding in report["findings"]}
    assert {"python", "processor", "cores", "memory", "clock", "libraries", "disk space"} <= checks
    assert checks & {"live audio", "microphone", "sound permission"}
    assert {"echo webrtc", "echo speex", "muted"} <= checks


def test_a_missing_cache_is_examined_where_it_would_be_made(tmp_path: Path) -> None:
    findings = {f.check: f for f in doctor.disk(tmp_path / "not/yet")}
    assert findings["disk speed"].level in LEVELS
    assert not (tmp_path / "not").exists()


def test_a_place_that_cannot_be_written_is_a_failure_with_a_fix() -> None:
    findings = {f.check: f for f in doctor.disk(Path("/proc/parley"))}
    assert findings["disk"].level == "fail"
    assert "/proc" in findings["disk"].fix


@pytest.mark.parametrize(
    ("sync", "kind", "level"), [(5.0, "ext4", "warn"), (5.0, "tmpfs", "warn"), (900.0, "ext4", "ok")]
)
def test_a_sync_that_is_too_fast_is_not_believed(sync: float, kind: str, level: str) -> None:
    assert doctor._sync_finding(sync, kind).level == level


def test_file_systems_are_told_apart() -> None:
    assert doctor.file_system(Path("/proc/self")) == "proc"


def test_processor_features_of_both_architectures() -> None:
    assert doctor.cpu_features({"flags": "fpu avx2 avx512_vnni"}) == ["avx2", "avx512_vnni"]
    assert doctor.cpu_features({"features": "fp asimd asimddp"}) == ["asimd", "asimddp"]
    assert doctor.cpu_features({}) == []


def test_unbuilt_models_name_the_command(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, config.Models(folders=()).folders)
    assert list(doctor.models(shelf)) == []
    manifests = Path(__file__).resolve().parents[2] / "models/quantized"
    for finding in doctor.models(Shelf(tmp_path, (manifests,))):
        assert "parley models build" in finding.fix


def test_a_broken_manifest_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("id = 3")
    (finding,) = doctor.models(Shelf(tmp_path, (tmp_path,)))
    assert finding.level == "fail"
    assert "mine.toml" in finding.found


# --- sound -------------------------------------------------------------------------------------------------------

KIOSK = System(user="kiosk", uid=1000, devices=frozenset({"audio"}), cards=1, rtprio=95)
USABLE = System(user="kiosk", uid=1000, devices=frozenset({"audio"}), usable=True, cards=1, rtprio=95)


def port(id: str, capture: int = 0, playback: int = 0) -> Port:
    return Port(id, 0, id, capture, playback, 48_000, ())


def gone(*arguments: object, **named: object) -> None:
    raise DeviceFault("its library is missing", "pip install it")


def test_a_user_who_is_not_in_the_group_gets_its_name_and_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(preflight, "system", lambda: KIOSK)
    assert main(["doctor"]) == 3
    out = capsys.readouterr().out
    assert "kiosk is not in the group audio" in out
    assert "sudo usermod -aG audio kiosk" in out


def test_a_box_without_sound_is_no_failure() -> None:
    findings = list(doctor.sound(config.Config(), System(user="root", uid=0, rtprio=-1)))
    assert {f.check for f in findings} == {"live audio", "echo webrtc", "echo speex"}
    assert "fail" not in {f.level for f in findings}
    assert all(f.fix for f in findings if f.level == "warn")


@pytest.mark.parametrize(
    ("wanted", "level", "said"),
    [("", "ok", "ALSA:Desk (this one is used), ALSA:Webcam"), ("Web", "ok", "ALSA:Webcam (this"), ("x", "warn", "'x'")],
)
def test_devices_are_listed_with_the_one_that_is_used(
    monkeypatch: pytest.MonkeyPatch, wanted: str, level: str, said: str
) -> None:
    ports = [port("ALSA:Desk", 1, 2), port("ALSA:Webcam", 2), port("ALSA:HDMI", 0, 2)]
    monkeypatch.setattr(device, "ports", lambda: ports)
    findings = {f.check: f for f in doctor.sound(config.Config(audio=config.Audio(input=wanted)), USABLE)}
    assert findings["microphone"].level == level
    assert said in findings["microphone"].found
    assert findings["loudspeaker"].found == "ALSA:Desk (this one is used), ALSA:HDMI"


def test_a_sound_server_that_does_not_answer_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(device, "ports", lambda: never.wait(10) or [])
    (finding,) = doctor.devices(config.Audio(), patience=0.05)
    never.set()
    assert "did not answer" in finding.found
    assert "systemctl" in finding.fix


def test_a_card_that_cancels_its_echo_needs_no_canceller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "ports", lambda: [port("Jabra SPEAK 510", 1, 2)])
    for chosen, level in (("auto", "ok"), ("speex", "warn")):
        findings = {f.check: f for f in doctor.devices(config.Audio(echo=chosen))}
        assert findings["echo"].level == level
        assert "Jabra" in findings["echo"].found
        assert "is used" not in findings["echo webrtc"].found


@pytest.mark.parametrize(
    ("chosen", "lacking", "webrtc", "speexdsp"),
    [
        ("auto", "webrtc", "not there: speex is used instead", "works, and is used"),
        ("speex", "speex", "works, and is used", "not there: webrtc is used instead"),
        ("auto", "speex", "works, and is used", "not there, and not needed"),
        ("auto", "webrtc speex", "not there: the box is deaf while it speaks", "not there, and not needed"),
        ("off", "webrtc speex", "not there, and not needed", "not there, and not needed"),
    ],
)
def test_a_canceller_that_is_missing_matters_where_it_is_chosen(
    monkeypatch: pytest.MonkeyPatch, chosen: str, lacking: str, webrtc: str, speexdsp: str
) -> None:
    for door in (apm, speex):
        name = "webrtc" if door is apm else "speex"
        monkeypatch.setattr(door, "check", gone if name in lacking else lambda: None)
    findings = {f.check: f for f in doctor.echo(config.Audio(echo=chosen), "")}
    assert findings["echo webrtc"].found.startswith(webrtc)
    assert findings["echo speex"].found.startswith(speexdsp)
    for finding in findings.values():
        assert finding.level == ("warn" if "not there:" in finding.found else "ok")
        assert finding.fix == ("pip install it" if "not there" in finding.found else "")


def test_wake_words_need_a_runtime_and_a_model_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wake, empty = config.Wake(words=("okay-nabu", "xyz")), Shelf(tmp_path, ())
    findings = list(doctor.wake_words(wake, empty))
    assert [f.level for f in findings] == ["fail", "fail"]
    assert [word in f.found for word, f in zip(wake.words, findings, strict=True)] == [True, True]
    assert all(f.fix for f in findings)
    for there, lacking in (("", "ai-edge-litert pymicro-features"), ("tflite_runtime", "pymicro-features")):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, there=there: name == there or None)
        (finding,) = doctor.wake_words(wake, empty)
        assert finding.fix.endswith(f"pip install {lacking}")
    (finding,) = doctor.wake_words(config.Wake(mode="button"), empty)
    assert finding.level == "ok"


def test_a_muted_box_says_how_to_open_the_microphone(tmp_path: Path) -> None:
    assert [f.level for f in doctor.muted(tmp_path)] == ["ok"]
    Controls(tmp_path).mute(True)
    (finding,) = doctor.muted(tmp_path)
    assert (finding.level, finding.fix) == ("warn", "parley mute off")
    (tmp_path / FILE).write_text("?")
    (finding,) = doctor.muted(tmp_path)
    assert "damaged" in finding.found
