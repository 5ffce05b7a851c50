"""What a data flow cannot have whose sources come together: more than one union, and joins that are no tree."""

from __future__ import annotations

from typing import Final

from headrace.model.fronts import bring_together, sides_of_joins
from headrace.model.problems import ProblemCollector
from headrace.model.spec_data_flow import DataFlowSpec
from headrace.model.spec_joins import JoinTransformSpec
from headrace.model.suggest import show_name
from headrace.model.yaml_reader import Document, DocumentPath

# As the core has it: MOST_LEAVES of crate engine. A stream holds a block of each.
_MOST_SOURCES: Final = 64


class MeetingRules:
    """Of one package's data flows. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def is_one(self, spec: DataFlowSpec, path: DocumentPath) -> bool:
        """Whether the rows of several sources come together at one place: a union, a join, or the last of several
        joins, each of which takes the rows of those before. `path`: of the data flow.
        """
        meetings = bring_together(spec.transforms, spec.sources)
        if all(isinstance(spec.transforms[name], JoinTransformSpec) for name in meetings):
            return self._are_a_tree(spec, path)
        if len(meetings) <= 1:
            return True  # whether each source is read, is told of its rows
        self._refuse(
            path,
            meetings[1],
            f"a data flow has {len(meetings)} transforms that read several sources: "
            f"{', '.join(map(show_name, meetings))}",
            "one union, or joins alone, in this version",
            "Write a data flow for each of them, or let one of the sources be a `lookup`.",
        )
        return False

    def _are_a_tree(self, spec: DataFlowSpec, path: DocumentPath) -> bool:
        sides = sides_of_joins(spec.transforms, spec.sources)
        read = [own for of_join in sides.values() for own in of_join]
        if None in read:
            return True  # what is not there, or stands in a circle, is told of what reads it
        twice = next((name for name in sides if read.count(name) > 1), None)
        if twice is not None:
            self._refuse(
                path,
                twice,
                f"the rows of the join `{show_name(twice)}` come to {read.count(twice)} sides of other joins",
                "one side of one of them",
                "Write a data flow for each of these.",
            )
            return False
        last = [name for name in sides if name not in read]
        if len(last) > 1:
            self._refuse(
                path,
                last[1],
                f"the rows of {len(last)} joins of a data flow do not come together: {', '.join(map(show_name, last))}",
                "one join behind all others, which takes their rows as a side",
                f"Let `{show_name(last[0])}` be a side of `{show_name(last[1])}`, write a data flow for each of them, "
                "or let one of the sources be a `lookup`.",
            )
            return False
        if len(sides) >= _MOST_SOURCES:  # a tree of n joins has n + 1 sources
            self._refuse(
                path,
                last[0],
                f"the joins of a data flow bring {len(sides) + 1} sources together",
                f"at most {_MOST_SOURCES}, because a stream reads all of them at once",
                "Load the rows of some of them into a table by a data flow of its own, and let that be a `lookup`.",
            )
            return False
        return True

    def _refuse(self, path: DocumentPath, name: str, what: str, expected: str, hint: str) -> None:
        place = (*path, "transforms", name)
        self._problems.add(self._document, place, what, expected=expected, hint=hint, at_key=True)
