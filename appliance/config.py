"""The settings, grouped by room: read once, checked once, frozen.

Later sources win, key by key: the defaults below, /etc/parley/parley.toml, $XDG_CONFIG_HOME/parley/parley.toml, the
file named by --config, the environment (PARLEY_SECTION_KEY, written as a TOML value; a bare word is a string).
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from appliance.errors import ConfigFault

T = TypeVar("T")
_WORD = re.compile(r"[a-z0-9][a-z0-9._-]*")


def cache_home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parley"


def config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "parley"


def state_home() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "parley"


def setting(
    default: T, doc: str, *, low: float | None = None, high: float | None = None, choices: tuple[str, ...] = ()
) -> T:
    """A field with its documentation and its limits (both ends allowed)."""
    meta = {"doc": doc, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata=meta)


BACKCHANNELS = (
    *("uh-huh", "uh huh", "mhm", "mm-hmm", "mm hmm", "mm", "hmm", "hm", "huh", "ah", "aha", "oh", "uh", "um"),
    *("yeah", "yep", "yes", "okay", "ok", "right", "sure", "i see", "go on", "wow", "cool", "nice", "ha", "haha"),
)
STOP = (
    *("stop", "stop it", "please stop", "stop please", "stop talking", "be quiet", "quiet", "shut up", "silence"),
    *("that's enough", "enough", "cancel", "never mind", "nevermind"),
    *("halt", "stopp", "arrête", "stop maintenant", "para", "basta", "alto", "стоп", "хватит"),
)


@dataclass(frozen=True, slots=True)
class Audio:
    """The sound card."""

    input: str = setting(
        "", "microphone: a part of its name as `parley doctor` shows it; empty takes the system's default"
    )
    output: str = setting(
        "", "loudspeaker: a part of its name as `parley doctor` shows it; empty takes the system's default"
    )
    channels: tuple[int, ...] = field(
        default=(),
        metadata={
            "doc": "channels of the microphone that are averaged, from 0; empty: all of them",
            "low": 0,
            "high": 63,
        },
    )
    reference: int = setting(
        -1, "channel of the microphone on which the card returns what it plays, from 0; -1: none", low=-1, high=63
    )
    lead_in_ms: int = setting(
        -1, "ms of silence that wake a sleeping loudspeaker; -1: by its kind (HDMI, Bluetooth, USB)", low=-1, high=5_000
    )
    duplex: str = setting(
        "auto",
        "full: the user may speak over an answer; half: deaf while it speaks; auto: full where the echo is cancelled",
        choices=("auto", "full", "half"),
    )
    echo: str = setting(
        "auto",
        "what cancels the echo: webrtc, speex, off (a headset, or a card that does it); auto: webrtc, "
        "or off where the card does it",
        choices=("auto", "webrtc", "speex", "off"),
    )
    noise_suppression: bool = setting(False, "suppress steady noise in front of all models")
    gain_control: bool = setting(False, "raise quiet voices in front of all models")
    high_pass: bool = setting(True, "take away what lies below speech: rumble, wind, hum")


@dataclass(frozen=True, slots=True)
class Wake:
    """What makes the box attend."""

    mode: str = setting(
        "word",
        "word: a wake word or a button opens a turn; button: only a button or the API; always: every voice does",
        choices=("word", "button", "always"),
    )
    words: tuple[str, ...] = field(
        default=("okay-nabu", "hey-jarvis"), metadata={"doc": "wake words; each is a model wake-WORD"}
    )
    patience_s: float = setting(6.0, "seconds that the box waits for a voice once it attends", low=1, high=60)
    follow_up_s: float = setting(
        6.0, "seconds after an answer in which a question needs no wake word; 0: none", low=0, high=120
    )
    verify: bool = setting(False, "let the recogniser confirm the wake word before the box attends")
    verify_ms: int = setting(400, "ms that the confirmation may take; then the wake word counts", low=50, high=5_000)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """How the user speaks over an answer."""

    speech_ms: int = setting(120, "ms of voice that hold the answer", low=30, high=2_000)
    doubt_ms: int = setting(
        250, "ms of voice needed on top while the echo is not known to be cancelled", low=0, high=5_000
    )
    decide_ms: int = setting(
        1_500, "ms after which an answer that is held goes on if no words were made out", low=200, high=10_000
    )
    backchannels: tuple[str, ...] = field(
        default=BACKCHANNELS, metadata={"doc": "what a listener says without wanting the floor: the answer goes on"}
    )
    stop: tuple[str, ...] = field(
        default=STOP, metadata={"doc": "what ends an answer and needs no other: the language model is not asked"}
    )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """When the user begins and ends to speak."""

    start_threshold: float = setting(0.5, "speech probability at which speech begins", low=0, high=1)
    stop_threshold: float = setting(0.35, "speech probability below which silence begins", low=0, high=1)
    min_speech_ms: int = setting(90, "ms of speech before a turn opens", low=10, high=2_000)
    preroll_ms: int = setting(300, "ms of sound kept from before the speech", low=0, high=2_000)
    pause_ms: int = setting(40, "ms of silence after which speculation may start", low=10, high=5_000)
    check_ms: int = setting(200, "ms of silence at which the end-of-turn model is asked first", low=10, high=5_000)
    recheck_ms: int = setting(200, "ms between later questions to the end-of-turn model", low=10, high=5_000)
    hold_ms: int = setting(1_200, "ms of silence that end a turn whatever the model says", low=100, high=10_000)
    complete_threshold: float = setting(0.5, "probability from which a phrase counts as complete", low=0, high=1)
    cap_s: float = setting(30.0, "seconds after which a turn is ended in mid-speech", low=1, high=30)


@dataclass(frozen=True, slots=True)
class Hear:
    """Speech recognition."""

    partial_ms: int = setting(400, "ms of new speech between two partial transcripts; 0: none", low=0, high=10_000)
    language: str = setting("en", "spoken language (ISO 639-1); empty lets a multilingual model decide")
    threads: int = setting(2, "threads of the encoder", low=1, high=64)


EXAMPLES = (
    "Hello.",
    "Hello! How can I help you?",
    "What are you?",
    "I am Parley, a voice assistant in this box.",
    "Can you work without the internet?",
    "Yes. I work offline, on this box alone.",
    "Who can hear me?",
    "Only this box. Nothing you say leaves it.",
    "What can you do?",
    "I listen, answer short questions and speak.",
    "Thank you.",
    "You are welcome.",
)
"""Of 15 set-ups that were tried by hand, the one with the most sensible answers (about 18 of 24, against 7 of 16)."""


@dataclass(frozen=True, slots=True)
class Think:
    """The language model."""

    system: str = setting(
        "You are Parley, a voice assistant. Answer in one short sentence.",
        "the system prompt",
    )
    examples: tuple[str, ...] = field(
        default=EXAMPLES,
        metadata={"doc": "questions, each with its answer behind it, that show a small model how to answer"},
    )
    max_tokens: int = setting(80, "tokens in an answer at most", low=1, high=2_048)
    sentences: int = setting(1, "sentences in an answer at most: a small model goes astray in the next", low=1, high=50)
    temperature: float = setting(0.0, "sampling temperature; 0 takes the likeliest token", low=0, high=2)
    history_tokens: int = setting(400, "tokens of past conversation kept in the prompt", low=0, high=4_096)
    threads: int = setting(2, "threads of the language model", low=1, high=64)


@dataclass(frozen=True, slots=True)
class Say:
    """Speech synthesis."""

    locale: str = setting(
        "en-US",
        "how numbers, dates, money and abbreviations are read out",
        choices=("en-US", "en-GB", "de-DE", "fr-FR", "es-ES"),
    )
    phonemes: str = setting(
        "lexicon",
        "what pronounces words: the built-in lexicon (English), or an espeak-ng that you have installed",
        choices=("lexicon", "espeak"),
    )
    rate: float = setting(1.0, "speed of speech, 1 is the voice's own", low=0.5, high=2)
    seed: int = setting(0, "seed of the synthesis noise: the same text gives the same sound", low=0, high=2**31 - 1)
    threads: int = setting(2, "threads of the synthesis", low=1, high=64)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that a stage may take before the turn is ended with a cue."""

    hear: float = setting(10.0, "from the end of speech to the transcript", low=0.1, high=600)
    think: float = setting(10.0, "to each first phrase of the answer", low=0.1, high=600)
    say: float = setting(5.0, "to the first sound of each phrase", low=0.1, high=600)


