"""Other people's code: whatever it does, it is stopped, told and benched, and the others answer."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from guests import FAULTS, LOOP, Memory, Network, asks, folder, services, wat
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.errors import SkillFault
from appliance.skills import grants, manifest, sandbox
from appliance.skills.breaker import Breaker
from appliance.skills.sandbox import Sandboxed, clean, parse
from appliance.skills.skill import Call, Services

LIMITS = "[limits]\nfuel = 20_000_000\ndeadline_ms = 200\nmemory_mb = 2\noutput_kb = 4\ntable = 10_000\n"
DO = Call("Do", {})


def skill(
    root: Path, name: str, text: str, granted: str = "", given: Services | None = None, limits: str = LIMITS
) -> Sandboxed:
    place = folder(root, name, text, manifest=f"[grants]\n{granted}\n{limits}")
    return Sandboxed(manifest.read(place), given or services())


async def test_a_good_skill_answers(tmp_path: Path) -> None:
    assert (await skill(tmp_path, "good", wat()).call(DO)).say == "Hello."


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_faulty_skill_is_stopped_and_another_answers(tmp_path: Path, fault: str) -> None:
    good, bad = skill(tmp_path, "good", wat()), skill(tmp_path, "bad", FAULTS[fault])
    broken = asyncio.create_task(bad.call(DO))
    for _ in range(3):
        assert (await good.call(DO)).say == "Hello."
    with pytest.raises(SkillFault, match="bad"):
        await broken


async def test_a_skill_that_keeps_failing_is_benched(tmp_path: Path) -> None:
    bad = skill(tmp_path, "bad", FAULTS["traps"])
    for _ in range(3):
        with pytest.raises(SkillFault, match="it gave up"):
            await bad.call(DO)
    with pytest.raises(SkillFault, match="left alone for"):
        await bad.call(DO)


async def test_fuel_stops_what_the_clock_has_not_yet(tmp_path: Path) -> None:
    limits = LIMITS.replace("20_000_000", "100_000").replace("200", "10_000")
    with pytest.raises(SkillFault, match="fuel"):
        await skill(tmp_path, "bad", wat(body=LOOP), limits=limits).call(DO)


async def test_the_clock_stops_what_fuel_has_not_yet(tmp_path: Path) -> None:
    limits = LIMITS.replace("20_000_000", "9_000_000_000")
    with pytest.raises(SkillFault, match="too long"):
        await skill(tmp_path, "bad", wat(body=LOOP), limits=limits).call(DO)


async def test_without_limits_the_loop_would_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the tests above: with neither fuel nor clock nothing stops it but the caller's own deadline."""
    monkeypatch.setattr(sandbox, "TICK", 1e-9)  # so many ticks away that it never comes
    limits = LIMITS.replace("20_000_000", "2_000_000_000")
    bad = skill(tmp_path, "bad", wat(body=LOOP), limits=limits)
    with pytest.raises(SkillFault, match="did not answer within"):
        await bad.call(DO)
    with pytest.raises(SkillFault, match="did not answer within"):
        await bad.call(DO)


async def test_a_host_call_that_blocks_is_not_waited_for_and_does_nothing_later(tmp_path: Path) -> None:
    network = Network(lambda: time.sleep(0.8))
    text = asks("mqtt_publish", '{"topic": "a/b", "payload": "x"}')
    bad = skill(tmp_path, "bad", text, 'publish = ["a/#"]', services(network=network))
    with pytest.raises(SkillFault, match="did not answer within") as caught:
        await bad.call(DO)
    assert caught.value.deeds == ()


async def test_one_that_blocks_keeps_no_other_waiting(tmp_path: Path) -> None:
    slow = services(network=Network(lambda: time.sleep(0.5)))
    text = asks("mqtt_publish", '{"topic": "a/b", "payload": "x"}')
    bad = skill(tmp_path, "bad", text, 'publish = ["a/#"]', slow)
    good = skill(tmp_path, "good", wat())
    broken = asyncio.create_task(bad.call(DO))
    assert (await asyncio.wait_for(good.call(DO), 0.4)).say == "Hello."
    with pytest.raises(SkillFault):
        await broken


# --- grants ----------------------------------------------------------------------------------------------------------

