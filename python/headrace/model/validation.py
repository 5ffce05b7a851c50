"""Check values against the models, and say what is wrong in the words of the package, not of pydantic."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from headrace.model.annotations import Slot, allowed_keys, has_key, slot_at, value_at
from headrace.model.problems import ProblemCollector
from headrace.model.settings import OWN_ERROR, SpecModel
from headrace.model.suggest import did_you_mean, nearest, quote, show_name, show_value
from headrace.model.yaml_reader import Document, DocumentPath

Model = TypeVar("Model", bound=SpecModel)


class Unresolved:
    """Stands for a value that is not known (yet): nothing is said about it."""


UNRESOLVED = Unresolved()

_TYPE_ERRORS = frozenset(
    {"string_type", "int_type", "int_from_float", "float_type", "bool_type", "list_type", "dict_type", "model_type",
     "model_attributes_type", "decimal_type", "none_required"}
)  # fmt: skip
_RANGE_ERRORS = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


def validate(
    model: type[Model], value: object, document: Document, path: DocumentPath, problems: ProblemCollector
) -> Model | None:
    """The model of `value`, which stands at `path` of the document; None, with problems noted, if it is wrong.

    None is also returned, without a problem, if the only thing wrong is that a value is UNRESOLVED.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        root = Slot(model)
        for details in error.errors(include_url=False):
            _Report(root, value, document, path, problems).add(details)
        return None


def validate_slot(slot: Slot, value: object, document: Document, path: DocumentPath, problems: ProblemCollector) -> Any:
    """As `validate`, for any setting: its value as the slot's type reads it."""
    annotation: Any = slot.annotation
    if slot.metadata:
        annotation = operator.getitem(cast(Any, Annotated), (annotation, *slot.metadata))
    try:
        return TypeAdapter(annotation, config=ConfigDict(strict=True)).validate_python(value)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            _Report(slot, value, document, path, problems).add(details)
        return None


def place_name(path: DocumentPath) -> str:
    """A path as people write it: `tasks.load.data_flow`, `columns[3].type` (lists count from 1)."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key + 1}]"
        else:
            text += f".{show_name(key)}" if text else show_name(key)
    return text


class _Report:
    """Turns one pydantic error into a problem."""

    def __init__(
        self, root: Slot, value: object, document: Document, prefix: DocumentPath, problems: ProblemCollector
    ) -> None:
        self._root = root
        self._value = value
        self._document = document
        self._prefix = prefix
        self._problems = problems

    def add(self, details: Mapping[str, Any]) -> None:
        kind = details["type"]
        path, is_key = _path_in(self._value, details["loc"], kind)
        context = details.get("ctx", {})
        for key in context.get("path", ()) if kind == OWN_ERROR else ():
            # A single value given where a list may stand has no items in the document.
            path += (key,) if has_key(value_at(self._value, path), key) else ()
        if kind == "extra_forbidden":
            self._unknown_key(path)
        elif kind == "missing":
            self._missing_key(path)
        elif not self._is_unresolved(path):
            self._wrong_value(kind, path, is_key, context)

    def _is_unresolved(self, path: DocumentPath) -> bool:
        return any(value_at(self._value, path[:length]) is UNRESOLVED for length in range(len(path) + 1))

    def _group(self, path: DocumentPath) -> str:
        return place_name((*self._prefix, *path)) or self._document.file

    def _unknown_key(self, path: DocumentPath) -> None:
        parent, key = path[:-1], str(path[-1])
        shown = show_name(key)
        model = slot_at(self._root, self._value, parent).model(value_at(self._value, parent))
        keys = [] if model is None else allowed_keys(model)
        present = value_at(self._value, parent)
        free = [name for name in keys if not (isinstance(present, Mapping) and name in present)]
        self._problems.add(
            self._document,
            (*self._prefix, *path),
            f"unknown key `{shown}` in {self._group(parent)}",
            found=f"`{shown}`",
            expected=_key_list(keys),
            hint=did_you_mean(key, free) or f"Remove `{shown}`, or check its indentation.",
            at_key=True,
        )

    def _missing_key(self, path: DocumentPath) -> None:
        parent, key = path[:-1], str(path[-1])
        present = value_at(self._value, parent)
        keys = list(present) if isinstance(present, Mapping) else []
        misspelt = nearest(key, keys)
        model = slot_at(self._root, self._value, parent).model(present)
        if misspelt is not None and (model is None or misspelt not in allowed_keys(model)):
            return  # the unknown key is reported, with this key as what was meant
        self._problems.add(
            self._document,
            (*self._prefix, *parent),
            f"`{key}` is missing in {self._group(parent)}",
            expected=f"{key}: {slot_at(self._root, self._value, path).expectation(None)}",
            hint=f"Add `{key}`.",
            at_key=True,
        )

    def _wrong_value(self, kind: str, path: DocumentPath, is_key: bool, context: Mapping[str, Any]) -> None:
        slot = slot_at(self._root, self._value, path)
        value = path[-1] if is_key else value_at(self._value, path)
        place = self._group(path[:-1] if is_key else path)
        expected: str | None = slot.expectation(value)
        hint = None
        if kind == OWN_ERROR:
            what = f"{place}: {context['what']}"
            expected, hint = context["expected"], context["hint"]
        elif kind in _RANGE_ERRORS:
            what = f"{place} is out of range"
        elif kind == "literal_error" and isinstance(value, str):
            what = f"{place} has a value that is not allowed"
            hint = did_you_mean(value, [str(choice) for choice in slot.choices()])
        elif kind in _TYPE_ERRORS or kind == "literal_error":
            what = f"{place} must be {slot.expectation(value)}"
            expected, hint = None, _type_hint(slot, value)
            if what.startswith(f"{place} must be one of"):
                what, expected = f"{place} has a value that is not allowed", slot.expectation(value)
        elif kind == "string_too_short":
            what, expected = f"{place} is empty", "a text that is not empty"
        else:
            what = f"{place} has a value that is not allowed"
        self._problems.add(
            self._document,
            (*self._prefix, *path),
            what,
            found=show_value(value),
            expected=expected,
            hint=hint,
            at_key=is_key,
        )


def _path_in(value: object, loc: tuple[str | int, ...], kind: str) -> tuple[DocumentPath, bool]:
    """pydantic's location without the tags of unions; and whether a key, not its value, is meant."""
    path: list[str | int] = []
    is_key = False
    for number, key in enumerate(loc):
        if has_key(value, key):
            path.append(key)
            value = value_at(value, (key,))
        elif key == "[key]":
            is_key = True
        elif kind == "missing" and number == len(loc) - 1:
            path.append(key)
    return tuple(path), is_key


def _key_list(keys: list[str]) -> str:
    return "no keys" if not keys else f"{'one of ' if len(keys) > 1 else ''}{', '.join(keys)}"


def _type_hint(slot: Slot, value: object) -> str | None:
    if value is None:
        return "Write a value, or remove the key."
    if slot.wants_text() and not isinstance(value, (str, list, Mapping)):
        return f"Quote it: {quote(show_value(value))}."
    if isinstance(value, str) and slot.expectation(value) == "true or false":
        return "Write true or false, in small letters and without quotes." if value.lower() in _TRUTH_WORDS else None
    return None


_TRUTH_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n"})
