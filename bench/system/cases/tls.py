"""What encryption costs: the same load over plain TCP and over TLS, in batches and singly."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.system.contest import Entry, lifecycles
from bench.system.lab import Lab


def run(lab: Lab) -> None:
    if shutil.which("openssl") is None:
        sys.stdout.write("tls: left out, there is no openssl to make a certificate with\n")
        return
    place = lab.place()
    place.mkdir()
    certificate, key = _self_signed(place)
    settings = {"tls.cert_file": certificate, "tls.key_file": key}
    for how, role in (("batches of 100", ""), ("one at a time", "single")):
        entries = {
            "plain": Entry(role=role),
            "TLS": Entry(role=role, settings=settings, tls_ca=certificate),
        }
        for name, metrics in lifecycles(lab, entries).items():
            lab.add("tls", {"load": how, "transport": name}, metrics)


def _self_signed(place: Path) -> tuple[str, str]:
    certificate, key = str(place / "certificate.pem"), str(place / "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    command += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command += ["-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
