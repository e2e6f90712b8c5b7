"""Nothing that is not meant for the ear gets through, wherever the text is cut."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from appliance.voice.sanitise import HOLD, Sanitiser, sanitise

TABLE = [
    ("Plain text, 3.5 and 'that'.", "Plain text, 3.5 and 'that'."),
    ("**Bold**, *it*, __b__, _i_, ~~gone~~ and `code`.", "Bold, it, b, i, gone and code."),
    ("# Title\ntext", "Title\ntext"),
    ("\x1b[31mRed\x1b[0m and \x1b[1;4Hthere, \x1bnot, \x1b[", "Red and there, not, "),
    ("un\u200block the do\u2060ors\u202e, so\u00adft\x07", "unlock the doors, soft"),
    ("###### Six\ntext", "Six\ntext"),
    ("- one\n* two\n+ three\n• four\n  - five", "one\ntwo\nthree\nfour\nfive"),
    ("1. one\n2. two", "1. one\n2. two"),
    ("> quoted", "quoted"),
    ("a\n---\nb\n***\nc", "a\n\nb\n\nc"),
    ("Look:\n```python\nprint('<b>')\n```\nDone.", "Look:\n\nDone."),
    ("```\nnever closed", ""),
    ("~~~\ncode\n~~~ after", " after"),
    ("<think>secret</think>Hello", "Hello"),
    ("<think>\nnever closed", ""),
    ("Hi</think> there", "Hi there"),
    ("<tool_call>{\"name\": \"x\"}</tool_call>ok", "ok"),
    ("<|tool_call_start|>[f(x=1)]<|tool_call_end|>ok", "ok"),
    ("Hi<|im_end|>", "Hi"),
    ("<|im_start|>assistant", "assistant"),
    ("</s><s>Hi<bos><eos><unk><pad><0x0A>", "Hi"),
    ("[INST]Hi[/INST]", "Hi"),
    ("<<SYS>>Hi<</SYS>>", "Hi"),
    ("<start_of_turn>Hi<end_of_turn>", "Hi"),
    ("<｜end▁of▁sentence｜>Hi", "Hi"),
    ("{\"name\": \"f\", \"args\": {\"a\": \"}\\\"{\"}} after", " after"),
    ("[{\"name\": \"f\"}] after", " after"),
    ("[TOOL_CALLS] [{\"name\": \"f\"}] after", "  after"),
    ("{\"name\": \"never", ""),
    ("{curly} words", "{curly} words"),
    ("Dear [Your Name], hi", "Dear , hi"),
    ("[the docs](https://x.y/a_(b)) say", "the docs say"),
    ("![picture](u.png) end", " end"),
    ("[a **b**][1] end", "a b end"),
    ("as said [1].", "as said ."),
    ("as said 【4†source】.", "as said ."),
    ("- [ ] task\n- [x] done", " task\n done"),
    ("<b>bold</b> <i>it</i><br/>line", "bold it\nline"),
    ("<a href=\"http://x\">link</a>", "link"),
    ("<!-- hidden -->shown", "shown"),
    ("<script>x < 1</script>shown", "shown"),
    ("a < b and c > d", "a < b and c > d"),
    ("a <b and c> d", "a <b and c> d"),
    ("x<y, 1 < 2, I <3 you, <", "x<y, 1 < 2, I <3 you, <"),
    ("<" + "a" * 2 * HOLD, "<" + "a" * 2 * HOLD),
    ("3 * 4 = 12, 3*4, 5 * ", "3 * 4 = 12, 3*4, 5 * "),
    ("snake_case_name", "snake_case_name"),
    ("\\*literal\\*", "literal"),
    ("Tom &amp; Ann &lt;3 &#39;x&#39; A&B &", "Tom & Ann <3 'x' A&B &"),
    ("Hi 😀👍🏽 🇩🇪 ok ❤️ 1️⃣", "Hi   ok  1"),
    ("array [1", "array 1"),
    ("open [bracket\nnext", "open bracket\nnext"),
    ("Wow! [x] Wow!", "Wow!  Wow!"),
    ("Zażółć gęślą jaźń — привет, 你好, مرحبا", "Zażółć gęślą jaźń — привет, 你好, مرحبا"),
]  # fmt: skip


def _split(text: str) -> list[str]:
    return text.split("|")


PIECES = st.sampled_from(
    [
        *_split(
            'a|the|3| |\n|.|,|*|**|_|`|```|~|~~~|<|>|</|<think>|</think>|<b>|<!--|-->|[|]|(|)|![|[INST]|{|}|{"|"|\\'
            '|&|&amp;|#|# |- |1. |---|=|😀|é|【|】|<tool_call>|</tool_call>|[{|http://x.y/z|<a href="'
        ),
        "|",
        "<|im_end|>",
        "<|",
    ]
)


def fed(pieces: list[str] | list[bytes]) -> str:
    sanitiser = Sanitiser()
    return "".join(sanitiser.feed(piece) for piece in pieces) + sanitiser.flush()


@pytest.mark.parametrize(("written", "heard"), TABLE)
def test_table(written: str, heard: str) -> None:
    assert sanitise(written) == heard


@pytest.mark.parametrize(("written", "heard"), TABLE)
def test_table_cut_anywhere(written: str, heard: str) -> None:
    data = written.encode()
    assert fed(list(written)) == heard
    assert fed([data[i : i + 1] for i in range(len(data))]) == heard
    for cut in range(1, len(data)):
        assert fed([data[:cut], data[cut:]]) == heard


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=25))
@example(["<", "b"])
@example(['<a href="', '<a href="', ">"])
@example(["*"] * 8)
def test_pieces_change_nothing(pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert fed(pieces) == sanitise(whole) == fed(list(whole))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=600))
def test_any_text(text: str) -> None:
    assert fed(list(text)) == sanitise(text)


@settings(max_examples=50, deadline=None)
@given(
    st.text(st.characters(categories=["L", "Nd", "Zs", "Po"], exclude_characters="*_`[]{}<>&\\#!~【】•‣"), max_size=400)
)
def test_plain_words_are_kept(text: str) -> None:
    assert sanitise("x" + text) == "x" + text


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    assert fed([data[i : i + 1] for i in range(len(data))]) == sanitise(data.decode("utf-8", "replace"))


def test_held_text_is_bounded() -> None:
    sanitiser = Sanitiser()
    heard = sanitiser.feed("[" + "word " * 200)
    assert len(heard) > 1000 - HOLD


def test_usable_again_after_flush() -> None:
    sanitiser = Sanitiser()
    sanitiser.feed("<think>open")
    sanitiser.flush()
    assert sanitiser.feed("word.") + sanitiser.flush() == "word."
