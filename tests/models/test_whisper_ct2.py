"""The CTranslate2 reader: every whole file is read exactly, every broken one is refused with the place."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from appliance.errors import SourceFault
from models.quantized.recipes import ct2

CODES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
arrays = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_/]{0,20}", fullmatch=True),
    st.sampled_from(sorted(CODES)).flatmap(
        lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, max_side=4))
    ),
    min_size=1,
    max_size=5,
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def text(value: str) -> bytes:
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def written(values: dict[str, np.ndarray], aliases: dict[str, str] | None = None, version: int = 6) -> bytes:
    out = struct.pack("<I", version) + text("WhisperSpec") + struct.pack("<II", 3, len(values))
    for name, value in values.items():
        out += text(name) + struct.pack("<B", value.ndim) + struct.pack(f"<{value.ndim}I", *value.shape)
        out += struct.pack("<BI", CODES[value.dtype.name], value.nbytes) + value.tobytes()
    out += struct.pack("<I", len(aliases or {}))
    for alias, target in (aliases or {}).items():
        out += text(alias) + text(target)
    return out


@quick
@given(values=arrays)
def test_what_was_written_is_read(tmp_path: Path, values: dict[str, np.ndarray]) -> None:
    path = tmp_path / "model.bin"
    first = next(iter(values))
    path.write_bytes(written(values, {"Another": first}))
    found = ct2.read(path)
    assert found.spec == "WhisperSpec"
    assert set(found.arrays) == {*values, "Another"}
    for name, value in values.items():
        assert found.arrays[name].dtype == value.dtype
        np.testing.assert_array_equal(found.arrays[name], value)
    np.testing.assert_array_equal(found.arrays["Another"], values[first])


@quick
@given(values=arrays, cut=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_refused_with_its_offset(tmp_path: Path, values: dict[str, np.ndarray], cut: float) -> None:
    path = tmp_path / "model.bin"
    whole = written(values)
    path.write_bytes(whole[: int(len(whole) * cut)])
    with pytest.raises(SourceFault, match=r"offset \d+|cannot be read"):
        ct2.read(path)


@quick
@given(values=arrays, where=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_a_corrupted_file_is_read_or_refused_and_nothing_else(
    tmp_path: Path, values: dict[str, np.ndarray], where: float, byte: int
) -> None:
    path = tmp_path / "model.bin"
    data = bytearray(written(values))
    data[int(len(data) * where)] = byte
    path.write_bytes(data)
    with suppress(SourceFault):
        ct2.read(path)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (written({"a": np.zeros(2, np.float32)}, version=5), "offset 0: binary version 5"),
        (written({"a": np.zeros(2, np.float32)}) + b"more", "4 bytes follow"),
        (written({"a": np.zeros(2, np.float32)}, {"b": "c"}), "b stands for c"),
    ],
)
def test_the_message_says_what_is_wrong(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    with pytest.raises(SourceFault, match=what):
        ct2.read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceFault, match="cannot be read"):
        ct2.read(tmp_path / "absent.bin")
