"""Zhou's algorithms and baselines: every schedule verified, windows as Algorithm 1 has them, ratios within theorems."""

from __future__ import annotations

import numpy as np
import pytest
import zhou_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st

import heuristics
import models
from harness.verify import VERIFIERS, Verdict
from heuristics import HEURISTICS
from heuristics.registry import Context
from heuristics.zhou import baselines
from heuristics.zhou.batches import Way, a_dual, a_maxweight, mincost, online
from instances.elastic import Ledger
from instances.errors import NotApplicableError, UsageError
from instances.schema import Instance
from instances.views import zhou
from instances.views.zhou import ARCHITECTURES, Architecture, Schedule, View
from models.solve import SolveOptions

NAMES = [spec.id for spec in HEURISTICS if spec.paper == "zhou"]


def context(seed: int = 0) -> Context:
    return Context(np.random.default_rng(seed), lambda model, view: None)


def judged(view: View, name: str, decision: Schedule) -> Verdict:
    return VERIFIERS.get("zhou").check(view, decision, heuristics.get(name).problem, ())


def nothing_fits(a: Architecture, name: str) -> bool:
    """Whether the priced job fits nowhere beside the loads (as printed: is not found)."""
    ledger = Ledger(a.machines, a.options, a.deadline - 1)
    ledger.set_free(a.machines.capacity[:, :, None] - a.loads)
    ledger.post(a.prices(a.loads))
    return ledger.find(a.priced_job, 0, printed=name.endswith("printed")) is None


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(instance=cases.small(jobs=8), seed=st.integers(0, 9))
def test_every_schedule_is_verified(name: str, instance: Instance, seed: int) -> None:
    view, spec = zhou.view(instance), heuristics.get(name)
    if spec.skip(view):
        return
    if spec.problem.endswith(".cost") and nothing_fits(view.of(name), name):
        with pytest.raises(NotApplicableError, match="beside the loads"):
            spec.run(view, context(seed))
    else:
        assert judged(view, name, spec.run(view, context(seed))).violations == ()


@pytest.mark.parametrize("arch", ARCHITECTURES)
@settings(max_examples=40, deadline=None)
@given(instance=cases.small(jobs=10))
def test_batches_are_those_of_algorithm_1(arch: str, instance: Instance) -> None:
    a = zhou.view(instance).architectures[arch]
    if a.reason:
        return
    found = online(a, Way())
    start, length, rounds = found.window_start, found.window_slots, found.window_rounds
    assert (start[1:] >= start[:-1] + length[:-1]).all()
    tau = length // rounds
    assert (tau * rounds == length).all()
    assert (np.log2(tau) % 1 == 0).all()
    assert (start >= tau).all()
    at = np.searchsorted(start, found.start, "right") - 1
    # Everybody of a batch had arrived by its τ, and the last slot of a round is never used.
    assert (a.arrival[found.job] <= tau[at]).all()
    within = (found.start - start[at]) % tau[at]
    assert (within + found.slots <= tau[at] - 1).all()


@settings(max_examples=25, deadline=None)
@given(instance=cases.tiny())
def test_measured_ratios_keep_to_the_theorems(instance: Instance) -> None:
    """Theorem 5: at most 4α; Theorem 3: at most 2 log λ (both assume what these instances mostly violate)."""
    view = zhou.view(instance)
    for arch, a in view.architectures.items():
        exact = models.get(f"zhou.{arch}.schedules.offline")
        if a.reason or exact.too_large(view):
            continue
        least = exact.run(view, SolveOptions(time_limit_s=20)).solution.objective
        mine = judged(view, f"zhou.{arch}.online", online(a, Way())).objective
        assert least is not None
        assert mine is not None
        assert least * (1 - 1e-9) <= mine <= 4 * a.alpha * least + 1e-9


