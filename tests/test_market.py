"""Mechanisms that divide devices as a market does: independent computations, and what theory says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from test_oef_models import views

from schedgap import instances, models
from schedgap.certificates.rules import rule_of
from schedgap.harness.ask import fairness
from schedgap.harness.check import judge, judge_asked
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.canonical import validate
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import Allocation, OefView, efficiency, matrix_view, whole
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.oef.market import equilibrium, error_of
from schedgap.models.provers import PROVERS

WELFARE = "oef.nash_welfare"


def tenants(kinds: Mapping[str, Sequence[Sequence[float]]], devices: Sequence[int], *weights: float) -> Instance:
    """Return an instance of tenants with a row of rates for each job type, and weights."""
    types = [f"T{j}" for j in range(len(devices))]
    shown = [
        {
            "id": name,
            "weight": weight,
            "job_types": [{"name": f"k{i}", "rates": dict(zip(types, row, strict=True))} for i, row in enumerate(rows)],
        }
        for (name, rows), weight in zip(kinds.items(), weights or [1.0] * len(kinds), strict=True)
    ]
    groups = [{"name": r, "gpu_type": r, "gpus": n, "count": 1} for r, n in zip(types, devices, strict=True)]
    cluster = {"gpu_types": [{"name": r} for r in types], "servers": groups}
    return validate({"name": "kinds", "cluster": cluster, "tenants": shown}, "kinds")


def drawn(seed: int) -> OefView:
    """Return a view of two to four tenants with one to three job types each, on two or three types, with weights."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    digits = 1 if seed % 3 == 0 else 6  # with few digits, several optima are usual
    kinds = {f"u{t}": np.round(np.exp(rng.uniform(0, 1.5, (rng.integers(1, 4), k))), digits).tolist() for t in range(n)}
    return PAPERS.get("oef").view(tenants(kinds, rng.integers(1, 5, k).tolist(), *np.round(rng.uniform(0.5, 3, n), 2)))


def gains(view: OefView, devices: Array) -> Array:
    """Return each tenant's efficiency over the most that it can make of its part of all devices."""
    own = np.bincount(view.owner, efficiency(view.speedups, devices))
    best = np.array([view.speedups[view.owner == t].max(axis=0) @ view.capacity for t in range(len(view.tenants))])
    share = np.bincount(view.owner, view.weight) / view.weight.sum()
    return np.asarray(own / (best * share))


def nash_by_slsqp(view: OefView) -> float:
    """Return the largest geometric mean of the gains, by sequential quadratic programming over all rows."""
    share = np.bincount(view.owner, view.weight) / view.weight.sum()
    base = view.equal_split
    owned = np.eye(len(view.tenants))[view.owner] / gains_base(view)[view.owner, None]

    def loss(x: Array) -> tuple[float, Array]:
        have = np.maximum(((view.speedups * x.reshape(base.shape)).sum(axis=1)) @ owned, 1e-9)
        slope = -(owned @ (share / have))[:, None] * view.speedups
        return float(-share @ np.log(have)), slope.ravel()

    k = len(view.capacity)
    rows = np.tile(np.eye(k), view.size)
    within = {"type": "ineq", "fun": lambda x: view.capacity - rows @ x, "jac": lambda x: -rows}
    found = minimize(
        loss, base.ravel(), jac=True, bounds=[(0, None)] * base.size, constraints=[within], method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )  # fmt: skip
    x = np.maximum(found.x.reshape(base.shape), 0)
    x *= np.minimum(1.0, view.capacity / np.maximum(x.sum(axis=0), 1e-300))
    return float(np.exp(share @ np.log(gains(view, x))))


def gains_base(view: OefView) -> Array:
    return np.asarray(whole(view)[0].split_efficiency)


@pytest.mark.parametrize("seed", range(30))
def test_nash_welfare_equals_an_independent_computation(seed: int) -> None:
    view = drawn(seed)
    outcome = models.get("oef.nash").run(view)
    verdict = judge(view.instance, outcome.decision, WELFARE, models.get("oef.nash").claims)
    assert verdict.violations == ()
    other = nash_by_slsqp(view)
    assert verdict.objective == pytest.approx(outcome.solution.objective, rel=1e-12)
    assert verdict.objective == pytest.approx(other, rel=1e-5)
    assert verdict.objective >= other * (1 - 1e-9)
    assert abs(verdict.metrics["market_error"]) < 1e-11


def bound_of(view: OefView, decision: Allocation) -> float:
    spec, options = models.get("oef.nash"), SolveOptions()
    outcome = models.registry.Outcome(spec.run(view).solution, decision)
    content = PROVERS.get(WELFARE).prove(view, outcome, options)
    assert content is not None
    sense, bound = rule_of(proof := content | {"problem": WELFARE}).bound(view.instance.plain, proof)
    assert sense == 1
    return float(bound)