@dataclass(frozen=True, slots=True)
class Models:
    """Which models play which part, and where they lie."""

    asr: str = setting("whisper-base", "speech recognition")
    lm: str = setting("smollm2-135m-instruct", "language model")
    voice: str = setting("en-us-joe", "synthesis voice")
    lexicon: str = setting("lexicon-en_us", "pronunciation lexicon")
    vad: str = setting("silero-vad", "voice activity detector")
    turn_end: str = setting("smart-turn", "end-of-turn detector")
    embedding: str = setting("minilm-l6", "sentence embedding")
    cache: Path = field(
        default_factory=lambda: cache_home() / "models",
        metadata={"doc": "where models are built ($XDG_CACHE_HOME/parley/models)"},
    )
    folders: tuple[Path, ...] = field(
        default_factory=lambda: (Path("/etc/parley/models"), config_home() / "models"),
        metadata={
            "doc": "folders of your own manifests; a later one replaces a model of the same name "
            "(/etc/parley/models, $XDG_CONFIG_HOME/parley/models)"
        },
    )


@dataclass(frozen=True, slots=True)
class Skills:
    """What the box can do."""

    folders: tuple[Path, ...] = field(
        default_factory=lambda: (Path("/etc/parley/skills"), state_home() / "skills"),
        metadata={
            "doc": "folders of skills, beside those that are shipped; a later one replaces a skill of the same name "
            "(/etc/parley/skills, $XDG_STATE_HOME/parley/skills)"
        },
    )
    disabled: tuple[str, ...] = field(default=(), metadata={"doc": "names of skills that are not loaded"})
    accept: float = setting(0.8, "probability from which a command is carried out", low=0.5, high=1)
    ask: float = setting(0.5, "probability from which the box asks back whether a command was meant", low=0, high=1)
    locale: str = setting("en-US", "language of the sentences that are understood, where a skill has several")
    tools: bool = setting(True, "let the language model propose a tool where no sentence fits; the user confirms it")


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Documents that answers are taken from."""

    folders: tuple[Path, ...] = field(
        default_factory=lambda: (Path("/etc/parley/knowledge"), config_home() / "knowledge"),
        metadata={
            "doc": "folders of knowledge packs: each folder in them is one "
            "(/etc/parley/knowledge, $XDG_CONFIG_HOME/parley/knowledge)"
        },
    )
    largest_mb: int = setting(20, "megabytes of a document above which it is not read", low=1, high=1_000)


@dataclass(frozen=True, slots=True)
class Memory:
    """What the box remembers of what it was told."""

    mode: str = setting(
        "keep",
        "keep: on the disk; session: as long as the process lives; off: nothing is kept",
        choices=("keep", "session", "off"),
    )
    largest_mb: int = setting(128, "megabytes on the disk; what matters least goes first", low=1, high=100_000)
    keep_days: float = setting(
        0.0, "days that turns are kept word for word; 0: as long as there is room", low=0, high=36_500
    )
    gap_min: float = setting(30.0, "minutes of silence that end a conversation", low=0.1, high=10_000)
    backup_h: float = setting(24.0, "hours between two copies, where something was written", low=0.1, high=10_000)
    person: str = setting("", "whose profile is remembered and asked at the start; empty: everybody's")
    prompt_tokens: int = setting(60, "tokens of what is remembered that the language model is told", low=0, high=2_048)
    now_tokens: int = setting(
        0,
        "tokens of the time and what was spoken of that it is told; a small model is the worse for it",
        low=0,
        high=512,
    )


@dataclass(frozen=True, slots=True)
class Mqtt:
    """The broker that skills may be granted topics of."""

    host: str = setting("", "broker; empty: none")
    port: int = setting(1883, "port of the broker", low=1, high=65_535)
    username: str = setting("", "user name; empty: none")
    password_file: str = setting("", "file that holds the password; empty: none")
    ca_file: str = setting("", "certificates that the broker's must be signed by, which turns TLS on; empty: no TLS")


@dataclass(frozen=True, slots=True)
class Log:
    """The daemon's log: JSON lines on stderr."""

    level: str = setting("info", "least severity that is logged", choices=("debug", "info", "warning", "error"))


