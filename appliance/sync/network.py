"""The network as skills may be granted it: a broker, if one is set, and named hosts."""

from __future__ import annotations

from appliance.errors import NetworkFault
from appliance.sync.fetch import fetch
from appliance.sync.mqtt import Broker


class Network:
    """`broker` is None where none is set."""

    def __init__(self, broker: Broker | None) -> None:
        self._broker = broker

    def publish(self, topic: str, payload: str, *, deadline_s: float) -> None:
        """Raises NetworkFault."""
        if self._broker is None:
            raise NetworkFault("no broker is set", "set host under [mqtt]")
        self._broker.publish(topic, payload, deadline_s=deadline_s)

    def last(self, topic: str) -> str | None:
        """The latest payload; to hear a topic from its first question on, it is watched from then."""
        if self._broker is None:
            return None
        self._broker.watch([topic])
        return self._broker.last(topic)

    def fetch(self, method: str, url: str, body: str, *, deadline_s: float, limit: int) -> tuple[int, str]:
        """Raises NetworkFault."""
        return fetch(method, url, body, deadline_s=deadline_s, limit=limit)
