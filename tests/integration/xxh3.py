"""XXH3 of 64 bits, seed 0, of texts of more than 240 bytes: slow, after the specification, not the core's library."""

from __future__ import annotations

import struct
from typing import Final

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_PRIME32_1: Final = 0x9E3779B1
_PRIME32_2: Final = 0x85EBCA77
_PRIME32_3: Final = 0xC2B2AE3D
_PRIME64_1: Final = 0x9E3779B185EBCA87
_PRIME64_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME64_3: Final = 0x165667B19E3779F9
_PRIME64_4: Final = 0x85EBCA77C2B2AE63
_PRIME64_5: Final = 0x27D4EB2F165667C5
_PRIME_AVALANCHE: Final = 0x165667919E3779F9
_MASK: Final = 2**64 - 1
_STRIPE_BYTES: Final = 64
_STRIPES_OF_BLOCK: Final = 16


def xxh3(text: bytes) -> str:
    """As `xxhsum -H3` prints it, without the name of the algorithm."""
    assert len(text) > 240, "shorter texts are hashed in other ways"
    sums = [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1]
    for number in range((len(text) - 1) // _STRIPE_BYTES):
        in_block = number % _STRIPES_OF_BLOCK
        _add(sums, text, _STRIPE_BYTES * number, 8 * in_block)
        if in_block == _STRIPES_OF_BLOCK - 1:
            keys = struct.unpack_from("<8Q", _SECRET, len(_SECRET) - _STRIPE_BYTES)
            sums[:] = [((one ^ one >> 47 ^ key) * _PRIME32_1) & _MASK for one, key in zip(sums, keys, strict=True)]
    _add(sums, text, len(text) - _STRIPE_BYTES, len(_SECRET) - _STRIPE_BYTES - 7)
    keys = struct.unpack_from("<8Q", _SECRET, 11)
    found = len(text) * _PRIME64_1
    for place in range(0, 8, 2):
        product = (sums[place] ^ keys[place]) * (sums[place + 1] ^ keys[place + 1])
        found += product & _MASK ^ product >> 64
    found &= _MASK
    found = (found ^ found >> 37) * _PRIME_AVALANCHE & _MASK
    return f"{found ^ found >> 32:016x}"


def _add(sums: list[int], text: bytes, at: int, key_at: int) -> None:
    values = struct.unpack_from("<8Q", text, at)
    keys = struct.unpack_from("<8Q", _SECRET, key_at)
    for place, (value, key) in enumerate(zip(values, keys, strict=True)):
        mixed = value ^ key
        sums[place ^ 1] = (sums[place ^ 1] + value) & _MASK
        sums[place] = (sums[place] + (mixed & 0xFFFFFFFF) * (mixed >> 32)) & _MASK
