"""The folder of the demo: which files in it an earlier demo wrote, and may be replaced.

The demo notes its text files in `.headrace-demo` before it writes them. It begins only in a folder that is new, empty
or has this file, and deletes nothing but what is noted there.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace import tpch
from headrace.cli.console import shown_path
from headrace.errors import CommandLineError, OutputError

MARKER: Final = ".headrace-demo"
_HEAD: Final = "# The text files that `headrace demo` wrote into data/ and replaces when it is run again."
_ELSEWHERE: Final = "Choose another folder with --folder."


@dataclass(frozen=True)
class DemoFolder:
    """Where the demo puts everything."""

    path: Path

    @property
    def data(self) -> Path:
        """Where the text files go."""
        return self.path / "data"

    @property
    def database(self) -> Path:
        """The DuckDB file."""
        return self.path / "tpch.duckdb"

    @property
    def server(self) -> Path:
        """Where a private PostgreSQL server keeps everything while it runs."""
        return self.path / "postgres"

    @property
    def runs(self) -> Path:
        """Where the folders of the runs go."""
        return self.path / "runs"

    def check(self) -> None:
        """Refuse a folder with anything that is not the demo's. Changes nothing. Raises CommandLineError."""
        with _reported(self.path):
            if not self.path.exists() and not self.path.is_symlink():
                return
            if not self.path.is_dir():
                raise CommandLineError(f"{shown_path(self.path)} is not a folder", hint=_ELSEWHERE)
            if not (self.path / MARKER).is_file() and (found := _first(self.path.iterdir())):
                raise CommandLineError(
                    "the folder of the demo has files that are not the demo's",
                    at={"folder": shown_path(self.path)},
                    found=shown_path(found),
                    expected=f"a new or an empty folder, or one with {MARKER} in it",
                    hint=_ELSEWHERE,
                )
            if foreign := _first(path for path in self._text_files() if path.name not in self._noted()):
                raise CommandLineError(
                    "the data of the demo has a file that the demo did not write",
                    found=shown_path(foreign),
                    hint=f"Move it away: mv {shlex.quote(str(foreign))} ELSEWHERE",
                )

    def clear(self, names: Sequence[str]) -> None:
        """Delete the text files of an earlier demo, and note those that will be written. Raises OutputError."""
        with _reported(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            old = self._noted()
            self._note([*old, *names])  # both, until the old ones are gone
            for path in self._text_files():
                if path.name in old:
                    path.unlink()
            self._note(names)

    def _text_files(self) -> list[Path]:
        """What the package of the demo would load."""
        return [path for table in tpch.TABLES for path in tpch.text_files(self.data, table)]

    def _noted(self) -> set[str]:
        try:
            return set((self.path / MARKER).read_text(encoding="utf-8", errors="replace").splitlines()[1:])
        except FileNotFoundError:
            return set()

    def _note(self, names: Sequence[str]) -> None:
        temporary = self.path / f"{MARKER}.new"
        temporary.write_text("\n".join([_HEAD, *sorted(set(names))]) + "\n", encoding="utf-8")
        temporary.replace(self.path / MARKER)


def _first(paths: Iterator[Path]) -> Path | None:
    return min(paths, default=None)


@contextmanager
def _reported(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            "the folder of the demo cannot be used",
            at={"file": shown_path(error.filename or folder)},
            found=error.strerror,
            hint=_ELSEWHERE,
        ) from error
