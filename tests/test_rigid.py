"""Gangs of fixed duration: rules, checker, bounds and search, compared with an enumeration of all active schedules."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import orders
import pytest
from certified import checker, plain, signed
from conftest import THOROUGH, examples

from schedgap.harness.check import differ, judge
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.heuristics import HEURISTICS
from schedgap.heuristics.rigid import conservative
from schedgap.instances.canonical import to_json
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import OBJECTIVES, RigidSchedule, RigidView, kernels, starts_of
from schedgap.instances.schema import Cluster, GpuType, History, Instance, Job, ServerGroup
from schedgap.models import MODELS
from schedgap.models.engine.solve import Solution, SolveOptions, build, solve
from schedgap.models.provers.registry import prove
from schedgap.models.rigid.bounds import shares

Line = tuple[int, int, int]
"""A job as (release, duration, GPUs)."""


def instance(lines: list[Line], room: int = 4, others: list[int] | None = None, **history: list[Any]) -> Instance:
    """Return an instance of jobs on one pool; `others` are their durations on another pool of 3 GPUs, -1 for none."""
    seconds = others or [-1] * len(lines)
    jobs = [
        Job(
            id=f"J{j}",
            submit_s=float(release),
            gpus=gpus,
            epochs=max(1, gpus * duration),
            rates={"G": 1.0},
            weight=float(1 + j % 3),
            duration_s=float(duration),
            history=History(
                gpu_type="G",
                durations_s={"H": float(seconds[j])} if seconds[j] >= 0 else {},
                **{name: tuple(values[j]) for name, values in history.items()},
            ),
        )
        for j, (release, duration, gpus) in enumerate(lines)
    ]
    there = {"G": (1, room)} | ({"H": (3, 1)} if others else {})
    groups = tuple(ServerGroup(name=f"{k}s", count=n, gpu_type=k, gpus=gpus) for k, (n, gpus) in there.items())
    return Instance(
        name="t", cluster=Cluster(gpu_types=tuple(GpuType(name=k) for k in there), servers=groups), jobs=tuple(jobs)
    )


def view(lines: list[Line], room: int = 4, others: list[int] | None = None, **history: list[Any]) -> RigidView:
    found: RigidView = PAPERS.get("rigid").view(instance(lines, room, others, **history))
    return found


def check(seen: RigidView, schedule: RigidSchedule, problem: str) -> Any:
    return judge(seen.instance, schedule, problem, ())


def placed(seen: RigidView, order: tuple[int, ...]) -> RigidSchedule:
    """Place jobs in this order, each at its earliest start, second by second.

    For a regular objective, one of all orders gives an optimal schedule.
    """
    end = int(seen.release.max() + seen.duration.sum()) + 1
    room, starts = np.tile(seen.capacity[:, None], end + 1), np.zeros(seen.size, np.int64)
    for j in order:
        free, t = room[seen.pool[j]], int(seen.release[j])
        while (free[t : t + seen.duration[j]] < seen.gpus[j]).any():
            t += 1
        starts[j] = t
        free[t : t + seen.duration[j]] -= seen.gpus[j]
    return starts_of(seen, starts)


def best(seen: RigidView, objective: str) -> float:
    choices = itertools.product(*(np.flatnonzero(lasts >= 0).tolist() for lasts in seen.lasts))
    settled = [seen.within(np.array(pool)) for pool in choices]
    orders = list(itertools.permutations(range(seen.size)))
    verdicts = [check(seen, placed(one, order), f"rigid.{objective}") for one in settled for order in orders]
    assert not any(verdict.violations for verdict in verdicts)
    return float(min(verdict.objective for verdict in verdicts))


def random_lines(seed: int, most: int = 5) -> list[Line]:
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(0, 12)), int(rng.integers(0 if seed % 4 == 0 else 1, 15)), int(rng.integers(1, 5)))
        for _ in range(rng.integers(2, most + 1))
    ]


def ran(seen: RigidView, method: str) -> RigidSchedule:
    spec = HEURISTICS.get(method)
    found: RigidSchedule = spec.decide(seen.instance)
    verdict = check(seen, found, spec.problem)
    assert not verdict.violations, (method, verdict.violations)
    return found


@pytest.mark.parametrize("seed", range(examples(3)))
def test_bounds_are_below_the_optimum_and_the_search_finds_it(seed: int) -> None:
    seen = view(random_lines(seed))
    for objective in ("flow", "slowdown", "weighted", "makespan"):
        setting = "" if objective == "flow" else f"?objective={objective}"
        least = best(seen, objective)
        for name in ("rigid.bound", "rigid.intervals", "rigid.starts"):
            if objective == "makespan" and name != "rigid.bound":
                continue
            bound = MODELS.get(f"{name}{setting}").run(seen, SolveOptions()).solution.bound
            assert 0 <= bound <= least * (1 + 1e-9), (name, objective)
        outcome = MODELS.get(f"rigid.search{setting}").run(seen, SolveOptions())
        verdict = check(seen, outcome.decision, f"rigid.{objective}")
        assert not verdict.violations
        assert verdict.objective == pytest.approx(outcome.solution.objective)
        assert verdict.objective == pytest.approx(least)


def with_moves(seed: int, most: int) -> RigidView:
    """Return a view of random jobs of which most may also run in another pool, for longer or shorter."""
    lines = random_lines(seed, most)
    return view(lines, others=np.random.default_rng(seed).integers(-3, 12, len(lines)).clip(-1).tolist())


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_where_jobs_may_choose_among_pools(seed: int) -> None:
    seen = with_moves(seed, 4)
    text = to_json(seen.instance)
    for objective in ("flow", "slowdown", "weighted", "makespan"):
        setting, least = "" if objective == "flow" else f"?objective={objective}", best(seen, objective)
        for name in ("rigid.bound", "rigid.intervals", "rigid.starts")[: 3 if objective != "makespan" else 1]:
            found = MethodTask(*sent(seen.instance), f"{name}{setting}", limits=Limits(nodes=1)).run()
            assert found.row.own_bound is not None
            assert 0 <= found.row.own_bound <= least * (1 + 1e-9), (name, objective)
            assert not found.row.unproved
            proved = float(checker.check(plain(found.certificate), json.loads(text)))
            assert proved == pytest.approx(found.row.own_bound)
        outcome = MODELS.get(f"rigid.search{setting}").run(seen, SolveOptions())
        verdict = check(seen, outcome.decision, f"rigid.{objective}")
        assert not verdict.violations
        assert verdict.objective == pytest.approx(outcome.solution.objective)
        assert verdict.objective >= least * (1 - 1e-9)
        with pytest.raises(NotApplicableError, match="may choose among pools"):
            MODELS.get("rigid.exact").run(seen)


def test_jobs_that_may_choose_are_settled_where_they_end_first() -> None:
    seen = view([(0, 10, 4), (1, 10, 2), (2, 8, 4)], others=[-1, 12, 3])
    assert seen.lasts.tolist() == [[10, -1], [10, 12], [8, -1]]  # a gang of 4 does not fit on 3 GPUs
    assert seen.settled.pool.tolist() == [0, 1, 0]
    assert (seen.relaxed.capacity.tolist(), seen.relaxed.duration.tolist()) == ([7], [10, 10, 8])
    found = ran(seen, "rigid.fcfs")
    assert (starts(found), found.pool.tolist()) == ([0, 1, 10], [0, 1, 0])
    away = RigidSchedule(np.arange(3), np.array([0, 1, 13]), np.array([10, 13, 21]), np.array([0, 1, 1]))
    (line,) = (line for line in check(seen, away, "rigid.flow").violations if "J2" in line)
    assert line == "job J2 runs in pool H, where it cannot"
    split = RigidSchedule(
        np.array([0, 1, 1, 2]), np.array([0, 1, 3, 13]), np.array([10, 3, 13, 21]), np.array([0, 1, 0, 0])
    )
    assert "job J1 runs in several pools" in check(seen, split, "rigid.flow.preemptive").violations


def test_times_that_ticks_cannot_count_are_refused() -> None:
    with pytest.raises(NotApplicableError, match=r"1e\+300 s exceeds"):
        PAPERS.get("rigid").view(instance([(0, 9, 1)], others=[10**300]))


def test_servers_that_a_log_names_are_checked_one_by_one() -> None:
    lines: list[Line] = [(0, 10, 1), (0, 10, 2), (5, 5, 1)]
    ran = [[(0, 10)], [(0, 10)], [(5, 10)]]
    fine = view(lines, others=[-1] * 3, runs=ran, hosts=[[{"Gs": 1}], [{"Gs": 2}], [{"elsewhere": 1}]])
    assert fine.executed is not None
    assert not check(fine, fine.executed, "rigid.flow").violations
    executed = fine.executed
    many = replace(executed, server=np.array([1, 1]), gpus=np.array([1, 3]), run=np.array([0, 1]))
    assert check(fine, replace(many, pool=np.array([1, 1, 1])), "rigid.flow").violations[-3:] == (
        "job J1 holds 3 GPUs of servers, its gang has 2",
        "server Hs.0: 4 GPUs in use at 0, it has 1",
        "pool H: 4 GPUs in use at 5, it has 3",
    )
    assert check(fine, many, "rigid.flow").violations[0] == "job J0: server Hs.0 is not in pool G (and 1 more)"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_program_and_the_enumeration_find_the_optimum(seed: int) -> None:
    seen = view(random_lines(seed, 4))
    for objective in ("flow", "makespan"):
        spec = MODELS.get("rigid.exact" if objective == "flow" else f"rigid.exact?objective={objective}")
        outcome, program = spec.run(seen, SolveOptions()), solve(build(spec.build, seen))
        assert (outcome.solution.status, program.status) == ("optimal", "optimal")
        assert outcome.solution.objective == pytest.approx(best(seen, objective))
        assert program.objective == pytest.approx(best(seen, objective))
        assert check(seen, outcome.decision, f"rigid.{objective}").objective == pytest.approx(best(seen, objective))


def test_the_enumeration_stops_at_a_limit_with_a_bound_that_holds() -> None:
    seen = view(random_lines(7, 5))
    outcome = MODELS.get("rigid.exact").run(seen, SolveOptions(nodes=1))
    assert outcome.solution.status == "time limit with incumbent"
    assert outcome.solution.bound <= best(seen, "flow") <= outcome.solution.objective
    assert not check(seen, outcome.decision, "rigid.flow").violations


def test_jobs_of_no_duration_hold_no_gpus() -> None:
    seen = view([(0, 100, 1), (50, 0, 1)], room=1)
    for method in ("rigid.exact", "rigid.search"):
        outcome = MODELS.get(method).run(seen, SolveOptions())
        assert check(seen, outcome.decision, "rigid.flow").objective == pytest.approx(outcome.solution.objective)
        assert outcome.solution.objective == pytest.approx(50 / 3600)
    program = solve(build(MODELS.get("rigid.exact").build, seen))
    assert program.objective == pytest.approx(50 / 3600)


def bounds_and_optima(seen: RigidView, objective: str) -> Iterator[tuple[str, Solution]]:
    """Run all models of an objective, check decisions and certificates, and yield the solutions, bounds as proved."""
    setting, data = "" if objective == "flow" else f"?objective={objective}", json.loads(to_json(seen.instance))
    count = {"idle": 1, "makespan": 3}.get(objective, 5)
    for name in ("bound", "exact", "search", "intervals", "starts")[:count]:
        spec = MODELS.get(f"rigid.{name}{setting}")
        outcome = spec.run(seen, SolveOptions(time_limit_s=2))
        if outcome.decision is not None:
            verdict = check(seen, outcome.decision, spec.problem)
            assert not verdict.violations
            assert not differ(verdict.objective, outcome.solution.objective), spec.id
            idle = orders.idle(seen, outcome.decision.start[np.argsort(outcome.decision.job)].tolist())
            assert verdict.quantities["idle"] == pytest.approx(idle / seen.ticks_of_hour, rel=1e-12)
        proof = plain(prove(spec.problem, seen, outcome, SolveOptions())) | {"problem": spec.problem}
        proved = checker.certified(proof, data)
        assert proved >= outcome.solution.bound * (1 - 1e-9) or name in ("exact", "search"), spec.id
        yield spec.id, replace(outcome.solution, bound=max(proved, outcome.solution.bound))


SEEDS = range(int(os.environ.get("RIGID_LOGS", "300" if THOROUGH else "4")))
"""Random logs; RIGID_LOGS=2000 takes about an hour."""


@pytest.mark.parametrize("seed", SEEDS)
def test_optima_and_bounds_beside_all_orders(seed: int) -> None:
    """Optima are those of all orders, and bounds are not above them: for ties, tiny durations, far weights, pools."""
    seen = PAPERS.get("rigid").view(orders.instance(seed))
    for objective in OBJECTIVES:
        least = orders.best(seen, objective)
        for method, solution in bounds_and_optima(seen, objective):
            assert 0 <= solution.bound <= least * (1 + 1e-12), method
            if method.startswith("rigid.exact"):
                assert solution.status == "optimal"
                assert solution.objective == pytest.approx(least, rel=1e-12, abs=0), method
            elif solution.objective is not None:
                assert solution.objective >= least * (1 - 1e-12), method


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tick_s", [1e-6, 60.0])
def test_bounds_hold_for_schedules_that_interrupt_jobs(seed: int, tick_s: float) -> None:
    rng = np.random.default_rng(seed)
    lines = [tuple(map(int, rng.integers((0, 0, 1), (4, 4, 4)))) for _ in range(rng.integers(1, 5))]
    one = instance(lines, room=3)
    short = ({"submit_s": r * tick_s, "duration_s": d * tick_s} for r, d, _ in lines)
    jobs = tuple(job.model_copy(update=times) for job, times in zip(one.jobs, short, strict=True))
    seen = PAPERS.get("rigid").view(one.model_copy(update={"jobs": jobs}))
    for objective in ("flow", "slowdown", "weighted", "makespan"):
        least = orders.interrupted(seen, objective, round(tick_s / seen.tick_s))
        for method, solution in bounds_and_optima(seen, objective):
            if MODELS.get(method).problem.endswith(".preemptive"):
                assert 0 <= solution.bound <= least * (1 + 1e-12), method


@pytest.mark.parametrize("micros", [(1,), (1, 2), (0, 1, 3), (5, 1)])
def test_bounds_hold_for_jobs_of_microseconds(micros: tuple[int, ...]) -> None:
    """Certified bounds do not exceed the optimum for jobs of microseconds, which a fluid counts as 3.6 at least."""
    one = instance([(0, 1, 1)] * len(micros), room=1)
    short = (job.model_copy(update={"duration_s": n * 1e-6}) for job, n in zip(one.jobs, micros, strict=True))
    seen = PAPERS.get("rigid").view(one.model_copy(update={"jobs": tuple(short)}))
    text = to_json(seen.instance)
    for name in ("rigid.bound", "rigid.intervals", "rigid.starts"):
        found = MethodTask(*sent(seen.instance), name, limits=Limits(nodes=1)).run()
        proof = plain(found.certificate) | {"bound": best(seen, "flow") * (1 + 1e-6) + 1e-15}
        with pytest.raises(checker.RefusedError, match="only"):
            checker.check(signed(proof, json.loads(text)), json.loads(text))


@pytest.mark.parametrize("seed", range(20))
def test_every_rule_is_verified_and_above_the_bound(seed: int) -> None:
    seen = with_moves(seed, 30) if seed % 2 else view(random_lines(seed, 30))
    least = {o: MODELS.get(f"rigid.bound?objective={o}" if o != "flow" else "rigid.bound") for o in OBJECTIVES}
    bounds = {o: spec.run(seen, SolveOptions()).solution.bound for o, spec in least.items()}
    for spec in HEURISTICS:
        if spec.paper == "rigid" and spec.skip(seen) is None:
            verdict = check(seen, ran(seen, spec.id), f"{spec.problem}")
            for objective, bound in bounds.items():
                assert verdict.quantities[objective] >= bound * (1 - 1e-9), (spec.id, objective)


def starts(schedule: RigidSchedule) -> list[int]:
    return [int(start) for start in schedule.start[np.argsort(schedule.job, kind="stable")]]


@pytest.mark.parametrize("seed", range(examples(2)))
def test_starts_bound_no_less_than_a_fluid_and_no_schedule_with_interruptions(seed: int) -> None:
    seen = view(random_lines(seed, 30))
    text = to_json(seen.instance)
    fluid, starts = (
        MethodTask(*sent(seen.instance), name, limits=Limits(nodes=1)).run()
        for name in ("rigid.intervals", "rigid.starts")
    )
    assert starts.row.own_bound >= fluid.row.own_bound * (1 - 5e-3)
    forged = plain(starts.certificate) | {"problem": "rigid.flow.preemptive"}
    with pytest.raises(checker.RefusedError, match="more than a start"):
        checker.check(signed(forged, json.loads(text)), json.loads(text))


def test_a_long_job_is_not_cut_around_a_dear_moment() -> None:
    """The bound over starts sees that a long job runs without a pause, and is the optimum; the fluid bound is less.

    Two gangs each take the whole pool: the long one goes first.
    """
    seen = view([(0, 10, 4), (1, 8, 4)])
    bound = {name: MODELS.get(name).run(seen).solution.bound for name in ("rigid.intervals", "rigid.starts")}
    assert best(seen, "flow") == pytest.approx((10 + 17) / 2 / 3600)
    assert bound["rigid.intervals"] < bound["rigid.starts"] == pytest.approx((10 + 17) / 2 / 3600, rel=1e-3)


FOUR: list[Line] = [(0, 10, 3), (1, 10, 4), (2, 8, 1), (3, 12, 1)]
"""Jobs for backfilling: one of 3 GPUs runs, all 4 are wanted next; the third ends before that, the fourth would not."""


@pytest.mark.parametrize(
    ("method", "expected"),
    [("rigid.fcfs", [0, 10, 20, 20]), ("rigid.easy", [0, 10, 2, 20]), ("rigid.conservative", [0, 10, 2, 20])],
)
def test_backfilling_on_four_jobs(method: str, expected: list[int]) -> None:
    assert starts(ran(view(FOUR), method)) == expected


def listed(seen: RigidView, key: list[int]) -> list[int]:
    """Return the starts of jobs by list scheduling: in each second the jobs that fit start, by ascending key."""
    found, now = [-1] * seen.size, 0
    while min(found) < 0:
        held = [j for j in range(seen.size) if found[j] >= 0 and found[j] + seen.duration[j] > now]
        free = int(seen.capacity[0]) - sum(int(seen.gpus[j]) for j in held)
        for j in sorted(range(seen.size), key=lambda j: (key[j], seen.release[j], j)):
            if found[j] < 0 and seen.release[j] <= now and seen.gpus[j] <= free:
                found[j] = now
                free -= int(seen.gpus[j])
        now += 1
    return found


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 6, 7])
def test_lists_start_whoever_fits_first(seed: int) -> None:
    seen = view(random_lines(seed, 20))
    assert starts(ran(seen, "rigid.sjf")) == listed(seen, seen.duration.tolist())
    assert starts(ran(seen, "rigid.smallest_area")) == listed(seen, (seen.duration * seen.gpus).tolist())


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 6, 7, 9, 10])
def test_backfilling_by_true_times_equals_that_by_requests_that_are_true(seed: int) -> None:
    """Reservations made once and those made anew at each event agree, unless a job lasts for no time."""
    seen = view(random_lines(seed, 25))
    assert starts(ran(seen, "rigid.conservative")) == starts(conservative(seen, Any, estimates="requested"))


def test_the_shortest_left_interrupts_and_the_least_served_shares() -> None:
    seen = view([(0, 10, 4), (2, 3, 4)])
    found = ran(seen, "rigid.srtf")
    assert sorted(zip(found.job.tolist(), found.start.tolist(), found.end.tolist(), strict=True)) == [
        (0, 0, 2),
        (0, 5, 13),
        (1, 2, 5),
    ]
    served = ran(seen, f"rigid.tiresias?threshold_h={8 / 3600}")
    assert sorted(zip(served.job.tolist(), served.start.tolist(), served.end.tolist(), strict=True)) == [
        (0, 0, 2),
        (0, 4, 12),
        (1, 2, 4),
        (1, 12, 13),
    ]


BROKEN: list[tuple[list[Line], str, str]] = [
    ([(0, 0, 10), (1, 5, 15)], "rigid.flow", "8 GPUs in use at 5, it has 4"),
    ([(0, 0, 10), (1, 0, 10)], "rigid.flow", "before its release at 5"),
    ([(0, 0, 9), (1, 10, 20)], "rigid.flow", "J0 runs for 9 ticks instead of 10"),
    ([(0, 0, 10)], "rigid.flow", "job J1 does not run"),
    ([(0, 0, 4), (0, 4, 10), (1, 10, 20)], "rigid.flow", "it runs 2 times"),
    ([(0, 0, 5), (0, 4, 9), (1, 10, 20)], "rigid.flow.preemptive", "runs twice at 4"),
]


@pytest.mark.parametrize(("runs", "problem", "told"), BROKEN)
def test_the_checker_names_what_is_broken(runs: list[Line], problem: str, told: str) -> None:
    schedule = RigidSchedule(*np.array(runs).T, pool=np.zeros(len(runs), np.int64))
    verdict = check(view([(0, 10, 4), (5, 10, 4)]), schedule, problem)
    assert any(told in line for line in verdict.violations), verdict.violations


def test_objectives_by_hand() -> None:
    seen = view([(0, 10, 4), (5, 10, 2), (6, 4, 2)])
    verdict = check(seen, starts_of(seen, np.array([0, 10, 20])), "rigid.flow")
    flow = [10, 15, 18]
    assert verdict.objective == pytest.approx(sum(flow) / 3 / 3600)
    found = verdict.quantities
    assert found["slowdown"] == pytest.approx((1 + 1.5 + 1.8) / 3)
    assert found["weighted"] == pytest.approx((10 + 2 * 15 + 3 * 18) / 6 / 3600)
    assert found["makespan"] == pytest.approx(24 / 3600)
    assert found["idle"] == pytest.approx(2 * 10 / 3600)  # the last waits while two GPUs are free, from 10 to 20


def sums_to_one(parts: int) -> Iterator[list[int]]:
    for count in range(1, 5):
        for combination in itertools.combinations_with_replacement(range(1, parts + 1), count):
            if sum(combination) <= parts:
                yield list(combination)


@pytest.mark.parametrize("capacity", [4, 5, 7, 8, 12])
def test_shares_are_dual_feasible(capacity: int) -> None:
    sizes = np.arange(1, capacity + 1)
    for name, _, part in shares(sizes, capacity):
        for gangs in sums_to_one(capacity):
            assert sum(part[g - 1] for g in gangs) <= 1 + 1e-12, (name, gangs)


def backfilled(seen: RigidView, key: list[float]) -> list[int]:
    """Return the starts of EASY backfilling by keys: at each event, everybody who fits and delays no reservation."""
    start, gpus, lasts = [-1] * seen.size, seen.gpus.tolist(), seen.duration.tolist()
    for now in range(int(seen.release.max() + seen.duration.sum()) + 1):
        queue = [j for j in range(seen.size) if start[j] < 0 and seen.release[j] <= now]
        ends = sorted(
            (start[j] + lasts[j], gpus[j]) for j in range(seen.size) if start[j] >= 0 and start[j] + lasts[j] > now
        )
        free, reserved = int(seen.capacity[0]) - sum(held for _, held in ends), None
        for j in sorted(queue, key=lambda j: (key[j], j)):
            if reserved is None and gpus[j] > free:
                shadow = next(end for end, _ in ends if free + sum(h for e, h in ends if e <= end) >= gpus[j])
                reserved = shadow, free + sum(held for end, held in ends if end <= shadow) - gpus[j]
            elif reserved is None or (gpus[j] <= free and (now + lasts[j] <= reserved[0] or gpus[j] <= reserved[1])):
                start[j] = now
                free -= gpus[j]
                ends = sorted([*ends, (now + lasts[j], gpus[j])])
                if reserved is not None and now + lasts[j] > reserved[0]:
                    reserved = reserved[0], reserved[1] - gpus[j]
    return start


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 6, 7, 9, 10])
def test_backfilling_by_keys_delays_no_reservation(seed: int) -> None:
    seen = view(random_lines(seed, 20))
    (jobs, room), key = seen.by_pool()[0], (seen.duration * seen.gpus).astype(float)
    of = seen.release[jobs], seen.duration[jobs], seen.gpus[jobs], room, key[jobs]
    ranked = np.empty(seen.size)
    ranked[jobs] = np.lexsort((np.arange(seen.size), key[jobs])).argsort()  # ties by the order of release
    found = np.empty(seen.size, np.int64)
    found[jobs] = kernels().backfilled(*of, 10**6)
    assert found.tolist() == backfilled(seen, ranked.tolist())
    assert kernels().backfilled(*of, 1).size == 0


@pytest.mark.parametrize("seed", range(6))
def test_the_search_in_stretches_never_makes_a_schedule_worse(seed: int) -> None:
    from schedgap.models.rigid import _kernels, search

    seen, rng = view(random_lines(seed, 200)), np.random.default_rng(seed)
    goal = search.goal_of(seen, "weighted")
    for jobs, room in search.holding(seen):
        pool = search.PoolSearch(seen, jobs, room, goal, False, seed)
        start, before = pool.best.copy(), pool.cost
        for width in (2, 5, 60):
            _kernels.stretches(*pool.of, pool.goal[:2], start, (0, jobs.size, width), 10, rng)
            cost = kernels().cost(start, *pool.of[:2], *pool.goal)
            assert cost <= before * (1 + 1e-12)
            before = cost
        found = seen.release.copy()
        found[jobs] = start
        assert not check(seen, starts_of(seen, found), "rigid.weighted").violations
