"""From files to a layout: a look for the dialect, a pass for facts, decisions."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from headrace import core
from headrace.errors import CommandLineError, SourceError
from headrace.infer.decide import decide, proofs_of
from headrace.infer.dialect import Choice, Given
from headrace.infer.facts import ColumnFacts
from headrace.infer.inferred import Doubt, Inferred
from headrace.infer.keys import arrow_flow, proved_keys
from headrace.infer.looking import LOOK_BYTES, NeverCancelled, core_look, look_at
from headrace.infer.shared_formats import with_shared_formats
from headrace.infer.wording import bare_path, count, either, shown
from headrace.model import Layout
from headrace.planning.slicing import slice_bytes

# A second look reads around rows that do not fit, at so many places.
_WINDOW_BYTES: Final = 256_000
_MOST_WINDOWS: Final = 4
# An estimate of different values this near to the number of rows may be all of them.
_KEY_TOLERANCE: Final = 0.1
_RULES: Final = {
    "too_few_fields": "too few fields",
    "too_many_fields": "too many fields",
    "row_too_long": "more bytes than a row can have",
    "text_after_qualifier": "text behind a closing quote",
    "stray_qualifier": "quotes inside of values",
    "unclosed_qualifier": "a quote that is never closed",
    "unfinished_escape": "an escape at the end",
    "invalid_utf8": "bytes that are not UTF-8",
    "unmappable": "bytes that are no characters",
    "nul_byte": "NUL bytes",
}
_STRAY_RULES: Final = ("stray_qualifier", "text_after_qualifier")


@dataclass(frozen=True, slots=True)
class InferOptions:
    """How to look. `sample_bytes`: read only so much of each file; None for all of it. `exact_keys`: prove keys."""

    sample_bytes: int | None = None
    exact_keys: bool = False
    given: Given = field(default_factory=Given)
    streams: int = field(default_factory=lambda: os.cpu_count() or 1)


def infer_files(
    paths: Sequence[Path], options: InferOptions, is_cancelled: Callable[[], bool] = NeverCancelled
) -> Inferred:
    """One layout for all files. Raises SourceError for what cannot be read, is no delimited text, or differs;
    CommandLineError for keys that are to be proved by a sample.
    """
    if options.exact_keys and options.sample_bytes is not None:
        raise CommandLineError(
            "a sample proves no key",
            found="--exact-keys and --sample",
            hint="Leave out one of them.",
        )
    choices = look_at(paths, options.given, is_cancelled)
    return infer_chosen(paths, choices, options, is_cancelled)


def infer_chosen(
    paths: Sequence[Path],
    looks: Sequence[tuple[Choice, Mapping[str, Any]]],
    options: InferOptions,
    is_cancelled: Callable[[], bool] = NeverCancelled,
) -> Inferred:
    """The layout of files whose dialects were found."""
    choice = _united(paths, looks)
    names = [_shown_path(path) for path in paths]
    choice = _with_readable_header(paths, choice, is_cancelled)
    found = _pass(paths, choice, options, is_cancelled)
    second = _second_choice(paths, choice, found, options, is_cancelled)
    if second is not None:
        again = _pass_or_none(paths, second, options, is_cancelled)
        if again is not None and _explains_more(again, found):
            choice, found = second, again
    choice, found = _keeping_stray(paths, choice, found, options, is_cancelled)
    inferred = _decided(names, choice, found, set())
    if {"qualifier", "escape"} & set(choice.settings):
        trimmable = _trimmable(paths, choice, inferred, options, is_cancelled)
        inferred = _decided(names, choice, found, trimmable) if trimmable else inferred
    if options.exact_keys and inferred.rows > 1:
        spec = _slices(paths, choice, options, is_cancelled)
        # Of values, as a load has them: 1.0 and 1.00 are one.
        layout = Layout.model_validate({**inferred.dialect, "columns": [own.entry() for own in inferred.columns]})
        flow_of = partial(arrow_flow, spec, layout.to_core(), options.streams)
        keys = proved_keys(flow_of, inferred, is_cancelled)
        inferred = replace(inferred, keys=tuple(keys), keys_are_proved=True)
    return inferred


def _pass_or_none(
    paths: Sequence[Path], choice: Choice, options: InferOptions, is_cancelled: Callable[[], bool]
) -> dict[str, Any] | None:
    """A pass by a dialect that was tried only: None if not even the header can be read by it."""
    try:
        return _pass(paths, choice, options, is_cancelled)
    except SourceError:
        return None


def _keeping_stray(
    paths: Sequence[Path],
    choice: Choice,
    found: dict[str, Any],
    options: InferOptions,
    is_cancelled: Callable[[], bool],
) -> tuple[Choice, dict[str, Any]]:
    """The choice for files with quotes inside of values, and the pass by it. Rows that have no other fault have as many
    fields as the others: then the quotes are text (`stray_qualifiers: keep`), or have blanks beside them.

    If any row has such quotes in two fields, the choice stays. They may be a pair with a delimiter between them: a
    delimiter may be missing before the first one, and the number of fields right by chance.
    """
    rules = found["misfits"]["by_rule"]
    stray, after = (rules.get(rule, 0) for rule in _STRAY_RULES)
    if not stray:
        return choice, found
    if any(map(partial(_has_blanks_around, choice), found["misfits"]["first"])):
        beside = replace(choice, settings={**choice.settings, "blanks_around_qualifier": True})
        again = _pass_or_none(paths, beside, options, is_cancelled)
        if again is not None and again["misfits"]["count"] < found["misfits"]["count"]:
            return _keeping_stray(paths, beside, again, options, is_cancelled)
    kept = replace(choice, settings={**choice.settings, "stray_qualifiers": "keep"})
    again = _pass(paths, kept, options, is_cancelled)
    if again["stray_fields"] != stray + after:
        return choice, found
    doubts = [Doubt(f"quotes inside of values in {count(stray, 'row')}: they are taken as text")]
    if after:
        doubts.append(Doubt(f"values with text after a closing quote in {count(after, 'row')}: they keep their quotes"))
    return replace(kept, doubts=(*choice.doubts, *doubts)), again


def _has_blanks_around(choice: Choice, misfit: Mapping[str, Any]) -> bool:
    """Whether the value would be whole without blanks beside its quotes, and that was not tried yet."""
    if "blanks_around_qualifier" in choice.settings or misfit["rule"] not in _STRAY_RULES:
        return False
    value, quote = str(misfit["value"]), str(choice.settings["qualifier"])
    inner = value.strip(" \t")
    return inner != value and inner.startswith(quote) and inner.endswith(quote)


def _explains_more(again: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether no more rows are left over, and none because a quote that is data swallowed others."""
    left = again["misfits"]
    swallowed = {"unclosed_qualifier", "row_too_long"} & set(left["by_rule"])
    return not swallowed and bool(left["count"] <= found["misfits"]["count"])


