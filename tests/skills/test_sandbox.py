"""Other people's code: whatever it does, it is stopped, told and benched, and the others answer."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from guests import ALLOC, FAULTS, LOOP, Memory, Network, asks, folder, packed, services, wat
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance import config
from appliance.errors import SkillFault
from appliance.skills import manifest, sandbox
from appliance.skills.host import ACTS, clean, parse
from appliance.skills.sandbox import Sandboxed
from appliance.skills.skill import Call, Deed, Reply, Services

LIMITS = "[limits]\nfuel = 20_000_000\ndeadline_ms = 200\nmemory_mb = 2\noutput_kb = 4\ntable = 10_000\n"
DO = Call("Do", {})
json_like = st.dictionaries(
    st.sampled_from(["say", "ask", "context", "data", "suggestions", "failed", "deeds"]),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["intent", "slot", "x"]), inner, max_size=3)
        ),
        max_leaves=5,
    ),
    max_size=4,
).map(lambda found: json.dumps(found).encode())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


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


async def test_a_skill_that_keeps_failing_is_benched_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = skill(tmp_path, "bad", FAULTS["traps"])
    for _ in range(3):
        with pytest.raises(SkillFault, match="it gave up"):
            await bad.call(DO)
    with pytest.raises(SkillFault, match="left alone for"):
        await bad.call(DO)
    assert caplog.messages.count("skill benched") == 1


GROW = {
    "memory": "(memory.grow (i32.const {}))",  # pages of 64 KB; 1 is there, 32 are allowed
    "table": "(table.grow 0 (ref.null func) (i32.const {}))",  # 1 is there, 10 000 are allowed
}


@pytest.mark.parametrize(
    ("what", "more", "grows"),
    [("memory", 31, True), ("memory", 32, False), ("table", 9_999, True), ("table", 10_000, False)],
)
async def test_as_much_as_is_allowed_and_no_more(tmp_path: Path, what: str, more: int, grows: bool) -> None:
    body = f"(if (i32.eq {GROW[what].format(more)} (i32.const -1)) (then unreachable)) " + packed(16, 2)
    growing = skill(tmp_path, "growing", wat(reply="{}", body=body))
    if grows:
        await growing.call(DO)
    else:
        with pytest.raises(SkillFault, match="it gave up"):
            await growing.call(DO)


async def test_a_reply_has_its_size(tmp_path: Path) -> None:
    with pytest.raises(SkillFault, match="65536 bytes, of 4096 that are allowed"):
        await skill(tmp_path, "bad", FAULTS["floods"]).call(DO)


async def test_data_is_read_from_its_own_folder_only(tmp_path: Path) -> None:
    for name, ok in (("menu.txt", True), ("../skill.toml", False), (".hidden", False)):
        reader = skill(tmp_path, "reader", asks("data_read", json.dumps({"name": name})), "data = true")
        (tmp_path / "reader/data").mkdir(exist_ok=True)
        (tmp_path / "reader/data/menu.txt").write_text("tea")
        (tmp_path / "reader/data/.hidden").write_text("x")
        assert cast("dict[str, object]", (await reader.call(DO)).data)["ok"] is ok


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
    with pytest.raises(SkillFault, match="busy"):  # its thread is taken, and it gets no second one
        await bad.call(DO)


PUBLISH = asks("mqtt_publish", '{"topic": "a/b", "payload": "x"}')


class Gate:
    """Blocks until it is opened, and says when somebody has come."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.open.wait(10)


async def test_a_host_call_that_blocks_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    network = Network(gate)
    bad = skill(tmp_path, "bad", PUBLISH, 'publish = ["a/#"]', services(network=network))
    with pytest.raises(SkillFault, match="did not answer within") as caught:
        await bad.call(DO)
    assert [(deed.what, deed.ok) for deed in cast("tuple[Deed, ...]", caught.value.deeds)] == [("mqtt.publish", False)]
    for _ in range(5):
        with pytest.raises(SkillFault, match="busy"):
            await bad.call(DO)
    gate.open.set()
    assert bad._last is not None
    await asyncio.wait([bad._last])
    await asyncio.sleep(0)
    assert "skill acted late" in caplog.messages
    assert len(network.published) == 1, "what had begun ends; the calls behind it never began"


