"""What a user may set on a client, with every default and limit.

Owns the names, defaults and validation of all options. Reads no environment and no files.
"""

from typing import Final, Literal, TypedDict

from fila.client.event import Listener, Log
from fila.client.trace import Provider
from fila.wire.fields import string_field

BatchMode = Literal["auto", "linger", "off"]

PREFETCH_DEFAULT: Final = 256
PREFETCH_MAX: Final = 65_535
# A Delivery is a little longer than the Enqueue it came from, so a client must be able to put
# together more than the broker's own bound of 128 MiB.
ASSEMBLY_BYTES_MAX: Final = 512 * 1024 * 1024
RECEIVE_BYTES: Final = 64 * 1024
STABLE_AFTER_S: Final = 1.0  # a connection that lived this long resets the reconnect pause


class ClientOptions(TypedDict, total=False):
    """Keyword arguments of `FilaClient(...)` and `FilaClient.connect(...)`."""

    api_key: str | None
    # TLS. Any of the three files switches `tls` on; without `tls_ca` the system's store is used.
    tls: bool
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None
    # Seconds. `timeout` is the default for every call; None waits for ever.
    timeout: float | None
    connect_timeout: float
    # How enqueues and acks made at the same time share frames.
    batch: BatchMode
    linger_ms: float
    batch_messages_max: int
    batch_bytes_max: int
    # Enqueues wait when this much is under way without an answer.
    in_flight_bytes_max: int
    # After a lost connection: pauses of about min, 2*min, 4*min … max.
    reconnect: bool
    reconnect_pause_min_ms: float
    reconnect_pause_max_ms: float
    # Called with every ConnectionEvent: connected, disconnected, closed … It must not block.
    on_event: Listener | None
    # A `logging.Logger` that is told the same. None is silent.
    logger: Log | None
    # Gives the present W3C trace context, or None; asked once per enqueue call.
    traceparent: Provider | None
    # A Ping after this much silence; the connection is given up when nothing comes back in time.
    keepalive_interval: float
    keepalive_timeout: float


class Options:
    """Validated options; attributes have the names of `ClientOptions`."""

    def __init__(self, given: ClientOptions) -> None:
        unknown = set(given) - set(ClientOptions.__annotations__)
        if unknown:
            known = ", ".join(sorted(ClientOptions.__annotations__))
            raise TypeError(f"unknown option {min(unknown)!r}; known are {known}")
        self.api_key = given.get("api_key")
        self.tls_ca = given.get("tls_ca")
        self.tls_cert = given.get("tls_cert")
        self.tls_key = given.get("tls_key")
        self.tls = bool(given.get("tls") or self.tls_ca or self.tls_cert or self.tls_key)
        self.timeout = given.get("timeout", 30.0)
        self.connect_timeout = given.get("connect_timeout", 10.0)
        self.batch: BatchMode = given.get("batch", "auto")
        self.linger_ms = given.get("linger_ms", 5.0)
        self.batch_messages_max = given.get("batch_messages_max", 1000)
        self.batch_bytes_max = given.get("batch_bytes_max", 1024 * 1024)
        self.in_flight_bytes_max = given.get("in_flight_bytes_max", 64 * 1024 * 1024)
        self.reconnect = given.get("reconnect", True)
        self.reconnect_pause_min_ms = given.get("reconnect_pause_min_ms", 50.0)
        self.reconnect_pause_max_ms = given.get("reconnect_pause_max_ms", 5000.0)
        self.keepalive_interval = given.get("keepalive_interval", 15.0)
        self.keepalive_timeout = given.get("keepalive_timeout", 10.0)
        self.on_event = given.get("on_event")
        self.logger = given.get("logger")
        self.traceparent = given.get("traceparent")
        self._validate()

    def _validate(self) -> None:
        if self.api_key is not None:
            if not isinstance(self.api_key, str):
                raise TypeError(f"api_key must be a str, not {type(self.api_key).__name__}")
            string_field(self.api_key, "api_key")  # raises a ValueError that says what is wrong
        if self.batch not in ("auto", "linger", "off"):
            raise ValueError(f'batch must be "auto", "linger" or "off", not {self.batch!r}')
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key belong together: give both or neither")
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError(f"timeout must be positive or None, not {self.timeout!r}")
        for name in (
            "connect_timeout",
            "linger_ms",
            "batch_messages_max",
            "batch_bytes_max",
            "in_flight_bytes_max",
            "reconnect_pause_min_ms",
            "reconnect_pause_max_ms",
            "keepalive_interval",
            "keepalive_timeout",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)!r}")


def check_prefetch(prefetch: int) -> int:
    if not 1 <= prefetch <= PREFETCH_MAX:
        raise ValueError(f"prefetch must be from 1 to {PREFETCH_MAX}, not {prefetch!r}")
    return prefetch
