"""errors.md: every kind of error."""

from __future__ import annotations

from headrace.errors import HeadraceError, error_classes

_HEAD = """# Errors

<!-- Written by docs/reference/generate.py from the program. Do not edit; run `make docs`. -->

Every error has a kind, and says what failed, where, what was found, what was expected, and one action to take.
`--json`, `summary.json` and `events.jsonl` hold it as data: `kind`, `what`, `at`, `found`, `expected`, `hint`,
`retryable`, and `server` if a server reported it. *Retryable* errors may pass: `retry` of a task tries again after
these, and after no others. The exit code is that of the command that the error ends. In Python each kind is a class of
`headrace.errors`, all of them `HeadraceError`.

| kind | class | exit code | retryable | meaning |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(f"{_row(error_class)}\n" for error_class in error_classes())


def _row(error_class: type[HeadraceError]) -> str:
    meaning = " ".join((error_class.__doc__ or "").split("\n\n")[0].split())
    retryable = "yes" if error_class.retryable else ""
    return f"| `{error_class.kind}` | `{error_class.__name__}` | {error_class.exit_code} | {retryable} | {meaning} |"