async def test_a_call_that_is_cancelled_begins_no_more_acts(tmp_path: Path) -> None:
    """It is given up in one host function, long before its deadline, and would act in the next."""
    gate, memory = Gate(), Memory()
    twice = asks("mqtt_publish", '{"topic": "a/b", "payload": "x"}', ("memory_write", '{"key": "k", "text": "v"}'))
    granted, limits = 'publish = ["a/#"]\nmemory = 100', LIMITS.replace("200", "10_000")
    good = skill(tmp_path, "good", twice, granted, services(memory), limits)
    assert [deed.what for deed in (await good.call(DO)).deeds] == ["mqtt.publish", "memory.write"]
    memory.clear()
    bad = skill(tmp_path, "bad", twice, granted, services(memory, Network(gate)), limits)
    task = asyncio.create_task(bad.call(DO))
    await asyncio.to_thread(gate.reached.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(SkillFault, match="busy"):
        await bad.call(DO)
    gate.open.set()
    assert bad._last is not None
    await asyncio.wait([bad._last])
    assert not memory


async def test_calls_of_one_skill_wait_for_each_other_but_not_without_end(tmp_path: Path) -> None:
    good = skill(tmp_path, "good", wat())
    calls = [asyncio.create_task(good.call(DO)) for _ in range(sandbox.WAITING + 3)]
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one) for one in found] == [Reply] * sandbox.WAITING + [SkillFault] * 3


async def test_no_more_than_is_allowed_is_done(tmp_path: Path) -> None:
    limits = LIMITS + "acts = 0\n"
    reply = await skill(tmp_path, "eager", PUBLISH, 'publish = ["a/#"]', limits=limits).call(DO)
    assert reply.deeds == ()


async def test_a_flood_of_log_lines_is_held_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    loop = "(loop $again (drop (call $host (i32.const 512) (i32.const 13))) (br $again))"
    flood = asks("log", '{"text": "x"}', before=loop, alloc="(i32.const 8192)")  # a place that is used again
    with pytest.raises(SkillFault, match="it took too long"):
        await skill(tmp_path, "flood", flood, "log = true").call(DO)
    assert caplog.messages.count("skill flood") == 1


async def test_a_flood_of_host_functions_is_slowed(tmp_path: Path) -> None:
    asked: list[str] = []
    network = Network()
    network.last = asked.append  # type: ignore[assignment]
    loop = "(loop $again (drop (call $host (i32.const 512) (i32.const 14))) (br $again))"
    flood = asks("mqtt_last", '{"topic": "a"}', before=loop, alloc="(i32.const 8192)")
    with pytest.raises(SkillFault):
        await skill(tmp_path, "flood", flood, 'read = ["a"]', services(network=network)).call(DO)
    assert 0 < len(asked) <= sandbox.QUICK + 0.2 / sandbox.PAUSE + 1


async def test_a_host_function_inside_of_parley_alloc_is_refused(tmp_path: Path) -> None:
    """Host, alloc, host, alloc...: each level would take stack that wasmtime does not count."""
    again = "(if (global.get $busy) (then (drop (call $host (i32.const 512) (i32.const 2)))))"
    text = asks("clock", "{}", before="(global.set $busy (i32.const 1))", alloc=f"{again} {ALLOC}")
    text = text.replace(f"{again} (local $at i32)", f"(local $at i32) {again}")  # locals come first
    with pytest.raises(SkillFault, match="it calls clock while the box calls parley_alloc"):
        await skill(tmp_path, "deep", text, "clock = true").call(DO)


async def test_one_that_blocks_keeps_no_other_waiting(tmp_path: Path) -> None:
    slow = services(network=Network(lambda: time.sleep(0.5)))
    bad = skill(tmp_path, "bad", PUBLISH, 'publish = ["a/#"]', slow)
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
    acts = name in ACTS and name != "http_fetch"
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


@pytest.mark.parametrize("intent", ["[]", "\\22Other\\22", "{}", "7"])
async def test_a_question_is_about_an_intent_of_the_skill(tmp_path: Path, intent: str) -> None:
    reply = f"{{\\22ask\\22: {{\\22intent\\22: {intent}}}}}"
    with pytest.raises(SkillFault, match="ask names no intent"):
        await skill(tmp_path, "asks", wat(reply), "ask = true").call(DO)


