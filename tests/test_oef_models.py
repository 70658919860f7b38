"""OEF's models: published numbers, agreement of all ways to solve them, and what theory says about the optima."""

from __future__ import annotations

from typing import Any

import numpy as np
import oef_reference as ref
import pytest
from conftest import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schedgap import instances, models
from schedgap.harness.check import judge_asked
from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.oef import Allocation, OefView, efficiency, matrix_view, merged, replicated
from schedgap.models.engine.solve import CROSS_CHECK_TOLERANCE, Session, Solution, SolveOptions
from schedgap.models.oef import envy
from schedgap.models.oef.envy import settled
from schedgap.models.oef.first_order import FirstOrder
from schedgap.models.oef.lazy import lazy_fair, merged_cooperative
from schedgap.models.oef.printed import build_gavel, decode, least_over_optima, pareto_gain
from schedgap.models.oef.steps import library

EQ1 = matrix_view([[1, 2], [1, 3], [1, 4]], [1, 1])
LPS = [
    spec.id
    for spec in models.MODELS
    if spec.paper == "oef" and spec.kind != "matheuristic" and spec.problem != "oef.nash_welfare"
]


def optimum(model: str, view: OefView) -> float:
    objective = models.get(model).run(view).solution.objective
    assert objective is not None
    return objective


