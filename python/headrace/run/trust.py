"""Whether a package may run code that it brings along, programs and Python functions, and reach files anywhere. Asked
before anything runs.

Its user says so on the command line, or once and for all in a file of their own, `~/.config/headrace/config.yaml`,
which nobody else may be able to change: neither the file, nor what it names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from headrace.errors import HeadraceError, Problem, TrustError, on_one_line
from headrace.model import BoundPackage
from headrace.model.problems import ProblemCollector
from headrace.model.settings import SpecModel, setting
from headrace.model.validation import validate
from headrace.model.yaml_reader import InvalidYamlError, read_document

_SHOWN_TASKS: Final = 10
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class UserConfig(SpecModel):
    """The user's own config file."""

    trusted: list[str] = setting(
        "Packages, and folders with packages, that may run programs and Python functions, and reach any file.",
        default_factory=list,
    )


@dataclass(frozen=True, slots=True)
class TrustedTask:
    """A task that needs trust, and where it stands."""

    id: str
    kind: str
    file: str
    line: int


def needs_trust(package: BoundPackage) -> list[TrustedTask]:
    """The tasks of the package, and of those that are a part of it, that run code or may leave their folder."""
    return list(_needing(package, ""))


def config_path(environ: Mapping[str, str]) -> Path | None:
    """Where the user's config file is, or would be; None if the user has no home."""
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # as its specification says
        home = environ.get("HOME", "")
        if not os.path.isabs(home):
            return None
        folder = os.path.join(home, ".config")
    return Path(folder, "headrace", "config.yaml")


def check_trust(package: BoundPackage, trusted: bool, environ: Mapping[str, str]) -> None:
    """Raises TrustError if the package has tasks that need trust, the user has not said that it has it (`trusted`), and
    the config of the user does not list it; also if the config, or what it lists, could have been changed by others.
    """
    tasks = needs_trust(package)
    if trusted or not tasks:
        return
    config = config_path(environ)
    listed = [] if config is None else _listed(config, environ)
    path = _real(package.path)
    if not any(_is_below(path, entry) for entry in listed):
        raise _not_trusted(package, tasks, config)
    for file in _files(package):
        _check_owned(file, "the package", "a trusted package that only its user can change")


def with_trust(package: BoundPackage, trusted: bool, environ: Mapping[str, str]) -> BoundPackage:
    """The package, with whether it is trusted: by this command, or by a config that only its user can change. Its SQL
    reaches files only then.
    """
    return replace(package, is_trusted=trusted or _is_listed(package, environ))


def is_own(path: Path) -> bool:
    """Whether a file is as safe from others as a config has to be."""
    try:
        _check_owned(Path(os.path.realpath(path, strict=True)), "it", "")
    except (OSError, TrustError):
        return False
    return True


def check_stored(request: Path) -> None:
    """Raises TrustError if somebody else could have written into the request of a run that it was trusted."""
    _check_owned(_real(request), "the request of the run", "a run folder that only its user can change")


def _is_listed(package: BoundPackage, environ: Mapping[str, str]) -> bool:
    config = config_path(environ)
    path = _real(package.path)
    try:
        listed = config is not None and any(_is_below(path, entry) for entry in _listed(config, environ))
    except TrustError:
        return False  # whoever needs trust is told by `check_trust`
    return listed and all(is_own(file) for file in _files(package))


def _needing(package: BoundPackage, prefix: str) -> Iterator[TrustedTask]:
    document = package.binder.surroundings.document
    for task in package.all_tasks():
        if task.needs_trust:
            line = document.key_mark(task.path).line
            yield TrustedTask(f"{prefix}{task.id}", task.kind, document.file, line)
        if task.id in package.children:
            yield from _needing(package.children[task.id].known, f"{prefix}{task.id}.")


def _files(package: BoundPackage) -> Iterator[Path]:
    yield _real(package.path)
    for child in package.children.values():
        yield from _files(child.known)


def _listed(config: Path, environ: Mapping[str, str]) -> list[Path]:
    """The entries of the config; none if there is no such file."""
    try:
        path = Path(os.path.realpath(config, strict=True))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(config, error) from error
    _check_owned(path, "the config", "a config that only its user can change")
    try:
        document = read_document(path, str(config))
    except OSError as error:
        raise _unreadable(config, error) from error
    except InvalidYamlError as error:
        raise _malformed(error.problems[0]) from error
    problems = ProblemCollector(str(config))
    read = validate(UserConfig, document.value, document, (), problems)
    for number, entry in enumerate([] if read is None else read.trusted):
        if not os.path.isabs(_with_home(entry, environ)):
            problems.add(
                document,
                ("trusted", number),
                "a trusted path is not absolute",
                found=on_one_line(entry) or "an empty text",
                expected="the path of a package or a folder, from `/` or `~/` on",
            )
    try:
        problems.raise_if_any()
    except HeadraceError as error:
        raise TrustError(
            f"the config cannot be used: {error.what}",
            at=error.at,
            found=error.found,
            expected=error.expected,
            hint=error.hint or "Correct the config.",
        ) from None
    return [] if read is None else [_real(Path(_with_home(entry, environ))) for entry in read.trusted]


def _with_home(entry: str, environ: Mapping[str, str]) -> str:
    """`~/` is replaced, as this file is the user's own."""
    return os.path.join(environ.get("HOME", "~"), entry[2:]) if entry.startswith("~/") else entry


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_below(path: Path, entry: Path) -> bool:
    return path == entry or entry in path.parents


def _check_owned(path: Path, name: str, expected: str) -> None:
    """Raises TrustError if somebody but the user and root could change a file, or put another one in its place."""
    for item, what in ((path, name), (path.parent, f"the folder of {name}")):
        try:
            status = item.stat()
        except OSError as error:
            raise _unreadable(item, error) from error
        found = None
        if status.st_uid not in (os.geteuid(), 0):
            found = f"it belongs to the user {status.st_uid}"
        elif status.st_mode & _WRITABLE_BY_OTHERS:
            found = f"its mode is {stat.S_IMODE(status.st_mode):o}: others than its owner may write"
        if found is not None:
            raise TrustError(
                f"{what} can be changed by others",
                at={"file": str(item)},
                found=found,
                expected=expected,
                hint=f"Run `chmod go-w {item}` as its owner, after a look at what is in it."
                if status.st_uid in (os.geteuid(), 0)
                else "Make it your own, after a look at what is in it.",
            )


def _malformed(problem: Problem) -> TrustError:
    return TrustError(
        f"the config cannot be used: {problem.what}",
        at={"file": problem.file, "line": problem.line, "column": problem.column},
        found=problem.found,
        expected=problem.expected,
        hint=problem.hint or "Correct the config.",
    )


def _unreadable(path: Path, error: OSError) -> TrustError:
    return TrustError(
        "cannot tell whether the package is trusted",
        at={"file": str(path)},
        found=error.strerror,
        hint="Get the right to read it, or run the package with --trust.",
    )


def _not_trusted(package: BoundPackage, tasks: Sequence[TrustedTask], config: Path | None) -> TrustError:
    shown = [f"{task.id} ({task.kind}), {task.file}:{task.line}" for task in tasks[:_SHOWN_TASKS]]
    if len(tasks) > _SHOWN_TASKS:
        shown.append(f"and {len(tasks) - _SHOWN_TASKS} more")
    line = f", or write `trusted: [{_real(package.path)}]` into {config}" if config is not None else ""
    return TrustError(
        f"the package {package.name} needs trust, and is not trusted",
        at={"file": str(package.path)},
        found="\n".join(shown),
        hint=f"After a look at what they do, run it with --trust{line}.",
    )
