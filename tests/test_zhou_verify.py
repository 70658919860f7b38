"""The checker of Zhou's schedules finds every broken rule; it computes times, weights, costs and GPUs itself."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import moldable_schedules as schedules
import numpy as np
import pytest
import zhou_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from moldable_schedules import CHANGES, Row, arrays_of, rows_of, zhou_schedule

from schedgap import instances
from schedgap.certificates.reading.moldable import Layout
from schedgap.certificates.reading.zhou import Zhou, zhou_of
from schedgap.harness.check import VERIFIERS, Verdict, judge
from schedgap.instances.moldable import Ledger
from schedgap.instances.schema import Instance
from schedgap.instances.views import zhou
from schedgap.instances.views.zhou import ZhouSchedule, ZhouView

GROUPS = [cases.servers(2, gpus=2, cpus=4.0, bandwidth_gbps=8.0), cases.servers(1, gpus=1, cpus=2.0, chip="K80")]
WORKERS = [cases.worker(bandwidth_gbps=1.0), cases.worker(gpus=2, bandwidth_gbps=2.0, chip="V100")]
TYPES = [cases.ps(bandwidth_gbps=1.0), cases.ps(cpus=2.0, bandwidth_gbps=2.0)]
JOBS = [
    cases.job(2, 3, minibatch_s=[1.0, 0.5], weight=2.0, gradient_mb=cases.MB_PER_S),
    cases.job(3, 2, minibatch_s=1.0, update_s=[0.5, 0.0], ring_update_s=0.6, weight=1.0),
    cases.job(1, 2, minibatch_s=[1.0, None], weight=5.0, submit_s=1.5),
]
"""Jobs of six, six and two mini-batches.

