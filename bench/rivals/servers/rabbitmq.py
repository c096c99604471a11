"""RabbitMQ with a quorum queue, which flushes before it confirms."""

from __future__ import annotations

from pathlib import Path

from bench.rivals import install
from bench.rivals.servers.running import Running, free_port, wait_for
from bench.system import process


def start(place: Path) -> Running:
    server = install.program(
        "rabbitmq-server",
        "usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server",
    )
    port, distribution_port, names_port = free_port(), free_port(), free_port()
    (place / "rabbitmq.conf").write_text("")
    env = install.environment() | {
        "HOME": str(place),
        "RABBITMQ_NODENAME": "bench@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_MNESIA_BASE": str(place / "mnesia"),
        "RABBITMQ_LOG_BASE": str(place / "logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(place / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(place / "none"),
        "ERL_EPMD_PORT": str(names_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    # RabbitMQ would start this one itself and leave it behind.
    names_server = install.program("erlang-base", "usr/lib/erlang/bin/epmd", "usr/bin/epmd")
    names = process.start([str(names_server)], place / "names.log", env)
    child = process.start([str(server)], place / "log", env, cwd=place)
    wait_for(child, port, place / "log")
    return Running(
        f"127.0.0.1:{port}",
        child,
        server.parents[1].name.replace("_server-", " "),
        "quorum queue on one node; publisher confirms with 1,000 under way, prefetch 1,000, "
        "one ack for many",
        "power loss",
        [names],
    )
