"""Certificates for tests, made on the spot with the openssl program."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

OPENSSL = shutil.which("openssl")

_CONFIG = """
[ca]
default_ca = own
[own]
database = {place}/index
serial = {place}/serial
new_certs_dir = {place}
default_md = sha256
policy = any
unique_subject = no
default_crl_days = 30
copy_extensions = none
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
[leaf]
basicConstraints = CA:FALSE
subjectAltName = {names}
[req]
distinguished_name = name
[name]
"""


class Certificate(NamedTuple):
    cert: Path
    key: Path


class Authority:
    """A CA of its own in a directory of its own."""

    def __init__(self, place: Path, names: str = "DNS:localhost,IP:127.0.0.1") -> None:
        place.mkdir(parents=True)
        self._place = place
        (place / "index").write_text("")
        (place / "serial").write_text("01\n")
        (place / "config").write_text(_CONFIG.format(place=place, names=names))
        key = _new_key(place / "ca.key")
        self.cert = place / "ca.pem"
        _openssl(
            "req", "-x509", "-new", "-key", key, "-out", self.cert, "-days", "3650",
            "-subj", "/CN=test authority", "-config", place / "config", "-extensions", "authority",
        )  # fmt: skip
        self._key = key

    def issue(self, name: str, days_from: int = -1, days_until: int = 365) -> Certificate:
        """A certificate for these names, valid between these days from now."""
        key = _new_key(self._place / f"{name}.key")
        request = self._place / f"{name}.csr"
        cert = self._place / f"{name}.pem"
        config = self._place / "config"
        _openssl("req", "-new", "-key", key, "-out", request, "-subj", f"/CN={name}",
                 "-config", config)  # fmt: skip
        _openssl(
            "ca", "-batch", "-notext", "-config", config, "-cert", self.cert, "-keyfile", self._key,
            "-in", request, "-out", cert, "-extensions", "leaf",
            "-startdate", _date(days_from), "-enddate", _date(days_until),
        )  # fmt: skip
        return Certificate(cert, key)

    def revoke(self, certificate: Certificate) -> None:
        self._ca("-revoke", certificate.cert)

    def revocation_list(self, path: Path) -> Path:
        self._ca("-gencrl", "-out", path)
        return path

    def _ca(self, *arguments: str | Path) -> None:
        config = self._place / "config"
        own = ("-config", config, "-cert", self.cert, "-keyfile", self._key)
        _openssl("ca", "-batch", *own, *arguments)


def encrypted(key: Path) -> Path:
    """The same key behind a password."""
    out = key.with_suffix(".locked")
    _openssl("pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", out)
    return out


def _new_key(path: Path) -> Path:
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
    return path


def _date(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(
        [OPENSSL or "openssl", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
