"""h2spec, the conformance suite for HTTP/2, against the gRPC port."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from tests.e2e.listeners import CERTS
from tests.e2e.process import Broker
from tests.tools import tool

# What fails on a plain port, and why that is right. Both cases pass where they can be asked.
STAYS = {
    (
        "http2/3.5",
        "Sends invalid connection preface",
    ): "the port speaks FIBP as well: words that are not HTTP/2's are answered with FIBP's Error "
    "frame, then the connection is closed; h2spec takes the frame for HTTP/2",
    (
        "http2/4.2",
        "Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE",
    ): "the case takes 16 KiB for the limit, and 32 KiB are announced",
}


def h2spec(broker: Broker, report: Path, *arguments: str) -> dict[tuple[str, str], str]:
    """Each case, and how it failed: "" if it passed."""
    host, port = broker.address
    command = [tool("h2spec"), "-h", host, "-p", str(port), "-o", "5", "-j", str(report)]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert report.exists(), done.stdout + done.stderr
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        failed = [one.tag + ": " + "".join(one.itertext()) for one in case]
        found[(case.attrib["package"], case.attrib["classname"])] = " ".join(failed)
    return found


def test_every_case_passes_but_those_with_a_reason(
    own_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    with own_broker() as broker:
        found = h2spec(broker, tmp_path / "report.xml", "-S")
        assert len(found) > 130
        assert {case: why for case, why in found.items() if why}.keys() == STAYS.keys()
        assert broker.stop() == 0
        assert "Traceback" not in broker.log()


def test_header_fields_beyond_the_frame_that_is_announced_are_an_error_of_size(
    own_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    with own_broker() as broker:
        found = h2spec(
            broker, tmp_path / "report.xml", "http2/4.2/3", "--max-header-length", "65000"
        )
        assert [why for why in found.values() if why] == []
        assert sum(package == "http2/4.2" for package, _ in found) == 1


def test_an_invalid_preface_closes_a_connection_that_was_to_be_http2(
    own_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    """Over TLS a client says which protocol it speaks: then there is no doubt."""
    files = {"tls.cert_file": CERTS / "server.pem", "tls.key_file": CERTS / "server.key"}
    with own_broker(settings=files) as broker:
        found = h2spec(broker, tmp_path / "report.xml", "http2/3.5", "-t", "-k")
        assert [why for why in found.values() if why] == []
        assert len(found) == 2
