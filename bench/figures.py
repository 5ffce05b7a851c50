"""From samples to figures: slopes, ratios, medians, and the tables of docs/benchmarks.md."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
_SECTION = re.compile(r"(<!-- bench (?P<name>\S+) (?P<part>\S+) -->\n).*?(<!-- end bench -->)", re.DOTALL)
_NOT_MEASURED = "Not measured yet.\n"
# What the tables call the methods' peers.
_TITLES = {
    "headrace": "Headrace",
    "duckdb": "DuckDB",
    "duckdb 1.5.5": "DuckDB 1.5.5",
    "pyarrow": "pyarrow",
    "polars": "polars",
    "psql": "psql",
    "adbc-driver-postgresql": "ADBC",
    "pgloader": "pgloader",
}


@dataclass(frozen=True)
class Slope:
    """Between the small and the large set of one repetition."""

    mb_per_second: float
    cpu_seconds_per_gb: float
    # CPU-seconds per second, those of the server included: how many cores were really used.
    cores_busy: float
    server_cpu_seconds_per_gb: float = 0.0


@dataclass(frozen=True)
class Spread:
    """Median and range of the repetitions."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value."""
        listed = list(values)
        return cls(statistics.median(listed), min(listed), max(listed))

    def text(self, digits: int) -> str:
        """`1.46 (1.40 to 1.52)`, or only the median of a single value."""
        shown = f"{self.median:,.{digits}f}"
        return (
            shown
            if self.least == self.greatest
            else f"{shown} ({self.least:,.{digits}f} to {self.greatest:,.{digits}f})"
        )


def slope(pair: list[dict[str, Any]]) -> Slope:
    """Differences, so that starting the process and importing libraries do not count."""
    small, large = pair
    seconds = max(large["seconds"] - small["seconds"], 1e-9)
    cpu_seconds = large["cpu_seconds"] - small["cpu_seconds"]
    server_seconds = large.get("server_cpu_seconds", 0.0) - small.get("server_cpu_seconds", 0.0)
    source_bytes = large["source_bytes"] - small["source_bytes"]
    return Slope(
        source_bytes / seconds / 1e6,
        cpu_seconds / source_bytes * 1e9,
        (cpu_seconds + server_seconds) / seconds,
        server_seconds / source_bytes * 1e9,
    )


@dataclass(frozen=True)
class MethodFigures:
    """All slopes of one method on one table, and the ratios to the base method, each formed inside one repetition.

    `base`: the method before it in the list that is compared with; `streams` has one for each destination.
    """

    name: str
    peer: str
    call: str
    base: bool
    problem: str | None
    slopes: list[Slope]
    faster: list[float]
    # Of the slopes, and of whole processes over the large set.
    cpu: tuple[list[float], list[float]]
    peak_resident_bytes: list[int]

    def speed(self) -> Spread:
        """MB of source text per second."""
        return Spread.of(slope.mb_per_second for slope in self.slopes)


def method_figures(entry: Mapping[str, Any]) -> list[MethodFigures]:
    """Figures of one table. Headrace's speed over the method's; the method's CPU-seconds over Headrace's."""
    slopes = {
        name: [slope(pair) for pair in method["samples"] if len(pair) == 2] for name, method in entry["methods"].items()
    }
    found = list[MethodFigures]()
    base, base_seconds = list[Slope](), list[float]()
    for name, method in entry["methods"].items():
        seconds = [pair[-1]["cpu_seconds"] for pair in method["samples"]]
        if method["base"]:
            base, base_seconds = slopes[name], seconds
        pairs = [] if method["base"] else list(zip(base, slopes[name], strict=False))
        whole = [] if method["base"] else list(zip(base_seconds, seconds, strict=False))
        found.append(
            MethodFigures(
                name,
                method["peer"],
                method["call"],
                method["base"],
                method["problem"],
                slopes[name],
                [own.mb_per_second / other.mb_per_second for own, other in pairs],
                (
                    [other.cpu_seconds_per_gb / own.cpu_seconds_per_gb for own, other in pairs],
                    [other / own for own, other in whole],
                ),
                [pair[-1]["peak_resident_bytes"] for pair in method["samples"]],
            )
        )
    return found


