"""A layout that stands alone: its text, or a file."""

from __future__ import annotations

from pathlib import Path

from headrace.errors import PackageError, Problem
from headrace.model.layout import Layout
from headrace.model.problems import ProblemCollector
from headrace.model.suggest import show_value
from headrace.model.validation import validate
from headrace.model.yaml_reader import InvalidYamlError, parse_document


def read_layout(content: bytes, file: str) -> Layout:
    """The layout that a text is; `file` is what messages call it. Raises PackageError with everything that is wrong."""
    problems = ProblemCollector(file)
    try:
        document = parse_document(content, Path(file), file)
    except InvalidYamlError as error:
        problems.extend(error.problems)
        problems.raise_if_any()
        raise
    if not isinstance(document.value, dict):
        problems.add(
            document, (), "the file is not a layout", found=show_value(document.value), expected="a YAML mapping"
        )
    layout = None if problems else validate(Layout, document.value, document, (), problems)
    problems.raise_if_any()
    if layout is None:
        raise PackageError.from_problems(file, [Problem(file, 1, 1, "the layout cannot be read")], 1)
    return layout


def load_layout(path: Path) -> Layout:
    """The layout of a file. Raises PackageError, also if the file cannot be read."""
    try:
        content = path.read_bytes()
    except OSError as error:
        problem = Problem(
            str(path), 1, 1, f"the layout file {path} cannot be read", error.strerror, "the path of a layout file"
        )
        raise PackageError.from_problems(str(path), [problem], 1) from error
    return read_layout(content, str(path))
