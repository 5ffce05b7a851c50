"""Writes `src/encoding/pages.rs`: the upper halves of the code pages that layouts can name.

Python's codecs are made from the mapping files of the Unicode Consortium. A byte without a character stays without one:
what WHATWG's tables put into the holes of windows-1252 is no character of that page. Run in the repository:

    python crates/types/generate_code_pages.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

# Names of pages in layouts, and of Python's codecs.
CODECS: Final[dict[str, str]] = {
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in range(1, 17) if part != 12},
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "macintosh": "mac-roman",
    **{f"cp{number}": f"cp{number}" for number in (437, 850, 852, 858, 866)},
}
TARGET: Final = Path(__file__).parent / "src" / "encoding" / "pages.rs"
NO_CHARACTER: Final = 0
NUMBERS_PER_LINE: Final = 14


def upper_half(codec: str) -> list[int]:
    """The characters of the bytes 0x80 to 0xFF, 0 for bytes that have none."""
    lower = bytes(range(0x80)).decode(codec)
    if lower != bytes(range(0x80)).decode("ascii"):
        raise ValueError(f"{codec} does not begin with ASCII")
    return [ord(bytes([byte]).decode(codec, errors="ignore") or chr(NO_CHARACTER)) for byte in range(0x80, 0x100)]


def source() -> str:
    """The text of `pages.rs`."""
    lines = [
        "//! Upper halves of code pages. Made by `generate_code_pages.py` from Unicode's mapping files: do not edit.",
        "",
        "/// Characters of the bytes 0x80 to 0xFF; 0 for a byte that has none.",
        "pub type UpperHalf = [u16; 128];",
        "",
        "/// Names of the code pages, and their upper halves.",
        "#[rustfmt::skip]",
        f"pub const PAGES: [(&str, UpperHalf); {len(CODECS)}] = [",
    ]
    for name, codec in CODECS.items():
        numbers = [f"0x{character:04X}" for character in upper_half(codec)]
        lines += ["    (", f'        "{name}",', "        ["]
        for first in range(0, len(numbers), NUMBERS_PER_LINE):
            lines.append(f"            {', '.join(numbers[first : first + NUMBERS_PER_LINE])},")
        lines += ["        ],", "    ),"]
    return "\n".join([*lines, "];", ""])


if __name__ == "__main__":
    TARGET.write_text(source(), encoding="utf-8")
