"""Jobs in copies by column generation: optima equal those of a MILP over servers, decisions are valid, bounds hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from schedgap import instances, models
from schedgap.harness.check import judge
from schedgap.heuristics import HEURISTICS
from schedgap.instances.canonical import validate
from schedgap.instances.registry import PAPERS
from schedgap.instances.views import hadar
from schedgap.instances.views.hadar import FORKED, HadarView
from schedgap.models.engine.gangs.copies import ForkedPricing
from schedgap.models.engine.solve import Seed, SolveOptions


@st.composite
def clusters(draw: Any) -> HadarView:
    """Draw a view of up to three jobs on up to four servers of different sizes and types, in a few slots."""
    types = [f"T{r}" for r in range(draw(st.integers(1, 3)))]
    servers = [
        {"name": f"s{i}", "count": 1, "gpu_type": draw(st.sampled_from(types)), "gpus": draw(st.integers(1, 3))}
        for i in range(draw(st.integers(1, 4)))
    ]
    jobs = [
        {
            "id": f"J{i}",
            "gpus": draw(st.integers(1, min(3, sum(s["gpus"] for s in servers)))),
            "epochs": draw(st.integers(1, 12)),
            "rates": {r: draw(st.sampled_from([0.3, 1.0, 1.5, 2.0])) for r in types},
            "submit_s": float(draw(st.integers(0, 2))),
            "utility": draw(st.sampled_from([{"kind": "normalised"}, {"kind": "constant", "amplitude": 3.0}])),
        }
        for i in range(draw(st.integers(1, 3)))
    ]
    cluster = {"gpu_types": [{"name": r} for r in types], "servers": servers}
    data = {"name": "t", "cluster": cluster, "jobs": jobs, "horizon": {"slot_s": 1.0, "slots": draw(st.integers(3, 5))}}
    return hadar.view(validate(data, "t"))


def optimum(view: HadarView) -> float:
    """Return the largest utility by a MILP over the GPUs of every copy in every slot, which shares no code."""
    work, hosts = view.workload, view.servers
    n, h, t = view.size, hosts.size, view.slots
    held = np.arange(n * t * h).reshape(n, t, h)
    ends = n * t * h + np.arange(n * t).reshape(n, t)
    size = n * t * h + n * t
    rows, upper = [], []
    cost, most = np.zeros(size), np.ones(size)
    for j in range(n):
        cost[ends[j]] = -view.utility(j)
        most[ends[j, : view.arrival[j]]] = 0
        rate = work.rates[j, hosts.gpu_type] * view.slot_s
        once, done = np.zeros(size), np.zeros(size)
        once[ends[j]] = 1
        done[ends[j]] = work.work[j] * (1 - 1e-9)
        for s in range(t):
            most[held[j, s]] = np.minimum(work.gpus[j], hosts.gpus) * (s >= view.arrival[j])
            done[held[j, s]] = -rate
            for i in range(h):  # nothing after the end
                row = np.zeros(size)
                row[held[j, s, i]] = 1
                row[ends[j, s:]] = -hosts.gpus[i]
                rows.append(row)
                upper.append(0.0)
        rows += [once, done]
        upper += [1.0, 0.0]
    for s in range(t):
        for i in range(h):
            row = np.zeros(size)
            row[held[:, s, i]] = 1
            rows.append(row)
            upper.append(float(hosts.gpus[i]))
    bounds, limits = Bounds(np.zeros(size), most), LinearConstraint(np.array(rows), -np.inf, np.array(upper))
    found = milp(cost, integrality=np.ones(size), bounds=bounds, constraints=limits, options={"mip_rel_gap": 0.0})
    return -float(found.fun)


@settings(max_examples=40)
@given(clusters())
def test_branch_and_price_finds_the_optimum(view: HadarView) -> None:
    """Branch and price finds the MILP's optimum, also on servers of different sizes.

    It counts GPUs by class of servers and gives them to servers afterwards.
    """
    exact = optimum(view)
    outcome = models.get("hadar.forked.columns").run(view)
    assert outcome.solution.status == "optimal"
    assert outcome.solution.objective == pytest.approx(exact, abs=1e-6)
    verdict = judge(view.instance, outcome.decision, FORKED.id, ())
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(exact, abs=1e-6)
    for other in ("hadar.forked_bound", "hadar.fluid.forked"):
        bound = models.get(other).run(view).solution.bound
        assert bound is not None
        assert bound >= exact - 1e-6


@settings(max_examples=60)
@given(clusters(), st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.3]), min_size=30, max_size=60))
def test_pricing_finds_the_cheapest_whole_gpus(view: HadarView, numbers: list[float]) -> None:
    """Pricing finds the payoff of a MILP for every job and last slot."""
    oracle = ForkedPricing(view)
    prices = np.resize(np.array(numbers), oracle.packing.capacity.size)
    found = oracle(prices, oracle.anything)
    for job in range(view.size):
        best = 0.0
        for last in range(int(view.arrival[job]), view.slots):
            amount = np.repeat(oracle.progress[job][:, None], view.slots, axis=1)
            most = np.repeat(oracle.limit[job][:, None], view.slots, axis=1)
            most[:, : view.arrival[job]] = most[:, last + 1 :] = 0
            need = LinearConstraint(amount.reshape(1, -1), view.workload.work[job] * (1 - 1e-9), np.inf)
            cost = milp(prices, integrality=np.ones(prices.size), bounds=Bounds(0, most.ravel()), constraints=need)
            paid = view.utility(job)[last] - cost.fun if cost.success else -np.inf
            assert found.by_end is not None
            assert found.by_end[job, last] >= paid - 1e-9
            best = max(best, paid)
        assert max(found.most[job], 0) == pytest.approx(best, abs=1e-9)


def test_hadare_is_a_start_and_stays_below_the_bound() -> None:
    """The search starts from HadarE's decision on 20 jobs, improves on it, and its bound is above both."""
    view = PAPERS.get("hadar").view(instances.load("gen/20jobs?slot_s=1800"))
    decision = HEURISTICS.get("hadar.hadare").decide(view.instance)
    verdict = judge(view.instance, decision, FORKED.id, ())
    assert verdict.objective is not None
    options = SolveOptions(nodes=1, seeds=(Seed("hadar.hadare", decision, verdict.objective),))
    solution = models.get("hadar.forked.columns").run(view, options).solution
    assert solution.objective is not None
    assert solution.bound is not None
    assert verdict.objective <= solution.objective <= solution.bound * (1 + 1e-9)
