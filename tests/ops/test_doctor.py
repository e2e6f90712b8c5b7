from __future__ import annotations

import json
from pathlib import Path

import pytest

from appliance import config, doctor
from appliance.__main__ import main
from appliance.runtime.card import Shelf

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
    assert checks & {"live audio", "microphone"}


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
