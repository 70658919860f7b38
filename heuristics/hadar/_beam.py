"""Compiled part of DP_allocation (Algorithm 2): the search over take-or-skip decisions.

Integers passed to other functions start as ``np.int64``, because numba would compile those again for each literal type.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.heuristics.hadar._kernels import States, compiled, copy, find, glance, states, survey
from schedgap.instances.arrays import Array, Ints

CLOSED = 0x5851F42D4C957F2D
"""Added to the hash of a state in which planning has stopped (a *closed* state)."""


class BeamStates(NamedTuple):
    """Storage for states of the cluster and their hashes.

    `rows` is a permutation of the row numbers: first the rows of the current states, then the free rows.
    """

    states: States
    hashes: Ints
    rows: Ints


class BeamPaths(NamedTuple):
    """The best path to each state that can follow the decision on a job (take it or skip it).

    `row` is the row of the state, `value` the payoff so far, and `origin` twice the index of the state before, plus one
    if the job was taken. `table` is a hash table that finds the path to a state.
    """

    row: Ints
    value: Array
    origin: Ints
    table: Ints


@compiled
def take(hosts, pool, s, row, servers, scratch):  # type: ignore[no-untyped-def]
    """Copy state `s` to `row` and take a job's GPUs there: those in the first two rows of `scratch` (servers, GPUs)."""
    used, hashes = pool.states.used, pool.hashes
    for h in range(used.shape[1]):
        used[row, h] = used[s, h]
    hashes[row] = hashes[s]
    for e in range(servers):
        h, gpus = scratch[0, e], scratch[1, e]
        used[row, h] += gpus
        hashes[row] += gpus * ((h + 1) * 0x1E3779B97F4A7C15 ^ h * h << 7 | 1)
    survey(hosts, pool.states, row)


@compiled
def takers(hosts, queue, i, pool, size, gains, scratch):  # type: ignore[no-untyped-def]
    """Place job `i` in each current state where its payoff is positive; return the number of new states.

    New states go to the next free rows. `gains` receives the job's payoff in each current state, 0 where it is not
    placed. With the setting `stop`, a job that is not placed closes the state (the last column of `used` is 1): no
    later job is placed there.
    """
    gang, rate, worth, paid = queue.gpus[i], queue.rate[i], queue.worth[i], queue.paid[i]
    price, kinds, rows, used = pool.states.price, pool.states.kinds, pool.rows, pool.states.used
    by_rate, look = queue.by_rate[i], queue.held[i] == queue.held[i + 1] and not queue.by_cost
    count = 0
    for s in range(size):
        row, servers, sure, gains[s] = rows[s], np.int64(1), False, 0.0
        if used[row, -1]:
            continue
        if look:
            scratch[0, 0], _, gains[s], sure = glance(gang, rate, by_rate, worth, paid, price, kinds, row, 0.0)
            scratch[1, 0] = gang
        if not sure:
            servers, _, gain = find(hosts, queue, i, pool.states, row, scratch)
            gains[s] = max(gain, 0.0)
        if gains[s] > 0:
            take(hosts, pool, row, rows[size + count], servers, scratch)
            count += 1
        elif queue.stop:
            used[row, -1] = 1
            pool.hashes[row] += CLOSED
    return count


@compiled
def insert(pool, ways, count, mask, row, value, origin):  # type: ignore[no-untyped-def]
    """Add a path to the state in `row` and return its number; of two paths to equal states, keep the better one.

    A path to a new state gets the number `count`; a path to a known state shares the number of the known path.
    """
    hashes, used, table = pool.hashes, pool.states.used, ways.table
    key = hashes[row]
    slot = (key ^ (key >> 29)) & mask
    while table[slot] >= 0:
        way = table[slot]
        known, h = ways.row[way], 0
        if hashes[known] == key:
            while h < used.shape[1] and used[known, h] == used[row, h]:
                h += 1
        if h == used.shape[1]:
            if value > ways.value[way]:
                ways.value[way], ways.origin[way] = value, origin
            return way
        slot = (slot + 1) & mask
    table[slot] = count
    ways.row[count], ways.value[count], ways.origin[count] = row, value, origin
    return count


