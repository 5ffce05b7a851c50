"""What a task keeps beside its rejects, because no ledger has it: written before its commit, and read by a resumed run
that finds the task complete.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.private_files import make_folder, write_text


def keep(folder: Path, file_stem: str, kind: str, document: object) -> None:
    """Writes it; None: there is nothing, whatever an earlier attempt has written. That it cannot fails no load: then
    only this is not known behind a resume.
    """
    path = _path(folder, file_stem, kind)
    with suppress(OSError):
        if document is None:
            path.unlink(missing_ok=True)
            return
        make_folder(folder, parents=True, exist_ok=True)
        waiting = path.with_name(f".{path.name}")
        write_text(waiting, json.dumps(document), encoding="utf-8")
        waiting.replace(path)


def kept(folder: Path, file_stem: str, kind: str) -> Any:
    """What was written. Raises OSError or ValueError if it was taken away, or changed."""
    return json.loads(_path(folder, file_stem, kind).read_text(encoding="utf-8"))


def _path(folder: Path, file_stem: str, kind: str) -> Path:
    return folder / f"{file_stem}.{kind}.json"
