"""Knowledge: answers are taken over as written, what is not there is refused, and the index follows the folders."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from appliance.store.knowblocks import CHUNK
from appliance.store.knowledge import FEW, Answer, Knowledge, Refusal
from appliance.store.knowquestion import is_question, understand
from appliance.store.knowwords import Lexicon, Stemmer

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)  # a Tuesday
SHOP = """# Corner Shop

| Day | Hours |
|---|---|
| Monday to Friday | 9:00 to 18:00 |
| Saturday | 10:00 to 14:00 |
| Sunday | closed |

Dogs are welcome on the terrace. They must not come inside.

Manager: Ines Albrecht
"""
MENU = "Item,Size,Price (EUR)\nLatte,small,3.20\nLatte,medium,3.80\nLatte,large,4.40\nGreen tea,,2.80\n"


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Texts are near that share words."""
    rows = np.zeros((len(texts), 384), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            row[zlib.crc32(word.encode()) % 384] += 1
        row /= np.linalg.norm(row) or 1
    return rows


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    (tmp_path / "packs/shop").mkdir(parents=True)
    (tmp_path / "packs/shop/faq.md").write_text(SHOP)
    (tmp_path / "packs/shop/menu.csv").write_text(MENU)
    return tmp_path / "packs"


@pytest.fixture
def known(packs: Path) -> Iterator[Knowledge]:
    knowledge = Knowledge((packs,), packs.parent / "index.db", embed)
    knowledge.refresh()
    yield knowledge
    knowledge.close()


def said(knowledge: Knowledge, question: str, now: datetime = NOW) -> str:
    found = knowledge.ask(question, now)
    return found.text if isinstance(found, Answer) else ""


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What does the small latte cost?", "The price of the small latte is 3.20 euros."),
        ("how much is a latte", "Price: small latte 3.20 euros, medium latte 3.80 euros, large latte 4.40 euros."),
        ("how much is the grean tea", "The price of the green tea is 2.80 euros."),
        ("when are you open on Wednesday", "Monday to Friday: 9:00 to 18:00."),
        ("are you open on sundays", "Sunday: closed."),
        ("may dogs come inside", "Dogs are welcome on the terrace. They must not come inside."),
        ("who is the manager", "Manager: Ines Albrecht."),
    ],
)
def test_answers_are_as_written(known: Knowledge, question: str, text: str) -> None:
    assert said(known, question) == text


@pytest.mark.parametrize(
    "question",
    [
        "What does the extra large latte cost?",
        "how much is the large green tea",
        "how much is the large green latte",
        "do you sell bicycles",
        "who founded the shop",
        "why is the latte 3.20",
        "when was the shop opened",
        "how many dogs do you have",
        "what does the shop cost",
        "are cats welcome on the terrace",
    ],
)
def test_what_is_not_there_is_refused(known: Knowledge, question: str) -> None:
    assert isinstance(known.ask(question, NOW), Refusal)


def test_an_answer_tells_where_it_stands(known: Knowledge) -> None:
    found = known.ask("price of the large latte", NOW)
    assert isinstance(found, Answer)
    assert (found.pack, found.source, found.line, found.kind) == ("shop", "menu.csv", 4, "field")
    assert found.passage == "Item: Latte; Size: large; Price (EUR): 4.40"


def test_days_are_counted_from_now(known: Knowledge) -> None:
    assert said(known, "when are you open tomorrow") == "Monday to Friday: 9:00 to 18:00."
    assert said(known, "are you open today", datetime(2026, 12, 6, 12, tzinfo=UTC)) == "Sunday: closed."


def test_the_index_follows_the_folder(known: Knowledge, packs: Path) -> None:
    assert not known.refresh()
    (packs / "shop/menu.csv").write_text(MENU.replace("2.80", "2.95"))
    assert known.refresh()
    assert said(known, "how much is the green tea") == "The price of the green tea is 2.95 euros."
    (packs / "shop/menu.csv").unlink()
    assert known.refresh()
    assert isinstance(known.ask("how much is the green tea", NOW), Refusal)


def test_only_what_changed_is_read_again(packs: Path) -> None:
    seen: list[str] = []

    def noted(texts: Sequence[str]) -> NDArray[np.float32]:
        seen.extend(texts)
        return embed(texts)

    with_index = packs.parent / "again.db"
    first = Knowledge((packs,), with_index, noted)
    first.refresh()
    first.close()
    seen.clear()
    again = Knowledge((packs,), with_index, noted)
    again.refresh()
    assert seen == []
    os.utime(packs / "shop/menu.csv", (1, 1))
    assert not again.refresh()
    (packs / "shop/new.txt").write_text("Parking is free.")
    again.refresh()
    assert seen[0] == "Parking is free."
    again.close()


def test_questions_are_answered_while_documents_are_read(packs: Path) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(texts: Sequence[str]) -> NDArray[np.float32]:
        if any("Parking" in text for text in texts) and not go_on.is_set():
            reading.set()
        return embed(texts)

    knowledge = Knowledge((packs,), packs.parent / "slow.db", slow)
    knowledge.refresh()
    lines = "".join(f"Parking place {number} is free.\n\n" for number in range(200))
    (packs / "shop/new.md").write_text(lines)
    thread = threading.Thread(target=knowledge.refresh)
    thread.start()
    assert reading.wait(30)
    assert said(knowledge, "how much is the green tea") == "The price of the green tea is 2.80 euros."
    go_on.set()
    thread.join(60)
    assert said(knowledge, "is parking place 17 free") == "Parking place 17 is free."
    knowledge.close()


