"""Every mechanism against an independent computation, on three hundred random instances; the tests take thirty."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import test_market as market

CHECKS = (
    market.test_nash_welfare_equals_an_independent_computation,
    market.test_leximin_equals_an_independent_computation,
    market.test_leximin_has_one_level_and_is_gavel_between_rows,
    market.test_leximin_is_found_where_numbers_are_far_apart,
    market.test_dictatorship_equals_an_independent_computation,
    market.test_drf_equals_filling_in_small_steps,
    market.test_partial_allocation_equals_an_independent_computation,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_three_hundred_instances(bench, check: Callable[[int], None]) -> None:  # type: ignore[no-untyped-def]
    """Check a mechanism on seeds 0 to 299; a difference fails."""

    def every() -> None:
        for seed in range(300):
            check(seed)

    name = check.__name__.removeprefix("test_").replace("_", " ")
    bench.line(name, bench.time(every, rounds=1), None, "300 instances without a difference")