def _with_readable_header(paths: Sequence[Path], choice: Choice, is_cancelled: Callable[[], bool]) -> Choice:
    """The same; without names that a load would read otherwise, because the header itself breaks the dialect."""
    if choice.settings.get("header") != "check":
        return choice
    try:
        _slices(paths, choice, InferOptions(sample_bytes=LOOK_BYTES, streams=1), is_cancelled)
    except SourceError as error:
        if not (error.at or {}).get("row"):
            raise  # of the file, not of a row of it
        skipped = {**choice.settings, "header": "skip"}
        return Choice(skipped, choice.names, (*choice.doubts, Doubt("the header is not written as rows are")))
    return choice


def _trimmable(
    paths: Sequence[Path],
    choice: Choice,
    inferred: Inferred,
    options: InferOptions,
    is_cancelled: Callable[[], bool],
) -> set[str]:
    """Columns of values with blanks at their ends, all of which `trim` takes: none stands between qualifiers.

    Only where that decides about a type the files are read once more.
    """
    if "escape" in choice.settings:
        return set()  # behind an escape a blank at the end is text: layouts with both are refused
    proofs = proofs_of(inferred.facts)
    wanted = [
        own.name
        for own, column in zip(inferred.facts, inferred.columns, strict=True)
        if own.blank_ends and decide(own, proofs).type != column.type
    ]
    if not wanted:
        return set()
    again = _pass(paths, choice, options, is_cancelled, trimmed=wanted)
    return {own["name"] for own in again["columns"] if own["name"] in wanted and not own["blank_ends"]}


