"""Words to what is meant: exact, misheard, out of order, and not meant at all."""

from __future__ import annotations

import importlib.util
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.skills.intents.recognise import Intents
from appliance.skills.intents.sounds import distance, sounds
from appliance.skills.intents.templates import Grammar, load, parse
from appliance.skills.intents.words import words
from appliance.skills.numbers import READERS
from appliance.skills.skill import Expecting, Reading

NOW = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
COFFEE = Path(__file__).resolve().parent.parent / "bench/data/coffee.yaml"

HOME = """
language: en
intents:
  Light:
    data:
      - sentences: ["turn (on|off) [the] {room} light[s]", "[the] {room} light[s] (on|off)"]
  Volume:
    data:
      - sentences: ["(set|turn) [the] volume [to] {level}", "turn it up"]
        slots: { step: 1 }
  Timer:
    data:
      - sentences: ["set [a] timer [for] {length}", "set [a] timer"]
  Add:
    data:
      - sentences: ["add {item} to my list"]
  Stop:
    data:
      - sentences: ["stop"]
lists:
  room: { values: ["kitchen", "living room", { in: "(bed room|bedroom)", out: "bedroom" }] }
  level: { range: { from: 0, to: 100 } }
  length: { type: duration }
  item: { wildcard: true }
skip_words: ["please"]
"""


def grammar(text: str, origin: str = "test.yaml") -> Grammar:
    found, faults = parse(yaml.safe_load(text), origin)
    assert not faults, faults
    return found


@pytest.fixture(scope="module")
def home() -> Intents:
    return Intents.compile({"home": grammar(HOME)})[0]


@pytest.fixture(scope="module")
def coffee() -> Intents:
    return Intents.compile({"coffee": load(COFFEE)[0]})[0]


def best(intents: Intents, *texts: str, expecting: Expecting | None = None) -> Reading:
    return intents.readings(texts, expecting=expecting, now=NOW)[0]


@pytest.mark.parametrize(
    ("text", "intent", "values"),
    [
        ("Turn on the kitchen lights!", "Light", {"room": "kitchen"}),
        ("the living room light off", "Light", {"room": "living room"}),
        ("turn off bed room light", "Light", {"room": "bedroom"}),
        ("Set the volume to 45", "Volume", {"level": 45, "step": 1}),
        ("turn it up", "Volume", {"step": 1}),
        ("Set a timer for an hour and a half.", "Timer", {"length": 5400}),
        ("set a timer", "Timer", {}),
        ("Add oat milk to my list, please.", "Add", {"item": "oat milk"}),
        ("stop", "Stop", {}),
    ],
)
def test_what_is_a_template_is_certain(home: Intents, text: str, intent: str, values: dict[str, object]) -> None:
    reading = best(home, text)
    assert (reading.matches[0].intent, reading.matches[0].values) == (intent, values)
    assert reading.score > 0.97


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("make me a light rose to latte", {"roast": "light roast", "coffeeDrink": "latte"}),
        ("can i get a me dium row st marker", {"roast": "medium roast", "coffeeDrink": "mocha"}),
        ("could i get a kappa chino", {"coffeeDrink": "cappuccino"}),
        ("a 12-ounce ice coffee please", {"size": "twelve ounce", "coffeeDrink": "iced coffee"}),
        ("get me a nice coffee", {"coffeeDrink": "iced coffee"}),
        ("a medium, a medium latte", {"size": "medium", "coffeeDrink": "latte"}),
        ("a small no a large latte", {"size": "large", "coffeeDrink": "latte"}),
        ("a double shot large espresso", {"numberOfShots": "double shot", "size": "large", "coffeeDrink": "espresso"}),
        ("um a latte with a bit of skin milk", {"coffeeDrink": "latte", "milkAmount": "a bit of skim milk"}),
        ("a latte with sweeteners", {"coffeeDrink": "latte", "sugarAmount": "sweetener"}),
    ],
)  # fmt: skip
def test_what_recognition_does_to_words_is_put_right(coffee: Intents, text: str, values: dict[str, object]) -> None:
    reading = best(coffee, text)
    assert reading.matches[0].values == values
    assert reading.score >= 0.8


@pytest.mark.parametrize(
    "text",
    [
        "I had a coffee with my sister yesterday",
        "he said the latte was too expensive for him",
        "my mother never liked espresso at all",
        "what do you think about the new president",
        "we were talking about mocha the other day",
        "it rained all weekend",
        "",
        "...",
    ],
)
def test_talk_is_no_order(coffee: Intents, text: str) -> None:
    readings = coffee.readings(text, now=NOW)
    assert not readings or readings[0].score < 0.5


