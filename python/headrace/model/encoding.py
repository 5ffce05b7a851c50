"""How bytes of a flat file stand for characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator

from headrace.model.settings import own_error
from headrace.model.suggest import did_you_mean, quote

Encoding = Literal[
    "utf-8", "utf-16", "utf-16le", "utf-16be",
    "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256",
    "windows-1257", "windows-1258",
    "iso-8859-1", "iso-8859-2", "iso-8859-3", "iso-8859-4", "iso-8859-5", "iso-8859-6", "iso-8859-7", "iso-8859-8",
    "iso-8859-9", "iso-8859-10", "iso-8859-11", "iso-8859-13", "iso-8859-14", "iso-8859-15", "iso-8859-16",
    "koi8-r", "koi8-u", "macintosh", "cp437", "cp850", "cp852", "cp858", "cp866",
]  # fmt: skip

# Python's codecs of the pages of one byte per character: the core's tables are made from them.
CODECS: Final[dict[str, str]] = {
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in range(1, 17) if part != 12},
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "macintosh": "mac-roman",
    **{f"cp{number}": f"cp{number}" for number in (437, 850, 852, 858, 866)},
}
NAMES: Final = ("utf-8", "utf-16", "utf-16le", "utf-16be", *CODECS)
# Other names of them, letters and digits only.
_OTHER_NAMES: Final[dict[str, str]] = {
    **{name.replace("-", ""): name for name in NAMES},
    **{f"cp{number}": f"windows-{number}" for number in range(1250, 1259)},
    **{f"ibm{number}": f"cp{number}" for number in (437, 850, 852, 858, 866)},
    "ansi": "windows-1252", "ascii": "utf-8", "usascii": "utf-8", "utf8bom": "utf-8", "utf8sig": "utf-8",
    "latin1": "iso-8859-1", "latin2": "iso-8859-2", "latin3": "iso-8859-3", "latin4": "iso-8859-4",
    "latin5": "iso-8859-9", "latin6": "iso-8859-10", "latin7": "iso-8859-13", "latin8": "iso-8859-14",
    "latin9": "iso-8859-15", "latin10": "iso-8859-16", "cp65001": "utf-8", "ucs2": "utf-16le", "unicode": "utf-16",
    "macroman": "macintosh", "mac": "macintosh", "koi8": "koi8-r", "oem": "cp437",
}  # fmt: skip
# What is known and not read, by the first letters and digits of its names.
_NOT_SUPPORTED: Final = {
    "shiftjis": "Shift_JIS", "sjis": "Shift_JIS", "cp932": "Shift_JIS", "windows31j": "Shift_JIS",
    "eucjp": "EUC-JP", "euckr": "EUC-KR", "iso2022": "ISO-2022", "gb": "GBK", "cp936": "GBK", "big5": "Big5",
    "cp950": "Big5", "utf7": "UTF-7", "utf32": "UTF-32", "ebcdic": "EBCDIC", "cp037": "EBCDIC", "ibm037": "EBCDIC",
    "cp1047": "EBCDIC", "cp273": "EBCDIC", "cp500": "EBCDIC",
}  # fmt: skip
_EXPECTED: Final = "utf-8, utf-16, utf-16le, utf-16be, or a page of one byte per character such as windows-1252"


def _check_encoding(value: object) -> object:
    if not isinstance(value, str):
        raise own_error("the name of an encoding must be text", expected=_EXPECTED)
    if value in NAMES:
        return value
    plain = "".join(character for character in value.lower() if character.isalnum())
    unsupported = next((name for start, name in _NOT_SUPPORTED.items() if plain.startswith(start)), None)
    if unsupported is not None:
        raise own_error(
            f"the encoding {unsupported} is not supported",
            expected=_EXPECTED,
            hint="Convert the files to UTF-8 first, for instance with `iconv -t UTF-8`.",
        )
    same = _OTHER_NAMES.get(plain)
    raise own_error(
        f"no encoding is called {quote(value)}",
        expected=_EXPECTED,
        hint=did_you_mean(value, NAMES) if same is None else f"Did you mean `{same}`?",
    )


EncodingSetting = Annotated[Encoding, BeforeValidator(_check_encoding)]


def lacks(encoding: Encoding, text: str) -> str | None:
    """The first character of a text that an encoding has no byte for."""
    codec = CODECS.get(encoding)
    if codec is None:
        return None
    return next((character for character in text if not character.encode(codec, errors="ignore")), None)


def refuse_lacking(encoding: Encoding, texts: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
    """Texts, with their places in the layout, that no file in this encoding can hold."""
    for path, text in texts:
        character = lacks(encoding, text)
        if character is not None:
            raise own_error(
                f"{encoding} has no character {quote(character)}, which stands in {quote(text)}",
                expected=f"texts that a file in {encoding} can hold",
                path=path,
            )
