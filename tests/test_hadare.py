"""HadarE: copies of jobs, the Job Tracker, initial throughput, Theorem 3 and its corollary."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgap as sg
from schedgap import heuristics, instances
from schedgap.harness.check import judge
from schedgap.heuristics.hadar.hadare import (
    BATCH_SIZE,
    HadarE,
    copy_id,
    estimate,
    initial,
    pace,
    pmi,
    split,
    utilisation,
)
from schedgap.heuristics.hadar.planning import Planner, Planning, RoundToPlan
from schedgap.heuristics.hadar.prices import ExtremePrices, prices
from schedgap.heuristics.simulator import Assignment, State, simulate
from schedgap.instances.arrays import ROUNDING, Array
from schedgap.instances.errors import UsageError
from schedgap.instances.schema import Cluster, GpuType, Horizon, Instance, Job, ServerGroup
from schedgap.instances.views.hadar import HadarView, view


def nodes(rates: list[list[float]], epochs: list[int], gpus: int = 1, gang: int = 1) -> Instance:
    """Return an instance of nodes with one GPU type each; `rates` are by job and node."""
    count = len(rates[0])
    return Instance(
        name="nodes",
        cluster=Cluster(
            gpu_types=tuple(GpuType(name=f"r{k}") for k in range(count)),
            servers=tuple(ServerGroup(name=f"h{k}", count=1, gpu_type=f"r{k}", gpus=gpus) for k in range(count)),
        ),
        jobs=tuple(
            Job(id=f"j{i}", gpus=gang, epochs=n, rates={f"r{k}": x for k, x in enumerate(row)})
            for i, (row, n) in enumerate(zip(rates, epochs, strict=True))
        ),
        horizon=Horizon(slot_s=10.0, slots=200),
    )


@st.composite
def settings_of_the_paper(draw: st.DrawFn) -> Instance:
    """Draw an instance as in the paper: every job runs on every node, and a node has one GPU."""
    count, jobs = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rate = st.floats(0.1, 5.0)
    rates = [[draw(rate) for _ in range(count)] for _ in range(jobs)]
    return nodes(rates, [draw(st.integers(1, 300)) for _ in range(jobs)])


class Recorded:
    """A policy that keeps the states that it saw and its answers."""

    def __init__(self, policy: HadarE) -> None:
        self.policy, self.rounds = policy, list[tuple[State, Assignment]]()

    def __call__(self, state: State) -> Assignment:
        answer = self.policy(state)
        self.rounds.append((state, answer))
        return answer


@given(settings_of_the_paper())
@settings(max_examples=60)
def test_no_node_is_idle_while_a_job_is_left(example: Instance) -> None:
    """In every round each node runs a copy while a job is left (corollary of Theorem 3)."""
    v = view(example)
    policy = Recorded(HadarE(example))
    trace = simulate(v.workload, v.servers, policy, round_s=10.0, forks=True)
    assert np.isfinite(trace.completion_s).all()
    for _, answer in policy.rounds:
        assert sorted(answer.server.tolist()) == list(range(v.servers.size))


@given(settings_of_the_paper(), st.floats(0.0, 9.0))
@settings(max_examples=40)
def test_the_tracker_hands_out_no_more_steps_than_are_left(example: Instance, overhead_s: float) -> None:
    """The Job Tracker hands out at most the steps left, and all of them if the job has a copy on every node."""
    v = view(example)
    hadare = HadarE(example, overhead_s=overhead_s)
    policy = Recorded(hadare)
    trace = simulate(v.workload, v.servers, policy, round_s=10.0, forks=True)
    for (state, answer), orders in zip(policy.rounds, hadare.dispatched, strict=True):
        assert (orders.copy % v.size).tolist() == orders.job.tolist()
        assert len(set(orders.copy.tolist())) == orders.copy.size
        left = np.bincount(orders.job, orders.steps, v.size)
        for j, steps in zip(state.jobs, state.remaining, strict=True):
            copies = np.count_nonzero(orders.job == j)
            assert (copies > 0) * 1e-12 * steps <= left[j] <= steps * (1 + 1e-9)
            assert copies < v.servers.size or left[j] == pytest.approx(steps)
        assert answer.speed is not None
        assert np.all((answer.speed > 0) & (answer.speed <= 1 + 1e-12))
    assert trace.iterations.sum() == pytest.approx(v.workload.work.sum())


@st.composite
def crowded(draw: st.DrawFn) -> Instance:
    """Draw gangs on nodes of several GPUs, some of which they cannot use, with numbers that often tie."""
    count, jobs = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rates = [[draw(st.sampled_from([0.0, 1.0, 1.0, 2.5])) for _ in range(count)] for _ in range(jobs)]
    rates = [row if any(row) else [1.0] * count for row in rates]
    epochs = [draw(st.sampled_from([20, 20, 90, 400])) for _ in range(jobs)]
    gpus = draw(st.integers(1, 4))
    return nodes(rates, epochs, gpus=gpus, gang=draw(st.integers(1, gpus)))


def one_by_one(
    here: HadarView, found: ExtremePrices, state: State, known: Array, payoff: str
) -> list[tuple[int, int, int]]:
    """Place copies one by one, the one of highest payoff first, with all payoffs computed anew each time.

    Returns job, server and GPUs in the order of placement.
    """
    hosts, copies = state.servers, list[tuple[int, int, int]]()
    used, rate, cost, before = np.zeros(hosts.size, np.int64), *(np.zeros(state.jobs.size) for _ in range(3))
    waited_s = (state.round - here.arrival[state.jobs]) * here.slot_s
    while True:
        most, best, fastest = -np.inf, (0, 0, 0), 0.0
        for i, h in np.ndindex(state.jobs.size, hosts.size):
            gpus = min(int(state.gpus[i]), int(hosts.gpus[h] - used[h]))
            own = gpus * known[i, hosts.gpu_type[h]]
            if own <= 0 or any(copy[:2] == (i, h) for copy in copies):
                continue
            left_s = state.remaining[i] / (rate[i] + own)
            if payoff == "portion":
                every = [min(state.gpus[i], hosts.gpus[n]) * known[i, hosts.gpu_type[n]] for n in range(hosts.size)]
                left_s = state.remaining[i] / sum(every)
            if payoff != "job":
                left_s = max(np.ceil(left_s / here.slot_s * (1 - ROUNDING)), 1.0) * here.slot_s
            paid = float(cost[i] + gpus * found.price(hosts.gpu_type[h], used[h], hosts.gpus[h]))
            worth = float(here.utilities.value(state.jobs[i], waited_s[i] + left_s))
            rounds = 1.0 if payoff == "portion" else left_s / here.slot_s
            added = float(worth - rounds * paid - before[i])
            if added > most or (added == most and i == best[0] and own > fastest):
                most, best, fastest = added, (i, h, gpus), own
        if most == -np.inf:
            return copies
        i, h, gpus = best
        if payoff == "job":
            rate[i] += gpus * known[i, hosts.gpu_type[h]]
            cost[i] += gpus * found.price(hosts.gpu_type[h], used[h], hosts.gpus[h])
            before[i] += most
        used[h] += gpus
        copies.append(best)


@given(crowded(), st.sampled_from(["portion", "copy", "job"]))
@settings(max_examples=60)
def test_the_copy_of_highest_payoff_is_placed_first(
    example: Instance, payoff: Literal["portion", "copy", "job"]
) -> None:
    v = view(example)
    policy = Recorded(HadarE(example, payoff=payoff))
    simulate(v.workload, v.servers, policy, round_s=10.0, forks=True, until_s=30.0)
    guess = initial(example)
    measured = np.zeros(guess.shape, bool)
    for state, answer in policy.rounds:
        known = estimate(guess[state.jobs], state.rates, measured[state.jobs])
        copies = one_by_one(v, prices(v), state, known, payoff)
        made = zip(
            np.searchsorted(state.jobs, answer.job).tolist(), answer.server.tolist(), answer.gpus.tolist(), strict=True
        )
        assert list(made) == sorted(copies)
        measured[answer.job, v.servers.gpu_type[answer.server]] = True


@given(settings_of_the_paper(), st.booleans())
@settings(max_examples=60)
def test_no_plan_of_algorithm_2_for_copies_as_jobs_is_worth_more(example: Instance, portions: bool) -> None:
    """If nodes have one GPU, Algorithm 2 with every copy as a job finds no plan of larger total payoff.

    Section V-A: "all copies of the job are sent to Hadar for scheduling". With its portion of the steps (section V-B),
    a copy is for one node; with all steps, it can run on any.
    """
    here, count = view(example), view(example).servers.size
    guess = initial(example)
    known = estimate(guess, here.workload.rates, np.zeros(guess.shape, bool))
    there = np.eye(count) if portions else np.ones((count, count))
    jobs = tuple(
        job.model_copy(
            update={"id": f"{job.id}.{i}", "rates": dict(zip(here.workload.gpu_types, row * there[i], strict=True))}
        )
        for job, row in zip(example.jobs, known, strict=True)
        for i in range(count)
    )
    forked = view(example.model_copy(update={"jobs": jobs}))
    forked = replace(forked, utilities=here.utilities.of(np.repeat(np.arange(here.size), count)))
    nothing = np.zeros(count, np.int64)
    share = (known / known.sum(axis=1)[:, None]).ravel() if portions else np.ones(forked.size)
    steps = np.repeat(here.workload.work, count) * share
    around = RoundToPlan(np.arange(forked.size), steps, 0, nothing, np.zeros((0, 3), np.int64))
    planner = Planner(forked, prices(here), Planning(payoff="round" if portions else "lifetime", beam=4096))
    plan = planner.dp_allocation(planner.line_up(around))
    policy = Recorded(HadarE(example, payoff="portion" if portions else "copy"))
    simulate(here.workload, here.servers, policy, round_s=10.0, forks=True, until_s=10.0)
    _, answer = policy.rounds[0]
    copy = answer.job * count + answer.server
    rounds = forked.rounds(copy, steps[copy])[np.arange(count), answer.server]
    cost = prices(here).price(answer.server, np.zeros(count, np.int64), 1)
    payoff = here.utilities.value(answer.job, rounds * here.slot_s) - (1.0 if portions else rounds) * cost
    assert payoff.sum() >= plan.payoff * (1 - 1e-9)


def test_the_last_round_may_involve_the_fastest_nodes_only() -> None:
    """Section V-A: β nodes do the last steps, those which were the first to complete theirs in the round before.

    The estimate says that the nodes are equally fast. So each gets a third of the steps, and only the first completes
    them; then 36.7 steps are left, which it can do in a round, while with 170 steps, 103 are too many.
    """
    for epochs, last, wanted in ((100, 1, [0]), (100, 2, [0]), (100, 0, [0, 1, 2]), (170, 1, [0, 1, 2])):
        example = nodes([[4.0, 2.0, 1.0]], [epochs])
        v = view(example)
        policy = Recorded(HadarE(example, last=last))
        trace = simulate(v.workload, v.servers, policy, round_s=10.0, forks=True)
        assert policy.rounds[1][1].server.tolist() == wanted
        assert np.isfinite(trace.completion_s).all()
        assert trace.iterations.sum() == pytest.approx(epochs)


@given(st.integers(1, 50), st.integers(1, 20))
def test_identities_of_copies_are_unique_and_name_their_job(jobs: int, copies: int) -> None:
    made = np.concatenate([copy_id(jobs, i, np.arange(jobs)) for i in range(1, copies + 1)])
    assert len(set(made.tolist())) == jobs * copies
    assert (made % jobs).tolist() == list(range(jobs)) * copies


def test_split_and_pace_by_hand() -> None:
    job, rate = np.array([0, 0, 1]), np.array([3.0, 1.0, 2.0])
    remaining = np.array([40.0, 10.0])
    right = split(job, remaining, rate, np.array([4.0, 2.0]))
    assert right.tolist() == [30.0, 10.0, 10.0]
    # All copies end together: nothing is lost.
    assert pace(job, right, rate, 20.0, 0.0).tolist() == [1.0, 1.0]
    # Two seconds of consolidation: 12 seconds for 40 steps; the single copy of job 1 pays nothing.
    assert pace(job, right, rate, 20.0, 2.0) == pytest.approx([40 / 12 / 4, 1.0])
    # If steps are split as if the copies were equally fast, the slow copy needs 20 seconds for its half.
    wrong = split(job, remaining, np.ones(3), np.array([2.0, 1.0]))
    assert pace(job, wrong, rate, 20.0, 0.0) == pytest.approx([40 / 20 / 4, 1.0])
    # In a round of 15 seconds the slow copy does 15 of its 20 steps, the fast one all 20; job 1 ends in this round.
    assert pace(job, wrong, rate, 15.0, 0.0) == pytest.approx([35 / 15 / 4, 1.0])


def test_consolidation_costs_copies_time() -> None:
    example = nodes([[1.0, 1.0]], [30])
    v = view(example)
    for overhead_s, seconds in ((0.0, 15.0), (2.0, 10.0 + 2.0 + 7.0)):
        policy = HadarE(example, overhead_s=overhead_s)
        trace = simulate(v.workload, v.servers, policy, round_s=10.0, forks=True)
        assert trace.completion_s.tolist() == pytest.approx([seconds])


def test_overheads_are_shorter_than_a_round() -> None:
    example = nodes([[1.0]], [30])
    v = view(example)
    with pytest.raises(UsageError, match="less than a round of 10 s"):
        simulate(v.workload, v.servers, HadarE(example, overhead_s=10.0), round_s=10.0, forks=True)


def test_initial_throughput_by_hand() -> None:
    known = instances.load("gen/hadar-aws")
    jobs = {job.model: i for i, job in enumerate(known.jobs)}
    made = initial(known)
    gpus = [g.name for g in known.cluster.gpu_types]
    assert pmi(known.cluster.gpu_types[gpus.index("V100")]) == pytest.approx(15.7 / 4)
    # ResNet-18: 46.8 MB of gradients (small), CIFAR-10 (S), batches of 64.
    assert made[jobs["ResNet-18 (batch size 64)"], gpus.index("V100")] == pytest.approx(15.7 / 4 * 64)
    # Nothing known of a job and a GPU: the defaults.
    assert initial(nodes([[1.0]], [1])).tolist() == [[BATCH_SIZE / 4]]


def test_pcie_counts_by_version_and_only_until_rates_are_measured() -> None:
    aws, testbed = instances.load("gen/hadar-aws"), instances.load("gen/hadar-testbed")
    assert np.array_equal(initial(aws, 2.0), initial(aws))  # all of its GPUs have version 3.0
    newer = [gpu.name in ("RTX 3090", "RTX A2000") for gpu in testbed.cluster.gpu_types]
    assert initial(testbed, 2.0) / initial(testbed) == pytest.approx(np.broadcast_to(np.where(newer, 2.0, 1.0), (5, 5)))
    v, first = view(testbed), []
    for factor in (1.0, 2.0):
        policy = HadarE(testbed, pcie=factor)
        simulate(v.workload, v.servers, policy, round_s=360.0, forks=True)
        first.append(policy.dispatched[0])
    assert not np.array_equal(first[0].steps, first[1].steps)
    assert initial(nodes([[1.0]], [1]), 2.0).tolist() == [[BATCH_SIZE / 4]]


def test_measured_rates_replace_and_rescale_the_estimate() -> None:
    guess, true = np.array([[10.0, 20.0, 5.0]]), np.array([[1.0, 3.0, 0.0]])
    measured = np.array([[True, False, False]])
    assert estimate(guess, true, ~np.ones((1, 3), bool)).tolist() == [[10.0, 20.0, 0.0]]
    assert estimate(guess, true, measured).tolist() == [[1.0, 2.0, 0.0]]
    assert estimate(guess, true, np.ones((1, 3), bool)).tolist() == [[1.0, 3.0, 0.0]]


def test_a_wrong_estimate_costs_one_round() -> None:
    """A wrong estimate of a node's speed wastes part of the first round, and nothing later.

    The second node is half as fast as the first; the estimate says that they are equal.
    """
    example = nodes([[2.0, 1.0]], [60])
    v = view(example)
    policy = Recorded(HadarE(example))
    trace = simulate(v.workload, v.servers, policy, round_s=25.0, forks=True)
    speeds = [answer.speed.tolist() for _, answer in policy.rounds if answer.speed is not None]
    assert speeds[0] == pytest.approx([(30 + 25) / 25 / 3])
    assert speeds[1:] == [[1.0]]
    assert trace.completion_s.tolist() == pytest.approx([25 + 5 / 3])


def test_copies_have_at_most_a_gang_and_what_a_server_has() -> None:
    example = nodes([[1.0, 2.0]] * 2, [500, 500], gpus=4, gang=3)
    v = view(example)
    policy = Recorded(HadarE(example))
    simulate(v.workload, v.servers, policy, round_s=10.0, forks=True)
    first = policy.rounds[0][1]
    assert sorted(first.gpus.tolist()) == [1, 1, 3, 3]
    assert np.bincount(first.server, first.gpus).tolist() == [4, 4]


def test_jobs_run_only_where_they_can() -> None:
    example = nodes([[1.0, 0.0], [0.0, 1.0]], [50, 80])
    v = view(example)
    policy = Recorded(HadarE(example))
    simulate(v.workload, v.servers, policy, round_s=10.0, forks=True)
    for _, answer in policy.rounds:
        assert np.array_equal(answer.job, answer.server)


@pytest.mark.parametrize("ref", ["paper/hadar-fig1", "gen/20jobs", "gen/hadar-aws", "gen/hadar-testbed"])
def test_schedules_are_feasible_and_repeat(ref: str) -> None:
    example = instances.load(ref)
    spec = heuristics.get("hadar.hadare")
    one, two = spec.decide(example), spec.decide(example)
    verdict = judge(example, one, spec.problem, ())
    assert not verdict.violations
    assert verdict.objective
    assert np.array_equal(one.slot, two.slot)
    assert np.array_equal(one.server, two.server)


def test_theorem_3() -> None:
    assert [utilisation(3, 5, x) for x in range(1, 7)] == pytest.approx([0.2, 0.3, 0.6, 0.6, 0.6, 0.6])
    assert utilisation(10, 5, 5) == 1.0


@given(st.integers(1, 60), st.integers(1, 12))
def test_utilisation_never_falls_with_copies(rounds: int, count: int) -> None:
    """More copies never lower the utilisation; (11) says that they raise it, which fails."""
    shares = [utilisation(rounds, count, x) for x in range(1, count + 3)]
    assert all(a <= b + 1e-12 for a, b in pairwise(shares))
    assert max(shares) <= 1


def test_a_job_has_as_many_copies_as_it_may() -> None:
    example = nodes([[1.0] * 5] * 2, [100, 100])
    v = view(example)
    for copies, most in ((1, 1), (2, 2), (0, 5)):
        policy = Recorded(HadarE(example, copies=copies))
        simulate(v.workload, v.servers, policy, round_s=10.0, forks=True)
        counts = [np.bincount(answer.job).max() for _, answer in policy.rounds]
        assert max(counts) == most


def test_portions_of_nodes_that_train_another_job_stay_undone() -> None:
    """A job's portion for a node that trains another job is not done in that round.

    Section V-B: "divides that number into n portions according to their respective throughput values". Jobs share the
    nodes if a copy is worth its job's whole work there.
    """
    example = nodes([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]], [300, 200, 100])
    v, guess = view(example), initial(example)
    measured, shared = np.zeros(guess.shape, bool), 0
    hadare = HadarE(example, payoff="copy")
    policy = Recorded(hadare)
    trace = simulate(v.workload, v.servers, policy, round_s=10.0, forks=True)
    for (state, _), orders in zip(policy.rounds, hadare.dispatched, strict=True):
        known, row = estimate(guess, v.workload.rates, measured), np.searchsorted(state.jobs, orders.job)
        portion = known / known.sum(axis=1, keepdims=True)
        assert orders.steps == pytest.approx(state.remaining[row] * portion[orders.job, orders.server])
        measured[orders.job, orders.server] = True
        shared += np.unique(orders.job).size > 1
    assert shared > 0
    assert np.isfinite(trace.makespan_s)


def test_few_copies_have_the_portions_of_the_fastest_nodes() -> None:
    example = nodes([[1.0] * 5], [100])
    v, hadare = view(example), HadarE(example, copies=2)
    simulate(v.workload, v.servers, hadare, round_s=10.0, forks=True)
    assert [orders.steps.sum() for orders in hadare.dispatched[:2]] == pytest.approx([100.0, 80.0])


@pytest.mark.parametrize("overhead_s", [0, 0.5])
def test_copies_that_wait_do_not_contradict_the_bounds_on_utilisation(overhead_s: float) -> None:
    kinds = "V100", "K80"
    hosts = tuple(ServerGroup(name=name, count=1, gpu_type=name, gpus=2) for name in kinds)
    instance = Instance(
        name="copies",
        cluster=Cluster(gpu_types=tuple(GpuType(name=name) for name in kinds), servers=hosts),
        horizon=Horizon(slot_s=1.0, slots=1000),
        jobs=(
            Job(id="a", epochs=10, gpus=1, rates={"K80": 4.0, "V100": 0.0}),
            Job(id="b", epochs=4, gpus=1, rates={"K80": 2.0, "V100": 4.0}),
        ),
    )
    policy = f"hadar.hadare?overhead_s={overhead_s}"
    (row,) = sg.simulate(instance, [policy], round_s=1.0, restart_s=0.0).rows
    assert row.gru <= row.gru_bound
    assert row.verified
