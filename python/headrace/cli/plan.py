"""`headrace plan`: what a run would do, as text or JSON. Nothing is created or changed."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import headrace.run as run
from headrace import units
from headrace.cli.console import print_json, print_result, result_width, shown_path
from headrace.cli.control_flow import control_heading, count_tasks, render_control, says_nothing_more
from headrace.cli.run import RunOptions, load_requested
from headrace.errors import on_one_line
from headrace.planning.wording import stream_name

Document = Mapping[str, Any]
_LABEL_CHARACTERS: Final = 10
_INDENT: Final = "  "
# Of more partitions only the first and the last ones are shown.
_FIRST_PARTITIONS: Final = 3
_LAST_PARTITIONS: Final = 2
_SHOWN_VALUES: Final = 6
_SHOWN_FLOWS: Final = 40
_KEPT_TO: Final = {"none": "", "cores": " kept to a CPU each", "numa": " kept to a NUMA node each"}
_NO_CONTROL: Final[Document] = {"on": {}, "tasks": []}


def run_plan(options: RunOptions) -> int:
    """Plan what `headrace run` would do, and print it; returns the exit code."""
    request = options.request()
    package = load_requested(replace(request, package=options.package))
    document = run.plan_package(package, request.choice).to_dict()
    if options.json_output:
        print_json(document)
    else:
        print_result(render_plan(document, width=result_width()))
    return 0


def render_plan(plan: Document, *, width: int) -> str:
    """The plan of a run: a summary line, then one block per task."""
    files = [file for task in plan["tasks"] for file in task.get("files", [])]
    what = "files" if any(file.get("compression", "none") != "none" for file in files) else "text"
    text = f", {units.size(plan['bytes_total'])} of {what}" if plan["bytes_total"] else ""
    flow, planned = plan.get("control_flow") or _NO_CONTROL, plan["tasks"]
    # A data flow with several destinations has a block for each.
    definitions = {task.get("flow_of") or task["task"] for task in planned}
    is_plain = says_nothing_more(flow, definitions)
    count = units.plural(len(definitions), "task") if is_plain else units.plural(count_tasks(flow), "task")
    known = "" if is_plain else f", {units.plural(len(definitions), 'data flow')} planned before the run"
    head = (
        f"package {plan['package']}: {count}{known}{text}, "
        f"{units.plural(plan['streams'], 'stream')}{_KEPT_TO[plan['affinity']]}, "
        f"memory {units.size(plan['memory_bytes'])}"
    )
    blocks = [_wrapped("", [head, *plan["notes"]], width)]
    if not is_plain:
        blocks.append("\n".join([control_heading(flow, width=width), *render_control(flow, width=width)]))
    blocks += [_render_task(task, width) for task in planned[:_SHOWN_FLOWS]]
    if len(planned) > _SHOWN_FLOWS:
        blocks.append(f"and {units.plural(len(planned) - _SHOWN_FLOWS, 'more data flow')}: --json has all of them")
    return "\n\n".join(blocks)


def _render_task(task: Document, width: int) -> str:
    if "skipped" in task:
        return f"{task['task']}\n{_wrapped('skipped', [task['skipped']], width)}"
    name = ".".join(part for part in (task["connection"], task["schema"], task["table"]) if part)
    lines = [
        str(task["task"]),
        _wrapped("into", [f"{name} ({task['target']}, {task['load']})"], width),
        _wrapped("from", [_source(task)], width),
        *_meetings(task, width),
        *_transforms([own for own in task.get("transforms", ()) if "in_front_of" not in own], width),
        _wrapped("streams", [_streams(task)], width),
        _wrapped("memory", [_memory(task["memory"])], width),
    ]
    # What one table takes stands in the notes.
    if task.get("partitioning") is not None and task["partitioning"]["way"] != "whole":
        lines.append(_wrapped("divided", _partitions(task), width))
    rejects = _rejects(task["rejects"])
    if rejects:
        lines.append(_wrapped("rejects", rejects, width))
    if task["notes"]:
        lines.append(_wrapped("notes", task["notes"], width))
    if task["steps"]:
        lines.append(_wrapped("steps", [line for step in task["steps"] for line in step["text"].split("\n")], width))
    return "\n".join(lines)


def _meetings(task: Document, width: int) -> list[str]:
    """How rows of several sources come together, each behind what stands in front of it."""
    meetings = [(kind, task[kind]) for kind in ("join", "union") if kind in task]
    meetings = [("join", own) for _, join in meetings for own in join.get("inner", ())] + meetings
    names = [own["name"] for _, own in meetings]
    # Some lead elsewhere, where nothing comes together.
    transforms = [own for own in task.get("transforms", ()) if "in_front_of" in own]
    lines = _transforms([own for own in transforms if own["in_front_of"] not in names], width)
    for kind, meeting in meetings:
        in_front = [own for own in transforms if own["in_front_of"] == meeting["name"]]
        lines += [*_transforms(in_front, width), _wrapped(kind, [meeting["text"]], width)]
    return lines


def _rejects(limits: Document) -> list[str]:
    """Nothing where no row may be rejected."""
    return [
        f"up to {what}{where}"
        for bounds, where in [
            (limits, ""),
            (limits["per_file"], " of each file"),
            (limits["run"], " of all data flows of the run"),
        ]
        for what in _bounds(bounds or {})
    ]


def _bounds(bounds: Document) -> list[str]:
    texts = [units.plural(bounds["limit"], "row")] if bounds.get("limit") else []
    if bounds.get("per_million") is not None:
        texts.append(f"{bounds['per_million'] / 10_000:g} % of the rows")
    return texts


def _source(task: Document) -> str:
    files = task["files"]
    generated = task["flow"]["source"].get("generate")
    if generated is not None:
        return (
            f"generated TPC-H rows: {generated['table']}, scale {generated['scale']:g}, "
            f"{units.plural(generated['chunks'], 'chunk')}"
        )
    if not files:
        return "no files"
    streams = [on_one_line(stream_name(file["path"])) for file in files if file.get("stream")]
    files = [file for file in files if not file.get("stream")]
    if not files:
        return ", ".join(streams)
    first, last = Path(files[0]["path"]), Path(files[-1]["path"])
    names = shown_path(first) if len(files) == 1 else f"{shown_path(first)} ... {on_one_line(last.name)}"
    packed = sorted({file["compression"] for file in files if file.get("compression", "none") != "none"})
    kind = f" of {' and '.join(packed)}" if packed else ""
    size = "" if streams else f", {units.size(task['bytes_total'])}{kind}"
    return ", ".join([*streams, f"{units.plural(len(files), 'file')}{size}: {names}"])


def _streams(task: Document) -> str:
    slices = task["slices"]
    largest = max((part["end_byte"] - part["begin_byte"] for part in slices), default=0)
    text = f"{units.plural(task['streams'], 'stream')}, {units.plural(len(slices), 'slice')}"
    return f"{text}, the largest {units.size(largest)}" if largest else text


def _partitions(task: Document) -> list[str]:
    """Strategy and way, then the partitions, of many the first and the last ones."""
    division = task["partitioning"]
    parts = [part for part in division["partitions"] if part["action"] != "discard"]
    head = (
        f"by {division['strategy']} ({division['column']}) into {units.plural(len(parts), 'partition')}, way "
        f"{division['way']}, {units.plural(task['connections'], 'connection')}"
    )
    shown = [_partition(part) for part in parts]
    if len(shown) > _FIRST_PARTITIONS + _LAST_PARTITIONS + 1:
        left_out = len(shown) - _FIRST_PARTITIONS - _LAST_PARTITIONS
        shown[_FIRST_PARTITIONS:-_LAST_PARTITIONS] = [f"... {left_out} more"]
    return [head, *shown, *(f"{name}: dropped" for name in division["drops"])]


def _partition(part: Document) -> str:
    action = {"attach": "", "insert": ", exists", "exchange": ", loaded anew"}[part["action"]]
    space = f", tablespace {on_one_line(part['tablespace'])}" if part["tablespace"] else ""
    return f"{on_one_line(part['table'])}: {on_one_line(_rule(part['rule']))}{space}{action}"


def _rule(rule: Document) -> str:
    if "minimum" in rule:
        begin = "MINVALUE" if rule["minimum"] is None else rule["minimum"]
        return f"from {begin} to before {'MAXVALUE' if rule['end'] is None else rule['end']}"
    if "values" in rule:
        values = ["NULL" if value is None else value for value in rule["values"]]
        more = len(values) - _SHOWN_VALUES
        return ", ".join(values[:_SHOWN_VALUES]) + (f" and {units.plural(more, 'more value')}" if more > 0 else "")
    if "modulus" in rule:
        return f"remainder {rule['remainder']} of {rule['modulus']}"
    return "all other keys"


def _transforms(transforms: Sequence[Document], width: int) -> list[str]:
    if not transforms:
        return []
    label = "lookups" if all(own["kind"] == "lookup" for own in transforms) else "transform"
    return [_wrapped(label, [own["text"] for own in transforms], width)]


def _memory(memory: Document) -> str:
    parts = [
        f"text and typed columns {units.size(memory['flow_bytes'])}"
        f" ({memory['blocks']} blocks of {units.size(memory['block_bytes'])})"
    ]
    if memory.get("decoding_bytes"):
        parts.append(f"decoding {units.size(memory['decoding_bytes'])}")
    if memory.get("lookup_bytes"):
        parts.append(f"lookups up to {units.size(memory['lookup_bytes'])}")
    if memory.get("instances"):
        instances = units.plural(memory["instances"], "instance")
        parts.append(f"{instances} of DuckDB for queries, {units.size(memory['instance_bytes'])} each")
    if memory.get("gathering_bytes"):
        parts.append(f"queries over all rows {units.size(memory['gathering_bytes'])}")
    if memory["engine_bytes"]:
        parts.append(f"the target's engine {units.size(memory['engine_bytes'])}")
    parts.append(f"program and reserve {units.size(memory['headroom_bytes'])}")
    return ", ".join(parts)


def _wrapped(label: str, paragraphs: Sequence[str], width: int) -> str:
    """Paragraphs beside a label, each on its own line and wrapped below its beginning."""
    margin = _INDENT + " " * _LABEL_CHARACTERS if label else ""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += textwrap.wrap(
            paragraph,
            width,
            initial_indent=margin,
            subsequent_indent=margin + (_INDENT if label else ""),
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    if label:
        lines[0] = f"{_INDENT}{label:<{_LABEL_CHARACTERS}}{lines[0].lstrip()}"
    return "\n".join(lines)
