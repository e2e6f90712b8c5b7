from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worked import SHIPPED, Worked, conversation

from appliance.skills import manifest
from appliance.skills.manifest import Grants
from appliance.skills.skill import Json, Reply

MENU = (SHIPPED / "kiosk/data/menu.toml").read_text()
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def kiosk() -> Iterator[Worked]:
    worked = Worked(SHIPPED / "kiosk")
    yield worked
    worked.skill.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Worked]:
    """The same skill with a menu that a test may change."""
    folder = tmp_path / "kiosk"
    shutil.copytree(SHIPPED / "kiosk", folder)
    worked = Worked(folder)
    yield worked
    worked.skill.close()


def menu(shop: Worked, text: str) -> None:
    (shop.folder / "data/menu.toml").write_text(text, encoding="utf-8")


def asks(worked: Worked) -> tuple[str, str, bool] | None:
    ask = worked.last.ask
    return (ask.intent, ask.slot, ask.yes_no) if ask else None


# --- ordering --------------------------------------------------------------------------------------------------------


async def test_an_order_from_the_first_word_to_the_counter(kiosk: Worked) -> None:
    assert await kiosk.says("Order", drink="latte", size="large", milk="soy milk") == (
        "One large latte with soy milk. Is that all?"
    )
    assert await kiosk.says("Order", drink="espresso", quantity=2) == "Two espressos. Is that all?"
    # 4.90 + 0.60 + 2 * 2.60 = 10.70; 8.25 % of it is 0.88275.
    assert await kiosk.yes() == (
        "One large latte with soy milk and two espressos: $10.70 and $0.88 tax, $11.58 in all. Shall I place the order?"
    )
    assert kiosk.network.published == []
    assert await kiosk.yes() == "Thank you. It is order number 1, and it has been sent to the counter."
    ((topic, payload),) = kiosk.network.published
    order = json.loads(payload)
    assert topic == "kiosk/orders"
    assert (order["number"], order["sum_cents"], order["tax_cents"], order["total_cents"]) == (1, 1070, 88, 1158)
    assert [line["words"] for line in order["lines"]] == ["one large latte with soy milk", "two espressos"]
    assert json.loads(kiosk.memory.texts["placed/00000001"])["sent"] is True
    assert "order" not in kiosk.memory.texts
    assert await kiosk.says("ReadBack") == "Nothing is ordered yet. What would you like?"


async def test_a_size_is_asked_for_one_drink_at_a_time(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="mocha")
    assert kiosk.last.say == "One mocha. What size: small, medium or large?"
    assert asks(kiosk) == ("Order", "size", False)
    await kiosk.call("Order", drink="flat white")
    assert kiosk.last.say == "One flat white. What size for the mocha: small, medium or large?"
    assert await kiosk.says("Order", size="large") == (
        "One large mocha. What size for the flat white: small or medium?"
    )
    assert await kiosk.says("Order", size="large") == (
        "Flat white comes in small or medium only. One flat white. What size for the flat white: small or medium?"
    )
    assert await kiosk.says("Order", size="small") == "One small flat white. Is that all?"


async def test_the_drink_said_again_with_its_size_is_the_same_drink(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="latte")
    assert await kiosk.says("Order", drink="latte", size="large", milk="oat milk") == (
        "One large latte with oat milk. Is that all?"
    )
    assert await kiosk.says("ReadBack") == "You have one large latte with oat milk. Is that all?"


async def test_an_order_with_an_open_size_is_not_placed(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="latte")
    for intent in ("Finish", "Place", "Total"):
        assert "What size" in await kiosk.says(intent)
    assert kiosk.network.published == []


async def test_people_change_their_minds(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="latte", size="medium")
    await kiosk.call("Order", drink="cappuccino", size="small")
    assert await kiosk.says("Change", size="large") == "One large cappuccino. Is that all?"
    assert await kiosk.says("Change", line=1, extra="decaf", milk="oat milk", milk_amount="a little") == (
        "One medium decaf latte with a little oat milk. Is that all?"
    )
    assert (await kiosk.says("Change", which="latte", no_milk="soy milk")).startswith("There is no soy milk in it. One")
    # "No milk" is the plain kind's other name, and means whatever milk is in it.
    assert await kiosk.says("Change", which="latte", no_milk="whole milk") == "One medium decaf latte. Is that all?"
    assert await kiosk.says("Change", line=-1, drink="espresso") == "One espresso. Is that all?"
    assert await kiosk.says("Another") == "Two espressos. Is that all?"
    assert await kiosk.says("Remove", which="espresso", quantity=1) == "One espresso left. Is that all?"
    assert await kiosk.says("Remove", line=3) == "That is not in the order. Is that all?"
    assert await kiosk.says("Remove", line=1) == "Removed one medium decaf latte. Is that all?"
    assert await kiosk.says("Remove") == "Removed one espresso. What would you like?"


