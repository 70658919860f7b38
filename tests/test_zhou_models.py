"""Zhou's exact models agree with results by hand, with each other, and with their duals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import zhou_cases as cases
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from zhou_solved import BOTH, EXACT, architecture, optimum, run

from schedgap import instances, models
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.moldable import Ledger
from schedgap.instances.schema import Instance
from schedgap.instances.views import zhou
from schedgap.models.engine.solve import build, solve
from schedgap.models.zhou import schedules
from schedgap.models.zhou.common import choices, horizon
from schedgap.models.zhou.offline import build_maxweight, build_offline, every_option
from schedgap.models.zhou.schedules import build_dual, build_schedules, offline_schedules, weight_schedules

# ------------------------------------------------------------------------------------------- by hand

LONG_AND_SHORT = [cases.job(1, 4), cases.job(1, 1), cases.job(1, 2, weight=0.0, submit_s=1.0)]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("model", ["offline", "schedules.offline"])
def test_the_short_job_goes_first_and_a_job_of_no_weight_last(name: str, model: str) -> None:
    view = zhou.view(cases.instance(LONG_AND_SHORT, [cases.ONE_GPU]))
    found = run(f"zhou.{name}.{model}", view)
    # J2 in slot 1 completes at 2, J1 in slots 2 to 5 at 6; J3, of weight 0, whenever.
    assert found.solution.objective == pytest.approx(8)
    assert found.solution.bound == pytest.approx(8)
    chosen = dict(zip(found.decision.job.tolist(), found.decision.start.tolist(), strict=True))
    assert (chosen[1], chosen[0]) == (1, 2)
    assert chosen[2] >= 6


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("model", ["maxweight", "schedules"])
def test_slot_tau_is_never_used(name: str, model: str) -> None:
    jobs = [cases.job(1, 3, weight=3.0), cases.job(1, 1, weight=2.0), cases.job(1, 2, weight=2.0)]
    view = zhou.view(cases.instance(jobs, [cases.ONE_GPU]))
    assert view.architectures[name].deadline == 4
    found = run(f"zhou.{name}.{model}", view)
    # Three slots before slot 4: both short jobs.
    assert found.solution.objective == pytest.approx(4)
    assert sorted(found.decision.job.tolist()) == [1, 2]
    assert (found.decision.start + found.decision.slots).max() == 4


def test_two_workers_of_a_ring_may_be_slower_than_one() -> None:
    """Two workers of a ring that each do half the work can take longer than one, because updates take time."""
    slow = cases.job(2, 1, minibatch_s=1.0, ring_update_s=3.0)
    assert optimum(build(build_offline, architecture(cases.instance([slow]), "ra"))) == pytest.approx(1 + 2)
    fast = cases.job(2, 1, minibatch_s=1.0, ring_update_s=0.0)
    assert optimum(build(build_offline, architecture(cases.instance([fast]), "ra"))) == pytest.approx(1 + 1)


def test_one_server_saves_the_transfer_and_several_are_needed_for_more_workers() -> None:
    host = cases.servers(2, gpus=2)
    tight = cases.job(4, 1, minibatch_s=0.5, gradient_mb=0.5 * cases.MB_PER_S)
    # Four workers on two servers: 0.5 + 0.5 in one slot; with 0.5 + 1.5 in two, as two on one server.
    assert optimum(build(build_offline, architecture(cases.instance([tight], [host]), "ps"))) == pytest.approx(2)
    slow = cases.job(4, 1, minibatch_s=0.5, gradient_mb=1.5 * cases.MB_PER_S)
    two = [slow, slow]
    assert optimum(build(build_offline, architecture(cases.instance(two, [host]), "ps"))) == pytest.approx(2 + 2)


def test_a_server_without_gpus_holds_parameter_servers() -> None:
    """A PS runs on a server without GPUs if the worker's server has no CPU left; then gradients take a slot."""
    groups = [cases.servers(gpus=1, cpus=1.0), cases.servers(gpus=0, cpus=1.0)]
    case = cases.instance([cases.job(1, 2, gradient_mb=cases.MB_PER_S)], groups)
    assert run("zhou.ps.offline", zhou.view(case)).decision.server.tolist() == [0, 1]
    assert optimum(build(build_offline, architecture(case, "ps"))) == pytest.approx(1 + 4)
    assert optimum(build(build_offline, architecture(case, "ra"))) == pytest.approx(1 + 2)