@dataclass(frozen=True, slots=True)
class Config:
    audio: Audio = field(default_factory=Audio)
    wake: Wake = field(default_factory=Wake)
    endpoint: Endpoint = field(default_factory=Endpoint)
    interrupt: Interrupt = field(default_factory=Interrupt)
    hear: Hear = field(default_factory=Hear)
    think: Think = field(default_factory=Think)
    say: Say = field(default_factory=Say)
    deadlines: Deadlines = field(default_factory=Deadlines)
    models: Models = field(default_factory=Models)
    skills: Skills = field(default_factory=Skills)
    knowledge: Knowledge = field(default_factory=Knowledge)
    memory: Memory = field(default_factory=Memory)
    mqtt: Mqtt = field(default_factory=Mqtt)
    log: Log = field(default_factory=Log)


SECTIONS: dict[str, Any] = get_type_hints(Config)
PREFIX = "PARLEY_"
LONGEST = 60
"""Characters of a list that is shown as a default."""


@dataclass(frozen=True, slots=True)
class Documented:
    """One setting as the documentation shows it."""

    section: str
    key: str
    kind: str
    default: str
    doc: str


def documented() -> Iterator[Documented]:
    """Every setting in the order of the code; a default that depends on the machine is left to its `doc`."""
    for section, room in SECTIONS.items():
        for f in fields(room):
            low, high, choices = (f.metadata.get(k) for k in ("low", "high", "choices"))
            kind = str(f.type).removesuffix(", ...]").replace("tuple[", "list of ").replace("Path", "path")
            if low is not None:
                kind += f", {low} to {high}"
            if choices:
                kind = " | ".join(choices)
            yield Documented(section, f.name, kind, _as_toml(f.default), f.metadata["doc"])


