"""The network with real peers: a mosquitto that is killed, stopped or says no, and web servers that are slow or sly."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from appliance.config import Mqtt
from appliance.errors import ConfigFault, NetworkFault
from appliance.sync.fetch import fetch
from appliance.sync.mqtt import Broker
from appliance.sync.network import Network

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
needs_broker = pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto is not installed")


def until(what: object, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


class Mosquitto:
    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        acl, self.conf = folder / "acl", folder / "mosquitto.conf"
        acl.write_text("topic readwrite open/#\ntopic read shut/#\n")
        self.conf.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nacl_file {acl}\nuser root\n")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert MOSQUITTO
        self.process = subprocess.Popen([MOSQUITTO, "-c", self.conf], stderr=subprocess.DEVNULL)

    def kill(self, how: int = signal.SIGKILL) -> None:
        assert self.process
        self.process.send_signal(how)
        if how == signal.SIGKILL:
            self.process.wait()


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker
    if broker.process and broker.process.poll() is None:
        broker.kill(signal.SIGCONT)
        broker.kill()


@contextmanager
def client(mosquitto: Mosquitto, *filters: str) -> Iterator[Broker]:
    broker = Broker(Mqtt(host="127.0.0.1", port=mosquitto.port), "test", filters)
    try:
        assert until(lambda: broker.connected)
        yield broker
    finally:
        broker.close()


@needs_broker
def test_what_is_taken_is_heard(mosquitto: Mosquitto) -> None:
    with client(mosquitto, "open/#") as broker:
        assert until(lambda: broker.publish("open/x", "42", deadline_s=5) or broker.last("open/x") == "42")
        assert broker.last("open/other") is None


@needs_broker
def test_a_refusal_is_no_success(mosquitto: Mosquitto) -> None:
    with client(mosquitto) as broker, pytest.raises(NetworkFault, match="refused shut/x: Not authorized"):
        broker.publish("shut/x", "42", deadline_s=5)


@needs_broker
def test_a_broker_that_stands_still_is_not_waited_for(mosquitto: Mosquitto) -> None:
    with client(mosquitto) as broker:
        mosquitto.kill(signal.SIGSTOP)
        with pytest.raises(NetworkFault, match=r"has not confirmed open/x in 0\.2 s"):
            broker.publish("open/x", "42", deadline_s=0.2)
        mosquitto.kill(signal.SIGCONT)


@needs_broker
def test_a_broker_that_died_and_came_back_is_found_again(mosquitto: Mosquitto) -> None:
    with client(mosquitto, "open/#") as broker:
        mosquitto.kill()
        assert until(lambda: not broker.connected)
        with pytest.raises(NetworkFault, match="not connected"):
            broker.publish("open/x", "1", deadline_s=1)
        mosquitto.start()
        assert until(lambda: broker.connected)
        assert until(lambda: broker.publish("open/x", "2", deadline_s=5) or broker.last("open/x") == "2")


def test_without_a_broker_it_says_so() -> None:
    network = Network(None)
    assert network.last("x") is None
    with pytest.raises(NetworkFault, match="no broker is set"):
        network.publish("x", "y", deadline_s=1)


def test_no_broker_is_needed_to_start_and_none_to_end() -> None:
    broker = Broker(Mqtt(host="127.0.0.1", port=1), "test")
    assert not broker.connected
    broker.close()


def test_a_password_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigFault, match="nowhere"):
        Broker(Mqtt(host="x", username="u", password_file="nowhere"), "test")


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("Location", "http://elsewhere.example/")
        self.end_headers()
        if self.path == "/drip":
            for _ in range(50):
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.05)
        self.wfile.write(b"y" * 100_000)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body[::-1])

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, address: object) -> None:
            """Who goes away early is no error here."""

    with Quiet(("127.0.0.1", 0), Answers) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def test_a_page_is_cut_at_the_limit(server: str) -> None:
    assert fetch("GET", f"{server}/", "", deadline_s=5, limit=1000) == (200, "y" * 1000)


def test_a_body_is_sent(server: str) -> None:
    assert fetch("POST", f"{server}/", "abc", deadline_s=5, limit=1000) == (200, "cba")


def test_a_redirection_is_not_followed(server: str) -> None:
    assert fetch("GET", f"{server}/away", "", deadline_s=5, limit=0)[0] == 302


def test_drops_do_not_outlive_the_deadline(server: str) -> None:
    with pytest.raises(NetworkFault, match=r"too late|timed out"):
        fetch("GET", f"{server}/drip", "", deadline_s=0.3, limit=1000)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x/", "http://", "http://user:pass@host/", "x", "http://[", ""]
)
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(NetworkFault):
        fetch("GET", url, "", deadline_s=1, limit=10)


def test_a_public_name_does_not_lead_home(monkeypatch: pytest.MonkeyPatch) -> None:
    home = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: home)
    with pytest.raises(NetworkFault, match="leads into the local network"):
        fetch("GET", "http://public.example/", "", deadline_s=1, limit=10)
