"""Data flows with queries over all rows: what brings rows to one, and what becomes of its result, are two flows of one
task, and so on behind the next one. What cannot be done in several is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from headrace.model.bound import DataFlowTask, Destination, GatheredSource, Transform
from headrace.model.connections import NullConnection
from headrace.model.flow_rows import FlowRows
from headrace.model.gathered_query import GatheredQuery
from headrace.model.layout import Layout
from headrace.model.problems import ProblemCollector
from headrace.model.shared_flow_rules import looked_for
from headrace.model.spec_data_flow import DataFlowSpec, DestinationSpec
from headrace.model.sql_transform import SqlTransform
from headrace.model.suggest import show_name
from headrace.model.yaml_reader import Document, DocumentPath


def gathered_places(transforms: Sequence[Transform]) -> tuple[int, ...]:
    """Where queries over all rows stand."""
    return tuple(
        place for place, own in enumerate(transforms) if isinstance(own, SqlTransform) and own.gathered is not None
    )


def divided(transforms: Sequence[Transform], place: int) -> tuple[tuple[Transform, ...], tuple[Transform, ...]]:
    """Those that bring rows to the query at `place`, and the others, which stand behind it. What stands in front of
    several sources' meeting is in front of every query.
    """
    front = {transforms[place].name, *(item.name for item in transforms if item.front_of is not None)}
    for item in reversed(transforms[: place + 1]):
        front |= {rows.name for rows in item.inputs} if item.name in front else set()
    before = tuple(item for item in transforms[:place] if item.name in front)
    return before, tuple(item for item in transforms if item.name not in front)


def behind_queries(transforms: Sequence[Transform]) -> tuple[Transform, ...]:
    """Those that stand behind all queries over all rows."""
    places = gathered_places(transforms)
    return divided(transforms, places[-1])[1] if places else tuple(transforms)


def _in_first_pass(transforms: Sequence[Transform]) -> tuple[Transform, ...]:
    """Those that stand in front of all queries over all rows."""
    places = gathered_places(transforms)
    return divided(transforms, places[0])[0] if places else tuple(transforms)


def queries_passed(transforms: Sequence[Transform]) -> tuple[str, ...]:
    """The names of the queries over all rows on a way, in their order."""
    return tuple(transforms[place].name for place in gathered_places(transforms))


def queries_fed(ways: Mapping[str, Sequence[Transform]]) -> tuple[str, ...]:
    """The queries over all rows that take rows of the pass over the source, if those of that pass go elsewhere, too:
    into tables, or into several such queries. Empty if the ways to all destinations pass the same queries, or none.
    """
    passed = dict.fromkeys(map(queries_passed, ways.values()))
    return () if len(passed) == 1 else tuple(dict.fromkeys(names[0] for names in passed if names))


def beside(ways: Mapping[str, tuple[Transform, ...]], destination: str) -> tuple[Transform, ...]:
    """What rows of the last pass on a way meet on the ways to other destinations alone: each transform once, whatever
    its output.
    """
    own = queries_passed(ways[destination])
    passes = [
        behind_queries(way) if queries_passed(way) == own else () if own else _in_first_pass(way)
        for way in ways.values()
    ]
    return _others(passes, ways[destination])


def beside_front(ways: Mapping[str, tuple[Transform, ...]], destination: str) -> tuple[Transform, ...]:
    """The same of the first pass on a way with a query over all rows; none if there is a way without one, since that is
    planned with all that the pass needs.
    """
    passes = [_in_first_pass(way) for way in ways.values()]
    return () if not all(map(queries_passed, ways.values())) else _others(passes, _in_first_pass(ways[destination]))


def _others(passes: Sequence[Sequence[Transform]], own: Sequence[Transform]) -> tuple[Transform, ...]:
    names = {item.name for item in own}
    return tuple({item.name: item for way in passes for item in way if item.name not in names}.values())


class GatheredBinder:
    """Of one package's data flows. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def check(
        self,
        spec: DataFlowSpec,
        ways: Mapping[str, Sequence[Transform]],
        ends: Mapping[str, FlowRows],
        path: DocumentPath,
        fronts: Mapping[str, int | None],
    ) -> bool:
        """Whether a flow with such queries can be loaded. `ways`: the transforms on the way to each destination, which
        gets the rows of `ends`; `path`: of the flow; `fronts`: the number of the source that these are of where they
        have not come together with those of others.
        """
        passed = {name: queries_passed(own) for name, own in ways.items()}
        name = next((names[-1] for names in passed.values() if names), None)
        if name is None:
            return True
        known = len(self._problems)
        self._check_ways(passed, path)
        for own in (own for own, number in fronts.items() if number is not None):
            self._refuse(
                (*path, "destinations", own, "input"),
                f"the query `{show_name(name)}` needs all rows of several sources that have come together, and those "
                f"of `{show_name(ends[own].shown)}`, which this destination reads, have not: this is not possible in "
                "this version",
                "destinations behind what brings the rows of sources together",
                "Write a data flow of its own for one of them.",
            )
        for own, transforms in ways.items():
            self._check_branches(transforms, ends[own], path)
        if len({own.connection for own in spec.destinations.values()}) > 1:
            self._refuse(
                (*path, "destinations"),
                f"a data flow with the query `{show_name(name)}`, which needs all rows, has destinations of one "
                "connection in this version",
                "destinations of one connection",
                "Write a data flow for each connection.",
            )
        if spec.rejects.table is not None:
            self._refuse(
                (*path, "rejects", "table"),
                f"rejects of a data flow with the query `{show_name(name)}`, which needs all rows, go into no table in "
                "this version",
                None,
                "Leave `table` out: they are in the run folder, and `headrace rejects` shows them.",
            )
        for own, destination in spec.destinations.items():
            if passed[own]:
                self._check_destination(passed[own][-1], destination, (*path, "destinations", own))
        return len(self._problems) == known

    def _check_ways(self, passed: Mapping[str, Sequence[str]], path: DocumentPath) -> None:
        """Ways part in the pass over the source alone: those that pass a query, pass the same further ones."""
        first: dict[str, str] = {}
        for own, names in passed.items():
            for query in names:
                other = first.setdefault(query, own)
                if passed[other] == names:
                    continue
                further = next(name for name in (*passed[other], *names) if (name in passed[other]) != (name in names))
                through, beside = (other, own) if further in passed[other] else (own, other)
                self._refuse(
                    (*path, "destinations", own, "input"),
                    f"the rows of `{show_name(through)}` pass the query `{show_name(further)}`, which needs all rows, "
                    f"and those of `{show_name(beside)}` do not, behind the query `{show_name(query)}`",
                    "ways that part in front of all queries over all rows, or behind the last one",
                    "Write a data flow for each of them.",
                )
                return

    def _check_branches(self, transforms: Sequence[Transform], end: FlowRows, path: DocumentPath) -> None:
        """All rows of a destination pass all of the queries on its way."""
        for place in gathered_places(transforms):
            name = transforms[place].name
            _, later = divided(transforms, place)
            passing = {name, *(item.name for item in later)}
            if all(rows.name in passing for rows in (end, *(rows for item in later for rows in item.inputs))):
                continue
            self._refuse(
                (*path, "transforms", name),
                f"the query `{show_name(name)}` needs all rows, and some of those of the destination do not pass it",
                "a query over all rows in front of every split whose outputs come together, or behind the union",
                "Load the result into a table, and go on in a data flow of its own.",
            )
            return

    def _check_destination(self, name: str, spec: DestinationSpec, path: DocumentPath) -> None:
        if spec.commit is not None:
            self._refuse(
                (*path, "commit"),
                f"the rows of the query `{show_name(name)}`, which needs all rows, are committed at once",
                None,
                "Leave `commit` out.",
            )
        clause = None if spec.partition is None else spec.partition.range
        unknown = None if clause is None else looked_for(clause)
        if unknown is not None:
            self._refuse(
                (*path, "partition", "range"),
                f"the rows of the query `{show_name(name)}`, which needs all rows, cannot be divided by {unknown}: "
                "their keys are not known before the run",
                "`bounds` as a list of keys, `every` with `from` and `to`, `list` or `hash`",
                "Give the bounds, or leave `partition` out.",
            )
        if spec.partitions is not None:
            self._refuse(
                (*path, "partitions"),
                f"partitions are not loaded anew with rows of the query `{show_name(name)}`, which needs all rows, in "
                "this version",
                None,
                "Leave `partitions` out.",
            )

    def source(self, transforms: Sequence[Transform], front: DataFlowTask, path: DocumentPath) -> GatheredSource | None:
        """What the last query over all rows among the transforms makes. `front`: brings its rows to the first of them;
        each one before is the source of the flow that brings rows to the next. `path`: of the flow.
        """
        made: GatheredSource | None = None
        left = tuple(transforms)
        while places := gathered_places(left):
            query = left[places[0]]
            assert isinstance(query, SqlTransform) and query.gathered is not None
            passed, left = divided(left, places[0])
            before = replace(front, transforms=passed, destination=destination_of(query.name), end=query.inputs[0])
            if made is not None:
                before = replace(before, source=made, together=None, others=())
            layout = self._layout(query.name, query.gathered, path)
            if layout is None:
                return None
            made = GatheredSource(query.name, query.gathered, query.written, layout, before)
        return made

    def _layout(self, name: str, query: GatheredQuery, path: DocumentPath) -> Layout | None:
        """The columns of a query as those of a source."""
        columns = [{"name": own.name, "type": str(own.type)} for own in query.outputs]
        try:
            return Layout.model_validate({"columns": columns, "delimiter": "|"})
        except ValidationError as error:
            self._problems.add(
                self._document,
                (*path, "transforms", name, "sql"),
                "a column of the query has a name that columns cannot have",
                found=str(error.errors()[0]["msg"]),
                hint="Give it another name with AS.",
            )
            return None

    def _refuse(self, path: DocumentPath, what: str, expected: str | None, hint: str) -> None:
        self._problems.add(self._document, path, what, expected=expected, hint=hint, at_key=True)


def destination_of(name: str) -> Destination:
    """Where the rows in front of the query `name` go: nothing of them is stored."""
    return Destination(name, NullConnection(name), None, name, target="append")