def _as_toml(default: object) -> str:
    """ "" for what is too long for a table."""
    text = json.dumps(default, ensure_ascii=False) if isinstance(default, str | int | float | tuple) else ""
    return text if isinstance(default, str) or len(text) <= LONGEST else ""


def load(path: Path | None = None, env: Mapping[str, str] | None = None) -> Config:
    """Reads every source. Raises ConfigFault naming the file and the key."""
    standard = [file for file in (Path("/etc/parley/parley.toml"), config_home() / "parley.toml") if file.exists()]
    sources = [(str(file), _read(file)) for file in (*standard, *([path] if path else []))]
    return _assemble([*sources, ("the environment", _from_env(os.environ if env is None else env))])


def parse(text: str, origin: str = "<text>") -> Config:
    """The settings of one TOML text over the defaults. Raises ConfigFault."""
    return _assemble([(origin, _toml(text, origin))])


def _assemble(sources: Iterable[tuple[str, Mapping[str, Any]]]) -> Config:
    values: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for origin, new in sources:
        _merge(values, new, origin)
    config = Config(**{section: room(**values[section]) for section, room in SECTIONS.items()})
    _check_relations(config)
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigFault(f"{path} cannot be read: {error}", "name a readable UTF-8 TOML file") from error
    return _toml(text, str(path))


