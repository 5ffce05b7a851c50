"""python.md: the public Python API, from signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import FunctionType

from headrace import api
from headrace.api.tasks import Container, Task, Tasks

_HEAD = """# Python

<!-- Written by docs/reference/generate.py from the program. Do not edit; run `make docs`. -->

```python
import headrace

package = headrace.Package("nightly")
package.connection("inbox", type="files", path="inbox")
package.connection("warehouse", type="duckdb", path="warehouse.duckdb")
package.layout("orders", delimiter=",", columns=[{"name": "id", "type": "int64"}])
with package.foreach("each", item="name", files={"connection": "inbox", "pattern": "*.csv"}) as each:
    load = each.data_flow(
        "load",
        sources={"orders": {"connection": "inbox", "files": "${name}", "layout": "orders"}},
        destinations={"sales": {"input": "orders", "connection": "warehouse", "table": "sales", "target": "append"}},
    )
    each.file("archive", archive="${name}", to="done/", connection="inbox", after=load)

result = package.run()
print(result.status, result.rows_loaded)
```

The same package as a file: `package.save("nightly.yaml")`, and `headrace.load("nightly.yaml")` reads it again. Settings
are those of [the package format](package.md) and of [tasks](tasks.md). A setting that does not exist is a `TypeError`
where it is given; all other problems are a `PackageError` of `check`, `plan` or `run`, which names lines of
`package.to_yaml()`.

Runs work in notebooks, and several at once from several threads. Ctrl-C rolls back what is not committed, and raises
`KeyboardInterrupt`. Tasks of kind python and process run only with `trust=True`.
"""


def page() -> str:
    """The whole page."""
    public = [getattr(api, name) for name in api.__all__ if not name.endswith("Error")]
    functions = [item for item in public if isinstance(item, FunctionType)]
    classes = [item for item in public if isinstance(item, type)]
    parts = [_HEAD, "## Functions\n"]
    parts += [_function(f"headrace.{item.__name__}", item) for item in functions]
    for item in [*classes, Tasks, Task, Container]:
        parts.append("\n".join(_class(item)))
    return "\n".join(parts)


def _function(name: str, function: object, level: int = 3) -> str:
    assert callable(function)
    return f"{'#' * level} `{name}`\n\n```python\n{_signature(name, function)}\n```\n\n{inspect.getdoc(function)}\n"


def _signature(name: str, function: object) -> str:
    """On one line if that is short, otherwise a line for each parameter."""
    assert callable(function)
    own = inspect.signature(function)
    texts: list[str] = []
    for item in own.parameters.values():
        if item.name in ("self", "cls"):
            continue
        if item.kind is not item.POSITIONAL_ONLY and texts and "/" not in texts and _is_positional(own, texts[-1]):
            texts.append("/")
        if item.kind is item.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        default = "" if item.default is item.empty else f" = {item.default!r}"
        stars = "**" if item.kind is item.VAR_KEYWORD else ""
        texts.append(f"{stars}{item.name}: {item.annotation}{default}")
    returns = "" if own.return_annotation in (inspect.Signature.empty, "None") else f" -> {own.return_annotation}"
    line = f"{name}({', '.join(texts)}){returns}"
    return line if len(line) <= 100 else "\n".join([f"{name}(", *(f"    {text}," for text in texts), f"){returns}"])


def _is_positional(signature: inspect.Signature, text: str) -> bool:
    item = signature.parameters.get(text.partition(":")[0])
    return item is not None and item.kind is item.POSITIONAL_ONLY


def _class(item: type) -> Iterator[str]:
    yield f"## `{item.__name__}`\n\n{inspect.getdoc(item)}\n"
    if is_dataclass(item):
        rows = [f"| `{field.name}` | `{str(field.type).replace('|', chr(92) + '|')}` |" for field in fields(item)]
        yield "\n".join(["| member | type |", "|---|---|", *rows, ""])
    elif item is api.Package:
        yield f"```python\n{_signature(item.__name__, item)}\n```\n"
    for name, member in vars(item).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"### `{name}`\n\n{inspect.getdoc(member)}\n"
        elif isinstance(member, FunctionType):
            yield _function(name, member)
