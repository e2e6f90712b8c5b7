from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firmware import wav
from firmware.fault import AudioFault, StorageFault
from firmware.frame import FRAME, RATE, Pcm

fuzz = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sine(rate: int = RATE, seconds: float = 0.5, hertz: float = 440.0) -> Pcm:
    return (12_000 * np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate)).astype(np.int16)


def chunk(id: bytes, body: bytes, length: int | None = None) -> bytes:
    return id + struct.pack("<I", len(body) if length is None else length) + body + b"\0" * (len(body) % 2)


def form(tag: int, channels: int, rate: int, width: int, extra: bytes = b"") -> bytes:
    return struct.pack("<HHIIHH", tag, channels, rate, rate * channels * width, channels * width, width * 8) + extra


def file(*chunks: bytes, riff: bytes = b"RIFF", length: int | None = None) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return riff + struct.pack("<I", len(body) if length is None else length) + body


PLAIN = form(1, 1, RATE, 2)


def save(folder: Path, content: bytes, name: str = "sound.wav") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def same(found: Pcm, wanted: Pcm, tolerance: int = 1) -> bool:
    return len(found) == len(wanted) and int(np.abs(found.astype(int) - wanted).max(initial=0)) <= tolerance


def packed(wave: np.ndarray, kind: str) -> tuple[int, int, bytes]:
    """Tag, width and the bytes of a wave in [-1, 1]."""
    match kind:
        case "u8":
            return 1, 1, (wave * 128 + 128).round().clip(0, 255).astype(np.uint8).tobytes()
        case "s16":
            return 1, 2, (wave * 2**15).round().astype("<i2").tobytes()
        case "s24":
            words = (wave * 2**23).round().astype("<i4").view(np.uint8).reshape(-1, 4)
            return 1, 3, words[:, :3].tobytes()
        case "s32":
            return 1, 4, (wave * 2**31).round().astype("<i4").tobytes()
        case "f32":
            return 3, 4, wave.astype("<f4").tobytes()
    return 3, 8, wave.astype("<f8").tobytes()


@pytest.mark.parametrize("kind", ["u8", "s16", "s24", "s32", "f32", "f64"])
@pytest.mark.parametrize("extensible", [False, True])
def test_every_sample_format(tmp_path: Path, kind: str, extensible: bool) -> None:
    wanted = sine()
    tag, width, data = packed(wanted / 32768, kind)
    about = form(tag, 1, RATE, width)
    if extensible:
        guid = struct.pack("<H", tag) + b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
        about = form(0xFFFE, 1, RATE, width, struct.pack("<HHI", 22, width * 8, 4) + guid)
    found = wav.read(save(tmp_path, file(chunk(b"fmt ", about), chunk(b"data", data))))
    assert same(found.samples, wanted, 130 if kind == "u8" else 1)
    assert found.notes == ()


def test_twenty_four_bits_in_four_bytes(tmp_path: Path) -> None:
    wanted = sine()
    about = struct.pack("<HHIIHH", 1, 1, RATE, RATE * 4, 4, 24)
    data = (wanted.astype("<i4") << 16).tobytes()
    assert same(wav.read(save(tmp_path, file(chunk(b"fmt ", about), chunk(b"data", data)))).samples, wanted)


@pytest.mark.parametrize(("tag", "name"), [(6, "A-law"), (7, "mu-law")])
def test_g711(tmp_path: Path, tag: int, name: str) -> None:
    """Every code must decode to what the standard library of Python 3.11 says."""
    audioop = pytest.importorskip("audioop")
    codes = bytes(range(256)) * 20
    decode = audioop.alaw2lin if tag == 6 else audioop.ulaw2lin
    found = wav.read(save(tmp_path, file(chunk(b"fmt ", form(tag, 1, RATE, 1)), chunk(b"data", codes))))
    assert found.format == f"WAV, {name}"
    assert same(found.samples, np.frombuffer(decode(codes, 2), np.int16), 0)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_any_rate_and_channels(tmp_path: Path, rate: int, channels: int) -> None:
    sound = np.repeat(sine(rate), channels)
    found = wav.read(save(tmp_path, file(chunk(b"fmt ", form(1, channels, rate, 2)), chunk(b"data", sound.tobytes()))))
    assert (found.rate, found.channels) == (rate, channels)
    wanted = sine()
    assert abs(len(found.samples) - len(wanted)) <= 1
    assert np.abs(found.samples[800:7000].astype(int) - wanted[800:7000]).max() < 8


