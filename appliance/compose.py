"""The only file that builds things and knows every room."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from appliance.config import Audio, Config, cache_home, config_home, state_home
from appliance.controls import Controls
from appliance.events import Event, Phrase, Transcript, Woken
from appliance.runtime import asr
from appliance.runtime.asr import Hints, Recogniser
from appliance.runtime.card import Shelf
from appliance.runtime.embed import Embedder
from appliance.runtime.espeak import Espeak
from appliance.runtime.llm import LanguageModel
from appliance.runtime.memory import give_back
from appliance.runtime.model import finish
from appliance.runtime.normalise import normaliser
from appliance.runtime.ort import OrtModel
from appliance.runtime.phonemes import Phonemise, Phonemiser
from appliance.runtime.tts import Voice
from appliance.runtime.turnend import EndOfTurn
from appliance.runtime.wakeword import open_words
from appliance.runtime.worker import Worker
from appliance.skills.dialogue import Dialogue, DialogueRules
from appliance.skills.intents.sounds import distance
from appliance.skills.intents.words import words
from appliance.skills.library import Library
from appliance.skills.native import natives
from appliance.skills.native.knobs import Knob, Knobs, volume
from appliance.skills.native.zone import here
from appliance.skills.signature import Keys
from appliance.skills.skill import Alarm, Services
from appliance.store.alarms import Alarms
from appliance.store.cells import Cells
from appliance.store.knowledge import Knowledge
from appliance.store.memory import Memory, MemoryRules
from appliance.store.tellparts import is_order
from appliance.stream import Events, Stage, line
from appliance.sync.mqtt import Broker
from appliance.sync.network import Network
from appliance.telemetry import Seldom, Telemetry, log
from appliance.voice.address import address
from appliance.voice.ahead import ahead
from appliance.voice.attend import AttendRules, Attention, Verify, attend
from appliance.voice.bargein import Floor, InterruptRules, Judge, bargein
from appliance.voice.believe import believe
from appliance.voice.conversation import Conversation, Message, Role
from appliance.voice.ears import ears
from appliance.voice.endpoint import EndpointRules, endpoint
from appliance.voice.hear import HearRules, hear
from appliance.voice.honest import honest
from appliance.voice.mouth import mouth
from appliance.voice.phrase import ForTheEar, phrase
from appliance.voice.prompt import Prompt, PromptRules
from appliance.voice.recall import Recall
from appliance.voice.remember import Record, keep, keep_one, remember
from appliance.voice.ring import CAPACITY, ring
from appliance.voice.say import Speaker, say
from appliance.voice.session import converse
from appliance.voice.think import ThinkRules, think
from appliance.voice.tools import ModelFormWriter, Toolbox, tools
from appliance.voice.turn import Answer, Answering, once
from appliance.voice.understand import understand
from appliance.voice.verify import verify
from appliance.voice.writer import Writer, forget_prefixes
from firmware.cards import one_canceller
from firmware.device import Device
from firmware.echo import Echo, usable
from firmware.frame import RATE, Pcm
from firmware.frontend import Frontend
from firmware.keeper import Keeper
from firmware.mixer import Mixer, Player
from firmware.sound import Sound
from firmware.vad import Vad
from firmware.wake import Wake

DEPTH = 64
"""Frames between two stages of the listening line: while one recognition runs, endpointing goes on."""

LOADERS = 2
"""Models that are loaded at once: half of loading waits for one core."""

NEAR = 0.25
"""Distance of two words' sounds up to which one may have been heard for the other."""

Report = Callable[[str, float], None]


