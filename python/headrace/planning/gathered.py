"""Queries over all rows of a data flow in a plan: the flow that brings the rows, and the instance of DuckDB between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headrace import units
from headrace.errors import InternalError
from headrace.model import MAIN, FlowRows, GatheredSource, Source
from headrace.planning.capabilities import Capabilities
from headrace.planning.memory import GATHERING_SHARE, MemoryBudget
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.wording import listed

if TYPE_CHECKING:
    from headrace.planning.plan import DataFlowPlan

# What takes the rows: its part of the budget is beside that of the destination's engine.
GATHERING: Final = Capabilities(
    target_type="query",
    sink_kind="arrow",
    loads=("single",),
    stores_tables=False,
    ledger=False,
    case_insensitive_names=True,
    stored_kinds=None,
    max_decimal_precision=38,
    memory_share=GATHERING_SHARE,
)
# Streams parse meanwhile.
MOST_THREADS: Final = 4


def beside_queries(budget: MemoryBudget, queries: int, streams: int) -> MemoryBudget:
    """What is left for the other destinations of a pass that feeds so many queries over all rows, too."""
    return replace(budget, gatherings=queries, gathering_threads=gathering_threads(streams))


def behind_queries(budget: MemoryBudget, source: GatheredSource) -> MemoryBudget:
    """What is left while the result of a query over all rows is read: it, and what others that were fed in the same
    pass have made, is kept until then.
    """
    return replace(budget, gatherings=max(1, len(source.first.feeds)))


def gathering_threads(streams: int) -> int:
    """Those of an instance of DuckDB that takes the rows of so many streams."""
    return max(1, min(MOST_THREADS, streams))


def gathered_snapshot(name: str, before: SourceSnapshot) -> SourceSnapshot:
    """The result of the query `name` as a source: one slice, of which nothing is known before the run."""
    file = {"path": f"rows of the query {name}", "size_bytes": 0, "modified_ns": 0, "inode": 0}
    slices = [{"number": 1, "file": 0, "begin_byte": 0, "end_byte": 0}]
    return SourceSnapshot(name, [file], slices, gathered=before)


def as_read_by(source: Source, found: SourceSnapshot) -> SourceSnapshot:
    """What was `found` of the source of a flow, as one of its ways reads it: perhaps behind queries over all rows.
    Nothing is known of its lookups.
    """
    if isinstance(source, GatheredSource):
        return gathered_snapshot(source.name, as_read_by(source.before.source, found))
    return replace(found, lookups=(), lookups_beside=())


def note_of_fed(queries: Sequence[str]) -> str:
    """What is to be said of a way whose pass feeds queries over all rows."""
    names = " and ".join(queries)
    which = f"query {names}" if len(queries) == 1 else f"queries {names}"
    return f"its pass feeds {which}, too: `resume` begins anew until all is visible"


@dataclass(frozen=True)
class GatheredSqlPlan:
    """The query among the transforms of its flow, for people: nothing of it is the core's."""

    source: GatheredSource
    memory_bytes: int
    outputs: ClassVar[tuple[str, ...]] = (MAIN,)
    front_of: ClassVar[None] = None

    @property
    def name(self) -> str:
        """The name of the transform."""
        return self.source.name

    @property
    def inputs(self) -> tuple[FlowRows, ...]:
        """The rows that it reads."""
        return (self.source.before.end,)

    def transform_spec(self) -> dict[str, Any]:
        """No flow of the core has it."""
        raise InternalError(f"the query `{self.name}` over all rows was given to the core")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        outputs = self.source.query.outputs
        return {
            "name": self.name,
            "kind": "gathered",
            "input": self.source.query.input,
            "sql": self.source.written,
            "streams": self.source.query.streams,
            "columns": [{"name": own.name, "type": str(own.type), "nullable": True, "from": None} for own in outputs],
            "text": self.text(),
        }

    def text(self) -> str:
        """One sentence for plans."""
        query = self.source.query
        columns = ", ".join(f"{own.name} {own.type}" for own in query.outputs)
        how = "rows go through it as they come" if query.streams else "it keeps all rows before it begins"
        instance = f"one instance of {units.size(self.memory_bytes)}"
        return f"{self.name}: SQL over all rows of {query.input}, {instance}; {how}; gives {columns}"


@dataclass(frozen=True)
class GatherPlan:
    """What stands before the first row of a flow: `before` brings rows to the query."""

    source: GatheredSource
    before: DataFlowPlan
    threads: int

    @property
    def memory_bytes(self) -> int:
        """What the instance of DuckDB may use."""
        return self.before.memory.of_one_engine().engine_bytes

    @property
    def first(self) -> GatherPlan:
        """The one whose rows are read from the source."""
        return self if self.before.gather is None else self.before.gather.first

    @property
    def names(self) -> tuple[str, ...]:
        """Of the queries over all rows that stand here, in their order: this one is the last."""
        earlier = self.before.gather
        return (*(() if earlier is None else earlier.names), self.source.name)

    @property
    def _all_or_nothing(self) -> str:
        several = len(self.names) > 1
        who = f"queries {', '.join(self.names)} need" if several else f"query {self.source.name} needs"
        return f"{who} all rows: they are committed at once, and `resume` begins anew"

    def notes(self) -> list[str]:
        """What is to be said of it, and of all that stands in front of it."""
        name, query, earlier = self.source.name, self.source.query, self.before.gather
        said = None if earlier is None else earlier._all_or_nothing
        notes = [*(note for note in self.before.notes if note != said), self._all_or_nothing]
        if query.divides:
            notes.append(f"query {name}: `/` divides in floating point; CAST says how many digits are meant")
        if query.sums_floats:
            notes.append(
                f"query {name}: the last digits of sums of floats depend on the order of rows, which differs from run "
                "to run; sums of decimals do not"
            )
        if query.ties:
            notes.append(f"query {name}: where rows tie, {listed(query.ties)} may pick another row in another run")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: what the flow before it is, as the core is told."""
        return {
            "threads": self.threads,
            "memory": self.before.memory.to_dict(),
            "flow": self.before.flow_spec("(run folder)/rejects", {"kind": self.before.sink_kind}),
            **({} if self.before.gather is None else {"gathered": self.before.gather.to_dict()}),
        }
