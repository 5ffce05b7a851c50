"""Tasks of kind `generate`: TPC-H tables as text files. What is there already is kept."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import headrace
from headrace.errors import OutputError
from headrace.model.spec_leaves import GenerateTaskSpec
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.sources.tpch_files import TpchFiles, write_tpch

_NOTICE_SECONDS: Final = 5.0
_MEGABYTE: Final = 1_000_000


class GenerateLeaf:
    """Writes one table after the other.

    A file beside each table says what its files are and how they looked: only files that nobody has touched since are
    kept, and only if they would be written the same again.
    """

    def run(self, settings: GenerateTaskSpec, context: LeafContext) -> LeafResult:
        """Raises OutputError: no space, no right, files of another number of chunks."""
        folder = Path(os.path.abspath(context.folder / settings.out))
        generated = size = 0
        for table in settings.tpch:
            context.cancellation.check(f"task {context.instance}")
            if _is_there(folder, table, settings):
                context.notice(f"{table} is there already: its files are kept")
                continue
            files = self._write(folder, table, settings, context)
            _note(folder, table, settings, files)
            generated += len(files)
            size += sum(file["bytes"] for file in files)
        return LeafResult(details={"files": generated, "bytes": size})

    def describe(self, settings: GenerateTaskSpec) -> Sequence[str]:
        """What would be written."""
        chunks = f", {settings.chunks} files each" if settings.chunks > 1 else ""
        return [f"writes {', '.join(settings.tpch)} of TPC-H at scale {settings.scale:f} into {settings.out}{chunks}"]

    def _write(
        self, folder: Path, table: str, settings: GenerateTaskSpec, context: LeafContext
    ) -> list[dict[str, Any]]:
        last = time.monotonic()

        def show(written: int, estimated: int) -> None:
            nonlocal last
            if time.monotonic() - last >= _NOTICE_SECONDS:
                last = time.monotonic()
                context.notice(f"generating {table}: {written // _MEGABYTE} of about {estimated // _MEGABYTE} MB")

        files = TpchFiles(folder, float(settings.scale), settings.chunks, None, (table,), context.package.streams)
        try:
            return write_tpch(files, context.cancellation.is_set, show)
        finally:
            # A time-out is more than a cancellation.
            context.cancellation.check(f"task {context.instance}")


def _is_there(folder: Path, table: str, settings: GenerateTaskSpec) -> bool:
    try:
        note = json.loads(_note_path(folder, table).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(note, dict) or note.get("of") != _of(settings) or not isinstance(note.get("files"), dict):
        return False
    return all(_looks(folder / name) == looks for name, looks in note["files"].items())


def _note(folder: Path, table: str, settings: GenerateTaskSpec, files: Sequence[dict[str, Any]]) -> None:
    looks = {os.path.basename(file["path"]): _looks(Path(file["path"])) for file in files}
    path = _note_path(folder, table)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps({"of": _of(settings), "files": looks}), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise OutputError(
            "cannot note what was generated",
            at={"file": str(path)},
            found=error.strerror,
            hint="Free some space, or choose another folder.",
        ) from error


def _note_path(folder: Path, table: str) -> Path:
    return folder / f".headrace-tpch-{table}.json"


def _of(settings: GenerateTaskSpec) -> dict[str, object]:
    """All that the bytes depend on."""
    return {"scale": str(settings.scale.normalize()), "chunks": settings.chunks, "version": headrace.__version__}


def _looks(path: Path) -> list[int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]
