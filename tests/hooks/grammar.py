"""Random Lua from a grammar that compiles nearly always and prefers what could hurt."""

from __future__ import annotations

import random

NAMES = [
    *(
        "msg",
        "msg.headers",
        "msg.headers.tenant",
        "msg.queue",
        "msg.error",
        "msg.attempts",
        "x",
        "y",
    ),
    *("t", "s", "_G", "_ENV", "string", "table", "math", "utf8", "fila", "fila.helpers", "self"),
    *("io", "os", "debug", "python", "package", "coroutine", "load", "require", "print"),
]
FUNCTIONS = [
    *("string.rep", "string.find", "string.match", "string.gsub", "string.gmatch", "string.format"),
    *("string.byte", "string.char", "string.sub", "string.upper", "string.reverse", "string.len"),
    *("table.concat", "table.insert", "table.remove", "table.sort", "table.unpack", "table.move"),
    *("table.pack", "pcall", "xpcall", "error", "assert", "select", "tonumber", "tostring", "type"),
    *("next", "pairs", "ipairs", "rawget", "rawset", "rawequal", "rawlen", "setmetatable", "load"),
    *("getmetatable", "collectgarbage", "math.floor", "math.random", "math.tointeger", "math.max"),
    *("utf8.len", "utf8.char", "utf8.codepoint", "utf8.offset", "utf8.codes", "fila.get"),
    *("fila.helpers.exponential_backoff", "fila.helpers.tenant_route", "fila.helpers.max_retries"),
    *("fila.helpers.rate_limit_keys", "f", "g", "string.dump", "os.exit", "io.open", "require"),
]
NUMBERS = [
    *("0", "1", "-1", "2", "7", "100", "1000", "65536", "1e5", "1e308", "-1e308", "0.5", "0/0"),
    *("1/0", "-1/0", "math.maxinteger", "math.mininteger", "2^53", "0x7fffffff", "1 << 62"),
]
STRINGS = [
    *("''", "'a'", "'acme'", "'%d+'", "'.-.-b'", "'(.*)(.*)%1'", "'%b()'", "'%f[%w]'", "'[^a'"),
    *(
        "'%'",
        "'%s %d %q'",
        "'%p'",
        "'x\\0y'",
        "'\\xff\\xfe'",
        "('x'):rep(300)",
        "('ab'):rep(40000)",
    ),
    *("'{tenant}'", "'dlq'", "'retry'", "'fairness_key'", "'__index'", "'__gc'", "'k' .. #msg"),
]
OPERATORS = [*"+-*/%^<>&|~", "//", "..", "==", "~=", "<=", ">=", "and", "or", "<<", ">>"]
FIELDS = ["fairness_key", "weight", "throttle_keys", "action", "delay_ms", "x", "headers", "n"]


class Grammar:
    """Expressions, statements and whole scripts, all from one generator of random numbers."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def script(self, hook: str) -> str:
        before = f"pcall(function() {self._block(self._rng.randrange(3), 2)} end)"
        body = "\n".join(self._caught(3) for _ in range(self._rng.randrange(1, 7)))
        helper = f"local function f(x, y) {self._block(2, 2)} return {self._expression(2)} end"
        return (
            f"{before}\n{helper}\nfunction {hook}(msg, ...)\n"
            f"local x, y, t, s = 1, 'y', {{}}, 'abc'\n{body}\nreturn {self._answer()}\nend\n"
        )

    def _answer(self) -> str:
        if self._rng.random() < 0.1:
            return self._expression(3)
        fields = self._rng.sample(FIELDS, self._rng.randrange(1, 5))
        values = [f"select(2, pcall(function() return {self._expression(2)} end))" for _ in fields]
        return "{ " + ", ".join(f"{a} = {b}" for a, b in zip(fields, values, strict=True)) + " }"

    def _caught(self, depth: int) -> str:
        """A statement, mostly inside pcall: an error at once would hide what comes after it."""
        if self._rng.random() < 0.1:
            return self._statement(depth)
        return f"pcall(function() {self._statement(depth)} end)"

    def _block(self, statements: int, depth: int) -> str:
        return "\n".join(self._statement(depth) for _ in range(statements))

    def _statement(self, depth: int) -> str:
        rng = self._rng
        kind = rng.randrange(13) if depth > 0 else rng.randrange(4)
        e, block = self._expression, self._block
        if kind == 0:
            return f"{rng.choice(['x', 'y', 't', 's', 'g', 'local z'])} = {e(depth)}"
        if kind == 1:
            return f"do local v = {e(1)} if type(v) == 'table' then v[{e(1)}] = {e(depth)} end end"
        if kind in (2, 3):
            return f"do local _ = {self._call(depth)} end"
        if kind == 4:
            return f"if {e(2)} then {block(2, depth - 1)} else {block(1, depth - 1)} end"
        if kind == 5:
            return f"for i = {e(0)}, {e(0)} do {block(2, depth - 1)} end"
        if kind == 6:
            return f"for k, v in pairs({e(1)}) do {block(1, depth - 1)} end"
        if kind == 7:
            return f"while {e(2)} do {block(1, depth - 1)} end"
        if kind == 8:
            return f"repeat {block(1, depth - 1)} until {e(2)}"
        if kind == 9:
            return f"pcall(function(...) {block(2, depth - 1)} end, {e(1)})"
        if kind == 10:
            return f"xpcall(function() {block(1, depth - 1)} end, function(e) {block(1, 1)} end)"
        if kind == 11:
            return f"local z <close> = {rng.choice(['nil', 'nil', e(1)])}"
        return f"local function g(...) {block(1, depth - 1)} return {e(1)} end"

    def _expression(self, depth: int) -> str:
        rng = self._rng
        kind = rng.randrange(10) if depth > 0 else rng.randrange(3)
        e = self._expression
        if kind == 0:
            return rng.choice(NAMES)
        if kind == 1:
            return rng.choice(NUMBERS)
        if kind == 2:
            return rng.choice(STRINGS)
        if kind == 3:
            return f"({e(depth - 1)} {rng.choice(OPERATORS)} {e(depth - 1)})"
        if kind == 4:
            return f"({rng.choice(['not ', '-', '#', '~'])}{e(depth - 1)})"
        if kind == 5:
            items = ", ".join(e(depth - 1) for _ in range(rng.randrange(4)))
            return f"{{ {items} }}"
        if kind == 6:
            return f"({e(depth - 1)})[{e(depth - 1)}]"
        if kind == 7:
            return f"function(a, b) {self._block(1, depth - 1)} return {e(depth - 1)} end"
        return self._call(depth)

    def _call(self, depth: int) -> str:
        count = self._rng.randrange(5)
        arguments = ", ".join(self._expression(depth - 1) for _ in range(count))
        if self._rng.random() < 0.15:
            method = self._rng.choice(
                ["rep", "find", "gsub", "sub", "format", "dump", "upper", "x"]
            )
            return f"({self._expression(depth - 1)}):{method}({arguments})"
        return f"{self._rng.choice(FUNCTIONS)}({arguments})"
