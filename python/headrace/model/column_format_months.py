"""Names of months: a few languages, long names and short ones.

Taken from CLDR and from what .NET writes, with and without the point of an abbreviation. Other languages: `months`.
"""

from __future__ import annotations

from typing import Final, Literal

Locale = Literal["en", "de", "fr", "es", "it", "nl", "pt"]

# Spellings of one month are separated by `|`.
_LONG: Final[dict[str, str]] = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar|Jänner Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}
_SHORT: Final[dict[str, str]] = {
    "en": "Jan Feb Mar Apr May Jun|June Jul|July Aug Sep|Sept Oct Nov Dec",
    "de": "Jan|Jän Feb Mär|Mrz|März Apr Mai Jun|Juni Jul|Juli Aug Sep|Sept Okt Nov Dez",
    "fr": "janv févr|fév mars avr mai juin juil août sept oct nov déc",
    "es": "ene feb mar abr may jun jul ago sep|sept|set oct nov dic",
    "it": "gen feb mar apr mag giu lug ago set ott nov dic",
    "nl": "jan feb mrt apr mei jun jul aug sep|sept okt nov dec",
    "pt": "jan fev mar abr mai jun jul ago set out nov dez",
}


def long_months(locale: str) -> list[list[str]]:
    """The spellings of the long names from January on."""
    return [names.split("|") for names in _LONG[locale].split()]


def short_months(locale: str) -> list[list[str]]:
    """The spellings of the short names from January on, each also with a point behind it."""
    return [[name + point for name in names.split("|") for point in ("", ".")] for names in _SHORT[locale].split()]


def folded(text: str) -> str:
    """The text in small letters, character by character: what texts of any case are compared by."""
    return "".join(character.lower() for character in text)