Over the network each mini-batch of J1 takes a second more, and of J2 half a second with PSs of type p0.
"""

CASE = cases.instance(JOBS, GROUPS, WORKERS, TYPES)
VIEW = zhou.view(CASE)
for _of in VIEW.architectures.values():  # nothing is in use beside the priced job
    vars(_of)["loads"] = np.zeros((*_of.machines.capacity.shape, _of.deadline - 1))

GOOD: list[Row] = [
    (0, 1, 3, 1, 0, [(0, 1, 1)]),  # J1: one large worker with its PS: half a second each
    (1, 1, 2, 0, 1, [(1, 2, 1), (2, 1, 0)]),  # J2: three workers, one elsewhere; no update time on type p1
    (2, 3, 2, 0, 0, [(1, 1, 1)]),  # J3 arrives at second 1.5, so runs from slot 3 on
]
RING: list[Row] = [
    (0, 1, 3, 1, -1, [(0, 1, 0)]),
    (1, 1, 3, 0, -1, [(1, 2, 0), (2, 1, 0)]),  # 1 + 2/3·0.6 seconds each: 3 workers do 3·3/1.4 = 6.4 in 3 slots
    (2, 4, 2, 0, -1, [(1, 1, 0)]),
]


def schedule(rows: list[Row], windows: Any = ()) -> ZhouSchedule:
    return ZhouSchedule(*arrays_of(rows), *np.array(windows, np.int64).reshape(-1, 4).T)


def check(rows: Any, problem: str = "ps.completion", view: ZhouView = VIEW, windows: Any = ()) -> Verdict:
    decision = rows if isinstance(rows, ZhouSchedule) else schedule(rows, windows)
    return judge(view.instance, decision, f"zhou.{problem}")


def changed(i: int, rows: list[Row] = GOOD, **new: Any) -> list[Row]:
    return schedules.changed(i, rows, **new)


# completion times ---------------------------------------------------------------------------------


def test_a_good_schedule_is_verified_and_measured() -> None:
    verdict = check(GOOD)
    assert not verdict.violations
    assert verdict.objective == 2 * 4 + 1 * 3 + 5 * 5
    assert verdict.quantities["completion"].tolist() == [4, 3, 5]
    assert verdict.metrics == {
        "completed": 3,
        "mean_completion_slots": pytest.approx((3 + 2 + 2) / 3),
        "max_completion_slots": 3,
        "makespan_slots": 4,
        "gpu_utilisation": pytest.approx((3 * 2 + 2 * 3 + 2 * 1) / (5 * 4)),
        "workers_mean": pytest.approx((1 + 3 + 1) / 3),
    }


def test_rings_have_their_own_rates_and_no_ps() -> None:
    verdict = check(RING, "ra.completion")
    assert not verdict.violations
    assert verdict.objective == 2 * 4 + 4 + 5 * 6
    assert any("J2 does" in line for line in check(changed(1, RING, slots=2), "ra.completion").violations)
    assert any("ps_type 1: it is -1" in line for line in check(GOOD, "ra.completion").violations)
    with_ps = changed(2, RING, at=[(1, 1, 1)])
    assert any("ps 1: it is 0" in line for line in check(with_ps, "ra.completion").violations)
    assert any("ps_type -1: they go from 0 to 1" in line for line in check(RING).violations)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (GOOD[:2], "J3 does not run, but every job completes here"),
        (GOOD[:1], "J2 does not run (and 1 more)"),
        ([*GOOD, (2, 8, 2, 0, 0, [(1, 1, 1)])], "J3: 2 runs; a job runs once"),
        (changed(2, start=2), "J3 from slot 2: starts too early, its first possible slot is 3"),
        (changed(0, slots=2), "J1 does 4 of its 6 mini-batches"),
        (changed(0, at=[(0, 1, 0), (2, 0, 1)]), "J1 does 3 of its 6"),  # over the network: 1 s each
        (changed(1, ps_type=0, at=[(1, 2, 1), (2, 1, 0)]), "J2 does 4 of its 6"),
        (changed(1, at=[(1, 2, 1), (2, 2, 0)]), "J2 from slot 1: 4 workers, at most 3"),
        (changed(0, at=[(0, 0, 1)]), "J1 from slot 1: no workers"),
        (changed(0, at=[(0, 1, 0)]), "J1 from slot 1: no parameter server"),
        (changed(1, at=[]), "J2 from slot 1: no workers"),
        (changed(2, worker_type=1), "J3 from slot 3: its workers of type w1 cannot train it"),
        (changed(0, start=9, at=[(2, 1, 1)]), "workers of type w1 on g1, of another GPU type"),
        # Three workers on other servers need three PSs of 1 Gbit/s.
        (
            changed(1, start=5, slots=3, ps_type=0, at=[(0, 1, 0), (2, 0, 2), (1, 2, 0)]),
            "2 parameter servers on g1 carry 2 Gbit/s, workers elsewhere send 3",
        ),
        (changed(2, at=[(0, 1, 1)]), "slot 3: 3 GPU of g0.0 given out, 2 available"),
        (changed(1, at=[(1, 2, 0), (2, 1, 2)]), "slot 1: 5 CPU of g1 given out, 2 available"),
        (changed(0, start=3_000), "all servers idle"),
        (changed(0, start=0), "start 0: they go from 1"),
        (changed(0, start=2**50), f"start {2**50}: they go from 1"),
        (changed(0, slots=0), "slots 0: they go from 1"),
        (changed(0, job=3), "job 3: they go from 0 to 2"),
        (changed(0, worker_type=2), "worker_type 2: they go from 0 to 1"),
        (changed(0, ps_type=2), "ps_type 2: they go from 0 to 1"),
        (changed(0, at=[(3, 1, 1)]), "server 3: they go from 0 to 2"),
        (changed(0, at=[(0, -1, 1)]), "workers -1: they go from 0"),
        (changed(0, at=[(0, 1, 1), (1, 0, 0)]), "run 0: nothing on server 1"),
        (changed(0, at=[(0, 1, 1), (0, 0, 1)]), "run 0: server 0 occurs twice"),
    ],
)
def test_each_broken_rule_is_named(rows: list[Row], message: str) -> None:
    violations = check(rows).violations
    assert any(message in line for line in violations), violations


def test_ps_of_several_servers_each_carry_all_workers_elsewhere() -> None:
    halves = changed(1, slots=3, ps_type=0, at=[(1, 1, 1), (2, 1, 1)])
    assert check(halves).violations == ("J2 does 4 of its 6 mini-batches",)
    enough = changed(1, slots=5, ps_type=0, at=[(1, 1, 1), (2, 1, 1)])
    assert not check([*enough[:2], (2, 6, 2, 0, 0, [(1, 1, 1)])]).violations
    three = changed(1, slots=5, ps_type=0, at=[(1, 2, 1), (2, 1, 1)])
    assert any("g1 carry 1 Gbit/s, workers elsewhere send 2" in line for line in check(three).violations)


def test_a_worker_away_from_all_ps_makes_everything_slow() -> None:
    apart = changed(0, start=5, slots=6, at=[(0, 1, 0), (1, 0, 2)])
    assert not check(apart).violations
    assert check(changed(0, apart, slots=5)).violations == ("J1 does 5 of its 6 mini-batches",)


def test_rounding_of_work_is_forgiven_and_no_more() -> None:
    one = cases.instance([cases.job(3, minibatch_s=1 / 3)], slots=4)
    rows = [(0, 1, 1, 0, 0, [(0, 1, 1)])]
    assert not check(rows, view=zhou.view(one)).violations
    longer = cases.instance([cases.job(3, minibatch_s=(1 + 1e-7) / 3)], slots=4)
    assert check(rows, view=zhou.view(longer)).violations


def test_thirds_of_a_server_fit_three_times() -> None:
    third = cases.worker(gpus=0, cpus=1.1, bandwidth_gbps=0.1)
    jobs = [cases.job(1) for _ in range(3)]
    view = zhou.view(cases.instance(jobs, [cases.servers(cpus=3.3)], [third]))
    rows = [(j, 1, 1, 0, -1, [(0, 1, 0)]) for j in range(3)]
    assert not check(rows, "ra.completion", view).violations
    assert check([*rows[:2], (2, 1, 1, 0, -1, [(0, 1, 0)])], "ra.completion", zhou.view(
        cases.instance(jobs, [cases.servers(cpus=3.29)], [third]))).violations  # fmt: skip


def test_very_late_and_long_runs_take_no_memory() -> None:
    tracemalloc.start()
    late, long = check(changed(0, start=2**39)), check(changed(0, slots=2**39))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert any("all servers idle" in line for line in late.violations)
    assert not long.violations
    assert long.objective == 2 * (2**39 + 1) + 3 + 25
    assert most < 2_000_000
    huge = changed(0, at=[(0, 2**39, 2**39)])
    assert any("GPU of g0.0 given out" in line for line in check(huge).violations)


# interruptions ------------------------------------------------------------------------------------

HALVES: list[Row] = [*GOOD[1:], (0, 1, 1, 1, 0, [(0, 1, 1)]), (0, 4, 4, 0, 1, [(0, 1, 1)])]
"""A schedule that interrupts J1: a run on the large worker (2 mini-batches), then one on a small worker (4)."""


def test_runs_of_an_interrupted_job_add_up() -> None:
    verdict = check(HALVES, "ps.preemptive")
    assert not verdict.violations
    assert verdict.objective == 2 * 8 + 3 + 5 * 5
    assert verdict.metrics["max_completion_slots"] == 7
    assert any("J1: 2 runs" in line for line in check(HALVES).violations)
    short = changed(3, HALVES, slots=3)
    assert check(short, "ps.preemptive").violations == ("J1 does 5 of its 6 mini-batches",)


def test_runs_of_one_job_do_not_overlap() -> None:
    twice = [*HALVES[:3], (0, 1, 4, 0, 1, [(2, 1, 1)])]
    lines = check(twice, "ps.preemptive").violations
    assert any("J1 from slot 1: its previous run ends with slot 1" in line for line in lines)
    early = changed(3, HALVES, start=1)
    assert check(early, "ps.preemptive").violations


def test_workers_of_interrupted_jobs_are_averaged_over_time() -> None:
    two = [(0, 1, 1, 0, 0, [(0, 2, 1)]), (0, 5, 4, 0, 0, [(0, 1, 1)])]
    view = zhou.view(cases.instance([cases.job(2, 3)]))
    verdict = check(two, "ps.preemptive", view)
    assert not verdict.violations
    assert verdict.metrics["workers_mean"] == pytest.approx((2 + 4) / 5)
    assert verdict.metrics["gpu_utilisation"] == pytest.approx((2 + 4) / (2 * 8))


# windows ------------------------------------------------------------------------------------------

WAITING: list[Row] = [
    (1, 4, 2, 0, 1, [(1, 2, 1), (2, 1, 0)]),
    (0, 8, 3, 1, 0, [(0, 1, 1)]),
    (2, 12, 2, 0, 0, [(1, 1, 1)]),
]
WINDOWS = [(4, 4, 1, 4), (8, 16, 2, 8)]
"""Windows of two batches as (start, slots, rounds, τ): a round of 4 slots from slot 4, two of 8 from slot 8."""


def test_windows_of_batches_are_measured() -> None:
    verdict = check(WAITING, windows=WINDOWS)
    assert not verdict.violations
    assert verdict.metrics["windows"] == 2
    assert verdict.metrics["realised_alpha"] == verdict.quantities["realised_alpha"] == 2
    assert "windows" not in check(GOOD).metrics


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([(4, 4, 1, 4)], "its run, up to slot 10, is not within one window"),
        ([(8, 8, 1, 8)], "J2 from slot 4: its run, up to slot 5, is not within one window"),
        ([(4, 4, 1, 4), (7, 16, 2, 8)], "window 1: starts in slot 7, the previous ends before slot 8"),
        ([(4, 8, 2, 4), (8, 16, 2, 8)], "window 1: starts in slot 8, the previous ends before slot 12"),
        ([(4, 4, 1, 4), (8, 16, 2, 6)], "window 1: from slot 8, τ = 6 is not a power of two above 4 and at most 8"),
        ([(4, 4, 1, 4), (8, 16, 2, 16)], "window 1: from slot 8, τ = 16 is not a power of two above 4 and at most 8"),
        ([(4, 4, 1, 4), (8, 16, 4, 4)], "window 1: from slot 8, τ = 4 is not a power of two above 4 and at most 8"),
        ([(5, 3, 1, 3), (8, 16, 2, 8)], "window 0: from slot 5, τ = 3 is not a power of two above 0 and at most 5"),
        ([(4, 4, 1, 4), (8, 16, 3, 8)], "window 1: 16 slots from slot 8 are not α rounds of 8, of which 3"),
        ([(4, 4, 1, 4), (8, 32, 2, 8)], "window 1: 32 slots from slot 8 are not α rounds of 8, of which 2"),
        ([(4, 2, 2, 1), (8, 16, 2, 8)], "J2 from slot 4: its run, up to slot 5, is not within one of the rounds of 1"),
        ([(4, 4, 1, 4), (8, 16, 0, 8)], "window_rounds 0: they go from 1"),
        ([(0, 4, 1, 4), (8, 16, 2, 8)], "window_start 0: they go from 1"),
        ([(4, 4, 1, 4), (8, 0, 2, 8)], "window_slots 0: they go from 1"),
        ([(4, 4, 1, 0), (8, 16, 2, 8)], "window_tau 0: they go from 1"),
    ],
)
def test_windows_follow_one_another(windows: Any, message: str) -> None:
    violations = check(WAITING, windows=windows).violations
    assert any(message in line for line in violations), violations


def test_windows_may_end_when_their_last_round_is_done_and_be_longer_than_their_rounds() -> None:
    assert not check(WAITING, windows=[(4, 2, 1, 4), (8, 6, 1, 8)]).violations
    late = [(j, start + 24 * (start >= 8), *rest) for j, start, *rest in WAITING]
    assert not check(late, windows=[(4, 4, 1, 4), (32, 32, 2, 8)]).violations
    # The window of τ = 8 starts at the end of the one before, in slot 10.
    rows = [WAITING[0], (0, 7, 3, 1, 0, [(0, 1, 1)]), (2, 10, 2, 0, 0, [(1, 1, 1)])]
    assert not check(
        [rows[0], WAITING[1], (2, 12, 2, 0, 0, [(1, 1, 1)])], windows=[(4, 7, 2, 4), (12, 2, 1, 8)]
    ).violations


def test_a_batch_holds_only_jobs_that_had_arrived_by_its_tau() -> None:
    """A job in a batch that was made before its arrival is refused, although the batch's window begins later.

    J3 arrives in slot 3, and the batch is that of τ = 2.
    """
    rows = [*WAITING[:2], (2, 4, 2, 0, 0, [(1, 1, 1)])]
    violations = check(rows, windows=[(4, 4, 2, 2), (8, 16, 2, 8)]).violations
    assert "J3 from slot 4: arrives in slot 3, after its batch was made at τ = 2" in violations


def test_windows_belong_to_completion_times() -> None:
    row = [(2, 1, 2, 0, 0, [(1, 1, 1)])]
    assert not check(row, "ps.weight").violations
    assert any("windows" in line for line in check(row, "ps.weight", windows=[(1, 2, 2, 1)]).violations)


# until τ ------------------------------------------------------------------------------------------


def test_weight_of_what_completes_by_the_deadline() -> None:
    assert VIEW.architectures["ps"].deadline == 4
    rows: list[Row] = [changed(2, start=1)[2], GOOD[0]]  # arrivals do not count, J1 completes at 4
    verdict = check(rows, "ps.weight")
    assert not verdict.violations
    assert verdict.objective == 7
    assert verdict.metrics["completed"] == 2
    assert verdict.metrics["mean_completion_slots"] == pytest.approx((2 + 3) / 2)
    assert verdict.metrics["gpu_utilisation"] == pytest.approx((2 + 6) / (5 * 3))
    late = [rows[0], changed(0, start=2)[0]]
    assert check(late, "ps.weight").violations == ("J1 from slot 2: completes at 5, after τ = 4",)
    assert any("J3: 2 runs" in x for x in check([rows[0], changed(2, start=1)[2]], "ps.weight").violations)


def test_nothing_is_a_decision_of_the_weight_only() -> None:
    verdict = check([], "ps.weight")
    assert verdict.objective == 0
    assert not verdict.violations
    assert verdict.metrics == {"completed": 0}
    for problem in ("ps.completion", "ra.preemptive", "ps.cost"):
        assert check([], problem).violations


def loaded(used: Any, **more: Any) -> Zhou:
    """Return the checker's data of the instance with loads `used` on its servers, ``(R,)`` or ``(h, R, τ − 1)``."""
    facts = zhou_of(cases.instance(JOBS, GROUPS, WORKERS, TYPES, **more).plain)
    of, given = facts.architectures["ps"], np.asarray(used, float)
    loads = np.broadcast_to(given[None, :, None] if given.ndim == 1 else given, (*of.capacity.shape, of.deadline - 1))
    vars(of)["loads"] = lambda servers, first, end: loads[servers, :, first - 1 : end - 1]
    return facts