def _toml(text: str, origin: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigFault(f"{origin} is not valid TOML: {error}", "correct that line") from error


def _from_env(env: Mapping[str, str]) -> dict[str, Any]:
    """PARLEY_HEAR_THREADS=1 -> {"hear": {"threads": 1}}. Names whose second word is no section are not ours."""
    found: dict[str, Any] = {}
    for name, text in env.items():
        section, _, key = name.removeprefix(PREFIX).lower().partition("_")
        if not name.startswith(PREFIX) or section not in SECTIONS or not key:
            continue
        wanted = get_type_hints(SECTIONS[section]).get(key)
        found.setdefault(section, {})[key] = text if wanted in (str, Path) else _scalar(text)
    return found


def _scalar(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _merge(values: dict[str, dict[str, Any]], new: Mapping[str, Any], origin: str) -> None:
    for section, keys in new.items():
        if section not in SECTIONS:
            raise ConfigFault(f"{origin}: there is no section [{section}]", _meant(section, SECTIONS))
        if not isinstance(keys, Mapping):
            raise ConfigFault(f"{origin}: {section} must be a section", f"write [{section}] and its keys below it")
        known = {f.name: f for f in fields(SECTIONS[section])}
        hints = get_type_hints(SECTIONS[section])
        for key, value in keys.items():
            if key not in known:
                raise ConfigFault(f"{origin}: there is no setting {section}.{key}", _meant(key, known))
            values[section][key] = _checked(f"{origin}: {section}.{key}", value, hints[key], known[key])


def _meant(word: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are: {', '.join(known)}"


def _checked(where: str, value: Any, wanted: Any, f: Field[Any]) -> Any:
    if get_origin(wanted) is tuple:
        if not isinstance(value, list):
            raise ConfigFault(f"{where} must be a list", 'write ["...", "..."]')
        if "" in value:
            raise ConfigFault(f"{where} holds an empty text", 'take out ""')
        return tuple(_checked(where, item, get_args(wanted)[0], f) for item in value)
    if wanted is Path and isinstance(value, str) and value and "\0" not in value:
        return Path(value).expanduser()
    if wanted is float and type(value) is int:
        value = _to_float(where, value)
    if wanted is Path or type(value) is not wanted:
        raise ConfigFault(f"{where} is {value!r:.80}", f"it must be {_name(wanted)}")
    low, high, choices = (f.metadata.get(k) for k in ("low", "high", "choices"))
    if low is not None and not low <= value <= high:
        raise ConfigFault(f"{where} is {value!r:.80}", f"it must lie between {low} and {high}")
    if choices and value not in choices:
        raise ConfigFault(f"{where} is {value!r:.80}", f"it must be one of {', '.join(choices)}")
    return value


def _to_float(where: str, value: int) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise ConfigFault(f"{where} is out of all range", "write a smaller number") from error


def _name(wanted: Any) -> str:
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
    return names[wanted]


def _check_relations(config: Config) -> None:
    for check in (_check_order, _check_examples, _check_channels, _check_words, _check_replies):
        check(config)


def _check_order(config: Config) -> None:
    e, i = config.endpoint, config.interrupt
    ordered = [
        ("endpoint.stop_threshold", e.stop_threshold, "endpoint.start_threshold", e.start_threshold),
        ("endpoint.pause_ms", e.pause_ms, "endpoint.check_ms", e.check_ms),
        ("endpoint.check_ms", e.check_ms, "endpoint.hold_ms", e.hold_ms),
        ("interrupt.speech_ms", i.speech_ms, "interrupt.decide_ms", i.decide_ms),
    ]
    for low_name, low, high_name, high in ordered:
        if low > high:
            raise ConfigFault(f"{low_name} ({low}) is above {high_name} ({high})", f"lower {low_name}")


def _check_examples(config: Config) -> None:
    if len(config.think.examples) % 2:
        raise ConfigFault(
            f"think.examples holds {len(config.think.examples)} texts", "write each question with its answer behind it"
        )


def _check_channels(config: Config) -> None:
    channels, reference = config.audio.channels, config.audio.reference
    _refuse_twins("audio.channels", channels)
    if reference in channels:
        raise ConfigFault(
            f"audio.channels holds {reference}, on which the card returns what it plays (audio.reference)",
            f"take {reference} out of audio.channels",
        )


def _check_words(config: Config) -> None:
    wake = config.wake
    _refuse_twins("wake.words", wake.words)
    for word in wake.words:
        if not _WORD.fullmatch(word):
            name = re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")
            raise ConfigFault(f"wake.words holds {word!r:.80}", f"write {name!r:.80}" if name else "name a model")
    if wake.mode == "word" and not wake.words:
        raise ConfigFault("wake.words is empty: nothing would wake the box", 'name a word, or set mode = "button"')


def _check_replies(config: Config) -> None:
    both = sorted({*config.interrupt.backchannels} & {*config.interrupt.stop})
    if both:
        raise ConfigFault(
            f"interrupt.backchannels and interrupt.stop both hold {both[0]!r:.80}", "take it out of one of them"
        )


def _refuse_twins(name: str, values: tuple[object, ...]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise ConfigFault(f"{name} holds {value!r:.80} twice", "take one of them out")
