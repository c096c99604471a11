"""An adapter under test: its process, its requests and its responses.

Owns the pipes and the correlation of responses. Knows nothing of scenarios.
"""

import asyncio
import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from harness.places import CONFORMANCE, REPOSITORY

Json = dict[str, Any]
LINE_BYTES_MAX = 1 << 26
END_S = 10.0
BUILD_S = 900.0
KEPT_LINES = 40  # of stderr, for the report


class AdapterError(Exception):
    """The adapter broke the protocol: ended, printed something else, answered twice."""


class Declaration(NamedTuple):
    """One entry of adapters.toml. Commands run in the repository's root."""

    language: str
    build: str
    run: str

    def prepare(self) -> str:
        """Build it; what went wrong, or nothing."""
        if not self.build:
            return ""
        done = subprocess.run(
            ["bash", "-c", self.build], cwd=REPOSITORY, capture_output=True, text=True,
            timeout=BUILD_S, check=False,
        )  # fmt: skip
        return "" if done.returncode == 0 else (done.stdout + done.stderr)[-4000:]


def declared(path: Path = CONFORMANCE / "adapters.toml") -> dict[str, Declaration]:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Declaration(name, entry.get("build", ""), entry["run"])
        for name, entry in entries.items()
    }


class Adapter:
    """A running adapter."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._fault: AdapterError | None = None
        self._stderr: deque[str] = deque(maxlen=KEPT_LINES)
        self._readers = [
            asyncio.create_task(self._read_responses()),
            asyncio.create_task(self._read_stderr()),
        ]

    @staticmethod
    async def start(declaration: Declaration, environ: dict[str, str]) -> "Adapter":
        process = await asyncio.create_subprocess_exec(
            *shlex.split(declaration.run.replace("{python}", sys.executable)),
            cwd=REPOSITORY,
            env={**os.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            limit=LINE_BYTES_MAX,
        )
        return Adapter(process)

    def ask(self, op: str, fields: Json) -> tuple[int, asyncio.Future[Json]]:
        """Send a request; its id and the response to come."""
        self._last_id += 1
        response: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        if self._fault is not None:
            response.set_exception(self._fault)
            return self._last_id, response
        self._waiting[self._last_id] = response
        line = json.dumps({"id": self._last_id, "op": op, **fields}, ensure_ascii=False)
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        return self._last_id, response

    @property
    def stderr(self) -> str:
        return "\n".join(self._stderr)

    async def end(self) -> None:
        """Close its stdin; it must leave by itself with 0."""
        assert self._process.stdin is not None
        ended_before = self._process.returncode is not None
        self._process.stdin.close()
        try:
            code = await asyncio.wait_for(self._process.wait(), END_S)
        except TimeoutError:
            raise AdapterError(f"it did not exit within {END_S:g} s of its stdin's end") from None
        finally:
            await self.kill()
        if code != 0 and not ended_before:
            raise AdapterError(f"it exited with {code} at the end of its stdin")

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await asyncio.wait(self._readers, timeout=1.0)
        for reader in self._readers:
            reader.cancel()

    async def _read_responses(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        try:
            while line := await stdout.readline():
                self._take(line)
            self._fail(AdapterError("it closed its stdout while requests were under way"))
        except AdapterError as fault:
            self._fail(fault)
        except (ValueError, OSError) as error:
            self._fail(AdapterError(f"its stdout cannot be read: {error}"))

    def _take(self, line: bytes) -> None:
        try:
            response = json.loads(line)
            request_id = response["id"]
            well_formed = ("ok" in response) != ("error" in response)
        except (ValueError, TypeError, KeyError):
            raise AdapterError(f"it printed what is no response: {line[:200]!r}") from None
        if not well_formed:
            raise AdapterError(f'a response needs either "ok" or "error": {line[:200]!r}')
        waiting = self._waiting.pop(request_id, None)
        if waiting is None:
            raise AdapterError(f"it answered request {request_id}, which is not under way")
        if not waiting.done():
            waiting.set_result(response)

    def _fail(self, fault: AdapterError) -> None:
        self._fault = self._fault or fault
        waiting, self._waiting = self._waiting, {}
        for response in waiting.values():
            if not response.done():
                response.set_exception(fault)
                response.exception()  # retrieved: nobody may be waiting for it any more

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while line := await stderr.readline():
            self._stderr.append(line.decode(errors="replace").rstrip())
