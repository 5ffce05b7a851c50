"""Command line: `python -m bench COMMAND` from the repository's folder."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import figures, machine
from bench.data import DataSet, prepare, prepare_together, prepare_tpch
from bench.forms import prepare_forms
from bench.job import Job, Method
from bench.measure import MeasurementError, command, interleave, run_process
from bench.methods import METHODS, find, make_sales, use_cores
from bench.prepared import prepare_postgres
from bench.sales import SOURCES, prepare_ready
from bench.server import Server
from bench.tables import LINEITEM, ORDERS, TABLES

# Cores of a kind: the first of --cores, or all of them.
_ONE_CORE = ("parse", "infer", "forms", "join")
_MEMORY_SCALES = (1.0, 10.0)
# Kinds of LINEITEM in other forms.
_FORMS = ("forms", "gzip")
_SMOKE_FACTOR = 0.002
# Tables of a kind that is about several, but not about all of them: nothing tells the columns of a fixed width.
_INFERRED = ("lineitem", "orders", "wide", "floats", "quoted")
# Kinds whose methods' results are compared before they are measured.
_CHECKED = ("parse", "load", "postgres")


def say(text: str) -> None:
    """Talk goes to stderr."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Dispatch."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="measure and print; --name also keeps the results"))
    _add_one(commands.add_parser("one", help="one method once, in this process"))
    smoke = commands.add_parser("smoke", help="tiny sizes: every method runs and all agree; nothing is timed")
    smoke.set_defaults(run=_smoke)
    profile = commands.add_parser(
        "profile", help="where the time of a LINEITEM row goes (crates/parse/examples/profile.rs)"
    )
    profile.add_argument("--data", type=Path, default=figures.ROOT / ".bench", help="folder of the generated files")
    profile.set_defaults(run=_profile)
    lookup = commands.add_parser(
        "lookup", help="memory, building and probes of a lookup's index (crates/transform/examples/lookup.rs)"
    )
    lookup.add_argument("--entries", type=int, default=10_000_000)
    lookup.add_argument("--rounds", type=int, default=9)
    lookup.set_defaults(run=_lookup)
    for name, tool in (("profile", profile), ("lookup", lookup)):
        tool.add_argument("--core", type=int, default=0)
        tool.add_argument("--name", help=f"keep the result in bench/results/NAME-{name}.md")
    page = commands.add_parser("figures", help="write the tables of docs/benchmarks.md from bench/results")
    page.set_defaults(run=_figures)
    arguments = parser.parse_args()
    arguments.run(arguments)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kinds", default=",".join(METHODS), help=f"{', '.join(METHODS)} (default: all)")
    parser.add_argument("--tables", default=",".join(TABLES), help=f"of `parse` and `infer`: {', '.join(TABLES)}")
    parser.add_argument("--methods", help="only these methods of each kind")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--size", type=float, default=1.0, help="factor for the sizes of all tables (default 1)")
    parser.add_argument("--cores", default="0,1", help="processors; `parse` uses the first (default 0,1)")
    parser.add_argument("--data", type=Path, default=figures.ROOT / ".bench", help="folder of the generated files")
    parser.add_argument("--name", help="keep the results in bench/results/NAME.json, kind by kind")
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="another setting of the PostgreSQL server",
    )
    parser.set_defaults(run=_run)


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _add_one(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=METHODS)
    parser.add_argument("method")
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cores", default="0")
    parser.add_argument("--scratch", type=Path, help="an empty folder (otherwise a temporary one)")
    parser.add_argument("--facts", action="store_true", help="also print what the method's reader or its table holds")
    parser.set_defaults(run=_one)


def _one(arguments: argparse.Namespace) -> None:
    """Measured from outside: the whole life of this process, less what it prints as excluded."""
    use_cores([int(core) for core in arguments.cores.split(",")])
    method = find(arguments.kind, arguments.method)
    data = DataSet(TABLES[arguments.table], arguments.folder)
    with ExitStack() as stack:
        # A measurement's folder is deleted by the process that measures, outside the measured time.
        scratch = arguments.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        job = Job(data, scratch, len(arguments.cores.split(",")))
        printed: dict[str, Any] = {}
        if arguments.facts:
            from bench import facts

            printed["facts"] = facts.of(arguments.kind, method, job)
        printed["rows"] = int(printed["facts"]["rows"]) if arguments.facts else method.run(job)
        printed["excluded_seconds"] = job.excluded_seconds
        printed["excluded_cpu_seconds"] = job.excluded_cpu_seconds
        printed["peak_resident_bytes"] = machine.peak_resident_bytes()
        print(json.dumps(printed), flush=True)


