"""What peers of PostgreSQL are given ready-made, outside the measured time: stripped text, and binary COPY."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from bench.columns import postgres_columns
from bench.data import DataSet, read_once
from bench.server import Server


def stripped(data: DataSet) -> DataSet:
    """The same rows without the delimiter at the end, which PostgreSQL does not take."""
    return DataSet(data.table, _folder(data, "stripped"))


def binary(data: DataSet) -> DataSet:
    """The same rows as the server itself writes them: `COPY TO ... (FORMAT binary)`."""
    return DataSet(data.table, _folder(data, "binary"))


def prepare_postgres(sets: list[DataSet], server: Server) -> None:
    """Makes both forms of all files, once, and reads them into the page cache."""
    for data in sets:
        text, encoded = stripped(data), binary(data)
        stamp = text.folder / "complete.json"
        wanted = {file.name: [file.stat().st_size, file.stat().st_mtime_ns] for file in data.files}
        if not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != wanted:
            text.folder.mkdir(exist_ok=True)
            encoded.folder.mkdir(exist_ok=True)
            for file in data.files:
                _strip(file, text.folder / file.name)
                _encode(data, file.name, server)
            stamp.write_text(json.dumps(wanted), encoding="utf-8")
        for file in [*text.files, *encoded.files]:
            read_once(file)


def _folder(data: DataSet, form: str) -> Path:
    return data.folder.with_name(f"{data.folder.name}-{form}")


def _strip(source: Path, target: Path) -> None:
    with target.open("wb") as output:
        subprocess.run(["sed", r"s/|$//", str(source)], stdout=output, check=True)


def _encode(data: DataSet, name: str, server: Server) -> None:
    server.reset()
    server.cluster.psql(
        f"CREATE TABLE {data.table.name} ({postgres_columns(data.table.columns)});\n"
        f"\\copy {data.table.name} FROM '{stripped(data).folder / name}' WITH (DELIMITER '|')\n"
        f"\\copy {data.table.name} TO '{binary(data).folder / name}' WITH (FORMAT binary)\n",
        server.environment["PGDATABASE"],
    )
