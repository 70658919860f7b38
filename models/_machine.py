"""Compiled loops of schedules on a single machine; :mod:`schedgap.models.single_machine` explains and calls them.

Jobs are taken in an `order` of their starts; who is served first is in a heap of keys and numbers.
"""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit
from schedgap.instances.rigid._kernels import pop, push


@njit(cache=True)
def shortest_first(start: Array, volume: Array, order: Ints) -> Array:
    """Return ``(n,)`` completions where the shortest remaining volume is served first."""
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
    """Return jobs, begins and ends of the pieces in which the smallest `urgency` is served first."""
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