@pytest.mark.parametrize("claimed", [0, 100, 10**6, 0x7FFFFFFF, 0x7FFFF000, 0x80000000, 0xFFFFFFFF, 0xFFFFFFDB])
@pytest.mark.parametrize("riff", [0, None, 0xFFFFFFFF])
def test_a_length_that_lies(tmp_path: Path, claimed: int, riff: int | None) -> None:
    wanted = sine()
    content = file(chunk(b"fmt ", PLAIN), chunk(b"data", wanted.tobytes(), claimed), length=riff)
    found = wav.read(save(tmp_path, content))
    assert same(found.samples, wanted, 0)
    assert found.notes == () or "it holds 0.50 s" in found.notes[0]


def test_a_lie_is_told(tmp_path: Path) -> None:
    content = file(chunk(b"fmt ", PLAIN), chunk(b"data", sine().tobytes(), 96_000))
    assert wav.read(save(tmp_path, content)).notes == ("its header promises 3.00 s, it holds 0.50 s",)


@pytest.mark.parametrize("cut", [44, 45, 46, 1000, 1001])
def test_cut_off(tmp_path: Path, cut: int) -> None:
    wanted = sine()
    content = file(chunk(b"fmt ", PLAIN), chunk(b"data", wanted.tobytes()))[:cut]
    assert same(wav.read(save(tmp_path, content)).samples, wanted[: (cut - 44) // 2], 0)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("tail", [b"", chunk(b"LIST", b"INFOISFT\x05\0\0\0Lavf\0"), b"TAG" + b" " * 125, b"\0"])
def test_other_chunks_are_not_sound(tmp_path: Path, padded: bool, tail: bytes) -> None:
    wanted = sine()
    odd = chunk(b"LIST", b"INFOxyz")
    content = file(
        odd if padded else odd[:-1], chunk(b"fmt ", PLAIN), chunk(b"fact", b"abcd"), chunk(b"data", wanted.tobytes())
    )
    assert same(wav.read(save(tmp_path, content + tail)).samples, wanted, 0)


def test_odd_data_with_a_trailer(tmp_path: Path) -> None:
    about = form(1, 1, RATE, 1)
    content = file(chunk(b"fmt ", about), chunk(b"data", bytes([128] * 999)), chunk(b"LIST", b"INFO"))
    assert len(wav.read(save(tmp_path, content)).samples) == 999


def test_more_than_four_gigabytes(tmp_path: Path) -> None:
    """RF64; the length is what counts here, not the size of the test."""
    wanted = sine()
    sizes = struct.pack("<QQQI", 0, 2 * len(wanted), len(wanted), 0)
    content = file(
        chunk(b"ds64", sizes),
        chunk(b"fmt ", PLAIN),
        chunk(b"data", wanted.tobytes(), 0xFFFFFFFF),
        chunk(b"LIST", b"INFO"),
        riff=b"RF64",
        length=0xFFFFFFFF,
    )
    assert same(wav.read(save(tmp_path, content)).samples, wanted, 0)


def test_not_a_number_is_silence(tmp_path: Path) -> None:
    data = np.array([np.nan, np.inf, -np.inf, 2.0, -3.0, 0.5], "<f4").tobytes()
    found = wav.read(save(tmp_path, file(chunk(b"fmt ", form(3, 1, RATE, 4)), chunk(b"data", data))))
    assert found.samples.tolist() == [0, 32767, -32768, 32767, -32768, 16384]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty (0 bytes)"),
        (
            b"Hello, this is a transcript.\nNot sound.",
            "is text, not sound: it begins with 'Hello, this is a transcript.'",
        ),
        ("Grüße, größer".encode(), "is text"),
        ("text".encode("utf-16"), "is text"),
        (b"\x1a\x45\xdf\xa3" + bytes(50), "is WebM or Matroska, which cannot be read (convert it: ffmpeg -i"),
        (b"\0\0\0\x20ftypM4A " + bytes(50), "is MP4 or M4A"),
        (b"FORM\0\0\0\x10AIFF", "is AIFF"),
        (b"OggS" + bytes(24) + b"OpusHead" + bytes(20), "is Opus"),
        (b"RIFF\x10\0\0\0AVI LIST", "is AVI"),
        (bytes(range(256)), "is no sound file that can be recognised (if it holds raw samples"),
        (b"RIFF\x04\0\0\0WAVE", "no description of its samples"),
        (file(chunk(b"fmt ", PLAIN)), "no sound in it"),
        (file(chunk(b"fmt ", PLAIN[:8]), chunk(b"data", b"ab")), "header is cut off"),
        (file(chunk(b"fmt ", form(0x11, 1, RATE, 1)), chunk(b"data", b"ab")), "IMA ADPCM"),
        (file(chunk(b"fmt ", form(1, 0, RATE, 2)), chunk(b"data", b"ab")), "claims 0 channels"),
        (file(chunk(b"fmt ", form(1, 1, 0, 2)), chunk(b"data", b"ab")), "at 0 Hz"),
        (b"fLaC" + bytes(100), "is FLAC, and damaged"),
    ],
)
def test_what_cannot_be_read_says_what_it_is(tmp_path: Path, content: bytes, words: str) -> None:
    path = save(tmp_path, content, "given.wav")
    with pytest.raises(AudioFault) as caught:
        wav.read(path)
    assert words in str(caught.value)
    assert str(path) in caught.value.message
    assert caught.value.fix
    with pytest.raises(AudioFault):
        list(wav.frames(path))


