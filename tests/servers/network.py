"""A bad network in user space: a client in a network namespace of its own, and a wire from there that a test controls.

The wire is a thread between two TUN devices. It delays, loses and drops packets as the kernel's `netem` would, but
needs no kernel module, and it sees them: it can cut itself when the client says COMMIT, and it counts round trips.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_TUN_DEVICE = Path("/dev/net/tun")
_TUNSETIFF = 0x400454CA
_IFF_TUN = 0x0001
_IFF_NO_PI = 0x1000
_MTU_BYTES = 9000
_PACKET_BYTES = 1 << 16
# A queue in front of a slow link holds so much, then packets are dropped.
_QUEUE_SECONDS = 0.2
_POLL_SECONDS = 0.05
# 198.18.0.0/15 is for tests of networks (RFC 2544): four addresses for each wire.
_NETWORK = (198 << 24) + (18 << 16)
_NETWORKS = 1 << 15


def missing_for_networks() -> str | None:
    """Why this machine cannot have such a network; None if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not _TUN_DEVICE.exists():
        return f"network namespaces need {_TUN_DEVICE}"
    try:
        with Network():
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"this system gives no network namespace or TUN device: {error}"


@dataclass
class Faults:
    """What the wire does to packets. `delay_seconds`: of each direction; `bytes_per_second`: of that to the server."""

    delay_seconds: float = 0.0
    loss: float = 0.0
    bytes_per_second: float | None = None
    # Nothing goes through, and nobody is told.
    is_cut: bool = False
    # Cut at the packet of the client that contains this; whether that one still goes through.
    cut_at: bytes | None = None
    cut_behind: bool = True
    # TCP connections, by the client's port, of which nothing goes through any more.
    lost: frozenset[int] = frozenset()


@dataclass
class Conversation:
    """One TCP connection, as the wire saw it. A round trip: the client has said something, and the server answers."""

    client_bytes: int = 0
    round_trips: int = 0
    _client_spoke: bool = field(default=False, repr=False)

    def add(self, length: int, from_client: bool) -> None:
        """A packet with so many bytes of payload."""
        if length == 0:
            return
        if from_client:
            self.client_bytes += length
        elif self._client_spoke:
            self.round_trips += 1
        self._client_spoke = from_client


class Network:
    """A namespace for clients, `server_address` as it sees this machine, and the wire between."""

    def __init__(self) -> None:
        number = random.randrange(_NETWORKS)
        self.server_address, self.client_address = (_dotted(_NETWORK + 4 * number + host) for host in (1, 2))
        self.faults = Faults()
        self.conversations: dict[int, Conversation] = {}
        self._name = f"headrace-{number}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._devices: list[int] = []
        self._random = random.Random(number)

    @property
    def inside(self) -> list[str]:
        """In front of a command: it runs in the namespace."""
        return ["nsenter", f"--net=/run/netns/{self._name}", "--"]

    @property
    def bytes_sent(self) -> int:
        """Payload of all clients so far, repetitions included."""
        return sum(conversation.client_bytes for conversation in [*self.conversations.values()])

    def heal(self) -> None:
        """From now on the wire is perfect."""
        self.faults = Faults()

    def limit_window(self, window_bytes: int) -> None:
        """The server's machine lets each client have so many bytes on their way."""
        device = f"hr{self._name[9:]}s"
        _run("ip", "route", "replace", f"{self.client_address}/32", "dev", device, "window", str(window_bytes))

    def lose_connections(self) -> None:
        """The connections that there are now are cut for ever, as if the client's machine was gone; later ones work."""
        self.faults = Faults(lost=frozenset(self.conversations))

    def __enter__(self) -> Network:
        _run("ip", "netns", "add", self._name)
        try:
            self._add_device(f"hr{self._name[9:]}s", self.server_address, [])
            self._add_device(f"hr{self._name[9:]}c", self.client_address, self.inside)
        except BaseException:
            self._close()
            raise
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._close()

    def _add_device(self, device: str, address: str, inside: Sequence[str]) -> None:
        descriptor = os.open(_TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK)
        self._devices.append(descriptor)
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TUN | _IFF_NO_PI))
        if inside:
            _run("ip", "link", "set", device, "netns", self._name)
        _run(*inside, "ip", "address", "add", f"{address}/30", "dev", device)
        _run(*inside, "ip", "link", "set", device, "mtu", str(_MTU_BYTES), "up")

    def _close(self) -> None:
        for descriptor in self._devices:
            os.close(descriptor)
        _run("ip", "netns", "delete", self._name)

    def _pass_on(self) -> None:
        server, client = self._devices
        waiting: list[tuple[float, int, int, bytes]] = []
        free_at = 0.0
        number = 0
        while not self._stop.is_set():
            pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else _POLL_SECONDS
            readable, _, _ = select.select([server, client], [], [], min(pause, _POLL_SECONDS))
            for source in readable:
                packet = os.read(source, _PACKET_BYTES)
                now = time.monotonic()
                faults = self.faults
                if not self._goes_through(faults, packet, source == client):
                    continue
                sent_at = now
                if faults.bytes_per_second and source == client:
                    sent_at = free_at = max(now, free_at) + len(packet) / faults.bytes_per_second
                    if free_at > now + _QUEUE_SECONDS:
                        free_at -= len(packet) / faults.bytes_per_second
                        continue
                number += 1
                other = server if source == client else client
                heapq.heappush(waiting, (sent_at + faults.delay_seconds, number, other, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, target, packet = heapq.heappop(waiting)
                if not self.faults.is_cut or self.faults.cut_at:
                    os.write(target, packet)

    def _goes_through(self, faults: Faults, packet: bytes, from_client: bool) -> bool:
        if faults.is_cut or self._random.random() < faults.loss:
            return False
        port, payload = self._counted(packet, from_client)
        if port in faults.lost:
            return False
        if from_client and faults.cut_at is not None and faults.cut_at in payload:
            faults.is_cut = True
            return faults.cut_behind
        return True

    def _counted(self, packet: bytes, from_client: bool) -> tuple[int, bytes]:
        """The client's port and the payload of a packet of TCP over IPv4; nothing of others."""
        if packet[0] >> 4 != 4 or packet[9] != 6:
            return 0, b""
        tcp = (packet[0] & 15) * 4
        payload = packet[tcp + (packet[tcp + 12] >> 4) * 4 :]
        at = tcp if from_client else tcp + 2
        port = int.from_bytes(packet[at : at + 2], "big")
        self.conversations.setdefault(port, Conversation()).add(len(payload), from_client)
        return port, payload


def _dotted(address: int) -> str:
    return ".".join(str(byte) for byte in address.to_bytes(4, "big"))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
