"""Environments: values of parameters, and connections, from a file beside the package."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.errors import CommandLineError
from headrace.model.annotations import Slot
from headrace.model.connections import AnyConnectionSpec, Connection, connection_from_spec, connection_from_url
from headrace.model.conninfo import ConninfoError, Surroundings
from headrace.model.parameter_values import ParameterValueError, value_from_text, value_from_yaml
from headrace.model.problems import ProblemCollector
from headrace.model.references import has_reference
from headrace.model.resolver import Resolver, StaticLeaves
from headrace.model.scope import Scope, is_unknown
from headrace.model.settings import SettingKind
from headrace.model.spec import ParameterSpec
from headrace.model.spec_environments import EnvironmentsSpec
from headrace.model.suggest import did_you_mean, one_of, show_name
from headrace.model.validation import place_name, validate, validate_slot
from headrace.model.yaml_reader import Document, DocumentPath, value_at

ENVIRONMENTS_FILE: Final = "environments.yaml"


@dataclass(frozen=True)
class Environment:
    """One environment as it is written: at `path` of the document."""

    document: Document
    path: DocumentPath
    raw: Mapping[str, Any]

    @property
    def content_hash(self) -> str:
        """SHA-256 (hex) of what is written."""
        text = json.dumps([str(self.path[-1]), self.raw], sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()

    def part(self, key: str) -> Mapping[str, Any]:
        """`parameters` or `connections`."""
        return self.raw.get(key) or {}


@dataclass(frozen=True)
class EnvironmentConnections:
    """Connections in place of those of the package. `urls`: names of those that keep what the package says and no URL
    can: timeouts, ledger.
    """

    connections: Mapping[str, Connection] = field(default_factory=dict)
    urls: frozenset[str] = frozenset()


def choose(document: Document, name: str, problems: ProblemCollector, system: Mapping[str, object]) -> Environment:
    """The environment of that name, its references left in. Raises PackageError, and CommandLineError if there is none
    of that name.
    """
    resolver = Resolver(document, problems, StaticLeaves(document, problems))
    masked = resolver.resolve(document.value, Slot(EnvironmentsSpec), (), Scope(system=system))
    validate(EnvironmentsSpec, masked, document, (), problems)
    problems.raise_if_any()
    assert isinstance(document.value, Mapping)
    known = document.value["environments"]
    if name not in known:
        raise CommandLineError(
            f"there is no environment `{show_name(name)}`",
            at={"file": document.file},
            expected=one_of(known),
            hint=did_you_mean(name, known) or "Define it there, or correct --env.",
        )
    return Environment(document, ("environments", name), known[name] or {})


def public_in_environment(package: Document, path: DocumentPath) -> bool:
    """Whether the value at `path` of a file of environments is that of a parameter of the package that says `secret:
    false`.
    """
    return path[2:3] == ("parameters",) and value_at(package, ("parameters", path[3], "secret")) is False


class EnvironmentBinder:
    """Resolves one environment. What is wrong with it is noted."""

    def __init__(self, environment: Environment, resolver: Resolver, problems: ProblemCollector, scope: Scope) -> None:
        self._environment = environment
        self._document = environment.document
        self._resolver = resolver
        self._problems = problems
        self._scope = scope

    def parameters(self, specs: Mapping[str, ParameterSpec]) -> dict[str, object]:
        """Typed values by name; relative paths start at the folder of the file."""
        values: dict[str, object] = {}
        for name, raw in self._environment.part("parameters").items():
            path = (*self._environment.path, "parameters", name)
            if name not in specs:
                self._unknown("parameter", name, path, specs)
                continue
            spec = specs[name]
            value = self._resolver.resolve(raw, Slot(object, kind=SettingKind.VALUE), path, self._scope)
            if is_unknown(value):
                continue
            folder = self._document.path.absolute().parent
            is_text = isinstance(raw, str) and has_reference(raw)
            try:
                if value is None and not spec.required:
                    values[name] = None
                elif isinstance(value, str) and is_text:
                    values[name] = value_from_text(spec, value, folder)
                else:
                    values[name] = value_from_yaml(spec, value, folder)
            except ParameterValueError as error:
                self._problems.add(
                    self._document,
                    path,
                    f"the value does not fit the parameter `{name}` of type {spec.type}",
                    found=error.found,
                    expected=error.expected,
                    hint=error.hint,
                )
        return values

    def connections(self, declared: Mapping[str, Any], surroundings: Surroundings) -> EnvironmentConnections:
        """Connections by name."""
        found: dict[str, Connection] = {}
        urls: set[str] = set()
        slot = Slot(EnvironmentsSpec)
        for key in self._environment.path:
            slot = slot.child(key, {})
        own = self._environment.part("connections")
        slot = slot.child("connections", self._environment.raw)
        for name, raw in own.items():
            path = (*self._environment.path, "connections", name)
            if name not in declared:
                self._unknown("connection", name, path, declared)
                continue
            value = self._resolver.resolve(raw, slot.child(name, own), path, self._scope)
            if is_unknown(value):
                continue
            if isinstance(value, str):
                urls.add(name)
            spec = (
                value
                if isinstance(value, str)
                else validate_slot(slot.child(name, own), value, self._document, path, self._problems)
            )
            connection = None if spec is None else self._connection(name, spec, path, surroundings, raw)
            if connection is not None:
                found[name] = connection
        return EnvironmentConnections(found, frozenset(urls))

    def _connection(
        self, name: str, spec: AnyConnectionSpec | str, path: DocumentPath, surroundings: Surroundings, raw: object
    ) -> Connection | None:
        secrets = frozenset(self._problems.secrets)
        try:
            if isinstance(spec, str):
                return connection_from_url(name, spec, surroundings)
            return connection_from_spec(name, spec, surroundings, secrets, raw)
        except (ConninfoError, CommandLineError) as error:
            self._problems.add(
                self._document,
                path,
                f"{place_name(path)}: {error.what}",
                found=error.found,
                expected=error.expected,
                hint=error.hint,
            )
            return None

    def _unknown(self, kind: str, name: str, path: DocumentPath, known: Mapping[str, Any]) -> None:
        self._problems.add(
            self._document,
            path,
            f"the package has no {kind} `{show_name(name)}`",
            found=f"`{show_name(name)}`",
            expected=one_of(known),
            hint=did_you_mean(name, known) or f"See `{kind}s` in the package.",
            at_key=True,
        )
