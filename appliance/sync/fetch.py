"""Fetching from named hosts, for skills: bounded in time and size, and from no other host than was asked."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from urllib.parse import SplitResult, urlsplit

from appliance.errors import NetworkFault

_AGENT = "parley"
_PIECE = 16_384


def fetch(method: str, url: str, body: str, *, deadline_s: float, limit: int) -> tuple[int, str]:
    """Status and text of the answer, at most `limit` bytes of it.

    A redirection is an answer like any other: it is not followed. A public name that leads to an address of the local
    network is refused; a local address has to be named as such. TLS is verified, proxies are not asked. Raises
    NetworkFault.
    """
    until = time.monotonic() + deadline_s
    parts = _parts(url)
    try:
        connection = _connection(parts, until)
        sock = connection.sock  # an answer that ends the connection takes it away from there
        try:
            path = parts.path or "/"
            headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
            if body:
                headers["Content-Type"] = "application/json"
            query = f"?{parts.query}" if parts.query else ""
            connection.request(method, path + query, body.encode() or None, headers)
            response = connection.getresponse()
            return response.status, _read(sock, response, until, limit).decode("utf-8", "replace")
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NetworkFault(f"{parts.hostname} did not answer: {error}", "look at the network, or try again") from error


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and not parts.username and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise NetworkFault(f"{url!r:.200} is no address that can be fetched", "write http:// or https:// and a host")
    return parts


def _connection(parts: SplitResult, until: float) -> http.client.HTTPConnection:
    """Connected to the very address that was looked at."""
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = _address(host, port)
    plain = socket.create_connection((address, port), timeout=_left(until))
    connection = http.client.HTTPConnection(host, port, timeout=_left(until))
    try:
        secure = parts.scheme == "https"
        connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
    except (OSError, ValueError):
        plain.close()
        raise
    return connection


def _address(host: str, port: int) -> str:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    address = str(found[0][4][0])
    named = host == "localhost" or host.endswith((".local", ".lan", ".home.arpa")) or "." not in host or _literal(host)
    if not named and not ipaddress.ip_address(address).is_global:
        raise NetworkFault(f"{host} leads into the local network ({address})", "grant the local address itself")
    return address


def _literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _read(sock: socket.socket, response: http.client.HTTPResponse, until: float, limit: int) -> bytes:
    """What comes before the deadline, however slowly."""
    read = b""
    while len(read) < limit:
        sock.settimeout(_left(until))
        piece = response.read1(min(_PIECE, limit - len(read)))
        if not piece:
            break
        read += piece
    return read


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("too late")
    return left
