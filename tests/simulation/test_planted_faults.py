"""The auditor bites: each planted fault is noticed, and the same seed is clean without it."""

from __future__ import annotations

import pytest

from .faults import COMPILED, FAULTS, SEEDS_MAX, Fault, fault, first_caught, planted
from .run import run_seed

pytestmark = pytest.mark.skipif(COMPILED, reason="faults are planted in the pure form of the core")


@pytest.mark.parametrize("one", FAULTS, ids=[one.name.replace(" ", "_") for one in FAULTS])
def test_the_simulation_notices(one: Fault) -> None:
    caught = first_caught(one, SEEDS_MAX)
    assert caught is not None, f"{SEEDS_MAX} seeds ran and nothing was noticed"
    assert f"again: make simulate SEED={caught.seed}" in caught.report
    assert caught.promise in caught.report
    sound = run_seed(caught.seed)
    assert not sound.promise, f"seed {caught.seed} fails without the fault, too\n{sound.report}"


def test_there_are_faults_enough_and_each_has_a_name_of_its_own() -> None:
    assert len({one.name for one in FAULTS}) == len(FAULTS) >= 14


def test_a_fault_whose_line_is_gone_says_so() -> None:
    gone = fault("gone", "fila.core.delivery:fill", "a line that is not there", "pass")
    with pytest.raises(AssertionError, match="write the fault anew"), planted(gone):
        pass


def test_a_planted_fault_is_taken_out_again() -> None:
    from fila.core import delivery, settlement

    before = delivery.fill, settlement.ack
    for one in FAULTS:
        with planted(one):
            pass
    assert (delivery.fill, settlement.ack) == before