GRANTED = {
    "say": ("say = true", '{"text": "One moment."}'),
    "log": ("log = true", '{"level": "info", "text": "x"}'),
    "clock": ("clock = true", "{}"),
    "memory_write": ("memory = 100", '{"key": "k", "text": "v"}'),
    "memory_read": ("memory = 100", '{"key": "k"}'),
    "memory_keys": ("memory = 100", "{}"),
    "mqtt_publish": ('publish = ["a/+"]', '{"topic": "a/b", "payload": "x"}'),
    "mqtt_last": ('read = ["a/#"]', '{"topic": "a/b"}'),
    "http_fetch": ('http = ["api.example.com"]', '{"url": "https://api.example.com/x"}'),
    "control_get": ('controls = ["volume"]', '{"name": "volume"}'),
    "control_set": ('controls = ["volume"]', '{"name": "volume", "value": 20}'),
}


@pytest.mark.parametrize("name", GRANTED)
async def test_what_is_granted_is_done_and_what_is_not_cannot_be_imported(tmp_path: Path, name: str) -> None:
    granted, request = GRANTED[name]
    reply = await skill(tmp_path, "good", asks(name, request), granted).call(DO)
    assert reply.data["ok"] is True  # type: ignore[call-overload,index]
    acts = name in sandbox.ACTS and name != "http_fetch"
    assert [deed.ok for deed in reply.deeds] == ([True] if acts else [])
    with pytest.raises(SkillFault, match=f"imports {name}, and was not granted"):
        skill(tmp_path, "bad", asks(name, request))


@pytest.mark.parametrize(
    ("name", "granted", "request_"),
    [
        ("mqtt_publish", 'publish = ["a/+"]', '{"topic": "a/b/c", "payload": "x"}'),
        ("mqtt_publish", 'publish = ["#"]', '{"topic": "$SYS/x", "payload": "x"}'),
        ("mqtt_last", 'read = ["a/b"]', '{"topic": "a/+"}'),
        ("http_fetch", 'http = ["api.example.com"]', '{"url": "https://api.example.com.evil.org/"}'),
        ("http_fetch", 'http = ["api.example.com"]', '{"url": "https://api.example.com:8443/"}'),
        ("control_set", 'controls = ["volume"]', '{"name": "mute", "value": false}'),
        ("data_read", "data = true", '{"name": "../skill.toml"}'),
        ("memory_write", "memory = 100", '{"key": "", "text": "v"}'),
        ("memory_write", "memory = 100", '{"key": 7}'),
    ],
)
async def test_beyond_the_grant_it_is_refused(tmp_path: Path, name: str, granted: str, request_: str) -> None:
    reply = await skill(tmp_path, "bad", asks(name, request_), granted).call(DO)
    assert reply.data["ok"] is False  # type: ignore[call-overload,index]
    assert not reply.acted


async def test_what_only_reads_does_nothing(tmp_path: Path) -> None:
    memory = Memory()
    text = asks("memory_write", '{"key": "k", "text": "v"}')
    reads = "[intents.Do]\neffect = 'none'"
    place = folder(tmp_path, "reads", text, manifest="[grants]\nmemory = 100", intents=reads)
    reply = await Sandboxed(manifest.read(place), services(memory)).call(DO)
    assert reply.data["ok"] is False  # type: ignore[call-overload,index]
    assert not memory
    assert reply.deeds == ()


async def test_deeds_are_the_hosts_and_not_the_guests(tmp_path: Path) -> None:
    reply = "{\\22say\\22: \\22Done.\\22, \\22deeds\\22: [{\\22what\\22: \\22x\\22, \\22ok\\22: true}]}"
    assert (await skill(tmp_path, "liar", wat(reply)).call(DO)).deeds == ()


async def test_a_question_needs_its_grant(tmp_path: Path) -> None:
    reply = "{\\22ask\\22: {\\22intent\\22: \\22Do\\22}}"
    assert (await skill(tmp_path, "mute", wat(reply)).call(DO)).ask is None
    assert (await skill(tmp_path, "asks", wat(reply), "ask = true").call(DO)).ask is not None


async def test_nothing_unseen_is_spoken(tmp_path: Path) -> None:
    reply = "{\\22say\\22: \\22a\\\\u001b[31mb\\\\u200bc\\\\u202ed\\22}"
    assert (await skill(tmp_path, "sly", wat(reply)).call(DO)).say == "a[31mbcd"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('(module (import "wasi_snapshot_preview1" "fd_write" (func)) (memory (export "memory") 1))', "imports wasi"),
        ('(module (memory (export "memory") 1))', "does not export parley_alloc"),
        ('(module (import "parley" "say" (func (param i32) (result i64))))', "with another type"),
    ],
)
def test_a_module_that_is_no_skill_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SkillFault, match=message):
        skill(tmp_path, "bad", text, "say = true")


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, "bad", wat())
    (place / "skill.wasm").write_bytes(b"\0asm nonsense")
    text = (place / "skill.toml").read_text()
    with pytest.raises(SkillFault, match="is not the module that"):
        manifest.read(place)
    start = text.index("sha256:")
    (place / "skill.toml").write_text(text[:start] + manifest.checksum(place / "skill.wasm") + text[start + 71 :])
    with pytest.raises(SkillFault, match="is no module"):
        Sandboxed(manifest.read(place), services())