@pytest.mark.parametrize(
    "text", ["I told him to set a timer next time", "she never turns off the kitchen lights at night"]
)
def test_talk_about_commands_is_none(home: Intents, text: str) -> None:
    readings = home.readings(text, now=NOW)
    assert not readings or readings[0].score < 0.8


def test_two_commands_in_one_sentence(home: Intents) -> None:
    reading = best(home, "turn off the kitchen light and set a timer for five minutes")
    assert [match.intent for match in reading.matches] == ["Light", "Timer"]
    assert reading.matches[1].values == {"length": 300}


def test_more_than_two_commands(coffee: Intents) -> None:
    reading = best(coffee, "a latte and a large cappuccino and an espresso")
    assert [match.values["coffeeDrink"] for match in reading.matches] == ["latte", "cappuccino", "espresso"]


def test_what_only_sounds_like_a_command_all_along_is_none(coffee: Intents) -> None:
    assert all(reading.score < 0.5 for reading in coffee.readings("marker", now=NOW))


def test_the_best_of_the_candidates_counts(home: Intents) -> None:
    assert best(home, "turn of the chicken lied", "turn off the kitchen light").score > 0.95


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("large", {"size": "large"}),
        ("The large one, please.", {"size": "large"}),
        ("um, 12 ounce", {"size": "twelve ounce"}),
        ("make it large please", {"size": "large"}),
    ],
)
def test_the_bare_value_answers_the_question(coffee: Intents, text: str, values: dict[str, object]) -> None:
    reading = best(coffee, text, expecting=Expecting("coffee", "orderDrink", "size"))
    assert reading.score >= 0.8
    assert reading.matches[0].values == values


def test_a_correction_names_what_it_corrects(coffee: Intents) -> None:
    reading = best(coffee, "no, make it a small", expecting=Expecting("coffee", "orderDrink"))
    assert (reading.matches[0].skill, reading.matches[0].intent) == ("dialogue", "Correct")
    assert reading.matches[0].values == {"size": "small"}


@pytest.mark.parametrize(
    ("text", "intent"), [("Yes, please.", "Yes"), ("yep", "Yes"), ("No thanks", "No"), ("Never mind.", "Cancel")]
)
def test_yes_no_and_never_mind(home: Intents, text: str, intent: str) -> None:
    reading = best(home, text)
    assert (reading.matches[0].skill, reading.matches[0].intent) == ("dialogue", intent)


def test_two_skills_that_claim_a_sentence_are_both_named() -> None:
    one, two = grammar(HOME, "one.yaml"), grammar(HOME, "two.yaml")
    intents, faults = Intents.compile({"one": one, "two": two})
    assert any("two.yaml" in fault.message and "one.yaml" in fault.message for fault in faults)
    readings = intents.readings("stop", now=NOW)
    assert {reading.matches[0].skill for reading in readings if reading.score > 0.9} >= {"one", "two"}


def test_what_is_expected_is_what_the_nearest_skill_can_hear(coffee: Intents, home: Intents) -> None:
    both, _ = Intents.compile({"home": grammar(HOME), "coffee": load(COFFEE)[0]})
    assert "iced mocha" in both.hints("make me an ice mocker with soy")
    assert "kitchen" in both.hints("turn the chicken lies", Expecting("home", "Light", "room"))
    assert both.hints("turn on the kitchen light") == ()
    assert "iced mocha" in both.hints("blah", Expecting("coffee", "orderDrink", "coffeeDrink"))


# --- files -----------------------------------------------------------------------------------------------------------


def test_home_assistants_sentences_load_unchanged() -> None:
    spec = importlib.util.find_spec("home_assistant_intents")
    assert spec
    assert spec.origin
    content = json.loads((Path(spec.origin).parent / "data/en.json").read_text("utf-8"))
    found, faults = parse(content, "en.json")
    assert faults == []
    assert len(found.templates) > 800
    intents, _ = Intents.compile({"home": found})
    reading = intents.readings("set a timer for five minutes", now=NOW)[0]
    assert reading.matches[0].intent == "HassStartTimer"
    assert reading.matches[0].values == {"minutes": 5}


BAD = """
language: en
intents:
  Good:
    data:
      - sentences: ["all is well"]
  Broken:
    data:
      - sentences:
          - "set (the light"
          - "dim {nothing}"
          - "use <nowhere>"
          - 7
  Empty: {}
lists:
  odd: { type: colour }
  gone: { data: menu.toml, table: drinks }
"""


