"""What `check --connect` says about a server: who and what it is, the user's rights, and its settings."""

from __future__ import annotations

from headrace.model import PostgresConnection
from headrace.targets.base import Inspection
from headrace.targets.postgres.advice import ADVISED_SETTINGS, Setting, advise
from headrace.targets.postgres.connection import Connection, array, sql
from headrace.targets.postgres.requirements import NO_ENCODING


def inspect_server(connection: Connection, model: PostgresConnection, partitions: int) -> Inspection:
    """Facts, problems and advice. `partitions`: the most that a task will switch in one transaction."""
    result = connection.query(sql("inspection"), (model.ledger_schema,))
    found = dict(zip(result.columns, result.rows[0], strict=True))
    shown = model.describe()
    facts = {
        "server": f"PostgreSQL {found['version']} at {shown['host']}, port {shown['port']}",
        "database": f"{found['database']}, as user {found['user']}",
        "encoding": str(found["encoding"]),
        "role": "standby" if found["standby"] == "t" else "primary",
        "ledger": _ledger(model.ledger_schema, found),
    }
    rows = connection.query(sql("settings"), (array(ADVISED_SETTINGS),)).rows
    settings = {
        str(name): Setting(str(shown), str(value), unit, str(context)) for name, shown, value, unit, context in rows
    }
    return Inspection(facts, tuple(_problems(model.ledger_schema, found)), advise(settings, partitions))


def _ledger(schema: str | None, found: dict[str, str | None]) -> str:
    if schema is None:
        return "off: a run that dies cannot be resumed"
    return f"schema {schema}" if found["has_ledger_schema"] == "t" else f"schema {schema}, made by the first run"


def _problems(schema: str | None, found: dict[str, str | None]) -> list[str]:
    problems = []
    if found["standby"] == "t":
        problems.append("the server is a standby: it only reads; name the primary")
    if found["encoding"] == NO_ENCODING:
        problems.append(f"the database has the encoding {NO_ENCODING}, which takes any bytes: make one with UTF8")
    if schema is not None and found["has_ledger_schema"] != "t" and found["may_create_schema"] != "t":
        problems.append(
            f"the user may not make schema {schema} of the ledger: GRANT CREATE ON DATABASE to it, "
            "or name another schema with `ledger`"
        )
    rights = {"USAGE": found["may_use_ledger_schema"], "CREATE": found["may_create_in_ledger_schema"]}
    missing = [name for name, has in rights.items() if has == "f"]
    if missing:
        problems.append(f"the user lacks {', '.join(missing)} on schema {schema} of the ledger")
    return problems