def test_places_that_hold_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path, "is a directory"),
        (tmp_path / "none.wav", "No such file"),
        (tmp_path / "pipe", "is a pipe"),
        (Path("a\0b"), "is no path"),
        (tmp_path / ("x" * 300), "too long"),
    ):
        with pytest.raises(AudioFault, match=words):
            wav.read(path)


@fuzz
@given(st.binary(max_size=300))
def test_arbitrary_bytes(tmp_path: Path, content: bytes) -> None:
    for head in (b"", b"RIFF\0\0\0\0WAVE", b"RF64\xff\xff\xff\xffWAVEds64", b"fLaC", b"ID3", b"\xff\xfb", b"OggS"):
        survives(save(tmp_path, head + content))


@fuzz
@given(st.integers(0, 79), st.lists(st.tuples(st.integers(0, 79), st.integers(0, 255)), max_size=6))
def test_mutated_headers(tmp_path: Path, cut: int, changes: list[tuple[int, int]]) -> None:
    content = bytearray(
        file(chunk(b"LIST", b"INFOx"), chunk(b"fmt ", PLAIN), chunk(b"data", sine(seconds=0.01).tobytes()))
    )
    for at, value in changes:
        content[at] = value
    survives(save(tmp_path, bytes(content)))
    survives(save(tmp_path, bytes(content[:cut])))


