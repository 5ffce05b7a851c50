"""A package and layouts for files: what `headrace init` makes."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from headrace.errors import OutputError
from headrace.infer.dialect import Choice
from headrace.infer.inference import InferOptions, infer_chosen
from headrace.infer.inferred import Doubt, Inferred
from headrace.infer.layout_text import layout_text
from headrace.infer.looking import look_at
from headrace.infer.wording import count, either
from headrace.infer.yaml_text import scalar

PACKAGE_FILE: Final = "package.yaml"
_LAYOUTS_FOLDER: Final = "layouts"
_MOST_NAME_CHARACTERS: Final = 60


@dataclass(frozen=True, slots=True)
class InitOptions:
    """What to make. `to`: the destination as a package writes it; None for a DuckDB file in the folder."""

    folder: Path
    to: Mapping[str, str] | None = None
    package: str | None = None
    infer: InferOptions = field(default_factory=InferOptions)


@dataclass(frozen=True, slots=True)
class InitTable:
    """A table, the files of its rows, and what they are."""

    name: str
    paths: tuple[Path, ...]
    inferred: Inferred


@dataclass(frozen=True, slots=True)
class InitResult:
    """What was made."""

    folder: Path
    files: tuple[Path, ...]
    tables: tuple[InitTable, ...]


def init_package(
    paths: Sequence[Path], options: InitOptions, is_cancelled: Callable[[], bool] = lambda: False
) -> InitResult:
    """Group files of one kind, infer each group, write a layout for each, and the package.

    Nothing is overwritten: raises OutputError if one of the files is there; SourceError as `infer_files`.
    """
    _refuse_existing(options.folder / PACKAGE_FILE)
    looks = look_at(paths, options.infer.given, is_cancelled)
    tables = []
    for name, group in _groups(paths, looks):
        layout_path = options.folder / _LAYOUTS_FOLDER / f"{name}.yaml"
        _refuse_existing(layout_path)
        own = [(paths[place], looks[place]) for place in group]
        inferred = infer_chosen([path for path, _ in own], [look for _, look in own], options.infer, is_cancelled)
        inferred = replace(inferred, doubts=(*_united_doubts([path for path, _ in own]), *inferred.doubts))
        tables.append(InitTable(name, tuple(path for path, _ in own), inferred))
    texts = {options.folder / _LAYOUTS_FOLDER / f"{table.name}.yaml": layout_text(table.inferred) for table in tables}
    texts[options.folder / PACKAGE_FILE] = package_text(tables, options)
    _write_all(texts)
    return InitResult(options.folder, tuple(texts), tuple(tables))


def _groups(paths: Sequence[Path], looks: Sequence[tuple[Choice, Mapping[str, Any]]]) -> list[tuple[str, list[int]]]:
    """Files of one kind, and what their table is called; in the order of the files."""
    groups: dict[tuple[object, ...], list[int]] = {}
    encodings: dict[tuple[object, ...], str] = {}
    # Files of ASCII fit to any other, so they come last.
    for place in sorted(range(len(looks)), key=lambda place: _own_encoding(looks[place]) is None):
        choice, _ = looks[place]
        # Columns without names say little: files whose names differ in more than numbers are of other kinds.
        # Customers and suppliers may have the same columns; orders of the north and of the south are orders.
        name = table_name([paths[place]])
        kind = (*choice.kind, name if "header" not in choice.settings else name.partition("_")[0])
        encoding = _own_encoding(looks[place]) or encodings.get(kind)
        if encoding is not None:
            encodings.setdefault(kind, encoding)
        groups.setdefault((*kind, encoding), []).append(place)
    in_order = sorted(sorted(group) for group in groups.values())
    taken: set[str] = set()
    named = []
    for group in in_order:
        name = base = table_name([paths[place] for place in group])
        number = 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        named.append((name, group))
    return named


def _united_doubts(paths: Sequence[Path]) -> Iterator[Doubt]:
    """What is taken for one table, though the names of its files differ in more than numbers."""
    names = list(dict.fromkeys(table_name([path]) for path in paths))
    if len(names) > 1:
        yield Doubt(f"files of {either(names, 'and')} have the same columns, and go into one table")


def _own_encoding(look: tuple[Choice, Mapping[str, Any]]) -> str | None:
    """The encoding that the bytes of a file need; None for ASCII."""
    choice, seen = look
    has_one = seen["has_high_bytes"] or (seen["has_mark"] and "encoding" in choice.settings)
    return str(choice.settings.get("encoding", "utf-8")) if has_one else None


def table_name(paths: Sequence[Path]) -> str:
    """What the names of files have in common, as a name of a table."""
    stems = [_stem(path) for path in paths]
    least, most = min(stems), max(stems)
    common = next((least[:place] for place, own in enumerate(least) if most[place] != own), least)
    plain = re.sub(r"[^a-z0-9_]+", "_", common.lower()).strip("_")
    plain = re.sub(r"(_?[0-9]+)+$", "", plain).strip("_") or plain
    # `orders_w19` and `orders_w23` are orders.
    plain = re.sub(r"(?<=[a-z0-9])_[a-z]$", "", plain) if len(stems) > 1 else plain
    if not plain or plain[0].isdigit():
        plain = f"table_{plain}".rstrip("_")
    return plain[:_MOST_NAME_CHARACTERS]


def _stem(path: Path) -> str:
    name = path.name
    for ending in (".gz", ".zst", ".zstd", ".bgz"):
        name = name.removesuffix(ending)
    return name.partition(".")[0] if not name.startswith(".") else name.strip(".")


def package_text(tables: Sequence[InitTable], options: InitOptions) -> str:
    """The package as text."""
    folder = options.folder.absolute()
    to = options.to or {"type": "duckdb", "path": f"{_slug(options, folder)}.duckdb"}
    target = "replace" if options.to is None else "create"
    connections = _files_connections(tables, folder)
    lines = [
        "# headrace init made this package. Its layouts say what was doubtful: look for `doubt`.",
        "headrace: 1",
        f"package: {scalar(_slug(options, folder))}",
        "connections:",
        *(f"  {name}: {{type: files, path: {scalar(path)}}}" for path, name in connections.items()),
        f"  destination: {scalar(to)}",
        "layouts:",
        *(f"  {table.name}: {{file: {_LAYOUTS_FOLDER}/{table.name}.yaml}}" for table in tables),
        "tasks:",
    ]
    for table in tables:
        root = _root_of(table)
        source = {
            "connection": connections[_shown_root(root, folder)],
            "files": [_pattern(path.absolute().relative_to(root)) for path in table.paths],
            "layout": table.name,
            **({} if table.inferred.rows else {"empty": "allow"}),
        }
        destination = {"input": table.name, "connection": "destination", "table": table.name, "target": target}
        lines += [
            f"  load_{table.name}:",
            "    data_flow:",
            *_limit_lines(table.inferred),
            "      sources:",
            f"        {table.name}: {scalar(source)}",
            "      destinations:",
            f"        {table.name}: {scalar({**destination, 'load': 'single'})}",
        ]
    return "\n".join(lines) + "\n"


def _limit_lines(inferred: Inferred) -> list[str]:
    """A few rows that do not fit are rejects of a load, and not its end."""
    misfits = int(inferred.misfits["count"])
    if not misfits:
        return []
    what = f"{count(misfits, 'row')} of the files {'does' if misfits == 1 else 'do'} not fit the layout"
    return [f"      # {what}. A load fails if more than 1 % of its rows are rejected.", "      rejects: {percent: 1}"]


def _slug(options: InitOptions, folder: Path) -> str:
    name = options.package or folder.name
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")
    return slug if slug and slug[0].isalpha() else f"package-{slug}".rstrip("-")


def _root_of(table: InitTable) -> Path:
    """The folder that all files of a table are in, or below."""
    return Path(os.path.commonpath([path.absolute().parent for path in table.paths]))


def _shown_root(root: Path, folder: Path) -> str:
    """Relative to the package if it is there or below."""
    return _literal(str(root.relative_to(folder)) if root.is_relative_to(folder) else str(root))


def _pattern(path: Path) -> str:
    """The pattern that this file matches, and no other that was not given a name much like it."""
    # Braces would stand for numbers of streams, and cannot be escaped.
    return glob.escape(str(path)).replace("{", "?").replace("}", "?")


def _literal(text: str) -> str:
    """A text of a package that refers to nothing."""
    return text.replace("${", "$${")


def _files_connections(tables: Sequence[InitTable], folder: Path) -> dict[str, str]:
    names: dict[str, str] = {}
    for table in tables:
        names.setdefault(_shown_root(_root_of(table), folder), "files" if not names else f"files_{len(names) + 1}")
    return names


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise OutputError(
            "a file is not overwritten",
            at={"file": str(path)},
            found="it exists",
            hint="Choose another folder with --folder, or remove it.",
        )


def _write_all(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise OutputError("a file cannot be written", at={"file": str(path)}, found=error.strerror) from error
