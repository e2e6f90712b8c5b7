"""The engine on a small decoder: what it reads, keeps, forgets, writes and restores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import small_gguf
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import ModelDamaged, ModelFault
from appliance.runtime.llm import Decoder, LanguageModel, Sampling, Token
from appliance.runtime.model import finish
from appliance.runtime.sampling import Logits

VOCABULARY = len(small_gguf.PIECES)
some_ids = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=60)


@pytest.fixture(scope="module", params=["exact", "single"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return LanguageModel.open(small_gguf.built(tmp_path_factory.mktemp("small")), threads=1, rung=request.param)


@pytest.fixture(scope="module")
def used(model: LanguageModel) -> Iterator[Decoder]:
    """A decoder that has been used for something else before."""
    with model.session() as decoder:
        yield decoder


def fresh(model: LanguageModel, ids: list[int]) -> Logits:
    with model.session() as decoder:
        finish(decoder.prefill(ids))
        return decoder.logits


def text(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens)


@settings(max_examples=40, deadline=None)
@given(first=some_ids, second=some_ids)
def test_rollback_equals_a_fresh_cache(
    model: LanguageModel, used: Decoder, first: list[int], second: list[int]
) -> None:
    finish(used.prefill(first))
    common = first[: len(first) // 2]
    finish(used.prefill([*common, *second]))
    assert used.tokens == [*common, *second]
    wanted = fresh(model, [*common, *second])
    assert np.abs(used.logits - wanted).max() < 0.25  # chunks may be cut elsewhere: 8-bit products of other kernels


@settings(max_examples=20, deadline=None)
@given(ids=some_ids)
def test_one_by_one_equals_at_once(model: LanguageModel, used: Decoder, ids: list[int]) -> None:
    for size in range(1, len(ids) + 1):
        finish(used.prefill(ids[:size]))
    step_by_step = used.logits
    finish(used.prefill([]))
    finish(used.prefill(ids))
    assert step_by_step is not used.logits
    assert np.abs(step_by_step - used.logits).max() < 0.25


def test_results_belong_to_the_caller(model: LanguageModel) -> None:
    with model.session() as decoder:
        finish(decoder.prefill([10, 11]))
        first = decoder.logits
        copy = first.copy()
        finish(decoder.prefill([10, 11, 12]))
        np.testing.assert_array_equal(first, copy)
        assert np.abs(decoder.logits - first).max() > 0.01


def test_what_is_known_is_not_read_again(model: LanguageModel) -> None:
    ids = list(range(10, 60))
    with model.session() as decoder:
        assert len(list(decoder.prefill(ids))) == 4  # 16 + 16 + 16 and the last two
        assert len(list(decoder.prefill(ids))) == 0
        assert len(list(decoder.prefill([*ids, 9]))) == 1
        assert len(list(decoder.prefill(ids[:20]))) == 1


def test_given_up_half_way_it_holds_what_was_read(model: LanguageModel) -> None:
    ids = list(range(10, 60))
    with model.session() as decoder:
        steps = decoder.prefill(ids)
        next(steps)
        steps.close()
        assert decoder.tokens == ids[:16]
        finish(decoder.prefill(ids))
        np.testing.assert_array_equal(decoder.logits, fresh(model, ids))


def test_nothing_follows_from_nothing(model: LanguageModel) -> None:
    with model.session() as decoder:
        finish(decoder.prefill([]))
        with pytest.raises(ModelFault, match="nothing has been read"):
            next(decoder.generate())


def test_sessions_do_not_share_a_cache(model: LanguageModel) -> None:
    with model.session() as one, model.session() as other:
        finish(one.prefill([5, 6, 7]))
        before = one.logits
        finish(other.prefill([50, 60, 70, 80]))
        finish(one.prefill([5, 6]))
        finish(one.prefill([5, 6, 7]))
        np.testing.assert_allclose(one.logits, before, atol=1e-4)


def test_the_context_has_an_end(model: LanguageModel) -> None:
    with model.session() as decoder:
        with pytest.raises(ModelFault, match="129 tokens do not fit a context of 128"):
            finish(decoder.prefill([9] * 129))
        finish(decoder.prefill([i % 200 + 5 for i in range(126)]))
        tokens = list(decoder.generate(Sampling(temperature=5, seed=3), budget=50))
        assert tokens[-1].end == "context"
        assert len(tokens) == 3
        assert len(decoder.tokens) == 128


def test_budget_and_greed(model: LanguageModel) -> None:
    with model.session() as decoder:
        finish(decoder.prefill([10, 20, 30]))
        first = decoder.logits
        tokens = list(decoder.generate(budget=5))
        assert [token.end for token in tokens] == [None] * 4 + ["budget"]
        assert tokens[0].id == first.argmax()
        assert tokens[0].logprob == pytest.approx(first.max() - np.log(np.exp(first.astype(float)).sum()), abs=1e-4)
        assert decoder.tokens == [10, 20, 30, *(token.id for token in tokens[:-1])]


def test_equal_seeds_give_equal_text(model: LanguageModel) -> None:
    def sampled(seed: int) -> list[int]:
        with model.session() as decoder:
            finish(decoder.prefill([10, 20, 30]))
            return [token.id for token in decoder.generate(Sampling(temperature=1, seed=seed), budget=12)]

    assert sampled(1) == sampled(1)
    assert sampled(1) != sampled(2)


def test_a_loop_ends_the_text(model: LanguageModel) -> None:
    same = model.grammars.regex("(the )*")
    with model.session() as decoder:
        finish(decoder.prefill([10, 20, 30]))
        forced = model.grammars.regex("(the ){100}")
        assert list(decoder.generate(budget=200, grammar=forced))[-1].end == "loop"
        finish(decoder.prefill([10, 20, 30]))
        assert list(decoder.generate(budget=200, grammar=same))[-1].end in ("loop", "eos")


@pytest.mark.parametrize("stop", ["the", "e", " then", "n t"])
def test_stop_strings_across_tokens(model: LanguageModel, stop: str) -> None:
    grammar = model.grammars.regex("in the an then the hen")
    with model.session() as decoder:
        finish(decoder.prefill([10, 20, 30]))
        tokens = list(decoder.generate(budget=200, stop=[stop], grammar=grammar))
    assert tokens[-1].end == "stop"
    assert text(tokens) == "in the an then the hen".split(stop)[0]


@pytest.mark.parametrize("word", ["naïve", "日本語", "🎉🎉", "a\u0301é"])
def test_characters_come_whole(model: LanguageModel, word: str) -> None:
    """Every byte of the small vocabulary is a token, so each character is split at each of its bytes."""
    with model.session() as decoder:
        finish(decoder.prefill([10, 20, 30]))
        tokens = list(decoder.generate(budget=200, grammar=model.grammars.regex(word)))
    assert text(tokens) == word
    assert not any("�" in token.text for token in tokens)
    assert tokens[-1].end == "eos"


def test_a_character_that_never_ends_is_marked(model: LanguageModel) -> None:
    half = "🎉".encode()[:2]
    assert model.tokenizer.decode([small_gguf.PIECES.index(small_gguf.LETTERS[i]) for i in letters(half)]) == "�"


def letters(data: bytes) -> list[int]:
    from appliance.runtime.tokenizer import _BYTES

    places = {value: index for index, value in enumerate(_BYTES.values())}
    return [places[bytes([byte])] for byte in data]


def test_snapshots_come_back(model: LanguageModel, tmp_path: Path) -> None:
    ids = list(range(10, 60))
    path = tmp_path / "deep" / "prefix.kv"
    with model.session() as decoder:
        finish(decoder.prefill(ids))
        decoder.save(path)
        finish(decoder.prefill([*ids, 7]))
        wanted = decoder.logits
    assert [entry.name for entry in path.parent.iterdir()] == ["prefix.kv"]
    with model.session() as decoder:
        assert decoder.restore(path)
        assert decoder.tokens == ids
        finish(decoder.prefill([*ids, 7]))
        np.testing.assert_array_equal(decoder.logits, wanted)


def test_damaged_snapshots_are_told(model: LanguageModel, tmp_path: Path) -> None:
    path = tmp_path / "prefix.kv"
    with model.session() as decoder:
        finish(decoder.prefill(list(range(10, 40))))
        decoder.save(path)
        whole = path.read_bytes()
        finish(decoder.prefill([1, 2, 3]))
        for size in (0, 1, 50, 4096, 5000, len(whole) - 1):
            path.write_bytes(whole[:size])
            assert not decoder.restore(path)
        for at in (0, 3, 20, 4096, 9000, len(whole) - 1):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert not decoder.restore(path)
        assert not decoder.restore(tmp_path / "missing.kv")
        assert decoder.tokens == [1, 2, 3]
        path.write_bytes(whole)
        assert decoder.restore(path)


def test_foreign_snapshots_are_told(model: LanguageModel, tmp_path: Path) -> None:
    path = tmp_path / "prefix.kv"
    with model.session() as decoder:
        finish(decoder.prefill([10, 11, 12]))
        decoder.save(path)
    other = LanguageModel(model.decode, model.prefill, model.tokenizer, model.chat, key="another", ends=[], context=128)
    with other.session() as decoder:
        assert not decoder.restore(path)


@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=300))
def test_noise_is_no_snapshot(
    model: LanguageModel, used: Decoder, tmp_path_factory: pytest.TempPathFactory, noise: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.kv"
    path.write_bytes(noise)
    assert not used.restore(path)


def test_a_damaged_model_is_told(tmp_path: Path) -> None:
    built = small_gguf.built(tmp_path)
    for name, content in (("chat.json", b"[]"), ("tokenizer.json", b"{"), ("decode.onnx", b"x")):
        kept = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelDamaged, match=name):
            LanguageModel.open(built)
        (tmp_path / name).write_bytes(kept)