def test_the_rest_of_a_bad_file_loads_and_each_fault_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "en.yaml"
    path.write_text(BAD)
    found, faults = load(path)
    assert [template.intent for template in found.templates] == ["Good"]
    told = "\n".join(fault.message for fault in faults)
    for line, what in ((10, "cannot be parsed"), (11, "no list {nothing}"), (12, "no rule <nowhere>")):
        assert f"{path}, line {line}: intent Broken" in told
        assert what in told
    assert "7 is no sentence" in told
    assert "intent Empty" in told
    assert "no type colour" in told
    assert "menu.toml" in told


def test_a_circle_of_rules_is_a_fault() -> None:
    _, faults = parse({"intents": {"A": {"data": [{"sentences": ["<a>"]}]}}, "expansion_rules": {"a": "x <a>"}}, "f")
    assert "circle" in faults[0].message


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet="abc {}[]()|<>;:.5", max_size=40))
def test_any_sentence_loads_or_is_a_fault(text: str) -> None:
    found, faults = parse({"intents": {"A": {"data": [{"sentences": [text]}]}}}, "f")
    assert len(found.templates) + len(faults) >= 1
    Intents.compile({"s": found})


@settings(max_examples=100, deadline=None)
@given(
    content=st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["intents", "lists", "data", "sentences", "values", "in", "x"]), inner, max_size=3
            )
        ),
    )
)
def test_any_file_loads_or_is_a_fault(content: object) -> None:  # fmt: skip
    parse(content, "f")


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=80))
def test_any_words_are_read(home: Intents, coffee: Intents, text: str) -> None:
    for intents in (home, coffee):
        for reading in intents.readings(text, now=NOW, expecting=Expecting("coffee", "orderDrink", "size")):
            assert 0 <= reading.score <= 1


# --- sounds and numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "third"),
    [("mocha", "marker", "latte"), ("light roast", "light rose to", "dark roast"), ("kitchen", "chicken", "bathroom")],
)
def test_what_sounds_alike_is_near(one: str, other: str, third: str) -> None:
    assert distance(other, one) < 0.3 < distance(other, third)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz ", max_size=20))
def test_a_distance_is_one_of_sounds(text: str) -> None:
    assert distance(text, text) == 0
    assert sounds(text) == sounds(text)


CASES = {
    "number": [("205", 205), ("two hundred and five", 205), ("23.5", 23.5), ("a dozen", 12), ("two and a half", 2.5)],
    "duration": [("an hour and a half", 5400), ("two minutes thirty", 150), ("half an hour", 1800), ("90 seconds", 90)],
    "time": [("half past seven", "07:30"), ("7:30 pm", "19:30"), ("quarter to nine", "08:45"), ("1900", "19:00")],
    "date": [("tomorrow", "2026-12-02"), ("next Tuesday", "2026-12-08"), ("the third of March", "2027-03-03")],
    "datetime": [
        ("tomorrow at seven", "2026-12-02T07:00:00+00:00"),
        ("in ten minutes", "2026-12-01T11:40:00+00:00"),
        ("seven", "2026-12-01T19:00:00+00:00"),
        ("quarter to nine tomorrow", "2026-12-02T08:45:00+00:00"),
    ],
    "weekdays": [("every weekday", ["mon", "tue", "wed", "thu", "fri"]), ("mondays and fridays", ["mon", "fri"])],
    "money": [("$5.50", "5.50"), ("twelve euros", "12.00"), ("50 cents", "0.50")],
}


@pytest.mark.parametrize(("kind", "text", "value"), [(kind, *case) for kind, cases in CASES.items() for case in cases])
def test_values_out_of_words(kind: str, text: str, value: object) -> None:
    said = words(text)
    assert READERS[kind](said, 0, NOW) == (value, len(said))


SOME = words(
    "a an and half past to of in two five twenty hundred hour minutes monday the third march at noon tomorrow next "
    "dollars cents every point pm"
)


@settings(max_examples=200, deadline=None)
@given(
    text=st.lists(
        st.sampled_from(SOME),
        max_size=8,
    )
)
def test_any_words_are_a_value_or_none(text: list[str]) -> None:  # fmt: skip
    for read in READERS.values():
        found = read(text, 0, NOW)
        assert found is None or 0 < found[1] <= len(text)


@given(st.integers(0, 999_999_999))
def test_numbers_come_back(value: int) -> None:
    said = words(str(value))
    assert READERS["number"](said, 0, NOW) == (value, len(said))
