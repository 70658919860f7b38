"""Compiled loops for the modules :mod:`.intervals` and :mod:`.single_machine`; see there."""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit
from schedgap.instances.rigid._kernels import pop, push

MISSING = 1e-12
"""Fraction of a job's work that may be left undone because of rounding errors."""

STEPS = 12
"""Most steps of a cost curve. A curve that needs more continues its last step for ever, which understates the cost."""

ENDLESS = 1e9
"""Rate that is added to a last step that continues for ever, as a multiple of the fastest rate."""


@njit(cache=True)
def curves(cost, time, first, together):  # type: ignore[no-untyped-def]
    """Return the least cost of working at a given rate in each interval, as convex piecewise linear curves.

    A *way* is one way to run a job, for example on one GPU type. All work of a job, done in one way, costs
    ``cost[i, w]`` in interval i and takes ``time[w]``. The ways of each kind of job begin at `first` ``(g + 1,)``. If
    `together`, a job may run in several ways at once; otherwise its ways share the time, and each step of a curve leads
    from one way to a faster one.

    Step s of a curve costs ``unit (g, K, S)`` per unit of work, adds ``rate (g, K, S)`` work per unit of time, and ends
    at the way ``way (g, K, S)``; ``steps (g, K)`` is the number of steps.
    """
    kinds, intervals = len(first) - 1, len(cost)
    shape = (kinds, intervals, STEPS)
    unit, rate, way = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64)
    steps = np.zeros((kinds, intervals), np.int64)
    for g in range(kinds):
        fastest = (1 / time[first[g] : first[g + 1]]).max()
        for i in range(intervals):
            used = np.zeros(first[g + 1] - first[g], np.bool_)
            speed, paid = 0.0, 0.0
            while steps[g, i] < STEPS:
                best, at = np.inf, -1
                for w in range(first[g], first[g + 1]):
                    if used[w - first[g]] or not np.isfinite(cost[i, w]) or (not together and 1 / time[w] <= speed):
                        continue
                    slope = cost[i, w] if together else (cost[i, w] / time[w] - paid) / (1 / time[w] - speed)
                    if slope < best or (slope == best and time[w] < time[at]):
                        best, at = slope, w
                if at < 0:
                    break
                s = steps[g, i]
                used[at - first[g]] = True
                unit[g, i, s], way[g, i, s] = max(best, 0.0), at
                rate[g, i, s] = 1 / time[at] - (0.0 if together else speed)
                speed, paid = 1 / time[at], cost[i, at] / time[at]
                steps[g, i] += 1
            if steps[g, i] == STEPS:
                rate[g, i, STEPS - 1] += ENDLESS * fastest
    return unit, rate, way, steps