# --- tables -----------------------------------------------------------------------------------------------------------


def table_text(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def parse_text(kind: Mapping[str, Any]) -> str:
    """The fastest peer of each table, then every method of each table."""
    overview, details = list[list[str]](), list[str]()
    for table, entry in kind["tables"].items():
        figures = method_figures(entry)
        peers = [item for item in figures if item.slopes and not item.base]
        own = next((item for item in figures if item.base and item.slopes), None)
        fastest = max(peers, key=lambda item: item.speed().median, default=None)
        if own is not None and fastest is not None:
            overview.append(
                [
                    f"`{table}`",
                    f"{own.speed().median:,.0f}",
                    f"{fastest.name} {fastest.speed().median:,.0f}",
                    Spread.of(fastest.faster).text(2),
                ]
            )
        details.append(f"\n`{table}`: {entry['what']}; {_size(entry)}\n\n" + _methods_text(figures, two_cores=False))
    head = table_text(["table", "Headrace MB/s", "fastest peer, MB/s", "Headrace is faster by"], overview)
    return head + "".join(details) + _calls(kind)


def load_text(kind: Mapping[str, Any]) -> str:
    """Every method, with the best wall time beside the median."""
    parts = list[str]()
    for table, entry in kind["tables"].items():
        parts.append(f"`{table}`: {_size(entry)}\n\n" + _methods_text(method_figures(entry), two_cores=True))
    return "\n".join(parts) + _calls(kind)


def join_text(kind: Mapping[str, Any]) -> str:
    """Every method, on one core."""
    parts = list[str]()
    for table, entry in kind["tables"].items():
        parts.append(f"{table}: {_size(entry)}\n\n" + _methods_text(method_figures(entry), two_cores=False))
    return "\n".join(parts) + _calls(kind)


def postgres_text(kind: Mapping[str, Any]) -> str:
    """As `load`, with the CPU time of the server beside that of the client."""
    parts = [_server_text(kind)]
    for table, entry in kind["tables"].items():
        text = _methods_text(method_figures(entry), two_cores=True, server=True)
        parts.append(f"`{table}`: {_size(entry)}\n\n{text}")
    return "\n".join(parts) + _calls(kind)


def sales_text(kind: Mapping[str, Any]) -> str:
    """Every way to the fact table; ratios are of the time for the same sources."""
    rows = list[list[str]]()
    for entry in kind["tables"].values():
        against = ""
        for item in (item for item in method_figures(entry) if item.slopes):
            against = item.name if item.base else against
            client = Spread.of(slope.cpu_seconds_per_gb for slope in item.slopes)
            server = Spread.of(slope.server_cpu_seconds_per_gb for slope in item.slopes)
            ratio = "" if item.base else f"{Spread.of(item.faster).text(2)} x `{against}`"
            rows.append([f"`{item.name}`", item.speed().text(0), client.text(1), server.text(1), ratio])
    header = ["way", "MB of sources per second", "client CPU-s per GB", "server CPU-s per GB", "faster than it"]
    size = "".join(_size(entry) + "\n\n" for entry in kind["tables"].values())
    return _server_text(kind) + "\n" + size + table_text(header, rows) + _calls(kind)


def _server_text(kind: Mapping[str, Any]) -> str:
    """What is not as a server has it by itself."""
    settings = ", ".join(f"{name} {value}" for name, value in kind["server"]["settings"].items())
    return f"PostgreSQL {kind['server']['version']}: {settings}.\n"


def streams_text(kind: Mapping[str, Any]) -> str:
    """CPU-seconds of 16 streams over those of 2, per destination."""
    rows = list[list[str]]()
    for table, entry in kind["tables"].items():
        for item in method_figures(entry):
            cpu = Spread.of(slope.cpu_seconds_per_gb for slope in item.slopes)
            more = [Spread.of(100 * (ratio - 1) for ratio in ratios).text(1) if ratios else "" for ratios in item.cpu]
            rows.append([f"`{table}` {item.name}", f"{item.speed().median:,.0f}", cpu.text(2), *more])
    header = ["into, streams", "MB/s", "CPU-seconds per GB", "more than 2 streams, %", "more in whole process, %"]
    return table_text(header, rows) + _calls(kind)


def forms_text(kind: Mapping[str, Any]) -> str:
    """What each form costs against the one before it that is compared with."""
    rows = list[list[str]]()
    for entry in kind["tables"].values():
        against = ""
        for item in (item for item in method_figures(entry) if item.slopes):
            against = item.name if item.base else against
            cpu = Spread.of(slope.cpu_seconds_per_gb for slope in item.slopes)
            ratios = ["", "", ""]
            if not item.base:
                ratios = [f"`{against}`", Spread.of(item.faster).text(2), Spread.of(item.cpu[0]).text(2)]
            rows.append([f"`{item.name}`", item.speed().text(0), cpu.text(2), *ratios])
    header = ["form", "MB of plain text per second", "CPU-seconds per GB", "against", "slower by", "more CPU by"]
    return table_text(header, rows) + _calls(kind)


def infer_text(kind: Mapping[str, Any]) -> str:
    """The part of the speed of a parse that a pass without a layout has."""
    rows = list[list[str]]()
    for table, entry in kind["tables"].items():
        parse, infer = method_figures(entry)
        speeds = [item.speed().text(0) for item in (parse, infer)]
        parts = [Spread.of(1 / ratio for ratio in ratios).text(2) for ratios in (infer.faster, infer.cpu[0])]
        peak = statistics.median(infer.peak_resident_bytes) / 1e6
        rows.append([f"`{table}`, {_size(entry)}", *speeds, *parts, f"{peak:,.0f}"])
    header = ["table", "parse MB/s", "infer MB/s", "part of it", "by CPU-seconds", "infer, peak MB"]
    return table_text(header, rows) + _calls(kind)


def memory_text(kind: Mapping[str, Any]) -> str:
    """Peaks per scale."""
    rows = list[list[str]]()
    for table, entry in kind["tables"].items():
        for name, method in entry["methods"].items():
            peaks = Spread.of(pair[-1]["peak_resident_bytes"] / 1e6 for pair in method["samples"])
            size = method["samples"][0][-1]["source_bytes"]
            rows.append([f"{name}, {table}", f"{size / 1e6:,.0f}", peaks.text(0)])
    return table_text(["into, streams, scale", "MB of text", "peak resident MB"], rows) + _calls(kind)


def machine_text(kinds: Mapping[str, Any]) -> str:
    """Machine, versions and settings of each kind; kinds of one run on one machine share a paragraph."""
    said: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        machine, versions = kind["machine"], kind["versions"]
        text = (
            f"{machine['processor']}, {machine['cores']} {'virtual ' if machine['virtual'] else ''}cores "
            f"({machine['caches']}), {machine['memory_gb']:g} GB, {machine['kernel']}; Headrace uses "
            f"{machine['instructions']}. Versions: "
            + ", ".join(f"{peer} {number}" for peer, number in versions.items())
            + f", Python {machine['python']}."
        )
        said.setdefault(text, []).append(
            f"{name} {kind['repetitions']} repetitions, load average before {kind['load_average_before']:g}, "
            f"stolen by the hypervisor {kind['stolen_seconds']:.0f} s"
        )
    return "\n\n".join(f"{text}\n\n{'; '.join(notes)}." for text, notes in said.items()) + "\n"


def commands_text(kinds: Mapping[str, Any]) -> str:
    """The command of every kind, and that of one process of every method."""
    lines = list[str]()
    for kind in kinds.values():
        lines += [f'make bench ARGUMENTS="{kind["arguments"]}"']
        for entry in list(kind["tables"].values())[:1]:
            lines += [method["command"] for method in entry["methods"].values()]
        lines.append("")
    return "```\n" + "\n".join(lines).rstrip("\n") + "\n```\n"


PARTS = {
    "parse": parse_text,
    "load": load_text,
    "postgres": postgres_text,
    "streams": streams_text,
    "forms": forms_text,
    "infer": infer_text,
    "gzip": forms_text,
    "join": join_text,
    "sales": sales_text,
    "memory": memory_text,
}


# Parts that measuring tools of the crates print.
_PRINTED = ("profile", "lookup")


def render(name: str, part: str) -> str:
    """One generated part of the page, from bench/results/NAME.json, or from NAME-PART.md as a tool has printed it."""
    if part in _PRINTED:
        printed = RESULTS / f"{name}-{part}.md"
        return printed.read_text(encoding="utf-8") if printed.exists() else _NOT_MEASURED
    path = RESULTS / f"{name}.json"
    kinds = json.loads(path.read_text(encoding="utf-8"))["kinds"] if path.exists() else {}
    if part in ("machine", "commands"):
        return (machine_text if part == "machine" else commands_text)(kinds) if kinds else _NOT_MEASURED
    return PARTS[part](kinds[part]) if part in kinds else _NOT_MEASURED


def rendered_page(page: str) -> str:
    """The page with every generated part made anew."""
    return _SECTION.sub(lambda match: match[1] + "\n" + render(match["name"], match["part"]) + "\n" + match[4], page)


def json_text(document: Mapping[str, Any]) -> str:
    """Readable, but with one sample per line."""
    text = json.dumps(document, indent=1)
    return (
        re.sub(r"\{\s+(\"seconds\"[^{}]+?)\s+\}", lambda match: "{" + re.sub(r"\s+", " ", match[1]) + "}", text) + "\n"
    )


def _size(entry: Mapping[str, Any]) -> str:
    return f"{entry['rows']:,} rows, {entry['source_bytes'] / 1e6:,.0f} MB"


def _methods_text(figures: list[MethodFigures], *, two_cores: bool, server: bool = False) -> str:
    header = ["method", "MB/s", *(["best", "cores busy"] if two_cores else []), "CPU-seconds per GB"]
    header += [*(["of the server"] if server else []), "peak MB"]
    header += ["Headrace is faster by", "and needs less CPU by"]
    rows = list[list[str]]()
    for item in figures:
        title = f"**{item.name}**" if item.base else item.name
        if item.problem is not None or not item.slopes:
            rows.append([f"{title}: {item.problem or 'not measured'}"] + [""] * (len(header) - 1))
            continue
        speed = item.speed()
        row = [title, speed.text(0)]
        if two_cores:
            row = [title, f"{speed.median:,.0f}", f"{speed.greatest:,.0f}"]
            row.append(f"{statistics.median(slope.cores_busy for slope in item.slopes):.2f}")
        row.append(f"{statistics.median(slope.cpu_seconds_per_gb for slope in item.slopes):.2f}")
        if server:
            row.append(f"{statistics.median(slope.server_cpu_seconds_per_gb for slope in item.slopes):.2f}")
        row.append(f"{statistics.median(item.peak_resident_bytes) / 1e6:,.0f}")
        row.append(Spread.of(item.faster).text(2) if item.faster else "")
        row.append(f"{statistics.median(item.cpu[0]):.2f}" if item.cpu[0] else "")
        rows.append(row)
    return table_text(header, rows)


def _calls(kind: Mapping[str, Any]) -> str:
    """What each method does."""
    calls: dict[str, str] = {}
    for entry in kind["tables"].values():
        calls |= {name: f"{_TITLES[method['peer']]}: {method['call']}" for name, method in entry["methods"].items()}
    return "\n" + "".join(f"- {name}: {text}\n" for name, text in calls.items())
