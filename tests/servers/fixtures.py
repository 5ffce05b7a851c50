"""Fixtures that start servers. A version that is missing fails its tests, it is never left out silently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.servers import installations
from tests.servers.certificates import Certificates
from tests.servers.cluster import LOADER, Cluster, Database
from tests.servers.farm import Farm


@pytest.fixture(scope="session")
def servers() -> Iterator[Farm]:
    """Starts clusters for tests that need one of their own."""
    farm = Farm()
    try:
        yield farm
    finally:
        farm.close()


@pytest.fixture(scope="session")
def postgres(servers: Farm) -> Cluster:
    """A server of the default version, shared by all tests."""
    return servers.shared()


@pytest.fixture(scope="session", params=installations.versions(), ids="PostgreSQL {}".format)
def postgres_versions(servers: Farm, request: pytest.FixtureRequest) -> Cluster:
    """A server of every version, one after the other."""
    return servers.shared(request.param)


@pytest.fixture
def database(postgres: Cluster) -> Iterator[Database]:
    """An empty database on the server of the default version."""
    with postgres.database() as database:
        yield database


@dataclass(frozen=True)
class TlsServer:
    """A server that insists on TLS, and the certificates to reach it."""

    cluster: Cluster
    certificates: Certificates


@pytest.fixture(scope="session")
def postgres_tls(servers: Farm, tmp_path_factory: pytest.TempPathFactory) -> TlsServer:
    """A server of the system's packages: those of the wheel cannot do TLS."""
    found = installations.with_tls()
    if found is None:
        pytest.skip("NOT CHECKED: TLS needs a PostgreSQL server of the system's packages (.ci/install-postgres)")
    certificates = Certificates.make(tmp_path_factory.mktemp("certificates"), client=LOADER)
    return TlsServer(servers.cluster_with_tls(found, certificates), certificates)
