"""Configuration and environment: what the run was asked to do, where it connected to, and on what it ran."""

from __future__ import annotations

from headrace.report.markup import Markup, element, join
from headrace.report.run_files import RunFiles
from headrace.report.sections import Section
from headrace.report.sections.machine import figures
from headrace.report.tables import Column, definitions, table
from headrace.report.values import Document, document, documents, text, texts, whole
from headrace.report.wording import count, size

# Members of a connection that stand in columns of their own.
_NAMED = ("name", "type")
_HIDDEN = "not stored: it holds a secret"


def section(run: RunFiles) -> Section:
    """Both tables, as far as the run folder tells."""
    parts: list[Markup] = [
        element("div", _titled("Configuration", _asked(run)), _titled("Environment", _environment(run)), class_="pair")
    ]
    connections = _connections(run)
    if connections is not None:
        parts.append(connections)
    return Section("configuration", "Configuration", join(parts))


def _titled(title: str, pairs: list[tuple[str, str]]) -> Markup:
    return element("div", element("h3", title), definitions(pairs), class_="chart")


def _asked(run: RunFiles) -> list[tuple[str, str]]:
    started, request = run.events.started, run.request
    pairs = [
        ("package", run.package),
        ("file", text(request, "package")),
        ("hash", (text(request, "package_hash") or "")[:16] or None),
        ("environment", text(request, "environment")),
        ("streams", _count(whole(request, "streams") or whole(started, "streams"))),
        ("memory", size(whole(started, "memory_bytes")) if whole(started, "memory_bytes") else None),
        ("tasks side by side", _count(whole(request, "max_concurrent"))),
        ("only", ", ".join(texts(request, "only")) or None),
        ("from", text(request, "from")),
        ("left out", ", ".join(texts(request, "skip")) or None),
    ]
    pairs += [(f"--set {name}", _option(value)) for name, value in document(request, "sets").items()]
    pairs += [(f"--connection {name}", _option(value)) for name, value in document(request, "connections").items()]
    return [(name, value) for name, value in pairs if value is not None]


def _option(value: object) -> str:
    return value if isinstance(value, str) else _HIDDEN


def _environment(run: RunFiles) -> list[tuple[str, str]]:
    own = run.environment
    pairs = [
        ("Headrace", text(own, "headrace")),
        ("machine", text(own, "host")),
        ("processor", text(own, "processor")),
        ("CPUs", _count(whole(own, "cpus"))),
        ("system", text(own, "system")),
        ("Python", text(own, "python")),
        *figures(run),
    ]
    known = [(name, value) for name, value in pairs if value is not None]
    return known or [("not known", "the run has not written it")]


def _connections(run: RunFiles) -> Markup | None:
    described = documents(run.environment, "connections")
    if not described:
        return None
    columns = (Column("connection", words=True), Column("type", words=True), Column("settings", words=True))
    rows = [[text(own, "name") or "-", text(own, "type") or "-", _settings(own)] for own in described]
    return element(
        "div",
        element("h3", "Connections"),
        table(columns, rows, caption="Connections of the package, without secrets", cards=True),
        class_="chart",
    )


def _settings(connection: Document) -> str:
    shown = [
        f"{name} {value}"
        for name, value in connection.items()
        if name not in _NAMED and isinstance(value, str | int) and value != ""
    ]
    return ", ".join(shown) or "-"


def _count(value: int | None) -> str | None:
    return None if value is None else count(value)
