"""What a data flow with several destinations cannot have: they are filled in one pass, and those of one connection
become visible at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model.bound import Destination
from headrace.model.connections import PostgresConnection
from headrace.model.problems import ProblemCollector
from headrace.model.spec_data_flow import DataFlowSpec
from headrace.model.spec_partition import RangePartitionSpec
from headrace.model.suggest import show_name
from headrace.model.together import Together
from headrace.model.yaml_reader import Document, DocumentPath


class SharedFlowRules:
    """Of one data flow. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector, path: DocumentPath) -> None:
        self._document = document
        self._problems = problems
        self._path = path
        self._is_right = True

    def check(self, spec: DataFlowSpec, destinations: Sequence[Destination], together: Together | None) -> bool:
        """Whether it can be loaded. `together`: how the rows of its sources come together, or that they do not."""
        if together is not None and together.apart and spec.rejects.table is not None:
            self._sources_without_files(together)
        if len({own.connection.name for own in destinations}) > 1:
            self._several_connections(spec, destinations)
        self._different_tables(destinations)
        for name, own in spec.destinations.items():
            if own.commit is not None:
                self._refuse(
                    ("destinations", name, "commit"),
                    "a data flow with several destinations commits once, all of them together, in this version",
                    hint="Leave `commit` out, or write a data flow for each destination.",
                )
            clause = None if own.partition is None else own.partition.range
            if clause is not None and is_by_file(clause):
                self._refuse(
                    ("destinations", name, "partition", "range"),
                    "several destinations cannot be filled in one pass if one has a partition for each file",
                    expected="`bounds` as a list of keys, `every` or `parts` of ranges, `list` or `hash`"
                    if together is None
                    else "`bounds` as a list of keys, `every` with `from` and `to`, `list` or `hash`",
                    hint="Give the bounds, or leave `partition` out.",
                )
            if own.partitions is not None:
                self._refuse(
                    ("destinations", name, "partitions"),
                    "partitions are not loaded anew by a data flow with several destinations in this version",
                    hint="Write a data flow for this destination.",
                )
            if own.lock:
                self._refuse(
                    ("destinations", name, "lock"),
                    "several destinations become visible in one transaction, and `lock` would hold one of its own open",
                    hint="Leave `lock` out.",
                )
        return self._is_right

    def _several_connections(self, spec: DataFlowSpec, destinations: Sequence[Destination]) -> None:
        """Each says by itself whether its rows are there: without that, they would come twice when others go on."""
        if spec.rejects.table is not None:
            self._refuse(
                ("rejects", "table"),
                "rejects of a data flow with destinations of several connections go into no table: it would stand in "
                "one of them, and not be filled with the others",
                hint="Leave `table` out: they are in the run folder, and `headrace rejects` shows them.",
            )
        for own in destinations:
            if isinstance(own.connection, PostgresConnection) and own.connection.ledger_schema is None:
                self._refuse(
                    ("destinations", own.name, "connection"),
                    "a data flow with destinations of several connections needs the ledger of "
                    f"`{show_name(own.connection.name)}`, to know which of them are complete",
                    found="`ledger: off`",
                    hint="Leave `ledger: off` out, or write a data flow for each connection.",
                )

    def _sources_without_files(self, together: Together) -> None:
        """Rejects of all of them are stored with the first destination, which has none to store if it gets nothing."""
        for own in (own for own in together.sources if own.missing == "skip"):
            self._refuse(
                ("sources", own.name, "missing"),
                f"the source `{show_name(own.name)}` may be without files, and rejects of a data flow with several "
                "sources then go into no table",
                expected="`missing: error`, or no `rejects: {table: ...}`",
                hint=f"Leave `table` out, or write a data flow of its own for `{show_name(own.name)}`.",
            )

    def _different_tables(self, destinations: Sequence[Destination]) -> None:
        seen: dict[tuple[str, str | None, str], str] = {}
        for own in destinations:
            first = seen.setdefault((own.connection.name, own.schema, own.table), own.name)
            if first != own.name and own.connection.type != "null":
                self._refuse(
                    ("destinations", own.name, "table"),
                    f"the destinations `{show_name(first)}` and `{show_name(own.name)}` load the same table",
                    found=f"`{show_name(own.table)}`",
                    expected="one destination for each table",
                    hint="Name another table, or leave one of them out.",
                )

    def _refuse(
        self, path: DocumentPath, what: str, found: str | None = None, expected: str | None = None, hint: str = ""
    ) -> None:
        self._is_right = False
        self._problems.add(
            self._document, (*self._path, *path), what, found=found, expected=expected, hint=hint, at_key=True
        )


def is_by_file(spec: RangePartitionSpec) -> bool:
    """Whether each file has a partition of its own."""
    return not isinstance(spec.bounds, list) and spec.parts is None and spec.every is None


def looked_for(spec: RangePartitionSpec) -> str | None:
    """What asks the source for its keys; None for bounds that are written."""
    if isinstance(spec.bounds, list):
        return None
    if spec.parts is not None:
        return "`parts`"
    if is_by_file(spec):
        return "a range for each file"
    return "`every` without `from` and `to`" if spec.from_ is None or spec.to is None else None
