"""What the race showed: the words before it, the tables after it, and the JSON.

Owns texts only; the numbers are the race's.
"""

from __future__ import annotations

from itertools import groupby
from statistics import median
from typing import Any, Final

from fila.cli.demo.race import FAIR, FIFO, NOISY, ON_ENQUEUE, QUIET, TENANTS, Delivered, Race
from fila.cli.output import table

_RUNS_SHOWN: Final = 6


def opening(race: Race) -> str:
    hook = "\n".join("    " + line for line in ON_ENQUEUE.splitlines())
    return f"""\
{NOISY} puts {race.noisy:,} messages into a queue.
Then {_listed(QUIET)} put {race.quiet:,} each.

Two queues get these messages in the same order. One has no hook, so it is FIFO;
the other has this one:

{hook}

Each queue has one worker, which handles {race.rate:,} messages a second.
"""


def closing(race: Race) -> str:
    order = table(
        ("TENANT", "MESSAGES", "ARRIVED AS", "FIFO DELIVERED AS", "FILA DELIVERED AS"),
        [
            (
                tenant,
                race.sent_by(tenant),
                _span(_arrivals(race, tenant)),
                _span(_deliveries(race, FIFO, tenant)),
                _span(_deliveries(race, FAIR, tenant)),
            )
            for tenant in TENANTS
        ],
    )
    waits = table(
        ("TENANT", "FIFO MEDIAN", "FIFO LONGEST", "FILA MEDIAN", "FILA LONGEST"),
        [
            (
                tenant,
                *(
                    _seconds(number)
                    for queue in (FIFO, FAIR)
                    for number in _waits_ms(race, queue, tenant)
                ),
            )
            for tenant in TENANTS
        ],
    )
    return f"""
Who was served first
  FIFO  {_beginning(race.delivered[FIFO])}
  Fila  {_beginning(race.delivered[FAIR])}

Position in the order of arrival and of delivery
{_indented(order)}

Time from stored to handled
{_indented(waits)}

{_verdict(race)}"""


def document(race: Race) -> dict[str, Any]:
    return {
        "rate_per_second": race.rate,
        "tenants": [
            {
                "tenant": tenant,
                "messages": race.sent_by(tenant),
                "arrived": _ends(_arrivals(race, tenant)),
                "fifo": _queue_document(race, FIFO, tenant),
                "fila": _queue_document(race, FAIR, tenant),
            }
            for tenant in TENANTS
        ],
    }


def _queue_document(race: Race, queue: str, tenant: str) -> dict[str, Any]:
    middle_ms, longest_ms = _waits_ms(race, queue, tenant)
    return {
        "delivered": _ends(_deliveries(race, queue, tenant)),
        "waited_median_ms": middle_ms,
        "waited_longest_ms": longest_ms,
    }


def _verdict(race: Race) -> str:
    last_quiet = {
        queue: max(_deliveries(race, queue, tenant)[-1] for tenant in QUIET)
        for queue in (FIFO, FAIR)
    }
    longest_ms = {
        queue: max(_waits_ms(race, queue, tenant)[1] for tenant in QUIET) for queue in (FIFO, FAIR)
    }
    return (
        f"FIFO had served the quiet tenants after {last_quiet[FIFO]:,} deliveries, "
        f"Fila after {last_quiet[FAIR]:,}.\n"
        f"Their longest wait: {_seconds(longest_ms[FIFO])} in FIFO order, "
        f"{_seconds(longest_ms[FAIR])} with Fila."
    )


def _arrivals(race: Race, tenant: str) -> list[int]:
    return [position for position, one in enumerate(race.arrivals, 1) if one == tenant]


def _deliveries(race: Race, queue: str, tenant: str) -> list[int]:
    return [
        position for position, one in enumerate(race.delivered[queue], 1) if one.tenant == tenant
    ]


def _waits_ms(race: Race, queue: str, tenant: str) -> tuple[int, int]:
    """The median and the longest."""
    waits = [one.waited_ms for one in race.delivered[queue] if one.tenant == tenant]
    return int(median(waits)), max(waits)


def _beginning(delivered: list[Delivered]) -> str:
    """`3 × noisy-corp, acme, …`: who was served, as long as it fits on a line."""
    runs = [
        (tenant, sum(1 for _ in run)) for tenant, run in groupby(delivered, lambda one: one.tenant)
    ]
    shown = [
        f"{length:,} × {tenant}" if length > 1 else tenant for tenant, length in runs[:_RUNS_SHOWN]
    ]
    return ", ".join([*shown, "…"])


def _ends(positions: list[int]) -> dict[str, int]:
    return {"first": positions[0], "last": positions[-1]}


def _span(positions: list[int]) -> str:
    return f"{positions[0]:,} to {positions[-1]:,}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"


def _listed(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