async def test_a_correction_said_as_an_order_changes_the_drink_and_adds_none(kiosk: Worked) -> None:
    await kiosk.call("Order", "a medium latte", drink="latte", size="medium")
    await kiosk.call("Order", "no, a large latte", drink="latte", size="large")
    assert await kiosk.says("ReadBack") == "You have one large latte. Is that all?"
    await kiosk.call("Order", "and a small latte", drink="latte", size="small")
    assert await kiosk.says("ReadBack") == "You have one large latte and one small latte. Is that all?"


async def test_a_correction_by_the_dialogue_amends(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="latte", size="medium")
    for name, values in (("Order", {"drink": "mocha", "size": "small"}), ("Another", {}), ("Remove", {})):
        context = {**kiosk.last.context, "amend": True}
        kiosk.last = Reply(context=context)
        await kiosk.call(name, **values)
        assert await kiosk.says("ReadBack") == "You have one small mocha. Is that all?"


async def test_options_alone_belong_to_the_drink_before(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="latte", size="medium")
    assert asks(kiosk) == ("Order", "drink", True)
    assert await kiosk.says("Order", size="large", extra="decaf") == "One large decaf latte. Is that all?"
    assert await kiosk.says("Begin") == "You have one large decaf latte. Is that all?"


async def test_a_new_drink_may_have_no_such_size(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="latte", size="large")
    assert await kiosk.says("Change", drink="flat white") == "One flat white. What size: small or medium?"


async def test_cancelling_at_any_point_leaves_nothing(kiosk: Worked) -> None:
    for steps in ([], ["latte"], ["espresso", "latte"]):
        for drink in steps:
            await kiosk.call("Order", drink=drink)
        if steps:
            await kiosk.call("Finish")
        said = await kiosk.says("CancelOrder")
        assert said == ("The order is cancelled." if steps else "There is no order to cancel.")
        assert "order" not in kiosk.memory.texts
    assert kiosk.network.published == []


async def test_through_the_dialogue_one_yes_ends_the_order_and_one_places_it(kiosk: Worked) -> None:
    script: dict[str, tuple[str, dict[str, Json]]] = {
        "a latte": ("Order", {"drink": "latte"}),
        "large": ("Order", {"size": "large"}),
        "two espressos": ("Order", {"drink": "espresso", "quantity": 2}),
        "decaf": ("Order", {"extra": "decaf"}),
        "make the first one a small": ("Change", {"line": 1, "size": "small"}),
    }
    turns = ["a latte", "large", "two espressos", "decaf", "yes", "make the first one a small", "yes", "yes"]
    said = await conversation(kiosk, script, *turns)
    assert said == [
        "One latte. What size: small, medium or large?",
        "One large latte. Is that all?",
        "Two espressos. Is that all?",
        "Two decaf espressos. Is that all?",
        "One large latte and two decaf espressos: $10.10 and $0.83 tax, $10.93 in all. Shall I place the order?",
        "One small latte. Is that all?",
        "One small latte and two decaf espressos: $9.00 and $0.74 tax, $9.74 in all. Shall I place the order?",
        "Thank you. It is order number 1, and it has been sent to the counter.",
    ]
    assert len(kiosk.network.published) == 1


async def test_through_the_dialogue_no_places_nothing(kiosk: Worked) -> None:
    script: dict[str, tuple[str, dict[str, Json]]] = {
        "an espresso": ("Order", {"drink": "espresso"}),
        "go": ("Place", {}),
    }
    said = await conversation(kiosk, script, "an espresso", "yes", "no", "go", "no")
    assert said[1].endswith("Shall I place the order?")
    assert said[3] == "Shall I place the order?"
    assert kiosk.network.published == []
    assert "order" in kiosk.memory.texts


