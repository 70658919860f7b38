"""The checker of Synergy's rounds and runs finds every broken rule; it computes rates and bounds on rounds itself."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import synergy_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import instances, models
from schedgap.certificates.reading.sensitive import sensitive_of
from schedgap.harness.check import Verdict, history, judge_asked
from schedgap.harness.check.sensitive import bounds, menu
from schedgap.heuristics import HEURISTICS, Context
from schedgap.heuristics.simulator import POLICIES, Assignment, Shares, State, simulate
from schedgap.heuristics.simulator.trace import IMPOSSIBLE
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Tenant
from schedgap.instances.sensitivity import advancing
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import SynergySchedule, SynergyView
from schedgap.models import MODELS

EXAMPLE = synergy.view(instances.load("paper/synergy-example"))
TUNED = [(0, 0, 4, 23.0, 400.0), (1, 1, 4, 12.0, 450.0), (2, 0, 4, 1.0, 100.0), (3, 1, 4, 12.0, 50.0)]
"""The schedule of Table 3: job, server, GPUs, CPUs, gigabytes."""

PROPORTIONAL = [(j, j // 2, 4, 12.0, 250.0) for j in range(4)]
"""The schedule of Table 2, in the same form."""

ROUND, FAIR, IDEAL, FREE, QUEUE = (f"synergy.{name}" for name in ("round", "fair", "ideal", "free", "queue"))


def schedule(rows: Any, rounds: Any = None, offered: Any = ()) -> SynergySchedule:
    columns = list(zip(*rows, strict=True)) or [[]] * 5
    job, server = (np.array(c, np.int64) for c in columns[:2])
    gpus, cpus, memory_gb = (np.array(c, float) for c in columns[2:])
    row = np.zeros(len(job), np.int64) if rounds is None else np.array(rounds, np.int64)
    offers = np.array(offered, np.int64).reshape(-1, 2)
    return SynergySchedule(row, job, server, gpus, cpus, memory_gb, offers[:, 0], offers[:, 1])


def check(
    rows: Any, problem: str = ROUND, claims: tuple[str, ...] = (), view: SynergyView = EXAMPLE, **more: Any
) -> Verdict:
    decision = rows if isinstance(rows, SynergySchedule) else schedule(rows, **more)
    return judge_asked(view, decision, problem, claims)


def changed(row: int, column: int, value: float, rows: Any = TUNED) -> list[Any]:
    out = [list(entry) for entry in rows]
    out[row][column] = value
    return out


# one round ------------------------------------------------------------------------------------------------------------


def test_the_paper_s_tables_are_verified_and_measured() -> None:
    proportional = check(PROPORTIONAL, FAIR, ("proportional", "no_idle_gpu", "three_per_server"))
    assert proportional.violations == ()
    assert proportional.objective == pytest.approx(4.0)
    assert proportional.quantities["cpus"].tolist() == [12] * 4
    assert proportional.quantities["memory_gb"].tolist() == [250] * 4
    assert proportional.metrics["gpus_used"] == proportional.metrics["cpus_used"] == 1
    tuned = check(TUNED)
    assert tuned.violations == ()
    assert tuned.objective == tuned.quantities["throughput"]
    assert tuned.objective > proportional.objective
    assert tuned.quantities["mean_jct_speedup"] > 1
    assert tuned.metrics["fragments"] == 0


@pytest.mark.parametrize(
    ("rows", "problem", "message"),
    [
        (changed(0, 3, 24.0), ROUND, "round 0: 25 CPUs of server.0 given out, 24 available"),
        (changed(0, 4, 401.0), ROUND, "round 0: 501 GB of server.0 given out, 500 available"),
        ([*TUNED[:3], (3, 0, 4, 0.0, 0.0)], ROUND, "12 GPUs of server.0 given out, 8 available"),
        (changed(0, 2, 3), ROUND, "J1 in round 0: 3 GPUs, its gang needs all 4 or none"),
        (changed(0, 2, 3.5), ROUND, "gpus 3.5: GPUs are whole"),
        (changed(0, 2, 0), ROUND, "an entry has more than 0 GPUs"),
        (changed(0, 0, 4), ROUND, "job 4: they go from 0 to 3"),
        (changed(0, 1, 2), ROUND, "server 2: they go from 0 to 1"),
        (changed(0, 1, 1), IDEAL, "server 1: it is 0"),
        (changed(0, 3, -1.0), ROUND, "cpus: numbers of 0 or more"),
        (changed(0, 4, np.nan), ROUND, "memory_gb: numbers of 0 or more"),
        ([*TUNED[1:], (0, 0, 2, 11.5, 200.0), (0, 0, 2, 11.5, 200.0)], ROUND, "J1 in round 0: a server occurs twice"),
        (changed(2, 4, 10.0), ROUND, "J3 in round 0: makes no progress"),
        (changed(0, 3, 3.0), FAIR, "iterations/s, its fair progress is"),
        (TUNED[:3], FAIR, "J4 does not run, but every job of the round does here"),
        (TUNED[:2], IDEAL, "does not run (and 1 more)"),
        ([(0, 0, 4, 25.0, 400.0)], FREE, "J1 in round 0: 25 CPUs, more than the servers that its GPUs need can have"),
    ],
)
def test_each_broken_rule_of_a_round_is_named(rows: Any, problem: str, message: str) -> None:
    if problem in (IDEAL, FREE):
        rows = [(j, 0, *rest) if s < 2 and message[:6] != "server" else (j, s, *rest) for j, s, *rest in rows]
    assert any(message in line for line in check(rows, problem).violations), check(rows, problem).violations


def test_rounds_shapes_and_types_of_arrays() -> None:
    good = schedule(TUNED)
    assert "round 3: the only round is 0" in check(TUNED, rounds=[0, 0, 0, 3]).violations
    for change, message in (
        ({"cpus": good.cpus[:3]}, "cpus: 3 entries, round has 4"),
        ({"job": good.job.astype(float)}, "job: a list of whole numbers"),
        ({"gpus": good.gpus[:, None]}, "gpus: a list of numbers"),
        ({"offered_round": np.zeros(1, np.int64)}, "offered_job: 0 entries"),
    ):
        verdict = check(dataclasses.replace(good, **change))
        assert verdict.objective is None
        assert message in verdict.violations[0]


def test_only_the_jobs_of_the_round_run() -> None:
    view = dataclasses.replace(EXAMPLE, runnable=np.array([0, 1]))
    assert "J3 is not among the jobs of the round" in check(TUNED, FAIR, view=view).violations
    assert not check(TUNED, ROUND, view=view).violations, "the queue has all jobs, whatever the round is"


@pytest.mark.parametrize("problem", [ROUND, QUEUE])
def test_any_job_of_the_queue_runs_if_it_can_ever_run(problem: str) -> None:
    """A gang that fills the cluster comes first; instead of it, later jobs run, but none without progress by shares."""
    resting = cases.job("Synergy GNMT", sensitivity=cases.matrix((8.0, 9.0), (20.0,), [[1.0], [2.0]]))
    jobs = [("Synergy GNMT", 8), ("Synergy GNMT", 1), ("Synergy GNMT", 1), resting]
    view = synergy.view(cases.instance(jobs, [cases.servers(1)]))
    assert (view.runnable.tolist(), view.queue.tolist()) == ([0], [0, 1, 2])
    later = [(j, 0, 1, 3.0, 62.5) for j in (1, 2)]
    verdict = check(later, problem, view=view, offered=[(0, 1)])
    assert (verdict.violations, verdict.objective) == ((), pytest.approx(2.0))
    assert "J2 is not among the jobs of the round" in check(later, FREE, view=view).violations
    never = check([(3, 0, 1, 9.0, 60.0)], problem, view=view, offered=[(0, 3)]).violations
    assert "J4 is not among the jobs of the queue" in never
    assert "J4 in round 0: is offered, but absent" in never


def test_gangs_over_servers_hold_shares_in_proportion() -> None:
    view = synergy.view(cases.instance([("Synergy GNMT", 4)], [cases.servers(2)]))
    even = [(0, 0, 3, 9.0, 75.0), (0, 1, 1, 3.0, 25.0)]
    verdict = check(even, FAIR, view=view)
    assert not [line for line in verdict.violations if "fair" not in line]
    assert verdict.metrics["fragments"] == 1
    uneven = check(changed(0, 3, 10.0, even), view=view)
    assert "J1 in round 0: its CPUs and memory are not in proportion to its GPUs over servers" in uneven.violations
    assert uneven.objective == pytest.approx(verdict.objective), "the least per GPU counts"


def test_a_gang_keeps_to_one_type() -> None:
    hosts = [cases.servers(1, "V100"), cases.servers(1, "P100")]
    view = synergy.view(cases.instance([("Synergy GNMT", 4)], hosts))
    assert not check([(0, 1, 4, 12.0, 250.0)], view=view).violations
    mixed = check([(0, 0, 2, 6.0, 125.0), (0, 1, 2, 6.0, 125.0)], view=view)
    assert "J1 in round 0: holds GPUs of several types" in mixed.violations


def test_claims() -> None:
    slow = changed(0, 3, 3.0)
    assert not check(slow).violations
    assert "its fair progress is" in check(slow, claims=("proportional",)).violations[0]
    assert "GPUs are idle, J4 with its 4 waits" in check(TUNED[:3], claims=("no_idle_gpu",)).violations[0]
    assert not check(TUNED[:3], claims=("no_idle_gpu",), offered=[(0, 0), (0, 1), (0, 2)]).violations
    view = synergy.view(cases.instance([("Synergy GNMT", 2)] * 4, [cases.servers(2, gpus=4, cpus=12.0)]))
    spread = [(j, s, 1, 3.0, 125.0) for j in range(4) for s in (0, 1)]
    assert check(spread, claims=("three_per_server",), view=view).violations == ()
    single = synergy.view(cases.instance([("Synergy GNMT", 2)] * 7, [cases.servers(2)]))
    spread = [(j, s, 1, 3.0, 60.0) for j in range(7) for s in (0, 1)]
    crowded = check(spread, claims=("three_per_server",), view=single).violations
    assert crowded == ("7 jobs are fragmented, more than three per server (6)",)


def test_offers_are_present_and_fit() -> None:
    assert not check(TUNED, offered=[(0, j) for j in range(4)]).violations
    assert "occurs once" in check(TUNED, offered=[(0, 0), (0, 0)]).violations[0]
    assert "J1 in round 1: is offered, but absent" in check(TUNED, offered=[(1, 0)]).violations[0]
    view = dataclasses.replace(EXAMPLE, runnable=np.array([0, 1, 2]))
    assert "J4 in round 0: is offered" in check(TUNED[:3], FAIR, view=view, offered=[(0, 3)]).violations[0]
    crowd = synergy.view(cases.instance([("Synergy GNMT", 8)] * 3, [cases.servers(2)]))
    crowd = dataclasses.replace(crowd, runnable=np.arange(3))
    told = check([], view=crowd, offered=[(0, 0), (0, 1), (0, 2)]).violations
    assert told == ("round 0: jobs of 24 GPUs are offered, there are 16",)


def test_the_oracle_s_floor_is_an_equal_split() -> None:
    hosts = [cases.servers(1, "V100"), cases.servers(1, "P100")]
    view = synergy.view(cases.instance([("Synergy GNMT", 4)], hosts))
    good = check([(0, 0, 4, 12.0, 250.0)], "synergy.oracle", view=view)
    assert not good.violations
    low = check([(0, 1, 4, 12.0, 250.0)], "synergy.oracle", view=view).violations
    assert any("1/n of every GPU type" in line for line in low) == (view.needs.fair[0, 1] < view.needs.fair[0].mean())


@pytest.mark.parametrize("name", ["synergy.ilp1", "synergy.lp2.vertex"])
def test_parts_of_gpus_are_placements_only(name: str) -> None:
    spec = MODELS.get(name)
    outcome = spec.run(EXAMPLE)
    verdict = check(outcome.decision, spec.problem, spec.claims)
    assert verdict.violations == ()
    if name == "synergy.lp2.vertex":
        assert verdict.objective == verdict.metrics["fragments"]
        if np.any(outcome.decision.gpus != np.rint(outcome.decision.gpus)):
            assert "GPUs are whole" in check(outcome.decision, FAIR).violations[0]


# rates ----------------------------------------------------------------------------------------------------------------


@given(cases.small(chips=("V100", "K80")), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_rates_and_shares_are_those_of_the_view(instance: Any, seed: int) -> None:
    """The checker's rates and shares, computed by arithmetic, equal those in the view's tables."""
    view = synergy.view(instance)
    speeds = sensitive_of(instance.plain)
    rng = np.random.default_rng(seed)
    job, kind = rng.integers(view.size, size=200), rng.integers(view.types, size=200)
    cpus, memory_gb = rng.uniform(0, 16, 200).round(int(rng.integers(3))), 5.0 * rng.integers(0, 80, 200)
    wanted = view.profiles.rate_of(view.profiles.kind[job], kind, cpus, memory_gb)
    assert np.allclose(speeds.rate(job, kind, cpus, memory_gb), wanted, rtol=1e-12)
    pooled = speeds.pooled
    able, fair = (part[view.profiles.kind] for part in (view.needs.able, view.needs.fair))
    assert np.array_equal(pooled.able, able)
    assert np.allclose(pooled.fair, np.where(able, fair, 0.0), rtol=1e-12)


@pytest.mark.parametrize("make", [cases.mix, cases.pipelines])
def test_rates_of_measured_jobs_and_pipelines(make: Any) -> None:
    instance = make(30, [cases.servers(2), cases.servers(2, "P100", 4)])
    view = synergy.view(instance)
    speeds = sensitive_of(instance.plain)
    grid = itertools.product(range(view.size), range(view.types), (0.5, 1, 3, 9.5, 24, 48), (10, 62.5, 250, 500, 1000))
    job, kind, cpus, memory_gb = (np.array(column) for column in zip(*grid, strict=True))
    wanted = view.profiles.rate_of(view.profiles.kind[job], kind, cpus.astype(float), memory_gb.astype(float))
    assert np.allclose(speeds.rate(job, kind, cpus.astype(float), memory_gb.astype(float)), wanted, rtol=1e-12)


# the bound of rounds --------------------------------------------------------------------------------------------------


def bounded(view: SynergyView, rounds: Any) -> Any:
    speeds = sensitive_of(view.instance.plain)
    classes = speeds.classes
    count = np.array([np.bincount(classes.of[jobs], minlength=len(classes.first)) for jobs in rounds])
    return bounds(menu(speeds, view.weight), count)


@given(cases.small(chips=("V100", "K80")))
@settings(max_examples=25, deadline=None)
def test_no_round_beats_its_bound(instance: Any) -> None:
    view = synergy.view(instance)
    name = "synergy.hetero.ilp1" if view.mixed else "synergy.ilp1"
    best = MODELS.get(name).run(view).solution.objective
    assert best is not None
    assert bounded(view, [view.runnable])[0] >= best * (1 - 1e-7)


@pytest.mark.parametrize("make", [cases.mix, cases.pipelines])
def test_the_bound_is_as_tight_as_lp1(make: Any) -> None:
    view = synergy.view(make(120, [cases.servers(8)]))
    rng = np.random.default_rng(3)
    rounds = [view.pick(rng.permutation(view.possible).tolist())[0] for _ in range(12)]
    found = bounded(view, rounds)
    for jobs, bound in zip(rounds, found, strict=True):
        lp1 = MODELS.get("synergy.lp1").run(dataclasses.replace(view, runnable=jobs)).solution.objective
        assert bound <= lp1 * 1.005
    mixed = synergy.view(make(60, [cases.servers(2), cases.servers(2, "P100", 4), cases.servers(2, "K80")]))
    lp1 = MODELS.get("synergy.hetero.lp1").run(mixed).solution.objective
    assert bounded(mixed, [mixed.runnable])[0] <= lp1 * 1.01


def test_rounds_without_jobs_are_worth_nothing() -> None:
    assert bounded(EXAMPLE, [[], [0, 1, 2, 3], []])[[0, 2]].tolist() == [0, 0]


# the run --------------------------------------------------------------------------------------------------------------


def in_turn(view: SynergyView) -> SynergySchedule:
    """Return a schedule in which jobs run with their shares, first come, first served, on servers with room."""

    def policy(state: State) -> Assignment:
        free, rows = view.servers.gpus.copy(), []
        queue = state.jobs[np.argsort(state.arrival_s, kind="stable")]
        jobs, types = view.pick(queue.tolist())
        for j, i in zip(jobs.tolist(), types.tolist(), strict=True):
            wanted = int(view.workload.gpus[j])
            for h in np.flatnonzero(view.servers.gpu_type == i).tolist():
                if taken := min(wanted, int(free[h])):
                    rows.append((j, h, taken, i))
                    free[h] -= taken
                    wanted -= taken
        job, server, gpus, kind = np.array(rows, np.int64).T
        shares = view.pools.cpus_per_gpu[kind] * gpus, view.pools.memory_gb_per_gpu[kind] * gpus
        return Assignment(job, server, gpus, shares=Shares(*shares, jobs))

    trace = simulate(view.workload, view.servers, policy, profiles=view.profiles, round_s=view.slot_s, sensitive=True)
    number = np.rint(trace.start_s / view.slot_s).astype(np.int64)
    row, job, server, gpus = trace.allocation.T
    offered = np.column_stack((number[trace.offered[:, 0]], trace.offered[:, 1]))
    return schedule(np.column_stack((job, server, gpus, trace.cpus, trace.memory_gb)).tolist(), number[row], offered)


ARRIVING = synergy.view(
    cases.instance(
        [("Synergy ResNet18", 2, 1000.0, 0.0), ("Synergy GNMT", 1, 500.0, 400.0), ("Synergy AlexNet", 1, 800.0, 0.0)],
        [cases.servers(1, gpus=2, cpus=6.0, memory_gb=125.0)],
    )
)
RUN = in_turn(ARRIVING)


def test_a_run_is_verified_and_measured() -> None:
    verdict = check(RUN, "synergy.run", ("proportional", "no_idle_gpu"), ARRIVING)
    assert verdict.violations == ()
    # J1 has all GPUs for 1000 s, so that the others start in the round at 1200 s.
    completion_s = [1000.0, 1700.0, 2000.0]
    assert verdict.quantities["completion_s"] == pytest.approx(completion_s, rel=1e-3)
    assert verdict.objective == pytest.approx(np.mean(np.array(completion_s) - [0, 400, 0]), rel=1e-3)
    assert verdict.metrics["makespan_s"] == pytest.approx(2000, rel=1e-3)
    assert 0 < verdict.metrics["lp1_worst"] <= verdict.metrics["lp1_share"] <= 1


def test_each_broken_rule_of_a_run_is_named() -> None:
    first = int(np.flatnonzero(RUN.job == 1)[0])
    last = int(np.flatnonzero(RUN.job == 0)[-1])

    def without(kept: Any, **changes: Any) -> SynergySchedule:
        names = ("round", "job", "server", "gpus", "cpus", "memory_gb")
        return dataclasses.replace(RUN, **{name: getattr(RUN, name)[kept] for name in names}, **changes)

    def also(round_: int, job: int, gpus: int) -> SynergySchedule:
        extra = (round_, job, 0, gpus, 3.0 * gpus, 62.5 * gpus)
        names = ("round", "job", "server", "gpus", "cpus", "memory_gb")
        return dataclasses.replace(
            RUN,
            **{
                n: np.append(getattr(RUN, n), np.array(x, getattr(RUN, n).dtype))
                for n, x in zip(names, extra, strict=True)
            },
        )

    everything = np.arange(RUN.job.size)
    mutants = [
        (also(1, 1, 1), "J2 in round 1: runs before its arrival in round 2"),
        (also(40, 0, 2), "J1 in round 40: runs after its completion"),
        (without(everything != last), "J1 does "),
        (without(RUN.job != 1), "J2 never runs, but every possible job completes here"),
        (also(int(RUN.round[first]), 0, 2), "4 GPUs of g0"),
        (dataclasses.replace(RUN, offered_round=RUN.offered_round + 50), "is offered, but absent"),
        (dataclasses.replace(RUN, round=RUN.round + 50), "jobs run, but none is offered"),
    ]
    for decision, message in mutants:
        lines = check(decision, "synergy.run", (), ARRIVING).violations
        assert any(message in line for line in lines), (message, lines)
    waits = without(RUN.job != 1)
    assert any(
        "J2 with its 1 waits" in line for line in check(waits, "synergy.run", ("no_idle_gpu",), ARRIVING).violations
    )


@given(cases.small(jobs=6, chips=("V100", "K80"), arrivals=(0.0, 200.0, 900.0)))
@settings(max_examples=25, deadline=None)
def test_what_the_simulator_does_is_verified(instance: Any) -> None:
    view = synergy.view(instance)
    verdict = check(in_turn(view), "synergy.run", ("proportional", "no_idle_gpu"), view)
    assert verdict.violations == ()
    assert verdict.metrics["lp1_share"] <= 1 + 1e-9


# what is unusual ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [p.id for p in PAPERS.get("synergy").problems])
def test_nothing_at_all_is_judged_as_well(problem: str) -> None:
    verdict = check([], problem)
    assert verdict.violations or verdict.objective == 0


def test_whom_a_fair_policy_picks_runs_and_nobody_else() -> None:
    everybody = [(0, j) for j in range(4)]
    assert check(TUNED, FAIR, ("all_offered",), offered=everybody).violations == ()
    runs = check(TUNED, FAIR, ("all_offered",), offered=everybody[1:]).violations
    assert any("runs without an offer" in line for line in runs)
    waits = check(TUNED[1:], ROUND, ("all_offered",), offered=everybody).violations
    assert any("waits despite its offer" in line for line in waits)


def run_of(view: SynergyView, name: str = "tune.fifo") -> SynergySchedule:
    decision: SynergySchedule = HEURISTICS.get(f"synergy.{name}").run(
        view, Context(np.random.default_rng(0), models.oracle)
    )
    return decision


FLAT = cases.matrix((1.0,), (10.0,), [[1.0]])
STUCK = cases.matrix((1.0,), (10.0,), [[0.0]])


def small_job(iterations: int, submit_s: float = 0.0, sensitivity: Any = FLAT) -> Any:
    return cases.job(iterations=iterations, submit_s=submit_s, rates={"V100": 1.0}, sensitivity=sensitivity)


def test_a_job_that_never_advances_holds_up_no_gap_and_no_end() -> None:
    """A job that can never advance is not shown to the policy, so empty weeks before the last arrival are skipped."""
    jobs = [small_job(600), small_job(600, sensitivity=STUCK), small_job(600, submit_s=2_900_000.0)]
    view = synergy.view(cases.instance(jobs))
    assert [bool(reason) for reason in view.hopeless] == [False, True, False]
    assert advancing(view.profiles, view.servers).tolist() == [True, False, True]
    decision = run_of(view)
    assert check(decision, "synergy.run", view=view).violations == ()
    policy = POLICIES.get("synergy.tune.fifo").build(view.instance, models.oracle)
    trace = simulate(view.workload, view.servers, policy, profiles=view.profiles, sensitive=True)
    assert trace.rounds == 4
    assert trace.unfinished == (None, IMPOSSIBLE, None)
    assert history.check(view.instance, trace, trace.rules).violations == ()


@pytest.mark.parametrize("leave_s", [100.0, 450.0, 1000.0])
def test_runs_are_about_all_jobs_also_those_whose_tenants_leave(leave_s: float) -> None:
    instance = cases.instance([small_job(1000, submit_s=10.0), small_job(600)])
    jobs = (instance.jobs[0].model_copy(update={"tenant": "guest"}), instance.jobs[1])
    instance = instance.model_copy(update={"jobs": jobs, "tenants": (Tenant(id="guest", leave_s=leave_s),)})
    view = synergy.view(instance)
    verdict = check(run_of(view), "synergy.run", view=view)
    assert verdict.violations == ()
    assert verdict.objective == pytest.approx((1300.0 - 10.0 + 600.0) / 2)


@settings(max_examples=30, deadline=None)
@given(cases.small(jobs=5, chips=("V100", "K80")))
def test_who_can_run_is_found_alike_by_engine_view_and_checker(instance: Any) -> None:
    view = synergy.view(instance)
    found = advancing(view.profiles, view.servers)
    assert np.array_equal(found, view.needs.able[view.profiles.kind].any(axis=1))
    assert np.array_equal(found, sensitive_of(instance.plain).pooled.able.any(axis=1))
