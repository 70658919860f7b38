"""The fast forms of the rules for one machine and for intervals give the very numbers of the plain forms."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap.certificates import fluid
from schedgap.certificates.basics import HIGH, LOW

jobs = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.sampled_from([0, 1, 2, 3, 7, 10**18, 10**18 + 1, 10**18 + 3]),
        st.sampled_from([0, 1, 3, 2**80, 2**80 + 1, 2**80 - 1, Fraction(1, 3)]),
    ),
    min_size=1,
    max_size=12,
)


def served(start: list[int], volume: list[int], key: Callable[[int, int], Any]) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches (job, begin, length) in which a machine serves jobs, least ``key(job, left)`` first."""
    left, now, queue = list(volume), 0, list[tuple[Any, int]]()
    for j in [*sorted(range(len(start)), key=start.__getitem__), None]:
        while queue and (j is None or now < start[j]):
            i = heapq.heappop(queue)[1]
            step = left[i] if j is None else min(left[i], start[j] - now)
            yield i, now, step
            now += step
            left[i] -= step
            if left[i]:
                heapq.heappush(queue, (key(i, left[i]), i))
        if j is not None and volume[j]:
            now = max(now, start[j])
            heapq.heappush(queue, (key(j, volume[j]), j))


@given(jobs)
def test_one_machine_is_served_exactly(found: list[tuple[int, int, int | Fraction]]) -> None:
    start, volume, part = (list(column) for column in zip(*found, strict=True))
    ends = dict(enumerate(start)) | {j: at + step for j, at, step in served(start, volume, lambda j, left: left)}
    assert fluid.shortest_first(start, volume) == sum(ends.values())
    urgency = [-Fraction(p) / v if v else Fraction(0) for p, v in zip(part, volume, strict=True)]
    moment = [0] * len(start)
    for j, at, step in served(start, volume, lambda j, left: urgency[j]):
        moment[j] += step * (2 * at + step)
    mean = [Fraction(m, 2 * v) if v else Fraction(s) for m, v, s in zip(moment, volume, start, strict=True)]
    assert [Fraction(*m) for m in fluid.mean_busy_times(start, volume, fluid.by_urgency(volume, part))] == mean


def cheapest(units: Any, most: Any) -> float:
    """Return the least cost of all work of one job."""
    order = np.argsort(units, axis=None)
    there = most.ravel()[order]
    done = np.clip(1 - 1e-12 - (np.cumsum(there) - there), 0, there)
    return float((units.ravel()[order][done > 0] * done[done > 0]).sum()) if there.sum() >= 1 - 1e-12 else math.inf


def one_by_one(fleet: Any, proof: Any, edges: Any) -> Fraction:
    """Return the bound over intervals, job by job and end by end."""
    finite, prices = np.diff(edges[np.isfinite(edges)]), np.array(proof["prices"], float).T * proof["unit"]
    terms = (prices * fleet.there * finite[:, None] * HIGH).ravel().tolist()
    for j, start in enumerate(fleet.start):
        ends, times = fluid.completions(fleet, j, edges), fleet.times(j)
        costs = np.vstack([fleet.costs(j, prices), np.zeros((1, len(times)))])
        units, rate = fluid.steps(times, costs, fleet.together)
        room = np.minimum(np.maximum(edges[1:] - np.maximum(edges[:-1], start), 0.0), 1e200)
        most = np.minimum(room[:, None] * rate, 1.0)
        begin = np.cumsum(most, axis=1) - most
        soon, best = np.clip(ends.free[:, None] - begin, 0.0, most), -math.inf
        for k in np.flatnonzero(np.isfinite(ends.value)):
            dearer = np.concatenate([units[:k].ravel(), units[k], units[k] + ends.slope[k]])
            there = np.concatenate([most[:k].ravel(), soon[k], most[k] - soon[k]])
            best = max(best, ends.value[k] + abs(ends.value[k]) * 1e-12 - cheapest(dearer, there) * LOW)
        terms.append(best)
    return sum(map(Fraction, terms), Fraction(0))


@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_bound_over_intervals_is_the_same_number_job_by_job(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, many, resources, ways = (int(rng.integers(1, most)) for most in (20, 60, 4, 3))
    times, uses = rng.uniform(0.1, 9, (n, ways)), np.round(rng.uniform(0, 2, (n, ways, resources)), seed % 3)
    fleet = SimpleNamespace(
        **{"grain": 0.0, "together": seed % 2 == 0, "there": np.ones(resources)},
        **{"start": rng.uniform(0, 5, n).tolist(), "alone": times.min(axis=1).tolist(), "weight": [0.7] * n},
        **{"times": times.__getitem__, "costs": lambda j, prices: prices @ uses[j].T},
    )
    fleet.first_end = lambda j: fleet.start[j] + fleet.alone[j]
    edges = np.concatenate([[0.0], np.sort(rng.uniform(0.1, 30, many)), [np.inf]])
    proof = {"prices": (rng.integers(0, 5, (resources, many)) * rng.random((resources, many))).tolist(), "unit": 0.37}
    assert fluid.over_intervals(fleet, proof, edges, fluid.completions, must=True) == one_by_one(fleet, proof, edges)
