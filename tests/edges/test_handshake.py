"""Refused clients in the log: OpenSSL's reason, and never more lines than a bound."""

from __future__ import annotations

import logging
import ssl

import pytest

from fila.edges.handshake import LINES_MAX, PERIOD_S, Complaints, reason_of


def test_a_stranger_who_tries_all_day_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    complaints = Complaints()
    with caplog.at_level(logging.WARNING, "fila.tls"):
        for _ in range(1_000):
            complaints.refused("certificate verify failed: certificate has expired", 100.0)
        assert len(caplog.records) == LINES_MAX
        complaints.refused("peer did not return a certificate", 100.0 + PERIOD_S)
    assert [record.getMessage() for record in caplog.records[LINES_MAX:]] == [
        "more clients were refused by TLS",
        "a client was refused by TLS: peer did not return a certificate",
    ]
    assert caplog.records[LINES_MAX].__dict__["clients"] == 1_000 - LINES_MAX


def test_other_failed_handshakes_are_not_about_a_certificate() -> None:
    probe = ssl.SSLError(1, "[SSL: HTTP_REQUEST] http request (_ssl.c:1)")
    probe.reason = "HTTP_REQUEST"
    assert reason_of(probe) == ""
