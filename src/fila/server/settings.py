"""Every setting of the server: its default, its limits and what it means.

The configuration reference in the docs is generated from this module, so it cannot drift.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MiB = 1 << 20


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A setting with its default, what it means, and what it may be."""
    return field(
        default=default, metadata={"help": help, "low": low, "high": high, "choices": choices}
    )


@dataclass(frozen=True)
class ServerSettings:
    """Where the broker listens."""

    listen_addr: str = setting(
        "0.0.0.0:5555", "Address and port for clients. Port 0 binds a free port."
    )
    max_connections: int = setting(
        10_000,
        "Open connections beyond which new ones are turned away. The limit on open files of the "
        "process may allow fewer: the store keeps its share.",
        low=1,
    )
    max_consumers: int = setting(
        200_000,
        "Consumers and waiting lease requests on all connections, and as many gRPC calls. As it "
        "comes near, one connection may have fewer: a quarter of what is left, at least 16.",
        low=16,
    )
    shutdown_grace_ms: int = setting(
        4_000, "How long a stopping server waits for connections to close.", low=0, high=60_000
    )


@dataclass(frozen=True)
class StorageSettings:
    """Where messages are kept, and what an acknowledgement means."""

    data_dir: str = setting("data", "Directory of the RocksDB store. Also: FILA_DATA_DIR.")
    durability: str = setting(
        "os",
        "`os`: acknowledged messages survive the death of the process. "
        "`fsync`: they survive the loss of power; requests share flushes.",
        choices=("os", "fsync"),
    )
    block_cache_bytes: int = setting(16 * MiB, "Memory for blocks read from disk.", low=MiB)
    write_buffer_bytes: int = setting(64 * MiB, "Size of one write buffer.", low=MiB)
    window_bytes: int = setting(
        48 * MiB,
        "Memory for messages about to be delivered, all queues together. Queues that deliver share "
        "it; one that delivers nothing gives its part up when another needs it.",
        low=MiB,
    )


@dataclass(frozen=True)
class BackupSettings:
    """Where `fila backup create` puts backups."""

    target: str = setting(
        "",
        "A directory, or `s3://BUCKET/PREFIX` (needs the extra `journal`; keys and region as AWS "
        "tools read them). For one broker alone. Empty: no backups.",
    )
    bytes_per_second: int = setting(
        64 * MiB, "How fast a backup reads the store; 0: as fast as it can.", low=0
    )
    keep: int = setting(
        0, "Backups to keep; older ones are removed after each new one. 0: all.", low=0, high=1_000
    )


@dataclass(frozen=True)
class SchedulerSettings:
    """Fair delivery."""

    quantum: int = setting(
        1,
        "Messages a fairness key of weight 1 may send per turn. Higher is coarser.",
        low=1,
        high=100_000,
    )
    quantum_bytes: int = setting(
        16_384,
        "The same in bytes, for queues whose messages cost their bytes.",
        low=1_024,
        high=64 * MiB,
    )
    max_weight: int = setting(
        1_000,
        "Largest weight of a fairness key; what a hook or a producer gives beyond it counts as "
        "this.",
        low=1,
        high=4_294_967_295,
    )
    turn_messages: int = setting(
        512,
        "Messages that requests may move in one turn, 2 KiB of one counting as one. Requests that "
        "are larger than two turns are carried out in steps, between which others have theirs. "
        "Lower means shorter pauses and more commits.",
        low=16,
        high=65_536,
    )


@dataclass(frozen=True)
class ConnectionSettings:
    """What one client connection may have under way, over FIBP and gRPC alike."""

    max_message_size: int = setting(
        32 * MiB, "Largest request or delivery in bytes, continued frames together.", low=4_096
    )
    max_inbound_bytes: int = setting(
        128 * MiB,
        "Bytes of unfinished messages on all connections; beyond, those of which nothing has "
        "arrived for the longest time end.",
        low=MiB,
    )
    max_messages_per_request: int = setting(65_536, "Messages in one Enqueue, Ack or Nack.", low=1)
    max_unsent_bytes: int = setting(
        MiB, "Unsent bytes after which a connection's consumers get nothing more.", low=4_096
    )
    max_outbound_bytes: int = setting(
        16 * MiB, "Unread replies after which a connection is not read from.", low=MiB
    )
    max_unread_bytes: int = setting(
        128 * MiB,
        "Bytes sent and not taken on all connections, HTTP too. From half of it on, who is slow "
        "gets nothing more, and who has taken nothing for a second is closed; beyond it, those "
        "that have taken nothing for the longest time are.",
        low=32 * MiB,
    )
    max_unauthenticated: int = setting(
        1_000,
        "Connections that have not shown who they are; beyond, the oldest of them is closed.",
        low=1,
    )
    max_unauthenticated_bytes: int = setting(
        16 * MiB,
        "Bytes they may send all together, 64 KiB each; beyond, the oldest is closed.",
        low=65_536,
    )
    max_consumers: int = setting(
        1_024, "Consumers and waiting lease requests on one connection.", low=1
    )
    max_batch_bytes: int = setting(
        16 * MiB,
        "Most bytes of one lease batch, whatever its request wishes for (one message always fits).",
        low=1_024,
        high=64 * MiB,
    )
    prefetch: int = setting(
        256, "Unacknowledged messages a consumer may hold by default.", low=1, high=65_535
    )
    prefetch_bytes: int = setting(
        8 * MiB, "Unacknowledged bytes a consumer may hold (one message always fits).", low=1_024
    )
    handshake_timeout_ms: int = setting(
        30_000, "Time a new connection has to introduce itself.", low=1
    )
    close_timeout_ms: int = setting(
        3_000, "Time a closing connection has to take what is still unsent.", low=0
    )
    keepalive_interval_secs: int = setting(15, "Idle time before TCP probes a peer.", low=1)
    keepalive_timeout_secs: int = setting(10, "Time a probed peer has to answer.", low=1)


