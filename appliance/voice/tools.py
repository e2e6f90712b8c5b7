"""Tool calls by the language model, for what no sentence covers.

A small model picks the right tool about half the time, so it is asked late and told little: the request is compared
with what each tool says of itself, and where none is near, no model is asked. Of the nearest few the model may choose
one or none, and fill its form with what the user said (`form`). What reads is called; what acts is put to the user
first.
Nothing that a tool, a document or the user says is ever read by the model as more than a request to fill a form for:
results are spoken or dropped.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from appliance.errors import DeadlineFault, Fault
from appliance.events import Event, Token, Transcript
from appliance.runtime.llm import LanguageModel, Sampling
from appliance.runtime.worker import Worker
from appliance.skills.dialogue import Able, Command, Dialogue, Plan
from appliance.skills.intents.words import listed, words
from appliance.skills.manifest import Tool
from appliance.skills.skill import Json
from appliance.stream import Events, Stage
from appliance.telemetry import Seldom
from appliance.voice.conversation import Message
from appliance.voice.deadline import mark, within
from appliance.voice.form import Form, called, problems, told
from appliance.voice.turn import Answer
from appliance.voice.understand import carry_out

NONE = "none"
SHOWN, COMPARED = 3, 16
"""Examples of a tool at most that the model is shown, and that a request is compared with."""
UNCLEAR = "Sorry, I'm not sure what to do about that."
UNKNOWN = "Sorry, I can't do that."
LATE = "Sorry, that took me too long. Nothing was done."
EMPTY = "Sorry, I found nothing to tell you about that."
_SYSTEM = 'Choose the tool for the request and fill it with words of the request. If no tool fits, answer "none".'
_NO_TOOL = (("How are you?", NONE), ("Tell me something about the sea.", NONE))
_SAY_NOTHING = frozenset(
    listed(
        "a an the to for of in on at by with from and or is are was be do does did it that this there i you we they my "
        "your our me us please can could would will how what who where when why which many much some any"
    )
)
_ENDINGS = re.compile(r"(?<=\w{3})(?:ing|ed|es|s)$")

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to rows of length 1 (`runtime.embed.Embedder.embed`); blocks."""


class FormWriter(Protocol):
    """What `tools` needs of a language model: JSON by a schema, out in pieces."""

    def fill(self, messages: Sequence[Message], schema: Mapping[str, Json], budget: int) -> Iterator[str]:
        """About `budget` tokens at most; each `next` is one bounded step, and may yield "". Raises Fault."""
        ...