def _check(
    kind: str, methods: list[Method], data: DataSet, cores: list[int], server: Server | None = None
) -> dict[str, str | None]:
    """Per method None, or why its figures would be worth nothing. One process per different reader."""
    from bench import facts

    # `parse` methods of one peer share its reader; every other method has its own table.
    keys = {method.name: method.peer if kind == "parse" else method.name for method in methods}
    found: dict[str, facts.Facts | str] = {}
    for method in methods:
        if keys[method.name] in found:
            continue
        arguments = command(kind, method.name, data, cores, "--facts")
        try:
            own_server = server if method.needs_server else None
            printed, _ = run_process(arguments, data, data.folder.parent, own_server)
            found[keys[method.name]] = printed["facts"]
        except MeasurementError as error:
            found[keys[method.name]] = str(error)
    verdicts = facts.verdicts(found)
    for name, verdict in verdicts.items():
        say(f"{kind} {data.table.name} check {name}: {verdict or 'agrees'}")
    return {method.name: verdicts[keys[method.name]] for method in methods}


def _without_missing(methods: Sequence[Method]) -> tuple[list[Method], dict[str, str | None]]:
    """The methods that can run here, and why the others cannot; says so."""
    missing = {method.name: method.missing() for method in methods}
    for name, reason in missing.items():
        if reason is not None:
            say(f"{name}: {reason}")
    found = {name: reason for name, reason in missing.items() if reason is not None}
    return [method for method in methods if missing[method.name] is None], {**found}


@contextmanager
def _server(methods: Sequence[Method], cores: list[int], changed: Mapping[str, str]) -> Iterator[Server | None]:
    """A server for the methods that need one."""
    if not any(method.needs_server for method in methods):
        yield None
        return
    with Server(cores, changed) as server:
        yield server


def _methods(kind: str, arguments: argparse.Namespace) -> list[Method]:
    wanted = arguments.methods.split(",") if arguments.methods else [method.name for method in METHODS[kind]]
    return [method for method in METHODS[kind] if method.name in wanted]


def _cores(kind: str, arguments: argparse.Namespace) -> list[int]:
    cores = [int(core) for core in arguments.cores.split(",")]
    return cores[:1] if kind in _ONE_CORE else cores


def _entry(
    kind: str,
    what: str,
    sets: list[DataSet],
    methods: list[Method],
    arguments: argparse.Namespace,
    server: Server | None,
) -> dict[str, Any]:
    """The results of one table."""
    cores = _cores(kind, arguments)
    present, problems = _without_missing([method for method in methods if sets[0].table.can_be_read_by(method.peer)])
    if kind == "postgres" and server is not None:
        prepare_postgres(sets, server)
    if kind in _FORMS:
        prepare_forms(sets)
    if kind == "sales":
        prepare_ready(sets, make_sales)
    if kind in _CHECKED:
        problems |= _check(kind, present, sets[0], cores, server)
    good = [method for method in present if problems.get(method.name) is None]
    repetitions = min(arguments.repetitions, 3) if kind == "memory" else arguments.repetitions
    samples = interleave(kind, good, sets, cores, repetitions, sets[-1].folder.parent, say, server)
    rows = next((pairs[0][-1]["rows"] for pairs in samples.values() if pairs), 0)
    return {
        "what": what,
        "rows": rows,
        "source_bytes": sets[-1].size_bytes,
        "methods": {
            method.name: {
                "peer": method.peer,
                "call": method.call,
                "base": method.base,
                "problem": problems.get(method.name),
                "command": _shown_command(kind, method, sets[-1], cores, arguments.data),
                "samples": samples.get(method.name, []),
            }
            for method in methods
        },
    }


def _shown_command(kind: str, method: Method, data: DataSet, cores: list[int], folder: Path) -> str:
    """The command as the documents print it: with the folder that everybody has."""
    words = ["python", *command(kind, method.name, data, cores)]
    return " ".join(words).replace(str(data.folder), str(Path(".bench", data.folder.relative_to(folder))))


def _shown_arguments(kind: str, arguments: argparse.Namespace) -> str:
    shown = f"--kinds {kind} --repetitions {arguments.repetitions} --size {arguments.size:g}"
    if kind in ("parse", "infer") and arguments.tables != ",".join(TABLES):
        shown += f" --tables {arguments.tables}"
    if arguments.methods:
        shown += f" --methods {','.join(method.name for method in _methods(kind, arguments))}"
    return shown + "".join(f" --setting {name}={value}" for name, value in arguments.setting)


def _sets(kind: str, arguments: argparse.Namespace) -> Iterator[tuple[str, str, list[DataSet]]]:
    """Names, descriptions and files of the tables of a kind."""
    if kind == "join":
        yield "ORDERS, LINEITEM", "both tables, 8 pairs of files", list(_joined(arguments.size, arguments.data))
    elif kind == "sales":
        yield "sales", "TPC-H, five tables in eight files each", list(_sales(arguments.size, arguments.data))
    elif kind == "memory":
        for scale in _MEMORY_SCALES:
            sets = [prepare_tpch((LINEITEM, ORDERS), scale * arguments.size, arguments.data)]
            yield f"scale {scale * arguments.size:g}", "LINEITEM, ORDERS", sets
    else:
        for name in _tables(kind, arguments):
            yield name, TABLES[name].what, list(prepare(TABLES[name], arguments.data, arguments.size))


def _joined(size: float, data: Path) -> tuple[DataSet, DataSet]:
    return prepare_together((LINEITEM, ORDERS), size, data)