@st.composite
def views(draw: Any, weighted: bool = False) -> OefView:
    """Draw random speedups, which need not rank types alike for all tenants, devices, and rational weights."""
    n, k = draw(st.integers(2, 6)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    speedups = np.cumprod(np.c_[np.ones(n), 1 + rng.random((n, k - 1))], axis=1)
    weights = rng.integers(1, 4, n) / rng.integers(1, 3, n) if weighted else np.ones(n)
    return matrix_view(speedups, rng.integers(1, 6, k), weights)


@pytest.mark.parametrize(
    ("model", "total"),
    [
        ("oef.efficiency", 5.0),
        ("oef.sharing_incentive", 41 / 9),
        ("oef.cooperative", 4.5),
        ("oef.cooperative.full", 4.5),
        ("oef.noncooperative", 54 / 13),
    ],
)
def test_eq1_totals(model: str, total: float) -> None:
    assert optimum(model, EQ1) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("model", LPS)
@pytest.mark.parametrize("view", [EQ1, matrix_view([[1, 1.5, 2], [1, 2, 5], [1, 3, 8]], [2, 1, 4], [1, 2, 0.5])])
def test_cbc_agrees_on_every_lp(model: str, view: OefView) -> None:
    solution = models.get(model).run(view, SolveOptions(cross_check=True)).solution
    assert solution.status == "optimal"
    assert solution.cross_check is not None
    assert solution.cross_check <= CROSS_CHECK_TOLERANCE


@settings(max_examples=40)
@given(views(weighted=True), st.booleans())
def test_lazy_rows_and_full_lp_agree(view: OefView, with_equals: bool) -> None:
    if with_equals:
        view = matrix_view(view.speedups[[0, *range(view.size), 0]], view.capacity, [0.5, *view.weight, 3])
    lazy, full = merged_cooperative(view, SolveOptions()), models.get("oef.cooperative.full").run(view)
    assert lazy.solution.objective == pytest.approx(full.solution.objective, rel=1e-6)
    assert efficiency(view.speedups, lazy.decision.devices).sum() == pytest.approx(lazy.solution.objective, rel=1e-6)
    assert judge_asked(view, lazy.decision, "oef.envy_free", ("envy_free", "sharing_incentive")).violations == ()


def test_equals_are_one_tenant_of_their_total_weight() -> None:
    view = matrix_view([[1, 3], [1, 2], [1, 3], [2, 6]], [1, 2], [1, 1, 2, 4])
    small, group = merged(view)
    assert small.size == 2
    assert small.weight[group].tolist() == [7, 1, 7, 7]
    assert small.split_efficiency.sum() == pytest.approx(view.split_efficiency.sum())
    devices = merged_cooperative(view, SolveOptions()).decision.devices
    assert devices[2] == pytest.approx(2 * devices[0])
    assert devices[3] == pytest.approx(4 * devices[0])


def test_lazy_rows_need_few_of_the_rows_at_a_hundred_tenants() -> None:
    rng = np.random.default_rng(3)
    view = matrix_view(np.cumprod(np.c_[np.ones(100), 1 + rng.random((100, 4)) / 2], axis=1), np.full(5, 8))
    lazy = models.get("oef.cooperative").run(view)
    full = models.get("oef.cooperative.full").run(view)
    assert lazy.solution.objective == pytest.approx(full.solution.objective, rel=1e-6)
    assert lazy.solution.size.rows < full.solution.size.rows / 4
    bounds = [point.bound for point in lazy.solution.trace if point.bound is not None]
    assert bounds == sorted(bounds, reverse=True)


@settings(max_examples=30)
@given(views(weighted=True), st.sampled_from(["oef.noncooperative", "oef.cooperative"]))
def test_replicating_tenants_and_weighting_rows_agree(view: OefView, model: str) -> None:
    copies, original = replicated(view)
    assert optimum(model, copies) == pytest.approx(optimum(model, view), rel=1e-6)
    assert np.bincount(original) / len(original) == pytest.approx(view.weight / view.weight.sum())


def test_weights_without_a_small_common_denominator_are_not_replicated() -> None:
    with pytest.raises(NotApplicableError, match="replicas, more than 10000"):
        replicated(matrix_view([[1, 2], [1, 3]], [1, 1], [0.997, np.pi]))


@settings(max_examples=examples(15))
@given(views(weighted=True))
def test_theorem_5_1_and_the_order_of_optima(view: OefView) -> None:
    outcome = models.get("oef.cooperative").run(view)
    assert judge_asked(view, outcome.decision, "oef.envy_free", ("envy_free", "sharing_incentive")).violations == ()
    totals = [optimum(m, view) for m in ("oef.cooperative", "oef.sharing_incentive", "oef.efficiency")]
    assert totals[0] <= totals[1] + 1e-6
    assert totals[1] <= totals[2] + 1e-6
    assert optimum("oef.noncooperative", view) <= totals[2] + 1e-6


@settings(max_examples=examples(12))
@given(views(weighted=True))
def test_every_model_keeps_its_claims(view: OefView) -> None:
    for spec in map(models.get, LPS):
        outcome = spec.run(view)
        assert outcome.solution.status == "optimal"
        assert judge_asked(view, outcome.decision, spec.problem, spec.claims).violations == ()


@settings(max_examples=30)
@given(views(weighted=True))
def test_gavel_equals_its_ratio_and_uses_the_most_efficient_vertex(view: OefView) -> None:
    first = models.registry.solve_built(build_gavel, decode, view, SolveOptions()).solution.objective
    decision = models.get("oef.gavel").run(view).decision
    base = efficiency(view.speedups, view.equal_split)
    assert (efficiency(view.speedups, decision.devices) / base).min() == pytest.approx(first, rel=1e-6)


def test_the_level_of_the_noncooperative_program_is_that_of_the_paper() -> None:
    """The level E of (9) has the paper's unit: 18/13 in (1), 5/3 per replica in the weighted example."""
    for view, level in ((EQ1, 18 / 13), (matrix_view([[1, 2], [1, 5]], [1, 1], [1, 2]), 5 / 3)):
        solution = models.get("oef.noncooperative").run(view).solution
        assert solution.values["E"] == pytest.approx(level)


@settings(max_examples=20)
@given(views(weighted=True), st.sampled_from(["oef.efficiency", "oef.sharing_incentive", "oef.cooperative.full"]))
def test_prices_are_those_of_the_printed_rows(view: OefView, model: str) -> None:
    """Duals satisfy the dual constraints of the printed rows: of capacity, (4), (8) and (10)."""
    solution = models.get(model).run(view, SolveOptions(method="simplex")).solution
    for row, rent in solution.duals.items():  # a device more never costs, being fairer never pays
        assert rent >= -1e-9 if row.startswith("capacity") else rent <= 1e-9
    price = np.array([solution.duals[f"capacity[{j}]"] for j in range(len(view.capacity))])
    worth = view.speedups.copy()
    split = [solution.duals.get(f"at_least_split[{l}]", 0.0) for l in range(view.size)]
    worth -= np.array(split)[:, None] * view.speedups
    for l, i in ((l, i) for l in range(view.size) for i in range(view.size) if l != i):
        envy = solution.duals.get(f"no_envy[{l},{i}]", 0.0) * view.speedups[l]
        worth[l] -= envy * view.weight[i]
        worth[i] += envy * view.weight[l]
    assert (worth <= price + 1e-6).all()
    assert price @ view.capacity + np.dot(split, view.split_efficiency) == pytest.approx(solution.objective, rel=1e-6)


@st.composite
def degenerate_views(draw: Any) -> OefView:
    """Draw different tenants with small integer speedups, which have many optima."""
    n, k = draw(st.integers(2, 5)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    speedups = np.unique(np.cumprod(np.c_[np.ones(n), rng.integers(1, 4, (n, k - 1))], axis=1), axis=0)
    return matrix_view(speedups, rng.integers(1, 4, k))


@given(degenerate_views(), st.randoms(use_true_random=False))
@settings(max_examples=examples(8))
def test_the_optimum_returned_does_not_hang_on_the_order_of_tenants(view: OefView, random: Any) -> None:
    order = random.sample(range(view.size), view.size)
    turned = matrix_view(view.speedups[order], view.capacity)
    for name in LPS:
        once, again = (models.get(name).run(v).decision.devices for v in (view, turned))
        assert again == pytest.approx(once[order], abs=1e-6), name


def test_of_several_optima_the_fast_types_go_to_large_speedups() -> None:
    """Of several optima of (4), the model takes the one in which the first of the fastest tenants has both types."""
    view = matrix_view([[1, 1], [1, 2], [1, 2]], [1, 1])
    assert models.get("oef.efficiency").run(view).decision.devices == pytest.approx(np.array([[0, 0], [1, 1], [0, 0]]))


@settings(max_examples=40)
@given(degenerate_views(), st.sampled_from(["oef.efficiency", "oef.cooperative.full", "oef.noncooperative"]))
def test_the_least_over_the_optima_is_that_of_an_independent_program(view: OefView, model: str) -> None:
    assume(view.size > 1)
    W, m, worth = view.speedups, view.capacity, np.zeros_like(view.speedups)
    worth[0] = W[0] + 1
    n, k = W.shape
    best = optimum(model, view)
    rows, bound = -W.ravel()[None], [-best * (1 - 1e-9)]
    if model == "oef.cooperative.full":
        rows, bound = np.vstack([rows, ref.envy_rows(W)]), bound + [0.0] * (n * (n - 1))
    equal = ref.own(W, n * k) - np.tile(W.ravel() / n, (n, 1)), np.zeros(n)
    x = ref.lp(W, m, -worth.ravel(), (rows, np.array(bound)), equal if model == "oef.noncooperative" else None)
    found = least_over_optima(model, view, worth)
    assert found == pytest.approx(float(worth.ravel() @ x), rel=1e-5, abs=1e-5)


def test_maxmin_is_the_equal_split() -> None:
    view = matrix_view([[1, 2], [1, 5]], [3, 4], [1, 2])
    assert models.get("oef.maxmin").run(view).decision.devices == pytest.approx(view.equal_split)


def test_pareto_gain_of_the_cooperative_witness() -> None:
    view = matrix_view([[1, 1.5, 2], [1, 2, 5], [1, 3, 8]], [1, 1, 1])
    gain, better = pareto_gain(view, models.oracle("oef.cooperative", view).devices)
    assert gain == pytest.approx(1 / 15, abs=1e-6)
    assert judge_asked(view, Allocation(better), "oef.allocation", ()).violations == ()
    assert pareto_gain(EQ1, models.oracle("oef.efficiency", EQ1).devices)[0] == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="exceeds the capacity"):
        pareto_gain(EQ1, np.full((3, 2), 2.0))


def test_cooperative_out_of_time_settles_the_relaxation(monkeypatch: pytest.MonkeyPatch) -> None:
    """If time is up after two linear programs, the second optimum is settled, and is a bound."""
    run, ended = Session.run, []

    def once(session: Session, time_limit_s: float | None = None) -> Solution:
        ended.append(run(session, 1e-6 if len(ended) > 1 else None))
        return ended[-1]

    monkeypatch.setattr(Session, "run", once)
    rng = np.random.default_rng(0)
    view = matrix_view(np.cumprod(np.c_[np.ones(300), 1 + rng.random((300, 9)) / 2], axis=1), np.full(10, 8))
    outcome = models.get("oef.cooperative").run(view, SolveOptions())
    assert outcome.solution.status == "time limit with incumbent"
    assert outcome.solution.bound is not None
    assert outcome.solution.objective is not None
    assert outcome.solution.bound >= outcome.solution.objective
    verdict = judge_asked(view, outcome.decision, "oef.envy_free", ("envy_free", "sharing_incentive"))
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(outcome.solution.objective)
    assert verdict.objective > 1.05 * view.split_efficiency.sum()


@given(views(weighted=True), st.integers(0, 2**32 - 1), st.booleans())
def test_whatever_is_settled_is_envy_free(view: OefView, seed: int, efficient: bool) -> None:
    rng = np.random.default_rng(seed)
    devices = view.capacity * rng.random(view.speedups.shape) ** 8
    if efficient:
        devices = models.oracle("oef.cooperative", view).devices * rng.uniform(0.99, 1.01, devices.shape)
    verdict = judge_asked(view, Allocation(settled(view, devices)), "oef.envy_free", ("envy_free", "sharing_incentive"))
    assert verdict.violations == ()
    if efficient:
        assert verdict.objective >= 0.95 * optimum("oef.cooperative", view)


@given(views(), st.integers(0, 2**32 - 1))
def test_premiums_that_do_not_settle_leave_everybody_the_best_of_all_bundles(view: OefView, seed: int) -> None:
    rng = np.random.default_rng(seed)
    exchanged = models.oracle("oef.cooperative", view).devices[rng.permutation(view.size)]
    devices = exchanged * rng.uniform(0.98, 1.02, exchanged.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envy, "STAGES", 1)
        patch.setattr(envy, "SWEEPS", 1)
        verdict = judge_asked(view, Allocation(settled(view, devices)), "oef.envy_free", ("envy_free",))
    assert verdict.violations == ()


@given(views(weighted=True))
def test_an_envy_free_optimum_is_settled_already(view: OefView) -> None:
    total = optimum("oef.cooperative", view)
    devices = settled(view, models.oracle("oef.cooperative", view).devices)
    assert (view.speedups * devices).sum() == pytest.approx(total, rel=1e-6)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_two_types_need_rows_between_neighbours_only(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    speedups = np.c_[np.ones(n), rng.choice([1.5, 2.0, *rng.uniform(1, 9, n)], n)]
    view = merged(matrix_view(speedups, rng.integers(1, 9, 2), rng.integers(1, 4, n)))[0]
    lazy = lazy_fair(view, SolveOptions()).solution
    assert lazy.objective == pytest.approx(optimum("oef.cooperative.full", view), rel=1e-7)
    assert lazy.size.rows == 2 + 2 * (view.size - 1)


@given(views(weighted=True))
@settings(max_examples=15)
def test_the_first_order_method_surrounds_the_optimum(view: OefView) -> None:
    total, outcome = optimum("oef.cooperative", view), models.get("oef.cooperative.first_order").run(view)
    verdict = judge_asked(view, outcome.decision, "oef.envy_free", ("envy_free", "sharing_incentive"))
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(outcome.solution.objective)
    assert total * (1 - 2e-3) <= verdict.objective <= total * (1 + 1e-6)
    assert total * (1 - 1e-6) <= outcome.solution.bound <= total * (1 + 2e-3)


def test_an_anchor_lasts_only_where_bounds_are_made() -> None:
    """Rows come and go between runs: multipliers of all three points follow them. The point is not moved by a look."""
    rng = np.random.default_rng(0)
    view = matrix_view(np.cumprod(np.c_[np.ones(80), 1 + rng.random((80, 3))], axis=1), [20] * 4)
    method = FirstOrder.begin(view, library("compiled"))
    while method.look() > 0.05:
        method.run(100)
        assert method.since == 0
        assert method.anchor is method.onward is method.point
    sharp = method.sharper()
    sharp.run(60)
    before, anchor = sharp.pairs, sharp.anchor
    assert (sharp.steps, sharp.since) == (method.steps + 60, 60)
    sharp.look()
    assert before.tolist() != sharp.pairs.tolist()
    assert sharp.onward is not sharp.point
    there = np.isin(sharp.pairs, before)
    for one in (sharp.point, sharp.onward, sharp.anchor):
        assert len(one.multiplier) == len(sharp.pairs) == sharp.rows.first[-1]
        assert not one.multiplier[~there].any()
    kept = np.isin(before, sharp.pairs)
    assert (sharp.anchor.multiplier[there] == anchor.multiplier[kept]).all()
    assert (sharp.anchor.bundle == method.point.bundle).all()
    best = sharp.best
    sharp.run(60)
    assert sharp.best <= best


def test_the_first_order_method_starts_from_a_sample() -> None:
    """250 of 1,001 tenants are solved first. The bound that follows from the certificate is the method's."""
    instance = instances.load("gen/oef-scale?tenants=1001")
    (row,) = compare_here(instance, ["oef.cooperative.first_order"], limits=Limits(rel_gap=0.05), probes=False).rows
    assert row.verified
    assert row.own_bound is not None
    assert row.own_bound == pytest.approx(row.claimed_bound, rel=1e-6)
    assert row.objective > 0.95 * row.own_bound


def published_cases() -> list[Any]:
    from schedgap.instances.catalogue import known

    return [
        pytest.param(entry.ref, p, id=f"{entry.ref}-{p.method}-{p.quantity}")
        for entry in known()
        if entry.ref.startswith("paper/oef-")
        for p in instances.load(entry.ref).published
        if p.method in models.MODELS and "_ratio:" not in p.quantity  # compare measures ratios, see test_published
    ]


@pytest.mark.parametrize(("ref", "entry"), published_cases())
def test_published_numbers(ref: str, entry: Any) -> None:
    view = PAPERS.get("oef").view(instances.load(ref))
    spec = models.get(entry.method)
    verdict = judge_asked(view, spec.run(view).decision, spec.problem, spec.claims)
    assert verdict.violations == ()
    found = np.asarray({**verdict.quantities, "objective": verdict.objective}[entry.quantity])
    if entry.exact is not None:
        assert found == pytest.approx(np.asarray(entry.exact), abs=1e-6)
    else:
        assert np.abs(found - np.asarray(entry.value)).max() <= entry.tolerance * (1 + 1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 2.0]), st.sampled_from([1e-9, 1.0, 1e9]))
