"""What a grant allows, and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.skills import grants

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
        ("https://a.org\t.b.org/", ["a.org.b.org"], False),
        ("http://a.org:443/", ["a.org"], False),
        ("http://[::1]:8080/", ["[::1]:8080"], True),
        ("http://[0:0::1]/", ["[::1]"], True),
        ("http://10.0.0.7/", ["10.0.0.7"], True),
        ("http://127.1/", ["127.0.0.1", "127.1"], False),
        ("http://2130706433/", ["127.0.0.1", "2130706433"], False),
    ],
)
def test_a_host_is_exactly_the_one_named(url: str, hosts: list[str], allowed: bool) -> None:
    assert grants.host(url, hosts) is allowed


levels = st.lists(st.sampled_from(["a", "b", "+", "#", "", "a+", "$x"]), min_size=1, max_size=4).map("/".join)


@given(filter=levels, topic=topics)
def test_what_is_no_filter_is_not_granted(filter: str, topic: str) -> None:
    if grants.topics(filter):
        assert filter
        assert "#" not in filter[:-1]
        assert not grants.topic(filter, ["#"]) or not set(filter) & set("+#")
    assert not grants.topic("$SYS/" + topic, [filter])


@pytest.mark.parametrize("filter", ["", "a/#/b", "a+/b", "a/b#", "$SYS/#", "a\0b", "a" * 300])
def test_a_bad_filter_is_one(filter: str) -> None:
    assert not grants.topics(filter)


@given(st.text(max_size=40))
def test_any_text_is_a_host_or_none(text: str) -> None:
    found = grants.place(text)
    if found:
        name = f"[{found[0]}]" if ":" in found[0] else found[0]
        assert grants.host(f"https://{name}:{found[1] or 443}/", [text])
        assert not grants.host(f"https://x.{name}:{found[1] or 443}/", [text])


@given(st.text(max_size=60))
def test_any_address_is_judged(text: str) -> None:
    assert not grants.host(text, [])
    grants.host(text, ["a.org"])