def _sales(size: float, data: Path) -> tuple[DataSet, DataSet]:
    return prepare_together(SOURCES, size, data, "sales")


def _tables(kind: str, arguments: argparse.Namespace) -> list[str]:
    wanted: list[str] = arguments.tables.split(",")
    if kind == "infer":
        return [name for name in wanted if name in _INFERRED]
    return wanted if kind == "parse" else ["lineitem"]


def _run(arguments: argparse.Namespace) -> None:
    arguments.data = arguments.data.resolve()
    for kind in arguments.kinds.split(","):
        started, stolen, load = time.time(), machine.stolen_seconds(), machine.load_average()
        tables: dict[str, Any] = {}
        methods = _methods(kind, arguments)
        with _server(methods, _cores(kind, arguments), dict(arguments.setting)) as server:
            for name, what, sets in _sets(kind, arguments):
                tables[name] = _entry(kind, what, sets, methods, arguments, server)
            about_server = {"version": server.version, "settings": server.settings} if server else None
        results = {
            "machine": machine.machine(),
            "versions": machine.versions(),
            "arguments": _shown_arguments(kind, arguments),
            "repetitions": arguments.repetitions,
            "load_average_before": load,
            "stolen_seconds": round(machine.stolen_seconds() - stolen, 1),
            **({"server": about_server} if about_server else {}),
            "tables": tables,
        }
        print(f"\n{kind}, {time.time() - started:.0f} s\n\n{figures.PARTS[kind](results)}", flush=True)
        if arguments.name:
            _keep(arguments.name, kind, results)


def _keep(name: str, kind: str, results: dict[str, Any]) -> None:
    """Other kinds of the file stay as they are."""
    path = figures.RESULTS / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    document: dict[str, Any] = {"format": 1, "kinds": {}}
    if path.exists():
        document = json.loads(path.read_text(encoding="utf-8"))
    document["kinds"][kind] = results
    path.write_text(figures.json_text(document), encoding="utf-8")
    say(f"kept in {path}; `python -m bench figures` writes docs/benchmarks.md")


def _smoke(_: argparse.Namespace) -> None:
    """Every reader on every table, every method once."""
    started = time.time()
    failed = False
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        data = Path(folder)
        for table in TABLES:
            small, _large = prepare(TABLES[table], data, _SMOKE_FACTOR)
            methods = [method for method in METHODS["parse"] if TABLES[table].can_be_read_by(method.peer)]
            failed |= any(_check("parse", methods, small, [0]).values())
        small, large = prepare(LINEITEM, data, _SMOKE_FACTOR)
        failed |= any(_check("load", list(METHODS["load"]), small, [0, 1]).values())
        for kind in METHODS:
            cores = [0] if kind in _ONE_CORE else [0, 1]
            sets = [small, large] if kind in ("load", "postgres") else [large]
            if kind == "memory":
                sets = [prepare_tpch((LINEITEM, ORDERS), _SMOKE_FACTOR, data)]
            methods, _missing = _without_missing(METHODS[kind])
            if kind == "join":
                sets = list(_joined(_SMOKE_FACTOR, data))
            if kind == "sales":
                sets = list(_sales(_SMOKE_FACTOR, data))[1:]
                prepare_ready(sets, make_sales)
            if kind in _FORMS:
                prepare_forms(sets)
            with _server(methods, cores, {"shared_buffers": "128MB"}) as server:
                if kind == "postgres" and server is not None:
                    prepare_postgres(sets, server)
                    failed |= any(_check(kind, methods, small, cores, server).values())
                interleave(kind, methods, sets, cores, 1, data, lambda text: None, server)
            say(f"{kind}: every method ran and read as many rows as the others")
    say(f"{'FAILED' if failed else 'all of it agrees'}, {time.time() - started:.0f} s")
    raise SystemExit(1 if failed else 0)


def _profile(arguments: argparse.Namespace) -> None:
    _, large = prepare(LINEITEM, arguments.data.resolve())
    _measure("headrace-parse", "profile", [str(large.files[0])], arguments)


def _lookup(arguments: argparse.Namespace) -> None:
    _measure("headrace-transform", "lookup", [str(arguments.entries), str(arguments.rounds)], arguments)


def _measure(crate: str, example: str, words: Sequence[str], arguments: argparse.Namespace) -> None:
    """Runs a measuring tool of a crate on one core, and keeps what it prints."""
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", "-p", crate, "--example", example]
    subprocess.run(cargo, cwd=figures.ROOT, check=True)
    cargo[1] = "run"
    os.sched_setaffinity(0, [arguments.core])
    text = subprocess.run([*cargo, "--", *words], cwd=figures.ROOT, check=True, capture_output=True, text=True).stdout
    print(text)
    if arguments.name:
        figures.RESULTS.mkdir(exist_ok=True)
        (figures.RESULTS / f"{arguments.name}-{example}.md").write_text(text, encoding="utf-8")


def _figures(_: argparse.Namespace) -> None:
    page = figures.PAGE.read_text(encoding="utf-8")
    figures.PAGE.write_text(figures.rendered_page(page), encoding="utf-8")


if __name__ == "__main__":
    main()