@dataclass(frozen=True)
class Engines:
    """The models that the settings name, each loaded when it is first asked for. Raises ModelFault."""

    config: Config
    shelf: Shelf

    @cached_property
    def recogniser(self) -> Recogniser:
        return asr.load(self.shelf.built(self.config.models.asr), threads=self.config.hear.threads)

    @cached_property
    def language_model(self) -> LanguageModel:
        return LanguageModel.open(self.shelf.built(self.config.models.lm), threads=self.config.think.threads)

    @cached_property
    def form_writer(self) -> ModelFormWriter:
        return ModelFormWriter(self.language_model)

    @cached_property
    def writer(self) -> Writer:
        return Writer(
            self.language_model, snapshots=state_home() / "prefixes", temperature=self.config.think.temperature
        )

    @cached_property
    def speaker(self) -> Speaker:
        phonemise = self.phonemise  # first: it takes less time to fail
        voice = Voice(self.shelf.built(self.config.models.voice), threads=self.config.say.threads)
        return Speaker(voice, phonemise, self.config.say.rate, self.config.say.seed)

    @cached_property
    def phonemise(self) -> Phonemise:
        """Raises ConfigFault where espeak-ng is chosen and not installed."""
        if self.config.say.phonemes == "espeak":
            return Espeak(self.config.say.locale).phrase
        return Phonemiser.open(self.shelf.built(self.config.models.lexicon)).phrase

    @property
    def for_the_ear(self) -> ForTheEar:
        """Text to words that can be said, by the rules of the locale that is set."""
        return normaliser(self.config.say.locale)

    @cached_property
    def turn_end(self) -> EndOfTurn:
        return EndOfTurn(OrtModel(self.shelf.built(self.config.models.turn_end).file("graph")))

    @cached_property
    def embedder(self) -> Embedder:
        built = self.shelf.built(self.config.models.embedding)
        return Embedder(OrtModel(built.file("graph")), built.file("tokenizer"))

    @contextmanager
    def detector(self) -> Iterator[Vad]:
        """A voice detector with a state of its own."""
        with self._vad.session() as infer:
            yield Vad(infer)

    @cached_property
    def _vad(self) -> OrtModel:
        return OrtModel(self.shelf.built(self.config.models.vad).file("graph"))

    @property
    def think_rules(self) -> ThinkRules:
        think = self.config.think
        return ThinkRules(think.max_tokens, think.sentences, self.config.deadlines.think)

    @property
    def prompt_rules(self) -> PromptRules:
        think, memory = self.config.think, self.config.memory
        roles: tuple[Role, ...] = ("user", "assistant")
        examples = (Message(roles[number % 2], text) for number, text in enumerate(think.examples))
        opening = (Message("system", think.system), *examples)
        return PromptRules(opening, think.history_tokens, memory.prompt_tokens, memory.now_tokens)

    def warm(self, report: Report = lambda what, fraction: None) -> None:
        """Loads every model and runs each once, so that the first turn costs no more than the next."""
        noise = np.random.default_rng(0).normal(0, 0.01, RATE).astype(np.float32)
        steps: tuple[tuple[str, Callable[[], object]], ...] = (
            ("recognition", lambda: finish(self.recogniser.transcribe(noise, language=self.config.hear.language))),
            ("language model", lambda: self.writer.prepare(self.prompt_rules.opening)),
            ("voice", lambda: list(self.speaker.say("Ready when you are."))),
            ("end of turn", lambda: self.turn_end.probability(noise)),
            ("voice detection", lambda: self._vad),
            ("embedding", lambda: self.embedder.embed(["ready"])),
        )
        with ThreadPoolExecutor(LOADERS) as pool:
            running = {pool.submit(step): what for what, step in steps}
            for number, done in enumerate(as_completed(running), start=1):
                done.result()
                report(running[done], number / len(steps))
        give_back()


# --- the basement ------------------------------------------------------------------------------------------------