@settings(max_examples=examples(8))
def test_scales_do_not_matter(seed: int, spread: float, weight: float) -> None:
    rng = np.random.default_rng(seed)
    n, k = rng.integers(2, 11), rng.integers(2, 5)
    view = matrix_view(np.exp(rng.normal(0, spread, (n, k))), rng.integers(1, 9, k), np.full(n, weight))
    lazy, full = (models.get(m).run(view) for m in ("oef.cooperative", "oef.cooperative.full"))
    assert lazy.solution.objective == pytest.approx(full.solution.objective, rel=1e-6)
    for spec in map(models.get, LPS):
        decision = spec.run(view).decision
        assert judge_asked(view, decision, spec.problem, spec.claims).violations == ()
    level = efficiency(view.speedups, models.get("oef.noncooperative").run(view).decision.devices)
    assert level.min() > 0


def test_the_checker_judges_everybody_in_his_own_units() -> None:
    drowned = matrix_view([[1, 2], [1, 3], [1, 1e5]], [1, 1])
    unfair = Allocation(np.array([[0, 0], [0.5, 0], [0.5, 1]]))
    assert any("u1 envies" in line for line in judge_asked(drowned, unfair, "oef.envy_free", ("envy_free",)).violations)
    for weight in (1e-7, 1e7):
        view = matrix_view([[1, 2], [1, 3]], [1, 1], [weight, weight])
        all_to_one = Allocation(np.array([[0.0, 0.0], [1, 1]]))
        claims = ("envy_free", "sharing_incentive", "equal_efficiency")
        assert len(judge_asked(view, all_to_one, "oef.envy_free", claims).violations) == 3


