"""Compiled loops that price jobs in copies; :mod:`schedgap.models.hadar.forked` explains and calls them."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit

DONE = 1e-9
"""Part of a job's work that may be missing: rounding."""

WHOLE = 20_000
"""GPUs times slots of a job up to which those of its column are whole; beyond, they hardly differ from parts."""

BRANCHES = 50_000
"""Numbers of GPUs that are looked at for one end; if these do not suffice, its bound is that of divisible GPUs."""


class Offer(NamedTuple):
    """What a job can buy: ``prices (c, T)``, the GPUs that it has to and can hold, ``low`` and ``high (c, T)``.

    ``cells (u,)`` are those in which more can be bought, cheapest progress first; classes have a ``group (c,)``, equal
    where progress is, and groups a ``pace (g,)``.
    """

    prices: Array
    low: Ints
    high: Ints
    cells: Ints
    group: Ints
    pace: Array


class Numbers(NamedTuple):
    """What the numbers of GPUs of each group cost ``(g, N + 1)``, and how far above its least that is at a multiplier.

    Beside the paces: how many there are, the order in which groups are tried, and from which number to which.
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
    """Fill ``paid (T,)``: for every last slot the payoff if GPUs could be divided, ``-inf`` where work is left.

    Going over the last slot, a heap holds the cheapest cells so far that together do the work; what falls out of it
    never comes back. ``low`` and ``high`` ``(c, T)`` are the GPUs that have to be and can be held.
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
        if t >= latest and done >= work * (1 - DONE):
            over = max(done - work, 0.0) * -heap[0][0] if len(heap) > 0 else 0.0
            paid[t] = worth[t] - cost + over


@njit(cache=True)
def cells_by_unit(prices, low, high, arrival, progress):  # type: ignore[no-untyped-def]
    """Return class and slot ``(u,)`` of the cells in which GPUs can be bought, cheapest progress first."""
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
    """Return a group for every class, equal where progress is, and the progress of each group; -1 where it is 0."""
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
    """Fill `number` with the cheapest GPUs of each group up to a last slot, those of the last cell rounded up.

    Returns what they cost, and the multiplier: the unit price at which the need is met. Without enough GPUs the cost is
    infinite.
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
    """Return ``cost (g, N + 1)`` of the cheapest GPUs of each group up to a last slot, and how many there are.

    No more than `most` ``(g,)`` of each are counted.
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
    """Fill `number` with the cheapest whole GPUs of each group that meet the need; return their cost and a bound.

    At the multiplier, a group's cost less what its progress is worth is convex in its number of GPUs, and the sum of
    their least values is the cost of divisible GPUs. Only numbers matter that are no further above than the best known
    choice is: these are searched in depth, and the number of the group with most of them follows from the others. The
    bound is ``-inf`` where there is too much to search.
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
    if best <= bound + DONE * abs(bound):
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
    """Search the numbers of GPUs of all groups in depth; see :func:`cheapest`."""
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
    """Fill ``low`` and ``high`` ``(c, T)`` with the GPUs that a job has to and can hold, by what branching decided."""
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
    """Price jobs in copies.

    Parameters
    ----------
    prices, capacity
        ``(c, T)`` prices of GPUs by class of servers, and how many are free.
    which
        Jobs to price.
    jobs
        Of all jobs: arrival slots, work, and ``(n, c)`` iterations of one GPU in a slot and the most GPUs of a class.
    worth, floor
        ``(n, T)`` utilities by last slot, ``(n,)`` what payoffs must beat.
    uses
        ``(4, u)`` job, row, least and most GPUs of it.
    out
        ``most (w,)`` payoff at most, ``by_end (w, T)`` the same by last slot, and columns behind one another: ``held
        (w,)`` where the entries of each job end, and their ``cell`` and ``gpus``.

    Returns
    -------
    int
        Number of entries; -1 if they do not fit into the arrays.
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
        ends_divisible(prices, low, high, arrival[j], work[j], progress[j], worth[j], paid)
        group, pace = groups_of(progress[j])
        need = work[j] * (1 - DONE) - (low.sum(axis=1) * progress[j]).sum()
        offer = Offer(prices, low, high, cells_by_unit(prices, low, high, arrival[j], progress[j]), group, pace)
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
    """Return the end that may pay most of those that have not been tried and may pay more than `least`; -1 for none."""
    found = -1
    for t in range(len(paid)):
        if not tried[t] and paid[t] > least:
            least, found = paid[t], t
    return found


@njit(cache=True)
def bought(offer, last, number, cell, gpus, entries):  # type: ignore[no-untyped-def]
    """Write the cells of a column: what has to be held, and the cheapest of each group; return where they end."""
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
