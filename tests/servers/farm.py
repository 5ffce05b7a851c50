"""All servers of one test session: `initdb` runs once per version, every cluster is a copy of its result."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers.account import Account
from tests.servers.certificates import Certificates
from tests.servers.cluster import LOADER, LOGINS, LOGINS_WITH_TLS, PASSWORD, SETTINGS, SUPERUSER, Cluster
from tests.servers.installations import DEFAULT, Installation, installation, usable

# Short, because of Unix sockets, and open to every account; the folder that TMPDIR names may be neither.
_PLACE = Path("/tmp")
_PREFIX = "headrace-servers-"
_INITDB = ("--encoding=UTF8", "--locale=C", "--auth=trust", f"--username={SUPERUSER}", "--no-sync", "--no-instructions")


class Farm:
    """Makes clusters and ends them."""

    def __init__(self) -> None:
        _sweep()
        self.account = Account.for_servers()
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_PLACE))
        self.folder.chmod(0o711)
        # Locked before another session can see it, which would take the folder for one that nobody uses.
        self._lock = (self.folder / "lock.new").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        (self.folder / "lock.new").rename(self.folder / "lock")
        self._installations: dict[Path, Installation] = {}
        self._templates: dict[Path, Path] = {}
        self._shared: dict[int, Cluster] = {}
        self._clusters: list[Cluster] = []
        self._numbers = 0

    def shared(self, version: int = DEFAULT) -> Cluster:
        """The cluster of that version that tests share, each with a database of its own."""
        if version not in self._shared:
            self._shared[version] = self.cluster(installation(version))
        return self._shared[version]

    def cluster(
        self,
        found: Installation | None = None,
        settings: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        *,
        started: bool = True,
    ) -> Cluster:
        """A cluster of its own, with further settings of postgresql.conf."""
        cluster = self._new(self._usable(found or installation()), prefix)
        _append(cluster.data / "postgresql.conf", "\n".join(f"{k} = {v}" for k, v in (settings or {}).items()))
        if started:
            cluster.start()
        return cluster

    def cluster_with_tls(self, found: Installation, certificates: Certificates) -> Cluster:
        """A cluster that takes no connection over TCP without TLS."""
        cluster = self.cluster(found, started=False)
        files = {
            "ssl_ca_file": certificates.root,
            "ssl_cert_file": certificates.server,
            "ssl_key_file": certificates.server_key,
        }
        settings = ["ssl = on"]
        for name, file in files.items():
            copy = self.account.give(Path(shutil.copy(file, cluster.data)), 0o600)
            settings.append(f"{name} = '{copy.name}'")
        _append(cluster.data / "postgresql.conf", "\n".join(settings))
        (cluster.data / "pg_hba.conf").write_text(LOGINS_WITH_TLS)
        cluster.start()
        return cluster

    def remove(self, cluster: Cluster) -> None:
        """Stops a cluster and deletes its folder."""
        cluster.stop("immediate")
        self._clusters.remove(cluster)
        shutil.rmtree(cluster.folder)

    def close(self) -> None:
        """Ends everything."""
        for cluster in [*self._clusters]:
            self.remove(cluster)
        shutil.rmtree(self.folder)
        self._lock.close()

    def _usable(self, found: Installation) -> Installation:
        if found.programs not in self._installations:
            self._installations[found.programs] = usable(found, self.account, self.folder)
        return self._installations[found.programs]

    def _new(self, found: Installation, prefix: Sequence[str]) -> Cluster:
        self._numbers += 1
        folder = self.account.folder(self.folder / str(self._numbers))
        cluster = Cluster(found, self.account, folder, prefix)
        self._clusters.append(cluster)
        self._run(["cp", "-a", "--reflink=auto", str(self._template(found)), str(cluster.data)], folder)
        return cluster

    def _template(self, found: Installation) -> Path:
        if found.programs not in self._templates:
            folder = self.account.folder(self.folder / f"template-{found.version}-{len(self._templates)}")
            data = folder / "data"
            self._run([found.program("initdb"), *_INITDB, "-D", str(data)], folder)
            _append(data / "postgresql.conf", "\n".join(f"{name} = {value}" for name, value in SETTINGS.items()))
            (data / "pg_hba.conf").write_text(LOGINS)
            # Here and not in a running server, which would write the password to its log.
            single = [found.program("postgres"), "--single", "-c", "log_statement=none", "-D", str(data), SUPERUSER]
            self._run(single, folder, f"CREATE ROLE {LOADER} LOGIN PASSWORD '{PASSWORD}'\n")
            self._templates[found.programs] = data
        return self._templates[found.programs]

    def _run(self, command: Sequence[str], folder: Path, text: str = "") -> None:
        done = subprocess.run(
            command,
            cwd=folder,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **self.account.options,
        )
        assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout}"


def _append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as conf:
        conf.write(f"{text}\n")


def _sweep() -> None:
    """Deletes what a killed session has left. Its servers are dead: the kernel has stopped them."""
    for folder in _PLACE.glob(f"{_PREFIX}*"):
        try:
            with (folder / "lock").open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        shutil.rmtree(folder, ignore_errors=True)