@pytest.mark.parametrize(
    ("rates", "weights", "reason"),
    [
        ([5e-324, 1e308], [1.0], "rates of one tenant from 4.94066e-324 to 1e+308: OEF needs them within a factor of"),
        ([1e-9, 1e9], [1.0], "rates of one tenant from 1e-09 to 1e+09: OEF needs them within a factor of 1e+06"),
        ([1.0, 2.0], [1e-9, 1.0], "weights of tenants from 1e-09 to 1: OEF needs them within a factor of 1e+06"),
    ],
)
def test_numbers_too_far_apart_to_certify_are_refused(rates: Any, weights: Any, reason: str) -> None:
    from schedgap.instances.canonical import validate

    types = [{"name": f"T{j}"} for j in range(2)]
    servers = [{"name": f"s{j}", "count": 1, "gpu_type": f"T{j}", "gpus": 1} for j in range(2)]
    kinds = [{"name": "k", "rates": {f"T{j}": rate for j, rate in enumerate(rates)}}]
    tenants = [{"id": f"u{i}", "weight": w, "job_types": kinds} for i, w in enumerate(weights)]
    instance = validate({"name": "far", "cluster": {"gpu_types": types, "servers": servers}, "tenants": tenants}, "far")
    with pytest.raises(NotApplicableError, match=reason.replace("+", r"\+")):
        PAPERS.get("oef").view(instance)


@pytest.mark.parametrize(
    ("problem", "told"), [("envy_free", "envies"), ("equal_efficiency", "per weight"), ("sharing_incentive", "split")]
)
def test_a_problem_asks_of_every_allocation_what_its_name_says(problem: str, told: str) -> None:
    """A problem's requirement is checked for each allocation, also if its method does not claim it.

    Here one tenant has all devices.
    """
    (line,) = judge_asked(
        EQ1, Allocation(np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])), f"oef.{problem}", ()
    ).violations
    assert told in line
