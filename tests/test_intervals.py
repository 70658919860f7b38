"""Bounds over intervals of time: pricing finds what an LP finds, and cutting intervals keeps the best bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from schedgap.instances.arrays import Array, Ints
from schedgap.models.engine.fluid.intervals import Fluid, IntervalPricing, completions, least_completion
from schedgap.models.engine.fluid.single_machine import FluidJobs, Ways, best_bound
from schedgap.models.engine.solve import SolveOptions

D = 2


@dataclass(frozen=True, eq=False)
class Random(FluidJobs):
    """Random fluid jobs, each with three ways to run and needs ``(q, D)`` by way."""

    need: Array
    time: Array
    together: bool

    @property
    def ways(self) -> Ways:
        n = len(self.start)
        return Ways(np.arange(n) * 3, self.time, np.arange(n), np.ones(n), self.together)

    def cost(self, weights: Array) -> Array:
        return np.asarray(self.need @ weights)

    def takes(self, weights: Array, which: Ints) -> Array:
        return np.asarray(self.need[which])


def jobs(seed: int, n: int, together: bool) -> Random:
    """Return random fluid jobs on two resources."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 9, 3 * n).astype(float)
    by_job = time.reshape(n, 3)
    alone = 1 / (1 / by_job).sum(axis=1) if together else by_job.min(axis=1)
    start = rng.integers(0, 4, n).astype(float)
    return Random(
        start=start, alone=alone, earliest=start + alone, weight=rng.integers(1, 6, n).astype(float),
        group=np.zeros(D, np.int64), speed=np.ones(D), need=rng.integers(0, 5, (3 * n, D)) / 2.0, time=time,
        together=together,
    )  # fmt: skip


def by_lp(fluid: Fluid, job: int, last: int, prices: Array) -> float:
    """Return the payoff of a job's best column that ends in an interval, by an LP over intervals and ways."""
    run, goal, edges = fluid.run, fluid.goal, fluid.edges
    room = np.maximum(np.diff(edges) - np.maximum(run.start[job] - edges[:-1], 0), 0)[: last + 1]
    ways = slice(3 * job, 3 * job + 3)
    assert isinstance(run, Random)
    speed, cost = 1 / run.time[ways], (run.need[ways] @ prices[:, : last + 1]).T * (1 / run.time[ways])
    size = 3 * (last + 1)
    shared = np.kron(np.eye(last + 1), np.ones(3))
    over = np.append(np.where(np.arange(size) // 3 == last, np.tile(speed, last + 1), 0.0), -1.0)
    limits = np.eye(size) if run.together else shared
    rows = np.vstack([np.column_stack((limits, np.zeros(len(limits)))), over])
    upper = np.append(np.repeat(room, 3) if run.together else room, goal.free[job, last])
    found = linprog(
        np.append(cost.ravel(), goal.slope[job, last]), A_ub=rows, b_ub=upper,
        A_eq=np.append(np.tile(speed, last + 1), 0.0)[None], b_eq=[1.0],
    )  # fmt: skip
    return goal.value[job, last] - found.fun if found.status == 0 else -np.inf


@settings(max_examples=examples(30))
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 1.0]))
def test_pricing_is_an_lp_over_ways_and_intervals(seed: int, together: bool, grain: float) -> None:
    run = jobs(seed, 2, together)
    edges = np.array([0.0, 1, 3, 4, 8, 30])
    fluid = Fluid(run, edges, completions(run, edges, grain), must=True)
    pricing = IntervalPricing(fluid)
    prices = np.random.default_rng(seed + 1).integers(0, 4, (D, 5)) / 2.0
    found = pricing(prices.ravel(), pricing.domain)
    for job in range(2):
        wanted = max(by_lp(fluid, job, k, prices) for k in range(5) if np.isfinite(fluid.goal.value[job, k]))
        assert found.most[job] == pytest.approx(wanted, abs=1e-7)
    # A column attains what is promised, so that the master can reach the bound.
    assert pricing.domain.profit(found.columns, prices.ravel()) == pytest.approx(found.most, abs=1e-6)


@pytest.mark.parametrize("together", [False, True])
def test_prices_over_time_are_no_worse_than_one_machine(together: bool) -> None:
    """The bound is at least that of each job alone and, but for the intervals' length, that of one machine."""
    run = jobs(7, 3, together)
    found, fluid = least_completion(run, 1.0, SolveOptions())
    assert -found.bound >= run.weight @ run.earliest * (1 - 1e-9)
    finest = float(np.diff(fluid.edges[:-1]).max())
    assert -found.bound >= best_bound(run)[1] - run.weight.sum() * finest