def priced(rows: list[Row], facts: Zhou) -> Verdict:
    return VERIFIERS.get("zhou").check(facts, schedule(rows), "zhou.ps.cost", ())


def test_the_cost_of_the_heaviest_job_is_that_of_its_slots_and_servers() -> None:
    used = np.zeros((3, 4, 3))
    used[0, :, 1] = (1.0, 0.0, 4.0, 4.0)  # a half of the GPUs, a quarter of the memory, a half of the bandwidth
    used[0, :, 2] = (0.0, 2.0, 0.0, 0.0)  # a half of the CPUs
    used[1:] = 1.0
    facts = loaded(used, unit_worth=2.0)
    base = 2 * 8 * 3 * 4 * 2 + 1
    assert facts.architectures["ps"].base == base
    half, quarter = base**0.5 - 1, base**0.25 - 1
    # A worker and a PS: 1 of 2 GPUs, 2 of 4 CPUs, 2 of 16 GB and 2 of 8 Gbit/s in slots 2 and 3.
    first, second = half + quarter * 2 + half * 2, half * 2
    found = priced([(2, 2, 2, 0, 0, [(0, 1, 1)])], facts)
    assert not found.violations
    assert found.objective == pytest.approx(first + second, rel=1e-9)
    assert found.metrics == {"start": 2, "slots": 2, "workers": 1, "servers": 1}
    assert priced([(2, 1, 2, 0, 0, [(0, 1, 1)])], facts).objective == pytest.approx(first)


