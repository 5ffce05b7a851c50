"""The values of variables while a package runs, by the containers that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.errors import ExpressionFailedError, InternalError
from headrace.model import Scope, Variable
from headrace.model.resolver import secret_texts_of
from headrace.model.scope import variable_sql_type
from headrace.model.suggest import show_value
from headrace.model.variable_values import UnfitValueError, fitted


class Frame:
    """The variables of one container, and through `outer` those around it. Used by the control thread alone.

    `writes`: what was written of variables further out by what is inside, for the journal.
    """

    def __init__(self, scope: Scope, outer: Frame | None = None, secrets: set[str] | None = None) -> None:
        self._secrets: set[str] = secrets if secrets is not None else outer._secrets if outer else set()
        self._base = scope
        self._outer = outer
        self._variables: dict[str, Variable] = {}
        self._values: dict[str, object] = {}
        self.writes: dict[str, object] = {}
        # Facts about the run that are true inside.
        self.system: dict[str, object] = {}

    @classmethod
    def of_package(cls, scope: Scope, secrets: set[str]) -> Frame:
        """The outermost frame of a package; `scope` has its parameters and facts about the run. Values of secret
        variables are added to `secrets`.
        """
        return cls(scope, secrets=secrets)

    def inside(
        self, constants: Mapping[str, object] | None = None, types: Mapping[str, str | None] | None = None
    ) -> Frame:
        """A frame for what is inside. `constants`: names that nobody writes, such as the item of a turn."""
        frame = Frame(Scope(), self)
        if constants:
            frame._base = frame._base.with_names(constants, types or {})
        return frame

    def declare(self, variable: Variable, value: object) -> None:
        """Adds a variable with its first value."""
        self._variables[variable.name] = variable
        self._values[variable.name] = value
        self._keep_secret(variable, value)

    def variable(self, name: str) -> Variable:
        """The variable of that name, here or further out."""
        return self._owner(name)._variables[name]

    def assign(self, name: str, value: object) -> object:
        """Writes a variable; the value as it holds it. Raises ExpressionFailedError if it does not fit."""
        owner = self._owner(name)
        variable = owner._variables[name]
        try:
            held = fitted(variable.type, variable.items, value)
        except UnfitValueError as error:
            raise ExpressionFailedError(
                f"a value does not fit the variable `{name}` of type {variable.type}",
                found=show_value(value),
                expected=error.expected,
                hint="Convert the value, or change the type of the variable.",
            ) from error
        owner._values[name] = held
        self._keep_secret(variable, held)
        frame: Frame | None = self
        while frame is not None and frame is not owner:
            frame.writes[name] = held
            frame = frame._outer
        return held

    def _keep_secret(self, variable: Variable, value: object) -> None:
        if variable.is_secret:
            self._secrets.update(secret_texts_of(value))

    def value(self, name: str) -> object:
        """The value of a variable."""
        return self._owner(name)._values[name]

    def values(self) -> dict[str, object]:
        """Values of all visible variables and of the names of turns, not of parameters."""
        known = {} if self._outer is None else self._outer.values()
        return {**known, **({} if self._outer is None else self._base.values), **self._values}

    def scope(self, **system: object) -> Scope:
        """All names with their values. `system`: further facts about the run."""
        chain: list[Frame] = []
        frame: Frame | None = self
        while frame is not None:
            chain.append(frame)
            frame = frame._outer
        base = chain[-1]._base
        values, types, known = dict(base.values), dict(base.sql_types), dict(base.system)
        for inner in reversed(chain):
            values.update(inner._base.values)
            types.update(inner._base.sql_types)
            values.update(inner._values)
            known.update(inner.system)
            for variable in inner._variables.values():
                sql_type = variable_sql_type(variable.type, variable.items)
                if sql_type is not None:
                    types[variable.name] = sql_type
        return replace(base, values=values, sql_types=types, system={**known, **system})

    def _owner(self, name: str) -> Frame:
        frame: Frame | None = self
        while frame is not None:
            if name in frame._variables:
                return frame
            frame = frame._outer
        raise InternalError(f"there is no variable {name}")
