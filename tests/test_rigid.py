"""Gangs of fixed duration: rules, checker, bounds and search beside an enumeration of all active schedules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from schedgap.harness.verify import VERIFIERS
from schedgap.heuristics import HEURISTICS
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import OBJECTIVES, Schedule, View, kernels, starts_of
from schedgap.instances.schema import Cluster, GpuType, History, Instance, Job, ServerGroup
from schedgap.models import MODELS
from schedgap.models.rigid.bounds import shares
from schedgap.models.solve import SolveOptions

Line = tuple[int, int, int]
"""Release, duration, GPUs."""


def instance(lines: list[Line], room: int = 4, runs: list[list[tuple[float, float]]] | None = None) -> Instance:
    jobs = [
        Job(
            id=f"J{j}",
            submit_s=float(release),
            gpus=gpus,
            epochs=max(1, gpus * duration),
            rates={"G": 1.0},
            weight=float(1 + j % 3),
            duration_s=float(duration),
            history=History(gpu_type="G", runs=tuple(runs[j]) if runs else ()),
        )
        for j, (release, duration, gpus) in enumerate(lines)
    ]
    server = ServerGroup(name="s", count=1, gpu_type="G", gpus=room)
    return Instance(name="t", cluster=Cluster(gpu_types=(GpuType(name="G"),), servers=(server,)), jobs=tuple(jobs))


def view(lines: list[Line], room: int = 4) -> View:
    found: View = PAPERS.get("rigid").view(instance(lines, room))
    return found


def check(seen: View, schedule: Schedule, problem: str) -> Any:
    return VERIFIERS.get("rigid").check(seen, schedule, problem, ())


def placed(seen: View, order: tuple[int, ...]) -> Schedule:
    """Each job in turn at its earliest place, second by second; one of these orders is best for regular objectives."""
    end = int(seen.release.max() + seen.duration.sum()) + 1
    free, starts = np.full(end + 1, seen.capacity[0]), np.zeros(seen.size, np.int64)
    for j in order:
        t = int(seen.release[j])
        while (free[t : t + seen.duration[j]] < seen.gpus[j]).any():
            t += 1
        starts[j] = t
        free[t : t + seen.duration[j]] -= seen.gpus[j]
    return starts_of(seen, starts)


def best(seen: View, objective: str) -> float:
    orders = itertools.permutations(range(seen.size))
    verdicts = (check(seen, placed(seen, order), f"rigid.{objective}") for order in orders)
    return min(verdict.objective for verdict in verdicts if not verdict.violations)


def random_lines(seed: int, most: int = 5) -> list[Line]:
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(0, 12)), int(rng.integers(0 if seed % 4 == 0 else 1, 15)), int(rng.integers(1, 5)))
        for _ in range(rng.integers(2, most + 1))
    ]


def ran(seen: View, method: str) -> Schedule:
    spec = HEURISTICS.get(method)
    found: Schedule = spec.decide(seen.instance)
    verdict = check(seen, found, spec.problem)
    assert not verdict.violations, (method, verdict.violations)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_below_the_optimum_and_the_search_finds_it(seed: int) -> None:
    seen = view(random_lines(seed))
    for objective in ("flow", "slowdown", "weighted", "makespan"):
        setting = "" if objective == "flow" else f"?objective={objective}"
        least = best(seen, objective)
        for name in ("rigid.bound", "rigid.intervals"):
            if objective == "makespan" and name != "rigid.bound":
                continue
            bound = MODELS.get(f"{name}{setting}").run(seen, SolveOptions(time_limit_s=2)).solution.bound
            assert 0 <= bound <= least * (1 + 1e-9), (name, objective)
        outcome = MODELS.get(f"rigid.search{setting}").run(seen, SolveOptions(time_limit_s=2))
        verdict = check(seen, outcome.decision, f"rigid.{objective}")
        assert not verdict.violations
        assert verdict.objective == pytest.approx(outcome.solution.objective)
        assert verdict.objective == pytest.approx(least)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_exact_program_finds_the_optimum(seed: int) -> None:
    seen = view(random_lines(seed, 4))
    for objective in ("flow", "makespan"):
        name = "rigid.exact" if objective == "flow" else f"rigid.exact?objective={objective}"
        outcome = MODELS.get(name).run(seen, SolveOptions(time_limit_s=20))
        assert outcome.solution.status == "optimal"
        assert outcome.solution.objective == pytest.approx(best(seen, objective))
        assert check(seen, outcome.decision, f"rigid.{objective}").objective == pytest.approx(best(seen, objective))


@pytest.mark.parametrize("seed", range(20))
def test_every_rule_is_verified_and_above_the_bound(seed: int) -> None:
    seen = view(random_lines(seed, 30))
    least = {o: MODELS.get(f"rigid.bound?objective={o}" if o != "flow" else "rigid.bound") for o in OBJECTIVES}
    bounds = {o: spec.run(seen, SolveOptions()).solution.bound for o, spec in least.items()}
    for spec in HEURISTICS:
        if spec.paper == "rigid" and spec.skip(seen) is None:
            verdict = check(seen, ran(seen, spec.id), f"{spec.problem}")
            for objective, bound in bounds.items():
                assert verdict.quantities[objective] >= bound * (1 - 1e-9), (spec.id, objective)


def starts(schedule: Schedule) -> list[int]:
    return [int(start) for start in schedule.start[np.argsort(schedule.job, kind="stable")]]


FOUR: list[Line] = [(0, 10, 3), (1, 10, 4), (2, 8, 1), (3, 12, 1)]
"""One of 3 GPUs runs; all 4 are wanted next; the third ends before that, the fourth would delay it."""


@pytest.mark.parametrize(
    ("method", "expected"),
    [("rigid.fcfs", [0, 10, 20, 20]), ("rigid.easy", [0, 10, 2, 20]), ("rigid.conservative", [0, 10, 2, 20])],
)
def test_backfilling_on_four_jobs(method: str, expected: list[int]) -> None:
    assert starts(ran(view(FOUR), method)) == expected


def listed(seen: View, key: list[int]) -> list[int]:
    """Second by second, whoever fits, by the key."""
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


@pytest.mark.parametrize("seed", range(10))
def test_backfilling_by_true_times_equals_that_by_requests_that_are_true(seed: int) -> None:
    seen = view(random_lines(seed, 25))
    (jobs, room), release, duration, gpus = seen.by_pool()[0], seen.release, seen.duration, seen.gpus
    true = kernels().conservative(release[jobs], duration[jobs], duration[jobs], gpus[jobs], room)
    turn = kernels().in_turn(release[jobs], duration[jobs], gpus[jobs], room, np.arange(jobs.size), True)
    assert true.tolist() == turn.tolist()


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
    schedule = Schedule(*np.array(runs).T)
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
