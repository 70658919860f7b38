"""The gaps that column generation promises for Hadar's problem, checked in tests and in ``make bench``."""

from __future__ import annotations

import pytest

from schedgap import instances, models
from schedgap.instances.registry import PAPERS
from schedgap.models.engine.columns import GenerationOptions, generate, lagrangian
from schedgap.models.engine.gangs.pricing import GangPricing
from schedgap.models.engine.solve import SolveOptions


def within_the_promised_gaps(ref: str) -> None:
    """Assert that the bound is within 0.1 % of the LP optimum, and the schedule within 2 % of the bound."""
    view = PAPERS.get("hadar").view(instances.load(ref))
    solution = models.get("hadar.p2.columns").run(view, SolveOptions(nodes=1000, rel_gap=0.02)).solution
    assert solution.bound is not None
    assert solution.objective >= 0.98 * solution.bound
    oracle = GangPricing(view, several=False)
    generated = generate(oracle.anything, oracle)
    assert generated.bound - generated.value <= 1e-3 * generated.value
    again = generate(oracle.anything, oracle, GenerationOptions(gap=1e-5), master=generated.master)
    assert abs(generated.bound - again.value) <= 3e-4 * again.value  # the master now keeps every slot
    assert generated.unpriced <= 1e-5 * generated.bound
    # A fresh pricing finds the same bound at these prices.
    again = GangPricing(view, several=False)
    again(generated.prices, again.anything)  # how fine it must be is relative to the pricing before
    most = again(generated.prices, again.anything).most
    assert lagrangian(oracle.anything, generated.prices, most) == pytest.approx(generated.bound, rel=1e-5)