# --- placing ---------------------------------------------------------------------------------------------------------


async def test_only_what_was_read_out_is_placed(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="espresso")
    assert "Shall I place the order?" in await kiosk.says("Place")
    read = kiosk.last.context
    await kiosk.call("Order", drink="macchiato")
    kiosk.last = Reply(context=read)
    assert await kiosk.says("Place") == (
        "One espresso and one macchiato: $5.70 and $0.47 tax, $6.17 in all. Shall I place the order?"
    )
    assert kiosk.network.published == []
    kiosk.new_dialogue()
    await kiosk.call("Place")
    assert kiosk.network.published == []
    await kiosk.yes()
    assert len(kiosk.network.published) == 1
    await kiosk.call("Place")
    assert len(kiosk.network.published) == 1


async def test_a_price_that_changes_before_the_yes_is_read_out_again(shop: Worked) -> None:
    await shop.call("Order", drink="espresso")
    await shop.call("Finish")
    menu(shop, MENU.replace("price = 2.60", "price = 2.70"))
    assert (await shop.yes()).startswith("One espresso: $2.70 and")
    assert shop.network.published == []


async def test_without_a_broker_the_customer_is_told(kiosk: Worked) -> None:
    kiosk.network.away = True
    await kiosk.call("Order", drink="espresso")
    await kiosk.call("Finish")
    assert await kiosk.yes() == (
        "It is order number 1, kept on this box. It has not reached the counter: please tell the staff your number."
    )
    assert json.loads(kiosk.memory.texts["placed/00000001"])["sent"] is False
    assert [(deed.what, deed.ok) for deed in kiosk.last.deeds if deed.what == "mqtt.publish"] == [
        ("mqtt.publish", False)
    ]


async def test_an_order_outlives_a_restart_and_not_its_customer(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="latte", size="large")
    kiosk.restart()
    kiosk.pass_time(minutes=9)
    assert await kiosk.says("ReadBack") == "You have one large latte. Is that all?"
    kiosk.pass_time(minutes=2)
    assert await kiosk.says("ReadBack") == "Nothing is ordered yet. What would you like?"
    await kiosk.call("Order", drink="espresso")
    assert await kiosk.says("ReadBack") == "You have one espresso. Is that all?"


async def test_old_records_make_room_and_numbers_go_on(kiosk: Worked) -> None:
    kiosk.memory.texts["sequence"] = "999"
    kiosk.memory.texts |= {f"placed/{n:08}": "{}" for n in range(900, 1000)}
    await kiosk.call("Order", drink="espresso")
    await kiosk.call("Finish")
    assert "order number 1," in await kiosk.yes()
    placed = kiosk.memory.keys("placed/")
    assert len(placed) == 100
    assert "placed/00000900" not in placed


async def test_far_too_many_are_refused(kiosk: Worked) -> None:
    assert await kiosk.says("Order", drink="espresso", quantity=51) == (
        "There is a limit of 50 of one kind. Please ask the staff for more."
    )
    assert kiosk.last.failed
    assert "order" not in kiosk.memory.texts


# --- the menu --------------------------------------------------------------------------------------------------------


async def test_what_is_sold_out_is_told_and_something_else_offered(kiosk: Worked) -> None:
    assert await kiosk.says("Order", drink="cold brew", size="large") == (
        "Sorry, cold brew is sold out. Would you like an iced coffee instead?"
    )
    assert await kiosk.yes() == "One large iced coffee. Is that all?"
    assert await kiosk.says("Change", milk="almond milk") == (
        "Sorry, almond milk is sold out. There is oat milk or soy milk. One large iced coffee. Is that all?"
    )
    assert asks(kiosk) == ("Change", "milk", False)
    assert await kiosk.says("Change", milk="soy milk") == "One large iced coffee with soy milk. Is that all?"


async def test_what_sells_out_while_ordering_is_asked_about(shop: Worked) -> None:
    await shop.call("Order", drink="latte", size="large", milk="oat milk")
    await shop.call("Order", drink="espresso")
    menu(shop, MENU.replace('also = ["oat"]', 'also = ["oat"]\navailable = false'))
    assert await shop.says("Finish") == (
        "Sorry, oat milk has just sold out. What would you like instead for the latte?"
    )
    await shop.call("Change", no_milk="oat milk")
    menu(shop, MENU.replace('name = "espresso"', 'name = "espresso"\navailable = false'))
    assert await shop.says("Finish") == "Sorry, espresso has just sold out. Shall I remove it?"
    assert await shop.yes() == "Removed one espresso. Is that all?"


