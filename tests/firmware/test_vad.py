from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware import wav
from firmware.frame import FRAME, RATE, Frame, Pcm
from firmware.vad import CONTEXT, WINDOW, Edge, Hysteresis, Vad

MS = RATE // 1000


class Recorder:
    """Stands for the graph: its probability depends on every sample it was shown and on its state."""

    def __init__(self) -> None:
        self.windows: list[np.ndarray] = []

    def __call__(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        window = tensors["input"]
        assert window.shape == (1, CONTEXT + WINDOW)
        assert window.dtype == np.float32
        assert tensors["state"].shape == (2, 1, 128)
        assert int(tensors["sr"]) == RATE
        self.windows.append(window[0])
        state = tensors["state"] * np.float32(0.5) + np.abs(window).mean()
        return {"output": state[0, :, :1], "stateN": state}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 1500), min_size=1, max_size=20))
def test_any_split_gives_the_same_probabilities(sizes: list[int]) -> None:
    sound = np.random.default_rng(0).integers(-30000, 30000, sum(sizes)).astype(np.int16)
    split, whole = Vad(Recorder()), Vad(Recorder())
    found = [p for part in np.split(sound, np.cumsum(sizes)[:-1]) for p in split.windows(part)]
    assert found == whole.windows(sound)
    assert len(found) == len(sound) // WINDOW
    assert split.probability == whole.probability


def test_windows_overlap_by_the_context() -> None:
    graph = Recorder()
    Vad(graph).windows(np.arange(3 * WINDOW, dtype=np.int16))
    assert not graph.windows[0][:CONTEXT].any()
    for before, after in zip(graph.windows, graph.windows[1:], strict=False):
        np.testing.assert_array_equal(before[-CONTEXT:], after[:CONTEXT])


def test_reset_forgets() -> None:
    vad = Vad(Recorder())
    first = vad.windows(np.full(2000, 999, np.int16))
    vad.reset()
    assert vad.probability == 0.0
    assert vad.windows(np.full(2000, 999, np.int16)) == first


runs = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.4, 0.45, 0.6, 1.0]), st.integers(1, 40)), min_size=1, max_size=25
)
"""Probabilities and for how many units of 10 ms each holds."""


def follow(hysteresis: Hysteresis, steps: Iterator[tuple[float, int]]) -> list[Edge]:
    return [edge for p, n in steps if (edge := hysteresis.step(p, n)) is not None]


@settings(max_examples=200, deadline=None)
@given(runs, st.randoms(use_true_random=False))
def test_any_split_gives_the_same_edges(steps: list[tuple[float, int]], random: Any) -> None:
    def cut(count: int) -> Iterator[int]:
        while count:
            part = random.randint(1, count)
            yield part
            count -= part

    by_frame, split = Hysteresis(), Hysteresis()
    edges = follow(by_frame, ((p, FRAME) for p, count in steps for _ in range(count)))
    others = follow(split, ((p, part) for p, count in steps for part in cut(count * FRAME)))
    assert edges == others
    assert (by_frame.speech, by_frame.silence, by_frame.speaking) == (split.speech, split.silence, split.speaking)


@settings(max_examples=200, deadline=None)
@given(runs)
def test_edges_alternate_and_never_go_back(steps: list[tuple[float, int]]) -> None:
    hysteresis = Hysteresis()
    edges = follow(hysteresis, ((p, FRAME) for p, count in steps for _ in range(count)))
    assert [edge.kind for edge in edges] == ["started", *["paused", "resumed"] * len(edges)][: len(edges)]
    assert [edge.at for edge in edges] == sorted(edge.at for edge in edges)
    assert 0 <= hysteresis.silence <= hysteresis.speech <= hysteresis.now
    assert (hysteresis.silence > 0) == (bool(edges) and edges[-1].kind == "paused")


