"""`headrace bench scan`: a table and the same rows divided, scanned in turns."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from headrace import scan, units
from headrace.cli.cells import wrap
from headrace.cli.console import print_json, print_result, result_width, say
from headrace.cli.signals import cancel_on_signals
from headrace.cli.text_table import TextColumn, render_table
from headrace.errors import CommandLineError, HeadraceError, on_one_line
from headrace.model import Connection, parse_memory_size
from headrace.model.connections import connection_of_argument
from headrace.model.conninfo import Surroundings
from headrace.model.load import usable_cpus
from headrace.model.redaction import Secrets
from headrace.run.redact import Redactor
from headrace.run.waiting import on_worker
from headrace.scan import Measured, ScanComparison, ScanRequest, Spread
from headrace.targets import OpenOptions, open_scan_session

_ARGUMENT = "CONNECTION"
_INDENT = "  "
_QUERIES = (
    TextColumn("query", words=True),
    TextColumn("whole"),
    TextColumn("divided"),
    TextColumn("faster"),
    TextColumn("least"),
    TextColumn("most"),
    TextColumn("CPU whole", drop_when_narrow=1),
    TextColumn("CPU divided", drop_when_narrow=2),
)
_WITHOUT_CPU = _QUERIES[:6]
_SPREAD = (TextColumn("partition", words=True), TextColumn("name", words=True), TextColumn("rows"), TextColumn("bytes"))


@dataclass(frozen=True)
class BenchScanOptions:
    """The command line of `headrace bench scan`."""

    connection: str
    request: ScanRequest
    memory: str
    json_output: bool
    quiet: bool


def run_bench_scan(options: BenchScanOptions) -> int:
    """Compare and print; returns the exit code."""
    surroundings = Surroundings.of_process(os.environ, Path.cwd())
    secrets = Secrets()
    redactor = Redactor(secrets)
    connection = connection_of_argument(options.connection, _ARGUMENT, surroundings, secrets)
    try:
        memory_bytes = parse_memory_size(options.memory)
    except ValueError:
        raise CommandLineError(
            "--memory is no amount of memory", found=options.memory, expected="a number and MB, GB, MiB or GiB"
        ) from None
    cancel = threading.Event()
    try:
        with cancel_on_signals(cancel):
            found = on_worker(lambda: _compared(connection, options, memory_bytes, cancel))
    except HeadraceError as error:
        raise redactor.error(error) from error
    if options.json_output:
        print_json(redactor.data({"status": "success", "connection": connection.describe(), **found.to_dict()}))
    else:
        print_result(redactor.text(render_comparison(found, options.request.repetitions, width=result_width())))
    return 0


def _compared(
    connection: Connection, options: BenchScanOptions, memory_bytes: int, cancel: threading.Event
) -> ScanComparison:
    def tell(text: str) -> None:
        if not options.quiet:
            say(on_one_line(text))

    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as spill_folder:
        opened = OpenOptions(
            engine_bytes=memory_bytes,
            threads=usable_cpus(),
            spill_folder=spill_folder,
            read_only=True,
            notice=tell,
            is_cancelled=cancel.is_set,
        )
        session = open_scan_session(connection, opened)
        try:
            return scan.compare(session, options.request, tell)
        finally:
            session.close()


def render_comparison(found: ScanComparison, repetitions: int, *, width: int) -> str:
    """Tables, queries and partitions; without a final line end."""
    return "\n\n".join(
        [
            "\n".join(line for text in _tables(found) for line in wrap(text, width, then=" " * 9)),
            _queries(found.queries, width),
            "\n".join(_legend(found.queries, repetitions, width)),
            "\n".join(_texts(found.queries, found.notes, width)),
            _spread(found.spread, width),
        ]
    )


def _tables(found: ScanComparison) -> Iterator[str]:
    divided = found.divided
    by = f" of {', '.join(divided.key)}" if divided.key else ""
    rows = sum(part.rows for part in found.spread.parts)
    yield f"whole:   {on_one_line(found.whole.name)}, {units.count(found.rows)} rows, {units.size(found.whole.bytes)}"
    yield (
        f"divided: {on_one_line(divided.name)}, {units.count(rows)} rows, {units.size(divided.bytes)}, "
        f"by {divided.strategy}{on_one_line(by)} into {units.plural(len(found.spread.parts), 'partition')}"
    )


def _queries(queries: Sequence[Measured], width: int) -> str:
    has_cpu = all(query.whole.cpu_seconds is not None for query in queries)
    return render_table(_QUERIES if has_cpu else _WITHOUT_CPU, [_cells(query) for query in queries], width=width)


def _cells(query: Measured) -> list[str]:
    ratios = query.ratios
    cells = [
        query.query.name,
        _milliseconds(query.whole.median_seconds),
        _milliseconds(query.divided.median_seconds),
        *(f"{ratio:.2f}x" for ratio in (median(ratios), min(ratios), max(ratios))),
    ]
    cpu = [side.median_cpu_seconds for side in (query.whole, query.divided)]
    return cells + [_milliseconds(seconds) for seconds in cpu if seconds is not None]


def _legend(queries: Sequence[Measured], repetitions: int, width: int) -> Iterator[str]:
    text = (
        f"Medians of {units.plural(repetitions, 'repetition')} in turns, behind one that is not counted: what fits "
        "into memory is there. `faster`: the time of the whole table by that of the divided one; below 1 it is slower. "
        "`least` and `most` of its repetitions: with 1 between them there is no difference to speak of."
    )
    if any(query.whole.cpu_seconds is None for query in queries):
        text += " The server scans: its CPU time is not known here."
    yield from wrap(text, width)


def _texts(queries: Sequence[Measured], notes: Sequence[str], width: int) -> Iterator[str]:
    for query in queries:
        yield from wrap(f"{query.query.name}: {on_one_line(query.query.text)}", width, first="", then=2 * _INDENT)
    for note in notes:
        yield from wrap(on_one_line(note), width, first="", then=2 * _INDENT)


def _spread(spread: Spread, width: int) -> str:
    rows = [
        [word, on_one_line(part.name), units.count(part.rows), units.size(part.bytes)]
        for word, part in (("least", spread.least), ("middle", spread.middle), ("greatest", spread.greatest))
    ]
    lines = [render_table(_SPREAD, rows, width=width)]
    text = (
        f"imbalance: the greatest partition has {spread.imbalance:.2f} times the rows of the average one, the greatest "
        f"number of bytes is {spread.imbalance_bytes:.2f} times the average."
    )
    if spread.empty:
        text += f" {units.plural(spread.empty, 'partition')} of {len(spread.parts)} without a row."
    return "\n".join([*lines, *wrap(text, width)])


def _milliseconds(seconds: float) -> str:
    value = seconds * 1_000
    return f"{value:,.1f} ms" if value < 99.95 else f"{value:,.0f} ms"
