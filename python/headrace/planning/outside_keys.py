"""Rows that no partition takes, where only the target knows which keys are equal: it is asked about the different keys
of the source before row 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from headrace.planning.key_questions import KeyFacts
from headrace.planning.partitioning import ListRule
from headrace.planning.plan import DataFlowPlan
from headrace.planning.wording import counted

OUTSIDE_FAILS: Final = (
    "a row that no partition takes fails the load: only the server knows it, and takes all rows of a COPY or none"
)
OUTSIDE_FAILS_BUILD: Final = "a row that no partition takes fails the build"
# Given keys and the values of lists: those of the keys that equal no value. None: it cannot be asked.
Unlisted = Callable[[Sequence[str], Sequence[str]], Sequence[str] | None]


def with_outside_keys(plan: DataFlowPlan, facts: KeyFacts | None, unlisted: Unlisted) -> DataFlowPlan:
    """The plan with the keys that no partition takes, if they are what the core has to look for.

    Two keys that the target takes for the same go the same way: both are told, or neither.
    """
    partitioning = plan.partitioning
    if partitioning is None or partitioning.judge != "keys" or facts is None or facts.scan is None:
        return plan
    keys = facts.scan.distinct or ()
    rules = [part.rule for part in partitioning.partitions if isinstance(part.rule, ListRule)]
    values = list(dict.fromkeys(chain.from_iterable(rule.values for rule in rules)))
    outside = unlisted(keys, [value for value in values if value is not None])
    if outside is None:
        return replace(plan, partitioning=replace(partitioning, judge="target"), notes=(*plan.notes, OUTSIDE_FAILS))
    belong = "belongs" if len(outside) == 1 else "belong"
    note = (
        f"the source has {counted(len(keys), 'different key')}; {len(outside)} {belong} into no partition: their rows "
        "are rejects"
    )
    nulls = () if None in values else (None,)
    return replace(plan, partitioning=replace(partitioning, outside_keys=(*outside, *nulls)), notes=(*plan.notes, note))