@pytest.mark.parametrize(
    ("used", "line"),
    [
        ((0.0, 0.0, 0.0, 6.0), None),
        ((0.0, 0.0, 0.0, 6.1), "2 bandwidth of g0.0 taken, 1.9 available next to the loads"),
        ((2.0, 0.0, 0.0, 0.0), "1 GPU of g0.0 taken, 0 available next to the loads"),
        ((0.0, 3.0, 0.0, 0.0), "2 CPU of g0.0 taken, 1 available next to the loads"),
        ((0.0, 0.0, 15.0, 0.0), "2 memory of g0.0 taken, 1 available next to the loads"),
    ],
)
def test_the_loads_leave_less_room(used: Any, line: str | None) -> None:
    found = priced([(2, 1, 2, 0, 0, [(0, 1, 1)])], loaded(used))
    assert found.violations == (() if line is None else (line,))


def test_costs_agree_with_the_cheapest_run_of_a_ledger() -> None:
    view = zhou.view(instances.load("gen/20jobs"))
    for name, of in view.architectures.items():
        ledger = Ledger(of.machines, of.options, of.deadline - 1)
        ledger.set_free(of.machines.capacity[:, :, None] - of.loads)
        ledger.post(of.prices(of.loads))
        found = ledger.find(of.priced_job, 0)
        assert found is not None
        entries = [(h, int(found.workers[h]), int(found.ps[h])) for h in np.flatnonzero(found.workers + found.ps)]
        rows = [(of.priced_job, found.start + 1, found.slots, found.worker_type, found.ps_type, entries)]
        verdict = check(rows, f"{name}.cost", view)
        assert not verdict.violations
        assert verdict.objective == pytest.approx(found.cost, rel=1e-9)


