"""Gavel's fluid makespan bounds every schedule, and its checker counts up to the end of the last slot."""

from __future__ import annotations

import numpy as np
import pytest
from hadar_reference import fifo, instances_of, linear, with_long_horizon
from hypothesis import given, settings

import schedgap as sg
from schedgap import instances, models
from schedgap.harness.check import judge
from schedgap.heuristics.hadar import slotted
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Cluster, GpuType, Instance, Job, ServerGroup
from schedgap.instances.views import gavel, hadar
from schedgap.instances.views.hadar import HadarSchedule, HadarView
from schedgap.models.engine.solve import SolveOptions


def bound(view: HadarView, model: str = "gavel.makespan_fluid") -> float:
    solution = models.get(model).run(view).solution
    assert solution.status == "optimal"
    assert solution.bound is not None
    return solution.bound


@given(instances_of(jobs=5))
@settings(max_examples=30)
def test_no_schedule_beats_the_fluid_bound(instance: Instance) -> None:
    view = gavel.view(with_long_horizon(instance))
    schedule = slotted.schedule(view, fifo)
    verdict = judge(view.instance, schedule, gavel.MAKESPAN.id, ())
    assert not verdict.violations
    assert verdict.objective is not None
    assert verdict.objective == (schedule.slot.max() + 1) * view.slot_s
    assert bound(view) <= verdict.objective * (1 + 1e-9)
    assert bound(view, "gavel.makespan_copies") <= bound(view) * (1 + 1e-9)


@given(instances_of(jobs=3))
@settings(max_examples=6)
def test_no_schedule_has_a_lower_mean_than_its_bounds(instance: Instance) -> None:
    view = gavel.view(with_long_horizon(instance))
    schedule, last = slotted.schedule(view, fifo), np.zeros(view.size)
    np.maximum.at(last, schedule.job, (schedule.slot + 1) * view.slot_s)
    mean = float((last - view.workload.arrival_s).mean())
    assert bound(view, "gavel.jct") <= mean * (1 + 1e-9)
    assert bound(view, "gavel.jct_copies") <= mean * (1 + 1e-9)


@given(instances_of(jobs=2, slots=4))
@settings(max_examples=25)
def test_a_schedule_that_completes_all_in_a_horizon_needs_the_bound(instance: Instance) -> None:
    """In a horizon shorter than the bound on the makespan, P1 cannot complete all jobs."""
    view = hadar.view(with_long_horizon(instance))
    slots = int(np.ceil(bound(view) / view.slot_s * (1 - 1e-9))) - 1
    if slots <= view.arrival.max():
        return
    assert instance.horizon is not None
    shorter = hadar.view(instance.model_copy(update={"horizon": instance.horizon.model_copy(update={"slots": slots})}))
    spec = models.get("hadar.p1.complete")
    assert spec.skip(shorter) or spec.run(shorter, SolveOptions()).solution.status == "infeasible"


def test_one_job_on_two_types_is_as_fast_as_the_faster() -> None:
    view = gavel.view(linear([{"gpus": 2, "epochs": 12, "rates": {"a": 3.0, "b": 1.0}}], {"a": 2, "b": 2}, slots=9))
    assert bound(view) == pytest.approx(2.0)
    assert bound(view, "gavel.jct") == pytest.approx(2.0)
    # Copies run on all four GPUs at once.
    assert bound(view, "gavel.makespan_copies") == pytest.approx(12 / 8)
    assert bound(view, "gavel.jct_copies") == pytest.approx(12 / 8)


def test_on_one_gpu_the_least_mean_is_that_of_the_shortest_first() -> None:
    jobs = [{"gpus": 1, "epochs": length, "rates": {"a": 1.0}} for length in (3, 1, 2)]
    view = gavel.view(linear(jobs, {"a": 1}, slots=20))
    for model in ("gavel.jct", "gavel.jct_copies"):
        assert bound(view, model) == pytest.approx((1 + 3 + 6) / 3)


def test_jobs_share_the_types_by_comparative_advantage() -> None:
    jobs = [
        {"gpus": 1, "epochs": 12, "rates": {"a": 2.0, "b": 1.0}},
        {"gpus": 1, "epochs": 12, "rates": {"a": 3.0, "b": 3.0}},
    ]
    view = gavel.view(linear(jobs, {"a": 1, "b": 1}, slots=20))
    # Alone on its faster GPU the first job takes 6 s and the second 4 s; both run at the same time.
    assert bound(view) == pytest.approx(6.0)


def test_arrivals_count() -> None:
    jobs = [
        {"gpus": 1, "epochs": 2, "rates": {"a": 1.0}},
        {"gpus": 1, "epochs": 2, "rates": {"a": 1.0}, "submit_s": 4.5},
    ]
    view = gavel.view(linear(jobs, {"a": 1}, slots=20))
    assert bound(view) == pytest.approx(5 + 2)


def test_fig1_and_the_generated_day_have_bounds() -> None:
    assert bound(gavel.view(instances.load("paper/hadar-fig1"))) == pytest.approx(10 / 3)
    view = gavel.view(instances.load("gen/20jobs"))
    assert view.arrival.max() * view.slot_s <= bound(view) <= view.slots * view.slot_s
    assert "20 jobs on 4 V100" in PAPERS.get("gavel").describe(view)


def test_a_job_that_never_completes_has_no_makespan() -> None:
    instance = linear([{"gpus": 1, "epochs": 9, "rates": {"a": 1.0}}], {"a": 1}, slots=3)
    with pytest.raises(NotApplicableError, match="J0"):
        gavel.view(instance)


def test_the_checker_wants_every_job_and_well_formed_arrays() -> None:
    instance = linear([{"gpus": 1, "epochs": 1, "rates": {"a": 1.0}}] * 2, {"a": 1}, slots=3, slot_s=2.0)
    both = HadarSchedule.of(np.array([(0, 0, 0, 1), (1, 2, 0, 1)]))
    verdict = judge(instance, both, gavel.MAKESPAN.id)
    assert verdict.objective == verdict.quantities["makespan_s"] == 6.0
    assert not verdict.violations
    assert (
        "J1 is rejected" in judge(instance, HadarSchedule.of(np.array([(0, 0, 0, 1)])), gavel.MAKESPAN.id).violations[0]
    )
    assert judge(instance, HadarSchedule.of(np.array([(0, 9, 0, 1)])), gavel.MAKESPAN.id).objective is None


def test_bounds_hold_at_unix_times() -> None:
    servers = (ServerGroup(name="h", count=1, gpu_type="V100", gpus=2),)
    cluster, sums = Cluster(gpu_types=(GpuType(name="V100"),), servers=servers), []
    for start in (0.0, 1.7e9):
        jobs = (
            Job(id="j0", epochs=1, gpus=1, rates={"V100": 0.3}, submit_s=start + 1.0),
            Job(id="j1", epochs=8, gpus=2, rates={"V100": 0.7}, submit_s=start + 3.6),
            Job(id="j2", epochs=1, gpus=1, rates={"V100": 1.0}, submit_s=start + 2.3),
        )
        instance = Instance(name="clock", cluster=cluster, jobs=jobs)
        (row,) = sg.simulate(instance, ["hadar.srtf"], round_s=1.0, restart_s=0.0).rows
        assert row.verified
        sums.append(row.jct_bound_s)
    assert sums[1] <= sums[0] * (1 + 1e-4)  # a margin for rounding grows with the times