@contextmanager
def card(engines: Engines, controls: Controls, attention: Attention, telemetry: Telemetry) -> Iterator[Frontend]:
    """The front end on the sound card, which is opened, watched, and opened again whenever it fails."""
    audio = engines.config.audio
    lead_in = None if audio.lead_in_ms < 0 else audio.lead_in_ms / 1000

    def open(at: int, mixer: Mixer, *, listen: bool = True) -> Device:
        device = Device(
            capture=audio.input if listen else None,
            playback=audio.output,
            at=at,
            mixer=mixer,
            channels=audio.channels,
            reference=audio.reference,
            lead_in=lead_in,
        )
        front.opened(device.cancels_echo)
        names = {"microphone": device.source.id, "loudspeaker": device.sink.id}
        seldom("card opened", level=logging.INFO, **names, cancels_echo=device.cancels_echo)
        return device

    keeper, seldom = Keeper(open, Mixer()), Seldom(600.0)

    def tick() -> None:
        controls.poll()
        if controls.pressed():
            attention.wake("button")
        obey(front, controls)
        measure(front, telemetry)
        telemetry.gauge("card opened", keeper.opened)
        telemetry.gauge("attending", attention.on)

    with basement(engines, keeper, tick=tick, shut=keeper.mute) as front:
        obey(front, controls)  # muted before it is opened
        yield front


@contextmanager
def basement(
    engines: Engines,
    sound: Sound,
    *,
    tick: Callable[[], None] = lambda: None,
    shut: Callable[[bool], None] = lambda on: None,
) -> Iterator[Frontend]:
    """The front end on any device: the canceller and the wake words that the settings name, where they can be used."""
    audio, wake = engines.config.audio, engines.config.wake
    ids = [f"wake-{word}" for word in wake.words] if wake.mode == "word" else []
    with open_words(engines.shelf, ids) as (words, faults):
        for fault in faults:
            log("wake word", level=logging.ERROR, message=fault.message, fix=fault.fix)
        cannot = audio.echo != "off" and usable("webrtc")[0] == "off"
        front = Frontend(
            sound,
            lambda reason: canceller(audio, reason),
            Wake(words),
            half=audio.duplex == "half" or (audio.duplex == "auto" and cannot),
            tick=tick,
            shut=shut,
        )
        try:
            yield front
        finally:
            front.close()


def canceller(audio: Audio, reason: str) -> Echo:
    """For a card that takes its echo away itself because of `reason` ("" if it does not)."""
    wanted, warning = one_canceller(audio.echo, reason)
    if warning:
        log("two echo cancellers", level=logging.WARNING, message=warning)
    backend, fault = usable(wanted)  # type: ignore[arg-type]  # the setting's choices
    if fault:
        log("echo canceller", level=logging.WARNING, message=fault.message, fix=fault.fix, instead=backend)
    return Echo(
        backend,
        noise_suppression=audio.noise_suppression,
        gain_control=audio.gain_control,
        high_pass=audio.high_pass,
    )


def obey(front: Frontend, controls: Controls) -> None:
    """Does what the user has set; in the loop's thread, or before it runs."""
    front.mute(controls.muted)
    wanted = {word: controls.thresholds.get(word, value) for word, value in front.wake.given.items()}
    for word, value in front.wake.thresholds.items():
        if wanted[word] != value:
            front.wake.threshold(word, wanted[word])


def measure(front: Frontend, telemetry: Telemetry) -> None:
    state = front.echo.state
    telemetry.gauge("echo erle db", state.erle)
    telemetry.gauge("echo delay ms", None if state.delay is None else 1000 * state.delay)
    telemetry.gauge("echo drift ppm", state.drift)
    telemetry.gauge("echo converged", state.phase in ("idle", "converged"))
    telemetry.gauge("echo clipped", state.clipped)
    telemetry.gauge("half duplex", front.deaf)
    telemetry.gauge("overruns", front.overruns)
    telemetry.gauge("underruns", front.mixer.underruns)
    telemetry.gauge("frames heard", front.heard)
    telemetry.gauge("wake windows scored", front.wake.scored)


