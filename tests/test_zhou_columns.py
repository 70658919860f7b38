"""Column generation for Zhou finds the optimum of the LP over all schedules, by class of servers as by server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zhou_cases as cases
from conftest import examples
from hypothesis import given, settings

from schedgap import models
from schedgap.harness.check import judge
from schedgap.instances import load
from schedgap.instances.moldable import Machines, RunOptions, classes, in_units
from schedgap.instances.schema import Instance
from schedgap.instances.views import zhou
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, ZhouView
from schedgap.models.engine.columns import Domain, GenerationOptions, Master, generate
from schedgap.models.engine.moldable import CapacityGrid, MoldableJobs, MoldablePricing
from schedgap.models.engine.moldable import solve as solve_moldable
from schedgap.models.engine.moldable.solving import SCARCER
from schedgap.models.engine.solve import SolveOptions, build, solve
from schedgap.models.zhou.columns import build_master, completing, decode, weighing

OPTIONS = SolveOptions()
EXACT = GenerationOptions(gap=1e-9)


def runnable(instance: Instance) -> tuple[ZhouView, list[Architecture]]:
    view = zhou.view(instance)
    return view, [a for a in view.architectures.values() if a.reason is None]


def lp(jobs: MoldableJobs, grid: CapacityGrid) -> Any:
    pricing = MoldablePricing(jobs, grid)
    return generate(pricing.domain, pricing, EXACT, OPTIONS)


@settings(max_examples=20)
@given(cases.small(jobs=6))
def test_the_lp_by_class_and_by_server_have_the_same_optimum(instance: Instance) -> None:
    for a in runnable(instance)[1]:
        for jobs in (completing(a), weighing(a)):
            by_class = lp(jobs, CapacityGrid(a.classes, jobs.slots))
            by_server = lp(jobs, CapacityGrid(a.machines, jobs.slots))
            assert by_class.bound == pytest.approx(by_server.bound, rel=1e-6, abs=1e-6)
            assert by_class.value == pytest.approx(by_class.bound, rel=1e-6, abs=1e-6)


@settings(max_examples=examples(6))
@given(cases.tiny())
def test_bounds_hold_and_schedules_are_verified(instance: Instance) -> None:
    """The exact optimum never beats the bound, and the schedule that is found is valid."""
    view, architectures = runnable(instance)
    for a in architectures:
        for name, sign in (("", -1), (".maxweight", 1)):
            spec = models.get(f"zhou.{a.id}.columns{name}")
            exact = models.get(f"zhou.{a.id}.schedules{'.offline' if sign < 0 else ''}")
            if exact.too_large(view):
                continue
            outcome = spec.run(view)
            bound, found = outcome.solution.bound, outcome.solution.objective
            optimum = exact.run(view, OPTIONS).solution.objective
            assert optimum is not None
            assert bound is not None
            assert found is not None
            assert sign * bound >= sign * optimum - 1e-6 * max(1.0, abs(optimum))
            assert sign * found <= sign * optimum + 1e-6 * max(1.0, abs(optimum))
            verdict = judge(view.instance, outcome.decision, spec.problem, ())
            assert verdict.violations == ()
            assert verdict.objective == pytest.approx(found)


@settings(max_examples=15)
@given(cases.small(jobs=6))
def test_windows_of_slots_only_lower_the_bound_until_branching_asks_for_all_slots(instance: Instance) -> None:
    for a in runnable(instance)[1]:
        jobs = completing(a)
        grid = CapacityGrid(a.classes, jobs.slots)
        every = lp(jobs, grid)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("schedgap.models.engine.moldable.jobs.ROWS", 0)
            patch.setattr("schedgap.models.engine.columns.windows.FIRST", 2)
            pricing = MoldablePricing(jobs, grid)
            loose = generate(pricing.domain, pricing, EXACT, OPTIONS)
            exact = generate(pricing.domain, pricing, EXACT, OPTIONS, loose.master)
        assert -loose.bound <= -every.bound * (1 + 1e-7) + 1e-7
        assert exact.bound == pytest.approx(every.bound, rel=1e-6, abs=1e-6)


def test_a_horizon_that_is_too_short_makes_a_lower_bound_and_no_wrong_one() -> None:
    """If the horizon is too short for all jobs, the bound is lower but valid.

    A job that does not fit into the slots costs what the first end after them costs.
    """
    instance = cases.instance([cases.job(1, 4, weight=2.0), cases.job(1, 4)], [cases.servers(1, 1)], types=())
    a = zhou.view(instance).architectures["ra"]
    late = a.weight[:, None] * (np.arange(7) + 1.0)
    short = MoldableJobs(a.machines, a.options, 6, a.arrival - 1, late, a.weight * (6 + 2.0))
    # Two jobs of 4 slots one after the other: 2·5 + 9; in 6 slots the second costs at least 8.
    assert -lp(completing(a), CapacityGrid(a.classes, completing(a).slots)).bound == pytest.approx(2 * 5 + 9)
    assert -lp(short, CapacityGrid(a.classes, 6)).bound == pytest.approx(2 * 5 + 8)


def test_a_few_jobs_may_run_one_after_the_other_on_the_only_server_that_they_can_use() -> None:
    """Workers take two of its three GPUs, and five servers of another kind do no work: there were 11 slots."""
    groups = [cases.servers(1, 3, chip="V100"), cases.servers(5, 3, chip="K80")]
    instance = cases.instance([cases.job(1, 6)] * 4, groups, [cases.worker(2, chip="V100")], types=())
    outcome = models.MODELS.get("zhou.ra.columns").run(zhou.view(instance), SolveOptions(nodes=20))
    assert (outcome.solution.status, outcome.solution.objective) == ("optimal", 7 + 13 + 19 + 25)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("weight", [False, True])
def test_the_statement_in_pyomo_has_the_optimum_of_the_master(arch: str, weight: bool) -> None:
    view = zhou.view(cases.instance([cases.job(4, 2, weight=w) for w in (1.0, 2.0, 3.0)], [cases.servers(2, 2)]))
    a = view.architectures[arch]
    jobs = weighing(a) if weight else completing(a)
    found = lp(jobs, CapacityGrid(a.classes, jobs.slots))
    solution = solve(build(build_master, view, arch, weight))
    assert solution.objective == pytest.approx(found.value)
    master = Master(Domain.of(CapacityGrid(a.classes, jobs.slots).packing(jobs)), found.columns, OPTIONS)
    assert master.solve().value == pytest.approx(found.value)


def test_prices_of_whole_units_are_part_of_those_of_the_resource() -> None:
    """Workers take 30.5 GB or twice as much, and PSs 4 GB, so that the model counts whole workers beside them."""
    view = zhou.view(load("gen/zhou-ps?jobs=3&servers=2&seed=4"))
    a = view.architectures["ps"]
    jobs = completing(a)
    outcome = models.get("zhou.ps.columns").run(view, SolveOptions(nodes=0))
    assert len(jobs.machines.resources) > len(a.machines.resources)
    assert outcome.prices is not None
    assert outcome.prices.shape == (a.classes.size * len(a.machines.resources), jobs.slots)
    assert (outcome.prices >= 0).all()


def test_prices_are_given_by_class_resource_and_slot() -> None:
    view = zhou.view(cases.instance([cases.job(4, 4, weight=w) for w in (1.0, 2.0, 3.0)], [cases.servers(2, 2)]))
    outcome = models.get("zhou.ps.columns").run(view, OPTIONS)
    jobs = completing(view.architectures["ps"])
    assert outcome.prices is not None
    assert outcome.prices.shape == (4, jobs.slots)
    assert (outcome.prices >= 0).all()
    assert outcome.prices.max() > 0


def test_cuts_of_all_servers_close_most_of_the_gap_of_three_jobs() -> None:
    """The relaxation of this instance is 6.6 % below the optimum; what fits on all servers closes most of it at once.

    Relaxed, a run on all GPUs has a share of 3/7 while another job holds four of seven of them.
    """
    view = zhou.view(load("gen/zhou-ps?jobs=3&servers=2&seed=2"))
    outcome = models.get("zhou.ps.columns").run(view, SolveOptions(nodes=1))
    assert outcome.solution.objective == 5_144_333
    assert outcome.solution.bound is not None
    assert outcome.solution.bound > 0.98 * 5_144_333
    jobs = completing(view.architectures["ps"])
    relaxed = generate((p := MoldablePricing(jobs, CapacityGrid(classes(jobs.machines), jobs.slots))).domain, p)
    assert -relaxed.bound == pytest.approx(4_824_550, rel=1e-4)


def test_servers_hold_whole_workers_beside_parameter_servers() -> None:
    """Workers take multiples of 30.5 GB, which PSs of 4 GB and more hide: servers have a number of whole units."""
    machines = zhou.view(load("gen/zhou-ps?jobs=8&servers=6")).architectures["ps"].machines
    counted = in_units(machines)
    assert counted.resources == (*machines.resources, "memory units")
    assert counted.capacity[:, -1].tolist() == [4, 4, 8, 8, 4, 4]
    assert counted.worker[:, -1].tolist() == [4, 4, 4, 2, 2, 2, 1, 1]
    assert not counted.ps[:, -1].any()
    assert (counted.usable[:, 2] > 30.5 * counted.usable[:, -1] * 1.05).all()
    rings = zhou.view(load("gen/zhou-ra?jobs=8&servers=6")).architectures["ra"].machines
    assert in_units(rings) is rings


def test_what_whole_workers_leave_on_servers_is_open_in_the_relaxation() -> None:
    """The relaxation puts 10/3 workers of 3 GPUs on two servers of 5, where only two fit.

    What a worker leaves on a server, only other workers can use.
    """
    machines = Machines(
        names=("a", "b"),
        resources=("GPU",),
        worker_types=("three", "two"),
        ps_types=(),
        capacity=np.full((2, 1), 5.0),
        count=np.ones(2, np.int64),
        kind=np.zeros(2, np.int64),
        worker=np.array([[3.0], [2.0]]),
        ps=np.zeros((0, 1)),
        worker_bandwidth=np.ones(2),
        ps_bandwidth=np.zeros(0),
        able=np.ones((2, 2), bool),
    )
    each = np.ones(3, np.int64)
    options = RunOptions(np.arange(4), each, 0 * each, -each, each > 0, each)
    jobs = MoldableJobs(machines, options, 1, 0 * each, np.full((3, 2), -1.0), None)
    assert lp(jobs, CapacityGrid(classes(machines), 1)).bound == pytest.approx(3)
    solution, found, _, _ = solve_moldable(jobs, OPTIONS, sense=1, first_slot=1)
    assert (solution.status, solution.objective, solution.bound) == ("optimal", 2, pytest.approx(2))
    assert found is not None
    assert found.server.tolist() == [0, 1]


@settings(max_examples=5)
@given(cases.small(jobs=6))
def test_relaxations_with_scarcer_capacities_never_make_a_schedule_worse(instance: Instance) -> None:
    for a in runnable(instance)[1]:
        for jobs, sense in ((completing(a), -1), (weighing(a), 1)):
            found = [guided(jobs, sense, scarcer) for scarcer in ((), (0.9, 0.5))]
            assert sense * found[1] >= sense * found[0] - 1e-9 * abs(found[0])


def test_relaxations_with_scarcer_capacities_guide_where_servers_are_coarse() -> None:
    """Lists at the prices of scarcer capacities find a better schedule of 40 jobs on 30 servers."""
    a = zhou.view(load("gen/zhou-ps?jobs=40&servers=30&slots=60")).architectures["ps"]
    assert guided(completing(a), -1, SCARCER) < 0.995 * guided(completing(a), -1, ())


def test_changed_lists_find_better_schedules_where_servers_are_coarse() -> None:
    """A list's order and factors on prices, changed by chance, reach what lists by relaxations do not."""
    view = zhou.view(load("gen/zhou-ps?jobs=20&servers=15"))
    jobs = completing(view.architectures["ps"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("schedgap.models.engine.moldable.annealing.CHANGES", 0)
        lists = guided(jobs, -1, SCARCER)
    solution, found, _, _ = solve_moldable(jobs, SolveOptions(nodes=0), -1, 1)
    assert found is not None
    assert solution.objective is not None
    assert solution.objective < 0.99 * lists
    verdict = judge(view.instance, decode(found), "zhou.ps.completion", ())
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(solution.objective)


def guided(jobs: MoldableJobs, sense: int, scarcer: tuple[float, ...]) -> float:
    """Return the objective after list heuristics alone, also at the prices of scarcer capacities."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("schedgap.models.engine.moldable.solving.SCARCER", scarcer)
        found = solve_moldable(jobs, SolveOptions(nodes=0), sense, 1)[0].objective
    assert found is not None
    return found