def test_a_heavier_job_is_asked_first_and_pays_less() -> None:
    """One GPU, two equal jobs, room for one in the window: the heavier one runs, and the other in the next round."""
    jobs = [cases.job(1, 3, weight=1.0), cases.job(1, 3, weight=5.0)]
    a = zhou.view(cases.instance(jobs, [cases.servers(1, 1)])).architectures["ra"]
    plan = a_maxweight(a, [0, 1], 4, Way())
    assert [job for job, _ in plan] == [1]
    plans = a_dual(a, np.array([0, 1]), 4, Way())
    assert [[job for job, _ in plan] for plan in plans] == [[1], [0]]
    found = online(a, Way())
    assert (found.window_start.tolist(), found.window_slots.tolist(), found.window_rounds.tolist()) == ([4], [8], [2])
    assert found.job.tolist() == [1, 0]
    assert found.start.tolist() == [4, 8]


def test_slot_tau_is_used_only_if_it_is_inclusive() -> None:
    a = zhou.view(cases.instance([cases.job(1, 4)], [cases.servers(1, 1)])).architectures["ra"]
    assert online(a, Way()).start.tolist() == [8]
    assert online(a, Way(inclusive=True)).start.tolist() == [4]


def test_a_tight_batch_does_not_wait_for_the_end_of_a_window() -> None:
    jobs = [cases.job(1, 2), cases.job(1, 2, submit_s=4.0)]
    a = zhou.view(cases.instance(jobs, [cases.servers(1, 1)], slots=20)).architectures["ra"]
    assert online(a, Way()).start.tolist() == [4, 8]
    jobs = [cases.job(1, 4), cases.job(1, 4), cases.job(1, 4, submit_s=8.0)]
    a = zhou.view(cases.instance(jobs, [cases.servers(1, 1)], slots=20)).architectures["ra"]
    usual, tight = online(a, Way()), online(a, Way(tight=True))
    assert usual.start.tolist() == [8, 16, 24]
    assert tight.start.tolist() == [8, 16, 20]


def test_jobs_without_weight_run_where_that_costs_nothing() -> None:
    jobs = [cases.job(1, 2, weight=0.0), cases.job(1, 2, weight=1.0), cases.job(1, 2, weight=0.0)]
    a = zhou.view(cases.instance(jobs, [cases.servers(1, 1)])).architectures["ra"]
    found = online(a, Way())
    assert sorted(found.job.tolist()) == [0, 1, 2]
    assert found.start[found.job == 1] == found.start.min()
    nothing = zhou.view(cases.instance([cases.job(1, 2, weight=0.0)])).architectures["ps"]
    assert online(nothing, Way()).job.tolist() == [0]


def test_algorithm_4_as_printed_may_never_find_a_schedule() -> None:
    """Its windows would double for ever: the PS's server could hold the only worker, too, so line 17 takes g = N."""
    case = cases.instance(
        [cases.job(2, minibatch_s=1 / 3, submit_s=0.5)],
        [cases.servers(1, 1, 1 / 3, memory_gb=1.0, bandwidth_gbps=1e4), cases.servers(1, 1, 2.2, memory_gb=3.0)],
        [cases.worker(1, 0.3, bandwidth_gbps=0.5)],
        [cases.ps(0, 0.1, memory_gb=0.0, bandwidth_gbps=1e3)],
        unit_worth=1.0,
    )
    a = zhou.view(case).architectures["ps"]
    assert len(online(a, Way()).job) == 1
    with pytest.raises(NotApplicableError, match="no schedule of J1 found"):
        online(a, Way(printed=True))


def test_very_long_jobs_are_skipped_unless_asked_for() -> None:
    view = zhou.view(cases.instance([cases.job(epochs=10**7)]))
    assert "more than" in str(heuristics.get("zhou.ra.online").too_large(view))
    assert heuristics.get("zhou.ra.online").too_large(zhou.view(cases.instance([cases.job()]))) is None