def test_only_the_heaviest_job_is_priced() -> None:
    assert any("heaviest job runs, J3" in x for x in check(GOOD[:1], "ps.cost").violations)
    assert check([*GOOD[:1], changed(2, start=1)[2]], "ps.cost").violations
    assert any("after τ = 4" in x for x in check([GOOD[2]], "ps.cost").violations)


# mutilated decisions ------------------------------------------------------------------------------

FIELDS = [f for f in ZhouSchedule.__dataclass_fields__ if not f.startswith("window")]
PROBLEMS = [f"{name}.{kind}" for name in ("ps", "ra") for kind in ("completion", "preemptive", "weight", "cost")]


def valid(problem: str) -> ZhouSchedule:
    """Return a valid decision of a problem."""
    rows = GOOD if problem.startswith("ps") else RING
    if problem.endswith(("weight", "cost")):
        return schedule([changed(2, rows, start=2, at=[(0, 1, int(problem.startswith("ps")))])[2]])
    return schedule(rows)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_decisions_to_mutilate_are_valid(problem: str) -> None:
    assert not check(valid(problem), problem).violations


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("change", CHANGES)
def test_mutilated_arrays_are_refused_and_never_raise(field: str, change: Any) -> None:
    for problem in PROBLEMS:
        good = valid(problem)
        assert check(replace(good, **{field: change(getattr(good, field))}), problem).violations, problem