@dataclass(frozen=True)
class FibpSettings:
    """The binary protocol. What it has in common with gRPC is set in `[connection]`."""

    listen_addr: str = setting(
        "",
        "Replaces the default of `server.listen_addr`; when both are given, both are listened on. "
        "Either takes FIBP and gRPC.",
    )
    max_frame_size: int = setting(
        16 * MiB, "Largest frame in bytes; larger messages are continued.", low=4_096, high=16 * MiB
    )


@dataclass(frozen=True)
class GrpcSettings:
    """gRPC on the same port. What it has in common with FIBP is set in `[connection]`."""

    max_streams_per_connection: int = setting(
        1_000, "Calls one connection may have open; clients wait with more.", low=1, high=100_000
    )
    max_header_size: int = setting(
        16_384, "Largest metadata of a call in bytes.", low=4_096, high=MiB
    )


@dataclass(frozen=True)
class IdempotencySettings:
    """How long a repeated enqueue is recognised by its idempotency key, in each queue."""

    max_keys: int = setting(
        1_000_000, "Keys one queue remembers; the oldest go first.", low=1, high=100_000_000
    )
    window_ms: int = setting(86_400_000, "How long a key is remembered.", low=1_000)


@dataclass(frozen=True)
class BrowseSettings:
    """Reading queues without consuming them."""

    max_snapshots: int = setting(
        16, "Snapshots that may be open at once; each keeps old rows on disk.", low=1, high=1_000
    )
    ttl_ms: int = setting(
        600_000, "How long a snapshot lives unless its reader says.", low=1_000, high=3_600_000
    )
    preload_arrow: bool = setting(
        False,
        "Load pyarrow at the start; else the first Arrow body does, which holds the broker up for "
        "half a second.",
    )


@dataclass(frozen=True)
class LuaSettings:
    """Limits on hook scripts."""

    default_timeout_ms: int = setting(10, "Longest run of one hook call.", low=1, high=10_000)
    default_memory_limit_bytes: int = setting(MiB, "Memory of one queue's scripts.", low=65_536)
    circuit_breaker_threshold: int = setting(
        3, "Failures in a row after which hooks are bypassed.", low=1
    )
    circuit_breaker_cooldown_ms: int = setting(
        10_000, "How long a tripped hook stays bypassed.", low=0
    )


@dataclass(frozen=True)
class AuthSettings:
    """Who may connect. The section's presence turns authentication on."""

    bootstrap_apikey: str = setting(
        "",
        "A key that may do everything, to make the first keys with. Also: FILA_BOOTSTRAP_APIKEY, "
        "and `bootstrap_apikey` in `[server]`. "
        "Keep it out of files others can read.",
    )
    max_wrong_keys: int = setting(
        10,
        "Wrong keys of one address, per minute, that are answered at once and logged one by one; "
        "further ones are answered after a second (FIBP), or with 429 (HTTP), and counted. The "
        "right key opens at any time.",
        low=1,
        high=10_000,
    )


@dataclass(frozen=True)
class TlsSettings:
    """Encryption of everything on the port. Certificates are read again on SIGHUP."""

    cert_file: str = setting("", "Server certificate, PEM. Turns TLS on. Also: `server_cert`.")
    key_file: str = setting("", "Its private key, PEM. Also: `server_key`.")
    ca_file: str = setting(
        "", "When given, clients must show a certificate signed by it. Also: `ca_cert`."
    )
    crl_file: str = setting(
        "",
        "Revocation lists, PEM: clients whose certificate is on the list of its issuer are "
        "refused. Every issuer needs a current list here. Goes with `ca_file`.",
    )


@dataclass(frozen=True)
class JournalSettings:
    """The lifecycle journal: every scheduling decision, as Parquet for Spark and others."""

    enabled: bool = setting(False, "Write the journal. Needs the extra `journal` (pyarrow).")
    path: str = setting("", "Its directory; empty: `journal` inside the data directory.")
    broker_name: str = setting("fila", "Name of this broker in the journal's rows and file names.")
    retention_days: int = setting(7, "Days of sealed events to keep.", low=1)
    messages: bool = setting(False, "Keep headers and payloads of all messages, too.")
    messages_retention_days: int = setting(1, "Days of messages to keep.", low=1)
    snapshot_interval_ms: int = setting(
        60_000, "How often every key's counts are written down.", low=1_000
    )
    flush_interval_ms: int = setting(250, "Longest time an event stays unwritten.", low=10)
    seal_interval_ms: int = setting(60_000, "Longest time until a part is sealed.", low=100)
    max_waiting_events: int = setting(
        500_000, "Events in memory beyond which they are dropped, and counted.", low=1_000
    )
    max_waiting_bytes: int = setting(
        16 * MiB,
        "Headers and payloads in memory beyond which they are dropped, and counted.",
        low=65_536,
    )