@given(views(weighted=True), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_any_allocation_gives_prices_that_bound_all_others(view: OefView, seed: int) -> None:
    """Its own error says how far an allocation may be from the largest welfare."""
    rng = np.random.default_rng(seed)
    best = models.get("oef.nash").run(view).solution.objective
    assert best is not None
    x = rng.random(view.speedups.shape)
    decision = Allocation(x / x.sum(axis=0) * view.capacity)
    verdict = judge(view.instance, decision, WELFARE)
    assert verdict.objective is not None
    bound = bound_of(view, decision)
    assert verdict.objective <= best * (1 + 1e-12)
    assert best <= bound <= verdict.objective * (1 + verdict.metrics["market_error"]) * (1 + 1e-7)


@given(views(weighted=True))
@settings(max_examples=40)
def test_equal_incomes_leave_no_envy_and_nothing_to_gain(view: OefView) -> None:
    devices = models.oracle("oef.nash", view).devices
    assert judge_asked(view, Allocation(devices), "oef.envy_free", ("envy_free", "sharing_incentive")).violations == ()
    assert fairness.pareto_efficient(view, devices)


def test_tenants_with_several_job_types_do_not_envy_whole_tenants() -> None:
    """In the view of job types, one of them gets nothing."""
    instance = tenants({"u1": [[1, 9], [1, 2]], "u2": [[1, 4]]}, [2, 2])
    view = PAPERS.get("oef").view(instance)
    decision = models.oracle("oef.nash", view)
    assert judge(instance, decision, WELFARE, ("envy_free", "sharing_incentive")).violations == ()
    assert decision.devices[1, 1] == 0
    seen, bundles = fairness.whole_tenants(view, decision.devices)
    assert fairness.envy_free(seen, bundles)
    assert fairness.pareto_efficient(seen, bundles)


def test_the_two_parts_of_a_weight_are_equal_tenants_of_half_of_it() -> None:
    W = [[1, 2, 3], [1, 2, 3], [1, 3, 4], [1, 1.5, 5]]
    halves = models.oracle("oef.nash", matrix_view(W, [2, 3, 1])).devices
    merged = models.oracle("oef.nash", matrix_view(W[1:], [2, 3, 1], [2, 1, 1])).devices
    assert halves[0] == pytest.approx(halves[1], abs=1e-9)
    assert halves[0] + halves[1] == pytest.approx(merged[0], abs=1e-9)


@given(views(), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_of_tenants_does_not_matter(view: OefView, random: Any) -> None:
    order = random.sample(range(view.size), view.size)
    turned = matrix_view(view.speedups[order], view.capacity)
    once, again = (models.oracle("oef.nash", v).devices for v in (view, turned))
    assert again == pytest.approx(once[order], abs=1e-6)


def random_market(seed: int, n: int, k: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    worth = (
        np.exp(rng.normal(0, 2, (n, k))),
        np.cumprod(np.c_[np.ones(n), rng.integers(1, 4, (n, k - 1))], axis=1) * rng.integers(1, 9, k),
        np.cumprod(np.c_[np.ones(n), 1 + rng.random((n, k - 1)) / 2], axis=1) * rng.integers(1, 9, k),
    )[seed % 3]
    share = np.exp(rng.normal(0, 1 + 2 * (seed % 2), n))
    return worth / worth.sum(axis=1)[:, None], share / share.sum()


@pytest.mark.parametrize(("n", "k", "seeds"), [(1, 3, 3), (2, 2, 60), (5, 3, 60), (50, 4, 30), (2000, 8, 3)])
def test_markets_of_all_kinds_clear(n: int, k: int, seeds: int) -> None:
    """Also with ties, budgets a million times apart, and speedups a thousand times apart."""
    for seed in range(seeds):
        worth, share = random_market(seed, n, k)
        found, steps = equilibrium(worth, share, clock.Budget(None))
        assert steps < 60
        assert found.bundle.min() >= 0
        assert (share @ found.bundle).max() <= 1 + 1e-12
        assert found.error < 1e-9
        assert error_of(worth, found.bundle) == found.error
        gain = (worth * found.bundle).sum(axis=1)
        assert all(((worth[t] @ found.bundle.T) <= gain[t] * (1 + 1e-8)).all() for t in range(min(n, 100)))


def test_the_certificate_of_prices_holds_and_refuses_a_price_of_nothing() -> None:
    (row,) = compare_here(instances.load("gen/oef-20"), ["oef.nash"], probes=False).rows
    assert row.verified
    assert row.own_bound is not None
    assert row.objective is not None
    assert row.objective <= row.own_bound <= row.objective * (1 + 3e-8)
    proof = {"problem": WELFARE, "prices": [1, 0, 1]}
    with pytest.raises(Exception, match="a price above 0"):
        rule_of(proof).bound(instances.load("gen/oef-20").plain, proof)


def test_equal_incomes_cost_little_of_the_envy_free_total() -> None:
    """CEEI is envy-free, so it never has more than cooperative OEF; measured on ten draws of ``gen/oef-20``."""
    lost = []
    for seed in range(10):
        view = PAPERS.get("oef").view(instances.load(f"gen/oef-20?seed={seed}"))
        most = models.get("oef.cooperative").run(view).solution.objective
        assert most is not None
        total = (view.speedups * models.oracle("oef.nash", view).devices).sum()
        lost.append(1 - total / most)
    assert min(lost) > -1e-7
    assert max(lost) < 2e-3


def test_out_of_time_the_bundles_of_the_last_step_are_scaled_to_fit() -> None:
    worth, share = random_market(2, 30, 4)
    found, steps = equilibrium(worth, share, clock.Budget(1e-9))
    assert steps == 0
    assert found.bundle == pytest.approx(np.ones_like(worth))
    assert found.error > 0.01
