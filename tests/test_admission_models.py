"""The admission ILP, its dual, an exhaustive search and the walk-through's example agree with one another."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from admission_cases import exhaustive, instance, job, tiny, view
from conftest import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schedgap import instances, models
from schedgap.harness.check import judge
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.run import compare, compare_here
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.schema import Instance
from schedgap.instances.views.admission import FROM_ARRIVAL, UTILITY, AdmissionView
from schedgap.models.admission import offline
from schedgap.models.engine.moldable import placements
from schedgap.models.engine.solve import Solution, SolveOptions, build, solve

WALK = view(instances.load("paper/walkthrough"))
EXACT = SolveOptions(rel_gap=0.0)
CROWDED = instance([job(deadline=5.0)] * 3, [("w", 2, 1), ("w", 1, 1)], slots=5)
"""An instance of three equal jobs, of which two fit by the deadline."""


def optimum(of: AdmissionView, name: str = "offline") -> float:
    """Solve an admission model; check its decision and return the optimum."""
    spec = models.get(f"admission.{name}")
    if spec.skip(of):
        return 0.0
    assert spec.too_large(of) is None
    outcome = spec.run(of, EXACT)
    assert outcome.solution.status == "optimal"
    assert outcome.solution.bound == pytest.approx(outcome.solution.objective, rel=1e-9)
    verdict = judge(of.instance, outcome.decision, spec.problem, spec.claims)
    assert not verdict.violations
    assert verdict.objective == pytest.approx(outcome.solution.objective, rel=1e-9)
    assert verdict.objective is not None
    return verdict.objective


# the text's case ----------------------------------------------------------------------------------


def test_the_texts_431_33_is_not_the_optimum() -> None:
    f = WALK.utility(0)
    assert optimum(WALK) == pytest.approx(2 * f[6] + f[7])
    assert optimum(WALK) == pytest.approx(435.01, abs=0.005)
    assert optimum(WALK, "offline.from_arrival") == pytest.approx(2 * f[5] + f[6])
    assert optimum(WALK, "offline.from_arrival") == pytest.approx(439.50, abs=0.005)


def test_the_best_schedule_runs_all_jobs_side_by_side() -> None:
    decision = models.get("admission.offline").run(WALK, EXACT).decision
    order = np.argsort(decision.job)
    assert decision.start[order].tolist() == [4, 4, 4]
    assert decision.slots[order].tolist() == [2, 2, 3]
    assert decision.workers.tolist() == [2, 2, 2]
    assert len(set(decision.server.tolist())) == 3


def test_the_text_says_that_j3_must_be_spread() -> None:
    """The text's J3 with three workers must be spread; two workers on one server do its work in three slots."""
    o = WALK.options
    mine = o.of(2)
    found = set(zip(o.workers[mine].tolist(), o.together[mine].tolist(), o.slots[mine].tolist(), strict=True))
    assert (2, True, 3) in found
    assert (3, False, 4) in found
    assert not any(number == 3 and together for number, together, _ in found)


def test_compare_shows_published_online_and_optimal() -> None:
    rows = {row.method: row for row in compare("paper/walkthrough", papers=["admission"], jobs=1).rows}
    assert rows["admission.offline"].objective == pytest.approx(435.0058969816794)
    assert rows["admission.online"].objective == pytest.approx(432.0107912238)
    assert rows["admission.dual"].own_bound == pytest.approx(435.0058969816794)
    assert rows["admission.online"].ratio == pytest.approx(435.0058969816794 / 432.0107912238)
    assert rows["admission.online"].guarantee is None
    (online,), (exact,) = (rows[f"admission.{name}"].published for name in ("online", "offline"))
    assert (online["value"], online["agrees"]) == (431.33, False)
    assert (exact["value"], exact["agrees"], exact["exact_agrees"]) == (431.33, False, True)
    assert "432.01" in online["note"]


# exactness ----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(tiny(), st.sampled_from(["offline", "offline.from_arrival"]))
@example(CROWDED, "offline")
def test_the_ilp_finds_what_an_exhaustive_search_finds(of: Instance, name: str) -> None:
    assert optimum(view(of), name) == pytest.approx(exhaustive(of, int(name == "offline")), rel=1e-9, abs=1e-12)


@settings(max_examples=examples(10), deadline=None)
@given(tiny(jobs=4))
@example(CROWDED)
def test_the_dual_is_that_of_the_relaxation(of: Instance) -> None:
    v = view(of)
    if placements.starts(v.options, v.first_start(UTILITY.id), v.deadline).any():
        relaxed, dual = relaxation(v), models.get("admission.dual").run(v, EXACT).solution
        assert relaxed.objective is not None
        assert dual.bound == pytest.approx(relaxed.objective, rel=1e-8)
        assert dual.bound is not None
        assert dual.bound == dual.objective
        assert optimum(v) <= dual.bound * (1 + 1e-8)
        check_payoffs(v, relaxed)