# ------------------------------------------------------------------------------------------- models agree


@given(cases.tiny(), st.sampled_from(BOTH))
@settings(max_examples=examples(6))
def test_the_compact_model_is_the_one_over_all_schedules(case: Instance, name: str) -> None:
    view = zhou.view(case)
    a = view.architectures[name]
    found = run(f"zhou.{name}.schedules.offline", view)
    best = found.solution.objective
    assert best is not None
    compact = run(f"zhou.{name}.offline", view)
    assert compact.solution.objective == pytest.approx(best, rel=1e-7)
    assert compact.solution.bound == pytest.approx(best, rel=1e-7)
    bound = run(f"zhou.{name}.fluid", view).solution.bound
    assert bound is not None
    assert bound <= best * (1 + 1e-9)
    # Schedules with more slots than needed are not better.
    later = schedules.schedules(a, a.arrival, horizon(a) + 2)
    assert optimum(build(build_schedules, a, later, True)) == pytest.approx(best, rel=1e-7)


CROWDED = st.tuples(cases.tiny(arrivals=(0.0,)), st.sampled_from(BOTH), st.integers(3, 6))


@given(CROWDED)
@settings(max_examples=examples(8))
def test_the_largest_weight_and_the_dual(given_: tuple[Instance, str, int]) -> None:
    case, name, tau = given_
    a = architecture(case, name)
    found = weight_schedules(a, tau)
    best = optimum(build(build_maxweight, a, tau)) if found.job.size else 0.0
    if not found.job.size:
        return
    assert optimum(build(build_schedules, a, found)) == pytest.approx(best, rel=1e-7)
    relaxed = optimum(build(build_schedules, a, found, relaxed=True))
    assert relaxed >= best * (1 - 1e-9)
    dual = build(build_dual, a, found)
    solved = solve(dual, EXACT)
    assert solved.objective is not None
    assert solved.objective == pytest.approx(relaxed, rel=1e-7)
    # (10): u is the larger of 0 and the best schedule's worth, found by a ledger at these prices.
    price = np.zeros((*a.machines.capacity.shape, tau - 1))
    for (h, r, t), part in zip(dual.delta.keys(), solved.array(dual.delta).tolist(), strict=True):
        price[h, r, t - 1] = part
    ledger = Ledger(a.machines, a.options, tau - 1)
    ledger.post(price)
    for j, u in zip(dual.u.keys(), solved.array(dual.u).tolist(), strict=True):
        run_ = ledger.find(j, 0)
        worth = a.weight[j] - run_.cost if run_ else 0.0
        assert u == pytest.approx(max(0.0, worth), rel=1e-6, abs=1e-6 * float(a.weight.max()))


@pytest.mark.parametrize("name", BOTH)
def test_the_relaxation_and_the_dual_of_contended_jobs(name: str) -> None:
    """The relaxation completes one and a half of two jobs that each need two of the three slots before τ."""
    jobs = [cases.job(1, 2), cases.job(1, 2)]
    view = zhou.view(cases.instance(jobs, [cases.ONE_GPU], slots=4))
    assert view.architectures[name].deadline == 4
    assert run(f"zhou.{name}.schedules", view).solution.objective == pytest.approx(1)
    relaxed, dual = (run(f"zhou.{name}.{model}", view) for model in ("schedules.relaxed", "dual"))
    assert relaxed.decision is None
    assert dual.decision is None
    assert relaxed.solution.bound == pytest.approx(1.0)
    assert dual.solution.bound == pytest.approx(1.0)


@given(cases.tiny(), st.sampled_from(BOTH))
@settings(max_examples=10)
def test_dominated_options_change_no_optimum(case: Instance, name: str) -> None:
    a = architecture(case, name)
    best = optimum(build(build_schedules, a, offline_schedules(a), True))
    all_of_them = replace(a)
    object.__setattr__(all_of_them, "options", every_option(a))
    everything = schedules.schedules(all_of_them, a.arrival, horizon(a))
    assert everything.job.size >= offline_schedules(a).job.size
    assert optimum(build(build_schedules, a, everything, True)) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_weights_count_relatively(unit: float) -> None:
    jobs = [cases.job(2, 2, weight=w) for w in (1.0, 2.0, 3.0)]
    tiny = [cases.job(2, 2, weight=w * unit) for w in (1.0, 2.0, 3.0)]
    for model in ("offline", "schedules.offline", "maxweight", "schedules", "dual", "fluid"):
        usual, other = (
            run(f"zhou.ra.{model}", zhou.view(cases.instance(some, [cases.ONE_GPU]))).solution.bound
            for some in (jobs, tiny)
        )
        assert usual is not None
        assert other == pytest.approx(usual * unit, rel=1e-6)