@njit(cache=True)
def price(curve, jobs, goal, floor, out):  # type: ignore[no-untyped-def]
    """Find for every job the best interval to end in, and how much work it does in each step of the curves until then.

    The steps of earlier intervals are kept sorted by cost. In the last interval, a job also pays for the delay of its
    end, except for the work that it can do until its earliest end there.

    `curve` is the result of :func:`curves`. `jobs` holds kind and size of each job, and the time ``(n, K)`` available
    to it in each interval. `goal` has the type :class:`schedgap.models.engine.fluid.intervals.IntervalValues`. Payoffs
    must exceed the `floor` ``(n,)``. The results are written to `out`: ``payoff (n,)``, ``last (n,)`` (-1: none) and
    ``part (n, K, S)``.
    """
    unit, rate, _, steps = curve
    kind, size, room = jobs
    value, slope, free = goal
    payoff, last, part = out
    intervals = unit.shape[1]
    order, most = np.empty(intervals * STEPS, np.int64), np.empty((intervals, STEPS))
    for j in range(len(kind)):
        g = kind[j]
        payoff[j], last[j] = floor[j], -1
        known, there = 0, 0.0
        for k in range(intervals):
            for s in range(steps[g, k]):
                most[k, s] = min(1.0, room[j, k] * rate[g, k, s] / size[j])
                there += most[k, s]
            if there >= 1.0 - MISSING and value[j, k] > payoff[j]:
                offer = unit[g] * size[j], most, steps[g]
                paid = value[j, k] - cheapest(offer, slope[j, k], free[j, k], order[:known], k, part[j])
                if paid > payoff[j]:
                    payoff[j], last[j] = paid, k
            for s in range(steps[g, k]):
                i = known
                while i > 0 and unit[g, order[i - 1] // STEPS, order[i - 1] % STEPS] > unit[g, k, s]:
                    order[i] = order[i - 1]
                    i -= 1
                order[i] = k * STEPS + s
                known += 1
        part[j] = 0.0
        if last[j] >= 0:
            k, offer = last[j], (unit[g] * size[j], most, steps[g])
            before = order[:known][order[:known] < k * STEPS]
            cheapest(offer, slope[j, k], free[j, k], before, k, part[j])


@njit(cache=True)
def cheapest(offer, slope, free, order, k, part):  # type: ignore[no-untyped-def]
    """Return the least cost of doing all work of a job by interval `k`, and write the work in each step to `part`.

    `order` lists the steps of earlier intervals, cheapest first.
    """
    unit, most, steps = offer
    left, cost, step, done = 1.0, 0.0, 0, 0.0
    part[k] = 0.0
    at = 0
    while left > 0 and (at < len(order) or step < steps[k]):
        late = done >= free - MISSING
        own = unit[k, step] + (slope if late else 0.0) if step < steps[k] else np.inf
        i, s = (order[at] // STEPS, order[at] % STEPS) if at < len(order) else (k, 0)
        if at < len(order) and unit[i, s] < own:
            taken = min(left, most[i, s])
            part[i, s] = taken
            cost += taken * unit[i, s]
            at += 1
        else:
            room = most[k, step] - part[k, step]
            taken = min(left, room if late else min(room, free - done))
            part[k, step] += taken
            cost += taken * own
            done += taken
            if taken >= room:
                step += 1
        left -= taken
    return cost


@njit(cache=True)
def times(curve, jobs, time, together, last, part, out):  # type: ignore[no-untyped-def]
    """Write entries ``job, interval, way, time`` on how long jobs run in each way; return the number of entries.

    If ways share the time, a partly used step is a mixture of two ways.
    """
    _, rate, way, steps = curve
    kind, size, room = jobs
    job, interval, ways, amount = out
    found = 0
    for j in range(len(kind)):
        for i in range(last[j] + 1):
            faster = 0.0
            for s in range(steps[kind[j], i] - 1, -1, -1):
                if part[j, i, s] > 0 and np.isfinite(room[j, i]):
                    w = way[kind[j], i, s]
                    job[found], interval[found], ways[found] = j, i, w
                    amount[found] = part[j, i, s] * size[j] * time[w]
                    if not together:
                        full = min(1.0, part[j, i, s] * size[j] / (room[j, i] * rate[kind[j], i, s])) * room[j, i]
                        amount[found], faster = max(full - faster, 0.0), full
                    found += 1
    return found


@njit(cache=True)
def shortest_first(start: Array, volume: Array, order: Ints) -> Array:
    """Return ``(n,)`` completion times on one machine that serves the shortest remaining volume first.

    `order` sorts the jobs by start. A heap holds remaining volumes and job numbers.
    """
    ends, keys, jobs = start.copy(), np.empty(order.size), np.empty(order.size, np.int64)
    count, now, served = 0, 0.0, 0.0
    for j in order:
        while count and now < start[j]:
            left = keys[0]
            first = pop(keys, jobs, 0, count)
            if now + left <= start[j]:
                now += left
                ends[first] = now
                count -= 1
            else:
                push(keys, jobs, 0, count - 1, left - (start[j] - now), first)
                now = start[j]
        now = max(now, start[j])
        push(keys, jobs, 0, count, volume[j], j)
        count += 1
    while count:
        served += keys[0]
        ends[pop(keys, jobs, 0, count)] = now + served
        count -= 1
    return ends


@njit(cache=True)
def largest_first(start: Array, volume: Array, urgency: Array, order: Ints) -> tuple[Ints, Array, Array]:
    """Return job, begin and end of the pieces of a one-machine schedule that serves the smallest `urgency` first."""
    most, size = 2 * order.size, 0
    job, begin, end = np.empty(most, np.int64), np.empty(most), np.empty(most)
    keys, jobs, left = np.empty(order.size), np.empty(order.size, np.int64), volume.copy()
    count, now = 0, 0.0
    for i in range(order.size + 1):
        until = start[order[i]] if i < order.size else np.inf
        while count and now < until:
            j = jobs[0]
            job[size], begin[size] = j, now
            if left[j] <= until - now:
                now += left[j]
                pop(keys, jobs, 0, count)
                count -= 1
            else:
                left[j] -= until - now
                now = until
            end[size] = now
            size += 1
        if i < order.size:
            now = max(now, until)
            push(keys, jobs, 0, count, urgency[order[i]], order[i])
            count += 1
    return job[:size], begin[:size], end[:size]
