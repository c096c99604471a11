"""`/readyz` says yes when the broker accepts connections, and not a moment before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fila.server.compose import Node
from fila.server.config import load
from fila.server.settings import Settings
from tests import loops


def test_readyz_is_true_only_once_clients_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(
        None,
        {"FILA_GUI__LISTEN_ADDR": "127.0.0.1:0", "FILA_DATA_DIR": str(tmp_path / "data")},
        {"server.listen_addr": "127.0.0.1:0"},
    ).settings
    assert loops.run(_answers(settings, monkeypatch)) == [
        b"HTTP/1.1 503 \r\n",  # while the port is being opened
        b"HTTP/1.1 200 \r\n",
        b"HTTP/1.1 503 \r\n",  # while it stops
    ]


async def _answers(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    loop = asyncio.get_running_loop()
    node = Node(settings, loop, lambda error: None)
    open_port = node._listener.listen
    answers = []

    async def listen(host: str, port: int, tls: None = None) -> tuple[str, int]:
        answers.append(await _readyz(node))
        return await open_port(host, port, tls)

    monkeypatch.setattr(node._listener, "listen", listen)
    await node.start()
    answers.append(await _readyz(node))
    assert node._watch is not None
    node._watch.stopping()
    answers.append(await _readyz(node))
    await node.stop()
    return answers


async def _readyz(node: Node) -> bytes:
    assert node.http_address is not None
    reader, writer = await asyncio.open_connection(*node.http_address)
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    status = await reader.readline()
    writer.close()
    return status