@dataclass(frozen=True)
class TelemetrySettings:
    """Metrics and traces for others to keep. Export is off unless an endpoint is given."""

    otlp_endpoint: str = setting(
        "",
        'Where to send metrics and traces over OTLP (gRPC), for example "http://localhost:4317"; '
        "`https://` for TLS. Empty: nowhere.",
    )
    service_name: str = setting("fila", "Name of this service in metrics and traces.")
    metrics_interval_ms: int = setting(10_000, "How often metrics are sent.", low=100)
    top_keys: int = setting(
        20,
        "Fairness keys per queue, and throttle keys, that have series of their own; the rest is "
        "`other`.",
        low=1,
        high=1_000,
    )
    trace_ratio: float = setting(
        0.01,
        "Part of the batches that is traced when their callers do not ask for it. 0: none; 1: all "
        "(500 spans a second at most).",
        low=0,
        high=1,
    )


@dataclass(frozen=True)
class GuiSettings:
    """The HTTP port: dashboard, JSON API, `/metrics`, `/healthz`, `/readyz`."""

    listen_addr: str = setting(
        "",
        'Address and port, for example "0.0.0.0:8080". Empty: off. Port 0 binds a free port. '
        "`make run` uses 127.0.0.1:8080.",
    )
    fallback: bool = setting(
        False, "When the port is taken: bind a free one, and say which, instead of not starting."
    )
    max_connections: int = setting(256, "Open HTTP connections.", low=1, high=10_000)
    max_streams: int = setting(64, "Open live streams among them.", low=1, high=10_000)
    session_ttl_ms: int = setting(
        12 * 3_600_000, "How long a sign-in with an API key lasts.", low=60_000
    )


@dataclass(frozen=True)
class SqsSettings:
    """The SQS endpoint: Fila's queues for programs that speak to Amazon SQS."""

    listen_addr: str = setting(
        "",
        'Address and port, for example "0.0.0.0:9324". Empty: off. Port 0 binds a free port.',
    )
    max_connections: int = setting(
        1_024, "Open connections; each carries one request at a time.", low=1, high=100_000
    )
    max_polls: int = setting(
        512,
        "Requests that may wait for messages at once; one more is answered with RequestThrottled.",
        low=1,
        high=100_000,
    )
    idle_timeout_ms: int = setting(
        60_000, "How long a connection may be without a request.", low=1_000, high=3_600_000
    )


@dataclass(frozen=True)
class LogSettings:
    """What the server writes to standard error."""

    level: str = setting(
        "info", "Least important level shown.", choices=("debug", "info", "warning", "error")
    )
    format: str = setting(
        "auto",
        "`human` lines, `json` lines, or `auto`: human on a terminal.",
        choices=("auto", "human", "json"),
    )
    max_waiting_lines: int = setting(
        10_000,
        "Lines that wait for a slow reader of standard error; more are dropped and counted.",
        low=100,
        high=1_000_000,
    )


@dataclass(frozen=True)
class Settings:
    server: ServerSettings = field(default_factory=ServerSettings)
    storage: StorageSettings = field(default_factory=StorageSettings)
    backup: BackupSettings = field(default_factory=BackupSettings)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    connection: ConnectionSettings = field(default_factory=ConnectionSettings)
    fibp: FibpSettings = field(default_factory=FibpSettings)
    grpc: GrpcSettings = field(default_factory=GrpcSettings)
    idempotency: IdempotencySettings = field(default_factory=IdempotencySettings)
    browse: BrowseSettings = field(default_factory=BrowseSettings)
    lua: LuaSettings = field(default_factory=LuaSettings)
    auth: AuthSettings = field(default_factory=AuthSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    gui: GuiSettings = field(default_factory=GuiSettings)
    sqs: SqsSettings = field(default_factory=SqsSettings)
    log: LogSettings = field(default_factory=LogSettings)
    auth_enabled: bool = field(default=False, metadata={"hidden": True})
    server_addr_given: bool = field(default=False, metadata={"hidden": True})

    @property
    def journal_path(self) -> Path:
        return Path(self.journal.path or Path(self.storage.data_dir) / "journal")

    @property
    def listen_addrs(self) -> tuple[str, ...]:
        """Where clients are accepted: one address, or two when both were given."""
        first, second = self.server.listen_addr, self.fibp.listen_addr
        if not second:
            return (first,)
        if not self.server_addr_given:
            return (second,)
        # The same address twice is one, unless each is to find a free port of its own.
        same = first == second and not first.endswith(":0")
        return (first,) if same else (first, second)
