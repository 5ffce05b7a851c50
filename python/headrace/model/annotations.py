"""Follow a path through the models: which model, field and type belong to a place in a package.

Both the reference resolver (what may stand here?) and the error texts (what is allowed here?) need this.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import Discriminator, Tag
from pydantic.fields import FieldInfo

from headrace.model.data_type import DataType
from headrace.model.settings import KIND_KEY, ONE_OR_MANY, SettingKind, SpecModel
from headrace.model.suggest import one_of

# Upper bound of settings that have none but must fit 64 bits.
UNBOUNDED = 2**63 - 1
# Keys that are named where a mapping is missing; an unknown key is told all of them.
SHOWN_KEYS = 12


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a package: its type, the constraints on it, and what may stand there instead of a literal."""

    annotation: Any
    metadata: tuple[Any, ...] = ()
    kind: SettingKind = SettingKind.LITERAL

    def model(self, value: object) -> type[SpecModel] | None:
        """The model that `value` is read with here; None if the slot takes no mapping with fixed keys."""
        return _model(self.annotation, value, _discriminator(self.metadata))

    def child(self, key: str | int, value: object) -> Slot:
        """The slot of `key` inside `value`; a slot of type Any if nothing is known of it."""
        if isinstance(value, Mapping):
            model = self.model(value)
            if model is not None:
                return _field_slot(model, str(key))
            item = _item(self.annotation, dict, 1)
        else:
            item = _item(self.annotation, list, 0)
        return Slot(Any, kind=self.kind) if item is None else Slot(item, kind=self.kind)

    def wants_text(self) -> bool:
        """Whether a single text is what belongs here."""
        return str in _plain_members(self.annotation) and int not in _plain_members(self.annotation)

    def takes_list(self) -> bool:
        """Whether a list belongs here."""
        return _item(self.annotation, list, 0) is not None

    def takes_mapping(self) -> bool:
        """Whether a mapping with free keys belongs here."""
        return _item(self.annotation, dict, 1) is not None

    def takes_null(self) -> bool:
        """Whether the setting may also have no value."""
        return type(None) in _plain_members(self.annotation)

    def choices(self) -> tuple[object, ...]:
        """The allowed values, if they are fixed."""
        for member in _plain_members(self.annotation):
            if get_origin(member) is Literal:
                return get_args(member)
        return ()

    def expectation(self, value: object) -> str:
        """What is allowed here, as a phrase for messages."""
        if self.choices():
            return one_of(self.choices())
        if ONE_OR_MANY in (*self.metadata, *(item for own in _members(self.annotation) for item in _unwrap(own)[1])):
            choices = self.child(0, []).choices()
            return f"{one_of(choices)}; one or a list" if choices else "text or a list of texts"
        model = self.model(value) or self.model({})
        members = _plain_members(self.annotation)
        if DataType in members:
            return "a type such as int64"
        if model is not None and str not in members:
            keys = allowed_keys(model)
            if len(keys) > SHOWN_KEYS:
                return f"a mapping with keys such as {', '.join(keys[:SHOWN_KEYS])}"
            return f"a mapping with the key{'s' if len(keys) > 1 else ''} {', '.join(keys)}"
        if int in members:
            return self._whole_number()
        if str in members:
            return "text"
        if bool in members:
            return "true or false"
        if self.takes_list():
            return "a list"
        if _item(self.annotation, dict, 1) is not None:
            return "a mapping"
        return "another value"

    def _whole_number(self) -> str:
        lower: object = None
        upper: object = None
        for constraint in self.metadata:
            if isinstance(constraint, annotated_types.Ge):
                lower = constraint.ge
            if isinstance(constraint, annotated_types.Le):
                upper = constraint.le
        if lower is not None and upper is not None and upper != UNBOUNDED:
            return f"a whole number from {lower} to {upper}"
        return "a whole number" if lower is None else f"a whole number of at least {lower}"


def allowed_keys(model: type[SpecModel]) -> list[str]:
    """The keys of a model as packages write them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def slot_at(slot: Slot, value: object, path: tuple[str | int, ...]) -> Slot:
    """The slot at `path` below `slot`, choosing models by the value found on the way."""
    for key in path:
        slot = slot.child(key, value)
        value = value_at(value, (key,))
    return slot


def value_at(value: object, path: tuple[str | int, ...]) -> object:
    """The value at `path`, None if there is none."""
    for key in path:
        if not has_key(value, key):
            return None
        value = value[key]  # type: ignore[index]
    return value


def has_key(value: object, key: str | int) -> bool:
    """Whether a mapping or list has the key or index."""
    if isinstance(value, Mapping):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(value)


def field_kind(field: FieldInfo) -> SettingKind:
    """What may stand in place of a literal value of a field."""
    extra = field.json_schema_extra
    return SettingKind(extra[KIND_KEY]) if isinstance(extra, dict) and KIND_KEY in extra else SettingKind.LITERAL


def _field_slot(model: type[SpecModel], key: str) -> Slot:
    for name, field in model.model_fields.items():
        if (field.alias or name) == key:
            metadata = tuple(field.metadata)
            if isinstance(field.discriminator, Discriminator):
                metadata += (field.discriminator,)
            return Slot(field.annotation, metadata, field_kind(field))
    return Slot(Any)


def _unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """An annotation without its `Annotated` layers, and what they held."""
    metadata: tuple[Any, ...] = ()
    while get_origin(annotation) is Annotated:
        metadata += tuple(annotation.__metadata__)
        annotation = annotation.__origin__
    return annotation, metadata


def _members(annotation: Any) -> tuple[Any, ...]:
    plain, _ = _unwrap(annotation)
    return get_args(plain) if get_origin(plain) in (Union, types.UnionType) else (annotation,)


def _plain_members(annotation: Any) -> list[Any]:
    return [_unwrap(member)[0] for member in _members(annotation)]


def _discriminator(metadata: tuple[Any, ...]) -> Discriminator | None:
    return next((entry for entry in metadata if isinstance(entry, Discriminator)), None)


def _model(annotation: Any, value: object, discriminator: Discriminator | None) -> type[SpecModel] | None:
    _, metadata = _unwrap(annotation)
    discriminator = _discriminator(metadata) or discriminator
    for member in _members(annotation):
        member_plain, member_metadata = _unwrap(member)
        if discriminator is not None and callable(discriminator.discriminator):
            tags = [entry.tag for entry in member_metadata if isinstance(entry, Tag)]
            if tags and discriminator.discriminator(value) not in tags:
                continue
        if isinstance(member_plain, type) and issubclass(member_plain, SpecModel):
            return member_plain
    return None


def _item(annotation: Any, container: type, position: int) -> Any:
    """Type of the items of a list, or of the values of a dict."""
    for plain in _plain_members(annotation):
        if get_origin(plain) is container:
            return get_args(plain)[position]
    return None