@dataclass(frozen=True, slots=True)
class ToolRules:
    """A tool is `near` a request from that likeness on ([0, 1]), where meaning is not known from `wordly`; at most
    `candidates` of them, and none that is more than `apart` behind the nearest, are offered to the model. What is
    lacking is asked for only where the likeness is `sure`, and waited for `patience_s` seconds. The model may write
    `budget` tokens in `deadline_s` seconds. Requests of more than `longest` words are no requests."""

    near: float = 0.38
    wordly: float = 0.5
    sure: float = 0.5
    apart: float = 0.1
    candidates: int = 3
    budget: int = 96
    deadline_s: float = 6.0
    longest: int = 40
    patience_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool of a skill, and how like a request it is."""

    skill: str
    tool: Tool
    likeness: float


class Toolbox:
    """The tools of the skills there are, which may be reloaded at any time. One for a conversation: it knows what words
    the last request lacked something in. Without `embed`, or while that fails, likeness is of words alone."""

    def __init__(
        self,
        skills: Callable[[], Mapping[str, Able]],
        embed: Embed | None,
        rules: ToolRules | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rules = rules or ToolRules()
        self.now = now
        self._skills, self._embed, self._clock = skills, embed, clock
        self._rows: dict[str, NDArray[np.float32]] = {}
        self._seldom = Seldom(600.0)
        self._lacking = ("", 0.0)

    @property
    def lacking(self) -> str:
        """The words of the last request, if it lacked something and that may still be told."""
        text, at = self._lacking
        return text if self._clock() - at <= self.rules.patience_s else ""

    @lacking.setter
    def lacking(self, text: str) -> None:
        self._lacking = (text, self._clock())

    def nearest(self, text: str) -> list[Offer]:
        """The tools that may be meant, likeliest first; mostly none. Blocks while texts are embedded."""
        rules, tools = self.rules, self._tools()
        if not tools or not 0 < len(words(text)) <= rules.longest:
            return []
        rows = self._embedded([text, *(phrase for _, tool in tools for phrase in _phrases(tool))])
        offers = [Offer(skill, tool, max(_alike(text, one, rows) for one in _phrases(tool))) for skill, tool in tools]
        offers.sort(key=lambda offer: -offer.likeness)
        least = max(rules.near if rows else rules.wordly, offers[0].likeness - rules.apart)
        return [offer for offer in offers if offer.likeness >= least][: rules.candidates]

    def _tools(self) -> list[tuple[str, Tool]]:
        found = []
        for skill in self._skills().values():
            manifest = skill.manifest
            refused = dict(problems(manifest.tools, manifest.intents))
            for name, fault in refused.items():
                self._seldom(f"tool {skill.name}.{name}", reason=fault.message, fix=fault.fix)
            found += [(skill.name, tool) for name, tool in manifest.tools.items() if name not in refused]
        return found

    def _embedded(self, texts: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        """A row for each text; none at all where they cannot be made. Rows of tools are kept, those of requests not."""
        if self._embed is None:
            return {}
        try:
            new = [text for text in dict.fromkeys(texts) if text not in self._rows]
            rows = {**self._rows, **dict(zip(new, self._embed(new), strict=True))}
        except Fault as fault:
            self._seldom("tools are compared by words", reason=fault.message, fix=fault.fix)
            return {}
        self._rows = {text: rows[text] for text in texts[1:]}
        return rows


class ModelFormWriter:
    """The language model, on a cache of its own: the conversation's is not disturbed. Not for two threads at once."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._open = ExitStack()
        self._decoder = self._open.enter_context(model.session())

    def close(self) -> None:
        self._open.close()

    def fill(self, messages: Sequence[Message], schema: Mapping[str, Json], budget: int) -> Iterator[str]:
        grammar = self._model.grammars.schema(schema)
        for _ in self._decoder.prefill(self._model.chat.prompt(messages)):
            yield ""
        for token in self._decoder.generate(Sampling(temperature=0.0), budget=budget, grammar=grammar):
            yield token.text


def tools(toolbox: Toolbox, dialogue: Dialogue, writer: FormWriter, worker: Worker, answer: Answer) -> Stage:
    """Consumes a Transcript that a tool is for, and adds what `carry_out` does, or a Token that says why nothing is
    done; another is passed on. Before the turn is confirmed only tools without effect are called."""

    async def stage(events: Events) -> Events:
        async for event in events:
            if not isinstance(event, Transcript):
                yield event
                continue
            yield mark(event.at, event.turn, "tools", "start")
            found, lacking = await _understood(toolbox, dialogue, writer, worker, event)
            yield mark(event.at, event.turn, "tools", "done")
            if found is None:
                yield event
            elif isinstance(found, str):
                yield Token(event.at, event.turn, found, by="skill")
            else:
                async for done in _done(dialogue, found, event, answer, toolbox.rules.deadline_s):
                    yield done
            await answer.confirmed.wait()
            toolbox.lacking = lacking

    return stage


async def _done(
    dialogue: Dialogue, plan: Plan, event: Transcript, answer: Answer, deadline_s: float
) -> AsyncIterator[Event]:
    """What is planned, and a sentence in any case: a tool's result that is not for the ear is dropped."""
    silent = True
    async for found in carry_out(dialogue, plan, event, answer, deadline_s):
        silent = silent and not isinstance(found, Token)
        yield found
    if silent:
        yield Token(event.at, event.turn, EMPTY, by="skill")


async def _understood(
    toolbox: Toolbox, dialogue: Dialogue, writer: FormWriter, worker: Worker, event: Transcript
) -> tuple[Plan | str | None, str]:
    """What to do, or what to say instead, or None; and the words that lack something, "" if none do."""
    if toolbox.lacking:
        joined = f"{toolbox.lacking} {event.text}"
        found = await _choice(toolbox, writer, worker, joined)
        if isinstance(found, _Chosen) and not found.missing:
            return _plan(dialogue, found, joined), ""
    found = await _choice(toolbox, writer, worker, event.text)
    if not isinstance(found, _Chosen):
        return found, ""
    if found.missing:
        wanted = " and the ".join(called(found.offer.tool, name) for name in found.missing)
        return f"For that I also need the {wanted}.", event.text
    return _plan(dialogue, found, event.text), ""


@dataclass(frozen=True, slots=True)
class _Chosen:
    offer: Offer
    arguments: Mapping[str, Json]
    missing: tuple[str, ...] = ()