def relaxation(v: AdmissionView) -> Solution:
    return solve(build(offline.build_offline, v, relaxed=True), SolveOptions(method="simplex"))


def check_payoffs(v: AdmissionView, relaxed: Solution) -> None:
    """Check that at the relaxation's prices a job's payoff is that of its best schedule, or 0 if that is negative."""
    m = relaxed.model
    assert relaxed.row_duals is not None
    duals = {
        (row.parent_component().name, row.index()): d for row, d in zip(relaxed.rows, relaxed.row_duals, strict=True)
    }
    found = offline.schedules(v, UTILITY.id)
    for j in m.JOBS:
        payoffs = [0.0]
        for k in np.flatnonzero(found.job == j).tolist():
            workers = sum(m.y[k, s, w] * duals["workers", (s, w, t)] for s, w, t in m.RUNNING[k])
            servers = sum(m.z[k, s, p] * duals["servers", (s, p, t)] for s, p, t in m.SERVING[k])
            payoffs.append(m.f[k] - workers - servers)
        assert duals["one", j] == pytest.approx(max(payoffs), abs=1e-7 * max(m.f.values()))


def test_a_relaxation_may_be_worth_more_than_any_schedule() -> None:
    """Three jobs each need two of three workers: only one runs, but the relaxation runs half of each."""
    v = view(instance([job(deadline=3.0)] * 3, [("w", 3, 3)], slots=4))
    assert optimum(v) == pytest.approx(v.utility(0)[3])
    dual = models.get("admission.dual").run(v, EXACT).solution.bound
    assert dual == pytest.approx(1.5 * v.utility(0)[3])


@pytest.mark.parametrize("worth", [1e-9, 1e9])
def test_the_unit_of_utility_does_not_matter(worth: float) -> None:
    jobs = [job(deadline=5.0, worth=worth), job(chunks=3, worth=2 * worth), job(worth=worth / 1000)]
    of = instance(jobs, [("w", 2, 1), ("w", 1, 1)], slots=6)
    assert optimum(view(of)) == pytest.approx(exhaustive(of), rel=1e-9)
    dual = models.get("admission.dual").run(view(of), EXACT).solution.bound
    assert dual is not None
    assert dual >= exhaustive(of) * (1 - 1e-9)


def test_what_no_start_reaches_needs_no_unit() -> None:
    """A steep utility is worth e^5 times as much an end earlier, and the first end is too early for any run."""
    of = instance([job(chunks=1, epochs=1, steepness=5.0)])
    (row,) = compare_here(of, "admission.columns", probes=False).rows
    assert row.own_bound == pytest.approx(300 / (1 + math.exp(10.0)), rel=1e-6)
    assert not row.unproved


# what cannot run ----------------------------------------------------------------------------------


def test_nobody_can_be_admitted() -> None:
    v = view(instance([job(deadline=1.0)] * 2))
    for name in ("offline", "dual"):
        assert models.get(f"admission.{name}").skip(v) == "no job can meet its deadline"
    # From the arrival slot on, four workers on two servers would do; there are at most two, which take two slots.
    assert models.get("admission.offline.from_arrival").skip(v) is not None
    assert models.get("admission.offline.from_arrival").skip(view(instance([job(deadline=2.0)]))) is None


def test_one_job_that_cannot_be_admitted_does_not_matter() -> None:
    of = instance([job(deadline=1.0), job()])
    assert optimum(view(of)) == pytest.approx(exhaustive(of))


def test_too_many_schedules_are_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    v = view(instances.load("gen/20jobs"))
    for name in ("offline", "offline.from_arrival", "dual"):
        assert models.get(f"admission.{name}").too_large(v) == "more than 10,000 schedules"
    instance_ = instances.load("gen/20jobs")
    task = MethodTask(*sent(instance_), "admission.offline", limits=Limits())
    assert task.run().row.status == "skipped"
    asked = replace(task, limits=Limits(all_sizes=True)).run().row
    assert (asked.status, asked.reason) == ("skipped", "more than 10,000 schedules")
    found = len(offline.schedules(WALK, FROM_ARRIVAL.id).job)
    monkeypatch.setattr(placements, "MOST_SCHEDULES", found)
    assert len(offline.schedules(WALK, FROM_ARRIVAL.id).job) == found
    monkeypatch.setattr(placements, "MOST_SCHEDULES", found - 1)
    with pytest.raises(NotApplicableError):
        offline.schedules(WALK, FROM_ARRIVAL.id)
