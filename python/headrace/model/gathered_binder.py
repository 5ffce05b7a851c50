"""Data flows with a query over all rows: what brings rows to it, and what becomes of its result, are two flows of one
task. What cannot be done in two is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from headrace.model.bound import DataFlowTask, Destination, GatheredSource, Transform
from headrace.model.connections import NullConnection
from headrace.model.flow_rows import FlowRows
from headrace.model.layout import Layout
from headrace.model.problems import ProblemCollector
from headrace.model.spec_data_flow import DataFlowSpec, DestinationSpec
from headrace.model.sql_transform import SqlTransform
from headrace.model.suggest import show_name
from headrace.model.yaml_reader import Document, DocumentPath

_ANOTHER_FLOW = "Load the result into a table, and go on in a data flow of its own."


def gathered_place(transforms: Sequence[Transform]) -> int | None:
    """Where the first query over all rows stands; None if there is none."""
    places = (place for place, own in enumerate(transforms) if isinstance(own, SqlTransform) and own.gathered)
    return next(places, None)


def divided(transforms: Sequence[Transform], place: int) -> tuple[tuple[Transform, ...], tuple[Transform, ...]]:
    """Those that bring rows to the query at `place`, and the others, which stand behind it."""
    front = {transforms[place].name}
    for item in reversed(transforms[: place + 1]):
        front |= {rows.name for rows in item.inputs} if item.name in front else set()
    before = tuple(item for item in transforms[:place] if item.name in front)
    return before, tuple(item for item in transforms if item.name not in front)


class GatheredBinder:
    """Of one package's data flows. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def check(self, spec: DataFlowSpec, transforms: Sequence[Transform], end: FlowRows, path: DocumentPath) -> bool:
        """Whether a flow with such a query can be loaded. `transforms`: of a way, which ends with the rows of `end`;
        `path`: of the flow.
        """
        place = gathered_place(transforms)
        if place is None:
            return True
        name = transforms[place].name
        known = len(self._problems)
        behind = gathered_place(transforms[place + 1 :])
        if behind is not None:
            second = transforms[place + 1 + behind].name
            self._refuse(
                (*path, "transforms", second),
                f"a data flow has two queries over all rows: {show_name(name)}, {show_name(second)}",
                "one of them in this version",
                "Make one query of both, with WITH or a subquery.",
            )
        _, later = divided(transforms, place)
        passing = {name, *(item.name for item in later)}
        if not all(rows.name in passing for rows in (end, *(rows for item in later for rows in item.inputs))):
            self._refuse(
                (*path, "transforms", name),
                f"the query `{show_name(name)}` needs all rows, and some of those of the destination do not pass it",
                "a query over all rows in front of every split whose outputs come together, or behind the union",
                _ANOTHER_FLOW,
            )
        if len(spec.destinations) > 1:
            self._refuse(
                (*path, "destinations"),
                f"the rows of the query `{show_name(name)}`, which needs all rows, go to one destination",
                "one destination",
                _ANOTHER_FLOW,
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
            self._check_destination(name, destination, (*path, "destinations", own))
        return len(self._problems) == known

    def _check_destination(self, name: str, spec: DestinationSpec, path: DocumentPath) -> None:
        if spec.commit is not None:
            self._refuse(
                (*path, "commit"),
                f"the rows of the query `{show_name(name)}`, which needs all rows, are committed at once",
                None,
                "Leave `commit` out.",
            )
        if spec.partition is not None:
            self._refuse(
                (*path, "partition"),
                f"the rows of the query `{show_name(name)}`, which needs all rows, are not divided in this version",
                "a table that is not divided, or one that is already: its server places the rows",
                "Leave `partition` out.",
            )

    def source(self, name: str, query: SqlTransform, before: DataFlowTask, path: DocumentPath) -> GatheredSource | None:
        """The result of a query as a source of rows. `path`: of the transform."""
        assert query.gathered is not None
        columns = [{"name": own.name, "type": str(own.type)} for own in query.gathered.outputs]
        try:
            layout = Layout.model_validate({"columns": columns, "delimiter": "|"})
        except ValidationError as error:
            self._problems.add(
                self._document,
                (*path, "sql"),
                "a column of the query has a name that columns cannot have",
                found=str(error.errors()[0]["msg"]),
                hint="Give it another name with AS.",
            )
            return None
        return GatheredSource(name, query.gathered, query.written, layout, before)

    def _refuse(self, path: DocumentPath, what: str, expected: str | None, hint: str) -> None:
        self._problems.add(self._document, path, what, expected=expected, hint=hint, at_key=True)


def destination_of(name: str) -> Destination:
    """Where the rows in front of the query `name` go: nothing of them is stored."""
    return Destination(name, NullConnection(name), None, name, target="append")
