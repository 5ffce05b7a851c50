"""The areas that mutations are drawn from, as paths of files."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

# The first area with a pattern that matches has the file; `*` also matches slashes.
AREAS = {
    "ledger": [
        "crates/engine/src/sink/postgres/ledger.rs",
        "python/headrace/executors/accounts.py",
        "python/headrace/executors/gathered_accounts.py",
        "python/headrace/run/merged_claims.py",
        "python/headrace/run/reject_accounts.py",
        "python/headrace/run/run_record.py",
        "python/headrace/run/shared_marks.py",
        "python/headrace/run/sql/marks.py",
        "python/headrace/targets/claims.py",
        "python/headrace/targets/*/ledger.py",
        "python/headrace/targets/*/replays.py",
    ],
    "switch": [
        "python/headrace/planning/reload.py",
        "python/headrace/planning/staging.py",
        "python/headrace/run/leaves/switch.py",
        "python/headrace/targets/*/exchange.py",
        "python/headrace/targets/partition_exchange.py",
        "python/headrace/targets/duckdb/partitions.py",
        "python/headrace/targets/duckdb/whole_table.py",
        "python/headrace/targets/postgres/*switch.py",
        "python/headrace/targets/postgres/hidden_tables.py",
        "python/headrace/targets/postgres/incoming.py",
        "python/headrace/targets/postgres/moving.py",
        "python/headrace/targets/postgres/rename.py",
        "python/headrace/targets/postgres/staging.py",
    ],
    "resume": [
        "crates/engine/src/sink/postgres/remembered.rs",
        "crates/engine/src/stream/kept_accounts.rs",
        "python/headrace/executors/kept.py",
        "python/headrace/planning/epochs.py",
        "python/headrace/run/attempt.py",
        "python/headrace/run/control/journal.py",
        "python/headrace/run/control/remembered.py",
        "python/headrace/run/control/stored_values.py",
        "python/headrace/run/finished.py",
        "python/headrace/run/flow_records.py",
        "python/headrace/run/request.py",
        "python/headrace/run/second_pass.py",
        "python/headrace/run/unfinished.py",
        "python/headrace/targets/postgres/sweep.py",
    ],
    "planning": ["python/headrace/planning/*.py"],
    "parse": ["crates/parse/src/*.rs"],
    "engine": ["crates/engine/src/*.rs"],
}
# Tests, code that is not compiled on x86-64, and guesses about unknown files, which no load depends on.
_LEFT_OUT = re.compile(r"/(tests|neon|infer)(\.rs$|/)")


def area_of(file: str) -> str | None:
    """The area of a file, by its path in the repository."""
    if _LEFT_OUT.search(file):
        return None
    matches = (area for area, patterns in AREAS.items() if any(fnmatchcase(file, pattern) for pattern in patterns))
    return next(matches, None)


def files_of_areas(root: Path) -> dict[str, str]:
    """Every file that has an area, in order of their names."""
    paths = [*(root / "crates").rglob("*.rs"), *(root / "python").rglob("*.py")]
    files = sorted(path.relative_to(root).as_posix() for path in paths if not path.is_symlink())
    return {file: area for file in files if (area := area_of(file)) is not None}
