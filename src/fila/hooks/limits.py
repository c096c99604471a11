"""Every limit of the hook layer: what a verdict may hold, and what a script may do.

Owns numbers only. Those an operator may change (time, memory, the breaker) are the fields of
`HookSettings` in `contract.py`.
"""

from __future__ import annotations

from typing import Final

from fila.core.verdict import DELAY_MS_MAX, WEIGHT_MAX

# What a verdict may hold. Beyond these the message gets the defaults and a failure is counted.
FAIRNESS_KEY_BYTES_MAX: Final = 512
THROTTLE_KEY_BYTES_MAX: Final = 512
THROTTLE_KEYS_MAX: Final = 16

# What a script may be, and what it is shown of a message.
SCRIPT_BYTES_MAX: Final = 32_768
HEADER_BYTES_MAX: Final = 16_384
HEADERS_MAX: Final = 256
ERROR_BYTES_MAX: Final = 4_096
PROBLEM_BYTES_MAX: Final = 400

# How a batch reaches Lua. Bodies are cut to `HEAD_BYTES`, which holds a few headers; a script that
# meets longer ones is given more from then on, up to `HEAD_BYTES_MAX`.
HEAD_BYTES: Final = 128
HEAD_BYTES_MAX: Final = 4_096
BATCH_MESSAGES_MAX: Final = 128
BATCH_BYTES_MAX: Final = 65_536
BATCH_BYTES_HARD_MAX: Final = 2 * BATCH_BYTES_MAX

# Time. A call with n messages may take `timeout_ms * (1 + n / MESSAGES_PER_EXTRA_TIMEOUT)` in all,
# so that slow scripts cannot hold the broker for `n * timeout_ms`; and `NS_PER_BODY_BYTE` on top,
# because reading long headers is no fault of the script's.
TIMEOUT_MS_MAX: Final = 60_000
MESSAGES_PER_EXTRA_TIMEOUT: Final = 100
NS_PER_BODY_BYTE: Final = 100
UNIFORMLY_SLOW_PART: Final = 40  # of the time limit: a script that takes this long for everybody

# Failures. Origins are remembered up to so many. Time-outs (and the like) within one cool-down:
# after `COSTLY_PER_THRESHOLD` for each failure the breaker takes, strangers are kept out; after
# `COSTLY_WORST_FACTOR` times as many the breaker opens. With the defaults: 0.24 and 0.96 s of 10 s.
ORIGINS_KEPT_MAX: Final = 1_024
ORIGINS_SHOWN_MAX: Final = 16
COSTLY_PER_THRESHOLD: Final = 8
COSTLY_WORST_FACTOR: Final = 4
COSTLY_GROSS: Final = 10
# What is known of a queue's messages: how keys are made, which were given, and messages that went
# well, kept to tell a broken script from a bad message.
LESSONS_MAX: Final = 8
KEYS_KNOWN_MAX: Final = 8_192
WITNESSES_MAX: Final = 8
WITNESSES_ASKED_MAX: Final = 3
CALLS_PER_WITNESS: Final = 64  # a power of two

# Memory. On top of the script's own limit there is room for garbage not yet collected and for a
# batch, so that handing over a batch can never fail: the Lua API would end the process.
MEMORY_LIMIT_BYTES_MIN: Final = 64 * 1024
MEMORY_LIMIT_BYTES_MAX: Final = 1024 * 1024 * 1024
MEMORY_RESERVE_BYTES: Final = 320 * 1024
COLLECT_EVERY_BYTES: Final = 160 * 1024

# Assignments are shared between messages; this many are remembered.
ASSIGNMENTS_KEPT_MAX: Final = 32_768
ASSIGNMENTS_KEPT_BYTES_MAX: Final = 4 * 1024 * 1024

CODE_DONE: Final = 0
CODE_PART: Final = 1
CODE_MORE: Final = 2
CODE_ASK: Final = 3
CODE_FAILED: Final = 4
CODE_FULL: Final = 5  # from `lua.py`: the script keeps too much memory to be given a batch

assert COLLECT_EVERY_BYTES + BATCH_BYTES_HARD_MAX < MEMORY_RESERVE_BYTES

# The same numbers by the names the Lua side knows them by.
LUA_LIMITS: Final[dict[str, int]] = {
    "weight_max": WEIGHT_MAX,
    "delay_ms_max": DELAY_MS_MAX,
    "fairness_key_bytes_max": FAIRNESS_KEY_BYTES_MAX,
    "throttle_key_bytes_max": THROTTLE_KEY_BYTES_MAX,
    "throttle_keys_max": THROTTLE_KEYS_MAX,
    "headers_max": HEADERS_MAX,
    "problem_bytes_max": PROBLEM_BYTES_MAX,
    "verdict_bytes_per_answer": 32 * 1024,
    "levels_searched": 50,
    "known_max": 256,
    "unknown_max": 4_096,
    "known_bytes_max": 160,
    # The guard: a look at the clock every so many instructions, more often once a script holds so
    # much memory that single instructions become slow.
    "instructions_per_check": 200,
    "instructions_per_check_tight": 10,
    "tight_bytes": 288 * 1024,
    "charge_per_check": 64 * 1024,
    "gross_overrun_factor": 5,
    "nested_pcalls_max": 100,
    # The library.
    "string_bytes_max": 1024 * 1024,
    "format_bytes_max": 512,
    "number_bytes_max": 200,
    "elements_max": 100_000,
    "elements_per_piece": 1_000,
    "results_max": 4_000,
    "pattern_bytes_max": 1_024,
    "pattern_steps_max": 500_000,
    "pattern_steps_free": 2_000,
    "patterns_kept_max": 64,
    # fila.get and the helpers.
    "config_entries_max": 1_024,
    "config_bytes_max": 64 * 1024,
    "config_key_bytes_max": 4_096,
    "backoff_base_ms": 1_000,
    "backoff_max_ms": 60_000,
}
LUA_CODES: Final[dict[str, int]] = {
    "done": CODE_DONE,
    "part": CODE_PART,
    "more": CODE_MORE,
    "ask": CODE_ASK,
    "failed": CODE_FAILED,
}
