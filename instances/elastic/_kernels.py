"""Compiled loops of :mod:`.search`, the cheapest way to run one job at given prices, and of :mod:`.options`.

Imported when they are needed, because numba takes a while. Shapes: ``h`` servers (entries, of which there are
``copies``), ``R`` resources, ``M`` and ``P`` types, ``T`` slots, ``L`` levels of sliding minima: level l holds minima
over 2^l slots. Where what is free is the same in all slots, its table has one slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.clock import njit

SLACK = 1e-9
ROUNDING = 1e-9
BELOW = 1 - 1e-9
"""Factor that keeps floors, which are other sums than the prices of windows, below these."""
PRINTED = 1
"""Way of placing: Algorithms 4 and 7 as printed; 0 is the exact one."""


class Servers(NamedTuple):
    """``copies (h,)``, ``capacity (h, R)``, ``worker (M, R)``, ``ps (P, R)``, bandwidths, ``total (R,)``."""

    copies: Ints
    capacity: Array
    worker: Array
    ps: Array
    worker_bandwidth: Array
    ps_bandwidth: Array
    total: Array


class Tables(NamedTuple):
    """What is free of each resource and how many workers fit ``(L, R + M, h, T)``, summed prices ``(types, h, T + 1)``.

    So many workers fit on all servers together: ``room (M, T)``. The floors ``(types, T + 1)`` sum up the price where
    it is lowest in each slot: no window costs less anywhere.
    """

    low: Array
    room: Array
    worker_sum: Array
    ps_sum: Array
    worker_floor: Array
    ps_floor: Array


class Choices(NamedTuple):
    """The options of one job, see :class:`schedgap.instances.elastic.options.Options`."""

    slots: Ints
    worker_type: Ints
    ps_type: Ints
    together: Bools
    workers: Ints


class Goal(NamedTuple):
    """What is sought: first and last slots, what each end costs ``(T + 1,)``, the limit, and how to place.

    Besides the earliest one, only runs that begin or end at one of the stops ``(T + 1,)`` count. What an option costs
    beside its placement, up to each slot, is `extra` ``(o, T + 1)``, which does not decrease; it may be empty.
    """

    earliest: int
    latest: int
    late: Array
    stops: Bools
    limit: float
    how: int
    extra: Array


class Window(NamedTuple):
    """Workers of one type in one window: room and cost per server ``(h,)``, and both by ascending cost.

    ``at`` has begin, end, first column of the tables, width, level, and whether the order is there.
    """

    cost: Array
    room: Ints
    order: Ints
    rank: Ints
    filled: Ints
    spent: Array
    at: Ints


class Best(NamedTuple):
    """``value``: total, cost, share of the cluster. ``where``: option, begin, end, host, workers and servers there."""

    value: Array
    where: Ints


@njit(cache=True)
def minima(
    touched: Ints, first: int, last: int, free: Array, servers: Servers, able: Bools, low: Array, room: Array
) -> None:
    """Fill in, for some servers, what is free and how many workers fit, where that depends on some slots.

    Only what changes is compared anew: moves of :mod:`schedgap.models.elastic.annealing` spend most of their time here.
    """
    levels, rows, _, length = low.shape
    resources = servers.capacity.shape[1]
    same = np.zeros(length, np.bool_)
    for h in touched:
        for t in range(first + 1, last):
            same[t] = True
            for r in range(resources):
                same[t] &= free[h, r, t] == free[h, r, t - 1]
        for row in range(rows):
            m, base = row - resources, low[0, row, h]
            begin, end = last, first
            number = 0.0
            for t in range(first, last):
                if m < 0:
                    number = free[h, row, t]
                elif t == first or not same[t]:
                    number = fitting(free, servers, m, h, t) if able[m, h] else 0
                if number != base[t]:
                    if m >= 0:
                        room[m, t] += (number - base[t]) * servers.copies[h]
                    base[t] = number
                    begin, end = min(begin, t), t + 1
            for level in range(1, levels if begin < end else 1):
                half = 1 << (level - 1)
                finer, coarser = low[level - 1, row, h], low[level, row, h]
                for t in range(max(begin - 2 * half + 1, 0), min(end, length - 2 * half + 1)):
                    coarser[t] = finer[t] if finer[t] < finer[t + half] else finer[t + half]


@njit(cache=True)
def fitting(free: Array, servers: Servers, m: int, h: int, t: int) -> int:
    """Return how many workers fit on a server in one slot."""
    number = 1_000_000.0
    for r in range(servers.capacity.shape[1]):
        if servers.worker[m, r] > 0:
            number = min(number, np.floor((free[h, r, t] + SLACK * servers.capacity[h, r]) / servers.worker[m, r]))
    return max(0, int(number))


@njit(cache=True)
def totals(touched: Ints, price: Array, need: Array, summed: Array) -> None:
    """Fill in, for some servers, what one of each type costs up to each slot."""
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
    """Fill in the floors of summed prices."""
    types, servers, length = summed.shape
    least = np.empty(length - 1)
    for k in range(types):
        least[:] = np.inf
        for h in range(servers):
            for t in range(length - 1):
                least[t] = min(least[t], summed[k, h, t + 1] - summed[k, h, t])
        for t in range(length - 1):
            floor[k, t + 1] = floor[k, t] + max(least[t], 0.0)


@njit(cache=True)
def lowest(low: Array, row: int, h: int, at: Ints) -> float:
    """Return what is free of a resource of a server, or how many workers fit, in all slots of a window."""
    return float(min(low[at[4], row, h, at[2]], low[at[4], row, h, at[2] + at[3] - (1 << at[4])]))


@njit(cache=True)
def paid_in(summed: Array, k: int, h: int, at: Ints) -> float:
    """Return what one of a type costs on a server in a window; sums that cancel must not make it negative."""
    return float(max(summed[k, h, at[1]] - summed[k, h, at[0]], 0.0))


@njit(cache=True)
def holds(tables: Tables, servers: Servers, at: Ints, m: int, p: int, h: int, workers: int, ps: int) -> bool:
    """Return whether so many workers and parameter servers fit on a server in all slots of a window."""
    for r in range(servers.capacity.shape[1]):
        need = workers * servers.worker[m, r]
        if ps > 0:
            need += ps * servers.ps[p, r]
        if need > 0 and need > lowest(tables.low, r, h, at) + SLACK * servers.capacity[h, r]:
            return False
    return True


@njit(cache=True)
def share(servers: Servers, m: int, p: int, workers: int, ps: int, slots: int) -> float:
    """Return the part of the cluster that a run takes, summed over resources and slots."""
    total = 0.0
    for r in range(servers.total.size):
        if servers.total[r] > 0:
            need = workers * servers.worker[m, r]
            if ps > 0:
                need += ps * servers.ps[p, r]
            total += need / servers.total[r]
    return total * slots


@njit(cache=True)
def needed(workers: int, worker_bandwidth: float, ps_bandwidth: float) -> int:
    """Return how many parameter servers cover so many workers elsewhere."""
    return int(np.ceil(workers * worker_bandwidth / ps_bandwidth * (1 - ROUNDING)))


@njit(cache=True)
def sort(window: Window, count: Ints) -> None:
    """Sort the servers of a window by the cost of a worker, those without room last; sum up their room and cost."""
    window.order[:] = np.argsort(np.where(window.room > 0, window.cost, np.inf), kind="mergesort")
    running, paid = 0, 0.0
    for i, h in enumerate(window.order):
        window.rank[h] = i
        if window.room[h] > 0:
            running += window.room[h] * count[h]
            paid += window.room[h] * count[h] * window.cost[h]
        window.filled[i], window.spent[i] = running, paid
    window.at[5] = 1


@njit(cache=True)
def cheapest(window: Window, workers: int) -> float:
    """Return what the cheapest so many workers cost, infinite where they do not fit."""
    if workers <= 0:
        return 0.0
    last = np.searchsorted(window.filled, workers)
    if last == window.order.size:
        return np.inf
    done, spent = (window.filled[last - 1], window.spent[last - 1]) if last > 0 else (0, 0.0)
    return float(spent + (workers - done) * window.cost[window.order[last]])


@njit(cache=True)
def cheapest_elsewhere(window: Window, count: Ints, workers: int, host: int) -> float:
    """Return what the cheapest so many workers on others than one server of entry `host` cost."""
    fit = window.room[host]
    if fit == 0:
        return cheapest(window, workers)
    at = window.rank[host]
    earlier = window.filled[at - 1] if at > 0 else 0
    if workers <= earlier + (count[host] - 1) * fit:
        return cheapest(window, workers)
    return float(cheapest(window, workers + fit) - fit * window.cost[host])


@njit(cache=True)
def wanted(best: Best, value: float, end: int) -> bool:
    """Return whether a total (or what it is at least) can be better than the best, or as good and no later."""
    if value != best.value[0]:
        return bool(value < best.value[0])
    return bool(best.where[0] >= 0 and end <= best.where[2])


@njit(cache=True)
def offer(best: Best, window: Window, value: float, paid: float, part: float, where: tuple[int, int, int, int]) -> None:
    """Take a run if it is better: by total, then end, then share of the cluster."""
    end = window.at[1]
    equal = value == best.value[0] and best.where[0] >= 0
    sooner = end < best.where[2] or (end == best.where[2] and part < best.value[2])
    if not (value < best.value[0] or (equal and sooner)):
        return
    best.value[0], best.value[1], best.value[2] = value, paid, part
    best.where[0], best.where[1], best.where[2] = where[0], window.at[0], end
    best.where[3], best.where[4], best.where[5] = where[1], where[2], where[3]


@njit(cache=True)
def look(window: Window, tables: Tables, count: Ints, m: int) -> tuple[float, int, int]:
    """Fill in a window for workers of a type; return the least cost, and most workers on one and on all servers."""
    least, most, total = np.inf, 0, 0
    at, row = window.at, tables.low.shape[1] - tables.worker_sum.shape[0] + m
    at[5] = 0
    for h in range(count.size):
        number = int(lowest(tables.low, row, h, at))
        window.room[h] = number
        if number > 0:
            window.cost[h] = paid_in(tables.worker_sum, m, h, at)
            least = min(least, window.cost[h])
            most = max(most, number)
            total += number * count[h]
    return least, most, total


@njit(cache=True)
def try_together(
    best: Best, window: Window, tables: Tables, servers: Servers, late: float, o: int, choice: tuple[int, int, int]
) -> None:
    """Offer everything on one server."""
    m, p, number = choice
    for h in range(servers.copies.size):
        if window.room[h] < number:
            continue
        paid = number * window.cost[h]
        if p >= 0:
            paid += paid_in(tables.ps_sum, p, h, window.at)
        if not wanted(best, late + paid, window.at[1]):
            continue
        ps = 1 if p >= 0 else 0
        if ps == 0 or holds(tables, servers, window.at, m, p, h, number, ps):
            part = share(servers, m, p, number, ps, window.at[1] - window.at[0])
            offer(best, window, late + paid, paid, part, (o, h, number, ps))


@njit(cache=True)
def try_ring(best: Best, window: Window, servers: Servers, late: float, o: int, m: int, number: int, how: int) -> None:
    """Offer a ring on at least two servers: where one alone would hold the cheapest, the last worker goes elsewhere.

    Algorithm 7 as printed does not ask for a second server.
    """
    host, inside = -1, 0
    first = window.order[0]
    if how != PRINTED and window.room[first] >= number and servers.copies[first] == 1:
        host, inside = first, number - 1
        paid = inside * window.cost[first] + cheapest_elsewhere(window, servers.copies, 1, first)
    else:
        paid = cheapest(window, number)
    if paid < np.inf:
        part = share(servers, m, -1, number, 0, window.at[1] - window.at[0])
        offer(best, window, late + paid, paid, part, (o, host, inside, 0))


@njit(cache=True)
def try_spread(
    best: Best,
    window: Window,
    tables: Tables,
    servers: Servers,
    late: float,
    how: int,
    least: float,
    o: int,
    choice: tuple[int, int, int],
) -> None:
    """Offer parameter servers on one host, for every host."""
    m, p, number = choice
    at = window.at
    previous, price_before = -1, -1.0
    for h in range(servers.copies.size):
        price = paid_in(tables.ps_sum, p, h, at)
        if not wanted(best, late + number * least + price, at[1]):
            continue
        if previous >= 0 and price == price_before and alike(window, tables, previous, h):
            continue
        previous, price_before = h, price
        if how == PRINTED:
            beside, ps, paid = printed(window, tables, servers, h, choice, price)
        else:
            beside, ps, paid = exact(window, tables, servers, h, choice, price)
        if paid < np.inf and wanted(best, late + paid, at[1]):
            offer(best, window, late + paid, paid, share(servers, m, p, number, ps, at[1] - at[0]), (o, h, beside, ps))


@njit(cache=True)
def alike(window: Window, tables: Tables, a: int, b: int) -> bool:
    """Return whether two servers have the same room, price of a worker and free resources in a window."""
    if window.room[a] != window.room[b] or (window.room[a] > 0 and window.cost[a] != window.cost[b]):
        return False
    for r in range(tables.low.shape[1] - tables.worker_sum.shape[0]):
        if lowest(tables.low, r, a, window.at) != lowest(tables.low, r, b, window.at):
            return False
    return True


@njit(cache=True)
def exact(
    window: Window, tables: Tables, servers: Servers, host: int, choice: tuple[int, int, int], price: float
) -> tuple[int, int, float]:
    """Return workers and parameter servers on `host`, and the least cost; at least one worker is elsewhere."""
    m, p, number = choice
    beside, ps, paid = -1, 0, np.inf
    for g in range(min(number - 1, window.room[host]), -1, -1):
        s = max(1, needed(number - g, servers.worker_bandwidth[m], servers.ps_bandwidth[p]))
        own = s * price + (g * window.cost[host] if g > 0 else 0.0)
        if own >= paid or not holds(tables, servers, window.at, m, p, host, g, s):
            continue
        total = own + cheapest_elsewhere(window, servers.copies, number - g, host)
        if total < paid:
            beside, ps, paid = g, s, total
    return beside, ps, paid


@njit(cache=True)
def printed(
    window: Window, tables: Tables, servers: Servers, host: int, choice: tuple[int, int, int], price: float
) -> tuple[int, int, float]:
    """Return what Algorithm 4 puts on `host` (lines 10 to 29) and the cost, infinite where it finds nothing.

    The number of workers still to place starts anew for every host, without which they go missing, and resources of
    which a parameter server takes none are skipped in line 16. The last g of line 15 that passes line 17 counts.
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
                        free = lowest(tables.low, r, k, window.at) - g * servers.worker[m, r]
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


