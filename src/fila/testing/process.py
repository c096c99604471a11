"""A real broker for tests: a `fila-server` process, its directory, its port and its log.

Owns the process from start to end. It reads no environment variables and no configuration files
elsewhere, and every wait has an end. Never imports the broker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from fila.testing.failure import SERVER_EXTRA, BrokerError

if TYPE_CHECKING:
    from fila.client.sync import FilaClient

READY_S: Final = 30.0
STOP_S: Final = 10.0
_POLL_S: Final = 0.005


@contextmanager
def broker(
    settings: Mapping[str, object] | None = None, *, directory: Path | str | None = None
) -> Iterator[RealBroker]:
    """A broker process that lives as long as the `with` block.

    `settings` are those of the configuration file as `{"section.key": value}`. Data is kept in
    `directory`, or in a temporary one that goes away with the block.
    """
    place = TemporaryDirectory(prefix="fila-") if directory is None else nullcontext(directory)
    with place as home, RealBroker(Path(home) / "data", settings) as running:
        yield running


def environ_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as the environment variables `fila-server` reads."""
    return {
        "FILA_" + name.replace(".", "__").upper(): (
            str(value).lower() if isinstance(value, bool) else str(value)
        )
        for name, value in settings.items()
    }


class ServerProcess:
    """One data directory and, most of the time, one process that serves it.

    The port file and the log lie beside the data directory and have its name; the process runs in
    the directory above, where a `fila.toml` is read if there is one.
    """

    def __init__(self, data_dir: Path, settings: Mapping[str, object] | None = None) -> None:
        self.data_dir = data_dir.absolute()
        self.settings = dict(settings or {})
        self.listen = "127.0.0.1:0"
        self.endpoint = ("", 0)  # where it listens, once it has started
        self.port_file = self.data_dir.with_name(self.data_dir.name + ".port")
        self.log_file = self.data_dir.with_name(self.data_dir.name + ".log")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise BrokerError("the broker has not been started")
        return self._process

    def start(self) -> Self:
        """Start and wait until it accepts connections."""
        self.launch()
        try:
            self._wait_for_port()
        except BaseException:  # KeyboardInterrupt too
            self.kill()
            raise
        host, _, port = self.port_file.read_text().strip().rpartition(":")
        self.endpoint = (host, int(port))
        return self

    def launch(self) -> None:
        """Start without waiting."""
        if self._process is not None and self.alive():
            raise BrokerError("the broker is running already")
        home = self.data_dir.parent
        home.mkdir(parents=True, exist_ok=True)
        (home / "fila.toml").touch()  # or the one of the machine would be read
        self.port_file.unlink(missing_ok=True)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.command(), "--listen", self.listen, "--data-dir", str(self.data_dir)],
                env=self._environ(),
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for its clients; it goes after them
            )

    def command(self) -> list[str]:
        if getattr(sys, "frozen", False):  # of the archive with programs: the one beside this
            return [str(Path(sys.executable).with_name("fila-server"))]
        return [sys.executable, "-m", "fila.server.main"]

    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> int:
        """Ask it to stop, wait until it has; its exit code."""
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, timeout_s: float = STOP_S) -> int:
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL: nothing of it runs any further."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> Self:
        """Kill it and start it again on the same data."""
        self.kill()
        return self.start()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def __enter__(self) -> Self:
        return self if self._process is not None else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self.alive():
            self.kill()

    def _wait_for_port(self) -> None:
        give_up_at = time.monotonic() + READY_S
        while not self.port_file.exists():
            if not self.alive():
                raise BrokerError(f"the broker did not start: {self._last_words()}")
            if time.monotonic() > give_up_at:
                raise BrokerError(f"the broker did not start within {READY_S:.0f} s")
            time.sleep(_POLL_S)

    def _environ(self) -> dict[str, str]:
        own = {name: text for name, text in os.environ.items() if not name.startswith("FILA_")}
        return {**own, **environ_of(self.settings), "FILA_PORT_FILE": str(self.port_file)}

    def _last_words(self) -> str:
        lines = self.log().strip().splitlines() or ["it did not say why"]
        return SERVER_EXTRA if "ModuleNotFoundError" in lines[-1] else lines[-1]


class RealBroker(ServerProcess):
    """What `broker()` gives: a running `fila-server` that can be killed and started again."""

    def start(self) -> Self:
        super().start()
        self.listen = self.address  # after a restart clients find it where it was
        return self

    @property
    def address(self) -> str:
        """For `FilaClient`: `127.0.0.1:` and a free port, the same after a restart."""
        host, port = self.endpoint
        return f"{host}:{port}"

    def client(self, **options: Any) -> FilaClient:
        """A synchronous client; `await FilaClient.connect(running.address)` for the other."""
        from fila.client.sync import FilaClient

        return FilaClient(self.address, **options)
