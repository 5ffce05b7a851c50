"""Network interfaces: /proc/net/dev."""

from __future__ import annotations

from typing import Final

from headrace.machine.files import whole_number

_RECEIVED, _SENT = 0, 8
_HEADINGS: Final = ("Inter-|", "face |")


def parse_interfaces(text: str) -> dict[str, dict[str, float]]:
    """`received_bytes` and `sent_bytes` by name, `lo` too, of those that were ever used."""
    interfaces: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        # There may be no blank behind the colon, and a name may hold one: `eth0:1`.
        name, _, numbers = line.rpartition(":")
        words = numbers.split()
        if not name or line.lstrip().startswith(_HEADINGS) or len(words) <= _SENT:
            continue
        received, sent = whole_number(words[_RECEIVED]), whole_number(words[_SENT])
        if received is not None and sent is not None and (received or sent):
            interfaces[name.strip()] = {"received_bytes": received, "sent_bytes": sent}
    return interfaces
