"""Histories of simulations, their metrics, and the independent checker of histories."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import instances
from schedgap.harness.check.history import check
from schedgap.heuristics.simulator import (
    POLICIES,
    Assignment,
    Policy,
    State,
    Trace,
    runnable,
    servers,
    simulate,
    workload,
)
from schedgap.heuristics.simulator.metrics import measure
from schedgap.heuristics.simulator.trace import HORIZON, IMPOSSIBLE, LEFT, STALLED
from schedgap.instances.errors import UsageError
from schedgap.instances.schema import Cluster, Constant, DistributedProfile, GpuType, Instance, Job, ServerGroup, Tenant

Triples = list[tuple[int, int, int]]


def small(
    *jobs: dict[str, Any], hosts: tuple[tuple[str, int], ...] = (("a", 2), ("b", 2)), leave: float = 0
) -> Instance:
    """Return an instance of jobs with rates 1 and 2 on one GPU of types a and b; completing a job is worth 1."""
    kinds = sorted({kind for kind, _ in hosts})
    return Instance(
        name="small",
        cluster=Cluster(
            gpu_types=tuple(GpuType(name=kind) for kind in kinds),
            servers=tuple(
                ServerGroup(name=f"s{i}", count=1, gpu_type=k, gpus=g, bandwidth_gbps=1.0)
                for i, (k, g) in enumerate(hosts)
            ),
        ),
        tenants=(Tenant(id="u", leave_s=leave or None),),
        jobs=tuple(
            Job(
                **{
                    "id": f"j{i}",
                    "tenant": "u" if i == 0 else None,
                    "gpus": 1,
                    "rates": dict(zip(kinds, (1.0, 2.0), strict=False)),
                    "utility": Constant(amplitude=1.0),
                    "distributed": DistributedProfile(gradient_mb=100.0),
                    **job,
                }
            )
            for i, job in enumerate(jobs)
        ),
    )


def by_round(*rounds: Triples) -> Policy:
    """Return a policy that runs the given (job, server, GPUs) in rounds 0, 1, …, and the last ones from then on.

    Jobs that are not there are left out.
    """

    def policy(state: State) -> Assignment:
        triples = rounds[min(state.round, len(rounds) - 1)]
        return Assignment.of([t for t in triples if t[0] in state.jobs])

    return policy


def run(instance: Instance, policy: Policy, **options: Any) -> Trace:
    return simulate(workload(instance), servers(instance), policy, **{"round_s": 100.0, **options})


# --- records ---------------------------------------------------------------------------------------------------------


def test_metrics_of_a_history_computed_by_hand() -> None:
    """Metrics of a history with two jobs on two servers are those computed by hand.

    j0 runs 150 s on one GPU; j1 runs 100 s on two GPUs, from round 1 on.
    """
    instance = small({"epochs": 150}, {"epochs": 400, "gpus": 2})
    trace = run(instance, by_round([(0, 0, 1)], [(0, 0, 1), (1, 1, 2)]))
    assert trace.completion_s.tolist() == [150, 200]
    assert trace.utilisation.tolist() == [0.25, (50 + 200) / 400]
    assert trace.node_utilisation.tolist() == [0.5, (50 + 100) / 200]
    found = measure(trace)
    assert (found.jobs, found.finished, found.rounds, found.restarts) == (2, 2, 2, 0)
    assert found.ttd_s == 200
    assert (found.jct_mean_s, found.jct_median_s) == (175, 175)
    assert (found.jct_min_s, found.jct_max_s) == (150, 200)
    assert found.idle_gpus == 3  # of four in round 0, while j1 waits
    assert found.changing == 0
    assert found.jct_p99_s == pytest.approx(150 + 0.99 * 50)
    assert found.gru == pytest.approx((150 + 200) / (4 * 200))
    assert found.cru == pytest.approx((150 + 100) / (2 * 200))
    assert found.utility == 2
    assert 0 <= found.decision_mean_s <= found.decision_max_s


def test_a_server_counts_once_and_restarts_are_not_computing() -> None:
    """A server with two jobs counts once in CRU, and the 10 s that a moved job loses count as no computing."""
    instance = small({"epochs": 100}, {"epochs": 290}, hosts=(("a", 2), ("a", 1)))
    trace = run(instance, by_round([(1, 0, 1)], [(0, 0, 1), (1, 1, 1)]), restart_s=10)
    assert trace.completion_s.tolist() == [200, 300]
    assert trace.restarts.tolist() == [0, 1, 0]
    assert trace.node_utilisation.tolist() == [0.5, (100 + 90) / 200, 0.5]
    assert measure(trace).gru == pytest.approx((100 + 290) / (3 * 300))
    assert measure(trace).changing == pytest.approx(1 / 3)


def test_an_early_end_leaves_no_total_duration() -> None:
    instance = small({"epochs": 150}, {"epochs": 10_000})
    found = measure(run(instance, by_round([(0, 0, 1), (1, 1, 1)]), until_s=300))
    assert math.isnan(found.ttd_s)
    assert (found.finished, found.jct_mean_s) == (1, 150)
    assert found.gru == pytest.approx((150 + 300) / (4 * 300))


def test_nothing_to_measure() -> None:
    instance = small({"epochs": 10, "submit_s": 10.0}, leave=20.0)
    found = measure(run(instance, by_round([(0, 0, 1)])))
    assert found.rounds == 0
    assert math.isnan(found.gru)
    assert math.isnan(found.cru)
    assert math.isnan(found.jct_mean_s)
    assert math.isnan(found.idle_gpus)


def test_no_job_vanishes() -> None:
    """Each job that does not complete has its reason: it left, cannot run, or the simulation ended before."""
    instance = small({"epochs": 9999}, {"epochs": 1}, {"epochs": 9999}, {"epochs": 50}, leave=150.0)
    work = dataclasses.replace(workload(instance), gpus=np.array([1, 5, 1, 1]))
    policy = by_round([(0, 0, 1), (2, 0, 1), (3, 1, 1)])
    trace = simulate(work, servers(instance), policy, round_s=100, until_s=300)
    reasons = [reason and reason.partition(":")[0] for reason in trace.unfinished]
    assert reasons == ["its tenant left", "impossible", "horizon", None]
    stalled = run(small({"epochs": 10}), lambda state: Assignment.of(()), stall_rounds=3)
    assert stalled.unfinished[0] is not None
    assert stalled.unfinished[0].startswith("stalled")


def test_impossible_jobs_are_not_offered() -> None:
    """A job that can never run is not shown to the policy.

    No valid instance has such a job by itself, but its rates may come from its tenant.
    """
    instance = small({"epochs": 10}, {"epochs": 10})
    work, cluster = dataclasses.replace(workload(instance), gpus=np.array([5, 1])), servers(instance)
    seen: list[list[int]] = []

    def policy(state: State) -> Assignment:
        seen.append(state.jobs.tolist())
        return Assignment.of([(1, 0, 1)])

    assert simulate(work, cluster, policy).rounds == 1
    assert seen == [[1]]
    assert runnable(work, cluster).tolist() == [False, True]
    assert runnable(work, cluster, forks=True).all()


def test_copies_advance_together_and_end_together() -> None:
    instance = small({"epochs": 450, "gpus": 2})
    trace = run(instance, by_round([(0, 0, 1), (0, 1, 2)]), forks=True)
    assert trace.completion_s.tolist() == [90]
    assert trace.stragglers.sum() == 0
    assert check(instance, trace, trace.rules).violations == ()


@pytest.mark.parametrize("until_s", [0.0, -5.0, math.nan])
def test_a_simulation_ends_after_it_begins(until_s: float) -> None:
    with pytest.raises(UsageError, match="it must be positive"):
        run(small({"epochs": 1}), by_round([]), until_s=until_s)


# --- the checker -----------------------------------------------------------------------------------------------------


@st.composite
def clusters_and_jobs(draw: st.DrawFn) -> Instance:
    hosts = draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3)), min_size=1, max_size=4))
    kinds = sorted({kind for kind, _ in hosts})
    rates = st.fixed_dictionaries(dict.fromkeys(kinds, st.sampled_from([0.0, 0.3, 1.0, 2.5])))
    job = st.fixed_dictionaries(
        {
            "epochs": st.integers(1, 900),
            "gpus": st.integers(1, 5),
            "submit_s": st.integers(0, 500).map(float),
            "weight": st.sampled_from([0.0, 1.0, 3.0]),
            "rates": rates.filter(lambda given: any(given.values())),
        }
    )
    jobs = draw(st.lists(job, min_size=1, max_size=7))
    for one in jobs:  # a gang fits on the GPUs that its job can use
        one["gpus"] = min(one["gpus"], sum(gpus for kind, gpus in hosts if one["rates"][kind] > 0))
    return small(*jobs, hosts=tuple(hosts), leave=draw(st.sampled_from([0.0, 700.0])))


def shuffling(seed: int) -> Callable[[Instance], Policy]:
    """Return a policy that gives random servers to jobs in random order, so that gangs are mixed, spread and moved."""
    rng = np.random.default_rng(seed)

    def policy(state: State) -> Assignment:
        free, triples = state.servers.gpus.copy(), []
        for j in rng.permutation(state.jobs).tolist():
            wanted = int(state.workload.gpus[j])
            able = [h for h in rng.permutation(free.size) if state.workload.rates[j, state.servers.gpu_type[h]] > 0]
            if rng.random() < 0.2 or free[able].sum() < wanted:
                continue
            for h in able:
                taken = min(wanted, int(free[h]))
                if taken:
                    triples.append((j, int(h), taken))
                    free[h] -= taken
                    wanted -= taken
        return Assignment.of(triples)

    return lambda instance: policy


OPTIONS = st.fixed_dictionaries(
    {
        "restart_s": st.sampled_from([0.0, 10.0]),
        "spread_factor": st.sampled_from([0.7, 1.0]),
        "network": st.booleans(),
        "until_s": st.sampled_from([math.inf, 650.0]),
    }
)


@given(clusters_and_jobs(), OPTIONS, st.integers(0, 99))
@settings(max_examples=100)
def test_histories_of_any_policy_pass(instance: Instance, options: dict[str, float], seed: int) -> None:
    trace = run(instance, shuffling(seed)(instance), stall_rounds=40, **options)
    verdict = check(instance, trace, trace.rules)
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx(measure(trace).utility)


@given(clusters_and_jobs(), OPTIONS, st.sampled_from([spec.id for spec in POLICIES if spec.paper == "hadar"]))
@settings(max_examples=60)
def test_histories_of_all_policies_pass(instance: Instance, options: dict[str, float], policy: str) -> None:
    """The checker accepts the histories of all policies, with large gangs, rates and weights of 0, and departures."""
    spec = POLICIES.get(policy)
    trace = run(instance, spec.build(instance, None), stall_rounds=40, forks=spec.forks, **options)
    assert check(instance, trace, trace.rules).violations == ()
    if options["until_s"] == math.inf and not any("left" in (reason or "") for reason in trace.unfinished):
        left = {reason.partition(":")[0] for reason in trace.unfinished if reason}
        assert left <= {"impossible"}, f"{policy} lets jobs wait for ever"


def history() -> tuple[Instance, Trace]:
    """Return an instance and a history of three jobs: one is moved, one spread, one cut off by the horizon."""
    instance = small({"epochs": 250}, {"epochs": 300, "gpus": 2, "submit_s": 50.0}, {"epochs": 9999})
    first, second = [(0, 0, 1), (2, 1, 1)], [(0, 1, 1), (1, 0, 2), (2, 1, 1)]
    return instance, run(instance, by_round(first, second), restart_s=10, spread_factor=0.9, until_s=400)


def altered(table: Any, row: int, column: int, change: int) -> Any:
    copy = table.copy()
    copy[row, column] += change
    return copy


MUTANTS: dict[str, tuple[str, Callable[[Trace], dict[str, Any]]]] = {
    "capacity": ("3 GPUs of s1 given out, 2 available", lambda t: {"allocation": altered(t.allocation, 1, 3, 2)}),
    "half a gang": (
        "1 GPUs, its gang needs all 2 or none",
        lambda t: {"allocation": altered(t.allocation, 3, 3, -1)},
    ),
    "no GPU": ("at least one GPU", lambda t: {"allocation": altered(t.allocation, 0, 3, -1)}),
    "twice": (
        "j0 in the round at 0 s: server s0 occurs twice",
        lambda t: {"allocation": np.vstack([t.allocation, t.allocation[:1]])},
    ),
    "server": ("server 7: they go from 0 to 1", lambda t: {"allocation": altered(t.allocation, 0, 2, 7)}),
    "table": ("a table of 4 columns", lambda t: {"allocation": t.allocation[:, :3]}),
    "early": ("before its arrival", lambda t: {"allocation": altered(t.allocation, 3, 0, -1)}),
    "late": ("after its completion", lambda t: {"completion_s": np.array([90.0, np.nan, np.nan])}),
    "faster": ("completion 180", lambda t: {"completion_s": np.array([180.0, *t.completion_s[1:]])}),
    "work": ("iterations", lambda t: {"iterations": t.iterations * 1.01}),
    "seconds": ("computing seconds", lambda t: {"busy_s": t.busy_s * 0.99}),
    "hidden": ("not the jobs that hold GPUs", lambda t: {"progress": altered(t.progress, 0, 2, 1)}),
    "mixed up": ("iterations", lambda t: {"iterations": t.iterations[::-1]}),
    "shorter": ("yields", lambda t: {"busy_s": t.busy_s[1:]}),
    "started": ("first start", lambda t: {"first_start_s": t.first_start_s + 100}),
    "vanished": ("j2: no reason for not completing", lambda t: {"unfinished": (None,) * 3}),
    "free move": ("completion", lambda t: {"rules": dataclasses.replace(t.rules, restart_s=0.0)}),
    "horizon": ("the simulation ends at 200", lambda t: {"rules": dataclasses.replace(t.rules, until_s=200.0)}),
    "rounds": ("multiples of 100 s", lambda t: {"start_s": t.start_s + 7}),
    "boosted": ("at most 1", lambda t: {"speed": t.speed * 2}),
    "round that is not a number": ("multiples of 100 s", lambda t: {"start_s": t.start_s * math.nan}),
    "GPUs that overflow": ("from 0 to", lambda t: {"allocation": np.where([0, 0, 0, 1], 2**62, t.allocation)}),
    "short rounds": ("start_s", lambda t: {"start_s": t.start_s[:, None]}),
    "fewer restarts": ("restarts 0", lambda t: {"restarts": t.restarts * 0}),
    "no restarts": ("restarts: 4 numbers", lambda t: {"restarts": t.restarts[:-1]}),
    "more waiting": ("waiting", lambda t: {"waiting": t.waiting + 1}),
    "stragglers": ("stragglers", lambda t: {"stragglers": t.stragglers + 5}),
    "decided before": ("a decision takes", lambda t: {"decision_s": t.decision_s - 9}),
    "decisions": ("decision_s: 4 numbers", lambda t: {"decision_s": t.decision_s[1:]}),
    "speed": ("speed: ", lambda t: {"speed": t.speed[:, None]}),
    "no number": ("at most 1", lambda t: {"speed": t.speed * math.nan}),
    "other jobs": (
        "workload: differs from",
        lambda t: {"workload": dataclasses.replace(t.workload, arrival_s=t.workload.arrival_s + 1)},
    ),
    "other servers": (
        "servers: differs from",
        lambda t: {"servers": dataclasses.replace(t.servers, gpus=t.servers.gpus * 10)},
    ),
    "impossible": ("the reason 'impossible", lambda t: {"unfinished": (None, None, IMPOSSIBLE)}),
    "left": ("the reason 'its tenant left'", lambda t: {"unfinished": (None, None, LEFT)}),
    "stalled": ("the reason 'stalled", lambda t: {"unfinished": (None, None, STALLED)}),
    "nonsense": ("the reason 'lol'", lambda t: {"unfinished": (None, None, "lol")}),
    "for one that is done": ("it completes", lambda t: {"unfinished": (HORIZON, None, HORIZON)}),
    "endless": ("ends before the round at 400 s", lambda t: {"rules": dataclasses.replace(t.rules, until_s=math.inf)}),
    "jobs": ("completion_s: 3 numbers", lambda t: {"completion_s": t.completion_s[:2]}),
}


def test_the_history_to_mutate_is_right() -> None:
    instance, trace = history()
    assert check(instance, trace, trace.rules).violations == ()
    assert np.isfinite(trace.completion_s).tolist() == [True, True, False]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_history_is_refused(name: str) -> None:
    instance, trace = history()
    message, change = MUTANTS[name]
    wrong = dataclasses.replace(trace, **change(trace))
    violations = check(instance, wrong, wrong.rules).violations
    assert violations
    if message != "yields":
        assert any(message in line for line in violations), violations


def test_a_policy_that_claims_to_be_faster_than_its_gpus_is_refused() -> None:
    instance = small({"epochs": 250})
    boosted = run(instance, lambda state: Assignment.of([(0, 0, 1)], speed=np.array([1.5])))
    assert check(instance, boosted, boosted.rules).violations == (
        "a declared factor on a rate is more than 0 and at most 1",
    )
    slowed = run(instance, lambda state: Assignment.of([(0, 0, 1)], speed=np.array([0.5])))
    assert check(instance, slowed, slowed.rules).violations == ()
    assert slowed.completion_s.tolist() == [500]


def test_rounds_are_those_in_which_a_job_is_there() -> None:
    instance = small({"epochs": 150})
    trace = run(instance, by_round([(0, 0, 1)]))
    counts = ("decision_s", "stragglers", "restarts", "waiting")
    grown = {name: np.append(getattr(trace, name), 0) for name in counts}
    idle = dataclasses.replace(trace, start_s=np.array([0.0, 100.0, 200.0]), **grown)
    assert check(instance, idle, idle.rules).violations[0] == "round at 200 s: no job is present"
    later = {name: getattr(trace, name) + 100 for name in ("start_s", "completion_s", "first_start_s")}
    late = dataclasses.replace(trace, **later)
    assert check(instance, late, late.rules).violations == ("a job is present from about 0 s, but no round begins",)


@pytest.mark.parametrize(
    "change", [{"forks": True}, {"spread_factor": 1.0}, {"network": True}, {"restart_s": 9.9}, {"until_s": 1e9}]
)
def test_a_history_under_other_rules_is_refused(change: dict[str, Any]) -> None:
    instance, trace = history()
    asked = dataclasses.replace(trace.rules, **change)
    assert check(instance, trace, asked).violations == ("rules: differs from what was to be simulated",)


@pytest.mark.parametrize("reason", [IMPOSSIBLE, LEFT, HORIZON, STALLED])
def test_a_job_that_is_never_offered_has_no_excuse(reason: str) -> None:
    instance = small({"epochs": 250}, {"epochs": 100})
    trace = run(instance, by_round([(0, 0, 1)]), stall_rounds=2)
    cut = {"start_s", "decision_s", "stragglers", "restarts", "waiting"}
    early = dataclasses.replace(trace, unfinished=(None, reason), **{name: getattr(trace, name)[:3] for name in cut})
    assert check(instance, trace, trace.rules).violations == ()
    violations = check(instance, early, early.rules).violations
    assert any("ends before the round at 300 s, j1 is not done" in line for line in violations)


def test_fast_jobs_do_not_take_digits_from_others() -> None:
    """Very fast jobs do not spoil the accuracy of other jobs' times: the checker accepts the history.

    One job would do 1e9 times its work in a round, thousands take a moment, and ends fall on the end of a round.
    """
    fast = small({"epochs": 1, "rates": {"a": 1e9, "b": 1e9}}, *({"epochs": n} for n in (300, 200, 600)))
    quick = [{"epochs": 1, "rates": {"a": 100.0, "b": 100.0}}] * 2000
    exact = [{"epochs": 3 * 100 * 7, "rates": {"a": 7.0, "b": 7.0}}] * 60
    slowly = small({"epochs": 1, "rates": {"a": 1e6}}, *exact[:3], hosts=(("a", 8), ("b", 1)))
    for instance in (fast, slowly, small(*quick, *exact, hosts=(("a", 64), ("b", 64)))):
        trace = run(instance, POLICIES.get("hadar.fifo").build(instance, None))
        assert check(instance, trace, trace.rules).violations == ()


def test_who_misses_the_end_by_a_sliver_may_be_done_or_not() -> None:
    instance = small({"epochs": 3_000_000_001, "rates": {"a": 1e7, "b": 1e7}})
    trace = run(instance, by_round([(0, 0, 1)]), round_s=300.0, until_s=300.0)
    assert trace.unfinished == (HORIZON,)
    assert check(instance, trace, trace.rules).violations == ()
    done = dataclasses.replace(trace, completion_s=np.array([300.0]), unfinished=(None,))
    assert check(instance, done, done.rules).violations == ()
    one_more = run(instance, by_round([(0, 0, 1)]), round_s=300.0)
    assert one_more.rounds == 2
    assert check(instance, one_more, one_more.rules).violations == ()


def test_stalled_jobs_and_those_to_come_are_told_apart_from_those_who_left() -> None:
    instance = small({"epochs": 10}, {"epochs": 10}, {"epochs": 10, "submit_s": 5000.0}, leave=150.0)
    trace = run(instance, lambda state: Assignment.of(()), stall_rounds=3)
    assert trace.unfinished == (LEFT, STALLED, STALLED)
    assert check(instance, trace, trace.rules).violations == ()
    assert check(instance, trace, dataclasses.replace(trace.rules, stall_rounds=4)).violations


@pytest.mark.parametrize("options", [{"round_s": 1e-300}, {"round_s": 1e300}, {"restart_s": 1e300}, {"restart_s": -1}])
def test_lengths_of_rounds_and_restarts_are_seconds(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"rounds are 0\.001 to 1e"):
        run(small({"epochs": 1}), by_round([]), **options)


def test_a_history_of_another_instance_is_refused() -> None:
    _, trace = history()
    other = small({"epochs": 200}, {"epochs": 300, "gpus": 2}, {"epochs": 9999})
    assert check(other, trace, trace.rules).violations


@pytest.mark.parametrize("policy", ["hadar.gavel", "hadar.tiresias"])
def test_a_day_of_jobs_passes(policy: str) -> None:
    instance = instances.load("gen/50jobs")
    trace = run(instance, POLICIES.get(policy).build(instance, None), round_s=360.0, restart_s=10.0)
    assert check(instance, trace, trace.rules).violations == ()
    assert not any(trace.unfinished)
