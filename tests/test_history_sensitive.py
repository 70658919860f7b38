"""The checker of histories in which rates depend on CPUs and memory, and jobs are profiled first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import synergy_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import models
from schedgap.harness.check.history import check
from schedgap.harness.studies.simulate.task import rounds
from schedgap.heuristics.simulator import (
    POLICIES,
    Assignment,
    InvalidAssignmentError,
    Shares,
    State,
    Trace,
    servers,
    simulate,
    workload,
)
from schedgap.heuristics.simulator.metrics import Window, measure
from schedgap.instances.errors import UsageError
from schedgap.instances.schema import Instance
from schedgap.instances.sensitivity import profiles
from schedgap.instances.views import synergy

CASE = cases.instance(
    [("Synergy ResNet18", 2, 900.0), ("Synergy GNMT", 1, 500.0), ("Synergy AlexNet", 4, 800.0, 100.0)],
    [
        cases.servers(1, gpus=4, cpus=12.0, memory_gb=250.0),
        cases.servers(1, "P100", gpus=4, cpus=12.0, memory_gb=250.0),
    ],
)


def at_their_shares(state: State) -> Assignment:
    """Place gangs in order, each on the first server with room, with 3 CPUs and 62.5 GB per GPU."""
    free, rows = state.servers.gpus.copy(), []
    for j in state.jobs.tolist():
        gpus = int(state.workload.gpus[j])
        room = np.flatnonzero(free >= gpus)
        if room.size:
            rows.append((j, int(room[0]), gpus))
            free[room[0]] -= gpus
    gpus = np.array([row[2] for row in rows], float)
    offered = np.array([row[0] for row in rows], np.int64)
    return dataclasses.replace(Assignment.of(rows), shares=Shares(3.0 * gpus, 62.5 * gpus, offered))


def history(instance: Instance = CASE, **rules: Any) -> Trace:
    work, cluster = workload(instance), servers(instance)
    tables = profiles(instance, work, cluster)
    return simulate(work, cluster, at_their_shares, profiles=tables, round_s=300.0, sensitive=True, **rules)


def put(values: Any, at: int | tuple[int, int], value: float) -> Any:
    copy = values.copy()
    copy[at] = value
    return copy


MUTANTS: dict[str, tuple[str, Callable[[Trace], dict[str, Any]]]] = {
    "more CPUs": ("CPUs of g0 given out", lambda t: {"cpus": put(t.cpus, 0, 99.0)}),
    "more memory": ("GB of g0 given out", lambda t: {"memory_gb": put(t.memory_gb, 0, 999.0)}),
    "fewer CPUs": ("but its CPUs and memory give", lambda t: {"cpus": put(t.cpus, 0, 2.0)}),
    "less memory": ("but its CPUs and memory give", lambda t: {"memory_gb": t.memory_gb / 10}),
    "negative": ("0 or more", lambda t: {"cpus": -t.cpus}),
    "no number": ("0 or more", lambda t: {"memory_gb": t.memory_gb * np.nan}),
    "faster": ("but its CPUs and memory give", lambda t: {"speed": t.speed * 1.01}),
    "slower": ("but its CPUs and memory give", lambda t: {"speed": t.speed * 0.99}),
    "missing": ("cpus: ", lambda t: {"cpus": t.cpus[1:]}),
    "none": ("memory_gb: ", lambda t: {"memory_gb": np.zeros(0)}),
    "offered late": ("offered after its completion", lambda t: {"offered": put(t.offered, (-1, 1), 1)}),
    "offered early": ("offered before its arrival", lambda t: {"offered": np.vstack([t.offered, [[0, 2]]])}),
    "offered twice": ("occurs once", lambda t: {"offered": np.vstack([t.offered, t.offered[:1]])}),
    "offered nobody": ("job 7: they go from 0 to 2", lambda t: {"offered": put(t.offered, (0, 1), 7)}),
    "offered never": ("round 700: they go from 0 to 4", lambda t: {"offered": put(t.offered, (0, 0), 700)}),
    "profiled": ("rules: differs from", lambda t: {"rules": dataclasses.replace(t.rules, profiling_s=9.0)}),
    "insensitive": ("rules: differs from", lambda t: {"rules": dataclasses.replace(t.rules, sensitive=False)}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_changed_records_are_found(name: str) -> None:
    trace = history()
    assert check(CASE, trace, trace.rules).violations == ()
    message, change = MUTANTS[name]
    lines = check(CASE, dataclasses.replace(trace, **change(trace)), trace.rules).violations
    assert any(message in line for line in lines), lines


def test_a_gang_keeps_to_one_type() -> None:
    trace = history()
    # J3 holds four GPUs from its first round on; let one of its servers have the other type.
    (row, *_) = np.flatnonzero(trace.allocation[:, 1] == 2)
    t, j, h, gpus = trace.allocation[row].tolist()
    split = np.array([[t, j, h, gpus - 1], [t, j, 1 - h, 1]])
    table = np.vstack([trace.allocation[:row], split, trace.allocation[row + 1 :]])
    parts = {"cpus": 3.0, "memory_gb": 62.5}
    shares = {
        name: np.concatenate([old[:row], [(gpus - 1) * each, each], old[row + 1 :]])
        for name, each in parts.items()
        for old in [getattr(trace, name)]
    }
    lines = check(CASE, dataclasses.replace(trace, allocation=table, **shares), trace.rules).violations
    assert any("GPUs of several types" in line for line in lines), lines


def test_jobs_are_there_when_they_are_profiled() -> None:
    trace = history(profiling_s=350.0)
    assert check(CASE, trace, trace.rules).violations == ()
    assert trace.first_start_s.tolist() == [600, 600, 600]
    # The same history where profiling was to take longer, or no time at all.
    longer = dataclasses.replace(trace.rules, profiling_s=700.0)
    told = check(CASE, dataclasses.replace(trace, rules=longer), longer).violations
    assert any("before its arrival and 700 s of profiling" in line for line in told)
    none = dataclasses.replace(trace.rules, profiling_s=0.0)
    told = check(CASE, dataclasses.replace(trace, rules=none), none).violations
    assert any("a job is present from about 0 s" in line for line in told)


def test_more_gpus_offered_than_there_are() -> None:
    case = cases.instance([("Synergy GNMT", 4)] * 2, [cases.servers(1, gpus=4)])
    trace = history(case)
    crowd = dataclasses.replace(trace, offered=np.vstack([trace.offered, [[0, 1]]]))
    assert "jobs of 8 GPUs are offered, there are 4" in check(case, crowd, trace.rules).violations[0]


def test_other_rules_have_no_shares() -> None:
    work, cluster = workload(CASE), servers(CASE)
    trace = simulate(work, cluster, at_their_shares, round_s=300.0)
    assert check(CASE, trace, trace.rules).violations == ()
    offers = dataclasses.replace(trace, offered=np.array([[0, 0]]))
    assert "offered: " in check(CASE, offers, trace.rules).violations[0]
    shares = dataclasses.replace(trace, cpus=np.ones(len(trace.allocation)))
    assert "cpus: 0 numbers" in check(CASE, shares, trace.rules).violations[0]


SENSITIVE = [spec.id for spec in POLICIES if spec.sensitive and ".opt." not in spec.id]


@given(
    cases.small(jobs=6, chips=("V100", "K80"), arrivals=(0.0, 200.0, 900.0)),
    st.sampled_from(SENSITIVE),
    st.sampled_from([0.0, 130.0]),
    st.sampled_from([0.0, 10.0]),
)
@settings(max_examples=60, deadline=None)
def test_histories_of_all_policies_pass(instance: Instance, policy: str, profiling_s: float, restart_s: float) -> None:
    spec = POLICIES.get(policy)
    work, cluster = workload(instance), servers(instance)
    trace = simulate(
        work,
        cluster,
        spec.build(instance, lambda model, view: None),
        profiles=profiles(instance, work, cluster),
        round_s=100.0,
        sensitive=True,
        profiling_s=profiling_s,
        restart_s=restart_s,
    )
    assert check(instance, trace, trace.rules).violations == ()
    assert not any(trace.unfinished)


# what it is worth -----------------------------------------------------------------------------------------------------


def test_cpus_that_are_given_and_needed() -> None:
    case = cases.instance([("Synergy GNMT", 1, 450.0)], [cases.servers(1, gpus=2, cpus=6.0, memory_gb=125.0)])
    trace = history(case)
    assert trace.cpu_utilisation.tolist() == pytest.approx([0.5, 0.25], rel=1e-3)
    assert trace.held.tolist() == [[3.0, 62.5]] * 2
    # GNMT is as fast with one CPU as with three (section 3).
    worth = rounds(case, trace)
    assert worth.cpus_needed.tolist() == pytest.approx([1 / 6, 1 / 12], rel=1e-3)
    assert worth.progress.tolist() == pytest.approx([1.0, 1.0])
    assert worth.share.tolist() == pytest.approx([1.0, 1.0], abs=1e-3)
    assert measure(trace).cpu_given == pytest.approx(0.5, rel=1e-3)


def test_progress_stays_below_what_lp1_allows() -> None:
    trace = history()
    worth = rounds(CASE, trace)
    assert np.all(worth.share <= 1 + 1e-9)
    assert np.all(worth.cpus_needed <= trace.cpu_utilisation + 1e-12)
    none = dataclasses.replace(trace, offered=np.zeros((0, 2), np.int64))
    assert np.isnan(rounds(CASE, none).share).all()


def test_windows_of_jobs_by_arrival() -> None:
    arrival_s = np.array([50.0, 10.0, 30.0, 10.0])
    assert Window().jobs(arrival_s).tolist() == [1, 3, 2, 0]
    assert Window(1, 2).jobs(arrival_s).tolist() == [3, 2]
    assert str(Window.parse("1:2")) == "1:2"
    for text in ("", "1", ":2", "1:0", "-1:2", "1:2:3", "1.5:2"):
        with pytest.raises(UsageError, match="FIRST:COUNT"):
            Window.parse(text)


def test_completion_times_of_a_window_and_of_short_and_long_jobs() -> None:
    hour = 3600.0
    rows = [("Synergy GNMT", 1, hours * hour, i * 300.0) for i, hours in enumerate((1, 2, 5, 8))]
    trace = history(cases.instance(rows, [cases.servers(1, gpus=4, cpus=12.0, memory_gb=250.0)]))
    found = measure(trace)
    assert found.jct_short_s == pytest.approx(1.5 * hour, rel=1e-3)
    assert found.jct_long_s == pytest.approx(6.5 * hour, rel=1e-3)
    assert found.jct_short_p99_s == pytest.approx(1.99 * hour, rel=1e-3)
    assert (found.jct_long_p95_s, found.jct_long_p99_s) == pytest.approx((7.85 * hour, 7.97 * hour), rel=1e-3)
    middle = measure(trace, Window(1, 2))
    assert (middle.window_jobs, middle.finished) == (2, 4)
    assert middle.jct_mean_s == pytest.approx(3.5 * hour, rel=1e-3)
    assert middle.ttd_s == found.ttd_s
    beyond = measure(trace, Window(9, 1))
    assert (beyond.window_jobs, np.isnan(beyond.jct_mean_s)) == (0, True)


@pytest.mark.parametrize(("cpus", "memory_gb"), [(4.0, 50.0), (2.0, 100.0)])
def test_a_gang_has_no_more_than_the_servers_that_its_gpus_need(cpus: float, memory_gb: float) -> None:
    """A gang on two servers may not hold more CPUs than one server has, if its GPUs fit on one.

    Bounds assume this: with all CPUs of two servers, the gang would take half the time of the bound.
    """
    table = cases.matrix([1.0, 2.0, 4.0], [25.0, 50.0, 100.0], [[0.25] * 3, [0.5] * 3, [1.0] * 3])
    case = cases.instance([cases.job(gpus=2, sensitivity=table)], [cases.servers(2, gpus=2, cpus=4.0, memory_gb=100.0)])
    work, cluster = workload(case), servers(case)

    def spread(each: float, rest: float) -> Callable[[State], Assignment]:
        shares = Shares(np.full(2, each), np.full(2, rest), np.zeros(1, np.int64))
        return lambda state: dataclasses.replace(Assignment.of([(0, 0, 1), (0, 1, 1)]), shares=shares)

    def run(*amounts: float) -> Trace:
        tables = profiles(case, work, cluster)
        return simulate(work, cluster, spread(*amounts), profiles=tables, round_s=300.0, sensitive=True)

    trace = run(2.0, 50.0)
    assert check(case, trace, trace.rules).violations == ()
    bound = models.get("synergy.jct").run(synergy.view(case)).solution.bound
    assert bound <= trace.jct_s.mean() * (1 + 1e-6)
    with pytest.raises(InvalidAssignmentError, match="job J1 holds more CPUs or memory than the servers"):
        run(cpus, memory_gb)
    changed = {"cpus": np.full_like(trace.cpus, cpus), "memory_gb": np.full_like(trace.memory_gb, memory_gb)}
    lines = check(case, dataclasses.replace(trace, speed=trace.speed * cpus / 2.0, **changed), trace.rules).violations
    assert any("more than the servers that its GPUs need can have" in line for line in lines), lines


@pytest.mark.parametrize(("over", "accepted"), [(1.5e-8, True), (3e-8, False)])
def test_a_policy_may_hold_what_models_allow_themselves(over: float, accepted: bool) -> None:
    """Engine and checker accept 1.6e-8 more CPUs than a server has, as optima that policies round may have that."""
    table = cases.matrix([1.0, 4.0], [25.0, 100.0], [[0.25, 0.25], [1.0, 1.0]])
    case = cases.instance([cases.job(gpus=2, sensitivity=table)], [cases.servers(1, gpus=2, cpus=4.0, memory_gb=100.0)])
    work, cluster = workload(case), servers(case)
    shares = Shares(np.array([4.0 * (1 + over)]), np.array([100.0]), np.zeros(1, np.int64))

    def full(state: State) -> Assignment:
        return dataclasses.replace(Assignment.of([(0, 0, 2)]), shares=shares)

    def run() -> Trace:
        tables = profiles(case, work, cluster)
        return simulate(work, cluster, full, profiles=tables, round_s=300.0, sensitive=True)

    if accepted:
        trace = run()
        assert check(case, trace, trace.rules).violations == ()
    else:
        with pytest.raises(InvalidAssignmentError, match="more CPUs than server"):
            run()
