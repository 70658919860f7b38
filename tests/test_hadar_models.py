"""Hadar's P1, P2 and P3 agree with one another, with an exhaustive search, and with Fig. 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from conftest import examples
from hadar_reference import best, instances_of, linear
from hypothesis import example, given, settings
from numpy.typing import NDArray

from schedgap import instances, models
from schedgap.harness.check import judge
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.schema import Instance, LinearDeadline
from schedgap.instances.views import hadar
from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.solve import SolveOptions, build, compile_model, solve
from schedgap.models.hadar.p1 import Places, build_p1
from schedgap.models.hadar.p2 import build_p2, build_p3, prices, relax
from schedgap.models.hadar.schedules import MOST_MIXES, Schedules, TooManyError, job_schedules, mixes, schedules

EXACT = SolveOptions(rel_gap=0.0)
FIG1 = 1025 / 21
BUSY = linear([{"gpus": 2, "epochs": 6, "rates": {"a": 2.0, "b": 1.0}}] * 3, {"a": 2, "b": 3}, slots=5)
"""An instance of three gangs of two GPUs that compete for the faster type."""


def optimum(method: str, view: HadarView) -> float | None:
    """Solve a model, check its decision and return the optimum; ``None`` if it is infeasible."""
    spec = models.get(method)
    if spec.skip(view):
        return 0.0 if not method.endswith("complete") else None
    outcome = spec.run(view, EXACT)
    if outcome.solution.status == "infeasible":
        return None
    assert outcome.solution.status == "optimal"
    assert outcome.solution.bound == pytest.approx(outcome.solution.objective, abs=1e-6)
    verdict = judge(view.instance, outcome.decision, spec.problem, spec.claims)
    assert not verdict.violations
    assert verdict.objective == pytest.approx(outcome.solution.objective, abs=1e-6)
    return verdict.objective


@given(instances_of())
@example(BUSY)
@settings(max_examples=examples(8))
def test_p1_by_type_by_server_and_p2_have_the_same_optimum(instance: Instance) -> None:
    view = hadar.view(instance)
    most = optimum("hadar.p1", view)
    assert most is not None
    assert optimum("hadar.p1.per_server", view) == pytest.approx(most, abs=1e-6)
    assert optimum("hadar.p2.enumerated", view) == pytest.approx(most, abs=1e-6)


@given(instances_of())
@example(BUSY)
@settings(max_examples=15)
def test_p1_and_p2_have_the_same_optimum_where_every_job_completes(instance: Instance) -> None:
    view = hadar.view(instance)
    found = optimum("hadar.p1.complete", view), optimum("hadar.p2.enumerated.complete", view)
    assert found[0] == pytest.approx(found[1], abs=1e-6) if found[0] is not None else found[1] is None


@given(instances_of(jobs=2, slots=4, gpus=2))
@settings(max_examples=20)
def test_p1_finds_what_an_exhaustive_search_finds(instance: Instance) -> None:
    view = hadar.view(instance)
    assert optimum("hadar.p1", view) == pytest.approx(best(instance, complete=False), abs=1e-6)
    all_of_them = best(instance, complete=True)
    found = optimum("hadar.p1.complete", view)
    assert found == (None if all_of_them is None else pytest.approx(all_of_them, abs=1e-6))


@pytest.mark.parametrize("method", ["hadar.p1", "hadar.p2.enumerated"])
def test_the_rules_of_completion_differ(method: str) -> None:
    """If all jobs must complete, as in P1 as printed, utility is lower here than if one may be rejected.

    The job to reject keeps another one off the fast GPU.
    """
    jobs = [
        {"gpus": 1, "epochs": 2, "rates": {"fast": 2.0, "slow": 1.0}},
        {"gpus": 1, "epochs": 3, "rates": {"fast": 1.0}, "utility": {"kind": "constant", "amplitude": 0.1}},
    ]
    view = hadar.view(linear(jobs, {"fast": 1, "slow": 1}, slots=3))
    assert optimum(method, view) == pytest.approx(2.0)
    assert optimum(f"{method}.complete", view) == pytest.approx(1.0 + 0.1)


@pytest.mark.parametrize("method", ["hadar.p1.complete", "hadar.p2.enumerated.complete"])
def test_not_every_job_may_fit(method: str) -> None:
    jobs = [{"gpus": 1, "epochs": 2, "rates": {"a": 1.0}}] * 2
    assert optimum(method, hadar.view(linear(jobs, {"a": 1}, slots=3))) is None
    assert optimum(method, hadar.view(linear(jobs, {"a": 1}, slots=4))) == pytest.approx(2 / 2 + 2 / 4)


@given(instances_of())
@example(BUSY)
@settings(max_examples=15)
def test_the_relaxation_of_p2_and_p3_are_a_pair(instance: Instance) -> None:
    view = hadar.view(instance)
    if not view.possible.size:
        return
    columns = schedules(view)
    primal = solve(build(build_p2, view, columns, relaxed=True), SolveOptions(method="simplex"))
    dual = solve(build(build_p3, view, columns), SolveOptions(method="simplex"))
    assert primal.objective == pytest.approx(dual.objective, abs=1e-6)
    bound = models.get("hadar.p3").run(view).solution.bound
    # The registered models take the schedules of extreme mixes alone.
    assert bound == pytest.approx(primal.objective, abs=1e-6)
    assert relax(view, EXACT).objective == pytest.approx(primal.objective, abs=1e-6)
    exact = optimum("hadar.p2.enumerated", view)
    assert exact is not None
    assert bound is not None
    assert exact <= bound + 1e-6
    _check_prices(view, columns, primal, dual)


def _check_prices(view: HadarView, columns: Schedules, primal: Any, dual: Any) -> None:
    """Check complementary slackness, and that a job's payoff is μ_j = max(0, max_s φ_j(s))."""
    price = np.zeros((view.slots, len(view.capacity)))
    for cell, p in zip(dual.model.price.keys(), dual.array(dual.model.price), strict=True):
        price[cell] = p
    payoff = np.zeros(view.size)
    payoff[view.possible] = dual.array(dual.model.payoff)
    x = primal.array(primal.model.y)
    reduced = columns.utility - costs(columns, price)
    largest = np.zeros(view.size)
    np.maximum.at(largest, columns.job, reduced)
    np.testing.assert_allclose(payoff, largest, atol=1e-6)
    np.testing.assert_allclose(x * (payoff[columns.job] - reduced), 0.0, atol=1e-5)
    used = np.zeros_like(price)
    np.add.at(used, (columns.slot, columns.gpu_type), columns.gpus * x[columns.schedule])
    assert (used <= view.capacity + 1e-6).all()
    np.testing.assert_allclose(price * (view.capacity - used), 0.0, atol=1e-5)
    chosen = np.bincount(columns.job, x, view.size)
    np.testing.assert_allclose(payoff * (1 - chosen), 0.0, atol=1e-5)


