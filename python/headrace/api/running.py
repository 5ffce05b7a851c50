"""The functions `run` and `resume`."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence

from headrace.api.execution import Execution, go_on
from headrace.api.package import Package, load
from headrace.api.request import Options
from headrace.api.results import RunResult
from headrace.run import Listener


def run(
    package: Package | str | os.PathLike[str],
    *,
    parameters: Mapping[str, object] | None = None,
    connections: Mapping[str, str] | None = None,
    streams: int | None = None,
    environment: str | None = None,
    only: Sequence[str] = (),
    from_: str | None = None,
    skip: Sequence[str] = (),
    max_concurrent: int | None = None,
    log_level: str | None = None,
    trust: bool = False,
    abandon: bool = False,
    runs_dir: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
    cancel: threading.Event | None = None,
    raise_on_error: bool = False,
) -> RunResult:
    """Runs a package, or the package file at a path, and says what came of it.

    `parameters` are Python values, `connections` are URLs that take the place of connections of the package, by name,
    `environment` is one of `environments.yaml` beside the package. `only`, `from_` and `skip` choose tasks by id.
    `trust` allows tasks of kind process and python. `abandon` starts anew although an unfinished run has appended rows.
    Runs are kept in `runs_dir`, by default `.headrace/runs` here.

    `listener` gets every event, a mapping, on the calling thread. Setting `cancel`, from another thread, ends the run
    and rolls back what is not committed; so does Ctrl-C, after which KeyboardInterrupt is raised.

    Raises PackageNotFoundError, PackageError, CommandLineError, TrustError and LedgerError if the run cannot begin. A
    run that fails is a result, unless `raise_on_error` asks for its error.
    """
    return (package if isinstance(package, Package) else load(package)).run(
        parameters=parameters,
        connections=connections,
        streams=streams,
        environment=environment,
        only=only,
        from_=from_,
        skip=skip,
        max_concurrent=max_concurrent,
        log_level=log_level,
        trust=trust,
        abandon=abandon,
        runs_dir=runs_dir,
        listener=listener,
        cancel=cancel,
        raise_on_error=raise_on_error,
    )


def resume(
    run: str = "last",
    *,
    package: Package | None = None,
    parameters: Mapping[str, object] | None = None,
    connections: Mapping[str, str] | None = None,
    trust: bool = False,
    runs_dir: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
    cancel: threading.Event | None = None,
    raise_on_error: bool = False,
) -> RunResult:
    """Goes on with an unfinished run: what it has done is not done again.

    `run` is the beginning of a run id, the path of a run folder, or `last`: the last unfinished run. Everything is as
    the run was started; `parameters` and `connections` are for those that held a secret, which is not stored. A package
    that was built and is in no file has to be given as `package`, as it was. The rest is as for `run`.
    """
    options = Options.of(parameters, connections)
    document = None if package is None else package._current_document()
    how = Execution(runs_dir, listener, cancel, raise_on_error)
    return go_on(run, document, options.sets, options.urls, how, trust=trust)