def _shown_path(path: Path) -> str:
    return str(path)


def _united(paths: Sequence[Path], looks: Sequence[tuple[Choice, Mapping[str, Any]]]) -> Choice:
    """The one dialect of all files. Raises SourceError if there is none."""
    first = looks[0][0]
    settings = dict(first.settings)
    for path, (choice, _) in zip(paths[1:], looks[1:], strict=True):
        if choice.kind != first.kind:
            raise SourceError(
                "the files are not of one kind",
                at={"file": _shown_path(path)},
                found=_kind(choice),
                expected=f"as {_shown_path(paths[0])}: {_kind(first)}",
                hint="Infer them apart, or use `headrace init`, which makes a table of each kind.",
            )
        if "qualifier" in choice.settings:
            settings.setdefault("qualifier", choice.settings["qualifier"])
    encodings = {choice.settings.get("encoding", "utf-8") for choice, look in looks if look["has_high_bytes"]}
    encodings |= {
        choice.settings["encoding"] for choice, look in looks if look["has_mark"] and "encoding" in choice.settings
    }
    if len(encodings) > 1:
        raise SourceError(
            "the files are not in one encoding",
            at={"file": _shown_path(paths[0])},
            found=either(sorted(encodings), "and"),
            expected="files in one encoding",
            hint="Infer them apart, or say which one it is with --encoding.",
        )
    settings.pop("encoding", None)
    encoding = encodings.pop() if encodings else first.settings.get("encoding", "utf-8")
    doubts = _united_doubts([choice.doubts for choice, _ in looks])
    own = {} if encoding == "utf-8" else {"encoding": encoding}
    return Choice({**own, **_in_order(settings)}, first.names, doubts)


def _united_doubts(doubts_of_files: Sequence[Sequence[Doubt]]) -> tuple[Doubt, ...]:
    """Each doubt once; of those with the same topic the first, and in how many files there is such a one."""
    found: dict[str, list[Doubt]] = {}
    for doubts in doubts_of_files:
        for doubt in doubts:
            found.setdefault(doubt.topic or doubt.text, []).append(doubt)
    more = {topic: len(doubts) - 1 for topic, doubts in found.items()}
    return tuple(
        replace(doubts[0], text=f"{doubts[0].text}; likewise in {count(more[topic], 'other file')}")
        if more[topic] and len({doubt.text for doubt in doubts}) > 1
        else doubts[0]
        for topic, doubts in found.items()
    )


def _in_order(settings: Mapping[str, Any]) -> dict[str, Any]:
    front = [key for key in ("delimiter", "qualifier", "escape") if key in settings]
    return {key: settings[key] for key in (*front, *(key for key in settings if key not in front))}


def _kind(choice: Choice) -> str:
    names = [shown(name) for name in choice.names[:3]]
    more = f" and {count(len(choice.names) - 3)} more" if len(choice.names) > 3 else ""
    return f"delimiter {shown(choice.settings['delimiter'])}, columns {', '.join(names)}{more}"


def _pass(
    paths: Sequence[Path],
    choice: Choice,
    options: InferOptions,
    is_cancelled: Callable[[], bool],
    trimmed: Sequence[str] = (),
) -> dict[str, Any]:
    spec = _slices(paths, choice, options, is_cancelled, trimmed)
    is_sample = spec.pop("is_sample")
    return {**core.infer_columns(spec, is_cancelled), "is_sample": is_sample}