def costs(columns: Schedules, price: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each schedule pays for its GPUs at these prices."""
    paid = columns.gpus * price[columns.slot, columns.gpu_type]
    return np.asarray(np.bincount(columns.schedule, paid, len(columns.job)))


@given(instances_of(jobs=2))
@settings(max_examples=15)
def test_schedules_are_minimal_feasible_and_priced_out_exactly(instance: Instance) -> None:
    view = hadar.view(instance)
    columns = schedules(view)
    for j in view.possible.tolist():
        options = dict(mixes(view, j))
        work = view.workload.work[j]
        for steps in job_schedules(view, j):
            progress = [options[mix] for _, mix in steps]
            assert sum(progress) >= work > sum(progress) - min(progress)
            assert [t for t, _ in steps] == sorted({t for t, _ in steps})
    if view.possible.size:
        limits = prices(view, relax(view, EXACT), 0.3)
        more = columns.utility - costs(columns, limits.gpu) - limits.least[columns.job]
        assert (more > 1e-9).sum() <= len(schedules(view, limits).job) <= (more > -1e-9).sum()


def test_fig1_is_solved_by_all_models() -> None:
    view = hadar.view(instances.load("paper/hadar-fig1"))
    for method in ("hadar.p1", "hadar.p1.complete", "hadar.p1.per_server", "hadar.p2.enumerated"):
        assert optimum(method, view) == pytest.approx(FIG1, abs=1e-9), method
    verdict = run(view, "hadar.p1")
    assert verdict.quantities["completion_slots"].tolist() == [3, 2, 7]
    assert pytest.approx(48.8095, abs=5e-5) == FIG1


def run(view: HadarView, method: str) -> Any:
    spec = models.get(method)
    return judge(view.instance, spec.run(view, EXACT).decision, spec.problem, ())


def fig1(slots: int, **changes: Any) -> HadarView:
    """Return Fig. 1 with another horizon, and with some fields of its jobs changed."""
    instance = instances.load("paper/hadar-fig1")
    assert instance.horizon is not None
    jobs = tuple(job.model_copy(update=changes) for job in instance.jobs)
    horizon = instance.horizon.model_copy(update={"slots": slots})
    return hadar.view(instance.model_copy(update={"horizon": horizon, "jobs": jobs}))


@pytest.mark.parametrize("slots", [6, 7, 8, 10])
def test_fig1_needs_seven_slots_for_its_best_utility(slots: int) -> None:
    found = optimum("hadar.p1", fig1(slots))
    assert found is not None
    assert found == pytest.approx(FIG1) if slots >= 7 else found < FIG1 - 0.1


def test_fig1_ends_after_six_rounds_at_the_earliest() -> None:
    assert optimum("hadar.p1.complete", fig1(5)) is None
    assert optimum("hadar.p1.complete", fig1(6)) is not None
    assert run(fig1(6), "hadar.p1.complete").metrics["ttd_rounds"] == 6


def test_fig1_has_a_least_sum_of_completion_times_of_twelve() -> None:
    # Utility 100 − (slots to completion) for each of three jobs: 99 in the first slot, and 1 less in each later one.
    view = fig1(10, deadline_s=1.0, utility=LinearDeadline(amplitude=99.0, grace_s=99.0))
    assert optimum("hadar.p1.complete", view) == pytest.approx(300 - 12)
    assert run(view, "hadar.p1.complete").quantities["completion_slots"].tolist() == [3, 2, 7]


def test_fig1_cannot_use_all_gpus_in_a_round() -> None:
    view = hadar.view(instances.load("paper/hadar-fig1"))
    gangs = view.workload.gpus
    sums = {int(gangs[list(some)].sum()) for some in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2])}
    assert sums == {2, 3, 4, 5, 7}
    assert view.capacity.sum() == 6
    first = build(build_p1, view, Places.by_type(view))
    first.total.deactivate()
    first.used = gpus_in_slot(first, 0)
    assert solve(first, EXACT).objective == pytest.approx(5)


def gpus_in_slot(m: Any, slot: int) -> Any:
    """Return the objective that counts the GPUs used in a slot of P1."""
    cells = [key for key in m.w if key[1] == slot]
    return pyo.Objective(expr=sum(m.w[key] for key in cells), sense=pyo.maximize)


def test_p1_is_one_template_and_small() -> None:
    view = hadar.view(instances.load("paper/hadar-fig1"))
    model = build(build_p1, view, Places.by_type(view))
    form = compile_model(model)
    assert type(model.slowest_1b[0, 0, 0]).__name__ == "TemplateConstraintData"
    first = {j: min(f for i, f in model.v if i == j) for j in range(3)}
    assert first == {0: 2, 1: 1, 2: 4}
    assert form.matrix.shape[1] < 210


def test_jobs_that_cannot_complete_are_left_out_or_make_it_inapplicable() -> None:
    jobs = [{"gpus": 1, "epochs": 1, "rates": {"a": 1.0}}, {"gpus": 1, "epochs": 9, "rates": {"a": 1.0}}]
    view = hadar.view(linear(jobs, {"a": 1}, slots=3))
    assert optimum("hadar.p1", view) == optimum("hadar.p2.enumerated", view) == pytest.approx(1.0)
    for method in ("hadar.p1.complete", "hadar.p2.enumerated.complete"):
        with pytest.raises(NotApplicableError, match="J1"):
            models.get(method).solve(view.instance)
    nobody = hadar.view(linear(jobs[1:], {"a": 1}, slots=3))
    for method in ("hadar.p1", "hadar.p2.enumerated", "hadar.p2.relaxed", "hadar.p3"):
        assert "no job can complete" in str(models.get(method).skip(nobody))


def test_too_many_schedules_and_too_large_models_say_so() -> None:
    view = hadar.view(instances.load("gen/20jobs"))
    with pytest.raises(TooManyError, match="schedules"):
        models.get("hadar.p2.enumerated").run(view)
    assert "hadar.p2.columns" in str(models.get("hadar.p1").too_large(view))
    assert models.get("hadar.p1").too_large(fig1(8)) is None
    types = {f"g{i}": 3 for i in range(8)}
    wide = hadar.view(linear([{"gpus": 9, "epochs": 9, "rates": dict.fromkeys(types, 1.0)}], types, slots=2))
    with pytest.raises(TooManyError, match=f"{MOST_MIXES} mixes"):
        mixes(wide, 0)


def test_relaxations_end_as_rows_with_a_bound_and_no_objective() -> None:
    instance = fig1(6).instance
    rows = {}
    for method in ("hadar.p2.relaxed", "hadar.p3"):
        task = MethodTask(*sent(instance), method, limits=Limits(nodes=1))
        rows[method] = task.run().row
    assert rows["hadar.p2.relaxed"].own_bound == pytest.approx(440 / 9)
    assert rows["hadar.p3"].own_bound == pytest.approx(440 / 9)
    assert rows["hadar.p3"].objective is None


def test_equal_utility_keeps_the_last_slot_that_is_used() -> None:
    """With a constant utility, the model's last slot of a job is the last one in which it runs, as for the checker."""
    job = {"gpus": 1, "epochs": 2, "rates": {"a": 1.0}, "utility": {"kind": "constant", "amplitude": 3.0}}
    view = hadar.view(linear([job, job], {"a": 1}, slots=6))
    # `optimum` compares the two; the model's own last slots are those of the decoded schedule.
    assert optimum("hadar.p1", view) == pytest.approx(6.0)
    outcome = models.get("hadar.p1").run(view, EXACT)
    m = outcome.solution.model
    last = [key for key, v in zip(m.v, outcome.solution.array(m.v), strict=True) if v > 0.5]
    assert last == [(j, outcome.decision.slot[outcome.decision.job == j].max()) for j in range(2)]


def test_rates_far_apart_stay_within_what_a_solver_takes() -> None:
    jobs = [
        {"gpus": 2, "epochs": 1, "rates": {"a": 1e12, "b": 1e-12}},
        {"gpus": 1, "epochs": 1000, "rates": {"a": 500.0, "b": 1e-9}},
    ]
    view = hadar.view(linear(jobs, {"a": 2, "b": 2}, slots=4))
    for method in ("hadar.p1", "hadar.p2.enumerated"):
        assert optimum(method, view) == pytest.approx(1 / 3 + 1000 / 2), method
