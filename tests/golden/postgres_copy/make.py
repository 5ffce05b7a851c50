"""Makes the golden files of the binary COPY format: a server writes the values of `cases.json`.

    python tests/golden/postgres_copy/make.py --psql "psql -h /tmp/sockets -d postgres"

`crates/wire/tests/copy/golden.rs` compares the encoder with them. `--check` writes nothing and compares the files with
what the server writes.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def server_bytes(psql: list[str], case: dict[str, Any]) -> bytes:
    """The case's column as the server writes it."""
    rows = ", ".join(f"({position}, {literal(value)})" for position, value in enumerate(case["values"]))
    statement = (
        f"COPY (SELECT value::{case['server_type']} FROM (VALUES {rows}) AS rows (position, value) ORDER BY position)"
        " TO STDOUT (FORMAT binary)"
    )
    command = [*psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", statement]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--psql", required=True, help="command line of psql, with the connection")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    different = []
    for case in json.loads((FOLDER / "cases.json").read_text(encoding="utf-8")):
        path = FOLDER / f"{case['name']}.copy"
        found = server_bytes(shlex.split(arguments.psql), case)
        if not arguments.check:
            path.write_bytes(found)
        elif path.read_bytes() != found:
            different.append(case["name"])
    print(f"different: {', '.join(different)}" if different else "all equal" if arguments.check else "written")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