def _slices(
    paths: Sequence[Path],
    choice: Choice,
    options: InferOptions,
    is_cancelled: Callable[[], bool],
    trimmed: Sequence[str] = (),
) -> dict[str, Any]:
    """Files, the slices of them that are read, the layout of texts, and whether that is not all."""
    columns = [
        {"name": name, "type": "string", "nullable": True, **({"trim": "both"} if name in trimmed else {})}
        for name in choice.names
    ]
    layout = Layout.model_validate({**choice.settings, "columns": columns}).to_core()
    files = [str(path.absolute()) for path in paths]
    total = sum(path.stat().st_size for path in paths)
    size = options.sample_bytes or slice_bytes(total, options.streams)
    wanted = {"files": files, "slice_bytes": size, "layout": layout, "compression": "auto"}
    sliced = core.plan_slices(wanted, is_cancelled)
    slices = sliced["slices"]
    if options.sample_bytes is not None:
        first: dict[int, dict[str, Any]] = {}
        for one in slices:
            first.setdefault(one["file"], one)
        slices = list(first.values())
    is_sample = len(slices) < len(sliced["slices"])
    spec = {"files": sliced["files"], "slices": slices, "layout": layout, "streams": options.streams}
    return {**spec, "is_sample": is_sample}


def _second_choice(
    paths: Sequence[Path],
    choice: Choice,
    found: Mapping[str, Any],
    options: InferOptions,
    is_cancelled: Callable[[], bool],
) -> Choice | None:
    """Another dialect, by what the sample did not show; None if there is nothing to mend, or no better one."""
    misfits = found["misfits"]
    if not misfits["count"] and not found["quoted_without_qualifier"]:
        return None
    if found["quoted_without_qualifier"] and "qualifier" not in choice.settings:
        return replace(choice, settings=_in_order({**choice.settings, "qualifier": '"'}))
    return _by_misfits(paths, choice, misfits["first"], is_cancelled)


