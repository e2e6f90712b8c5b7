from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance import config
from appliance.errors import ConfigFault
from appliance.runtime.locales import LOCALES

KEYS = [(d.section, d.key) for d in config.documented()]


def test_defaults_pass_their_own_checks() -> None:
    assert config.parse("") == config.Config()
    for section, room in config.SECTIONS.items():
        for f in config.fields(room):
            if f.metadata.get("low") is not None and not isinstance(f.default, tuple):
                assert f.metadata["low"] <= f.default <= f.metadata["high"], f"{section}.{f.name}"


def test_every_locale_that_has_rules_can_be_chosen() -> None:
    (locale,) = (f for f in config.fields(config.Say) if f.name == "locale")
    assert locale.metadata["choices"] == tuple(LOCALES)


@pytest.mark.parametrize(
    ("text", "part", "fix"),
    [
        ("[hear]\nthread = 1", "hear.thread", "did you mean threads?"),
        ("[haer]\nthreads = 1", "[haer]", "did you mean hear?"),
        ("hear = 1", "hear must be a section", "[hear]"),
        ("[hear]\nthreads = 0", "hear.threads is 0", "between 1 and 64"),
        ("[hear]\nthreads = true", "hear.threads is True", "a whole number"),
        ("[hear]\nthreads = 1.0", "hear.threads is 1.0", "a whole number"),
        ("[say]\nrate = nan", "say.rate is nan", "between 0.5 and 2"),
        ("[say]\nrate = 'fast'", "say.rate is 'fast'", "a number"),
        ("[log]\nlevel = 'loud'", "log.level is 'loud'", "debug, info"),
        ("[say]\nphonemes = 'festival'", "say.phonemes is 'festival'", "lexicon, espeak"),
        ("[say]\nlocale = 'tlh'", "say.locale is 'tlh'", "en-US, en-GB"),
        ("[models]\nfolders = '/x'", "models.folders must be a list", "["),
        ("[models]\ncache = ''", "models.cache is ''", "a path"),
        ("[hear\n", "not valid TOML", "correct"),
        ("[audio]\nchannels = 1", "audio.channels must be a list", "["),
        ("[audio]\nchannels = [0, 64]", "audio.channels is 64", "between 0 and 63"),
        ("[wake]\nmode = 'words'", "wake.mode is 'words'", "word, button, always"),
        ("[interrupt]\nstop = ['']", "interrupt.stop holds an empty text", "take out"),
    ],
)
def test_faults_name_the_key_and_the_fix(text: str, part: str, fix: str) -> None:
    with pytest.raises(ConfigFault) as caught:
        config.parse(text, "p.toml")
    assert part in caught.value.message
    assert fix in caught.value.fix
    assert caught.value.message.startswith("p.toml")


@pytest.mark.parametrize(
    ("text", "part", "fix"),
    [
        ("[endpoint]\nstop_threshold = 0.9", "stop_threshold (0.9) is above", "lower endpoint.stop_threshold"),
        ("[audio]\nchannels = [1, 0, 1]", "audio.channels holds 1 twice", "one of them"),
        ("[audio]\nchannels = [0, 2]\nreference = 2", "audio.channels holds 2", "take 2 out"),
        ("[wake]\nwords = []", "wake.words is empty", 'mode = "button"'),
        ("[wake]\nwords = ['a', 'a']", "wake.words holds 'a' twice", "one of them"),
        ("[wake]\nwords = ['Okay, Nabu!']", "wake.words holds 'Okay, Nabu!'", "write 'okay-nabu'"),
        ("[wake]\nwords = ['!']", "wake.words holds '!'", "name a model"),
        ("[interrupt]\nstop = ['hm']", "backchannels and interrupt.stop both hold 'hm'", "one of them"),
        ("[interrupt]\nspeech_ms = 2000", "interrupt.speech_ms (2000) is above", "lower interrupt.speech_ms"),
    ],
)
def test_settings_that_do_not_go_together_are_named(text: str, part: str, fix: str) -> None:
    with pytest.raises(ConfigFault) as caught:
        config.parse(text, "p.toml")
    assert part in caught.value.message
    assert fix in caught.value.fix


