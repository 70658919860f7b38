"""Compiled loops: best starts of jobs at prices, for :mod:`.prices`, and a search in stretches, for :mod:`.search`."""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.clock import njit

FAR = 12.0
"""Starts count that cost at most this many times the spread of a job more than its best one."""

RARE = 1e-6
"""Shares of starts that are left out."""


@njit(cache=True)
def best_starts(
    jobs: tuple[Array, Array, Array, Array, Ints],
    edges: Array,
    price: Array,
    spread: float,
    scratch: tuple[Array, Array, Ints, Ints],
    whole: Array,
    part: Array,
) -> float:
    """Return the sum of the costs of the best starts of jobs; if `spread` is positive, of soft minima over starts.

    Parameters
    ----------
    jobs
        Release, duration, earliest completion, weight and kind of each job, ``(n,)`` each.
    edges
        ``(E + 1,)`` edges of intervals; no job is released before the first one, and machines are free after the last.
    price
        ``(K, E)`` price per unit of time of a run of each kind in each interval.
    spread
        The spread of a job's costs is this time multiplied by its weight.
    scratch
        Room for the costs, starts, first and last intervals of a job's starts, ``(2 E + 4,)`` each.
    whole, part
        Filled with the use that kinds make of intervals ``(K, E + 1)``: differences of the numbers of jobs that run
        throughout an interval, and the time of runs that begin or end in one.
    """
    release, duration, due, weight, kind = jobs
    costs, starts, firsts, lasts = scratch
    last, total = edges.size - 1, 0.0
    paid = np.zeros((len(price), edges.size))
    for k in range(len(price)):
        for i in range(last):
            paid[k, i + 1] = paid[k, i] + price[k, i] * (edges[i + 1] - edges[i])
    whole[:], part[:] = 0.0, 0.0
    for j in range(release.size):
        k, begin, lasting, w = kind[j], release[j], duration[j], weight[j]
        soft = spread * w
        count, at = listed(begin, lasting, due[j], w, edges, price[k], paid[k], FAR * soft, scratch)
        best = costs[at]
        total += best
        size = 1.0
        if soft > 0.0:
            size = 0.0
            for q in range(count):
                costs[q] = np.exp((best - costs[q]) / soft)
                size += costs[q]
            total -= soft * np.log(size)
        for q in range(count) if soft > 0.0 else range(at, at + 1):
            share = costs[q] / size if soft > 0.0 else 1.0
            if share >= RARE and firsts[q] < last:
                hold(edges, starts[q], starts[q] + lasting, firsts[q], lasts[q], share, whole[k], part[k])
    return total


@njit(cache=True)
def hold(edges: Array, start: float, end: float, a: int, b: int, share: float, whole: Array, part: Array) -> None:
    """Add a share of a run from interval `a` to interval `b` to the use of intervals."""
    if a == b:
        part[a] += share * (end - start)
        return
    part[a] += share * (edges[a + 1] - start)
    whole[a + 1] += share
    whole[b] -= share
    if b < edges.size - 1:
        part[b] += share * (end - edges[b])


@njit(cache=True)
def listed(
    release: float,
    lasting: float,
    due: float,
    weight: float,
    edges: Array,
    price: Array,
    paid: Array,
    far: float,
    scratch: tuple[Array, Array, Ints, Ints],
) -> tuple[int, int]:
    """List the starts of a job at which its cost bends, in `scratch`; return their number, and which is the best.

    `paid` ``(E + 1,)`` are the prices per unit of time, `price`, summed up to edges. Starts are left out if waiting for
    them costs `far` more than the best start.
    """
    costs, starts, firsts, lasts = scratch
    last, s, e = edges.size - 1, release, due
    a = np.searchsorted(edges, s, side="right") - 1
    b = np.searchsorted(edges, s + lasting, side="right") - 1
    cost = weight * (max(s + lasting, due) - release) + paid[b] - paid[a]
    cost += price[b] * (s + lasting - edges[b]) if b < last else 0.0
    cost -= price[a] * (s - edges[a]) if a < last else 0.0
    costs[0], starts[0], firsts[0], lasts[0] = cost, s, a, b
    count, at = 1, 0
    while a < last:
        step, turn = edges[a + 1] - s, 0
        if b < last and edges[b + 1] - (s + lasting) < step:
            step, turn = edges[b + 1] - (s + lasting), 1
        late = s + lasting >= e
        if not late and e - (s + lasting) < step:
            step, turn = e - (s + lasting), 2
        cost += step * ((weight if late else 0.0) + (price[b] if b < last else 0.0) - price[a])
        s += max(step, 0.0)
        if turn == 0:
            s, a = edges[a + 1], a + 1
        elif turn == 1:
            b += 1
        else:
            s, e = e - lasting, -np.inf
        if weight * (max(s + lasting, due) - release) >= costs[at] + far:
            break
        costs[count], starts[count], firsts[count], lasts[count] = cost, s, a, b
        if cost < costs[at]:
            at = count
        count += 1
    return count, at