async def _choice(toolbox: Toolbox, writer: FormWriter, worker: Worker, text: str) -> _Chosen | str | None:
    """The tool that is meant, filled in; or what to say, where that came to nothing; or None: no tool is."""
    rules = toolbox.rules
    try:
        async with within("tools", rules.deadline_s):
            offers = await worker.call(toolbox.nearest, text)
    except DeadlineFault:
        return None
    if not offers:
        return None
    forms: dict[str, tuple[Offer, Form]] = {}
    for offer in offers:  # of two tools of one name the nearer is meant
        forms.setdefault(offer.tool.name, (offer, Form(offer.tool, text, toolbox.now())))
    nearest, form = forms[offers[0].tool.name]
    if missing := form.missing():
        return _Chosen(nearest, {}, missing) if nearest.likeness >= rules.sure else None
    complete = {name: form for name, (_, form) in forms.items() if not form.missing()}
    try:
        async with within("tools", rules.deadline_s):
            written = await _written(writer, worker, _messages(complete, text), _schema(complete), rules.budget)
    except DeadlineFault:
        return LATE
    return _judged(forms, written)


async def _written(
    writer: FormWriter, worker: Worker, messages: Sequence[Message], schema: Mapping[str, Json], budget: int
) -> str:
    pieces = worker.iterate(writer.fill(messages, schema, budget))
    try:
        return "".join([piece async for piece in pieces])
    finally:
        await pieces.aclose()


def _judged(forms: Mapping[str, tuple[Offer, Form]], written: str) -> _Chosen | str | None:
    """What the model wrote, of which nothing is believed."""
    try:
        given: Any = json.loads(written)
    except (ValueError, RecursionError):
        return UNCLEAR
    name, arguments = (given.get("tool"), given.get("arguments", {})) if isinstance(given, dict) else (None, None)
    if name == NONE:
        return None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return UNCLEAR
    if name not in forms:
        return UNKNOWN
    offer, form = forms[name]
    filled = form.judge(arguments)
    return UNCLEAR if filled.invalid else _Chosen(offer, filled.arguments, filled.missing)


def _plan(dialogue: Dialogue, chosen: _Chosen, text: str) -> Plan:
    skill, tool = chosen.offer.skill, chosen.offer.tool
    command = Command(skill, tool.name, chosen.arguments, text, min(max(chosen.offer.likeness, 0.0), 1.0))
    return dialogue.proposal(command, f"Do you want me to {told(tool, chosen.arguments)}?")


def _schema(forms: Mapping[str, Form]) -> Mapping[str, Json]:
    """One of the forms, or none."""

    def call(name: str, **more: Json) -> Mapping[str, Json]:
        properties = {"tool": {"const": name}, **more}
        return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}

    return {"anyOf": [*(call(name, arguments=form.schema) for name, form in forms.items()), call(NONE)]}


def _messages(forms: Mapping[str, Form], text: str) -> list[Message]:
    about = "\n".join(f"- {name}: {form.tool.description[:200]}" for name, form in forms.items())
    messages = [Message("system", f"{_SYSTEM}\n{about}")]
    shown: list[tuple[str, Mapping[str, Json]]] = [(request, {"tool": name}) for request, name in _NO_TOOL]
    for name, form in forms.items():
        shown += [(request, {"tool": name, "arguments": given}) for request, given in form.tool.examples[:SHOWN]]
    for request, call in shown:
        messages += [Message("user", request), Message("assistant", json.dumps(call, default=dict))]
    return [*messages, Message("user", text)]


# --- likeness ----------------------------------------------------------------------------------------------------


def _phrases(tool: Tool) -> tuple[str, ...]:
    """What a tool says of itself: what it is for, and the requests that it names."""
    return (tool.description, *(request for request, _ in tool.examples[:COMPARED]))


def _alike(one: str, other: str, rows: Mapping[str, NDArray[np.float32]]) -> float:
    """[0, 1]: of meaning where that is known. Words in common add nothing to it, and are what is left without."""
    if one in rows and other in rows:
        return max(float(rows[one] @ rows[other]), 0.0)
    left, right = _stems(one), _stems(other)
    return len(left & right) / (len(left) * len(right)) ** 0.5 if left and right else 0.0


def _stems(text: str) -> set[str]:
    return {_ENDINGS.sub("", word) for word in words(text) if word not in _SAY_NOTHING}