# ------------------------------------------------------------------------------------------- registration


def test_models_say_why_they_cannot_run() -> None:
    big = cases.worker(gpus=9)
    case = cases.instance([cases.job()], workers=[big])
    for model in ("offline", "maxweight", "schedules", "schedules.offline", "dual", "mincost", "fluid"):
        for name in BOTH:
            with pytest.raises(NotApplicableError, match="J1 cannot run: no server has room"):
                models.get(f"zhou.{name}.{model}").solve(case)
        with pytest.raises(NotApplicableError, match="no PS types"):
            models.get(f"zhou.ps.{model}").solve(cases.instance([cases.job()], types=()))
        assert models.get(f"zhou.ra.{model}").solve(cases.instance([cases.job()], types=())).bound is not None


def test_large_instances_run_on_request_only() -> None:
    view = zhou.view(instances.load("gen/200jobs"))
    for name in BOTH:
        for model in ("offline", "maxweight"):
            spec = models.get(f"zhou.{name}.{model}")
            assert "bounds the same optimum" in str(spec.too_large(view))
            if model == "offline":
                with pytest.raises(NotApplicableError, match="choices times servers, more than"):
                    spec.run(view)
        for model in ("schedules", "schedules.offline", "dual", "schedules.relaxed"):
            spec = models.get(f"zhou.{name}.{model}")
            assert "schedules" in str(spec.too_large(view))
            with pytest.raises(NotApplicableError, match="more than"):
                spec.run(view)
        assert models.get(f"zhou.{name}.fluid").too_large(view) is None


def test_choices_start_between_arrival_and_the_end() -> None:
    case = cases.instance([cases.job(1, 2), cases.job(2, 1, submit_s=2.0)], [cases.ONE_GPU])
    a = architecture(case, "ra")
    chosen = choices(a.options, a.arrival, 6)
    kept = list(zip(chosen.job.tolist(), chosen.start.tolist(), chosen.slots.tolist(), strict=True))
    assert kept == [*((0, t, 2) for t in (1, 2, 3, 4)), *((1, t, 2) for t in (3, 4))]
    assert horizon(a) == 3 + 2 + 2


# --------------------------------------------------------------------------------------- what once was wrong


def test_the_weight_of_a_job_that_cannot_run_does_not_drown_the_others() -> None:
    """A huge weight of a job that cannot end by τ does not hide a weight of 1 in the solver's tolerances."""
    jobs = [cases.job(1, 1, 1, weight=1.0), cases.job(1, 1, 6, weight=1e7)]
    view = zhou.view(cases.instance(jobs))
    for name in ("schedules", "schedules.relaxed", "dual", "maxweight"):
        bound = models.get(f"zhou.ps.{name}").run(view).solution.bound
        assert bound == pytest.approx(1.0), name


@pytest.mark.parametrize("arch", ["ps", "ra"])
def test_types_that_take_nothing_to_speak_of_are_no_error(arch: str) -> None:
    case = cases.instance(
        [cases.job(), cases.job(weight=2.0)],
        [cases.servers(2, 1, bandwidth_gbps=1e9)],
        [cases.worker(0, 0.0, memory_gb=0.0, bandwidth_gbps=1e-3)],
        [cases.ps(0, 0.0, memory_gb=0.0, bandwidth_gbps=1e-3)],
    )
    view = zhou.view(case)
    for name, right in (("offline", 6.0), ("schedules.offline", 6.0), ("columns", 6.0), ("schedules", 3.0)):
        assert models.get(f"zhou.{arch}.{name}").run(view).solution.objective == pytest.approx(right), name
    assert models.get(f"zhou.{arch}.dual").run(view).solution.bound == pytest.approx(3.0)


def test_long_jobs_are_too_large_rather_than_slow() -> None:
    view = zhou.view(cases.instance([cases.job(epochs=10**6), cases.job(weight=3.0)]))
    for name in ("columns", "schedules", "schedules.offline", "offline", "maxweight"):
        assert models.get(f"zhou.ps.{name}").too_large(view), name
