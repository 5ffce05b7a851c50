"""Which values from outside are secrets: all of `${env:X}` and `${file:X}`, unless their declaration says that they may
be shown, or everybody knows the variable.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import BoundPackage, load_package
from headrace.model.redaction import PUBLIC_VARIABLES
from tests.unit.model.packages import COMPLETE, change

CANARY = "c4n4ry-S3cret-pw"
ENVIRON = {"X": CANARY, **dict.fromkeys(sorted(PUBLIC_VARIABLES), f"/public/{CANARY}")}
PARAMETER = "  day: {type: date, default: 2024-01-31}\n"
VARIABLES = "tasks:\n"


def declared(kind: str, text: str) -> str:
    """The package with one more parameter or variable."""
    if kind == "parameter":
        return change(PARAMETER, f"{PARAMETER}  value: {{type: string, default: {text}}}\n")
    return change(VARIABLES, f"variables:\n  value: {{type: string, value: {text}}}\n{VARIABLES}")


def load(folder: Path, text: str, environ: dict[str, str] | None = None, **options: object) -> BoundPackage:
    (folder / "package.yaml").write_text(text)
    (folder / "given").write_text(f"{CANARY}\n")
    return load_package(folder / "package.yaml", environ=ENVIRON if environ is None else environ, **options)  # type: ignore[arg-type]


def hides(package: BoundPackage) -> bool:
    """Also what is only found when the package's variables get their first values."""
    for variable in package.variables:
        package.binder.initial(variable, package.scope)
    return any(CANARY in secret for secret in package.secrets)


@pytest.mark.parametrize("reference", ["${env:X}", "${file:given}", "x-${env:X}", "${env:X}${file:given}"])
@pytest.mark.parametrize(("setting", "is_secret"), [("", True), (", secret: true", True), (", secret: false", False)])
@pytest.mark.parametrize("kind", ["parameter", "variable"])
def test_declarations(tmp_path: Path, kind: str, setting: str, is_secret: bool, reference: str) -> None:
    package = load(tmp_path, declared(kind, f'"{reference}"{setting}'))
    assert hides(package) is is_secret


@pytest.mark.parametrize(("setting", "is_secret"), [("", True), (", secret: false", False)])
def test_items_of_a_list(tmp_path: Path, setting: str, is_secret: bool) -> None:
    text = change(PARAMETER, f'{PARAMETER}  value: {{type: list, default: [a, "${{env:X}}"]{setting}}}\n')
    assert hides(load(tmp_path, text)) is is_secret


def test_one_place_that_hides_it_is_enough(tmp_path: Path) -> None:
    """A variable that may be shown does not show the password that is the same."""
    text = declared("variable", '"${env:X}", secret: false')
    assert hides(load(tmp_path, text.replace("path: data", 'path: "${env:X}"')))


@pytest.mark.parametrize("name", sorted(PUBLIC_VARIABLES))
def test_variables_that_everybody_knows(tmp_path: Path, name: str) -> None:
    text = change("path: data", f'path: "${{env:{name}}}/data"')
    assert not hides(load(tmp_path, text))
    assert hides(load(tmp_path, text.replace("/data", "/${env:X}")))


@pytest.mark.parametrize("name", ["X", *sorted(PUBLIC_VARIABLES)])
def test_options(tmp_path: Path, name: str) -> None:
    """`--connection` follows the same rule."""
    package = load(tmp_path, COMPLETE, connections=[f"warehouse=duckdb:${{env:{name}}}/w.duckdb"])
    assert hides(package) is (name == "X")


@pytest.mark.parametrize(("setting", "is_secret"), [("", True), (", secret: false", False), (", secret: true", True)])
def test_environments(tmp_path: Path, setting: str, is_secret: bool) -> None:
    written = 'headrace: 1\nenvironments: {test: {parameters: {value: "${env:X}"}}}\n'
    (tmp_path / "environments.yaml").write_text(written)
    text = change(PARAMETER, f"{PARAMETER}  value: {{type: string{setting}}}\n")
    assert hides(load(tmp_path, text, environment="test")) is is_secret


@pytest.mark.parametrize(("setting", "is_secret"), [("", False), (", secret: false", False), (", secret: true", True)])
def test_values_of_the_command_line(tmp_path: Path, setting: str, is_secret: bool) -> None:
    text = change(PARAMETER, f"{PARAMETER}  value: {{type: string{setting}}}\n")
    assert hides(load(tmp_path, text, sets=[f"value={CANARY}"])) is is_secret