def test_the_loads_do_not_depend_on_units() -> None:
    """Memory in megabytes is the same problem as in gigabytes."""
    costs = []
    for unit in (1.0, 1024.0):
        groups = [cases.servers(2, 2, memory_gb=16.0 * unit)]
        case = cases.instance([cases.job(4, 2)], groups, [cases.worker(memory_gb=unit)], [cases.ps(memory_gb=unit)])
        view = zhou.view(case)
        decision = mincost(view.architectures["ps"], Way())
        costs.append(judged(view, "zhou.ps.amincost", decision).objective)
    assert costs[0] == pytest.approx(costs[1])


def test_prices_are_those_of_equation_11() -> None:
    """Per unit of a resource of which a server has C: the paper's price for a whole server, divided by C, like F."""
    a = zhou.view(cases.instance([cases.job()], [cases.servers(1, 2, 4.0)], unit_worth=2.0)).architectures["ps"]
    assert a.price_base == 2 * a.slots * 1 * 4 * 2.0 + 1
    used = np.array([[1.0, 0.0, 16.0, 2.0]])
    price = a.prices(used)
    whole = [a.price_base**0.5 - 1, 0.0, a.price_base - 1, a.price_base**0.25 - 1]
    assert price[0] == pytest.approx(np.array(whole) / [2.0, 4.0, 16.0, 8.0])


@pytest.mark.parametrize(("ratio", "alpha"), [(2.0, 24), (1300.0, 247)])
def test_alpha_is_far_from_4(ratio: float, alpha: int) -> None:
    """With λ = 2·150·150·4·1 + 1, the formula of Theorem 5 gives 24 at w(J)/w_min = 2, and 247 at 1300."""
    jobs = [cases.job(weight=1.0), cases.job(weight=ratio - 1)]
    case = cases.instance(jobs, [cases.servers(150)], slots=150, unit_worth=1.0)
    assert zhou.view(case).architectures["ps"].alpha == alpha


def test_assumption_2_allows_half_a_gpu_of_eight() -> None:
    """At the paper's own size, 1/log λ of a server with eight GPUs is 0.46 of one: no job meets it."""
    case = cases.instance([cases.job()], [cases.servers(150, 8)], slots=150, unit_worth=1.0)
    a = zhou.view(case).architectures["ps"]
    assert 8 / np.log2(a.price_base) == pytest.approx(0.46, abs=0.005)
    assert not a.assumption_2.any()


@settings(max_examples=40, deadline=None)
@given(instance=cases.small(jobs=4))
def test_algorithm_4_as_printed_is_never_cheaper(instance: Instance) -> None:
    a = zhou.view(instance).architectures["ps"]
    if a.reason:
        return
    view, costs = zhou.view(instance), []
    for way in (Way(), Way(printed=True)):
        try:
            costs.append(judged(view, "zhou.ps.amincost", mincost(a, way)).objective or 0.0)
        except NotApplicableError:
            costs.append(np.inf)
    assert costs[0] <= costs[1] * (1 + 1e-9)


# -------------------------------------------------------------------------------------------------------- baselines


def of(instance: Instance, arch: str = "ra") -> Architecture:
    return zhou.view(instance).architectures[arch]


def test_fifo_keeps_the_order_of_arrival() -> None:
    """A job at the head of the queue that does not fit holds up a smaller one behind it."""
    jobs = [cases.job(1, 4), cases.job(2, 2, submit_s=1.0), cases.job(1, 1, submit_s=2.0)]
    a = of(cases.instance(jobs, [cases.servers(1, 2)]))
    for seed in range(5):
        found = baselines.fifo(a, context(seed))
        start = {int(j): int(s) for j, s in zip(found.job, found.start, strict=True)}
        assert start[0] <= start[1] <= start[2]


def test_fifo_draws_its_workers_once() -> None:
    a = of(cases.instance([cases.job(8, 4)], [cases.servers(4, 4)]))
    numbers = {int(baselines.fifo(a, context(seed)).workers.sum()) for seed in range(40)}
    assert numbers <= set(range(1, 9))
    assert len(numbers) > 3


