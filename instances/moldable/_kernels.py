"""Compiled loops of :mod:`.search` (the cheapest run of one job at given prices) and of :mod:`.options`.

Imported on demand, because numba is slow to import. Shapes: ``h`` servers (entries that stand for ``copies`` servers
each), ``R`` resources, ``M`` and ``P`` types, ``T`` slots. If free resources are constant over time, their tables have
one slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import SLACK, Array, Bools, Ints
from schedgap.instances.clock import lean, njit

BLOCK = 16
"""Slots per block of which minima are stored."""
BELOW = 1 - 1e-9
"""Factor that keeps lower bounds on prices of windows valid in spite of rounding: the two are summed differently."""
PRINTED = 1
"""Flag: place by Algorithms 4 and 7 as printed, instead of exactly."""
FIRST = 2
"""Flag: among equal runs, take the first in the order of options, then starts, then servers."""


class ServerArrays(NamedTuple):
    """Machines as arrays: ``copies (h,)``, ``capacity (h, R)``, ``worker (M, R)``, ``ps (P, R)``, ``total (R,)``."""

    copies: Ints
    capacity: Array
    worker: Array
    ps: Array
    worker_bandwidth: Array
    ps_bandwidth: Array
    total: Array


class PlacementTables(NamedTuple):
    """Free resources ``free (T, h, R)``, workers that fit ``room (M, T, h)``, summed prices ``(types, h, T + 1)``.

    ``least_free`` and ``least_room`` are minima over blocks of slots; ``total (M, T)`` is the number of workers that
    fit on all servers together. Floors ``(types, T + 1)`` sum the lowest price of each slot over all servers, so that
    no window costs less on any server.
    """

    free: Array
    room: Ints
    least_free: Array
    least_room: Ints
    total: Ints
    worker_sum: Array
    ps_sum: Array
    worker_floor: Array
    ps_floor: Array


class JobOptions(NamedTuple):
    """The options of one job, see :class:`schedgap.instances.moldable.options.RunOptions`."""

    slots: Ints
    worker_type: Ints
    ps_type: Ints
    together: Bools
    workers: Ints


class SearchGoal(NamedTuple):
    """Goal of a search: earliest and latest slot, cost of each end ``(T + 1,)``, limit, and flags (:data:`PRINTED`).

    Apart from the earliest run, only runs that begin or end at one of the stops ``(T + 1,)`` are considered. `extra`
    ``(o, T + 1)`` (may be empty) is the non-decreasing cost of an option apart from its placement up to each slot.
    """

    earliest: int
    latest: int
    late: Array
    stops: Bools
    limit: float
    how: int
    extra: Array


class WorkerWindow(NamedTuple):
    """Workers of one type in one window: room and cost per server ``(h,)``, and their sums by ascending cost.

    ``free (h, R)`` are the resources that are free in all slots of the window. ``at`` holds begin and end, first and
    last columns of the tables, and whether the order and ``free`` have been computed.
    """

    cost: Array
    room: Ints
    order: Ints
    rank: Ints
    filled: Ints
    spent: Array
    free: Array
    at: Ints


class BestRun(NamedTuple):
    """Best run so far. ``value``: total, cost, turn, share. ``where``: option, begin, end, host, workers and PSs there.

    Among equal totals, the smaller turn (:func:`turn`) is better, then the smaller share of the cluster.
    """

    value: Array
    where: Ints


@lean
def recount(h: int, first: int, last: int, servers: ServerArrays, able: Bools, tables: PlacementTables) -> None:
    """Update the number of workers that fit on a server in slots ``[first, last)``, whose free resources changed."""
    free, room = tables.free, tables.room
    begin = first
    while begin < last:
        end, same = begin + 1, True
        while same and end < last:
            for r in range(free.shape[2]):
                same &= free[end, h, r] == free[begin, h, r]
            end += same
        for m in range(len(room)):
            number = fitting(free, servers, m, h, begin) if able[m, h] else 0
            for t in range(begin, end):
                tables.total[m, t] += (number - room[m, t, h]) * servers.copies[h]
                room[m, t, h] = number
        begin = end
    for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
        a, z = block * BLOCK, min((block + 1) * BLOCK, len(free))
        for r in range(free.shape[2]):
            least = free[a, h, r]
            for t in range(a + 1, z):
                least = min(least, free[t, h, r])
            tables.least_free[block, h, r] = least
        for m in range(len(room)):
            fewest = room[m, a, h]
            for t in range(a + 1, z):
                fewest = min(fewest, room[m, t, h])
            tables.least_room[m, block, h] = fewest


@lean
def fitting(free: Array, servers: ServerArrays, m: int, h: int, t: int) -> int:
    """Return the number of workers that fit on a server in one slot."""
    number = 1_000_000.0
    for r in range(servers.capacity.shape[1]):
        if servers.worker[m, r] > 0:
            number = min(number, np.floor((free[t, h, r] + SLACK * servers.capacity[h, r]) / servers.worker[m, r]))
    return max(0, int(number))


@lean
def totals(touched: Ints, price: Array, need: Array, summed: Array) -> None:
    """Fill in, for the given servers, the cost of one worker or PS of each type up to each slot."""
    for h in touched:
        for k in range(need.shape[0]):
            total = 0.0
            for t in range(price.shape[2]):
                for r in range(need.shape[1]):
                    if need[k, r] > 0:
                        total += price[h, r, t] * need[k, r]
                summed[k, h, t + 1] = total


@njit(cache=True)
def floors(summed: Array, floor: Array) -> None:
    """Sum, for each type and up to each slot, the lowest price of any server in a slot; write the sums to floor."""
    types, servers, length = summed.shape
    least = np.empty(length - 1)
    for k in range(types):
        least[:] = np.inf
        for h in range(servers):
            for t in range(length - 1):
                least[t] = min(least[t], summed[k, h, t + 1] - summed[k, h, t])
        for t in range(length - 1):
            floor[k, t + 1] = floor[k, t] + max(least[t], 0.0)


@lean
def survey(window: WorkerWindow, tables: PlacementTables) -> None:
    """Fill in the resources that are free on each server in all slots of a window, unless they have been computed."""
    at, known = window.at, window.free
    if at[5] == 1:
        return
    at[5] = 1
    known[:] = np.inf
    t = at[2]
    while t < at[3]:
        whole = t % BLOCK == 0 and t + BLOCK <= at[3]
        free = tables.least_free[t // BLOCK] if whole else tables.free[t]
        t += BLOCK if whole else 1
        for h in range(known.shape[0]):
            for r in range(known.shape[1]):
                known[h, r] = free[h, r] if free[h, r] < known[h, r] else known[h, r]


@lean
def paid_in(summed: Array, k: int, h: int, at: Ints) -> float:
    """Return the cost of one worker or PS of a type on a server in a window; cancellation must not make it negative."""
    return float(max(summed[k, h, at[1]] - summed[k, h, at[0]], 0.0))


@lean
def holds(window: WorkerWindow, servers: ServerArrays, m: int, p: int, h: int, workers: int, ps: int) -> bool:
    """Return whether these numbers of workers and parameter servers fit on a server in all slots of a window."""
    for r in range(servers.capacity.shape[1]):
        need = workers * servers.worker[m, r]
        if ps > 0:
            need += ps * servers.ps[p, r]
        if need > 0 and need > window.free[h, r] + SLACK * servers.capacity[h, r]:
            return False
    return True


@lean
def share(servers: ServerArrays, m: int, p: int, workers: int, ps: int, slots: int) -> float:
    """Return the fraction of the cluster that a run takes, summed over resources and slots."""
    total = 0.0
    for r in range(servers.total.size):
        if servers.total[r] > 0:
            need = workers * servers.worker[m, r]
            if ps > 0:
                need += ps * servers.ps[p, r]
            total += need / servers.total[r]
    return total * slots


@lean
def needed(workers: int, worker_bandwidth: float, ps_bandwidth: float) -> int:
    """Return the number of parameter servers that `workers` workers on other servers require."""
    return int(np.ceil(workers * worker_bandwidth / ps_bandwidth * (1 - SLACK)))


@lean
def before(window: WorkerWindow, a: int, b: int) -> bool:
    """Return whether server `a` comes before server `b`: those with room first, cheaper ones first, then by number."""
    if (window.room[a] > 0) != (window.room[b] > 0):
        return bool(window.room[a] > 0)
    if window.room[a] > 0 and window.cost[a] != window.cost[b]:
        return bool(window.cost[a] < window.cost[b])
    return a < b


@lean
def sort(window: WorkerWindow, count: Ints) -> None:
    """Sort the servers of a window by the cost of a worker, those without room last; accumulate their room and cost."""
    order, size = window.order, window.room.size
    gap = size
    for h in range(size):
        order[h] = h
    while gap > 1:
        gap //= 2
        for i in range(gap, size):
            h, at = order[i], i
            while at >= gap and before(window, h, order[at - gap]):
                order[at] = order[at - gap]
                at -= gap
            order[at] = h
    running, paid = 0, 0.0
    for i in range(size):
        h = order[i]
        window.rank[h] = i
        if window.room[h] > 0:
            running += window.room[h] * count[h]
            paid += window.room[h] * count[h] * window.cost[h]
        window.filled[i], window.spent[i] = running, paid
    window.at[4] = 1


@lean
def cheapest(window: WorkerWindow, workers: int) -> float:
    """Return the least cost of `workers` workers, infinite if they do not fit."""
    if workers <= 0:
        return 0.0
    last, end = 0, window.filled.size
    while last < end:
        middle = (last + end) // 2
        if window.filled[middle] < workers:
            last = middle + 1
        else:
            end = middle
    if last == window.order.size:
        return np.inf
    done, spent = (window.filled[last - 1], window.spent[last - 1]) if last > 0 else (0, 0.0)
    return float(spent + (workers - done) * window.cost[window.order[last]])


@lean
def cheapest_elsewhere(window: WorkerWindow, count: Ints, workers: int, host: int) -> float:
    """Return the least cost of `workers` workers without one server of entry `host`."""
    fit = window.room[host]
    if fit == 0:
        return cheapest(window, workers)
    at = window.rank[host]
    earlier = window.filled[at - 1] if at > 0 else 0
    if workers <= earlier + (count[host] - 1) * fit:
        return cheapest(window, workers)
    return float(cheapest(window, workers + fit) - fit * window.cost[host])


@lean
def turn(goal: SearchGoal, o: int, begin: int, end: int) -> int:
    """Return the second sorting key, for runs of equal total: their end or, with :data:`FIRST`, the order of loops."""
    return int(o * goal.late.size + begin if goal.how & FIRST else end)


@lean
def wanted(best: BestRun, value: float, turn: int) -> bool:
    """Return whether a run of this total (or a lower bound on it) and turn may be better than the best run so far."""
    if value != best.value[0]:
        return bool(value < best.value[0])
    return bool(best.where[0] >= 0 and turn <= best.value[2])


@lean
def offer(
    best: BestRun,
    window: WorkerWindow,
    value: float,
    paid: float,
    rank: tuple[int, float],
    where: tuple[int, int, int, int],
) -> None:
    """Store a run if it is better than the best by total, then by rank, which is its turn and its cluster share."""
    equal = value == best.value[0] and best.where[0] >= 0
    sooner = rank[0] < best.value[2] or (rank[0] == best.value[2] and rank[1] < best.value[3])
    if not (value < best.value[0] or (equal and sooner)):
        return
    best.value[0], best.value[1], best.value[2], best.value[3] = value, paid, rank[0], rank[1]
    best.where[0], best.where[1], best.where[2] = where[0], window.at[0], window.at[1]
    best.where[3], best.where[4], best.where[5] = where[1], where[2], where[3]


@lean
def look(window: WorkerWindow, tables: PlacementTables, count: Ints, m: int) -> tuple[int, int]:
    """Fill in the room for workers of a type; return the most that fit on one server, and on all servers."""
    at, room = window.at, window.room
    for h in range(room.size):
        room[h] = tables.room[m, at[2], h]
    t = at[2] + 1
    while t < at[3]:
        whole = t % BLOCK == 0 and t + BLOCK <= at[3]
        fits = tables.least_room[m, t // BLOCK] if whole else tables.room[m, t]
        t += BLOCK if whole else 1
        for h in range(room.size):
            room[h] = min(room[h], fits[h])
    most, total = 0, 0
    for h in range(room.size):
        most = max(most, room[h])
        total += room[h] * count[h]
    return most, total


@lean
def ask(window: WorkerWindow, tables: PlacementTables, m: int) -> float:
    """Fill in the cost of a worker of a type on servers with room; return the least."""
    least = np.inf
    for h in range(window.room.size):
        if window.room[h] > 0:
            window.cost[h] = paid_in(tables.worker_sum, m, h, window.at)
            least = min(least, window.cost[h])
    return least


@lean
def try_together(
    best: BestRun,
    window: WorkerWindow,
    tables: PlacementTables,
    servers: ServerArrays,
    late: float,
    turn: int,
    o: int,
    choice: tuple[int, int, int],
) -> None:
    """Offer runs with everything on one server."""
    m, p, number = choice
    if p >= 0:
        survey(window, tables)
    for h in range(servers.copies.size):
        if window.room[h] < number:
            continue
        paid = number * window.cost[h]
        if p >= 0:
            paid += paid_in(tables.ps_sum, p, h, window.at)
        if not wanted(best, late + paid, turn):
            continue
        ps = 1 if p >= 0 else 0
        if ps == 0 or holds(window, servers, m, p, h, number, ps):
            part = share(servers, m, p, number, ps, window.at[1] - window.at[0])
            offer(best, window, late + paid, paid, (turn, part), (o, h, number, ps))


@lean
def try_ring(
    best: BestRun,
    window: WorkerWindow,
    servers: ServerArrays,
    late: float,
    turn: int,
    o: int,
    m: int,
    number: int,
    how: int,
) -> None:
    """Offer a ring on at least two servers: if the cheapest fits on one server, its last worker goes to another.

    Algorithm 7 as printed does not require a second server.
    """
    host, inside = -1, 0
    first = window.order[0]
    if not how & PRINTED and window.room[first] >= number and servers.copies[first] == 1:
        host, inside = first, number - 1
        paid = inside * window.cost[first] + cheapest_elsewhere(window, servers.copies, 1, first)
    else:
        paid = cheapest(window, number)
    if paid < np.inf:
        part = share(servers, m, -1, number, 0, window.at[1] - window.at[0])
        offer(best, window, late + paid, paid, (turn, part), (o, host, inside, 0))


@lean
def try_spread(
    best: BestRun,
    window: WorkerWindow,
    tables: PlacementTables,
    servers: ServerArrays,
    late: float,
    turn: int,
    how: int,
    least: float,
    o: int,
    choice: tuple[int, int, int],
) -> None:
    """Offer runs with all parameter servers on one host, for every host.

    One of several equal servers suffices, except for Algorithm 4 as printed, which fills the first of them first. With
    :data:`FIRST`, hosts are ordered by the cost of a worker there (Algorithm 4, line 8).
    """
    m, p, number = choice
    at = window.at
    survey(window, tables)
    previous, price_before, cost_before = -1, -1.0, 0.0
    for h in range(servers.copies.size):
        price = paid_in(tables.ps_sum, p, h, at)
        if not wanted(best, late + number * least + price, turn):
            continue
        cost = paid_in(tables.worker_sum, m, h, at) if how & FIRST else 0.0
        same = previous >= 0 and price == price_before and cost == cost_before
        if same and not how & PRINTED and alike(window, previous, h):
            continue
        previous, price_before, cost_before = h, price, cost
        if how & PRINTED:
            beside, ps, paid = printed(window, servers, h, choice, price)
        else:
            beside, ps, paid = exact(window, servers, h, choice, price, best.value[0] - late)
        if paid < np.inf and wanted(best, late + paid, turn):
            part = cost if how & FIRST else share(servers, m, p, number, ps, at[1] - at[0])
            offer(best, window, late + paid, paid, (turn, part), (o, h, beside, ps))


@lean
def alike(window: WorkerWindow, a: int, b: int) -> bool:
    """Return whether two servers have the same room, price of a worker and free resources in a window."""
    if window.room[a] != window.room[b] or (window.room[a] > 0 and window.cost[a] != window.cost[b]):
        return False
    same = True
    for r in range(window.free.shape[1]):
        same &= window.free[a, r] == window.free[b, r]
    return bool(same)


@lean
def exact(
    window: WorkerWindow, servers: ServerArrays, host: int, choice: tuple[int, int, int], price: float, limit: float
) -> tuple[int, int, float]:
    """Return the cheapest numbers of workers and PSs on `host`, if a worker is elsewhere, and the cost of the run.

    Runs that cost more than `limit` may be missed.
    """
    m, p, number = choice
    beside, ps, paid, least = -1, 0, np.inf, window.cost[window.order[0]]
    for g in range(min(number - 1, window.room[host]), -1, -1):
        s = max(1, needed(number - g, servers.worker_bandwidth[m], servers.ps_bandwidth[p]))
        own = s * price + (g * window.cost[host] if g > 0 else 0.0)
        promised = BELOW * (own + (number - g) * least)
        if promised >= paid or promised > limit or not holds(window, servers, m, p, host, g, s):
            continue
        total = own + cheapest_elsewhere(window, servers.copies, number - g, host)
        if total < paid:
            beside, ps, paid = g, s, total
    return beside, ps, paid


@lean
def printed(
    window: WorkerWindow, servers: ServerArrays, host: int, choice: tuple[int, int, int], price: float
) -> tuple[int, int, float]:
    """Return the workers and PSs that Algorithm 4 puts on `host` (lines 10 to 29), and the cost, infinite for none.

    Two corrections: the number of workers still to place is reset for every host (otherwise workers go missing), and
    line 16 skips resources of which a parameter server takes none. The last g of line 15 that passes line 17 is used.
    """
    m, p, number = choice
    left, beside, ps, paid = number, -1, 0, 0.0
    for k in window.order:
        here = min(window.room[k], left)
        if k == host:
            for g in range(here + 1):
                most = 1_000_000.0
                for r in range(servers.total.size):
                    if servers.ps[p, r] > 0:
                        free = window.free[k, r] - g * servers.worker[m, r]
                        most = min(most, np.floor((free + SLACK * servers.capacity[k, r]) / servers.ps[p, r]))
                asked = needed(number - g, servers.worker_bandwidth[m], servers.ps_bandwidth[p])
                if most >= asked:
                    beside, ps = g, asked
            here = beside if beside >= 0 else here
        left -= here
        if here > 0:
            paid += here * window.cost[k]
    if left > 0 or ps < 1:
        return -1, 0, np.inf
    return beside, ps, paid + ps * price


@lean
def search(
    choices: JobOptions,
    goal: SearchGoal,
    servers: ServerArrays,
    tables: PlacementTables,
    window: WorkerWindow,
    best: BestRun,
) -> None:
    """Find the option, start and placement of least ``late[end] + cost`` below the limit; `late` is non-decreasing.

    Ties are broken by the earliest end, then the least share of the cluster, then the order of options, starts and
    servers; with :data:`FIRST`, only by that order.
    """
    best.value[0] = goal.limit
    best.where[0] = -1
    last = 0
    while last < choices.slots.size:
        first, slots, m = last, choices.slots[last], choices.worker_type[last]
        fewest = choices.workers[first]
        while last < choices.slots.size and choices.slots[last] == slots and choices.worker_type[last] == m:
            fewest = min(fewest, choices.workers[last])
            last += 1
            if goal.how & FIRST:
                break
        full, looked = -1, goal.earliest
        for begin in range(goal.earliest, goal.latest - slots + 1):
            end = begin + slots
            if not wanted(best, goal.late[end], turn(goal, first, begin, end)):
                break
            if begin > goal.earliest and not goal.stops[begin] and not goal.stops[end]:
                continue
            if tables.total.shape[1] > 1:
                # `full` is the last slot of the window in which too few workers fit on all servers together.
                for t in range(looked, end):
                    if tables.total[m, t] < fewest:
                        full = t
                looked = end
                if full >= begin:
                    continue
            for o in range(first, last):
                if wanted(best, floored(choices, o, goal, tables, begin, end), turn(goal, o, begin, end)):
                    start(window, tables, begin, end)
                    search_window(choices, o, last, goal, servers, tables, window, best)
                    break


@lean
def start(window: WorkerWindow, tables: PlacementTables, begin: int, end: int) -> None:
    """Move the window to new slots and mark everything in it as not computed."""
    window.at[0], window.at[1] = begin, end
    window.at[2], window.at[3] = (0, 1) if len(tables.free) == 1 else (begin, end)
    window.at[4], window.at[5] = 0, 0


@lean
def lateness(goal: SearchGoal, o: int, begin: int, end: int) -> float:
    """Return what an option costs for its end and duration, apart from the resources of its placement."""
    return float(goal.late[end] + goal.extra[o, end] - goal.extra[o, begin] if len(goal.extra) > 0 else goal.late[end])


@lean
def floored(choices: JobOptions, o: int, goal: SearchGoal, tables: PlacementTables, begin: int, end: int) -> float:
    """Return a lower bound on the cost of an option in a window, whatever its placement."""
    m, p = choices.worker_type[o], choices.ps_type[o]
    paid = choices.workers[o] * (tables.worker_floor[m, end] - tables.worker_floor[m, begin])
    if p >= 0:
        paid += tables.ps_floor[p, end] - tables.ps_floor[p, begin]
    return float(lateness(goal, o, begin, end) + BELOW * paid)


@lean
def search_window(
    choices: JobOptions,
    first: int,
    last: int,
    goal: SearchGoal,
    servers: ServerArrays,
    tables: PlacementTables,
    window: WorkerWindow,
    best: BestRun,
) -> None:
    """Offer the options of one duration and worker type in one window."""
    begin, end, m = window.at[0], window.at[1], choices.worker_type[first]
    most, total = look(window, tables, servers.copies, m)
    least = -1.0
    for o in range(first, last):
        p, number, late = choices.ps_type[o], choices.workers[o], lateness(goal, o, begin, end)
        if number > (most if choices.together[o] else total):
            continue
        if least < 0:
            least = ask(window, tables, m)
        now = turn(goal, o, begin, end)
        if not wanted(best, late + number * least, now):
            continue
        if not wanted(best, floored(choices, o, goal, tables, begin, end), now):
            continue
        if choices.together[o]:
            try_together(best, window, tables, servers, late, now, o, (m, p, number))
            continue
        if window.at[4] == 0:
            sort(window, servers.copies)
        if p < 0:
            try_ring(best, window, servers, late, now, o, m, number, goal.how)
        else:
            try_spread(best, window, tables, servers, late, now, goal.how, least, o, (m, p, number))


@lean
def place(
    choices: JobOptions,
    servers: ServerArrays,
    tables: PlacementTables,
    window: WorkerWindow,
    best: BestRun,
    workers: Ints,
) -> None:
    """Write the number of workers of the best run on each server ``(h,)``: on the host, the others where cheapest."""
    o, begin, end, host, inside = best.where[0], best.where[1], best.where[2], best.where[3], best.where[4]
    workers[:] = 0
    left = choices.workers[o]
    if host >= 0:
        workers[host] = inside
        left -= inside
    if left == 0:
        return
    start(window, tables, begin, end)
    look(window, tables, servers.copies, choices.worker_type[o])
    ask(window, tables, choices.worker_type[o])
    sort(window, servers.copies)
    for h in window.order:
        count = servers.copies[h] - 1 if h == host else servers.copies[h]
        here = min(left, window.room[h] * count)
        workers[h] += here
        left -= here


@njit(cache=True)
def undominated(group: Ints, costs: Array) -> Ints:
    """Return the indices of the rows of costs ``(o, c)`` that no other row of the same group dominates.

    Groups are contiguous, and within a group no row precedes one that dominates it, so that it suffices to compare with
    the rows kept so far. Of equal rows the first is kept.
    """
    kept = np.zeros(group.size, np.int64)
    count, first = 0, 0
    for i in range(group.size):
        if i > 0 and group[i] != group[i - 1]:
            first = count
        beaten = False
        for k in range(first, count):
            lower = True
            for c in range(costs.shape[1]):
                if costs[kept[k], c] > costs[i, c]:
                    lower = False
                    break
            if lower:
                beaten = True
                break
        if not beaten:
            kept[count] = i
            count += 1
    return kept[:count]
