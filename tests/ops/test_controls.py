from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance import controls
from appliance.controls import Controls, State
from appliance.errors import ConfigFault, StorageFault

WORDS = ("okay-nabu", "hey-jarvis")


def at(folder: Path) -> Controls:
    return Controls(folder, WORDS)


def test_a_fresh_box_listens_and_writes_nothing(tmp_path: Path) -> None:
    fresh = at(tmp_path / "state")
    fresh.poll()
    assert fresh.state == State()
    assert not (tmp_path / "state").exists()


def test_what_is_changed_counts_at_once_and_stays_over_a_restart(tmp_path: Path) -> None:
    live = at(tmp_path / "state")
    live.mute(True)
    live.threshold("okay-nabu", 0.7)
    live.threshold("hey-jarvis", 0.6)
    live.threshold("hey-jarvis", None)
    assert live.state == State(True, {"okay-nabu": 0.7})
    assert at(tmp_path / "state").state == live.state
    live.mute(False)
    assert not at(tmp_path / "state").muted
    assert [path.name for path in (tmp_path / "state").iterdir()] == [controls.FILE]
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_another_process_is_followed_at_the_next_poll(tmp_path: Path) -> None:
    daemon, command = at(tmp_path), at(tmp_path)
    told: list[State] = []
    daemon.subscribe(lambda: told.append(daemon.state))
    command.mute(True)
    command.threshold("okay-nabu", 0.7)
    assert not daemon.muted
    daemon.poll()
    daemon.poll()
    assert told == [State(True, {"okay-nabu": 0.7})]
    command.mute(False)
    daemon.poll()
    assert not daemon.muted


def test_two_who_change_different_things_lose_neither(tmp_path: Path) -> None:
    daemon, command = at(tmp_path), at(tmp_path)
    command.mute(True)
    daemon.threshold("okay-nabu", 0.4)  # before it has polled
    assert daemon.state == at(tmp_path).state == State(True, {"okay-nabu": 0.4})


def test_the_newer_of_two_thresholds_stays(tmp_path: Path) -> None:
    daemon, command = at(tmp_path), at(tmp_path)
    command.threshold("okay-nabu", 0.3)
    daemon.threshold("okay-nabu", 0.4)
    assert at(tmp_path).thresholds == {"okay-nabu": 0.4}
    command.threshold("okay-nabu", 0.5)
    daemon.poll()
    assert daemon.thresholds == {"okay-nabu": 0.5}


@pytest.mark.parametrize(
    ("word", "value", "said"),
    [
        ("okay-nabbu", 0.5, "did you mean 'okay-nabu'?"),
        ("xyz", 0.5, "known are: okay-nabu, hey-jarvis"),
        ("okay-nabu", 1.0, "between 0 and 1"),
        ("okay-nabu", 0.0, "between 0 and 1"),
        ("okay-nabu", float("nan"), "between 0 and 1"),
    ],
)
def test_a_wrong_threshold_is_refused_and_says_why(tmp_path: Path, word: str, value: float, said: str) -> None:
    live = at(tmp_path)
    with pytest.raises(ConfigFault) as caught:
        live.threshold(word, value)
    assert said in caught.value.fix
    assert live.state == State()


# --- the button --------------------------------------------------------------------------------------------------


def test_each_press_counts_once_and_old_ones_not_at_all(tmp_path: Path) -> None:
    controls.push_button(tmp_path)
    daemon = at(tmp_path)
    told: list[bool] = []
    daemon.subscribe(lambda: told.append(daemon.pressed()))
    daemon.poll()
    assert not daemon.pressed()
    for _ in range(2):
        controls.push_button(tmp_path)
        daemon.poll()
        daemon.poll()
    daemon.press()
    assert told == [True, True, True]
    assert not daemon.pressed()


def test_the_button_can_be_pressed_by_touching_its_file(tmp_path: Path) -> None:
    daemon = at(tmp_path)
    (tmp_path / controls.BUTTON).touch()
    daemon.poll()
    assert daemon.pressed()
    (tmp_path / controls.BUTTON).unlink()
    daemon.poll()
    assert not daemon.pressed()


def test_a_press_outlives_no_mute(tmp_path: Path) -> None:
    """What nobody has asked for does not open a turn once the microphone is open again."""
    live = at(tmp_path)
    live.press()
    live.mute(True)
    assert not live.pressed()
    live.press()
    assert live.pressed(), "who asks while it is muted can tell the user so"
    live.press()
    live.mute(False)
    assert not live.pressed()


def test_to_open_the_microphone_and_press_at_once_is_a_press(tmp_path: Path) -> None:
    live, command = at(tmp_path), at(tmp_path)
    live.mute(True)
    command.poll()
    command.mute(False)
    controls.push_button(tmp_path)
    live.poll()
    assert live.pressed()


# --- a disk that fails -------------------------------------------------------------------------------------------