# --- pure ------------------------------------------------------------------------------------------------------------


@given(st.text(max_size=60))
def test_any_reply_is_parsed_or_refused(text: str) -> None:
    try:
        parse(text)
    except ValueError:
        return


@given(st.text())
def test_clean_text_is_clean(text: str) -> None:
    assert clean(text).isprintable()


topics = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=4).map("/".join)


@given(topic=topics)
def test_a_topic_is_under_itself_and_under_everything(topic: str) -> None:
    assert grants.topic(topic, [topic]) == bool(topic)
    assert grants.topic(topic, ["#"]) == bool(topic)


@given(topic=topics, other=topics)
def test_a_plain_filter_is_one_topic(topic: str, other: str) -> None:
    assert grants.topic(topic, [other]) == (topic == other != "")


@pytest.mark.parametrize(
    ("url", "hosts", "allowed"),
    [
        ("https://a.org/x", ["a.org"], True),
        ("https://A.org./x", ["a.org"], True),
        ("http://a.org:80/", ["a.org"], True),
        ("http://a.org:8080/", ["a.org:8080"], True),
        ("https://b.a.org/", ["a.org"], False),
        ("https://a.org@b.org/", ["a.org"], False),
        ("https://b.org#@a.org/", ["a.org"], False),
        ("https://b.org\\@a.org/", ["a.org", "b.org"], False),
        ("ftp://a.org/", ["a.org"], False),
        ("https://a.org:99999/", ["a.org"], False),
    ],
)
def test_a_host_is_exactly_the_one_named(url: str, hosts: list[str], allowed: bool) -> None:
    assert grants.host(url, hosts) is allowed


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_bench_lasts_longer_each_time_and_ends_with_success() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    assert [breaker.failed() for _ in range(3)] == [False, False, True]
    assert breaker.benched == 60
    clock.now += 61
    assert breaker.benched == 0
    assert breaker.failed(), "a trial that fails benches at once"
    assert breaker.benched == 120
    clock.now += 121
    breaker.worked()
    assert [breaker.failed() for _ in range(3)] == [False, False, True]


def test_rare_failures_do_not_bench() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(10):
        assert not breaker.failed()
        clock.now += 61


@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=200))
def test_any_manifest_is_read_or_a_fault(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    place = tmp_path_factory.mktemp("skill")
    (place / "skill.toml").write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(SkillFault):
        manifest.read(place)


BAD = [
    ("abi = 1", "abi = 2", "abi is 2"),
    ('name = "x"', 'name = "X y"', "is no name"),
    ("[grants]", "[grants]\nhttp = true", "grants.http is True"),
    ("[grants]", "[grants]\nmemroy = 1", "did you mean memory"),
    ("[grants]", "[limits]\nfuel = 1", "write a number from"),
    ("[intents.Do]", "[intents.Do]\neffect = 'costs'", "nothing is asked first"),
    ("[intents.Do]", "[intents.Do]\neffect = 'maybe'", "effect is 'maybe'"),
    ("[intents.Do]", "[intents.Do.slots.a]\nrequired = 1", "required is 1"),
    ("[intents.Do]", "[tools.t]\ndescription = 'd'\neffect = 'acts'", "say is missing"),
    ("[intents.Do]", "[tools.t]\ndescription = 'd'\neffect = 'none'\nparameters = { type = 7 }", "is no schema"),
    ('module = "skill.wasm"', 'module = "../x.wasm"', "is no module of this folder"),
    ('module = "skill.wasm"', "", "either a module or a native part"),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_a_bad_manifest_names_what_is_wrong_and_where(tmp_path: Path, old: str, new: str, message: str) -> None:
    place = folder(tmp_path, "x", wat(), manifest="[grants]", intents="[intents.Do]")
    path = place / "skill.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SkillFault, match=message) as caught:
        manifest.read(place)
    assert str(path) in caught.value.message
    assert caught.value.fix
