"""The fluid bound of Zhou's jobs: how much of the cluster each job uses at least, and what that bounds."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pyomo.environ as pyo
import pytest
import zhou_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_schedules import arrays_of
from numpy.typing import NDArray
from zhou_solved import BOTH, architecture, run

from schedgap import instances, models
from schedgap.certificates import certified
from schedgap.harness.check import judge
from schedgap.instances.arrays import SLACK, Array
from schedgap.instances.moldable.options import largest
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.schema import Instance
from schedgap.instances.views import zhou
from schedgap.instances.views.zhou import Architecture, ZhouSchedule
from schedgap.models.engine.fluid import single_machine
from schedgap.models.engine.fluid._kernels import curves
from schedgap.models.engine.solve import Seed, SolveOptions, build, solve
from schedgap.models.provers.registry import prove
from schedgap.models.zhou import fluid


def thriftiest(a: Architecture, job: int, weights: Array) -> float:
    """Return the least volume of a job, by trying every number of workers and PSs on every kind of host."""
    points = choices(a, job, weights)
    return min((cost * max(1.0, 1 / rate) for rate, cost in points if rate > 0), default=math.inf)


def choices(a: Architecture, job: int, weights: Array) -> list[tuple[float, float]]:
    """Return (part of the work, cost) of each number of workers and PSs with which a job can run for a slot."""
    m, found = a.classes, []
    total = m.allowed
    each = weights.reshape(total.shape)
    fit = largest(m, a.id == "ra", int(a.most.max()))

    def cost(need: Array, fits: NDArray[np.bool_]) -> float:
        parts = np.divide(need, total, out=np.zeros_like(total), where=total > 0)
        return float(np.where(fits, (parts * each).sum(axis=1), math.inf).min())

    for kind_, number in product(range(len(m.worker)), range(1, int(a.most[job]) + 1)):
        e, room = m.worker[kind_], m.room[kind_]
        x = cost(e, room > 0)
        for p, together in product(range(len(m.ps)) if a.id == "ps" else (-1,), (True, False)):
            y, least = 0.0, 0
            if number > fit[kind_, max(p, 0), int(together)]:
                continue
            if p >= 0:
                z = m.ps[p]
                holds = (z <= m.capacity * (1 + SLACK)).all(axis=1)
                y = cost(z, holds)
                least = fewest(a, kind_, p, together, number)
            elif (room.max() < number) if together else (number < 2 or room @ m.count < number):
                continue
            if p >= 0 and least == 0:
                continue
            seconds = a.rates.slots(job, kind_, p, number, together)
            if np.isfinite(paid := number * x + least * y):
                found.append((number / (a.work[job] * seconds), paid))
    return found


def fewest(a: Architecture, worker_type: int, ps_type: int, together: bool, number: int) -> int:
    """Return the fewest PSs that serve so many workers from any host, 0 if no number does."""
    m = a.classes
    e, z = m.worker[worker_type], m.ps[ps_type]
    found = 0
    for h, beside in product(range(m.size), [number] if together else range(number)):
        if beside and not m.able[worker_type, h]:
            continue
        asked = 1.0 if together else (number - beside) * m.worker_bandwidth[worker_type] / m.ps_bandwidth[ps_type]
        servers = max(1, math.ceil(asked * (1 - SLACK)))
        fits = (beside * e + servers * z <= m.capacity[h] * (1 + SLACK)).all()
        if fits and (found == 0 or servers < found):
            found = servers
    return found if together or m.room[worker_type] @ m.count >= number else 0


@given(cases.small(jobs=3), st.sampled_from(BOTH), st.integers(0, 10**6))
@settings(max_examples=60)
def test_volumes_are_those_of_the_thriftiest_choice(case: Instance, name: str, seed: int) -> None:
    a = architecture(case, name)
    if not (a.weight > 0).any():
        return
    run_ = fluid.run_of(a)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(run_.group)))
    wanted = [thriftiest(a, j, weights) for j in np.flatnonzero(a.weight > 0).tolist()]
    volume = run_.volume(weights)
    assert volume == pytest.approx(wanted, rel=1e-6)
    assert run_.earliest - run_.start == pytest.approx(a.options.shortest[a.weight > 0])
    assert (run_.alone <= run_.earliest - run_.start).all()


@given(cases.small(jobs=3), st.sampled_from(BOTH), st.integers(0, 10**6))
@settings(max_examples=60)
def test_no_choice_is_below_the_curve_of_what_rates_cost(case: Instance, name: str, seed: int) -> None:
    """No number of workers is cheaper in a slot than a mixture of the ways to run; bounds over intervals need this."""
    a = architecture(case, name)
    if not (a.weight > 0).any():
        return
    run_ = fluid.run_of(a)
    ways, weights = run_.ways, np.random.default_rng(seed).dirichlet(np.ones(len(run_.group)))
    first = np.append(ways.first, len(ways.time))
    unit, rate, _, steps = curves(run_.cost(weights)[None], ways.time, first, False)
    for i, job in enumerate(np.flatnonzero(a.weight > 0).tolist()):
        for done, cost in choices(a, job, weights):
            left, paid = min(done, 1.0) * (1 - 1e-7), 0.0
            for s in range(steps[i, 0]):
                part = min(left, rate[i, 0, s])
                left, paid = left - part, paid + part * unit[i, 0, s]
            assert left <= 1e-7
            assert paid <= cost * (1 + 1e-6)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=6), st.sampled_from(BOTH))
@settings(max_examples=25)
def test_on_one_gpu_the_fluid_of_equal_weights_is_the_optimum(jobs: list[tuple[int, int]], name: str) -> None:
    """On one GPU with equal weights, the fluid bound is the optimum with interruptions (shortest remaining first).

    The search for weights is not exact.
    """
    made = [cases.job(1, slots, weight=2.0, submit_s=float(at)) for at, slots in jobs]
    view = zhou.view(cases.instance(made, [cases.ONE_GPU]))
    left, total = [slots for _, slots in jobs], 0
    for slot in range(1, 60):
        ready = [(left[j], j) for j, (at, _) in enumerate(jobs) if at < slot and left[j]]
        if ready:
            j = min(ready)[1]
            left[j] -= 1
            total += 2 * (slot + 1) * (left[j] == 0)
    bound = run(f"zhou.{name}.fluid", view).solution.bound
    assert bound is not None
    assert total * (1 - 1e-3) <= bound <= total * (1 + 1e-9)
    over_time = run(f"zhou.{name}.intervals", view).solution.bound
    assert over_time is not None
    assert over_time <= total * (1 + 1e-9)


@given(cases.small(), st.sampled_from(BOTH))
@settings(max_examples=10)
def test_the_lp_over_intervals_is_near_the_fast_bound(case: Instance, name: str) -> None:
    a = architecture(case, name)
    if not (a.weight > 0).any():
        return
    run_ = fluid.run_of(a)
    weights = single_machine.weigh(run_)
    busy = single_machine.bound_of(run_, run_.volume(weights), np.ones(len(run_.start)))
    loose, capped = (solve(build(single_machine.build_intervals, run_, weights, capped=c)) for c in (False, True))
    assert loose.objective is not None
    assert capped.objective is not None
    two = 2 * float(pyo.value(loose.model.mean_length)) * run_.weight.sum()
    assert loose.objective * (1 - 1e-6) <= busy <= (loose.objective + two) * (1 + 1e-6)
    assert loose.objective <= capped.objective * (1 + 1e-6)
    best = single_machine.best_bound(run_)[1]
    assert best >= max(busy, float(run_.weight @ run_.earliest)) * (1 - 1e-12)


def test_interrupting_can_be_better_than_any_uninterrupted_schedule_and_no_worse_than_the_fluid() -> None:
    """An interrupted schedule beats all others, but not the fluid bound, which allows interruptions.

    A heavy short job arrives while a long one runs.
    """
    jobs = [cases.job(1, 4), cases.job(1, 1, weight=5.0, submit_s=1.0)]
    view = zhou.view(cases.instance(jobs, [cases.ONE_GPU]))
    assert run("zhou.ra.offline", view).solution.objective == pytest.approx(5 * 3 + 7)
    interrupted = zhou.ZhouSchedule(
        job=np.array([0, 1, 0]), start=np.array([1, 2, 3]), slots=np.array([1, 1, 3]), worker_type=np.zeros(3, int),
        ps_type=np.full(3, -1), run=np.arange(3), server=np.zeros(3, int), workers=np.ones(3, int), ps=np.zeros(3, int),
    )  # fmt: skip
    verdict = judge(view.instance, interrupted, "zhou.ra.preemptive", ())
    assert not verdict.violations
    assert verdict.objective == 5 * 3 + 6
    bound = run("zhou.ra.fluid", view).solution.bound
    assert bound is not None
    assert 5 * 3 + 5 <= bound <= 21
    over_time = run("zhou.ra.intervals", view).solution.bound
    assert over_time is not None
    assert 5 * 3 + 5 <= over_time <= 21


def test_jobs_of_no_weight_have_a_fluid_of_nothing() -> None:
    view = zhou.view(cases.instance([cases.job(weight=0.0)]))
    assert run("zhou.ps.fluid", view).solution.bound == 0
    assert run("zhou.ps.intervals", view).solution.bound == 0
    assert run("zhou.ps.offline", view).solution.objective == 0


@pytest.mark.parametrize("name", BOTH)
def test_thousands_of_jobs_have_a_fluid(name: str) -> None:
    view = zhou.view(instances.load("gen/2000jobs"))
    found = run(f"zhou.{name}.fluid", view).solution.bound
    assert found is not None
    assert found > 0


@pytest.mark.parametrize(("cpus", "slots"), [(0.333333336, 1), (0.33333334, 2)])
def test_bounds_and_the_checker_agree_on_what_fits(cpus: float, slots: int) -> None:
    """Bounds and checker both allow workers that need 0.8e-8 of a server too much, and both refuse 2e-8."""
    case = cases.instance([cases.job(3)], [cases.servers(gpus=3, cpus=1.0)], [cases.worker(cpus=cpus)], types=())
    view = zhou.view(case)
    for workers, needed in ((3, 1), (2, 2)):
        schedule = ZhouSchedule(*arrays_of([(0, 1, needed, 0, -1, [(0, workers, 0)])]), *np.zeros((4, 0), np.int64))
        verdict = judge(view.instance, schedule, "zhou.ra.completion", ())
        assert (verdict.violations == ()) == (needed >= slots), verdict.violations
    for method in ("fluid", "intervals", "offline", "columns"):
        assert run(f"zhou.ra.{method}", view).solution.bound == pytest.approx(1 + slots), method


@pytest.mark.parametrize("seed", range(12))
def test_a_schedule_of_jobs_that_may_be_interrupted(seed: int) -> None:
    """It is as good as the best one without interruptions, and no worse than a known one with them."""
    view = zhou.view(RANDOM.get("zhou").draw(np.random.default_rng(seed)))
    for arch in BOTH:
        if view.architectures[arch].reason:
            continue
        spec = models.get(f"zhou.{arch}.interrupted")
        outcome = spec.run(view, SolveOptions(nodes=20))
        verdict = judge(view.instance, outcome.decision, spec.problem)
        assert verdict.violations == ()
        assert verdict.objective == pytest.approx(outcome.solution.objective)
        whole = models.get(f"zhou.{arch}.columns").run(view, SolveOptions(nodes=20)).solution
        assert verdict.objective == pytest.approx(whole.objective)
        assert outcome.solution.bound <= verdict.objective * (1 + 1e-9)
        proof = prove(spec.problem, view, outcome, SolveOptions())
        if proof is not None:
            least = certified(proof | {"problem": spec.problem}, view.instance.plain)
            assert least == pytest.approx(outcome.solution.bound, rel=1e-6)
        known = Seed("known", "a better one", verdict.objective * 0.9)
        again = spec.run(view, SolveOptions(nodes=1, seeds=[known]))
        assert (again.decision, again.solution.objective) == (known.decision, known.objective)
