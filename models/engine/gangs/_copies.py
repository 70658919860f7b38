"""Compiled loops that price jobs with copies; :mod:`.copies` explains and calls them."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.clock import njit

WHOLE = 20_000
"""Most GPU slots of a job for which whole GPUs are searched for; in larger jobs, divisible GPUs cost almost as much."""

BRANCHES = 50_000
"""Most nodes of the search for one last slot; if these do not suffice, the bound is that of divisible GPUs."""


class CopyOffer(NamedTuple):
    """GPUs that a job can buy, by class of servers and slot.

    They cost `prices` ``(c, T)`` each; the job holds at least `low` and at most `high` ``(c, T)`` of them. `cells`
    ``(u,)`` are the pairs of class and slot in which it can buy more, cheapest progress first. Classes with equal
    progress form a `group` ``(c,)``; the `pace` ``(g,)`` of a group is the progress of one GPU in a slot.
    """

    prices: Array
    low: Ints
    high: Ints
    cells: Ints
    group: Ints
    pace: Array


class Numbers(NamedTuple):
    """How many GPUs of each group the search may buy, and at what cost.

    `cost` ``(g, N + 1)`` is the cost of each number of GPUs, and `reduced` its excess over the least cost at a
    multiplier. `there` is the number of GPUs on offer, and `order` the order of the groups in the search, which tries
    the numbers from `first` to `end`.
    """

    cost: Array
    reduced: Array
    there: Ints
    pace: Array
    order: Ints
    first: Ints
    end: Ints


@njit(cache=True)
def ends_divisible(prices, low, high, arrival, work, progress, worth, paid):  # type: ignore[no-untyped-def]
    """Write what a job earns by each last slot if GPUs could be split, to `paid` ``(T,)``.

    A slot by which the job cannot be done gets ``-inf``. As the last slot advances, a heap holds the cheapest cells so
    far that together do the work; cells that leave it never return. `low` and `high` ``(c, T)`` are the fewest and most
    GPUs that may be held.
    """
    classes, slots = prices.shape
    heap = [(0.0, 0.0)]
    heap.clear()
    done, cost, latest = 0.0, 0.0, -1
    for t in range(slots):
        for c in range(classes):
            done += low[c, t] * progress[c]
            cost += low[c, t] * prices[c, t]
            latest = t if low[c, t] > 0 else latest
    for t in range(slots):
        paid[t] = -np.inf
        if t < arrival:
            continue
        for c in range(classes):
            if high[c, t] > low[c, t] and progress[c] > 0:
                unit, amount = prices[c, t] / progress[c], (high[c, t] - low[c, t]) * progress[c]
                heapq.heappush(heap, (-unit, amount))
                done += amount
                cost += unit * amount
        while len(heap) > 0 and done - heap[0][1] >= work:
            unit, amount = heapq.heappop(heap)
            done -= amount
            cost += unit * amount
        if t >= latest and done >= work * (1 - ROUNDING):
            over = max(done - work, 0.0) * -heap[0][0] if len(heap) > 0 else 0.0
            paid[t] = worth[t] - cost + over


@njit(cache=True)
def cells_by_unit(prices, low, high, arrival, progress):  # type: ignore[no-untyped-def]
    """Return the cells ``(u,)``, class and slot, in which GPUs can be bought, cheapest progress first."""
    classes, slots = prices.shape
    unit = np.empty(classes * slots)
    cell = np.empty(classes * slots, np.int64)
    found = 0
    for t in range(arrival, slots):
        for c in range(classes):
            if high[c, t] > low[c, t] and progress[c] > 0:
                unit[found] = prices[c, t] / progress[c]
                cell[found] = c * slots + t
                found += 1
    return cell[:found][np.argsort(unit[:found], kind="mergesort")]


@njit(cache=True)
def groups_of(progress):  # type: ignore[no-untyped-def]
    """Return the group of every class (classes with equal progress; -1 for none) and the progress of each group."""
    group = np.full(len(progress), -1, np.int64)
    pace = np.empty(len(progress))
    found = 0
    for c in range(len(progress)):
        if progress[c] > 0:
            for g in range(found):
                if pace[g] == progress[c]:
                    group[c] = g
            if group[c] < 0:
                group[c] = found
                pace[found] = progress[c]
                found += 1
    return group, pace[:found]


@njit(cache=True)
def rounded_up(offer, last, need, number):  # type: ignore[no-untyped-def]
    """Write to `number` how many GPUs of each group are bought if the cheapest come first, up to a last slot.

    The GPUs of the last cell are rounded up. Returns the cost of all GPUs, which is infinite if there are too few, and
    the multiplier: the price per unit of progress at which the need is met.
    """
    prices, low, high, cells, group, pace = offer
    slots = prices.shape[1]
    number[:] = 0
    total = 0.0
    for cell in cells:
        c, t = cell // slots, cell % slots
        if t <= last:
            g = group[c]
            taken = min(high[c, t] - low[c, t], int(np.ceil(need / pace[g])))
            number[g] += taken
            total += taken * prices[c, t]
            need -= taken * pace[g]
            if need <= 0:
                return total, prices[c, t] / pace[g]
    return np.inf, 0.0


@njit(cache=True)
def costs_by_number(offer, last, most):  # type: ignore[no-untyped-def]
    """Return the cost ``(g, N + 1)`` of the cheapest GPUs of each group up to a last slot, and their number ``(g,)``.

    At most `most` ``(g,)`` of each group are counted.
    """
    prices, low, high, cells, group, _ = offer
    slots = prices.shape[1]
    cost = np.zeros((len(most), most.max() + 1))
    there = np.zeros(len(most), np.int64)
    full = 0
    for cell in cells:
        c, t = cell // slots, cell % slots
        g = group[c]
        if t <= last and there[g] < most[g]:
            for _ in range(min(high[c, t] - low[c, t], most[g] - there[g])):
                there[g] += 1
                cost[g, there[g]] = cost[g, there[g] - 1] + prices[c, t]
            full += there[g] == most[g]
            if full == len(most):
                break
    return cost, there


@njit(cache=True)
def cheapest(offer, last, need, number):  # type: ignore[no-untyped-def]
    """Write to `number` the cheapest whole numbers of GPUs that meet the need; return their cost and a bound on it.

    At the multiplier, a group's reduced cost (cost less the value of its progress) is convex in its number of GPUs, and
    the least reduced costs give the cost of divisible GPUs. Only numbers whose excess is below that of the best known
    choice matter. A depth-first search tries these; the number of the group with most candidates follows from the
    others. The bound is ``-inf`` if there are too many GPUs to search.
    """
    pace, groups = offer.pace, len(offer.pace)
    best, multiplier = rounded_up(offer, last, need, number)
    most = np.ceil(need / pace)
    if best == np.inf or most.max() > WHOLE:
        return best, -np.inf
    cost, there = costs_by_number(offer, last, most.astype(np.int64))
    reduced = cost - multiplier * np.outer(pace, np.arange(cost.shape[1]))
    at, least = np.empty(groups, np.int64), np.empty(groups)
    for g in range(groups):
        at[g] = np.argmin(reduced[g, : there[g] + 1])
        least[g] = reduced[g, at[g]]
    bound = multiplier * need + least.sum()
    if best <= bound + ROUNDING * abs(bound):
        return best, best
    first, end, final = at.copy(), at.copy(), 0
    for g in range(groups):
        while first[g] > 0 and reduced[g, first[g] - 1] - least[g] < best - bound:
            first[g] -= 1
        while end[g] < there[g] and reduced[g, end[g] + 1] - least[g] < best - bound:
            end[g] += 1
        if end[g] - first[g] > end[final] - first[final]:
            final = g
    order = np.append(np.flatnonzero(np.arange(groups) != final), final)
    reduced -= least.reshape(-1, 1)
    return search(Numbers(cost, reduced, there, pace, order, first, end), need, number, best, bound)


@njit(cache=True)
def search(numbers, need, number, best, bound):  # type: ignore[no-untyped-def]
    """Search the numbers of GPUs of all groups depth first; see :func:`cheapest`."""
    cost, reduced, there, pace, order, first, end = numbers
    groups = len(order)
    final = order[groups - 1]
    now = first.copy()
    spent, above, done = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    depth, steps = 0, 0
    while True:
        steps += 1
        if steps > BRANCHES:
            return best, bound
        if depth == groups - 1:
            wanted = max(0, int(np.ceil((need - done[depth]) / pace[final])))
            if wanted <= there[final] and spent[depth] + cost[final, wanted] < best:
                best = spent[depth] + cost[final, wanted]
                for g in order[: groups - 1]:
                    number[g] = now[g] - 1
                number[final] = wanted
        elif now[order[depth]] <= end[order[depth]]:
            g = order[depth]
            n = now[g]
            now[g] += 1
            more = above[depth] + reduced[g, n]
            if bound + more < best:
                spent[depth + 1] = spent[depth] + cost[g, n]
                above[depth + 1] = more
                done[depth + 1] = done[depth] + pace[g] * n
                depth += 1
                if depth < groups - 1:
                    now[order[depth]] = first[order[depth]]
            continue
        depth -= 1
        if depth < 0:
            return best, best


@njit(cache=True)
def bounded(job, capacity, limit, uses, low, high):  # type: ignore[no-untyped-def]
    """Write the fewest and the most GPUs that a job may hold, after branching, to `low` and `high` ``(c, T)``."""
    classes, slots = capacity.shape
    low[:] = 0
    for c in range(classes):
        for t in range(slots):
            high[c, t] = min(limit[c], capacity[c, t])
    for u in range(uses.shape[1]):
        if uses[0, u] == job:
            c, t = uses[1, u] // slots, uses[1, u] % slots
            low[c, t] = uses[2, u]
            high[c, t] = max(low[c, t], min(high[c, t], uses[3, u]))


@njit(cache=True)
def price(prices, capacity, which, jobs, worth, floor, uses, out):  # type: ignore[no-untyped-def]
    """Price jobs with copies.

    Parameters
    ----------
    prices, capacity
        ``(c, T)`` prices and number of free GPUs by class of servers.
    which
        Jobs to price.
    jobs
        Arrival slots and work of all jobs; ``(n, c)`` iterations that one GPU does in a slot; ``(n, c)`` most GPUs.
    worth, floor
        ``(n, T)`` utilities by last slot, ``(n,)`` payoffs to exceed.
    uses
        ``(4, u)`` job, row, fewest and most GPUs of it.
    out
        ``most (w,)`` upper bound on the payoff, ``by_end (w, T)`` the same by last slot, and concatenated columns:
        ``held (w,)`` end of the entries of each job, and their ``cell`` and ``gpus``.

    Returns
    -------
    int
        Number of entries; -1 if they do not fit in the arrays.
    """
    arrival, work, progress, limit = jobs
    most, by_end, held, cell, gpus = out
    classes, slots = prices.shape
    low, high = np.zeros((classes, slots), np.int64), np.zeros((classes, slots), np.int64)
    entries = 0
    for i in range(len(which)):
        j = which[i]
        paid = by_end[i]
        bounded(j, capacity, limit[j], uses, low, high)
        least = work[j] * (1 - ROUNDING)
        ends_divisible(prices, low, high, arrival[j], least, progress[j], worth[j], paid)
        group, pace = groups_of(progress[j])
        need = least - (low.sum(axis=1) * progress[j]).sum()
        offer = CopyOffer(prices, low, high, cells_by_unit(prices, low, high, arrival[j], progress[j]), group, pace)
        basis = (low * prices).sum()
        most[i], sure, last = floor[j], floor[j], -1
        number, chosen = np.zeros(len(pace), np.int64), np.zeros(len(pace), np.int64)
        tried = np.zeros(slots, np.bool_)
        while True:
            t = untried(paid, tried, sure)
            if t < 0:
                break
            tried[t] = True
            total, bound = 0.0, 0.0
            number[:] = 0
            if need > 0:
                total, bound = cheapest(offer, t, need, number)
            paid[t] = min(paid[t], worth[j, t] - basis - bound)
            most[i] = max(most[i], paid[t])
            if worth[j, t] - basis - total > sure:
                sure, last = worth[j, t] - basis - total, t
                chosen[:] = number
        if last >= 0:
            if entries + classes * slots > len(cell):
                return -1
            entries = bought(offer, last, chosen, cell, gpus, entries)
        held[i] = entries
    return entries


@njit(cache=True)
def untried(paid, tried, least):  # type: ignore[no-untyped-def]
    """Return the untried end with the largest upper bound on its payoff, if that exceeds `least`; -1 for none."""
    found = -1
    for t in range(len(paid)):
        if not tried[t] and paid[t] > least:
            least, found = paid[t], t
    return found


@njit(cache=True)
def bought(offer, last, number, cell, gpus, entries):  # type: ignore[no-untyped-def]
    """Write the entries of a column: the GPUs that the job must hold and the cheapest others; return the new number."""
    _, low, high, cells, group, _ = offer
    classes, slots = low.shape
    taken = np.zeros((classes, slots), np.int64)
    taken[:] = low
    left = number.copy()
    for one in cells:
        c, t = one // slots, one % slots
        if t <= last and left[group[c]] > 0:
            n = min(high[c, t] - low[c, t], left[group[c]])
            left[group[c]] -= n
            taken[c, t] += n
    for c in range(classes):
        for t in range(slots):
            if taken[c, t] > 0:
                cell[entries], gpus[entries] = c * slots + t, taken[c, t]
                entries += 1
    return entries
