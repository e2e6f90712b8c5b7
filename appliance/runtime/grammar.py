"""The door to llguidance: text that is forced into a JSON schema, a regular expression or a context-free grammar."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from appliance.errors import ConfigFault
from appliance.runtime.tokenizer import Tokenizer

_WHITESPACE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""Free whitespace is where a small model loses itself."""


class Grammar:
    """A grammar for one tokenizer. Raises ConfigFault when it is not valid."""

    def __init__(self, tokenizer: LLTokenizer, grammar: str, size: int) -> None:
        self._tokenizer = tokenizer
        self._grammar = grammar
        self._size = size
        self.matcher()

    def matcher(self) -> Matcher:
        """At the beginning of a text."""
        matcher = LLMatcher(self._tokenizer, self._grammar)
        if matcher.is_error():
            raise ConfigFault(f"the grammar cannot be used: {matcher.get_error()}", "simplify the schema")
        return Matcher(matcher, self._size)


class Matcher:
    """What may come next, while a text is written."""

    def __init__(self, matcher: LLMatcher, size: int) -> None:
        self._matcher = matcher
        self._size = size

    def mask(self, logits: NDArray[np.float32]) -> None:
        """Sets what may not come next to -inf, in place."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        allowed = np.unpackbits(bits, count=len(logits), bitorder="little")
        logits[allowed == 0] = -np.inf

    def accept(self, id: int) -> None:
        """Moves on behind a token that the mask allowed."""
        self._matcher.consume_token(id)

    @property
    def done(self) -> bool:
        """Whether the text is complete and nothing may follow."""
        return bool(self._matcher.is_stopped())


class Grammars:
    """Makes grammars for one tokenizer. `ends` are the ids that end a text."""

    def __init__(self, tokenizer: Tokenizer, ends: Collection[int]) -> None:
        self._size = tokenizer.size
        self._tokenizer = LLTokenizer(tokenizer.path.read_text("utf-8"), eos_token=sorted(ends))

    def schema(self, schema: Mapping[str, Any]) -> Grammar:
        """JSON that is valid by a JSON schema."""
        given = dict(schema) | {"x-guidance": _WHITESPACE}
        return self._grammar(LLMatcher.grammar_from_json_schema(json.dumps(given)))

    def regex(self, pattern: str) -> Grammar:
        return self._grammar(LLMatcher.grammar_from_regex(pattern))

    def lark(self, grammar: str) -> Grammar:
        """A grammar in llguidance's variant of Lark's notation."""
        return self._grammar(LLMatcher.grammar_from_lark(grammar))

    def _grammar(self, grammar: str) -> Grammar:
        return Grammar(self._tokenizer, grammar, self._size)