# --- the line ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def talk(
    engines: Engines,
    sound: Sound,
    conversation: Conversation,
    *watchers: Stage,
    attention: Attention | None = None,
    able: Abilities | None = None,
) -> AsyncIterator[Events]:
    """The whole voice loop on one device: what is heard and what is answered, as one stream of events. Without an
    `attention` every voice opens a turn; without abilities the language model answers everything."""
    config = engines.config
    attention = attention or Attention(AttendRules(mode="always"))
    with workers("think", "say", "mouth") as threads:
        player = sound.mixer.player("speech")
        rules = interrupt_rules(config)
        floor = Floor(player, rules)
        answering = Answering(
            write=lambda answer: writing(engines, conversation, threads["think"], answer, able),
            voice=(say(engines.speaker, threads["say"], config.deadlines.say),),
            mouth=lambda spoken: mouth(player, threads["mouth"], spoken),
        )
        judge = Judge(rules, engines.for_the_ear)
        session = converse(answering, conversation, floor, judge, able.asks if able else lambda: False)
        bell = (ringing(able, sound, player, judge),) if able and able.rings else ()
        kept = (keep(able.memory),) if able else ()
        reads = ahead(engines.writer, prompting(engines, conversation, able), threads["think"])
        below = (*bell, session, attention.watch, *kept, reads, *watchers)
        hints = able.hints if able else None
        hearing = hears(engines, sound, *below, attention=attention, floor=floor, hints=hints)
        async with hearing as events:
            yield events


@asynccontextmanager
async def hears(
    engines: Engines,
    sound: Sound,
    *below: Stage,
    attention: Attention,
    floor: Floor,
    hints: Hints | None = None,
) -> AsyncIterator[Events]:
    """The listening line on one device, from the frame to the words, and the stages `below` it."""
    config = engines.config
    phrases = [word.replace("-", " ") for word in config.wake.words]
    with workers("ears", "turn end", "hear", "aside") as threads, ExitStack() as stack:
        stack.callback(sound.close)
        vad = stack.enter_context(engines.detector())
        stages: tuple[Stage, ...] = (
            bargein(floor),
            believe(interrupt_rules(config)),
            attend(attention, verifying(engines, threads["aside"]) if config.wake.verify else None),
            endpoint(endpoint_rules(config), engines.turn_end, threads["turn end"]),
            hear(engines.recogniser, threads["hear"], threads["aside"], hear_rules(config), hints),
            address(phrases),
        )
        async with line(ears(sound.frames(), vad, threads["ears"]), *stages, *below, depth=DEPTH) as events:
            yield events


@contextmanager
def workers(*names: str) -> Iterator[dict[str, Worker]]:
    with ExitStack() as stack:
        made = {name: Worker(name) for name in names}
        for worker in made.values():
            stack.callback(worker.close)
        yield made


async def reply(
    engines: Engines, conversation: Conversation, asked: str, able: Abilities | None = None
) -> AsyncIterator[Event]:
    """What comes of a typed question: the phrases of the answer, and what it rests on; the conversation remembers."""
    worker, said, record = Worker("think"), "", Record()
    answer = Answer(Transcript(0, 1, asked, 1.0))
    answer.confirmed.set()
    try:
        async with line(once(answer.to), *writing(engines, conversation, worker, answer, able)) as events:
            async for event in events:
                record.see(event)
                if isinstance(event, Phrase):
                    said += event.text
                yield event
    finally:
        worker.close()
    conversation.add(asked, said.strip())
    if able and (kept := await keep_one(able.memory, record, asked, said.strip())):
        yield kept


def writing(
    engines: Engines, conversation: Conversation, worker: Worker, answer: Answer, able: Abilities | None
) -> tuple[Stage, ...]:
    """The stages that turn words into the phrases of an answer: what a skill can do, what the documents say, and the
    language model for the rest."""
    thought = think(engines.writer, prompting(engines, conversation, able), worker, engines.think_rules)
    known = knowing(engines, worker, answer, able) if able else ()
    return (*known, thought, phrase(engines.for_the_ear), honest(answer.to.text))