def _by_misfits(
    paths: Sequence[Path], choice: Choice, misfits: Sequence[Mapping[str, Any]], is_cancelled: Callable[[], bool]
) -> Choice | None:
    """The same with the qualifier and the escape that explain most rows around the first misfits."""
    given = Given(
        delimiter=str(choice.settings["delimiter"]),
        encoding=choice.settings.get("encoding"),
        ends_with_cr=choice.settings.get("row_end") == "cr",
    )
    fields = len(choice.names) + bool(choice.settings.get("trailing_delimiter"))
    explained = [0] * len(given.candidates())
    for file, byte in _windows(paths, misfits):
        look = core_look([file], given, is_cancelled, _WINDOW_BYTES, max(0, byte - _WINDOW_BYTES // 4))[0]
        for place, shape in enumerate(look["candidates"]):
            explained[place] += max(0, shape["fields"].get(str(fields), 0) - shape["text_behind"]) if shape else 0
    candidates = given.candidates()
    own = next(
        place
        for place, one in enumerate(candidates)
        if all(one[key] == choice.settings.get(key) for key in ("qualifier", "escape"))
    )
    # A qualifier that the look has found stays: rows that break it are misfits, and not a reason to load all quotes.
    kept = choice.settings.get("qualifier")
    tried = [place for place, one in enumerate(candidates) if kept in (None, one["qualifier"])]
    best = max(tried, key=lambda place: (explained[place], -place))
    if explained[best] <= explained[own]:
        return None
    marks = {key: candidates[best][key] for key in ("qualifier", "escape") if candidates[best][key] is not None}
    others = {key: value for key, value in choice.settings.items() if key not in ("qualifier", "escape")}
    doubts = choice.doubts
    if "escape" in marks and "escape" not in choice.settings:
        where = f"{bare_path(Path(misfits[0]['file']).name)}, row {count(misfits[0]['row'])}"
        what = f"{shown(marks['escape'])} was taken for an escape, and vanishes from values, because of rows such as"
        doubts = (*doubts, Doubt(f"{what} {where}"))
    return replace(choice, settings=_in_order({**others, **marks}), doubts=doubts)


def _windows(paths: Sequence[Path], misfits: Sequence[Mapping[str, Any]]) -> list[tuple[Path, int]]:
    """Places of misfits far enough from each other, a few of them."""
    files = {str(path.absolute()): path for path in paths}
    found: list[tuple[Path, int]] = []
    for misfit in misfits:
        file, byte = files.get(str(misfit["file"])), int(misfit["byte"])
        if file is not None and all(file != other or abs(byte - there) > _WINDOW_BYTES // 2 for other, there in found):
            found.append((file, byte))
    return found[:_MOST_WINDOWS]


def _decided(names: Sequence[str], choice: Choice, found: Mapping[str, Any], trimmable: Collection[str]) -> Inferred:
    facts = tuple(ColumnFacts.of_core(column) for column in found["columns"])
    proofs = proofs_of(facts)
    can_trim = not {"qualifier", "escape"} & set(choice.settings)
    columns = tuple(decide(own, proofs, names, can_trim=can_trim or own.name in trimmable) for own in facts)
    if found["is_sample"]:
        columns = tuple(replace(column, nullable=True) for column in columns)
    rows = int(found["rows"])
    columns, formats = with_shared_formats(columns)
    return Inferred(
        files=tuple(names),
        dialect={**choice.settings, **formats},
        rows=rows,
        columns=columns,
        facts=facts,
        doubts=(
            *choice.doubts,
            *_comment_doubts(choice, found, len(names)),
            *_misfit_doubts(found),
            *_other_doubts(found),
        ),
        misfits=found["misfits"],
        keys=tuple(
            (own.name,)
            for own, column in zip(facts, columns, strict=True)
            if "null_tokens" not in column.settings and _may_be_key(own, rows)
        ),
        is_sample=bool(found["is_sample"]),
        bytes_read=int(found["bytes"]),
    )


def _comment_doubts(choice: Choice, found: Mapping[str, Any], files: int) -> list[Doubt]:
    """How many lines were no rows, where comments are skipped: what a mark in a value would do."""
    at_starts = int(choice.settings.get("skip_lines", 0)) + ("header" in choice.settings)
    number = int(found["skipped"]) - files * at_starts
    if "comment" not in choice.settings or number <= 0:
        return []
    return [Doubt(f"comments and blank lines: {count(number)} beside {count(int(found['rows']), 'row')}")]


def _misfit_doubts(found: Mapping[str, Any]) -> list[Doubt]:
    misfits = found["misfits"]
    total = int(found["rows"]) + int(misfits["count"])
    doubts = []
    for rule, number in misfits["by_rule"].items():
        first = next((one for one in misfits["first"] if one["rule"] == rule), None)
        where = "" if first is None else f", the first {bare_path(Path(first['file']).name)}, row {count(first['row'])}"
        instead = (
            "; if no delimiter is missing, `stray_qualifiers: keep` takes them as text"
            if rule == "stray_qualifier"
            else ""
        )
        doubts.append(Doubt(f"{_RULES.get(rule, rule)}: {count(number)} of {count(total, 'row')}{where}{instead}"))
    return doubts


def _other_doubts(found: Mapping[str, Any]) -> list[Doubt]:
    doubts = []
    if found["quoted_without_qualifier"]:
        quoted = count(found["quoted_without_qualifier"], "value")
        doubts.append(Doubt(f"quotes at the front of {quoted} are taken for data: they do not close as qualifiers do"))
    if not found["has_distinct"]:
        doubts.append(Doubt("there are too many columns to count different values"))
    if not found["rows"]:
        doubts.append(Doubt("there are no rows: every column is a text"))
    return doubts


def _may_be_key(facts: ColumnFacts, rows: int) -> bool:
    if rows < 2 or facts.nulls or facts.empty or facts.distinct is None or "blank" in facts.classes:
        return False
    if facts.is_exact:
        return facts.distinct == rows
    return facts.distinct >= (1 - _KEY_TOLERANCE) * rows
