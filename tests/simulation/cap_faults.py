"""Planted faults about in-flight caps (`core/caps.py`)."""

from __future__ import annotations

from .planting import fault

CAP_FAULTS = [
    fault(
        "a cap lets one more go than there are slots",
        "fila.core.bucket:Cap.slots",
        "limit - self.in_flight if limit > self.in_flight",
        "limit - self.in_flight + 1 if limit >= self.in_flight",
    ),
    fault(
        "a lease that ends keeps its slot",
        "fila.core.caps:free_slots",
        "cap.in_flight -= count",
        "pass",
    ),
    fault(
        "nobody is woken when a slot is free",
        "fila.core.caps:free_slots",
        "if cap.waiters:",
        "if False:",
    ),
    fault(
        "a restart forgets what is in flight",
        "fila.core.load:_load_leases",
        "leased_more(lane, 1)",
        "pass",
    ),
    fault(
        "a deleted queue keeps its slots of throttle keys",
        "fila.core.catalogue:_forget_lanes",
        "free_slots(state, lane, lane.leased)",
        "pass",
    ),
    fault(
        "a raised limit of a queue's keys wakes nobody",
        "fila.core.caps:set_cap_of_keys",
        "state.freed.update(queue.full_caps)",
        "pass",
    ),
    fault(
        "a cap that comes late counts from nothing",
        "fila.core.caps:own",
        "cap.in_flight += lane.leased",
        "pass",
    ),
    fault(
        "a new lane of a capped key has no cap",
        "fila.core.state:State.add_lane",
        "caps.append(key.cap)",
        "pass",
    ),
    fault(
        "a queue with new settings forgets its limit in flight",
        "fila.core.versions:_follow",
        "queue.max_in_flight_per_key,",
        "0,",
    ),
    fault(
        "time at a cap counts as throttled",
        "fila.core.caps:account",
        "if waits[at].throttled:",
        "if False:",
    ),
]