@pytest.mark.parametrize("field", ["window_start", "window_slots", "window_rounds", "window_tau"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("windows", [WINDOWS, [(4, 12, 3, 4)]])
def test_mutilated_windows_are_refused_and_never_raise(field: str, change: Any, windows: Any) -> None:
    good = schedule(WAITING, windows)
    assert not check(good).violations
    assert check(replace(good, **{field: change(getattr(good, field))})).violations


@pytest.mark.parametrize("name", ["ps", "ra"])
def test_mutilated_schedules_of_a_generated_instance_are_refused(name: str) -> None:
    """A schedule in which one array is changed is refused, for each array and each change."""
    view = zhou.view(instances.load("gen/20jobs"))
    good = zhou_schedule(view, name)
    assert not check(good, f"{name}.completion", view).violations
    for field in FIELDS:
        for change in CHANGES[:4]:
            wrong = replace(good, **{field: change(getattr(good, field))})
            assert check(wrong, f"{name}.completion", view).violations, (field, change)
            assert check(wrong, f"{name}.preemptive", view).violations, (field, change)


# against plain readings ---------------------------------------------------------------------------


@pytest.mark.parametrize("ref", ["gen/20jobs", "paper/walkthrough"])
def test_rates_are_those_of_the_view(ref: str) -> None:
    view = zhou.view(instances.load(ref))
    read = zhou_of(view.instance.plain)
    for name, of in view.architectures.items():
        o = of.options
        for i in range(0, len(o.slots), max(1, len(o.slots) // 500)):
            j, m, p, number, together = int(o.job[i]), *(int(x[i]) for x in (o.worker_type, o.ps_type, o.workers)), True
            for together in (True, False):
                own = read.architectures[name].per_batch(j, Layout(m, p, together), number)
                assert own == pytest.approx(of.rates.slots(j, m, p, number, together), rel=1e-12)


@st.composite
def schedules_of(draw: st.DrawFn) -> tuple[ZhouView, str, list[Row]]:
    """Draw an instance and a schedule of it, which is valid but for up to two changed numbers."""
    view = zhou.view(draw(cases.tiny()))
    name = draw(st.sampled_from(("ps", "ra")))
    rows: list[Row] = []
    if view.architectures[name].reason is None:
        at_once = draw(st.booleans())
        good = zhou_schedule(view, name, draw(st.permutations(range(view.size))), at_once=at_once)
        rows = rows_of(good)
    for _ in range(draw(st.integers(0, 2)) if rows else 0):
        rows = draw(damaged(rows))
    return view, name, rows


@st.composite
def damaged(draw: st.DrawFn, rows: list[Row]) -> list[Row]:
    """Draw rows of which one has a changed number, is split in two, or is left out."""
    i = draw(st.integers(0, len(rows) - 1))
    job, start, slots, m, p, at = rows[i]
    step = draw(st.sampled_from((-1, 1)))
    e = draw(st.integers(0, len(at) - 1)) if at else 0
    moved = [(h, w + step, s) if k == e else (h, w, s) for k, (h, w, s) in enumerate(at)]
    more = [(h, w, s + step) if k == e else (h, w, s) for k, (h, w, s) in enumerate(at)]
    elsewhere = [((h + 1) if k == e else h, w, s) for k, (h, w, s) in enumerate(at)]
    new: list[list[Row]] = [
        [(job, start + step, slots, m, p, at)],
        [(job, start, slots + step, m, p, at)],
        [(job, start, slots, m, p, moved)],
        [(job, start, slots, m, p, more)],
        [(job, start, slots, m, p, elsewhere)],
        [(job, start, slots, m + step, p, at)],
        [(job, start, slots, m, p + step, at)],
        [(job, start, 1, m, p, at), (job, start + 1, slots - 1, m, p, at)],
        [(job, start, slots, m, p, at)] * 2,
    ]
    return [*rows[:i], *draw(st.sampled_from(new)), *rows[i + 1 :]]


@given(schedules_of(), st.sampled_from(("completion", "preemptive", "weight")))
@settings(max_examples=150)
def test_the_checker_agrees_with_a_plain_reading_of_the_rules(
    drawn: tuple[ZhouView, str, list[Row]], kind: str
) -> None:
    view, name, rows = drawn
    verdict = check(rows, f"{name}.{kind}", view)
    assert bool(verdict.violations) == (not plainly_valid(view, name, rows, kind)), verdict.violations


def plainly_valid(view: ZhouView, name: str, rows: list[Row], kind: str) -> bool:
    """Return whether rows obey the rules, checked run by run and slot by slot."""
    instance = view.instance
    hosts = [group for group in instance.cluster.servers for _ in range(group.count)]
    used: defaultdict[tuple[int, int], np.ndarray] = defaultdict(lambda: np.zeros(4))
    busy: Counter[tuple[int, int]] = Counter()
    done: defaultdict[int, float] = defaultdict(float)
    runs: Counter[int] = Counter()
    for job, start, slots, m, p, at in rows:
        fine = start >= 1 and slots >= 1 and 0 <= m < len(instance.worker_types)
        fine &= p == -1 if name == "ra" else 0 <= p < len(instance.ps_types)
        fine &= all(0 <= h < len(hosts) and w >= 0 and s >= 0 and w + s > 0 for h, w, s in at)
        if not fine or len({h for h, _, _ in at}) < len(at):
            return False
        if not plainly_placed(instance, name, (job, start, slots, m, p, at)):
            return False
        runs[job] += 1
        if kind == "weight":
            fine &= start + slots <= view.architectures[name].deadline
        else:
            fine &= start >= view.arrival[job]
        for t in range(start, start + slots):
            busy[job, t] += 1
            for h, w, s in at:
                used[h, t] += w * takes(instance.worker_types[m]) + (s * takes(instance.ps_types[p]) if s else 0.0)
        done[job] += slots * pace(instance, name, job, m, p, at)
        if not fine:
            return False
    whole = all(done[j] >= instance.jobs[j].iterations * (1 - 1e-9) for j in done)
    fits = all((use <= takes(hosts[h]) * (1 + 1e-9)).all() for (h, _), use in used.items())
    once = max(busy.values(), default=0) <= 1 if kind == "preemptive" else max(runs.values(), default=0) <= 1
    return bool(whole and fits and once and (kind == "weight" or len(runs) == view.size))


def takes(part: Any) -> np.ndarray:
    return np.array([part.gpus, part.cpus, part.memory_gb, part.bandwidth_gbps], float)


def plainly_placed(instance: Instance, name: str, row: Row) -> bool:
    """Return whether the workers and PSs of a run are on servers that can hold them, enough and not too many."""
    job, _, _, m, p, at = row
    kind = instance.worker_types[m]
    hosts = [group for group in instance.cluster.servers for _ in range(group.count)]
    total = sum(w for _, w, _ in at)
    if not 1 <= total <= instance.jobs[job].chunks:
        return False
    if any(w and kind.gpu_type not in (None, hosts[h].gpu_type) for h, w, _ in at):
        return False
    if name == "ra":
        return not any(s for _, _, s in at)
    carry = instance.ps_types[p].bandwidth_gbps
    return any(s for _, _, s in at) and all(
        (total - w) * kind.bandwidth_gbps <= s * carry * (1 + 1e-9) for _, w, s in at if s
    )


def pace(instance: Instance, name: str, job: int, m: int, p: int, at: list[tuple[int, int, int]]) -> float:
    """Return the mini-batches per slot of a run, by (1) or (14)."""
    profile = instance.jobs[job].distributed
    assert profile is not None
    kind = instance.worker_types[m]
    if kind.name not in profile.minibatch_ms:
        return -math.inf
    number = sum(w for _, w, _ in at)
    transfer = 0.0 if len(at) == 1 else 2 * profile.gradient_mb * 8 / (kind.bandwidth_gbps * 1000)
    if name == "ps":
        others = profile.update_ms[instance.ps_types[p].name] / 1000 + transfer
    else:
        update = min(profile.update_ms.values()) if profile.ring_update_ms is None else profile.ring_update_ms
        others = (update / 1000 + transfer) * (number - 1) / number
    return number * instance.horizon.slot_s / (profile.minibatch_ms[kind.name] / 1000 + others)  # type: ignore[union-attr]
