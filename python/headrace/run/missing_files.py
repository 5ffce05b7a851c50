"""What is said of sources that have no files."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import SourceError
from headrace.model import FileSource


def no_files(source: FileSource) -> str:
    """Why a data flow is passed over."""
    return f"no file in {source.folder} matches {_patterns([source])}"


def _patterns(sources: Sequence[FileSource]) -> str:
    names = dict.fromkeys(pattern for source in sources for pattern in source.patterns)
    return ", ".join(f"`{name}`" for name in names)


def nothing_to_load(missing: Sequence[FileSource]) -> SourceError:
    """Several data flows have no file, and no other one has any."""
    folders = dict.fromkeys(str(source.folder) for source in missing)
    return SourceError(
        "no data flow of the run has any file",
        at={"folder": ", ".join(folders)},
        found=f"no file for {len(missing)} data flows",
        expected=f"files matching {_patterns(missing)}",
        hint="Correct the folder or the patterns.",
    )