@compiled
def merge(pool, values, gains, size, greedy, ways):  # type: ignore[no-untyped-def]
    """Merge equal states after the decision on a job, and write the best path to each to `ways`.

    Returns the number of paths, and which of them is the greedy one: the path that took every job it could.
    """
    slots = 8
    while slots < 4 * size:
        slots *= 2
    for slot in range(slots):
        ways.table[slot] = -1
    count, taken, greedy_way = np.int64(0), size, np.int64(-1)
    for s in range(size):
        if gains[s] > 0:
            way = insert(pool, ways, count, slots - 1, pool.rows[taken], values[s] + gains[s], 2 * s + 1)
            taken += 1
            count = max(count, way + 1)
            if s == greedy:
                greedy_way = way
        way = insert(pool, ways, count, slots - 1, pool.rows[s], values[s], 2 * s)
        count = max(count, way + 1)
        if s == greedy and greedy_way < 0:
            greedy_way = way
    return count, greedy_way


@compiled
def survivors(values, count, width, greedy, kept):  # type: ignore[no-untyped-def]
    """Choose at most `width` paths of highest payoff, always including the `greedy` one; return how many.

    Their numbers are written to `kept`.
    """
    if count <= width:
        for way in range(count):
            kept[way] = way
        return count
    size = 0
    for way in range(count):
        if size == width and values[way] <= values[kept[size - 1]]:
            continue
        size = min(size + 1, width)
        at = size - 1
        while at > 0 and values[kept[at - 1]] < values[way]:
            kept[at] = kept[at - 1]
            at -= 1
        kept[at] = way
    for at in range(size):
        if kept[at] == greedy:
            return size
    kept[size - 1] = greedy
    return size


@compiled
def settle(pool, ways, kept, size, touched, values):  # type: ignore[no-untyped-def]
    """Make the states of the paths in `kept` the current states, and free all other rows among the first `touched`."""
    free = np.ones(pool.rows.size, np.bool_)
    before = pool.rows[:touched].copy()
    for s in range(size):
        row = ways.row[kept[s]]
        pool.rows[s], values[s], free[row] = row, ways.value[kept[s]], False
    at = size
    for row in before:
        if free[row]:
            pool.rows[at] = row
            at += 1


@compiled
def search(hosts, queue, order, used, width):  # type: ignore[no-untyped-def]
    """Choose which jobs of `order` to place, by DP_allocation with at most `width` states after each job.

    The search goes forward: it generates the states after each job, merges equal ones, and keeps the best `width`.
    Returns the ``(n,)`` mask of jobs to take, the sum of their payoffs, the number of (job, state) pairs visited, and
    whether states were dropped (if not, the result is exact).
    """
    room, h, kinds, slots = 2 * width, used.size, queue.rate.shape[1], 8
    while slots < 4 * width:
        slots *= 2
    pool = BeamStates(states(room, h + 1, kinds), np.empty(room, np.int64), np.arange(room))
    ways = BeamPaths(np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64), np.empty(slots, np.int64))
    values, gains, kept = np.empty(width), np.empty(width), np.empty(width, np.int64)
    scratch, origins = np.empty((4, h), np.int64), np.empty((order.size, width), np.int64)
    copy(used, pool.states.used[0], h)
    pool.states.used[0, h] = 0
    survey(hosts, pool.states, pool.rows[0])
    pool.hashes[0], values[0] = 0, 0.0
    size, greedy, met, dropped = np.int64(1), np.int64(0), np.int64(0), False
    for p in range(order.size):
        met += size
        taken = takers(hosts, queue, order[p], pool, size, gains, scratch)
        if not taken:
            origins[p, 0] = -1
            continue
        count, way = merge(pool, values, gains, size, greedy, ways)
        dropped |= count > width
        touched = size + taken
        size = survivors(ways.value, count, width, way, kept)
        settle(pool, ways, kept, size, touched, values)
        for s in range(size):
            origins[p, s] = ways.origin[kept[s]]
            if kept[s] == way:
                greedy = np.int64(s)
    best = np.int64(0)
    for s in range(size):
        if values[s] > values[best]:
            best = np.int64(s)
    return trace_back(origins, best), values[best], met, dropped


@compiled
def trace_back(origins, row):  # type: ignore[no-untyped-def]
    """Return the mask of jobs taken on the path to state `row` after the last job.

    An origin of −1 marks a job that fits in no state and is never taken.
    """
    taken = np.zeros(len(origins), np.bool_)
    for i in range(len(origins) - 1, -1, -1):
        if origins[i, 0] >= 0:
            taken[i] = origins[i, row] % 2 == 1
            row = origins[i, row] // 2
    return taken
