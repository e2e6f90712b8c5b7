"""Who vouches for a skill, and that nothing has changed since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import SkillFault, StorageFault
from appliance.skills.signature import FILE, Keys, listing


def skill(root: Path) -> Path:
    place = root / "skills/greeter"
    for name in ("skill.toml", "skill.wasm", "intents/en.yaml", "data/a.txt"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    return place


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("module", "skill.wasm"),
        ("manifest", "skill.toml"),
        ("sentences", "intents/en.yaml"),
        ("added", "data/b.txt"),
        ("removed", "data/a.txt"),
        ("renamed", "data/a.txt"),
    ],
)
def test_a_change_behind_the_signature_is_noticed(tmp_path: Path, change: str, named: str) -> None:
    keys = Keys(tmp_path / "keys")
    place = skill(tmp_path)
    keys.sign(place)
    keys.check(place)
    match change:
        case "module":
            with (place / "skill.wasm").open("ab") as file:
                file.write(b"\0")
        case "manifest":
            (place / "skill.toml").write_text((place / "skill.toml").read_text() + "[grants]\nmemory = 1\n")
        case "sentences":
            (place / "intents/en.yaml").write_text("language: de")
        case "added":
            (place / "data/b.txt").write_text("")
        case "removed":
            (place / "data/a.txt").unlink()
        case "renamed":
            (place / "data/a.txt").rename(place / "data/b.txt")
    with pytest.raises(SkillFault, match=f"{named} has changed since it was signed"):
        keys.check(place)


def test_another_boxs_signature_counts_where_its_key_is_trusted(tmp_path: Path) -> None:
    maker = Keys(tmp_path / "maker")
    place = skill(tmp_path)
    maker.sign(place)
    with pytest.raises(SkillFault, match="signed by nobody who is trusted"):
        Keys(tmp_path / "box").check(place)
    private = Ed25519PrivateKey.from_private_bytes((tmp_path / "maker/box.key").read_bytes())
    (tmp_path / "trusted").mkdir()
    (tmp_path / "trusted/maker.pub").write_text(private.public_key().public_bytes_raw().hex())
    Keys(tmp_path / "box", (tmp_path / "trusted",)).check(place)


def test_the_boxs_key_is_its_own(tmp_path: Path) -> None:
    Keys(tmp_path / "keys").sign(skill(tmp_path))
    assert (tmp_path / "keys/box.key").stat().st_mode & 0o077 == 0


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    place = skill(tmp_path)
    (place / "more").symlink_to("/etc")
    with pytest.raises(SkillFault, match="is a link"):
        listing(place)


def test_a_signature_of_other_files_does_not_count(tmp_path: Path) -> None:
    """The list was made to fit, and the signature over it was not."""
    keys = Keys(tmp_path / "keys")
    place = skill(tmp_path)
    keys.sign(place)
    (place / "skill.wasm").write_text("changed")
    first = (place / FILE).read_text().partition("\n")[0]
    lines = "".join(f"{digest}  {name}\n" for name, digest in listing(place).items())
    (place / FILE).write_text(f"{first}\n{lines}")
    with pytest.raises(SkillFault, match="signed by nobody who is trusted"):
        keys.check(place)


@pytest.mark.parametrize("kind", ["pipe", "link", "many"])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: str) -> None:
    place = skill(tmp_path)
    match kind:
        case "pipe":
            os.mkfifo(place / "pipe")
        case "link":
            (place / "x.txt").symlink_to(place / "skill.toml")
        case "many":
            for number in range(600):
                (place / "data" / f"{number}.txt").touch()
    with pytest.raises(SkillFault):
        listing(place)


def test_a_key_that_is_damaged_is_told(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/box.key").write_bytes(b"short")
    with pytest.raises(StorageFault, match=r"box\.key cannot be used"):
        Keys(tmp_path / "keys").sign(skill(tmp_path))


@given(content=st.binary(max_size=300))
def test_any_signature_file_is_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    root = tmp_path_factory.mktemp("box")
    keys = Keys(root / "keys")
    place = skill(root)
    keys.sign(place)
    (place / FILE).write_bytes(content)
    with pytest.raises(SkillFault):
        keys.check(place)
