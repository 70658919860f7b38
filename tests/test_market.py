"""Mechanisms that divide devices as a market does: independent computations, and what theory says about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oef_reference as ref
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from test_oef_models import views

from schedgap import heuristics, instances, models
from schedgap.certificates.rules import rule_of
from schedgap.harness.ask import fairness
from schedgap.harness.check import judge, judge_asked
from schedgap.harness.studies.compare.run import compare_here
from schedgap.heuristics.registry import Context
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


@pytest.mark.parametrize("seed", range(examples(10)))
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


def leximin_by_saturation(view: OefView) -> Array:
    """Return the gains of leximin by linear programs over all rows: a tenant is fixed if it alone cannot have more."""
    n, k = len(view.tenants), len(view.capacity)
    gain = np.zeros((n, view.size * k + 1))
    for row, owner in enumerate(view.owner.tolist()):
        gain[owner, row * k : row * k + k] = view.speedups[row] / gains_base(view)[owner]
    gain[:, -1] = -1.0
    level = np.full(n, np.nan)

    def most(cost: Array, least: Array, moving: Any) -> float:
        rows = -gain.copy()
        rows[~moving, -1] = 0.0
        bound = np.where(moving, 0.0, -least * (1 - 1e-10))
        x = ref.lp(view.speedups, view.capacity, cost, (rows, bound))
        return float(cost @ x)

    while np.isnan(level).any():
        free = np.isnan(level)
        z = most(np.eye(gain.shape[1])[-1], np.nan_to_num(level), free)
        for t in np.flatnonzero(free):
            alone = gain[t].copy()
            alone[-1] = 0.0
            if most(alone, np.where(free, z, np.nan_to_num(level)), np.zeros(n, bool)) <= z * (1 + 1e-7):
                level[t] = z
    return level


@pytest.mark.parametrize("seed", range(30))
def test_leximin_equals_an_independent_computation(seed: int) -> None:
    view, spec = drawn(seed), models.get("oef.leximin")
    outcome = spec.run(view)
    verdict = judge(view.instance, outcome.decision, spec.problem, spec.claims)
    assert verdict.violations == ()
    assert gains(view, outcome.decision.devices) == pytest.approx(leximin_by_saturation(view), rel=1e-6)
    least = models.get("oef.least_gain").run(view).solution.objective
    assert verdict.objective == pytest.approx(least, rel=1e-7)


@pytest.mark.parametrize("seed", range(examples(10)))
def test_leximin_has_one_level_and_is_gavel_between_rows(seed: int) -> None:
    """Speedups are above 0, so that who has more can give some of it to all others."""
    view = drawn(seed)
    own = gains(view, models.oracle("oef.leximin", view).devices)
    assert own == pytest.approx(np.full(len(own), own.min()), rel=1e-7)
    rows = matrix_view(view.speedups, view.capacity, view.weight)
    between_rows = efficiency(view.speedups, models.oracle("oef.leximin", rows).devices)
    for devices in (models.oracle("oef.gavel", view).devices, models.oracle("oef.least_gain", rows).devices):
        assert efficiency(view.speedups, devices) == pytest.approx(between_rows, rel=1e-6)
    assert efficiency(view.speedups, models.oracle("oef.gavel", view).devices) == pytest.approx(
        water_filling_by_saturation(view), rel=1e-6
    )


@pytest.mark.parametrize("seed", range(20))
def test_leximin_is_found_where_numbers_are_far_apart(seed: int) -> None:
    """The rows are equations: no multiplier has to tell who can still gain."""
    rng = np.random.default_rng(seed)
    n, k, largest = rng.integers(2, 7), rng.integers(2, 5), 10 ** rng.uniform(2, 5.9)
    rates = {f"u{t}": [[1.0, *(largest ** rng.uniform(0, 1, k - 1))]] for t in range(n)}
    instance = tenants(rates, rng.integers(1, 50, k).tolist(), *(10 ** rng.uniform(0, 3, n)).tolist())
    view, spec = PAPERS.get("oef").view(instance), models.get("oef.leximin")
    assert not spec.skip(view)
    assert judge(instance, spec.run(view).decision, spec.problem, spec.claims).violations == ()


def water_filling_by_saturation(view: OefView) -> Array:
    """Return the efficiencies of Gavel's hierarchical water filling by linear programs over rows and job types.

    A job type that can have no more leaves its weight to others of its tenant.
    """
    n, k = view.speedups.shape
    worth = np.hstack([ref.own(view.speedups, n * k), np.zeros((n, 1))])
    done = np.full(n, np.nan)

    def most(cost: Array, rate: Array, least: Array) -> float:
        rows = -worth.copy()
        rows[:, -1] = rate
        return float(cost @ ref.lp(view.speedups, view.capacity, cost, (rows, -least * (1 - 1e-10))))

    while np.isnan(done).any():
        free = np.isnan(done)
        whole_weight = np.bincount(view.owner, view.weight)[view.owner]
        rate = (
            view.split_efficiency
            * whole_weight
            / np.maximum(np.bincount(view.owner, view.weight * free)[view.owner], 1e-300)
        )
        rate[~free] = 0.0
        z = most(np.eye(n * k + 1)[-1], rate, np.where(free, 0.0, done))
        now = np.where(free, z * rate, done)
        for l in np.flatnonzero(free):
            if most(worth[l], np.zeros(n), now) <= now[l] * (1 + 1e-7):
                done[l] = now[l]
    return done


PROGRAMS = ("oef.efficiency", "oef.noncooperative", "oef.sharing_incentive", "oef.cooperative", "oef.cooperative.full")


@given(views(weighted=True), st.sampled_from(PROGRAMS), st.randoms(use_true_random=False))
@settings(max_examples=examples(10))
def test_ties_broken_by_leximin_are_optimal_and_unique(view: OefView, name: str, random: Any) -> None:
    """No order of tenants changes a gain, and no other optimum is better for the worst-off."""
    view = matrix_view(np.round(view.speedups), view.capacity)  # whole numbers have many optima
    spec = models.get(f"{name}?ties=leximin")
    outcome, first = spec.run(view), models.get(name).run(view)
    assert judge_asked(view, outcome.decision, spec.problem, spec.claims).violations == ()
    own, before = (efficiency(view.speedups, one.decision.devices) for one in (outcome, first))
    assert own.sum() == pytest.approx(before.sum(), rel=1e-7)
    sorted_gains = [np.sort(e / view.split_efficiency) for e in (own, before)]
    ahead = np.flatnonzero(np.abs(sorted_gains[0] - sorted_gains[1]) > 1e-6)
    assert not len(ahead) or sorted_gains[0][ahead[0]] > sorted_gains[1][ahead[0]]
    order = random.sample(range(view.size), view.size)
    turned = matrix_view(view.speedups[order], view.capacity)
    again = efficiency(turned.speedups, spec.run(turned).decision.devices)
    assert again == pytest.approx(own[order], rel=1e-6, abs=1e-6)


def test_leximin_of_hundreds_of_tenants_gives_nobody_more() -> None:
    """A last program for the total would give what tolerances leave over to one tenant."""
    (row,) = compare_here(instances.load("gen/oef-scale?tenants=300"), ["oef.leximin"], probes=False).rows
    assert row.verified, row.violations


def test_the_checker_of_leximin_says_who_could_have_more() -> None:
    instance = tenants({"u1": [[1, 2]], "u2": [[1, 3]], "u3": [[1, 4]]}, [1, 1])
    best = models.oracle("oef.leximin", PAPERS.get("oef").view(instance))
    assert judge(instance, best, "oef.least_gain", ("leximin",)).violations == ()
    for other in ("oef.maxmin", "oef.efficiency", "oef.cooperative"):
        decision = models.oracle(other, PAPERS.get("oef").view(instance))
        (line,) = judge(instance, decision, "oef.least_gain", ("leximin",)).violations
        assert "equal splits, and" in line


def test_the_certificate_of_the_least_gain_is_exact() -> None:
    rows = compare_here(instances.load("paper/oef-multi"), ["oef.least_gain", "oef.leximin"], probes=False).rows
    for row in rows:
        assert row.verified, row.violations
        assert row.objective <= row.best_bound <= row.objective * (1 + 3e-8)


def chosen_in_turn(view: OefView) -> Array:
    """Return the gains of serial dictatorship in exact fractions, device by device of a fine unit."""
    seen, _ = whole(view)
    left = [Fraction(m) for m in view.capacity.tolist()]
    weights = [Fraction(w) for w in seen.weight.tolist()]
    own = []
    for row, weight in zip(seen.speedups.tolist(), weights, strict=True):
        may, value = weight / sum(weights) * sum(map(Fraction, view.capacity.tolist())), Fraction(0)
        while may > 0 and any(left):
            j = max((j for j in range(len(left)) if left[j] > 0), key=lambda j: (row[j], -j))
            taken = min(may, left[j])
            may, left[j], value = may - taken, left[j] - taken, value + taken * Fraction(row[j])
        own.append(float(value))
    return np.array(own) / seen.split_efficiency


def filled_in_steps(view: OefView, unit: float) -> Array:
    """Return the parts of types after DRF's filling in rounds, in each of which some tenants take a small part.

    These are tenants whose dominant share does not grow by it or, if there are none, all.
    """
    seen, _ = whole(view)
    share, rows = seen.weight / seen.weight.sum(), np.arange(seen.size)
    part = np.zeros_like(seen.speedups)
    while (left := 1 - part.sum(axis=0)).max() > unit:
        wanted = np.where(left > unit, seen.speedups, -1.0).argmax(axis=1)
        per_weight = part / share[:, None]
        free = per_weight[rows, wanted] + unit <= per_weight.max(axis=1)
        for t in np.flatnonzero(free if free.any() else np.ones(seen.size, bool)):
            part[t, wanted[t]] += unit * share[t]
    return part


@pytest.mark.parametrize("seed", range(30))
def test_dictatorship_equals_an_independent_computation(seed: int) -> None:
    view = drawn(seed)
    devices = heuristics.get("oef.dictator").run(view, context()).devices
    assert gains(view, devices) == pytest.approx(chosen_in_turn(view), rel=1e-9)
    assert judge(view.instance, Allocation(devices), "oef.allocation").violations == ()
    everything = heuristics.get("oef.dictator?quota=all").run(view, context()).devices
    assert gains(view, everything)[0] == pytest.approx(view.weight.sum() / view.weight[view.owner == 0].sum())


@pytest.mark.parametrize("seed", range(30))
def test_drf_equals_filling_in_small_steps(seed: int) -> None:
    view = drawn(seed)
    devices = heuristics.get("oef.drf").run(view, context()).devices
    assert judge(view.instance, Allocation(devices), "oef.allocation").violations == ()
    assert devices.sum(axis=0) == pytest.approx(view.capacity)
    parts = np.zeros((len(view.tenants), len(view.capacity)))
    np.add.at(parts, view.owner, devices / view.capacity)
    assert np.abs(parts - filled_in_steps(view, 2e-3)).max() < 0.02


def test_drf_is_the_equal_split_if_all_rank_the_types_alike() -> None:
    view = matrix_view([[1, 2, 3], [1, 1.5, 9], [1, 4, 5]], [2, 3, 4], [1, 2, 1])
    assert heuristics.get("oef.drf").run(view, context()).devices == pytest.approx(view.equal_split)


@pytest.mark.parametrize("seed", range(30))
def test_partial_allocation_equals_an_independent_computation(seed: int) -> None:
    view = drawn(seed)
    found = gains(view, heuristics.get("oef.partial_allocation").run(view, context()).devices)
    seen, _ = whole(view)
    share = seen.weight / seen.weight.sum()

    def logs(rows: Any) -> tuple[Array, float]:
        """Return the logarithms of efficiencies in the equilibrium of some tenants, and their sum by weight."""
        few = matrix_view(seen.speedups[rows], seen.capacity, seen.weight[rows])
        if few.size == 1:
            own = np.log([seen.speedups[rows][0] @ seen.capacity])
        else:
            own = np.log(gains(few, models.oracle("oef.nash", few).devices) * few.split_efficiency)
        return own, float(seen.weight[rows] @ own)

    everybody, total = logs(np.arange(seen.size))
    base = gains_base(view)
    for t in range(seen.size):
        rest = np.delete(np.arange(seen.size), t)
        withheld = (total - seen.weight[t] * everybody[t] - logs(rest)[1]) / seen.weight[t]
        assert found[t] == pytest.approx(np.exp(everybody[t] + withheld) / base[t], rel=1e-6)
    assert found @ share > 0


@given(views())
@settings(max_examples=25)
def test_partial_allocation_leaves_each_tenant_a_part_of_the_equilibrium(view: OefView) -> None:
    """Cole, Gkatzelis and Goel: at least 1/e of it; nobody envies, as more of the same devices is withheld."""
    best = gains(view, models.oracle("oef.nash", view).devices)
    part = heuristics.get("oef.partial_allocation").run(view, context()).devices
    assert (gains(view, part) >= best / np.e).all()
    divided = heuristics.get("oef.partial_allocation?leftover=divided").run(view, context()).devices
    assert divided.sum(axis=0) == pytest.approx(view.capacity)


@given(views(weighted=True), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_no_lie_pays_in_dictatorship_and_partial_allocation(view: OefView, seed: int) -> None:
    rng = np.random.default_rng(seed)
    speedups = view.speedups.copy()
    speedups[0, 1:] *= np.exp(rng.normal(0, 0.5, speedups.shape[1] - 1))
    lied = matrix_view(speedups, view.capacity, view.weight)
    for name in ("oef.dictator", "oef.partial_allocation"):
        honest, false = (heuristics.get(name).run(v, context()).devices[0] for v in (view, lied))
        assert view.speedups[0] @ false <= view.speedups[0] @ honest * (1 + 1e-7)


PAGE = Path(__file__).resolve().parents[1] / "docs" / "mechanisms.md"


def test_the_page_on_mechanisms_has_todays_numbers() -> None:
    """Its table of all mechanisms lists them, and that of expression (1) has their efficiencies."""
    view = PAPERS.get("oef").view(instances.load("paper/oef-eq1"))
    text = PAGE.read_text()
    table = re.findall(r"^\| `(oef\.\w+)` \| ([\d. |]+) \|$", text, flags=re.M)
    assert len(table) == 8
    for name, cells in table:
        method: Any = models.get(name) if name in models.MODELS else heuristics.get(name)
        decision = method.run(view).decision if name in models.MODELS else method.run(view, context())
        own = efficiency(view.speedups, decision.devices)
        assert [*own, own.sum()] == pytest.approx([float(cell) for cell in cells.split("|")], abs=5.1e-4)
    for name in re.findall(r"`(oef\.[\w.?=]+)`", text):
        assert name.partition("?")[0] in {*models.MODELS.ids(), *heuristics.HEURISTICS.ids()}, name


def context() -> Context:
    return Context(np.random.default_rng(0), models.oracle)


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
