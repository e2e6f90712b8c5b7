"""The door to Jinja: messages to the tokens of a prompt, by the model's own template."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from appliance.errors import ModelDamaged, ModelFault
from appliance.runtime.tokenizer import Tokenizer


class Message(Protocol):
    """`role` is "system", "user" or "assistant"."""

    @property
    def role(self) -> str: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Said:
    """A message of one's own."""

    role: str
    text: str


class Chat:
    """What is said in a message stays text: the template is filled with place-holders, and only what stands around
    them may be special tokens. Prompts of conversations that begin alike begin with the same tokens. Raises
    ModelDamaged when the template cannot be read."""

    def __init__(
        self, tokenizer: Tokenizer, template: str, *, bos: str = "", eos: str = "", begin: bool = False
    ) -> None:
        self._tokenizer = tokenizer
        self._names = {"bos_token": bos, "eos_token": eos}
        self._begin = [tokenizer.specials[bos]] if begin and bos in tokenizer.specials else []
        longest_first = sorted(tokenizer.specials, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        world = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        world.globals["raise_exception"] = _refuse
        try:
            self._template = world.from_string(template) if template else None
        except TemplateError as error:
            raise ModelDamaged(
                f"the chat template cannot be read: {error}", "state `chat_template` in the manifest"
            ) from error

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The messages, and the beginning of the assistant's answer. Raises ModelFault when the template refuses."""
        return self._tokens(messages, answer=True)

    def prefix(self, messages: Sequence[Message]) -> list[int]:
        """The messages alone: what every prompt that begins with them begins with."""
        return self._tokens(messages, answer=False)

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens that the messages take (with the template's own system message where they have none)."""
        return len(self.prefix(messages))

    def _tokens(self, messages: Sequence[Message], *, answer: bool) -> list[int]:
        mark = secrets.token_hex(8)
        rendered = self._render([{"role": m.role, "content": f"{mark}{i}."} for i, m in enumerate(messages)], answer)
        ids: list[int] = []
        text = ""
        for number, piece in enumerate(re.split(rf"{mark}(\d+)\.", rendered)):
            if number % 2:
                text += messages[int(piece)].text
                continue
            at = 0
            for special in self._special.finditer(piece):
                ids += self._tokenizer.encode(text + piece[at : special.start()])
                ids.append(self._tokenizer.specials[special.group()])
                text, at = "", special.end()
            text += piece[at:]
        ids += self._tokenizer.encode(text)
        return ids if ids[: len(self._begin)] == self._begin else self._begin + ids

    def _render(self, messages: list[dict[str, str]], answer: bool) -> str:
        if self._template is None:
            raise ModelFault("the model has no chat template", "use an instruction model, or state `chat_template`")
        try:
            return self._template.render(messages=messages, add_generation_prompt=answer, **self._names)
        except TemplateError as error:
            raise ModelFault(
                f"the chat template refuses these messages: {error}", "see the model's description"
            ) from error


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