async def test_questions_about_the_menu_rest_on_it(kiosk: Worked) -> None:
    assert await kiosk.says("Price", drink="flat white") == "A flat white is $3.90 small and $4.50 medium plus tax."
    assert await kiosk.says("Price", drink="espresso") == "An espresso is $2.60 plus tax."
    assert await kiosk.says("Price", drink="latte", size="large") == "A large latte is $4.90 plus tax."
    assert (await kiosk.says("Price", drink="flat white", size="large")).startswith("There is no large flat white.")
    assert await kiosk.says("Have", milk="oat milk") == "Yes. Oat milk is $0.70 more."
    assert (
        await kiosk.says("Menu", table="milks") == "On the menu: whole milk, skim milk, cream, soy milk and oat milk."
    )
    assert "cold brew" not in await kiosk.says("Menu")
    assert await kiosk.says("NotOnMenu", thing="croissant") == "Sorry, croissant is not on the menu."
    assert await kiosk.says("NotOnMenu", thing="Caffè latte") == "Latte is on the menu."
    assert await kiosk.says("Order", drink="unicorn") == "Sorry, unicorn is not on the menu. What would you like?"
    assert kiosk.memory.texts == {}


async def test_every_price_of_the_menu_is_spoken_as_it_stands(kiosk: Worked) -> None:
    for drink in tomllib.loads(MENU, parse_float=Decimal)["drinks"]:
        if not drink.get("available", True):
            continue
        said = await kiosk.says("Price", drink=drink["name"])
        for price in drink.get("prices", {"": drink.get("price")}).values():
            assert f"${price:.2f}" in said


async def test_what_only_reads_changes_nothing(kiosk: Worked) -> None:
    await kiosk.call("Order", drink="latte", size="small")
    before = dict(kiosk.memory.texts)
    for name, rule in kiosk.manifest.intents.items():
        if rule.effect == "none":
            reply = await kiosk.call(name)
            assert reply.deeds == (), name
    assert kiosk.memory.texts == before


async def test_an_error_in_the_menu_is_told_with_its_line(shop: Worked) -> None:
    menu(shop, MENU.replace("price = 2.60", "price = "))
    line = MENU[: MENU.index("price = 2.60")].count("\n") + 1
    assert (
        await shop.says("Menu")
        == f"I cannot read the menu: menu.toml, line {line}: a value is missing. Please tell the staff."
    )
    assert shop.last.failed
    menu(shop, MENU.replace("price = 2.60", "price = 2.605"))
    assert "the price of espresso" in await shop.says("Order", drink="espresso")


async def test_tax_is_rounded_half_up(shop: Worked) -> None:
    await shop.call("Order", drink="macchiato")
    assert await shop.says("Total") == "$3.10 and $0.26 tax, $3.36 in all. Is that all?"  # 0.25575
    menu(shop, MENU.replace("percent = 8.25", "percent = 7.5").replace("price = 3.10", "price = 0.20"))
    assert (await shop.says("Total")).startswith("$0.20 and $0.02 tax")  # 0.015


async def test_tax_that_is_in_the_prices_is_said_so(shop: Worked) -> None:
    menu(shop, MENU.replace("included = false", "included = true").replace('currency = "$"', 'currency = "€"'))
    await shop.call("Order", drink="espresso", quantity=3)
    assert await shop.says("Total") == "€7.80 in all, tax included. Is that all?"


# --- any input -------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40).filter(lambda text: text == text.strip())


@SLOW
@given(thing=TEXT)
async def test_words_come_back_as_they_went_in(kiosk: Worked, thing: str) -> None:
    """Through the guest's JSON reader and writer; a host cleans what no voice can say, so letters are compared."""
    said = await kiosk.says("NotOnMenu", thing="zz" + thing)
    name = "zz" + thing if len(("zz" + thing).encode("utf-16-le")) <= 80 else "that"
    assert [c for c in said if c.isalnum()] == [c for c in f"Sorry, {name} is not on the menu." if c.isalnum()]


