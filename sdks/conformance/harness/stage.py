"""One scenario on one adapter: the broker, the peers, the witness and the steps in order.

Owns the variables, the interpretation of steps, and what is said when one fails.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import Awaitable
from typing import Any

from adapters.python import Session
from harness import vectors
from harness.adapter import Adapter, AdapterError
from harness.broker import Broker
from harness.certificates import Certificates
from harness.expect import difference
from harness.load import collect, produce
from harness.peer import Peer
from harness.scenario import COMMON, RUNNER_OPS, Scenario

Json = dict[str, Any]
ANSWER_S = 30.0
WAIT_S = 30.0
MIB = 1 << 20
_VARIABLE = re.compile(r"\{([a-z_][a-z0-9_.]*)\}")


class StepError(Exception):
    """A step did not go as it should."""


class Kept(dict[str, Any]):
    """A saved answer whose entries are attributes, for `check`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Stage:
    def __init__(
        self,
        scenario: Scenario,
        adapter: Adapter,
        broker: Broker | None,
        certificates: Certificates,
        retryable: Json,
    ) -> None:
        self._scenario = scenario
        self._adapter = adapter
        self._broker = broker
        self._certificates = certificates
        self._retryable = retryable  # by error code name, from the catalogue
        self._witness = Session()
        self._witness_id = 0
        self._peers: dict[str, Peer] = {}
        self._saved: Json = {}
        self._background: dict[str, tuple[Json, int, asyncio.Future[Json]]] = {}

    async def play(self) -> None:
        """Raises StepError, AdapterError or TimeoutError when it does not pass."""
        try:
            async with asyncio.timeout(self._scenario.limit_s):
                await self._set_up()
                for number, step in enumerate(self._scenario.steps, 1):
                    await self._take_step(number, step)
        except TimeoutError:
            raise StepError(f"not over within {self._scenario.limit_s:g} s") from None
        finally:
            await self._tear_down()

    async def _set_up(self) -> None:
        self._saved |= self._certificates.names()
        self._saved["long"] = "x" * 65_536  # one byte more than a string may have
        if self._scenario.broker is None or self._broker is None:
            return
        self._saved |= {"broker": self._broker.address, "key": self._broker.api_key}
        options: Json = {"reconnect_pause_max_ms": 200}
        if self._scenario.broker.get("tls"):
            options |= {
                "ca": self._certificates.ca,
                "cert": self._certificates.client,
                "key": self._certificates.client_key,
            }
        if self._broker.api_key:
            options["api_key"] = self._broker.api_key
        fields = {"client": "witness", "address": self._broker.address, "options": options}
        answer = await self._ask_witness("connect", fields)
        if "error" in answer:
            raise StepError(f"the witness cannot connect: {answer['error']}")

    async def _tear_down(self) -> None:
        for _, _, response in self._background.values():
            response.cancel()
        await self._witness.end()
        for peer in self._peers.values():
            await peer.close()

    # Steps.

    async def _take_step(self, number: int, step: Json) -> None:
        try:
            if "repeat" in step:
                answers = await self._repeated(step)
                if "save" in step:
                    self._saved[step["save"]] = answers
            else:
                answer = await self._once(step)
                if "save" in step:
                    self._saved[step["save"]] = answer
        except StepError as why:
            note = f" [{step['note']}]" if "note" in step else ""
            raise StepError(f"step {number} ({step['op']}){note}: {why}") from None

    async def _repeated(self, step: Json) -> list[Any]:
        count = step["repeat"]
        count = int(self._value(count)) if isinstance(count, str) else count
        if step.get("parallel"):
            steps = [self._once(self._filled(step, {"i": str(i)})) for i in range(count)]
            return list(await asyncio.gather(*steps))
        return [await self._once(self._filled(step, {"i": str(i)})) for i in range(count)]

    async def _once(self, step: Json) -> Any:
        step = self._filled(step, {})
        op = step["op"]
        if op in RUNNER_OPS:
            return await getattr(self, "_do_" + op)(step)
        fields = {name: value for name, value in step.items() if name not in COMMON}
        if op == "abort":
            fields = {"request": self._background[step["name"]][1]}
        _write_payloads(fields)
        if step.get("by") == "witness":
            fields.setdefault("client", "witness")
            request_id = 0
            response: asyncio.Future[Json] = asyncio.ensure_future(self._ask_witness(op, fields))
        else:
            request_id, response = self._adapter.ask(op, fields)
        if "background" in step:
            self._background[step["background"]] = (step, request_id, response)
            return None
        return await self._judged(step, response)

    async def _judged(self, step: Json, response: asyncio.Future[Json]) -> Any:
        """The answer, when it is what the step expects."""
        limit_s = step["within_ms"] / 1000 if "within_ms" in step else ANSWER_S
        try:
            answer = await asyncio.wait_for(asyncio.shield(response), limit_s)
        except TimeoutError:
            raise StepError(f"no answer within {limit_s:g} s") from None
        except AdapterError as fault:
            raise StepError(f"the adapter is at fault: {fault}") from None
        if "fails" in step:
            return self._judged_error(step, answer)
        if "error" in answer:
            raise StepError(f"it failed: {answer['error']}")
        kept = _kept(answer["ok"])
        _read_texts(kept)
        if "expect" in step and (wrong := difference(step["expect"], kept)):
            raise StepError(wrong)
        return kept

    def _judged_error(self, step: Json, answer: Json) -> Any:
        allowed = [step["fails"]] if isinstance(step["fails"], str) else step["fails"]
        error = answer.get("error") or _common_error(answer["ok"])
        if error is None:
            raise StepError(
                f"it succeeded with {answer['ok']!r:.300}, expected {' or '.join(allowed)}"
            )
        if error.get("code") not in allowed:
            raise StepError(f"it failed with {error}, expected {' or '.join(allowed)}")
        if not error.get("message"):
            raise StepError(f"{error['code']} came without a text")
        if step.get("says", "") not in error["message"]:
            raise StepError(f"{error['code']} says {error['message']!r}, not {step['says']!r}")
        self._check_retryable(error)
        return _kept(error)

    def _check_retryable(self, error: Json) -> None:
        expected = self._retryable.get(error["code"])
        if expected is not None and error.get("retryable") is not expected:
            raise StepError(f"{error['code']} must have retryable {expected}: {error}")

    async def _ask_witness(self, op: str, fields: Json) -> Json:
        self._witness_id += 1
        return await self._witness.handle({"id": self._witness_id, "op": op, **fields})

    # The runner's own operations.

    async def _do_check(self, step: Json) -> None:
        if not self._evaluated(step["that"], {}):
            raise StepError(f"{step['that']} does not hold: {self._told(step['that'])}")

    async def _do_let(self, step: Json) -> None:
        self._saved[step["name"]] = self._evaluated(step["that"], {})

    async def _do_sleep(self, step: Json) -> None:
        await asyncio.sleep(step["ms"] / 1000)

    async def _do_kill(self, step: Json) -> None:
        await self._the_broker().kill()

    async def _do_stop(self, step: Json) -> None:
        await self._the_broker().stop()

    async def _do_start(self, step: Json) -> None:
        await self._the_broker().start()

    async def _do_freeze(self, step: Json) -> None:
        self._the_broker().freeze()

    async def _do_thaw(self, step: Json) -> None:
        self._the_broker().thaw()

    async def _do_await(self, step: Json) -> Any:
        _, _, response = self._background.pop(step["name"])
        return await self._judged(step, response)

    async def _do_peer(self, step: Json) -> None:
        peer = Peer(step["script"], step.get("leader", ""), step.get("first", 0))
        await peer.start(self._certificates if step.get("tls") else None)
        self._peers[step["name"]] = peer
        self._saved[step["name"]] = peer.address

    async def _do_peer_points(self, step: Json) -> None:
        self._peers[step["name"]].leader = step["leader"]

    async def _do_peer_wait(self, step: Json) -> None:
        peer = self._peers[step["name"]]
        deadline = asyncio.get_running_loop().time() + step.get("within_ms", WAIT_S * 1000) / 1000
        while not self._evaluated(step["that"], {"seen": _kept(peer.seen)}):
            if asyncio.get_running_loop().time() > deadline:
                raise StepError(f"{step['that']} did not come to hold; the peer saw {peer.seen}")
            await asyncio.sleep(0.02)

    async def _do_peer_send(self, step: Json) -> None:
        self._peers[step["name"]].send_raw(bytes.fromhex(step["raw"]))

    async def _do_produce(self, step: Json) -> Any:
        work = produce(self._call, step)
        return await self._maybe_background(step, work)

    async def _do_collect(self, step: Json) -> Any:
        until = self._evaluated(step["until"], {}) if "until" in step else None
        work = collect(self._call, step, until)
        return await self._maybe_background(step, work)

    async def _maybe_background(self, step: Json, work: Awaitable[Json]) -> Any:
        task = asyncio.ensure_future(_as_response(work))
        if "background" in step:
            self._background[step["background"]] = (step, 0, task)
            return None
        step.setdefault("within_ms", self._scenario.limit_s * 1000)
        return await self._judged(step, task)

    async def _do_until(self, step: Json) -> Any:
        """Repeat a call until its answer satisfies; the last answer."""
        deadline = asyncio.get_running_loop().time() + step.get("within_ms", WAIT_S * 1000) / 1000
        while True:
            answer = await self._once(step["call"])
            if self._evaluated(step["that"], {"it": answer}):
                return answer
            if asyncio.get_running_loop().time() > deadline:
                raise StepError(f"{step['that']} did not come to hold; last answer {answer!r:.300}")
            await asyncio.sleep(step.get("every_ms", 50) / 1000)

    async def _do_consume_fails(self, step: Json) -> Any:
        known = ("client", "consumer", "queue", "prefetch")
        fields = {name: step[name] for name in known if name in step}
        answer = await self._call("consume", fields)
        if "ok" in answer:
            reading = {"consumer": step["consumer"], "max": 1, "timeout_ms": 15_000}
            answer = await self._call("next", reading)
        return self._judged_error(step, answer)

    async def _do_vectors(self, step: Json) -> Json:
        async def ask(op: str, fields: Json) -> Json:
            _, response = self._adapter.ask(op, fields)
            return await asyncio.wait_for(response, ANSWER_S)

        try:
            faults = await vectors.run(step["kind"], step["files"], ask)
        except (TimeoutError, AdapterError) as error:
            raise StepError(f"the adapter is at fault: {error or 'no answer'}") from None
        if faults:
            shown = "\n  ".join(faults[:10])
            raise StepError(f"{len(faults)} vectors differ:\n  {shown}")
        return {}

    async def _call(self, op: str, fields: Json) -> Json:
        """A request of `produce` or `collect`; the whole response."""
        _write_payloads(fields)
        _, response = self._adapter.ask(op, fields)
        try:
            answer = await asyncio.wait_for(asyncio.shield(response), ANSWER_S)
        except TimeoutError:
            raise StepError(f"{op}: no answer within {ANSWER_S:g} s") from None
        except AdapterError as fault:
            raise StepError(f"the adapter is at fault: {fault}") from None
        _read_texts(answer.get("ok"))
        return answer

    # Variables.

    def _the_broker(self) -> Broker:
        assert self._broker is not None, "the scenario has no [broker]"
        return self._broker

    def _filled(self, value: Any, more: Json) -> Any:
        """The value with its variables filled in."""
        if isinstance(value, dict):
            return {
                name: one if name in ("that", "until", "call") else self._filled(one, more)
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._filled(one, more) for one in value]
        if not isinstance(value, str):
            return value
        whole = _VARIABLE.fullmatch(value)
        if whole and self._knows(whole[1], more):
            return self._looked_up(whole[1], more)
        return _VARIABLE.sub(
            lambda found: str(self._looked_up(found[1], more))
            if self._knows(found[1], more) else found[0],
            value,
        )  # fmt: skip

    def _knows(self, name: str, more: Json) -> bool:
        return name.partition(".")[0] in {**self._saved, **more}

    def _looked_up(self, path: str, more: Json) -> Any:
        value: Any = {**self._saved, **more}
        for part in path.split("."):
            value = value[int(part)] if part.isdigit() else value[part]
        return value

    def _value(self, text: str) -> Any:
        return self._filled(text, {})

    def _evaluated(self, expression: str, more: Json) -> Any:
        functions: Json = {
            "len": len, "set": set, "sorted": sorted, "sum": sum, "min": min, "max": max,
            "all": all, "any": any, "range": range, "str": str, "list": list, "abs": abs,
            "sha256_of": _sha256_of, "MiB": MIB,
        }  # fmt: skip
        # One namespace, because a generator inside an expression does not see eval's locals.
        names = {"__builtins__": {}, **functions, **self._saved, **more}
        try:
            return eval(expression, names)
        except (AttributeError, KeyError, IndexError, TypeError) as error:
            raise StepError(f"{expression}: {error!r}") from None

    def _told(self, expression: str) -> str:
        """The saved values an expression speaks of."""
        named = [name for name in self._saved if re.search(rf"\b{re.escape(name)}\b", expression)]
        return ", ".join(f"{name} = {self._saved[name]!r:.300}" for name in named)