def test_drf_shares_among_those_who_wait() -> None:
    """Two equal jobs on four GPUs get two workers each; alone, a job gets all four."""
    both = baselines.drf(of(cases.instance([cases.job(4, 2)] * 2, [cases.servers(1, 4)])), context())
    assert [int(both.workers[both.run == i].sum()) for i in range(2)] == [2, 2]
    alone = baselines.drf(of(cases.instance([cases.job(4, 2)], [cases.servers(1, 4)])), context())
    assert alone.workers.tolist() == [4]


def test_tiresias_interrupts_for_less_remaining_work() -> None:
    jobs = [cases.job(1, 8), cases.job(1, 1, submit_s=2.0)]
    found = baselines.tiresias(of(cases.instance(jobs, [cases.servers(1, 1)])), context())
    runs = sorted(zip(found.start.tolist(), found.job.tolist(), found.slots.tolist(), strict=True))
    assert runs == [(1, 0, 2), (3, 1, 1), (4, 0, 6)]


def test_antman_gives_way_to_guaranteed_jobs() -> None:
    """A light job runs on what is free until a heavier one comes, and goes on after it."""
    jobs = [cases.job(1, 6, weight=1.0), cases.job(1, 2, weight=9.0, submit_s=2.0)]
    found = baselines.antman(of(cases.instance(jobs, [cases.servers(1, 1)])), context())
    runs = sorted(zip(found.start.tolist(), found.job.tolist(), found.slots.tolist(), strict=True))
    assert runs == [(1, 0, 2), (3, 1, 2), (5, 0, 4)]


def test_the_ideal_case_is_the_fastest_on_the_empty_cluster() -> None:
    a = of(cases.instance([cases.job(8, 2)], [cases.servers(2, 4)], types=()))
    found = baselines.ideal(a)[0]
    assert (found.slots, int(found.workers.sum())) == (2, 8)
    ledger = Ledger(a.machines, a.options, 4)
    again = ledger.find(0, 0)
    assert again is not None
    assert again.slots == found.slots


# -------------------------------------------------------------------------------------------------------- bad input


def test_a_job_that_fits_nowhere_is_named() -> None:
    case = cases.instance([cases.job(), cases.job()], [cases.servers(1, 1)], [cases.worker(2)])
    view = zhou.view(case)
    reason = view.architectures["ps"].reason
    assert reason
    assert "J1 (and 1 more) fits on no servers" in reason
    assert heuristics.get("zhou.ps.online").skip(view) == reason
    assert models.get("zhou.ps.columns").skip(view) == reason


def test_servers_without_bandwidth_hold_no_worker() -> None:
    view = zhou.view(cases.instance([cases.job()], [cases.servers(bandwidth_gbps=0.0)]))
    assert view.architectures["ra"].reason


@pytest.mark.parametrize(
    ("field", "value"), [("chunks", 0), ("epochs", 0), ("weight", -1.0)], ids=["D = 0", "E = 0", "negative weight"]
)
def test_impossible_jobs_are_rejected_with_the_field(field: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"jobs\[0\].{field} = {value}"):
        cases.instance([{**cases.job(), field: value}])


def test_types_without_bandwidth_are_rejected() -> None:
    with pytest.raises(UsageError, match="bandwidth"):
        cases.instance([cases.job()], workers=[cases.worker(bandwidth_gbps=0.0)])
    with pytest.raises(UsageError, match="bandwidth"):
        cases.instance([cases.job()], types=[cases.ps(bandwidth_gbps=0.0)])


def test_without_ps_types_only_rings_run() -> None:
    view = zhou.view(cases.instance([cases.job()], types=()))
    assert view.architectures["ps"].reason == "no PS types: parameter servers need some"
    assert view.architectures["ra"].reason is None