@pytest.fixture
def broken_disk(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A disk that is full from now on."""

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(controls.os, "fsync", full)
    return monkeypatch


def test_a_full_disk_says_so_and_the_change_counts_all_the_same(
    tmp_path: Path, broken_disk: pytest.MonkeyPatch
) -> None:
    live = at(tmp_path)
    with pytest.raises(StorageFault, match="No space left") as caught:
        live.mute(True)
    assert "is not kept" in caught.value.message
    assert caught.value.fix
    live.poll()
    assert live.muted
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_kept_is_not_undone_by_what_others_write(tmp_path: Path, broken_disk: pytest.MonkeyPatch) -> None:
    live = at(tmp_path)
    with pytest.raises(StorageFault):
        live.mute(True)
    broken_disk.undo()
    at(tmp_path).threshold("okay-nabu", 0.7)  # its file says: not muted
    live.poll()
    assert live.state == State(True, {"okay-nabu": 0.7})


def test_what_was_not_kept_gives_way_to_what_was(tmp_path: Path, broken_disk: pytest.MonkeyPatch) -> None:
    live = at(tmp_path)
    with pytest.raises(StorageFault):
        live.threshold("okay-nabu", 0.3)
    broken_disk.undo()
    at(tmp_path).threshold("okay-nabu", 0.7)
    live.poll()
    assert live.thresholds == {"okay-nabu": 0.7}


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in its place")
    live = at(tmp_path / "state")
    assert live.muted, "what cannot be looked at may say so"
    for change in (lambda: live.mute(False), lambda: controls.push_button(tmp_path / "state")):
        with pytest.raises(StorageFault, match="state"):
            change()
    assert not live.muted


def test_who_writes_waits_for_another_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = at(tmp_path)
    monkeypatch.setattr(controls, "PATIENCE", 0.05)
    with controls._locked(tmp_path), pytest.raises(StorageFault, match="another process"):
        live.mute(True)
    live.mute(True)
    assert at(tmp_path).muted


def test_a_write_in_progress_holds_up_neither_mute_nor_poll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that takes long to write: the microphone is closed before it has, and frames go on."""
    live, begun, release = at(tmp_path), threading.Event(), threading.Event()
    real = os.fsync

    def slow(handle: int) -> None:
        if not os.path.isdir(f"/proc/self/fd/{handle}"):
            return real(handle)
        begun.set()  # the new file is in its place already
        assert release.wait(10)
        return real(handle)

    monkeypatch.setattr(controls.os, "fsync", slow)
    first = threading.Thread(target=live.threshold, args=("okay-nabu", 0.5))
    second = threading.Thread(target=live.mute, args=(True,))
    told = threading.Event()
    first.start()
    assert begun.wait(10)
    live.subscribe(told.set)
    second.start()
    assert told.wait(10)
    assert live.muted
    live.poll()
    release.set()
    first.join(10)
    second.join(10)
    assert at(tmp_path).state == State(True, {"okay-nabu": 0.5})


# --- a file that is not what was written -------------------------------------------------------------------------

WHOLE = b'{"muted": false, "thresholds": {"okay-nabu": 0.7}}'


def test_a_half_written_file_mutes_and_can_be_put_right(tmp_path: Path) -> None:
    for length in range(len(WHOLE)):
        assert controls.parse(WHOLE[:length])[0] == State(muted=True), WHOLE[:length]
    (tmp_path / controls.FILE).write_bytes(WHOLE[:20])
    live = at(tmp_path)
    assert live.muted
    assert live.doubt
    live.mute(False)
    assert not live.doubt
    assert at(tmp_path).state == State()


def test_a_file_that_is_damaged_while_the_box_runs_mutes(tmp_path: Path) -> None:
    live = at(tmp_path)
    live.threshold("okay-nabu", 0.7)
    (tmp_path / controls.FILE).write_bytes(b"")
    live.poll()
    assert live.muted
    (tmp_path / controls.FILE).write_bytes(WHOLE)
    live.poll()
    assert live.state == State(False, {"okay-nabu": 0.7})


def test_a_file_that_is_gone_says_nothing(tmp_path: Path) -> None:
    live = at(tmp_path)
    live.mute(True)
    (tmp_path / controls.FILE).unlink()
    live.poll()
    assert live.muted


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / controls.FILE)
    assert at(tmp_path).muted
    (tmp_path / controls.FILE).unlink()
    (tmp_path / controls.FILE).mkdir()
    assert at(tmp_path).muted


@pytest.mark.parametrize(
    ("text", "state", "doubt"),
    [
        (WHOLE.decode(), State(False, {"okay-nabu": 0.7}), ""),
        ('{"muted": true}', State(True), ""),
        ('{"muted": false, "later": 1}', State(False), ""),
        ('{"muted": 0}', State(True), "muted is neither"),
        ('{"thresholds": {"a": 0.5}}', State(True, {"a": 0.5}), "muted is neither"),
        ('{"muted": false, "thresholds": [1]}', State(False), "thresholds is no table"),
        (
            '{"muted": false, "thresholds": {"a": 2, "b": NaN, "c": true, "d": 0.1}}',
            State(False, {"d": 0.1}),
            "'a' is 2",
        ),
        ('{"muted": false, "thresholds": {"a": 1' + "0" * 400 + "}}", State(False), "'a' is 1000"),
        ("[" * 50_000, State(True), "not what was written"),
        (WHOLE.decode() + " " * controls.LARGEST, State(True), "not what was written"),
    ],
)
def test_what_can_be_understood_is_taken(text: str, state: State, doubt: str) -> None:
    found, said = controls.parse(text.encode())
    assert found == state
    assert doubt in said
    assert bool(said) == bool(doubt)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["muted", "thresholds", "a"]), inner),
    max_leaves=8,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=200, deadline=None)
def test_no_content_raises_and_garbage_never_opens_the_microphone(data: bytes) -> None:
    state, _ = controls.parse(data)
    assert all(0 < value < 1 for value in state.thresholds.values())
    if not state.muted:
        assert json.loads(data)["muted"] is False


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["on", "off", "set", "poll"])), max_size=12))
@settings(max_examples=30, deadline=None)
def test_who_polls_agrees_with_the_file(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]) -> None:
    folder = tmp_path_factory.mktemp("state")
    both = at(folder), at(folder)
    for number, (who, what) in enumerate(steps):
        match what:
            case "poll":
                both[who].poll()
            case "set":
                both[who].threshold(WORDS[who], (number + 1) / 20)
            case _:
                both[who].poll()
                both[who].mute(what == "on")
    for one in both:
        one.poll()
    assert both[0].state == both[1].state == at(folder).state
