"""The models of `environments.yaml`: what differs between the places where the packages beside it run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Tag

from headrace.model.names import Name, VariableName
from headrace.model.settings import SettingKind, SpecModel, setting
from headrace.model.spec import (
    DuckdbConnectionSpec,
    FilesConnectionSpec,
    NullConnectionSpec,
    PostgresConnectionSpec,
    UnknownConnectionSpec,
    check_version,
    connection_tag,
)


def _tag(value: object) -> str:
    return connection_tag(value) if isinstance(value, (Mapping, SpecModel)) else "<url>"


# As in packages, or a URL as behind `--connection`.
EnvironmentConnection = Annotated[
    Annotated[str, Tag("<url>")]
    | Annotated[FilesConnectionSpec, Tag("<files>")]
    | Annotated[DuckdbConnectionSpec, Tag("<duckdb>")]
    | Annotated[PostgresConnectionSpec, Tag("<postgres>")]
    | Annotated[NullConnectionSpec, Tag("<null>")]
    | Annotated[UnknownConnectionSpec, Tag("<unknown>")],
    Discriminator(_tag),
]


class EnvironmentSpec(SpecModel):
    """One place where packages run. The command line is stronger than it, it is stronger than the package."""

    description: str | None = setting("What the environment is.", default=None, kind=SettingKind.PROSE)
    parameters: dict[VariableName, Any] = setting(
        "Values of parameters; `${env:X}`, `${file:X}` and `${system.x}` may be used.",
        default_factory=dict,
        kind=SettingKind.VALUE,
    )
    connections: dict[Name, EnvironmentConnection] = setting(
        "Connections in place of those of the package: as there, or as a URL.",
        default_factory=dict,
        kind=SettingKind.VALUE,
    )


class EnvironmentsSpec(SpecModel):
    """A file with environments."""

    headrace: Annotated[Literal[1], BeforeValidator(check_version)] = setting("Version of the format.")
    environments: dict[Name, EnvironmentSpec] = setting("Environments by name, as behind `--env`.")