@SLOW
@given(name=TEXT.filter(bool), cents=st.integers(0, 10**6), also=st.lists(TEXT, max_size=3))
async def test_any_menu_is_read_as_toml_says(shop: Worked, name: str, cents: int, also: list[str]) -> None:
    name = "z" + name
    price = f"{cents // 100}.{cents % 100:02}"
    others = ", ".join(json.dumps(other, ensure_ascii=False) for other in also)
    text = (
        f"# {name}\n[[drinks]] # one\nname = {json.dumps(name, ensure_ascii=False)}\n"
        f"also = [ # other names\n  {others}\n]\nprices = {{ 'x' = {price} }}\n"
    )
    assert tomllib.loads(text)["drinks"][0]["name"] == name
    menu(shop, text)
    assert f"${price}" in await shop.says("Price", drink=name)


@SLOW
@given(
    start=st.integers(0, len(MENU)),
    length=st.integers(1, 400),
    put=st.sampled_from(["", '"', "[", "{", "\\", "=", "'"]),
)
async def test_a_broken_menu_is_an_answer_and_no_trap(shop: Worked, start: int, length: int, put: str) -> None:
    menu(shop, MENU[:start] + put + MENU[start + length :])
    reply = await shop.call("Menu")
    assert reply.say
    assert reply.failed == reply.say.startswith("I cannot read the menu")


ARGUMENTS = st.dictionaries(
    st.sampled_from(
        [
            "drink",
            "which",
            "size",
            "milk",
            "milk_amount",
            "sugar",
            "sugar_amount",
            "extra",
            "line",
            "quantity",
            "no_milk",
        ]
    ),
    st.sampled_from(
        ["latte", "espresso", "cold brew", "large", "small", "oat milk", "almond milk", "sugar", "decaf", ""]
    )
    | st.integers(-2, 60)
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    max_size=4,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["Order", "Change", "Another", "Remove", "Finish", "ReadBack", "Total", "yes"]), ARGUMENTS
    ),
    max_size=8,
)


@SLOW
@given(steps=STEPS)
async def test_whatever_is_said_the_sums_are_right_and_nothing_is_placed_unread(kiosk: Worked, steps: object) -> None:
    kiosk.memory.texts.clear()
    kiosk.network.published.clear()
    kiosk.new_dialogue()
    prices = tomllib.loads(MENU, parse_float=Decimal)
    for name, arguments in steps:  # type: ignore[attr-defined]
        read = kiosk.last.say
        if name == "yes" and not (kiosk.last.ask and kiosk.last.ask.yes_no):
            continue
        published = len(kiosk.network.published)
        said = await (kiosk.yes() if name == "yes" else kiosk.says(name, **arguments))
        assert said
        if len(kiosk.network.published) == published:
            continue
        assert name == "yes"
        order = json.loads(kiosk.network.published[-1][1])
        assert order["sum_cents"] == 100 * sum(cost(prices, line) for line in order["lines"])
        assert order["tax_cents"] == (order["sum_cents"] * 825 + 5000) // 10000
        assert f"${order['total_cents'] / 100:.2f} in all" in read


def cost(prices: dict[str, list[dict[str, object]]], line: dict[str, object]) -> Decimal:
    """The price of a line, reckoned apart from the skill."""

    def row(table: str, name: object) -> dict[str, object]:
        return next((row for row in prices[table] if row["name"] == name), {})

    drink = row("drinks", line["drink"])
    sizes = drink.get("prices")
    each = sizes[line["size"]] if isinstance(sizes, dict) else drink["price"]
    each += row("milks", line.get("milk")).get("price", 0)
    for extra in line.get("extras", []):  # type: ignore[attr-defined]
        each += row("extras", extra).get("price", 0)
    return each * int(line.get("quantity", 1))  # type: ignore[no-any-return, call-overload]


# --- the folder ------------------------------------------------------------------------------------------------------


def test_the_manifest_is_honest() -> None:
    kiosk = manifest.read(SHIPPED / "kiosk")
    assert {name for name, rule in kiosk.intents.items() if rule.effect == "costs"} == {"Place", "CancelOrder"}
    assert kiosk.grants.publish == ("kiosk/orders",)
    granted = {name for name in Grants.__dataclass_fields__ if getattr(kiosk.grants, name)}
    assert granted == {"ask", "clock", "data", "memory", "publish"}