@njit(cache=True)
def search(choices: Choices, goal: Goal, servers: Servers, tables: Tables, window: Window, best: Best) -> None:
    """Find the option, start and placement of least ``late[end] + cost``; `late` must not decrease.

    Of equal ones the earliest end counts, then the least share of the cluster, then the first in the order of options,
    starts and servers. Only totals below the limit count.
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
        full, looked = -1, goal.earliest
        for begin in range(goal.earliest, goal.latest - slots + 1):
            if not wanted(best, goal.late[begin + slots], begin + slots):
                break
            if begin > goal.earliest and not goal.stops[begin] and not goal.stops[begin + slots]:
                continue
            if tables.room.shape[1] > 1:
                # The last slot of the window in which too few workers fit on all servers together.
                for t in range(looked, begin + slots):
                    if tables.room[m, t] < fewest:
                        full = t
                looked = begin + slots
                if full >= begin:
                    continue
            start(window, tables, begin, slots)
            search_window(choices, first, last, goal, servers, tables, window, best)


@njit(cache=True)
def start(window: Window, tables: Tables, begin: int, slots: int) -> None:
    """Move a window; its level is the largest whose minima are over at most so many slots."""
    constant = tables.low.shape[3] == 1
    window.at[0], window.at[1] = begin, begin + slots
    window.at[2], window.at[3] = (0, 1) if constant else (begin, slots)
    window.at[4] = 0
    while (2 << window.at[4]) <= window.at[3]:
        window.at[4] += 1


@njit(cache=True)
def search_window(
    choices: Choices, first: int, last: int, goal: Goal, servers: Servers, tables: Tables, window: Window, best: Best
) -> None:
    """Offer the options of one duration and worker type in one window."""
    begin, end, m = window.at[0], window.at[1], choices.worker_type[first]
    floor = tables.worker_floor[m]
    least, most, total = -1.0, 0, 0
    for o in range(first, last):
        p, number, late = choices.ps_type[o], choices.workers[o], goal.late[end]
        if len(goal.extra) > 0:
            late += goal.extra[o, end] - goal.extra[o, begin]
        least_paid = number * (floor[end] - floor[begin])
        if p >= 0:
            least_paid += tables.ps_floor[p, end] - tables.ps_floor[p, begin]
        if not wanted(best, late + BELOW * least_paid, end):
            continue
        if least < 0:
            least, most, total = look(window, tables, servers.copies, m)
        if number > (most if choices.together[o] else total) or not wanted(best, late + number * least, end):
            continue
        if choices.together[o]:
            try_together(best, window, tables, servers, late, o, (m, p, number))
            continue
        if window.at[5] == 0:
            sort(window, servers.copies)
        if p < 0:
            try_ring(best, window, servers, late, o, m, number, goal.how)
        else:
            try_spread(best, window, tables, servers, late, goal.how, least, o, (m, p, number))


@njit(cache=True)
def place(choices: Choices, servers: Servers, tables: Tables, window: Window, best: Best, workers: Ints) -> None:
    """Write on which servers the workers of the best run are, ``(h,)``: some on the host, the others where cheapest."""
    o, begin, end, host, inside = best.where[0], best.where[1], best.where[2], best.where[3], best.where[4]
    workers[:] = 0
    left = choices.workers[o]
    if host >= 0:
        workers[host] = inside
        left -= inside
    if left == 0:
        return
    start(window, tables, begin, end - begin)
    look(window, tables, servers.copies, choices.worker_type[o])
    sort(window, servers.copies)
    for h in window.order:
        count = servers.copies[h] - 1 if h == host else servers.copies[h]
        here = min(left, window.room[h] * count)
        workers[h] += here
        left -= here


@njit(cache=True)
def undominated(group: Ints, costs: Array) -> Ints:
    """Return the rows of ``(o, c)`` costs than which no other row of the same group is as low everywhere.

    Groups are contiguous, and within one nothing comes before what dominates it: then comparing with what is kept is
    enough. Of equal rows the first is kept.
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
