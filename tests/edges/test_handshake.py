"""Refused clients in the log: OpenSSL's reason, and never more lines than a bound."""

from __future__ import annotations

import logging
import ssl

import pytest

from fila.edges.handshake import (
    CERTIFICATE,
    CLOSED,
    LINES_MAX,
    PERIOD_S,
    PROTOCOL,
    Refusals,
    reason_of,
)


def test_a_stranger_who_tries_all_day_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    reason = "certificate verify failed: certificate has expired"
    with caplog.at_level(logging.WARNING, "fila.tls"):
        for _ in range(1_000):
            refusals.tell(CERTIFICATE, reason, "198.51.100.7:1", 100.0)
        assert len(caplog.records) == LINES_MAX
        refusals.tell(CERTIFICATE, "no certificate", "198.51.100.7:2", 100.0 + PERIOD_S)
    assert [record.getMessage() for record in caplog.records[LINES_MAX:]] == [
        "more clients were refused by TLS",
        "a client was refused by TLS: no certificate",
    ]
    assert caplog.records[LINES_MAX].__dict__["clients"] == 1_000 - LINES_MAX
    assert caplog.records[0].__dict__["peer"] == "198.51.100.7:1"
    assert refusals.counts[CERTIFICATE] == 1_001


def test_who_only_looks_whether_the_port_is_open_is_counted_and_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals()
    refusals.tell(*reason_of(ConnectionResetError()), "198.51.100.7:1", 100.0)
    assert refusals.counts[CLOSED] == 1 and caplog.records == []


def test_other_failed_handshakes_are_not_about_a_certificate() -> None:
    probe = ssl.SSLError(1, "[SSL: HTTP_REQUEST] http request (_ssl.c:1)")
    probe.reason = "HTTP_REQUEST"
    assert reason_of(probe) == (PROTOCOL, "http request")
