"""What hooks cost: none, one that reads a header, one that reads two and sets all three values.

All three loads carry the same headers, so only the hook differs.
"""

from __future__ import annotations

from bench.system.contest import Entry, lifecycles
from bench.system.frames import TENANT_HOOK
from bench.system.lab import Lab

CONSTANT = 'function on_enqueue(msg) return { fairness_key = "default" } end'
EVERYTHING = """function on_enqueue(msg)
  local tenant = msg.headers["tenant"]
  return {
    fairness_key = tenant,
    weight = msg.headers["weight"] or 2,
    throttle_keys = { "tenant:" .. tenant },
  }
end"""


def run(lab: Lab) -> None:
    entries = {
        "none": Entry(on_enqueue=None),
        "constant key": Entry(on_enqueue=CONSTANT),
        "key from a header": Entry(on_enqueue=TENANT_HOOK),
        "key, weight and throttle key": Entry(on_enqueue=EVERYTHING),
    }
    for name, metrics in lifecycles(lab, entries).items():
        lab.add("hooks", {"hook": name}, metrics)