@pytest.mark.skipif(not shutil.which("sox"), reason="needs sox to make the file")
@pytest.mark.parametrize("kind", ["flac", "ogg"])
def test_mutated_codecs(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("miniaudio")
    wav.write(tmp_path / "in.wav", sine())
    subprocess.run(["sox", tmp_path / "in.wav", tmp_path / f"out.{kind}"], check=True)
    content = (tmp_path / f"out.{kind}").read_bytes()
    random = np.random.default_rng(3)
    for _ in range(300):
        mutant = bytearray(content)
        for at in random.integers(4, len(content), random.integers(1, 8)):
            mutant[at] = random.integers(256)
        survives(save(tmp_path, bytes(mutant[: random.integers(10, len(content) + 1)]), f"mutant.{kind}"))


def survives(path: Path) -> None:
    """Is read, or refused by name; any other exception fails the test."""
    try:
        found = wav.read(path)
    except AudioFault:
        return
    assert found.samples.dtype == np.int16
    assert sum(len(frame.samples) for frame in wav.frames(path)) == -(-len(found.samples) // FRAME) * FRAME


@pytest.mark.skipif(not shutil.which("sox"), reason="needs sox to make the files")
@pytest.mark.parametrize(("kind", "name"), [("flac", "FLAC"), ("ogg", "Ogg Vorbis")])
def test_codecs(tmp_path: Path, kind: str, name: str) -> None:
    pytest.importorskip("miniaudio")
    wav.write(tmp_path / "in.wav", sine(44_100), 44_100)
    subprocess.run(["sox", "in.wav", "-c", "2", f"out.{kind}"], check=True, cwd=tmp_path)
    misnamed = (tmp_path / f"out.{kind}").rename(tmp_path / "misnamed.wav")
    found = wav.read(misnamed)
    assert (found.format, found.rate, found.channels) == (name, 44_100, 2)
    assert np.corrcoef(found.samples[:7900], sine()[:7900])[0, 1] > 0.99


def test_without_the_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "miniaudio", None)
    with pytest.raises(AudioFault, match="needs the miniaudio package"):
        wav.read(save(tmp_path, b"fLaC" + bytes(100)))


def test_frames_are_the_recording(tmp_path: Path) -> None:
    wav.write(tmp_path / "a.wav", sine(44_100, 0.333), 44_100)
    whole = wav.read(tmp_path / "a.wav").samples
    found = list(wav.frames(tmp_path / "a.wav"))
    assert [frame.at for frame in found] == list(range(0, FRAME * len(found), FRAME))
    joined = np.concatenate([frame.samples for frame in found])
    np.testing.assert_array_equal(joined[: len(whole)], whole)
    assert not joined[len(whole) :].any()


def test_a_long_recording_is_not_held_in_memory(tmp_path: Path) -> None:
    """Three hours at 44.1 kHz stereo in a sparse file; the first minute of it shows whether memory grows."""
    path = save(tmp_path, file(chunk(b"fmt ", form(1, 2, 44_100, 2)), chunk(b"data", b"", 4 * 44_100 * 3600 * 3)))
    os.truncate(path, 44 + 4 * 44_100 * 3600 * 3)
    tracemalloc.start()
    for count, _frame in enumerate(wav.frames(path)):
        if count == 6000:
            break
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000


def test_a_device_stays_a_device_and_a_link_a_link(tmp_path: Path) -> None:
    with pytest.raises(StorageFault, match="No space left"):
        wav.write("/dev/full", sine())
    assert Path("/dev/full").is_char_device()
    target, link = tmp_path / "target.wav", tmp_path / "link.wav"
    link.symlink_to(target)
    wav.write(link, sine())
    assert link.is_symlink()
    assert same(wav.read(target).samples, sine(), 0)


def test_write_is_whole_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    wav.write(path, sine())
    assert same(wav.read(path).samples, sine(), 0)
    before = path.read_bytes()
    with pytest.raises(StorageFault, match="cannot be written"):
        wav.write(tmp_path / "no" / "out.wav", sine())
    with pytest.raises(StorageFault):
        wav.write(tmp_path, sine())
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.wav"]


def test_float_is_rounded_and_clipped(tmp_path: Path) -> None:
    wav.write(tmp_path / "a.wav", np.array([0.5, 1.5, -1.5, 0.0], np.float32))
    assert wav.read(tmp_path / "a.wav").samples.tolist() == [16384, 32767, -32768, 0]


def test_an_interrupted_writer_leaves_a_valid_file(tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    script = (
        "import os, sys, numpy as np; from firmware.wav import Writer; w = Writer(sys.argv[1])\n"
        "for _ in range(25): w.push(np.full(1600, 7, np.int16))\n"
        "os._exit(9)"
    )
    root = Path(wav.__file__).parent.parent
    assert subprocess.run([sys.executable, "-c", script, path], cwd=root, check=False).returncode == 9
    found = wav.read(path)
    assert len(found.samples) >= 2 * RATE
    assert (found.samples == 7).all()
    with wave.open(str(path)) as strict:
        assert strict.getnframes() == 2 * RATE


def test_a_writer_that_is_closed_keeps_everything(tmp_path: Path) -> None:
    with wav.Writer(tmp_path / "out.wav", 22_050) as writer:
        for _ in range(33):
            writer.push(np.full(1000, 7, np.int16))
    assert wav.read(tmp_path / "out.wav").notes == ()
    assert (tmp_path / "out.wav").stat().st_size == 44 + 2 * 33_000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_fault() -> None:
    with pytest.raises(StorageFault, match="No space left"), wav.Writer("/dev/full") as writer:
        writer.push(sine(seconds=30))


def test_sniff() -> None:
    assert wav.sniff(file(chunk(b"fmt ", PLAIN))) == "WAV"
    assert wav.sniff(sine().tobytes()) is None
    assert wav.sniff(b"ID3\x04\0\0\0\0\0\x05" + bytes(5) + b"fLaC") == "FLAC"
