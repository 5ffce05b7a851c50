"""What a judgement says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.diagnose.limits import LIMITS

_DIGITS = 4


@dataclass(frozen=True)
class Verdict:
    """One of LIMITS, why in one sentence, and the numbers behind it. `next_*`: what would be the limit then, and from
    where on, in MB of source text per second; None if that cannot be told. `connection`: if the limit is a part of one
    of several destinations, that of this one.
    """

    limit: str
    sentence: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    next_limit: str | None = None
    next_megabytes_per_second: float | None = None
    connection: str | None = None

    @property
    def what(self) -> tuple[str, str | None]:
        """The limit, and where it is: two verdicts that agree in both say the same."""
        return self.limit, self.connection

    @property
    def remedy(self) -> str:
        """What helps most often."""
        return LIMITS[self.limit].remedy

    def behind(self, words: str) -> Verdict:
        """The same, with what led there in front."""
        return replace(self, sentence=f"{words}, and {self.sentence}")

    def at(self, connection: str | None) -> Verdict:
        """The same, about a part of this connection."""
        return replace(self, connection=connection)

    def with_evidence(self, evidence: Mapping[str, float]) -> Verdict:
        """The same, with the numbers that led there."""
        return replace(self, evidence=evidence)

    def with_next(self, limit: str | None, megabytes_per_second: float | None) -> Verdict:
        """The same, with what comes next."""
        return replace(self, next_limit=limit, next_megabytes_per_second=megabytes_per_second)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        number = self.next_megabytes_per_second
        return {
            "limit": self.limit,
            **({} if self.connection is None else {"connection": self.connection}),
            "sentence": self.sentence,
            "evidence": {name: round(value, _DIGITS) for name, value in self.evidence.items()},
            "next_limit": self.next_limit,
            "next_megabytes_per_second": None if number is None else round(number, 1),
            "remedy": self.remedy,
        }