@njit(cache=True)
def stretches(
    release: Ints,
    duration: Ints,
    gpus: Ints,
    capacity: int,
    goal: tuple[Array, Ints],
    start: Ints,
    part: tuple[int, int, int],
    tries: int,
    rng: np.random.Generator,
) -> None:
    """Improve a schedule in place, stretch by stretch: jobs that start after one another change places.

    All other jobs stay, and no job of a stretch ends after the last of them does now, so that a stretch looks only at
    the GPUs that are free in its own time. Long jobs stay, too. `goal` are weights and earliest completions. `part`
    says from which job to which one, by start, stretches begin, and the number of jobs in each, in which `tries` orders
    are tried; stretches overlap by half.
    """
    weight, floor = goal
    n = release.size
    order = np.argsort(start, kind="mergesort")
    free, times = np.empty(2 * n + 4, np.int64), np.empty(2 * n + 4, np.int64)
    left, moments = np.empty(2 * n + 4, np.int64), np.empty(2 * n + 4, np.int64)
    inside = np.zeros(n, np.bool_)
    since, until, width = part
    for begin in range(since - int(rng.integers(0, width)), until, max(1, width // 2)):
        jobs = order[max(begin, 0) : max(begin + width, 0)]
        if jobs.size < 2 or not (start[jobs] > release[jobs]).any():
            continue
        ends = np.sort(start[jobs] + duration[jobs])
        last = ends[(3 * jobs.size) // 4]
        jobs = jobs[start[jobs] + duration[jobs] <= last]
        jobs = jobs[np.argsort(start[jobs], kind="mergesort")]
        first = start[jobs[0]]
        inside[jobs] = True
        count = vacant(start, duration, gpus, capacity, inside, first, last, times, free)
        inside[jobs] = False
        least = 0.0
        for j in jobs:
            least += weight[j] * float(max(start[j] + duration[j], floor[j]) - release[j])
        found = np.empty(jobs.size, np.int64)
        for _ in range(tries):
            tried = swapped(jobs, rng)
            moments[:count], left[:count] = times[:count], free[:count]
            size, total = count, 0.0
            for q in range(tried.size):
                j = tried[q]
                size, found[q] = taken(moments, left, size, max(release[j], first), duration[j], gpus[j])
                total += weight[j] * float(max(found[q] + duration[j], floor[j]) - release[j])
                if found[q] < 0 or total > least:
                    total = np.inf
                    break
            if total <= least:
                least = total
                start[tried] = found
                jobs = tried[np.argsort(found, kind="mergesort")]


@njit(cache=True)
def vacant(
    start: Ints,
    duration: Ints,
    gpus: Ints,
    capacity: int,
    inside: Bools,
    first: int,
    last: int,
    times: Ints,
    free: Ints,
) -> int:
    """Write the GPUs free of jobs that are not `inside` a stretch, from `first` to `last`; return the number of steps.

    From ``times[i]`` on, ``free[i]`` GPUs are free; none after `last`.
    """
    count = 0
    for j in range(start.size):
        if not inside[j] and start[j] < last and start[j] + duration[j] > first:
            times[count], free[count] = max(start[j], first), -gpus[j]
            times[count + 1], free[count + 1] = min(start[j] + duration[j], last), gpus[j]
            count += 2
    order = np.argsort(times[:count], kind="mergesort")
    at, change = times[:count][order], free[:count][order]
    times[0], free[0], steps = first, capacity, 0
    for k in range(count):
        if at[k] > times[steps]:
            steps += 1
            times[steps], free[steps] = at[k], free[steps - 1]
        free[steps] += change[k]
    if times[steps] < last:
        steps += 1
    times[steps], free[steps] = last, 0
    return steps + 1


@njit(cache=True)
def swapped(jobs: Ints, rng: np.random.Generator) -> Ints:
    """Return jobs in another order: two change places, one moves, or a few are shuffled."""
    how, tried = rng.integers(0, 4), jobs.copy()
    x, y = int(rng.integers(0, jobs.size)), int(rng.integers(0, jobs.size))
    if how == 0:
        tried[x], tried[y] = jobs[y], jobs[x]
    elif how == 1:
        few = min(jobs.size, 2 + int(rng.integers(0, 7)))
        x = int(rng.integers(0, jobs.size - few + 1))
        tried[x : x + few] = rng.permutation(jobs[x : x + few])
    else:
        step = 1 if x < y else -1
        for q in range(x, y, step):
            tried[q] = jobs[q + step]
        tried[y] = jobs[x]
    return tried


@njit(cache=True)
def taken(times: Ints, free: Ints, count: int, release: int, length: int, need: int) -> tuple[int, int]:
    """Take GPUs for a time as early as possible; return the number of steps and the start, -1 if there is no room."""
    i = int(np.searchsorted(times[:count], release, "right")) - 1
    while True:
        if i >= count - 1:
            return count, -1
        begin = max(times[i], release)
        end = begin + length
        if end > times[count - 1]:
            return count, -1
        k = i
        while free[k] >= need and times[k + 1] < end:
            k += 1
        if free[k] >= need:
            break
        i = k + 1
    if times[i] < begin:
        count, i = opened(times, free, count, i + 1, begin), i + 1
    k = i
    while times[k + 1] < end:
        free[k] -= need
        k += 1
    if times[k + 1] > end:
        count = opened(times, free, count, k + 1, end)
    free[k] -= need
    return count, begin


@njit(cache=True)
def opened(times: Ints, free: Ints, count: int, at: int, moment: int) -> int:
    """Begin a step at a moment within the step before `at`, and return the new number of steps."""
    for k in range(count, at, -1):
        times[k], free[k] = times[k - 1], free[k - 1]
    times[at], free[at] = moment, free[at - 1]
    return count + 1