def run(hysteresis: Hysteresis, *parts: tuple[float, int]) -> list[Edge]:
    """Parts are probabilities and milliseconds."""
    return follow(hysteresis, ((p, FRAME) for p, ms in parts for _ in range(ms // 10)))


def test_edges_say_where_it_happened() -> None:
    edges = run(Hysteresis(), (0.0, 500), (0.9, 1000), (0.1, 300), (0.9, 200), (0.0, 100))
    assert edges == [
        Edge("started", 500 * MS),
        Edge("paused", 1500 * MS),
        Edge("resumed", 1800 * MS),
        Edge("paused", 2000 * MS),
    ]


def test_a_click_is_no_speech() -> None:
    assert run(Hysteresis(), (0.0, 100), (1.0, 40), (0.0, 500), (1.0, 80), (0.0, 100)) == []


def test_a_click_does_not_end_a_silence() -> None:
    hysteresis = Hysteresis()
    run(hysteresis, (1.0, 500), (0.0, 200), (1.0, 40), (0.0, 200))
    assert hysteresis.silence == 440 * MS


def test_half_a_voice_in_steady_noise_is_silence_before_long() -> None:
    """C24: a probability that stays between the thresholds must not hold the turn open."""
    hysteresis = Hysteresis()
    assert run(hysteresis, (1.0, 500), (0.45, 390)) == [Edge("started", 0)]
    assert hysteresis.silence == 0
    assert run(hysteresis, (0.45, 10)) == [Edge("paused", 500 * MS)]
    assert hysteresis.silence == 400 * MS


def test_after_reset_it_starts_again() -> None:
    hysteresis = Hysteresis()
    first = run(hysteresis, (1.0, 500))
    hysteresis.reset()
    assert not hysteresis.speaking
    assert run(hysteresis, (1.0, 500)) == first


def test_impossible_thresholds() -> None:
    with pytest.raises(ValueError, match="thresholds"):
        Hysteresis(start=0.3, stop=0.5)


def mixed(speech: Pcm, noise: np.ndarray, snr: float) -> Pcm:
    """Two seconds of noise, the speech in it, and three seconds more."""
    whole = np.resize(noise, len(speech) + 5 * RATE)
    whole = whole / whole.std() * speech[speech != 0].std() * 10 ** (-snr / 20)
    whole[2 * RATE : 2 * RATE + len(speech)] += speech
    return whole.clip(-32768, 32767).astype(np.int16)


def noises() -> Iterator[np.ndarray]:
    white = np.random.default_rng(0).standard_normal(8 * RATE)
    yield white
    spectrum = np.fft.rfft(white)
    yield np.fft.irfft(spectrum / np.sqrt(np.maximum(1, np.arange(len(spectrum)))))
    time = np.arange(8 * RATE) / RATE
    yield sum((np.sin(2 * np.pi * 50 * n * time) / n for n in range(1, 12)), np.zeros(8 * RATE))


@pytest.mark.models("silero-vad")
@pytest.mark.shared
def test_a_command_in_steady_noise_ends(shelf: Any, shared_audio: Any) -> None:
    """C24, with the real detector: at 5 dB the silence behind the words is seen, and no turn before."""
    from appliance.runtime.ort import OrtModel

    built = shelf.built("silero-vad")
    path: Path = next(built.folder.glob("*.onnx"))
    clips = [entry.path for entry in shared_audio if entry.path.name.startswith("sense_and")][:3]
    with OrtModel(path).session() as infer:
        for clip in clips:
            speech = np.trim_zeros(wav.read(clip).samples)
            for noise in noises():
                vad, hysteresis = Vad(infer), Hysteresis()
                sound = mixed(speech, noise, 5.0)
                edges = []
                for at in range(0, len(sound) // FRAME * FRAME, FRAME):
                    frame = Frame(at, sound[at : at + FRAME])
                    edges.append(hysteresis.step(vad.push(frame), FRAME))
                    if hysteresis.now >= 2 * RATE + len(speech) and hysteresis.silence >= 600 * MS:
                        break
                started = next(edge for edge in edges if edge)
                assert started.kind == "started"
                assert 2 * RATE - 100 * MS < started.at < 2 * RATE + 800 * MS
                assert hysteresis.now - 2 * RATE - len(speech) <= 1200 * MS