def knowing(engines: Engines, worker: Worker, answer: Answer, able: Abilities) -> Iterator[Stage]:
    """The stages that take what the language model is not asked."""
    deadline = engines.config.deadlines.think
    yield understand(able.dialogue, answer, deadline)
    documents = bool(able.knowledge.packs)
    yield remember(able.memory, able.looker, answer, documents=documents, deadline_s=deadline)
    yield able.recall.stage(answer)
    if able.toolbox:
        yield tools(able.toolbox, able.dialogue, engines.form_writer, worker, answer)


def prompting(engines: Engines, conversation: Conversation, able: Abilities | None) -> Prompt:
    count = engines.writer.count
    if able is None:
        return Prompt(engines.prompt_rules, conversation, count)
    return Prompt(engines.prompt_rules, conversation, count, able.known, able.going_on)


def resume(engines: Engines, conversation: Conversation, able: Abilities) -> None:
    """Takes up a conversation that was going on when the box went off, and reads what its next prompt begins with."""
    for turn in able.memory.resume():
        conversation.add(turn.asked, turn.said)
    prompt = prompting(engines, conversation, able)
    engines.writer.prepare(prompt.opening, prompt.standing(), prompt.so_far())


def suspend(engines: Engines, conversation: Conversation, able: Abilities) -> None:
    """Keeps what the language model has read of the conversation, so that it need not read it again."""
    if conversation.messages and not able.memory.private and able.memory.rules.mode == "keep":
        engines.writer.suspend(prompting(engines, conversation, able).so_far())


def ringing(able: Abilities, sound: Sound, speech: Player, judge: Judge) -> Stage:
    player = sound.mixer.player("alarm", capacity=CAPACITY)
    return ring(
        able.alarms,
        player,
        now,
        stops=lambda text: judge(text, None) == "stop",
        speaks=lambda: speech.pending > 0,
    )


# --- what the box can do -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Abilities:
    """Skills, the dialogue about them, documents, and what rings (`rings`: in this process)."""

    library: Library
    dialogue: Dialogue
    knowledge: Knowledge
    recall: Recall
    memory: Memory
    looker: Worker
    """The thread in which memory and documents are searched."""
    alarms: Alarms[Alarm]
    toolbox: Toolbox | None
    broker: Broker | None
    upkeep: Upkeep
    rings: bool = False

    def hints(self, text: str) -> Sequence[str]:
        """What may have been meant by words that are near to a skill's, or to what is being spoken of."""
        hints = self.library.intents.hints(text, self.dialogue.expecting)
        return [*hints, *near_names(text, self.memory.heat.critical())]

    def known(self) -> Sequence[str]:
        """What the language model is told of what the user has told, as lines. What gives orders is never kept; what
        came in some other way is never read to it."""
        return [f"{unit.text.rstrip('.')}." for unit in self.memory.resident() if not is_order(unit.text)]

    def going_on(self) -> Sequence[str]:
        """The time, and what is being spoken of."""
        at = now()
        lines = [f"It is {at:%A}, {at.day} {at:%B %Y}, {at:%H:%M}."]
        if hot := self.memory.heat.words(4):
            lines.append(f"Lately spoken of: {', '.join(hot)}.")
        return lines

    def asks(self) -> bool:
        """Whether the box has asked something."""
        return self.dialogue.expecting is not None

    def poll(self) -> None:
        """Looks whether skills or documents came, went or changed; to be called often, aside. Raises StorageFault."""
        self.library.poll()
        self.watch()
        self.knowledge.refresh()
        self.upkeep.poll()

    def watch(self) -> None:
        """Hears the topics that skills may read from the beginning, not from their first question on."""
        if self.broker:
            self.broker.watch(name for skill in self.library.skills.values() for name in skill.manifest.grants.read)


@dataclass(frozen=True, slots=True)
class _Self:
    """What the box knows of itself."""

    conversation: Conversation
    library: Callable[[], Library]
    dismiss: Callable[[], int]

    def last_said(self) -> str:
        said = (message.text for message in reversed(self.conversation.messages) if message.role == "assistant")
        return next(said, "").strip()

    def examples(self) -> Mapping[str, Sequence[str]]:
        manifests = (skill.manifest for skill in self.library().skills.values())
        return {one.title: [rule.say for rule in one.intents.values() if rule.say] for one in manifests}

    def stop(self) -> bool:
        return self.dismiss() > 0