def test_a_large_pack_is_searched_by_words_and_meaning(packs: Path) -> None:
    rows = "".join(f"Screw {number},{number}.5\n" for number in range(2 * FEW))
    (packs / "shop/screws.csv").write_text("Part,Torque (Nm)\n" + rows)
    knowledge = Knowledge((packs,), packs.parent / "large.db", embed)
    knowledge.refresh()
    assert said(knowledge, "what torque does screw 317 need") == "The torque of the screw 317 is 317.5 Nm."
    assert said(knowledge, "how much is the green tea") == "The price of the green tea is 2.80 euros."
    assert isinstance(knowledge.ask("what torque does screw 917 need", NOW), Refusal)
    knowledge.close()


def test_what_has_expired_is_not_said(known: Knowledge, packs: Path) -> None:
    (packs / "shop/offers.md").write_text("---\nvalid_until: 2026-11-30\n---\n# Offers\n\n- Plum cake: 3.00 euros\n")
    known.refresh()
    found = known.ask("how much is the plum cake", NOW)
    assert isinstance(found, Refusal)
    assert str(found.expired) == "2026-11-30"
    (packs / "shop/offers.md").write_text("---\nvalid_until: 2026-12-31\n---\n# Offers\n\n- Plum cake: 3.00 euros\n")
    known.refresh()
    assert said(known, "how much is the plum cake").endswith("is 3.00 euros. Valid until 2026-12-31.")


def test_of_two_that_differ_the_newer_counts(known: Knowledge, packs: Path) -> None:
    for name, day, price in (("a", "2026-03-01", "5.00"), ("b", "2026-02-01", "6.00")):
        text = f"---\nupdated: {day}\n---\n# Cakes\n\n- Plum cake: {price} euros\n"
        (packs / f"shop/{name}.md").write_text(text)
    known.refresh()
    assert "5.00" in said(known, "how much is the plum cake")


def test_steps_are_found_by_their_number(known: Knowledge, packs: Path) -> None:
    (packs / "shop/filter.txt").write_text(
        "CHANGE THE FILTER\n\n1. Open the lid.\n2. Take out the filter.\n3. Close it.\n"
    )
    known.refresh()
    assert said(known, "what is step two") == "Step 2: Take out the filter."
    assert said(known, "what comes after step 2") == "Step 3: Close it."
    assert said(known, "how do i change the filter") == "1. Open the lid. 2. Take out the filter. 3. Close it."
    assert isinstance(known.ask("what is step four", NOW), Refusal)


def test_words_of_the_pack_are_equal(known: Knowledge, packs: Path) -> None:
    assert isinstance(known.ask("are dogs welcome on the veranda", NOW), Refusal)
    (packs / "shop/synonyms.txt").write_text("terrace, veranda\nlonely\n")
    known.refresh()
    assert said(known, "are dogs welcome on the veranda") == "Dogs are welcome on the terrace."
    assert any("synonyms.txt:2" in fault.message for fault in known.faults)


def test_faults_stay_known_and_the_rest_loads(known: Knowledge, packs: Path) -> None:
    (packs / "shop/bad.csv").write_text('a,b\n"x,1\ny,2\n')
    (packs / "shop/photo.png").write_bytes(b"\x89PNG")
    known.refresh()
    (packs / "shop/more.txt").write_text("Parking is free.")
    known.refresh()
    told = [fault.message for fault in known.faults]
    assert any(message.endswith("bad.csv:2: a quote is not closed") for message in told)
    assert any("photo.png: no document" in message for message in told)
    assert said(known, "is parking free") == "Parking is free."


def test_a_damaged_index_is_made_anew(packs: Path) -> None:
    index = packs.parent / "index.db"
    index.write_bytes(b"this is no database, and never was" * 100)
    knowledge = Knowledge((packs,), index, embed)
    knowledge.refresh()
    assert said(knowledge, "who is the manager") == "Manager: Ines Albrecht."
    knowledge.close()
    other = Knowledge((packs,), index, embed, model="another")
    assert other.packs == ()
    other.refresh()
    assert said(other, "who is the manager") == "Manager: Ines Albrecht."
    other.close()


async def test_the_box_watches_its_folders(known: Knowledge, packs: Path) -> None:
    watching = asyncio.create_task(known.watch(0.01))
    try:
        (packs / "shop/new.txt").write_text("Parking is free.")
        async with asyncio.timeout(30):
            while not said(known, "is parking free"):  # noqa: ASYNC110 - what is watched is the folder
                await asyncio.sleep(0.01)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def test_without_packs_there_is_no_answer(tmp_path: Path) -> None:
    knowledge = Knowledge((tmp_path / "none",), tmp_path / "index.db", embed)
    knowledge.refresh()
    assert knowledge.ask("how much is the latte", NOW) is None
    knowledge.close()


def test_a_large_document_is_cut_into_pieces(known: Knowledge, packs: Path) -> None:
    filler = "".join(f"# Part {number}\n\nNothing much here.\n\n" for number in range(CHUNK // 16))
    (packs / "shop/long.md").write_text(filler + "# Parking\n\nParking is free.\n")
    found = known
    found.refresh()
    answer = found.ask("is parking free", NOW)
    assert isinstance(answer, Answer)
    assert answer.line == filler.count("\n") + 3


LEXICON = Lexicon(Stemmer())
WORDS = (
    "what",
    "how",
    "much",
    "long",
    "is",
    "the",
    "step",
    "three",
    "latte",
    "7",
    "tomorrow",
    "do",
    "you",
    "where",
    "on",
)
spoken = st.lists(st.sampled_from(WORDS) | st.text(), max_size=12)


@settings(max_examples=200, deadline=None)
@given(words=spoken)
def test_any_words_can_be_asked(words: list[str]) -> None:
    text = " ".join(words)
    asked = understand(text, LEXICON, NOW)
    assert all(term.word for term in asked.terms)
    is_question(text)
