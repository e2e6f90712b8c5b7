"""Text that is forced into a form."""

from __future__ import annotations

import json
from typing import Any

import pytest
import small_gguf
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import ConfigFault
from appliance.runtime.llm import LanguageModel, Sampling
from appliance.runtime.model import finish

leaf = st.sampled_from(
    [
        {"type": "integer", "minimum": 0, "maximum": 99},
        {"type": "boolean"},
        {"type": "string", "maxLength": 6},
        {"enum": ["on", "off", "auto"]},
        {"type": "null"},
    ]
)
schemas = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds(lambda of: {"type": "array", "items": of, "maxItems": 2}, inner),
        st.builds(
            lambda of: {"type": "object", "properties": of, "required": list(of), "additionalProperties": False},
            st.dictionaries(st.sampled_from(["room", "minutes", "ok"]), inner, min_size=1, max_size=3),
        ),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel.open(small_gguf.built(tmp_path_factory.mktemp("grammar")), threads=1)


def valid(value: Any, schema: dict[str, Any]) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    kind = schema["type"]
    if kind == "integer":
        return type(value) is int and schema["minimum"] <= value <= schema["maximum"]
    if kind == "string":
        return isinstance(value, str) and len(value) <= schema["maxLength"]
    if kind == "array":
        return isinstance(value, list) and len(value) <= 2 and all(valid(item, schema["items"]) for item in value)
    if kind == "object":
        named = schema["properties"]
        return isinstance(value, dict) and set(value) == set(named) and all(valid(value[k], named[k]) for k in named)
    return value is None if kind == "null" else isinstance(value, bool)


@settings(max_examples=40, deadline=None)
@given(schema=schemas, seed=st.integers(0, 1000))
def test_random_schemas_give_valid_json_or_say_that_the_budget_is_spent(
    model: LanguageModel, schema: dict[str, Any], seed: int
) -> None:
    with model.session() as decoder:
        finish(decoder.prefill([10, 20, 30]))
        sampling = Sampling(temperature=2, seed=seed)
        tokens = list(decoder.generate(sampling, budget=90, grammar=model.grammars.schema(schema)))
    if tokens[-1].end == "eos":
        assert valid(json.loads("".join(token.text for token in tokens)), schema)
    else:
        assert tokens[-1].end in ("budget", "loop")


def test_other_forms(model: LanguageModel) -> None:
    for grammar in (model.grammars.regex("(yes|no)"), model.grammars.lark('start: "yes" | "no"')):
        with model.session() as decoder:
            finish(decoder.prefill([10, 20, 30]))
            tokens = list(decoder.generate(budget=20, grammar=grammar))
        assert "".join(token.text for token in tokens) in ("yes", "no")
        assert tokens[-1].end == "eos"


def test_a_grammar_may_be_used_again(model: LanguageModel) -> None:
    grammar = model.grammars.regex("the an")
    for _ in range(2):
        with model.session() as decoder:
            finish(decoder.prefill([10, 20, 30]))
            assert "".join(token.text for token in decoder.generate(budget=20, grammar=grammar)) == "the an"


def test_invalid_grammars_are_told(model: LanguageModel) -> None:
    for make in (
        lambda: model.grammars.schema({"type": "nonsense"}),
        lambda: model.grammars.regex("("),
        lambda: model.grammars.lark("start: unknown"),
    ):
        with pytest.raises(ConfigFault, match="grammar"):
            make()
