"""The server's certificate in time: told at once, told again every day, told when it was mended."""

from __future__ import annotations

import asyncio
import logging

import pytest

from fila.server.certificate import DAY_S, CertificateWatch
from tests import loops


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_the_warning_is_repeated_until_the_certificate_is_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live() -> None:
        watch = CertificateWatch(lambda: 1_800_000_000.0, interval_s=0.001)
        watch.loaded("server.pem", 1_700_000_000.0)
        while len(caplog.records) < 4:
            await asyncio.sleep(0.001)
        watch.loaded("server.pem", 1_900_000_000.0)
        told = len(caplog.records)
        await asyncio.sleep(0.02)
        assert len(caplog.records) == told
        watch.stop()

    with caplog.at_level(logging.INFO, "fila.tls"):
        loops.run(live())
    assert {level for level, _ in messages(caplog)} == {"ERROR"}
    assert messages(caplog)[0][1].startswith(
        "the server certificate expired on 2023-11-14 22:13:20 UTC: clients that check it refuse"
    )


def test_a_certificate_about_to_expire_is_a_warning_and_a_fresh_one_is_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def live() -> None:
        watch = CertificateWatch(lambda: 1_700_000_000.0)
        assert watch.warning() == ""  # there is none
        watch.loaded("server.pem", 1_700_000_000.0 + 13 * DAY_S)
        assert "expires on 2023-11-27" in watch.warning()
        assert watch.remaining_s() == 13 * DAY_S
        watch.loaded("server.pem", 1_700_000_000.0 + 15 * DAY_S)
        assert watch.warning() == ""
        watch.stop()

    with caplog.at_level(logging.INFO, "fila.tls"):
        loops.run(live())
    assert [level for level, _ in messages(caplog)] == ["WARNING"]
