"""Certificates for tests of TLS, made by openssl: an authority, a server, a client, and an authority of strangers."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30")


@dataclass(frozen=True)
class Certificates:
    """Files in PEM form. The server is called `localhost`, the client by the name of its role."""

    root: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path
    stranger: Path

    @classmethod
    def make(cls, folder: Path, client: str) -> Certificates:
        """New ones, valid for 30 days."""
        root, root_key = _authority(folder, "authority")
        stranger, _ = _authority(folder, "stranger")
        # The address is left out on purpose: 127.0.0.1 passes verify-ca and fails verify-full.
        server, server_key = _signed(folder, "server", "localhost", root, root_key, "subjectAltName=DNS:localhost")
        client_file, client_key = _signed(folder, "client", client, root, root_key, "extendedKeyUsage=clientAuth")
        return cls(root, server, server_key, client_file, client_key, stranger)


def _authority(folder: Path, name: str) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    _openssl("req", "-x509", *_KEY, "-subj", f"/CN=Headrace test {name}", "-keyout", key, "-out", certificate)
    return certificate, key


def _signed(
    folder: Path, name: str, subject: str, authority: Path, authority_key: Path, extension: str
) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    signer = ("-CA", authority, "-CAkey", authority_key)
    extensions = ("-addext", "basicConstraints=critical,CA:FALSE", "-addext", extension)
    _openssl(
        "req", "-x509", *_KEY, *signer, *extensions, "-subj", f"/CN={subject}", "-keyout", key, "-out", certificate
    )
    return certificate, key


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
