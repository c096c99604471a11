"""Certificates of one run, made with the openssl program: two authorities, a server, a client.

Owns the files. Everything is valid for localhost and 127.0.0.1.
"""

import subprocess
from pathlib import Path

_CONFIG = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = DNS:localhost,IP:127.0.0.1
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class Certificates:
    """Paths as text, for options and settings; `other_ca` has signed nothing here."""

    def __init__(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self._place = place
        self._config = place / "openssl.cnf"
        self._config.write_text(_CONFIG)
        self.ca = self._authority("ca")
        self.other_ca = self._authority("other-ca")
        self.server, self.server_key = self._issue("server")
        self.client, self.client_key = self._issue("client")

    def names(self) -> dict[str, str]:
        """What scenarios may call them."""
        return {
            "ca": self.ca,
            "other_ca": self.other_ca,
            "client_cert": self.client,
            "client_key": self.client_key,
        }

    def _authority(self, name: str) -> str:
        key, cert = self._key(name), self._place / f"{name}.pem"
        self._openssl(
            "req", "-x509", "-new", "-key", key, "-out", cert, "-days", "30", "-sha256",
            "-subj", f"/CN=conformance {name}", "-extensions", "authority",
        )  # fmt: skip
        return str(cert)

    def _issue(self, name: str) -> tuple[str, str]:
        key, cert = self._key(name), self._place / f"{name}.pem"
        request = self._place / f"{name}.csr"
        self._openssl("req", "-new", "-key", key, "-out", request, "-subj", f"/CN={name}")
        _run(
            "x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._place / "ca.key",
            "-CAcreateserial", "-out", cert, "-days", "30", "-sha256",
            "-extfile", self._config, "-extensions", "leaf",
        )  # fmt: skip
        return str(cert), str(key)

    def _key(self, name: str) -> Path:
        # PKCS#8, which every language's TLS reads.
        path = self._place / f"{name}.key"
        _run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
        return path

    def _openssl(self, command: str, *arguments: str | Path) -> None:
        _run(command, "-config", self._config, *arguments)


def _run(*arguments: str | Path) -> None:
    done = subprocess.run(
        ["openssl", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr}")
