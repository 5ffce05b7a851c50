"""Loads whose limit is known because it was made to happen. Each takes a few seconds; sizes and shapes are random."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.driver import Ended, Project, Running
from tests.integration.postgres import PostgresProject
from tests.provoked.means import (
    NarrowLink,
    busy_processes,
    missing_for_links,
    missing_for_quotas,
    open_transaction,
    quota,
    slow_files,
    slow_files_library,
    slow_pipe,
)
from tests.servers.cluster import HOST, Cluster, Database
from tests.servers.farm import Farm
from tests.servers.network import Faults, Network, missing_for_networks

TABLES = ("lineitem", "orders", "partsupp", "customer", "part")
_SECONDS = 4.0


@dataclass
class Place:
    """Where a case works: an empty folder, TPC-H files (`lineitem.tbl.1` and so on), servers, and its own dice."""

    folder: Path
    files: Path
    servers: Farm
    dice: random.Random

    def table(self) -> str:
        """Any table."""
        return self.dice.choice(TABLES)

    def files_of(self, table: str) -> list[Path]:
        """Its files."""
        return sorted(self.files.glob(f"{table}.tbl*"))

    def duckdb(self) -> Project:
        """An empty project."""
        project = self.folder / "project"
        project.mkdir()
        return Project(project)

    @contextmanager
    def postgres(self, cluster: Cluster | None = None) -> Iterator[PostgresProject]:
        """An empty project and an empty database."""
        project = self.folder / "project"
        project.mkdir()
        with (cluster or self.servers.shared()).database() as database:
            yield PostgresProject(project, database, lock_timeout_seconds=60)


@dataclass(frozen=True)
class Case:
    """One way to make a limit happen. `expected`: what a verdict may say; `run` gives the command that has ended."""

    name: str
    expected: frozenset[str]
    run: Callable[[Place], Ended]
    missing: Callable[[], str | None] = lambda: None


CASES: dict[str, Case] = {}


def case(
    *expected: str, missing: Callable[[], str | None] = lambda: None
) -> Callable[[Callable[[Place], Ended]], None]:
    """Declares a case by the function that makes it happen."""

    def declare(run: Callable[[Place], Ended]) -> None:
        CASES[run.__name__] = Case(run.__name__, frozenset(expected), run, missing)

    return declare


def limit_of(ended: Ended) -> Mapping[str, Any] | None:
    """The verdict about a run that must have been a success."""
    limit: Mapping[str, Any] | None = ended.succeeded()["limit"]
    return limit


def _into_nothing(project: Project, *more: str) -> list[str]:
    return project.arguments("--connection", "warehouse=null:", *more)


def _copies(place: Place, table: str, megabytes: float) -> int:
    size = sum(path.stat().st_size for path in place.files_of(table))
    return max(1, round(megabytes * 1e6 / size))


def _load(
    place: Place, project: Project, megabytes: float, *more: str, table: str | None = None, **options: Any
) -> Ended:
    """Loads about so much text of a table."""
    table = table or place.table()
    project.tpch(table)
    project.link(place.files_of(table), copies=max(2, _copies(place, table, megabytes)))
    return project.run(*more, **options)


class InFront(Project):
    """Its commands run with something in front of them."""

    prefix: Sequence[str] = ()

    @contextmanager
    def started(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Running]:
        with super().started([*self.prefix, *arguments], environment) as running:
            yield running


# --- the source -------------------------------------------------------------------------------------------------------


def _slow_source(place: Place, project: Project, *more: str) -> Ended:
    table = place.table()
    project.tpch(table)
    rate = place.dice.uniform(3e6, 15e6)
    with slow_pipe(project.inbox / f"{table}.tbl", place.files_of(table), rate, _SECONDS):
        return project.run(*more)


@case("source_read")
def a_slow_pipe_into_nothing(place: Place) -> Ended:
    return _slow_source(place, place.duckdb(), "--connection", "warehouse=null:")


@case("source_read")
def a_slow_pipe_into_duckdb(place: Place) -> Ended:
    return _slow_source(place, place.duckdb())


@case("source_read")
def a_slow_pipe_into_postgres(place: Place) -> Ended:
    with place.postgres() as project:
        return _slow_source(place, project)


# --- the streams ------------------------------------------------------------------------------------------------------


@case("parse")
def parsing(place: Place) -> Ended:
    streams = place.dice.choice(["1", "2", "4"])
    return _load(place, place.duckdb(), 5000, "--connection", "warehouse=null:", "--streams", streams)


@case("client_cpu")
def busy_programs(place: Place) -> Ended:
    with busy_processes(place.dice.randint(3, 8)):
        return _load(place, place.duckdb(), 1500, "--connection", "warehouse=null:")


@case("client_cpu", missing=missing_for_quotas)
def a_quota(place: Place) -> Ended:
    with quota(place.dice.uniform(0.3, 0.8)) as inside:
        (place.folder / "project").mkdir()
        project = InFront(place.folder / "project")
        project.prefix = inside
        return _load(place, project, 800, "--connection", "warehouse=null:")


@case("client_cpu")
def busy_programs_beside_duckdb(place: Place) -> Ended:
    with busy_processes(place.dice.randint(4, 8)):
        return _load(place, place.duckdb(), 200)


# --- destinations -----------------------------------------------------------------------------------------------------


@case("destination_cpu", "shared_cpu")
def duckdb(place: Place) -> Ended:
    return _load(place, place.duckdb(), place.dice.uniform(700, 1200))


@contextmanager
def _roomy_server(place: Place, prefix: Sequence[str] = ()) -> Iterator[PostgresProject]:
    """A server that writes little while it loads: what it needs are CPUs."""
    settings = {"shared_buffers": "1GB", "max_wal_size": "8GB", "wal_level": "minimal", "max_wal_senders": "0"}
    cluster = place.servers.cluster(settings=settings, prefix=list(prefix))
    try:
        with place.postgres(cluster) as project:
            yield project
    finally:
        place.servers.remove(cluster)


@case("destination_cpu", "shared_cpu")
def postgres_on_the_same_cores(place: Place) -> Ended:
    with _roomy_server(place) as project:
        return _load(place, project, place.dice.uniform(400, 700), "--streams", place.dice.choice(["2", "4", "8"]))


@case("destination_cpu")
def one_writer(place: Place) -> Ended:
    with _roomy_server(place) as project:
        return _load(place, project, 400, "--streams", "1")


@case("client_cpu")
def a_starved_server(place: Place) -> Ended:
    with _roomy_server(place, ["taskset", "-c", "1"]) as project, busy_processes(place.dice.randint(2, 5), cpu=1):
        return _load(place, project, 250)


@case("too_many_streams")
def too_many_streams(place: Place) -> Ended:
    cpus = len(os.sched_getaffinity(0))
    with place.postgres() as project:
        return _load(place, project, 500, "--streams", str(place.dice.randint(20, 32) * cpus), table="lineitem")


@case("locks")
def a_lock(place: Place) -> Ended:
    with place.postgres() as project:
        project.sales()
        project.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, amount numeric, day date, customer text, note text)"
        )
        rows = place.dice.randint(50_000, 200_000)
        project.file("orders.tbl.1", "".join(f"{n}|1.25|2024-02-29|customer|note\n" for n in range(1, rows)))
        held = f"INSERT INTO orders (id) VALUES ({rows // 2})"
        with open_transaction(project.target, held, _SECONDS + place.dice.uniform(0, 3)):
            return project.run(target="append")


def _slow_disk(place: Place, path: str, settings: Mapping[str, str], but_not: str | None, rate: float) -> Ended:
    with ExitStack() as stack:
        library = place.servers.account.give(slow_files_library(place.servers.folder), 0o755)
        slow = slow_files(library, path, rate, but_not)
        prefix = ["env", *(f"{name}={value}" for name, value in slow.items())]
        cluster = place.servers.cluster(settings=settings, prefix=prefix)
        stack.callback(place.servers.remove, cluster)
        project = stack.enter_context(place.postgres(cluster))
        return _load(place, project, 80, "--streams", place.dice.choice(["1", "2", "4"]))


@case("log")
def a_slow_log(place: Place) -> Ended:
    settings = {"wal_level": "replica", "fsync": "on", "max_wal_size": "8GB", "wal_buffers": "1MB"}
    return _slow_disk(place, "/pg_wal/", settings, None, place.dice.uniform(15e6, 30e6))


@case("destination_io")
def slow_tables(place: Place) -> Ended:
    settings = {"wal_level": "minimal", "max_wal_senders": "0", "shared_buffers": "16MB", "max_wal_size": "8GB"}
    return _slow_disk(place, "/base/", settings, "/pg_wal/", place.dice.uniform(10e6, 20e6))


@case("checkpoint")
def checkpoints(place: Place) -> Ended:
    settings = {
        "wal_level": "replica",
        "fsync": "on",
        "full_page_writes": "on",
        "max_wal_size": "32MB",
        "min_wal_size": "32MB",
        "shared_buffers": "64MB",
    }
    return _slow_disk(place, "/base/", settings, "/pg_wal/", place.dice.uniform(10e6, 20e6))


@case("destination_io")
def slow_duckdb_file(place: Place) -> Ended:
    library = slow_files_library(place.folder)
    environment = slow_files(library, "warehouse.duckdb", place.dice.uniform(8e6, 15e6))
    return _load(place, place.duckdb(), 200, environment=environment)


# --- the network ------------------------------------------------------------------------------------------------------


def _far(place: Place, stack: ExitStack, server: str, client: str, inside: Sequence[str]) -> PostgresProject:
    cluster = place.servers.cluster(settings={"listen_addresses": f"'{HOST}, {server}'"}, started=False)
    with (cluster.data / "pg_hba.conf").open("a") as logins:
        logins.write(f"host all all {client}/32 scram-sha-256\n")
    cluster.start()
    stack.callback(place.servers.remove, cluster)
    folder = place.folder / "project"
    folder.mkdir()
    database = stack.enter_context(cluster.database())
    return FarProject(folder, database, server, inside)


class FarProject(InFront, PostgresProject):
    """Its commands run at the other end of a wire."""

    def __init__(self, folder: Path, database: Database, server: str, inside: Sequence[str]) -> None:
        super().__init__(folder, database)
        self.prefix = inside
        self.url = database.url.replace(HOST, server)


@case("network", missing=missing_for_links)
def a_narrow_link(place: Place) -> Ended:
    megabits = place.dice.uniform(60, 250)
    with ExitStack() as stack:
        link = stack.enter_context(NarrowLink(megabits * 1e6))
        project = _far(place, stack, link.server_address, link.client_address, link.inside)
        streams = place.dice.choice(["1", "2", "4"])
        return _load(place, project, megabits / 8 * _SECONDS, "--streams", streams)


@case("receive_window", missing=missing_for_networks)
def a_small_window(place: Place) -> Ended:
    with ExitStack() as stack:
        network = stack.enter_context(Network())
        network.faults = Faults(delay_seconds=place.dice.uniform(0.005, 0.02))
        network.limit_window(place.dice.choice([16_384, 32_768, 65_536]))
        project = _far(place, stack, network.server_address, network.client_address, network.inside)
        return _load(place, project, 12, "--streams", place.dice.choice(["1", "2"]))


# --- the long tail ----------------------------------------------------------------------------------------------------


@case("source_read")
def one_slow_file_of_several(place: Place) -> Ended:
    project, table = place.duckdb(), place.table()
    project.tpch(table)
    project.link(place.files_of(table)[:3])
    rate = place.dice.uniform(2e6, 5e6)
    with slow_pipe(project.inbox / f"{table}.tbl", place.files_of(table), rate, 2 * _SECONDS):
        ended = project.run()
    slow = (limit_of(ended) or {}).get("slow") or [{}]
    assert (str(slow[0].get("file")).endswith(f"{table}.tbl"), slow[0].get("limit")) == (True, "source_read"), slow
    return ended
