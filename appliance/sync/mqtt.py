"""The door to paho: a client that needs no broker to start, and believes only what the broker has acknowledged."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.subscribeoptions import SubscribeOptions

from appliance.config import Mqtt
from appliance.errors import ConfigFault, NetworkFault
from appliance.telemetry import Seldom

TOPICS = 1_000
"""Topics whose latest payload is kept; the one heard longest ago goes first."""
LARGEST = 64 * 1024
"""Bytes of a payload that is kept."""


class Broker:
    """Connects in the background and again after a loss, with back-off. Usable from any thread. Raises ConfigFault when
    a file of the settings cannot be read."""

    def __init__(self, settings: Mqtt, client_id: str, filters: Iterable[str] = ()) -> None:
        self._seldom = Seldom(60.0)
        self._filters = sorted(set(filters))
        self._lock = threading.Lock()
        self._heard: OrderedDict[str, str] = OrderedDict()
        self._waiting: dict[int, _Wait] = {}
        self._early: dict[int, str] = {}
        self._client = client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id=client_id, protocol=MQTTProtocolVersion.MQTTv5
        )
        client.on_connect, client.on_disconnect = self._connected, self._lost
        client.on_message, client.on_publish = self._message, self._published
        client.reconnect_delay_set(1, 60)
        try:
            if settings.ca_file:
                client.tls_set(ca_certs=settings.ca_file)
            if settings.username:
                file = settings.password_file
                client.username_pw_set(settings.username, Path(file).read_text().strip() if file else None)
        except (OSError, ValueError) as error:
            raise ConfigFault(f"[mqtt] cannot be used: {error}", "name readable files") from error
        client.connect_async(settings.host, settings.port, keepalive=20)
        client.loop_start()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    @property
    def connected(self) -> bool:
        return bool(self._client.is_connected())

    def watch(self, filters: Iterable[str]) -> None:
        """Hears these topics from now on, too."""
        with self._lock:
            new = sorted(set(filters) - set(self._filters))
            self._filters += new
        if new and self.connected:
            self._subscribe(new)

    def publish(self, topic: str, payload: str, *, deadline_s: float) -> None:
        """Returns once the broker has taken it (QoS 1). Raises NetworkFault, which says why it did not."""
        if not self.connected:
            raise NetworkFault("the broker is not connected", "look at [mqtt] and at the network")
        wait = _Wait()
        info = self._client.publish(topic, payload, qos=1)
        # the answer may have come before its number was known here; no lock is held around publish (paho takes its own)
        with self._lock:
            reason = self._early.pop(info.mid, None)
            if reason is None:
                self._waiting[info.mid] = wait
        if reason is None:
            if not wait.done.wait(deadline_s):
                with self._lock:
                    self._waiting.pop(info.mid, None)
                raise NetworkFault(f"the broker has not confirmed {topic} in {deadline_s:.1f} s", "try again")
            reason = wait.reason
        if reason:
            raise NetworkFault(f"the broker refused {topic}: {reason}", "look at what this user may publish")

    def last(self, topic: str) -> str | None:
        """The latest payload on a topic that is watched."""
        with self._lock:
            return self._heard.get(topic)

    # --- paho's thread -----------------------------------------------------------------------------------------------

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self._seldom("broker refused", reason=str(reason))
            return
        with self._lock:
            filters = list(self._filters)
        self._subscribe(filters)

    def _subscribe(self, filters: list[str]) -> None:
        if filters:
            self._client.subscribe([(name, SubscribeOptions(qos=1)) for name in filters])

    def _lost(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._seldom("broker lost", reason=str(reason))

    def _published(self, client: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
        why = str(reason) if reason.is_failure else ""
        with self._lock:
            wait = self._waiting.pop(mid, None)
            if wait is None:
                self._early[mid] = why
                while len(self._early) > TOPICS:
                    del self._early[next(iter(self._early))]
                return
        wait.reason = why
        wait.done.set()

    def _message(self, client: Any, data: Any, message: Any) -> None:
        if len(message.payload) > LARGEST:
            self._seldom("payload too large", topic=message.topic, size=len(message.payload))
            return
        with self._lock:
            self._heard[message.topic] = message.payload.decode("utf-8", "replace")
            self._heard.move_to_end(message.topic)
            if len(self._heard) > TOPICS:
                self._heard.popitem(last=False)


class _Wait:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.reason = ""
