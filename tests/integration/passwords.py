"""Random passwords of which every part can be found again."""

from __future__ import annotations

import os
import random
import string
from dataclasses import dataclass
from urllib.parse import quote

PASSWORDS = int(os.environ.get("HEADRACE_PASSWORDS", "3"))
# All that means something in a URL, a connection string, YAML, JSON, SQL, a shell or a path; and what is not ASCII.
MARKS = "@@@:://??#[]%&='\"\\ ,;${}~*!|<>^`+-_.äß€"
WORDS = 3


@dataclass(frozen=True)
class Password:
    """A password of words that occur nowhere else, with marks between them."""

    words: tuple[str, ...]
    marks: tuple[str, ...]

    @classmethod
    def random(cls, luck: random.Random) -> Password:
        """One that `luck` chooses."""
        words = tuple("".join(luck.choices(string.ascii_letters, k=8)) for _ in range(WORDS))
        return cls(words, tuple("".join(luck.choices(MARKS, k=luck.randint(1, 3))) for _ in words[1:]))

    @property
    def text(self) -> str:
        """The password."""
        return self.words[0] + "".join(mark + word for mark, word in zip(self.marks, self.words[1:], strict=True))

    @property
    def coded(self) -> str:
        """As it belongs into a URL."""
        return quote(self.text, safe="")

    def is_shown_in(self, text: str) -> bool:
        """Whether any part of it is in a text."""
        return any(word in text for word in self.words)


def passwords_of(name: str) -> list[Password]:
    """The same ones for a name every time."""
    luck = random.Random(name)
    return [Password.random(luck) for _ in range(PASSWORDS)]
