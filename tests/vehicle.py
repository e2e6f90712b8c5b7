"""A car that is not there: it holds VSS signals, takes what is published to vehicle/set/PATH, and tells what is so on
vehicle/state/PATH. Its faults are a car's: it does not listen, takes its time, or will not.

In a test it is the network itself, on a clock of its own. For a demonstration it is a peer of a real broker:

    python tests/vehicle.py --port 1883 --slow 0.3
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from appliance.config import Mqtt
from appliance.errors import NetworkFault
from appliance.sync.mqtt import Broker

SET, STATE = "vehicle/set/", "vehicle/state/"
STEP = 0.05
"""Seconds by which the clock goes on when somebody looks at it."""
AGAIN = 2.0

SIDES = [f"Row{row}.{side}" for row in (1, 2) for side in ("Driver", "Passenger")]
PARKED = {
    "Vehicle.Speed": "0",
    "Vehicle.Powertrain.Range": "213400",
    "Vehicle.Powertrain.TractionBattery.StateOfCharge.Displayed": "64",
    "Vehicle.Powertrain.TractionBattery.Charging.IsCharging": "false",
    "Vehicle.TraveledDistance": "48213.7",
    "Vehicle.Exterior.AirTemperature": "-3.2",
    "Vehicle.OBD.DTCList": "[]",
    "Vehicle.OBD.Status.IsMILOn": "false",
    "Vehicle.Cabin.Sunroof.Position": "0",
    "Vehicle.Body.Trunk.Rear.IsOpen": "false",
    "Vehicle.Cabin.HVAC.IsRearDefrosterActive": "false",
    "Vehicle.Body.Lights.Beam.Low.IsOn": "true",
    **{f"Vehicle.Cabin.HVAC.Station.{side}.Temperature": "20" for side in SIDES},
    **{f"Vehicle.Cabin.HVAC.Station.{side}.FanSpeed": "40" for side in SIDES},
    **{f"Vehicle.Cabin.Seat.{side}Side.HeatingCooling": "0" for side in SIDES},
    **{f"Vehicle.Cabin.Door.{side}Side.IsLocked": "true" for side in SIDES},
    **{f"Vehicle.Cabin.Door.{side}Side.Window.Position": "0" for side in SIDES},
    **{
        f"Vehicle.Chassis.Axle.Row{row}.Wheel.{side}.Tire.Pressure": "240"
        for row in (1, 2)
        for side in ("Left", "Right")
    },
}
"""Signals by path, as the car tells them."""


@dataclass(slots=True)
class Car:
    """`deaf`: it hears nothing; `slow`: seconds until a wish has come true; `refuses`: whether it will not do what is
    wished of that path; `away`: the broker does not answer."""

    state: dict[str, str] = field(default_factory=lambda: dict(PARKED))
    deaf: bool = False
    slow: float = 0.0
    refuses: Callable[[str], bool] = lambda path: False
    away: bool = False
    wishes: list[tuple[str, str]] = field(default_factory=list)
    """Path and value, in the order in which they came."""
    seconds: float = 0.0
    _coming: list[tuple[float, str, str]] = field(default_factory=list)

    def wish(self, path: str, value: str) -> None:
        self.wishes.append((path, value))
        if not self.deaf and not self.refuses(path):
            self._coming.append((self.seconds + self.slow, path, value))

    def go_on(self, seconds: float) -> None:
        self.seconds += seconds
        for one in [one for one in self._coming if one[0] <= self.seconds]:
            self._coming.remove(one)
            self.state[one[1]] = one[2]

    # --- as the network of a skill under test ------------------------------------------------------------------------

    def publish(self, topic: str, payload: str, *, deadline_s: float) -> None:
        if self.away:
            raise NetworkFault("the broker does not answer")
        assert topic.startswith(SET), topic
        self.wish(topic.removeprefix(SET).replace("/", "."), payload)

    def last(self, topic: str) -> str | None:
        self.go_on(0)
        return self.state.get(topic.removeprefix(STATE).replace("/", "."))

    def fetch(self, method: str, url: str, body: str, *, deadline_s: float, limit: int) -> tuple[int, str]:
        raise NetworkFault("a car is no web server")

    def now(self) -> datetime:
        self.go_on(STEP)
        return datetime(2026, 12, 1, 11, 30, tzinfo=UTC) + timedelta(seconds=self.seconds)


@dataclass(slots=True)
class Peer:
    """The car at a real broker. It looks for what is wished as often as `step` is called, and tells everything again
    every AGAIN seconds: who comes later is to hear it too."""

    car: Car
    broker: Broker
    _seen: dict[str, str] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)
    _all: float = 0.0

    def step(self, seconds: float) -> None:
        for path in self.car.state:
            value = self.broker.last(SET + path.replace(".", "/"))
            if value is not None and self._seen.get(path) != value:
                self._seen[path] = value
                self.car.wish(path, value)
        self.car.go_on(seconds)
        if self.car.seconds - self._all > AGAIN:
            self._all = self.car.seconds
            self._told.clear()
        for path, value in self.car.state.items():
            if self._told.get(path) != value:
                self.broker.publish(STATE + path.replace(".", "/"), value, deadline_s=5.0)
                self._told[path] = value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=1883)
    parser.add_argument("--deaf", action="store_true", help="hears nothing")
    parser.add_argument("--slow", type=float, default=0.0, help="seconds until a wish has come true")
    parser.add_argument("--refuses", default="-", help="what is not done: a part of a path")
    given = parser.parse_args()
    car = Car(deaf=given.deaf, slow=given.slow, refuses=lambda path: given.refuses in path)
    broker = Broker(Mqtt(host=given.host, port=given.port), "car", [SET + "#"])
    peer, told = Peer(car, broker), 0
    while True:
        time.sleep(STEP)
        if broker.connected:
            peer.step(STEP)
        for path, value in car.wishes[told:]:
            print(f"{path} = {value}", flush=True)
        told = len(car.wishes)


if __name__ == "__main__":
    main()