async def test_nothing_unseen_is_spoken(tmp_path: Path) -> None:
    reply = "{\\22say\\22: \\22a\\\\u001b[31mb\\\\u200bc\\\\u202ed\\22}"
    assert (await skill(tmp_path, "sly", wat(reply)).call(DO)).say == "a[31mbcd"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('(module (import "wasi_snapshot_preview1" "fd_write" (func)) (memory (export "memory") 1))', "imports wasi"),
        ('(module (memory (export "memory") 1))', "does not export parley_alloc"),
        ('(module (import "parley" "say" (func (param i32) (result i64))))', "with another type"),
        (
            wat().replace("(param $n i32) (result i32)", "(param $n i64) (result i32)").replace(ALLOC, "(i32.const 0)"),
            "does not export parley_alloc as",
        ),
        (wat(more='(func (export "_initialize") (param i32))'), "does not export _initialize as"),
    ],
)
def test_a_module_that_is_no_skill_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SkillFault, match=message):
        skill(tmp_path, "bad", text, "say = true")


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, "bad", wat())
    (place / "skill.wasm").write_bytes(b"\0asm nonsense")
    path = place / "skill.toml"
    path.write_text(re.sub("sha256:[0-9a-f]+", manifest.checksum(place / "skill.wasm"), path.read_text()))
    with pytest.raises(SkillFault, match="is no module"):
        Sandboxed(manifest.read(place), services())


def test_a_module_that_changed_since_its_manifest_was_read_is_refused(tmp_path: Path) -> None:
    read = manifest.read(folder(tmp_path, "bad", wat()))
    folder(tmp_path, "bad", FAULTS["traps"])
    with pytest.raises(SkillFault, match="is not the module that"):
        Sandboxed(read, services())


# --- what was compiled is kept ---------------------------------------------------------------------------------------


async def test_what_was_compiled_is_loaded_and_what_is_damaged_is_compiled_again(tmp_path: Path) -> None:
    skill(tmp_path, "good", wat())
    [kept] = (config.cache_home() / "skills").iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    whole = kept.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1] + bytes([whole[-1] ^ 1]), bytes(32) + whole[32:]):
        kept.write_bytes(damaged)
        assert (await skill(tmp_path, "good", wat()).call(DO)).say == "Hello."
        assert kept.read_bytes() == whole


async def test_what_others_can_write_is_not_believed(tmp_path: Path) -> None:
    skill(tmp_path, "other", FAULTS["traps"])
    [other] = (config.cache_home() / "skills").iterdir()
    skill(tmp_path, "good", wat())
    [good] = set((config.cache_home() / "skills").iterdir()) - {other}
    good.write_bytes(other.read_bytes())
    with pytest.raises(SkillFault):  # the test of the test: what lies there is what runs
        await skill(tmp_path, "good", wat()).call(DO)
    good.chmod(0o666)
    assert (await skill(tmp_path, "good", wat()).call(DO)).say == "Hello."


# --- replies ---------------------------------------------------------------------------------------------------------


def as_wat(reply: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in reply)


@settings(max_examples=60, deadline=None)
@given(reply=st.one_of(st.binary(max_size=80), json_like))
def test_any_reply_is_one_or_a_fault(tmp_path_factory: pytest.TempPathFactory, reply: bytes) -> None:
    bad = skill(tmp_path_factory.mktemp("skill"), "bad", wat(as_wat(reply)), "ask = true")
    with suppress(SkillFault):
        found = asyncio.run(bad.call(DO))
        assert found.say.isprintable()
        json.dumps([found.data, found.context], allow_nan=False, ensure_ascii=False).encode()


@given(st.text(max_size=60))
def test_any_reply_is_parsed_or_refused(text: str) -> None:
    try:
        parse(text)
    except ValueError:
        return


@given(st.text())
def test_clean_text_is_clean(text: str) -> None:
    assert clean(text).isprintable()


@given(st.text(max_size=60).map(json.dumps))
def test_text_is_parsed_or_cannot_be_written(text: str) -> None:
    try:
        assert parse(text) == json.loads(text)
    except UnicodeEncodeError:
        assert "\\ud" in text
