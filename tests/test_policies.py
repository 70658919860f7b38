"""The baselines as policies: which jobs they run, on which GPU types and servers."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog
from simulated import cluster, dense, jobs

from schedgap import instances
from schedgap.harness.check import judge
from schedgap.harness.check.history import check
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.hadar.allox import AlloX, match
from schedgap.heuristics.hadar.baselines import Fifo, Srtf, Tiresias, YarnCS
from schedgap.heuristics.hadar.gavel import GRID, TIES, Gavel, ShareProgram, classes, fair_rates
from schedgap.heuristics.simulator import POLICIES, Assignment, Policy, Servers, State, Trace, Workload, simulate
from schedgap.heuristics.simulator.gangs import GangOptions
from schedgap.instances.arrays import Array
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Horizon
from schedgap.instances.workload import servers, workload

ORDERS: list[Any] = ["arrival", "running"]
BASELINES = ["allox", "fifo", "gavel", "gavel_throughput", "srtf", "tiresias", "yarn_cs"]


def run(work: Workload, hosts: Servers, policy: Policy, **options: Any) -> Trace:
    return simulate(work, hosts, policy, **{"round_s": 100.0, **options})


def who(trace: Trace) -> list[list[int]]:
    """Return the jobs that run, by round."""
    return [sorted(set(trace.assignment(row).job.tolist())) for row in range(trace.rounds)]


# --- options and servers ---------------------------------------------------------------------------------------------


def test_a_gang_mixes_types_only_where_no_single_one_could_hold_it() -> None:
    hosts = cluster((0, 2), (1, 3), (2, 1))
    rates = (1.0, 2.0, 3.0)
    gangs = GangOptions(jobs(*({"work": 1, "gpus": w} for w in (1, 3, 4, 6, 7)), rates=rates), hosts)
    assert gangs.rates.tolist() == [[1, 2, 3, 0], [0, 2, 0, 0], [0, 0, 0, 2], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert gangs.usage[2, 3].tolist() == [0, 3, 1]
    assert gangs.usage[3, 3].tolist() == [2, 3, 1]
    assert gangs.by_rate[0].tolist() == [2, 1, 0, -1]


def test_types_with_a_rate_of_zero_are_not_used() -> None:
    gangs = GangOptions(
        jobs({"work": 1, "gpus": 3, "rates": (0.0, 1.0, 5.0)}, rates=(1, 1, 1)), cluster((0, 9), (1, 2), (2, 2))
    )
    assert gangs.usage[0, 3].tolist() == [0, 1, 2]
    assert gangs.rates[0].tolist() == [0, 0, 0, 1]


def placed(gangs: GangOptions, options: list[int], before: list[tuple[int, int, int]]) -> list[tuple[int, ...]]:
    state = State(
        0, 0, 1, gangs.work, gangs.cluster, np.arange(len(options)), *(np.zeros(0),) * 3, Assignment.of(before)
    )
    found = gangs.assignment(state, np.array(options))
    return sorted(zip(found.job.tolist(), found.server.tolist(), found.gpus.tolist(), strict=True))


def test_who_runs_on_stays_and_the_others_take_the_tightest_server() -> None:
    hosts = cluster((0, 4), (0, 4), (0, 2))
    gangs = GangOptions(
        jobs({"work": 1, "gpus": 2}, {"work": 1, "gpus": 3}, {"work": 1, "gpus": 2}, {"work": 1}), hosts
    )
    assert placed(gangs, [0, 0, 0, 0], []) == [(0, 2, 2), (1, 0, 3), (2, 1, 2), (3, 0, 1)]
    assert placed(gangs, [0, 0, 0, -1], [(0, 1, 2), (3, 0, 1)]) == [(0, 1, 2), (1, 0, 3), (2, 1, 2)]
    assert placed(gangs, [0, 0, 0, 0], [(2, 0, 1), (2, 1, 1)])[2:4] == [(2, 0, 1), (2, 1, 1)]


def test_a_gang_spans_servers_only_where_none_has_room() -> None:
    gangs = GangOptions(jobs({"work": 1, "gpus": 5}, {"work": 1, "gpus": 2}), cluster((0, 3), (0, 4)))
    assert placed(gangs, [0, 0], []) == [(0, 0, 1), (0, 1, 4), (1, 0, 2)]


# --- policies in order -----------------------------------------------------------------------------------------------


def test_fifo_waits_for_its_head_and_takes_the_fastest_type() -> None:
    work = jobs({"work": 300, "gpus": 2}, {"work": 300, "gpus": 3}, {"work": 100, "at": 1.0}, {"work": 100})
    hosts = cluster((0, 3), (1, 2))
    trace = run(work, hosts, Fifo(work, hosts))
    assert who(trace)[0] == [0, 1]
    assert dense(trace.assignment(0), 4, 2)[:2].tolist() == [[0, 2], [3, 0]]
    blocked = jobs(
        {"work": 300, "gpus": 2}, {"work": 900, "gpus": 3, "rates": (1, 0)}, {"work": 1, "gpus": 2}, {"work": 1}
    )
    assert who(run(blocked, cluster((0, 3), (1, 1)), Fifo(blocked, cluster((0, 3), (1, 1)))))[0] == [0]


def test_fifo_moves_to_a_faster_type_once_it_is_free() -> None:
    work, hosts = jobs({"work": 200}, {"work": 1000}), cluster((0, 1), (1, 1))
    trace = run(work, hosts, Fifo(work, hosts), restart_s=10.0)
    assert [dense(trace.assignment(row), 2, 2)[1].tolist() for row in (0, 1)] == [[1, 0], [0, 1]]
    assert trace.restarts.tolist()[:2] == [0, 1]


def test_srtf_preempts_a_longer_job() -> None:
    work = jobs({"work": 900}, {"work": 100, "at": 150.0}, {"work": 500, "gpus": 2, "at": 150.0})
    hosts = cluster((0, 1))
    trace = run(work, hosts, Srtf(work, hosts))
    assert who(trace)[:4] == [[0], [0], [1], [0]]
    assert trace.completion_s[1] == 300
    assert trace.unfinished[2] is not None


def test_tiresias_puts_those_with_much_service_behind() -> None:
    work = jobs({"work": 1000, "gpus": 2}, {"work": 500, "at": 50.0}, {"work": 10, "gpus": 2, "at": 50.0}, rates=(1.0,))
    hosts = cluster((0, 2))
    trace = run(work, hosts, Tiresias(work, hosts, threshold_gpu_s=400.0))
    # J0 has received 400 GPU-seconds after two rounds, so that the other jobs come first if they fit.
    assert who(trace)[:4] == [[0], [0], [1], [1]]
    longer = run(work, hosts, Tiresias(work, hosts, threshold_gpu_s=9e9))
    assert who(longer)[:5] == [[0]] * 5


def test_tiresias_orders_jobs_inside_queues_as_asked() -> None:
    """Three jobs on one GPU: by arrival the first keeps it, by attained service they take turns."""
    work, hosts = jobs(*({"work": 300.0} for _ in range(3)), rates=(1.0,)), cluster((0, 1))

    def ran(order: Any, threshold_gpu_s: float = 9e9, seed: int = 0) -> list[int]:
        policy = Tiresias(work, hosts, order=order, threshold_gpu_s=threshold_gpu_s, seed=seed)
        return [job for (job,) in who(run(work, hosts, policy))]

    assert ran("arrival") == ran("running") == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert ran("attained") == [0, 1, 2] * 3
    # After a round each job drops to the second queue, where the first job comes first again, in either order.
    assert ran("arrival", 100.0) == ran("running", 100.0) == [0, 1, 2, 0, 0, 1, 1, 2, 2]
    drawn = [ran("random", seed=seed) for seed in range(20)]
    assert {first for first, *_ in drawn} == {0, 1, 2}
    assert all(order == [job for job in order[::3] for _ in range(3)] for order in drawn)
    assert drawn[0] == ran("random", seed=0)


def test_running_jobs_of_tiresias_s_simulator_go_before_earlier_ones_that_wait() -> None:
    """With the order ``running``, a running job goes on although an earlier one could now run in its place."""
    rows = {"work": 200.0, "gpus": 2}, {"work": 900.0, "gpus": 3}, {"work": 900.0}
    work, hosts = jobs(*rows, rates=(1.0,)), cluster((0, 3))
    first, listed = (who(run(work, hosts, Tiresias(work, hosts, order=o, threshold_gpu_s=9e9))) for o in ORDERS)
    assert first[:3] == [[0, 2], [1], [1]]
    assert listed[:3] == [[0, 2], [2], [2]]


def test_tiresias_passes_over_who_does_not_fit_and_does_not_know_types() -> None:
    work = jobs({"work": 500, "gpus": 2}, {"work": 500, "gpus": 3}, {"work": 500})
    hosts = cluster((0, 3), (1, 2))
    trace = run(work, hosts, Tiresias(work, hosts))
    assert who(trace)[0] == [0, 2]
    # The first job starts on the slow type, which has most free GPUs.
    assert dense(trace.assignment(0), 3, 2)[0].tolist() == [2, 0]
    assert dense(trace.assignment(0), 3, 2)[2].tolist() == [0, 1]


@pytest.mark.parametrize("policy", [Tiresias, YarnCS])
@pytest.mark.parametrize("types", ["free", "random"])
def test_names_of_types_decide_nothing(policy: Any, types: str) -> None:
    """Among types with equally many free GPUs a job starts on either, and the same seed gives the same type."""
    work, hosts = jobs({"work": 500}), cluster((0, 2), (1, 2))
    first = [run(work, hosts, policy(work, hosts, types=types, seed=seed)).allocation[0, 2] for seed in range(20)]
    assert set(first) == {0, 1}
    assert first == [run(work, hosts, policy(work, hosts, types=types, seed=s)).allocation[0, 2] for s in range(20)]


def test_a_scheduler_that_knows_types_starts_jobs_on_the_fastest_and_moves_them_there() -> None:
    work, hosts = jobs({"work": 250}, {"work": 900}, rates=(1.0, 2.0)), cluster((0, 3), (1, 1))
    for policy in (YarnCS(work, hosts, types="fastest"), Tiresias(work, hosts, types="fastest")):
        trace = run(work, hosts, policy)
        assert [dense(trace.assignment(row), 2, 2).argmax(axis=1).tolist() for row in (0, 1)] == [[1, 0], [1, 0]]
        assert trace.makespan_s == 900
    moving = run(work, hosts, Tiresias(work, hosts, types="fastest", stay=False))
    assert moving.makespan_s == 200 + 700 / 2  # on the fast type once the other job is done


def test_yarn_keeps_gpus_from_start_to_end_and_passes_over_who_does_not_fit() -> None:
    work = jobs({"work": 900}, {"work": 300, "gpus": 3}, {"work": 300}, {"work": 50, "at": 120.0}, rates=(1.0, 2.0))
    hosts = cluster((0, 2), (1, 1))
    policy = YarnCS(work, hosts)
    trace = run(work, hosts, policy, restart_s=50.0)
    assert who(trace)[0] == [0, 2]
    assert trace.restarts.sum() == 0
    for job in range(4):
        rows = trace.progress[trace.progress[:, 1] == job, 0]
        assert np.array_equal(rows, np.arange(rows[0], rows[-1] + 1))


# --- AlloX -----------------------------------------------------------------------------------------------------------


@st.composite
def matchings(draw: st.DrawFn) -> tuple[Array, NDArray[np.int64]]:
    kinds = draw(st.integers(1, 3))
    devices = np.array(draw(st.lists(st.integers(0, 4), min_size=kinds, max_size=kinds)), np.int64)
    devices[draw(st.integers(0, kinds - 1))] += 1
    time = st.one_of(st.integers(1, 9).map(float), st.floats(0.01, 1e6), st.just(math.inf))
    rows = draw(st.lists(st.lists(time, min_size=kinds, max_size=kinds), min_size=1, max_size=12))
    times = np.array(rows)
    times[~np.isfinite(np.where(devices > 0, times, math.inf)).any(axis=1), int(devices.argmax())] = 1.0
    return times, devices


@given(matchings())
@settings(max_examples=200)
def test_the_matching_is_as_good_as_the_one_on_single_devices(given_: tuple[Array, NDArray[np.int64]]) -> None:
    times, devices = given_
    count = len(times)
    single = np.repeat(np.arange(devices.size), devices)
    cost = np.concatenate([times[:, single] * (p + 1) for p in range(count)], axis=1)
    row, column = linear_sum_assignment(cost)
    kind, position = match(times, devices)
    assert (times[np.arange(count), kind] * position).sum() == pytest.approx(cost[row, column].sum())
    places, used = np.unique(np.column_stack((kind, position)), axis=0, return_counts=True)
    assert np.all(used <= devices[places[:, 0]])


def test_a_job_that_can_run_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match="can run nowhere"):
        match(np.array([[1.0, 2.0], [math.inf, 3.0]]), np.array([1, 0]))


def test_allox_runs_gangs_that_fit_no_single_type_last() -> None:
    work = jobs({"work": 300, "gpus": 3}, {"work": 100}, {"work": 200})
    hosts = cluster((0, 2), (1, 1))
    trace = run(work, hosts, AlloX(work, hosts))
    assert who(trace) == [[1, 2], [0]]


# --- Gavel -----------------------------------------------------------------------------------------------------------


@st.composite
def mixes(draw: st.DrawFn) -> tuple[Workload, Servers]:
    rate = st.sampled_from([0.0, 0.5, 1.0, 1.7, 4.0])
    row = st.fixed_dictionaries(
        {
            "work": st.just(100),
            "gpus": st.integers(1, 3),
            "weight": st.sampled_from([0.0, 1.0, 1.0, 2.5]),
            "rates": st.tuples(rate, rate).filter(lambda pair: max(pair) > 0),
        }
    )
    rows = draw(st.lists(row, min_size=1, max_size=8))
    return jobs(*rows), cluster((0, draw(st.integers(1, 4))), (1, draw(st.integers(1, 4))))


def job_by_job(work: Workload, gangs: GangOptions, goal: str) -> tuple[float, float]:
    """Return the largest least value per weight, and the largest total with it, by a program over single jobs."""
    pairs = np.argwhere(gangs.rates > 0)
    value = gangs.rates * work.gpus[:, None]
    if goal == "max_min":
        value = value / (work.rates @ gangs.capacity / gangs.capacity.sum())[:, None]
    worth = np.array([value[j, o] for j, o in pairs])
    mine = (pairs[:, 0] == np.arange(work.size)[:, None]).astype(float)
    rows = [np.column_stack((mine, np.zeros(work.size)))]
    rows.append(np.column_stack((gangs.usage[pairs[:, 0], pairs[:, 1]].T, np.zeros(gangs.capacity.size))))
    limits = [np.ones(work.size), gangs.capacity.astype(float)]
    if goal == "max_min":
        able = gangs.rates.max(axis=1) > 0
        rows.append(np.column_stack((-mine * worth, work.weight))[able])
        limits.append(np.zeros(able.sum()))
    a_ub, b_ub = np.vstack(rows), np.concatenate(limits)
    bounds: list[Any] = [(0, None)] * len(pairs) + [(0, 1e6)]
    least = 0.0
    if goal == "max_min" and (work.weight[gangs.rates.max(axis=1) > 0] > 0).any():
        least = float(linprog(np.append(np.zeros(len(pairs)), -1.0), a_ub, b_ub, bounds=bounds).x[-1])
    bounds[-1] = (least * (1 - 1e-9), least)
    return least, -float(linprog(np.append(-worth, 0.0), a_ub, b_ub, bounds=bounds).fun)


@given(mixes(), st.sampled_from(["max_min", "throughput"]))
@settings(max_examples=examples(60))
def test_shares_of_classes_are_optimal_for_single_jobs(given_: tuple[Workload, Servers], goal: Any) -> None:
    work, hosts = given_
    gangs = GangOptions(work, hosts)
    if not (gangs.rates > 0).any():
        return
    member, program = classes(work, gangs, goal)
    counts = np.bincount(member, minlength=program.shape[0])
    shares = program.shares(counts)[member]
    assert shares.min() >= 0
    assert shares.sum(axis=1).max() <= 1 + 10 * GRID
    used = np.einsum("jo,jor->r", shares, gangs.usage)
    assert np.all(used <= gangs.capacity + 10 * GRID * work.size)
    value = gangs.rates * work.gpus[:, None]
    if goal == "max_min":
        value = value / (work.rates @ gangs.capacity / gangs.capacity.sum())[:, None]
    own = (shares * value).sum(axis=1)
    least, total = job_by_job(work, gangs, goal)
    able = gangs.rates.max(axis=1) > 0
    assert np.all(own[able] >= work.weight[able] * least - 1e-4)
    assert own.sum() >= total * (1 - 2 * TIES) - 1e-4


def test_jobs_of_a_class_have_the_same_share_and_numbers_are_solved_once() -> None:
    work = jobs(*({"work": 1, "rates": (0.3 * s, 0.7 * s)} for s in (1.0, 3.0, 1e-4)), {"work": 1, "gpus": 2})
    gangs = GangOptions(work, cluster((0, 2), (1, 1)))
    member, program = classes(work, gangs, "max_min")
    assert len(set(member[:3].tolist())) == 1
    assert program.shape == (2, 3)
    counts = np.bincount(member)
    assert program.shares(counts) is program.shares(counts.copy())


def test_max_min_by_hand() -> None:
    """Two jobs get the GPU type on which each is faster; there is one GPU of each type."""
    work = jobs({"work": 1, "rates": (1.0, 2.0)}, {"work": 1, "rates": (2.0, 1.0)})
    gangs = GangOptions(work, cluster((0, 1), (1, 1)))
    member, program = classes(work, gangs, "max_min")
    assert program.shares(np.ones(2, np.int64))[member][:, :2].tolist() == [[0, 1], [1, 0]]


def most(work: Workload, gangs: GangOptions, floor: Array, rise: Array) -> float:
    """Return the largest z such that every job can have its `floor` plus z times its `rise`, found by scipy."""
    pairs = np.argwhere(gangs.rates > 0)
    mine = (pairs[:, 0] == np.arange(work.size)[:, None]).astype(float)
    value = mine * (gangs.rates[pairs[:, 0], pairs[:, 1]] * work.gpus[pairs[:, 0]])
    used = gangs.usage[pairs[:, 0], pairs[:, 1]].T
    zero = np.zeros(work.size), np.zeros(gangs.capacity.size)
    a_ub = np.vstack([np.column_stack(part) for part in ((mine, zero[0]), (used, zero[1]), (-value, rise))])
    b_ub = np.concatenate([np.ones(work.size), gangs.capacity, -floor])
    return float(linprog(np.append(np.zeros(len(pairs)), -1.0), a_ub, b_ub, bounds=(0, 1e6)).x[-1])


@given(mixes())
@settings(max_examples=60)
def test_water_filling_raises_everybody_until_only_a_poorer_one_could_give(given_: tuple[Workload, Servers]) -> None:
    work, hosts = given_
    gangs = GangOptions(work, hosts)
    asks = (gangs.best_rate > 0) & (work.weight > 0)
    if not asks.any():
        return
    member, program = classes(work, gangs, "water_filling")
    shares = program.shares(np.bincount(member, minlength=program.shape[0]))[member]
    equal = work.rates @ gangs.capacity / gangs.capacity.sum() / work.gpus  # of a gang's value
    own = (shares * gangs.rates * work.gpus[:, None]).sum(axis=1)
    level = own / (np.where(work.weight > 0, work.weight, 1.0) * equal * work.gpus)
    for j in np.flatnonzero(asks).tolist():
        # Job j cannot gain if jobs with no higher value keep theirs and all others may fall to the level of j.
        kept = np.where(asks, np.minimum(level, level[j]), 0.0) * work.weight * equal * work.gpus
        rise = np.where(np.arange(work.size) == j, work.weight[j] * equal[j] * work.gpus[j], 0.0)
        assert most(work, gangs, np.maximum(kept * (1 - 1e-4) - 1e-5, 0.0), rise) <= 0.01 * max(level[j], 1.0)


def test_water_filling_by_hand() -> None:
    """Water filling divides the GPU that is left over, where the total alone would give all of it to one job.

    Six jobs share the slow GPU, and two jobs the fast one.
    """
    slow, fast = {"work": 1, "rates": (1.0, 0.0)}, {"work": 1, "rates": (0.0, 2.0)}
    work = jobs(*[slow] * 6, {**fast, "weight": 1.0}, {**fast, "weight": 2.0})
    gangs = GangOptions(work, cluster((0, 1), (1, 1)))

    def shares(goal: Any) -> Array:
        member, program = classes(work, gangs, goal)
        return np.asarray(program.shares(np.bincount(member))[member].max(axis=1))

    assert shares("water_filling").tolist() == pytest.approx([1 / 6] * 6 + [1 / 3, 2 / 3], abs=2 * GRID)
    assert shares("max_min").tolist() == pytest.approx([1 / 6] * 6 + [2 / 3, 1 / 3], abs=2 * GRID)


@given(mixes(), st.lists(st.tuples(st.floats(0.0, 50.0), st.floats(0.1, 30.0)), min_size=8, max_size=8))
@settings(max_examples=60)
def test_the_least_largest_rho_is_found(given_: tuple[Workload, Servers], times: list[tuple[float, float]]) -> None:
    """The rates that are found suffice for the smallest largest ρ, and one that is a thousandth less is impossible."""
    work, hosts = given_
    gangs = GangOptions(work, hosts)
    if not (gangs.best_rate > 0).all():
        return
    waited, alone = np.array(times[: work.size]).T
    value = gangs.rates * work.gpus[:, None]
    program = ShareProgram(value, gangs.usage, gangs.capacity, work.work)
    needs = fair_rates(program, work.work, waited, alone)
    rho = (waited + work.work / needs) / alone
    assert rho.min() == pytest.approx(rho.max())
    assert most(work, gangs, np.zeros(work.size), needs) >= 1 - 1e-4
    less = rho.max() * alone * 0.999 - waited
    assert (less <= 0).any() or most(work, gangs, np.zeros(work.size), work.work / less) < 1


def test_finish_time_fairness_by_hand() -> None:
    """The job that has waited longer gets more than half of the GPU, which equalises ρ."""
    work, hosts = jobs({"work": 600}, {"work": 600, "at": 250.0}, rates=(1.0,)), cluster((0, 1))
    policy = Gavel(work, hosts, "finish_time_fairness")
    assert who(run(work, hosts, policy, until_s=400)) == [[0], [0], [0], [1]]
    # Alone since 300 s on half of the GPU: 300 + 2·300 s, and 2·600 s. (300 + 300/x)/900 = (50 + 600/(1 − x))/1200.
    row, _, share = policy._pairs
    x = share[row == 0][0]
    assert (300 + 300 / x) / 900 == pytest.approx((50 + 600 / (1 - x)) / 1200, rel=1e-4)


def test_rounds_follow_shares() -> None:
    """Jobs of weights 1, 2 and 3 on one GPU receive rounds as 1 : 2 : 3 in the long run."""
    work = jobs(*({"work": 1e9, "weight": w} for w in (1.0, 2.0, 3.0)), rates=(1.0,))
    hosts = cluster((0, 1))
    trace = run(work, hosts, Gavel(work, hosts), until_s=100 * 600)
    assert np.bincount(trace.progress[:, 1]).tolist() == pytest.approx([100, 200, 300], abs=2)


def test_a_new_job_goes_first_and_no_gpu_idles() -> None:
    work = jobs({"work": 1e6}, {"work": 1e6, "at": 250.0}, {"work": 1e6, "gpus": 2, "at": 250.0}, rates=(1.0,))
    hosts = cluster((0, 1))
    trace = run(work, hosts, Gavel(work, hosts), until_s=2000)
    assert who(trace)[:4] == [[0], [0], [0], [1]]
    idle = jobs({"work": 1e6, "rates": (1.0, 9.0)}, {"work": 1e6, "rates": (1.0, 9.0)})
    pair = cluster((0, 1), (1, 1))
    throughput = run(idle, pair, Gavel(idle, pair, "throughput"), until_s=1000)
    assert all(running == [0, 1] for running in who(throughput))


def test_total_throughput_prefers_the_faster_job() -> None:
    work = jobs({"work": 500, "rates": (1.0,)}, {"work": 500, "rates": (5.0,)}, rates=(1.0,))
    hosts = cluster((0, 1))
    assert who(run(work, hosts, Gavel(work, hosts, "throughput"))) == [[1]] + [[0]] * 5


def test_nobody_asks_for_anything() -> None:
    program = ShareProgram(np.array([[1.0, 0.0]]), np.ones((1, 2, 1), np.int64), np.array([1]), np.zeros(1))
    assert program.shares(np.array([1])).tolist() == [[1, 0]]
    assert program.shares(np.array([0])).tolist() == [[0, 0]]


# --- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("ref", ["paper/hadar-fig1", "gen/20jobs"])
def test_model_time_gives_verified_schedules(name: str, ref: str) -> None:
    instance = instances.load(ref)
    view = PAPERS.get("hadar").view(instance)
    spec = HEURISTICS.get(f"hadar.{name}")
    assert (spec.kind, spec.problem) == ("baseline", "hadar.utility")
    verdict = judge(view.instance, spec.decide(instance), spec.problem, ())
    assert verdict.violations == ()
    assert verdict.objective is not None
    assert verdict.objective > 0


@pytest.mark.filterwarnings("error")
def test_slots_too_short_for_rounds_are_skipped_and_warn_nobody() -> None:
    loaded = instances.load("gen/20jobs")
    late = loaded.jobs[0].model_copy(update={"submit_s": 1e9, "rates": {"V100": 1e-300}})
    changed = {"jobs": (late, *loaded.jobs[1:]), "horizon": Horizon(slot_s=1e-300, slots=5)}
    short = loaded.model_copy(update=changed)
    assert all(PAPERS.get("hadar").view(short).hopeless)
    with pytest.raises(NotApplicableError, match="slot_s = 1e-300: simulated rounds take"):
        HEURISTICS.get("hadar.fifo").decide(short)
    endless = short.model_copy(update={"horizon": None})
    assert PAPERS.get("hadar").view(endless).slots > 0


@pytest.mark.parametrize("name", BASELINES)
def test_two_thousand_jobs(name: str) -> None:
    instance = instances.load("gen/hadar-480?jobs=2000")
    policy = POLICIES.get(f"hadar.{name}").build(instance, None)
    trace = simulate(workload(instance), servers(instance), policy, round_s=360, restart_s=10, until_s=3600)
    assert check(instance, trace, trace.rules).violations == ()
    given_out = np.bincount(trace.allocation[:, 0], trace.allocation[:, 3])
    assert given_out.size == 10
    assert given_out.min() > 0.9 * 60


@pytest.mark.parametrize("name", BASELINES)
def test_the_same_again(name: str) -> None:
    instance = instances.load("gen/50jobs")
    work, hosts = workload(instance), servers(instance)
    first, second = (
        simulate(work, hosts, POLICIES.get(f"hadar.{name}").build(instance, None), restart_s=10) for _ in range(2)
    )
    assert np.array_equal(first.allocation, second.allocation)
    assert np.array_equal(first.completion_s, second.completion_s)


def test_gavel_s_makespan_policy_ends_first_and_its_max_min_policy_does_not() -> None:
    """Gavel's goal ``makespan`` ends all jobs earlier than ``max_min``, which leaves a long job to the end."""
    work = jobs({"work": 6000.0}, *({"work": 1000.0} for _ in range(5)), rates=(1.0, 2.0))
    hosts = cluster((0, 1), (1, 1))
    ends = [run(work, hosts, Gavel(work, hosts, goal)).makespan_s for goal in ("max_min", "makespan")]
    assert ends[1] < ends[0]
    assert ends[1] < 1.2 * (6000 + 5000) / 3


@pytest.mark.parametrize("name", BASELINES)
def test_a_single_job_runs_alone_at_its_best_rate_where_types_are_known(name: str) -> None:
    work = jobs({"work": 1000.0, "at": 30.0})
    hosts = cluster((1, 1), (0, 1))
    instance = instances.load("gen/20jobs")
    built = POLICIES.get(f"hadar.{name}").build(instance, None)
    settings_ = {"goal": "throughput"} if name == "gavel_throughput" else {}
    trace = run(work, hosts, type(built)(work, hosts, **settings_))
    unaware = name in {"tiresias", "yarn_cs"}
    assert trace.completion_s.tolist() == [1100.0 if unaware else 600.0]
    assert dataclasses.replace(trace).unfinished == (None,)
