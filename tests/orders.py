"""Brute force for gangs of fixed duration: it tries all orders, and all schedules with interruptions at given steps."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache

import numpy as np

from schedgap.instances.rigid import SHORT_S, RigidView
from schedgap.instances.schema import Cluster, GpuType, History, Instance, Job, ServerGroup

TIMES = (
    (0.0, 60.0, 120.0, 180.0, 300.0),
    (0.0, 1e-6, 2e-6, 1.0, 2.0, 3.0),
    (0.0, 1e-6, 100.0, 100.000001),
    (0.0, 1e-6, 1e6, 999999.9995, 1.0, 3.0),
    (1.0, 2.0, 3.0, 4.0, 5.0),
    (0.0, 0.0, 0.0, 3.0, 3.0, 5.0),
)
WEIGHTS = ((1.0,), (1e-6, 1.0, 1e6), (0.0, 1.0, 2.0), (0.0,))


def instance(seed: int, most: int = 6) -> Instance:
    """Return a random instance of few jobs on one or two pools: ties, durations of 0, microseconds, far weights."""
    rng = np.random.default_rng(seed)
    n, room = int(rng.integers(1, most + 1)), {"G": int(rng.integers(1, 5))}
    if rng.random() < 0.4:
        room["H"] = int(rng.integers(1, 4))
    times, weights = TIMES[int(rng.integers(len(TIMES)))], WEIGHTS[int(rng.integers(len(WEIGHTS)))]
    jobs = []
    for j in range(n):
        pool = list(room)[int(rng.integers(len(room)))]
        moved = float(rng.choice([1.0, 1.0, 1.0, 1 + 1e-9, 1 - 1e-9]))
        job = {"submit_s": float(rng.choice([0.0, 0.0, *times])) * moved, "duration_s": float(rng.choice(times))}
        job |= {"gpus": int(rng.integers(1, room[pool] + 1)), "weight": float(rng.choice(weights))}
        jobs.append(Job(id=f"J{j}", epochs=1, rates={pool: 1.0}, history=History(gpu_type=pool), **job))
    groups = tuple(ServerGroup(name=f"{k}s", count=1, gpu_type=k, gpus=gpus) for k, gpus in room.items())
    cluster = Cluster(gpu_types=tuple(GpuType(name=k) for k in room), servers=groups)
    return Instance(name=f"orders-{seed}", cluster=cluster, jobs=tuple(jobs))


def worth(view: RigidView, objective: str, ends: list[int]) -> Fraction:
    """Return the exact objective value of jobs with these completion times."""
    hour = 3600 if view.tick_s == 1 else 3_600_000_000
    flow = [end - release for end, release in zip(ends, view.release.tolist(), strict=True)]
    if objective == "makespan":
        return Fraction(max(ends) - int(view.release.min()), hour)
    if objective == "slowdown":
        least = [max(d, SHORT_S * hour // 3600) for d in view.duration.tolist()]
        return sum((max(Fraction(1), Fraction(f, p)) for f, p in zip(flow, least, strict=True)), Fraction(0)) / len(
            flow
        )
    weights = [Fraction(w) for w in view.weight.tolist()] if objective == "weighted" else [Fraction(1)] * len(flow)
    return sum((w * f for w, f in zip(weights, flow, strict=True)), Fraction(0)) / hour / (sum(weights) or 1)


def best(view: RigidView, objective: str) -> float:
    """Return the least objective over all orders in which jobs take their earliest starts; each pool on its own."""
    if objective == "idle":
        return _least_idle(view)
    chosen = list(range(view.size))
    ends = (view.release + view.duration).tolist()  # of jobs that hold no GPUs
    for pool in range(len(view.pools)):
        mine = [j for j in chosen if view.pool[j] == pool and view.duration[j] > 0]
        lists = (_in_turn(view, order) for order in itertools.permutations(mine))
        tried = [[made.get(j, end) for j, end in enumerate(ends)] for made in lists]
        ends = min(tried, key=lambda one: worth(view, objective, one))
    return float(worth(view, objective, ends))


def idle(view: RigidView, starts: list[int]) -> int:
    """Return the GPU-ticks that are free while a job waits for the same pool."""
    columns = (column.tolist() for column in (view.release, np.array(starts), view.duration, view.gpus, view.pool))
    rows = list(zip(*columns, strict=True))
    times, total = sorted({t for r, s, d, _, _ in rows for t in (r, s, s + d)}), 0
    for begin, end in itertools.pairwise(times):
        for pool, room in enumerate(view.capacity.tolist()):
            if any(r <= begin < s for r, s, _, _, p in rows if p == pool):
                used = sum(g for _, s, d, g, p in rows if p == pool and s <= begin < s + d)
                total += (room - used) * (end - begin)
    return total


def _least_idle(view: RigidView) -> float:
    """Return the least GPU-hours idle over all orders; each pool on its own."""
    starts = view.release.tolist()
    for pool in range(len(view.pools)):
        mine = [j for j in range(view.size) if view.pool[j] == pool and view.duration[j] > 0]
        made = (_in_turn(view, order) for order in itertools.permutations(mine))
        tried = [[ends[j] - int(view.duration[j]) if j in ends else s for j, s in enumerate(starts)] for ends in made]
        starts = min(tried, key=lambda one: idle(view, one))
    return idle(view, starts) / view.ticks_of_hour


def _in_turn(view: RigidView, order: tuple[int, ...]) -> dict[int, int]:
    """Place jobs in this order, each at its earliest possible start, and return their ends.

    A job starts at its release or at the end of another job.
    """
    held: list[tuple[int, int, int]] = []
    for j in order:
        release, lasts, gpus = int(view.release[j]), int(view.duration[j]), int(view.gpus[j])
        room = int(view.capacity[view.pool[j]]) - gpus
        for start in sorted({release, *(end for _, end, _ in held if end > release)}):
            moments = {start, *(s for s, _, _ in held if start < s < start + lasts)}
            if all(sum(g for s, e, g in held if s <= t < e) <= room for t in moments):
                break
        held.append((start, start + lasts, gpus))
    return {j: end for j, (_, end, _) in zip(order, held, strict=True)}


def interrupted(view: RigidView, objective: str, step: int) -> float:
    """Return the least objective over schedules that interrupt jobs only at multiples of `step` ticks."""
    release, need = (view.release // step).tolist(), (view.duration // step).tolist()

    @cache
    def after(now: int, left: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the ends of the jobs left (0 for others) in all schedules from `now` on that waste no GPU."""
        if not any(left):
            return ((0,) * len(left),)
        ready = [j for j, rest in enumerate(left) if rest and release[j] <= now]
        found = set()
        for run in (run for k in range(len(ready), -1, -1) for run in itertools.combinations(ready, k)):
            held = np.bincount(view.pool[list(run)], view.gpus[list(run)], len(view.pools))
            if (held > view.capacity).any() or (not run and ready):
                continue
            then = tuple(rest - (j in run) for j, rest in enumerate(left))
            for ends in after(now + 1, then):
                found.add(tuple(now + 1 if left[j] == 1 and j in run else e for j, e in enumerate(ends)))
        return tuple(found)

    over = [r if not n else 0 for r, n in zip(release, need, strict=True)]
    schedules = ([(e or o) * step for e, o in zip(ends, over, strict=True)] for ends in after(0, tuple(need)))
    return float(min(worth(view, objective, ends) for ends in schedules))
