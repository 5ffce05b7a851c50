"""Bind parameters: declarations and defaults of the package, values of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import CommandLineError
from headrace.model.annotations import Slot
from headrace.model.parameter_values import (
    ParameterValueError,
    allowed_values,
    value_from_package,
    value_from_text,
    value_from_yaml,
)
from headrace.model.problems import ProblemCollector
from headrace.model.references import has_reference
from headrace.model.resolver import Resolver, secret_texts_of
from headrace.model.scope import Scope, declared_sql_type, is_unknown
from headrace.model.settings import SettingKind
from headrace.model.spec import ParameterSpec
from headrace.model.suggest import did_you_mean, one_of, show_value
from headrace.model.validation import UNRESOLVED
from headrace.model.yaml_reader import Document, DocumentPath


@dataclass(frozen=True, slots=True)
class BoundParameters:
    """Typed values by name, and whether the command line gave them."""

    values: dict[str, object]
    given: dict[str, bool]
    sql_types: dict[str, str]

    def scope(self, system: Mapping[str, object]) -> Scope:
        """What references and expressions of the package see."""
        return Scope(self.values, self.sql_types, self.given, system)


def check_declarations(
    specs: Mapping[str, ParameterSpec], document: Document, folder: Path, problems: ProblemCollector
) -> None:
    """Note what contradicts itself in the declarations; defaults with references are checked when bound."""
    lower_names: dict[str, str] = {}
    for name, spec in specs.items():
        path: DocumentPath = ("parameters", name)
        first = lower_names.setdefault(name.lower(), name)
        if first != name:
            problems.add(
                document,
                path,
                f"the parameters `{first}` and `{name}` differ only in case",
                found=f"`{name}`",
                hint="Rename one of the two; SQL does not tell them apart.",
                at_key=True,
            )
        if spec.required and spec.default is not None:
            problems.add(
                document,
                (*path, "default"),
                f"the parameter `{name}` is required and has a default",
                found=show_value(spec.default),
                expected="`required: true` or `default`",
                hint="Remove one of the two.",
                at_key=True,
            )
        if "items" in spec.model_fields_set and spec.type != "list":
            problems.add(
                document,
                (*path, "items"),
                f"the parameter `{name}` has `items` but is not a list",
                found=f"type: {spec.type}",
                expected="items only with `type: list`",
                hint="Remove `items`, or write `type: list`.",
                at_key=True,
            )
        _check_values(name, spec, document, folder, problems)


def _check_values(name: str, spec: ParameterSpec, document: Document, folder: Path, problems: ProblemCollector) -> None:
    key = "one_of"
    try:
        if spec.one_of is not None and not allowed_values(spec, folder):
            raise ParameterValueError("an empty list", "at least one value")
        key = "default"
        if spec.default is not None and not _holds_reference(spec.default):
            value_from_yaml(spec, spec.default, folder)
    except ParameterValueError as error:
        problems.add(
            document,
            ("parameters", name, key),
            f"`{key}` does not fit the parameter `{name}` of type {spec.type}",
            found=error.found,
            expected=error.expected,
            hint=error.hint,
        )


def _holds_reference(value: object) -> bool:
    if isinstance(value, list):
        return any(_holds_reference(item) for item in value)
    return isinstance(value, str) and has_reference(value)


def parse_sets(sets: Sequence[str], specs: Mapping[str, ParameterSpec]) -> dict[str, str]:
    """Texts by parameter from `name=value` options. Raises CommandLineError."""
    texts: dict[str, str] = {}
    for option in sets:
        name, equals, text = option.partition("=")
        if not equals or not name:
            raise CommandLineError(
                "--set needs a name and a value",
                found=show_value(option),
                expected="--set NAME=VALUE",
                hint="Write the value after `=`, such as --set day=2024-01-31.",
            )
        if name not in specs:
            raise CommandLineError(
                f"the package has no parameter `{name}`",
                at={"option": f"--set {name}"},
                expected=one_of(specs),
                hint=did_you_mean(name, specs) or "See `parameters` in the package.",
            )
        if name in texts:
            raise CommandLineError(
                f"--set {name} is given twice",
                at={"option": f"--set {name}"},
                hint="Give each parameter once; the values of a list are separated by commas.",
            )
        texts[name] = text
    return texts


@dataclass(frozen=True, slots=True)
class GivenValues:
    """Values from outside: `texts` of the command line, `typed` of a package around (UNRESOLVED if not known), and
    those of an environment, which are parameters' values already.
    """

    texts: Mapping[str, str]
    typed: Mapping[str, object]
    environment: Mapping[str, object]

    def __contains__(self, name: object) -> bool:
        return name in self.texts or name in self.typed or name in self.environment


def check_values(values: Mapping[str, object], specs: Mapping[str, ParameterSpec]) -> Mapping[str, object]:
    """The values, if there is a parameter for each. Raises CommandLineError."""
    for name in values:
        if name not in specs:
            raise CommandLineError(
                f"the package has no parameter `{name}`",
                found=f"`{name}`",
                expected=one_of(specs),
                hint=did_you_mean(name, specs) or "See `parameters` in the package.",
            )
    return values


def bind_parameters(
    specs: Mapping[str, ParameterSpec],
    given: GivenValues,
    resolver: Resolver,
    folders: tuple[Path, Path],
    system: Mapping[str, object],
    document: Document,
    problems: ProblemCollector,
) -> BoundParameters:
    """Typed values of all parameters.

    `folders` are those of the command line and of the package file, where relative paths start. Raises
    CommandLineError; a wrong default becomes a problem and its value UNRESOLVED.
    """
    command_folder, package_folder = folders
    missing = [name for name, spec in specs.items() if spec.required and name not in given]
    if missing:
        raise _missing_error(missing, specs)
    values: dict[str, object] = {}
    for name, spec in specs.items():
        if name in given.texts:
            values[name] = _from_command_line(name, spec, given.texts[name], command_folder)
            continue
        if name in given.typed:
            values[name] = _from_package(name, spec, given.typed[name], package_folder)
            continue
        if name in given.environment:
            values[name] = given.environment[name]
            continue
        path: DocumentPath = ("parameters", name, "default")
        default = resolver.resolve(spec.default, Slot(object, kind=SettingKind.VALUE), path, Scope(system=system))
        values[name] = _from_default(name, spec, default, package_folder, document, problems)
    for name, spec in specs.items():
        if spec.secret:
            problems.secrets.update(secret_texts_of(values[name]))
    return BoundParameters(
        values,
        {name: name in given for name in specs},
        {name: declared_sql_type(spec.type, spec.items, values[name]) for name, spec in specs.items()},
    )


def _from_command_line(name: str, spec: ParameterSpec, text: str, folder: Path) -> object:
    try:
        return value_from_text(spec, text, folder)
    except ParameterValueError as error:
        kind = f"{spec.type} of {spec.items}" if spec.type == "list" else spec.type
        raise CommandLineError(
            f"the value does not fit the parameter `{name}` ({kind})",
            at={"option": f"--set {name}"},
            found=error.found,
            expected=error.expected,
            hint=error.hint,
        ) from error


def _from_package(name: str, spec: ParameterSpec, value: object, folder: Path) -> object:
    """A value that the package around gives."""
    if is_unknown(value):
        return UNRESOLVED
    if value is None and not spec.required:
        return None
    try:
        return value_from_package(spec, value, folder)
    except ParameterValueError as error:
        raise CommandLineError(
            f"the value does not fit the parameter `{name}` ({spec.type})",
            found=error.found,
            expected=error.expected,
            hint=error.hint,
        ) from error


def _from_default(
    name: str, spec: ParameterSpec, default: object, folder: Path, document: Document, problems: ProblemCollector
) -> object:
    if default is None or default is UNRESOLVED or (isinstance(default, list) and UNRESOLVED in default):
        return None if default is None else UNRESOLVED
    try:
        # A default made of references is text, as on the command line.
        if isinstance(default, str) and _holds_reference(spec.default):
            return value_from_text(spec, default, folder)
        return value_from_yaml(spec, default, folder)
    except ParameterValueError as error:
        problems.add(
            document,
            ("parameters", name, "default"),
            f"`default` does not fit the parameter `{name}` of type {spec.type}",
            found=error.found,
            expected=error.expected,
            hint=error.hint,
        )
        return UNRESOLVED


def _missing_error(missing: Sequence[str], specs: Mapping[str, ParameterSpec]) -> CommandLineError:
    names = ", ".join(f"`{name}`" for name in missing)
    options = " ".join(f"--set {name}={specs[name].type.upper()}" for name in missing)
    meanings = [f"{name}: {specs[name].description}" for name in missing if specs[name].description]
    plural = "s" if len(missing) > 1 else ""
    return CommandLineError(
        f"the package needs the parameter{plural} {names}", expected="; ".join(meanings) or None, hint=f"Add {options}"
    )