def test_later_sources_win_key_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "parley").mkdir()
    (tmp_path / "parley/parley.toml").write_text("[hear]\nthreads = 3\npartial_ms = 300\nlanguage = 'de'")
    named = tmp_path / "named.toml"
    named.write_text("[hear]\nthreads = 4\npartial_ms = 350")
    hear = config.load(named, {"PARLEY_HEAR_THREADS": "5", "PARLEY_SHARED": "/elsewhere"}).hear
    assert (hear.threads, hear.partial_ms, hear.language) == (5, 350, "de")


def test_environment_is_read_as_toml_and_bare_words_as_text() -> None:
    loaded = config.load(None, {"PARLEY_MODELS_ASR": "tiny", "PARLEY_SAY_RATE": "1", "PARLEY_MODELS_FOLDERS": '["/a"]'})
    assert (loaded.models.asr, loaded.say.rate, loaded.models.folders) == ("tiny", 1.0, (Path("/a"),))
    with pytest.raises(ConfigFault, match=r"the environment.*say\.rat"):
        config.load(None, {"PARLEY_SAY_RAT": "1"})


def test_a_box_with_a_button_needs_no_wake_word() -> None:
    assert config.parse("[wake]\nmode = 'button'\nwords = []").wake.words == ()


def test_defaults_are_shown_as_they_would_be_written() -> None:
    shown = {f"{s.section}.{s.key}": s.default for s in config.documented()}
    assert shown["wake.words"] == '["okay-nabu", "hey-jarvis"]'
    assert (shown["audio.high_pass"], shown["audio.channels"], shown["audio.reference"]) == ("true", "[]", "-1")
    for name, default in shown.items():
        section, _, key = name.partition(".")
        if default:
            assert config.parse(f"[{section}]\n{key} = {default}") == config.Config(), name


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"[say]\n# \xff\xfe")
    for path in (tmp_path / "none.toml", tmp_path, tmp_path / "latin.toml"):
        with pytest.raises(ConfigFault, match=path.name):
            config.load(path, {})


def test_the_current_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PARLEY_THINK_MAX_TOKENS", "7")
    assert config.load().think.max_tokens == 7


VALUES = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.text(max_size=20),
    st.lists(st.text(max_size=5) | st.sampled_from(["okay-nabu", "stop", "hm"]), max_size=3),
    st.lists(st.integers(-1, 70), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


def refusal(build: Callable[[], config.Config]) -> str:
    """What the fault says; empty when the settings were taken. Anything but a ConfigFault is a bug."""
    try:
        build()
    except ConfigFault as fault:
        return str(fault)
    return ""


@given(st.sampled_from(KEYS), VALUES)
@settings(max_examples=300, deadline=None)
def test_any_value_is_taken_or_refused(name: tuple[str, str], value: object) -> None:
    section, key = name
    said = refusal(lambda: config._assemble([("fuzz", {section: {key: value}})]))
    assert said == "" or key in said


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda b: b.decode("latin-1")))
@settings(max_examples=300, deadline=None)
def test_any_text_is_taken_or_refused(text: str) -> None:
    said = refusal(lambda: config.parse(text, "fuzz.toml"))
    assert said == "" or "fuzz.toml" in said


@given(st.sampled_from(KEYS), st.text(st.characters(exclude_characters="\0"), max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_environment_is_taken_or_refused(name: tuple[str, str], text: str) -> None:
    said = refusal(lambda: config.load(None, {f"PARLEY_{name[0]}_{name[1]}".upper(): text}))
    assert said == "" or name[1] in said


def test_the_readmes_settings_are_taken() -> None:
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    examples = [part.partition("```")[0] for part in text.split("```toml\n")[1:]]
    assert examples
    for example in examples:
        assert config.parse(example) != config.Config()