class Upkeep:
    """Memory's maintenance, now and then."""

    def __init__(self, memory: Memory, every: float = 600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory, self._every, self._clock = memory, every, clock
        self._next = clock() + every

    def poll(self) -> None:
        """To be called often, aside. Raises StorageFault."""
        if self._clock() >= self._next:
            self._next = self._clock() + self._every
            self._memory.tidy()


class _Mind:
    """Memory as a skill sees it."""

    def __init__(self, memory: Memory, conversation: Conversation) -> None:
        self._memory, self._conversation = memory, conversation

    @property
    def private(self) -> bool:
        return self._memory.private

    @private.setter
    def private(self, on: bool) -> None:
        if self._memory.private and not on:
            self._conversation.clear()  # what was said in private is not quoted in what is kept
        self._memory.private = on

    @property
    def person(self) -> str:
        return self._memory.person

    @person.setter
    def person(self, name: str) -> None:
        self._memory.person = name
        self._conversation.clear()

    def forget_last(self) -> Sequence[str]:
        return [unit.text for unit in self._memory.forget_last()]

    def forget_about(self, text: str) -> int:
        return self._memory.forget_about(text)

    def forget_everything(self) -> int:
        return self._memory.forget_everything()

    def tasks(self) -> str:
        known = self._memory.answer("What do I have to do?")
        return known.text if known else ""


@contextmanager
def abilities(
    engines: Engines,
    conversation: Conversation,
    *,
    config: Config | None = None,
    state: Path | None = None,
    mixer: Mixer | None = None,
    controls: Controls | None = None,
    rings: bool = False,
) -> Iterator[Abilities]:
    """What the settings name; what is remembered lies in `state`. Without a mixer and controls there is nothing to make
    louder or to mute. Raises StorageFault, ConfigFault; a skill that cannot be used is told in the log."""
    settings, home = config or engines.config, state or state_home()
    with ExitStack() as stack:
        cells = stack.enter_context(closing(Cells(home / "skills.db")))
        alarms = stack.enter_context(closing(Alarms(home / "alarms.db", Alarm, here())))
        memory = stack.enter_context(
            closing(
                Memory(
                    home,
                    partial(_embed, engines),
                    memory_rules(settings),
                    forgotten=lambda: wiped(engines, conversation),
                )
            )
        )
        broker = None
        if settings.mqtt.host:
            broker = stack.enter_context(closing(Broker(settings.mqtt, f"parley-{socket.gethostname()}")))
        services = Services(
            memory=lambda name: cells.space(name, library.quota(name)),
            alarms=alarms,
            network=Network(broker),
            controls=Knobs(dict(turned(engines, mixer, controls)), cells.space("box", 4_096)),
            now=now,
        )
        library = Library(
            services,
            settings.skills.folders,
            native=natives(_Self(conversation, lambda: library, alarms.dismiss), _Mind(memory, conversation)),
            keys=Keys(home / "keys", (config_home() / "keys", Path("/etc/parley/keys"))),
            disabled=settings.skills.disabled,
            locale=settings.skills.locale,
        )
        library.load()
        rules = DialogueRules(accept=settings.skills.accept, ask=settings.skills.ask, locale=settings.skills.locale)
        dialogue = Dialogue(lambda: library.skills, lambda: library.intents, rules, now=now)
        toolbox = Toolbox(lambda: library.skills, partial(_embed, engines)) if settings.skills.tools else None
        folder = state or cache_home()
        knowledge = stack.enter_context(
            closing(
                Knowledge(
                    settings.knowledge.folders,
                    folder / "knowledge.db",
                    partial(_embed, engines),
                    largest_mb=settings.knowledge.largest_mb,
                    model=settings.models.embedding,
                )
            )
        )
        knowledge.refresh()
        for fault in knowledge.faults:
            log("document", level=logging.WARNING, message=fault.message, fix=fault.fix)
        worker = stack.enter_context(closing(Worker("recall")))
        recall = Recall(knowledge, worker, now, settings.deadlines.think)
        upkeep = Upkeep(memory)
        able = Abilities(
            *(library, dialogue, knowledge, recall, memory, worker, alarms, toolbox, broker, upkeep), rings=rings
        )
        able.watch()
        yield able


def memory_rules(config: Config) -> MemoryRules:
    memory = config.memory
    return MemoryRules(
        mode=memory.mode,  # type: ignore[arg-type]  # the setting's choices
        largest_bytes=memory.largest_mb << 20,
        keep_days=memory.keep_days,
        gap_s=60 * memory.gap_min,
        backup_s=3_600 * memory.backup_h,
        person=memory.person,
    )


def wiped(engines: Engines, conversation: Conversation) -> None:
    """Something was forgotten: no copy of it stays in the conversation, or in what the language model has read."""
    conversation.clear()
    if "writer" in vars(engines):
        engines.writer.forget(engines.prompt_rules.opening)
    else:
        forget_prefixes(state_home() / "prefixes")


def near_names(text: str, names: Sequence[str]) -> Iterator[str]:
    """Names and numbers of the conversation that sound like something in the words and do not stand in them."""
    said = words(text)
    for name in names:
        if name.lower() not in text.lower() and any(distance(name.lower(), word) <= NEAR for word in said):
            yield name


def turned(engines: Engines, mixer: Mixer | None, controls: Controls | None) -> Iterator[tuple[str, Knob]]:
    """The knobs that skills may turn."""
    if mixer:
        loud = mixer
        yield "volume", volume(lambda: loud.volume, lambda gain: setattr(loud, "volume", gain))
        yield (
            "rate",
            Knob(lambda: engines.speaker.tempo, lambda tempo: setattr(engines.speaker, "tempo", tempo), 0.5, 2),
        )
    if controls:
        yield "mute", Knob(lambda: controls.muted, lambda on: controls.mute(bool(on)), kept=False)


def _embed(engines: Engines, texts: Sequence[str]) -> NDArray[np.float32]:
    """Loads the model when it is first needed. Raises ModelFault."""
    return engines.embedder.embed(texts)


def now() -> datetime:
    """In the box's zone, with its rules for summer time: seven tomorrow may have another offset than now."""
    return datetime.now(here())


def endpoint_rules(config: Config) -> EndpointRules:
    rules = config.endpoint
    return EndpointRules(
        rules.start_threshold,
        rules.stop_threshold,
        rules.min_speech_ms,
        rules.preroll_ms,
        rules.pause_ms,
        rules.check_ms,
        rules.recheck_ms,
        rules.hold_ms,
        rules.complete_threshold,
        rules.cap_s,
    )


def attend_rules(config: Config) -> AttendRules:
    wake = config.wake
    longest = max(60.0, 2 * (config.deadlines.hear + config.deadlines.think + config.deadlines.say))
    return AttendRules(wake.mode, wake.patience_s, wake.follow_up_s, wake.verify_ms, longest)


def verifying(engines: Engines, worker: Worker) -> Verify:
    """The recogniser as a second opinion about a wake word."""

    async def confirms(woken: Woken, sound: Pcm) -> bool:
        language = engines.config.hear.language
        return await worker.call(verify, engines.recogniser, sound, woken.word.replace("-", " "), language)

    return confirms


def interrupt_rules(config: Config) -> InterruptRules:
    rules = config.interrupt
    return InterruptRules(rules.speech_ms, rules.doubt_ms, rules.decide_ms, rules.backchannels, rules.stop)


def hear_rules(config: Config) -> HearRules:
    return HearRules(config.hear.partial_ms, config.hear.language, config.deadlines.hear)
