"""The only file that builds things and knows every room."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from appliance.config import Config, state_home
from appliance.events import Phrase, Transcript
from appliance.runtime import asr
from appliance.runtime.asr import Recogniser
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
from appliance.runtime.worker import Worker
from appliance.stream import Events, Stage, line
from appliance.voice.bargein import Floor, InterruptRules, Judge, bargein
from appliance.voice.conversation import Conversation, Message, Role
from appliance.voice.ears import ears, half_duplex
from appliance.voice.endpoint import EndpointRules, endpoint
from appliance.voice.hear import HearRules, hear
from appliance.voice.honest import honest
from appliance.voice.mouth import mouth
from appliance.voice.phrase import ForTheEar, phrase
from appliance.voice.say import Speaker, say
from appliance.voice.session import converse
from appliance.voice.think import ThinkRules, think
from appliance.voice.turn import Answering, once
from appliance.voice.writer import Writer
from firmware.frame import RATE
from firmware.sound import Sound
from firmware.vad import Vad

DEPTH = 64
"""Frames between two stages of the listening line: while one recognition runs, endpointing goes on."""

LOADERS = 2
"""Models that are loaded at once: half of loading waits for one core."""

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
    def writer(self) -> Writer:
        model = LanguageModel.open(self.shelf.built(self.config.models.lm), threads=self.config.think.threads)
        return Writer(model, snapshots=state_home() / "prefixes", temperature=self.config.think.temperature)

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
        roles: tuple[Role, ...] = ("user", "assistant")
        examples = (Message(roles[number % 2], text) for number, text in enumerate(think.examples))
        opening = (Message("system", think.system), *examples)
        return ThinkRules(opening, think.history_tokens, think.max_tokens, think.sentences, self.config.deadlines.think)

    def warm(self, report: Report = lambda what, fraction: None) -> None:
        """Loads every model and runs each once, so that the first turn costs no more than the next."""
        noise = np.random.default_rng(0).normal(0, 0.01, RATE).astype(np.float32)
        steps: tuple[tuple[str, Callable[[], object]], ...] = (
            ("recognition", lambda: finish(self.recogniser.transcribe(noise, language=self.config.hear.language))),
            ("language model", lambda: self.writer.prepare(self.think_rules.opening)),
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


@asynccontextmanager
async def talk(
    engines: Engines, sound: Sound, conversation: Conversation, *watchers: Stage, duplex: str = "full"
) -> AsyncIterator[Events]:
    """The whole voice loop on one device: what is heard and what is answered, as one stream of events. `duplex` is
    "half" where the microphone hears the loudspeaker and nothing cancels it."""
    config = engines.config
    with ExitStack() as stack:
        workers = {name: Worker(name) for name in ("ears", "turn end", "hear", "aside", "think", "say", "mouth")}
        for worker in workers.values():
            stack.callback(worker.close)
        stack.callback(sound.close)
        vad = stack.enter_context(engines.detector())
        player = sound.mixer.player("speech")
        rules = interrupt_rules(config)
        floor = Floor(player, rules)
        answering = Answering(
            write=writing(engines, conversation, workers["think"]),
            voice=(say(engines.speaker, workers["say"], config.deadlines.say),),
            mouth=lambda spoken: mouth(player, workers["mouth"], spoken),
        )
        stages = (
            bargein(floor),
            endpoint(endpoint_rules(config), engines.turn_end, workers["turn end"]),
            hear(engines.recogniser, workers["hear"], workers["aside"], hear_rules(config)),
            converse(answering, conversation, floor, Judge(rules, engines.for_the_ear)),
        )
        frames = sound.frames() if duplex == "full" else half_duplex(sound.frames(), sound)
        source = ears(frames, vad, workers["ears"])
        async with line(source, *stages, *watchers, depth=DEPTH) as events:
            yield events


async def reply(engines: Engines, conversation: Conversation, asked: str) -> AsyncIterator[str]:
    """The answer to a typed question, clause by clause; the conversation remembers both."""
    worker, said = Worker("think"), ""
    try:
        async with line(once(Transcript(0, 1, asked, 1.0)), *writing(engines, conversation, worker)) as events:
            async for event in events:
                if isinstance(event, Phrase):
                    said += event.text
                    yield event.text
    finally:
        worker.close()
    conversation.add(asked, said.strip())


def writing(engines: Engines, conversation: Conversation, worker: Worker) -> tuple[Stage, ...]:
    """The stages that turn words into the phrases of an answer."""
    return think(engines.writer, conversation, worker, engines.think_rules), phrase(engines.for_the_ear), honest()


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


def interrupt_rules(config: Config) -> InterruptRules:
    rules = config.interrupt
    return InterruptRules(rules.speech_ms, rules.doubt_ms, rules.decide_ms, rules.backchannels, rules.stop)


def hear_rules(config: Config) -> HearRules:
    return HearRules(config.hear.partial_ms, config.hear.language, config.deadlines.hear)