async def _as_response(work: Awaitable[Json]) -> Json:
    return {"ok": await work}


def _common_error(answer: Any) -> Json | None:
    """A call for many that failed as a whole may say so for each item."""
    results = answer.get("results") if isinstance(answer, dict) else None
    if not results or not all(isinstance(one, dict) and "error" in one for one in results):
        return None
    first: Json = results[0]["error"]
    same = all(one["error"].get("code") == first.get("code") for one in results)
    return first if same else None


def _sha256_of(unit: str, count: int) -> str:
    return hashlib.sha256(unit.encode() * count).hexdigest()


def _write_payloads(fields: Json) -> None:
    """`text` and `repeat_text` with `size` become payloads."""
    for one in [fields, *fields.get("messages", ())]:
        if not isinstance(one, dict):
            continue
        if "text" in one:
            one["payload"] = base64.b64encode(str(one.pop("text")).encode()).decode()
        elif "repeat_text" in one:
            unit = one.pop("repeat_text").encode()
            repeat = base64.b64encode(unit).decode()
            one["payload"] = {"repeat": repeat, "count": one.pop("size") // len(unit)}


def _read_texts(answer: Any) -> None:
    """Short payloads also as text, for expectations."""
    messages = answer.get("messages", ()) if isinstance(answer, dict) else ()
    for message in messages:
        if isinstance(message, dict) and isinstance(message.get("payload"), str):
            message["text"] = base64.b64decode(message["payload"]).decode(errors="replace")


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return Kept({name: _kept(one) for name, one in value.items()})
    return [_kept(one) for one in value] if isinstance(value, list) else value
