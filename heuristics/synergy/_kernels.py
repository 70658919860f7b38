"""Compiled loops of :mod:`schedgap.heuristics.synergy`: they place gangs with CPUs and memory on servers.

Imported only when a policy is built, because importing numba is slow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import ROUNDING, Array, Bools, Ints
from schedgap.instances.clock import njit
from schedgap.instances.sensitivity import Profiles

compiled = njit(cache=True)


class SynergyHosts(NamedTuple):
    """The servers: their GPU types and free GPUs ``(h,)``, and their free and total CPUs and gigabytes ``(h, 2)``."""

    types: Ints
    free: Ints
    left: Array
    capacity: Array


class PlacedGangs(NamedTuple):
    """The gangs of a round, some of them placed, with the CPUs and gigabytes that they hold.

    `gpus` ``(m,)`` are gang sizes. `amount` and `base` ``(m, 2)`` are the CPUs and gigabytes that a gang holds, and
    those to which it can fall back; one that has `fallen` ``(m,)`` holds its base. `entries` are gang, server and GPUs;
    their count is kept separately.
    """

    gpus: Ints
    amount: Array
    base: Array
    fallen: Bools
    entries: Ints


@compiled
def fits(hosts: SynergyHosts, h: int, gpus: int, want: Array) -> bool:
    """Return whether server `h` has `gpus` free GPUs, and the CPUs and gigabytes of `want`."""
    enough = hosts.free[h] >= gpus
    for r in range(2):
        enough &= hosts.left[h, r] + ROUNDING * hosts.capacity[h, r] >= want[r]
    return bool(enough)


@compiled
def whole(hosts: SynergyHosts, kind: int, gpus: int, want: Array, tight: bool) -> int:
    """Return one server of a type on which a whole gang fits, −1 if there is none.

    With `tight` it is the fullest such server (fewest free GPUs, then CPUs, then memory), otherwise the first.
    """
    free, left, best = hosts.free, hosts.left, -1
    for h in range(free.size):
        if hosts.types[h] != kind or not fits(hosts, h, gpus, want):
            continue
        same = best >= 0 and free[h] == free[best]
        fuller = same and (left[h, 0] < left[best, 0] or (left[h, 0] == left[best, 0] and left[h, 1] < left[best, 1]))
        if best < 0 or free[h] < free[best] or fuller:
            best = h
        if not tight:
            return best
    return best


@compiled
def room(hosts: SynergyHosts, h: int, gpus: int, want: Array) -> int:
    """Return how many of a gang's GPUs fit on server `h` if each GPU brings its part of the gang's CPUs and memory."""
    most = min(hosts.free[h], gpus)
    for r in range(2):
        if want[r] > 0:
            parts = (hosts.left[h, r] + ROUNDING * hosts.capacity[h, r]) * gpus / want[r]
            most = min(most, int(max(parts, 0.0)))
    return int(most)


@compiled
def split(hosts: SynergyHosts, kind: int, gpus: int, want: Array, parts: Ints) -> int:
    """Spread a gang over the fewest servers of a type; return the number of `parts` (server, GPUs), 0 if none fits.

    Each GPU keeps its part of the gang's CPUs and memory. The servers with the most room come first; the last one is
    the fullest that has room for the rest.
    """
    free, left = hosts.free, hosts.left
    count, missing = 0, gpus
    taken = np.zeros(free.size, np.bool_)
    while missing > 0:
        best, most = -1, 0
        for h in range(free.size):
            here = 0
            if hosts.types[h] == kind and not taken[h] and free[h] > 0:
                here = room(hosts, h, gpus, want)
            if here == 0:
                continue
            enough, had = here >= missing, most >= missing
            tighter = best >= 0 and (free[h] < free[best] or (free[h] == free[best] and left[h, 0] < left[best, 0]))
            if best < 0 or (enough and (not had or tighter)) or (not enough and not had and here > most):
                best, most = h, here
        if best < 0:
            return 0
        parts[count] = best, min(most, missing)
        missing -= parts[count, 1]
        taken[best] = True
        count += 1
    return count


@compiled
def locate(hosts: SynergyHosts, kind: int, gpus: int, want: Array, tight: bool, parts: Ints) -> int:
    """Find one server for a gang or, if there is none, the fewest servers; return the number of `parts`, 0 for none."""
    h = whole(hosts, kind, gpus, want, tight)
    if h >= 0:
        parts[0] = h, gpus
        return 1
    return 0 if gpus == 1 else split(hosts, kind, gpus, want, parts)


@compiled
def hold(hosts: SynergyHosts, gangs: PlacedGangs, p: int, count: int, amount: Array) -> None:
    """Take CPUs and memory from the servers of gang `p`, in proportion to its GPUs there; give back if negative."""
    for e in range(count):
        if gangs.entries[e, 0] == p:
            for r in range(2):
                hosts.left[gangs.entries[e, 1], r] -= amount[r] * gangs.entries[e, 2] / gangs.gpus[p]


@compiled
def reclaim(hosts: SynergyHosts, gangs: PlacedGangs, h: int, count: int) -> bool:
    """Let gangs on server `h` fall back to their base, until they hold no more CPUs and memory than the server has.

    Gangs furthest above their base fall first. Returns whether a gang that fell now holds more CPUs or more memory than
    before: then its other servers may be overfull.
    """
    entries, left, capacity, more = gangs.entries, hosts.left, hosts.capacity, False
    while left[h, 0] < -ROUNDING * capacity[h, 0] or left[h, 1] < -ROUNDING * capacity[h, 1]:
        best, most = -1, 0.0
        for e in range(count):
            p = entries[e, 0]
            if entries[e, 1] != h or gangs.fallen[p]:
                continue
            for r in range(2):
                excess = (gangs.amount[p, r] - gangs.base[p, r]) * entries[e, 2] / gangs.gpus[p]
                if excess > 0 and capacity[h, r] > 0 and excess / capacity[h, r] > most:
                    best, most = p, excess / capacity[h, r]
        if best < 0:
            break
        change = gangs.base[best] - gangs.amount[best]
        more = more or change.max() > 0
        hold(hosts, gangs, best, count, change)
        gangs.amount[best] = gangs.base[best]
        gangs.fallen[best] = True
    return more


@compiled
def reclaim_all(hosts: SynergyHosts, gangs: PlacedGangs, count: int) -> None:
    """Let gangs fall back until no server is overfull.

    This ends, because gangs that all hold at most their shares fit on every server.
    """
    more = True
    while more:
        more = False
        for h in range(hosts.free.size):
            more = reclaim(hosts, gangs, h, count) or more


@compiled
def put(hosts: SynergyHosts, gangs: PlacedGangs, p: int, parts: Ints, found: int, count: int) -> int:
    """Place gang `p`: append its parts to the first `count` entries, take what it holds, and return the new count."""
    for i in range(found):
        h, part = parts[i]
        gangs.entries[count + i] = p, h, part
        hosts.free[h] -= part
        for r in range(2):
            hosts.left[h, r] -= gangs.amount[p, r] * part / gangs.gpus[p]
    return count + found


@compiled
def pack(
    gpus: Ints, options: Ints, want: Array, base: Array, tight: bool, fungible: bool, servers: SynergyHosts
) -> tuple[Ints, Array]:
    """Place ``(m,)`` gangs in order; return ``(entries, 3)`` gang, server and GPUs, and the ``(m, 2)`` amounts held.

    A gang takes the first of its GPU types (`options` ``(m, o)`` by preference, −1 for none) on which its demand `want`
    ``(m, o, 2)`` of CPUs and gigabytes fits: best fit if `tight`, otherwise first fit. A gang that fits on no type is
    skipped, unless demands are `fungible` (Synergy-Tune). Then it falls back to its `base` ``(m, o, 2)`` on the first
    type; if that does not fit either, it is placed by GPUs alone, and gangs above their base on its servers fall back.
    The `servers` must be empty and are not changed.
    """
    hosts = SynergyHosts(servers.types, servers.free.copy(), servers.left.copy(), servers.capacity)
    nothing = np.zeros(2)
    bare = SynergyHosts(hosts.types, hosts.free, np.zeros(hosts.left.shape), hosts.capacity)
    fallen, entries = np.zeros(gpus.size, np.bool_), np.empty((gpus.sum(), 3), np.int64)
    gangs = PlacedGangs(gpus, np.zeros((gpus.size, 2)), base[:, 0].copy(), fallen, entries)
    parts = np.empty((hosts.free.size, 2), np.int64)
    total, count = hosts.free.sum(), 0
    for p in range(gpus.size):
        found, o = 0, 0
        while total > 0 and found == 0 and o < options.shape[1] and options[p, o] >= 0:
            found = locate(hosts, options[p, o], gpus[p], want[p, o], tight, parts)
            gangs.amount[p], gangs.base[p] = want[p, o], base[p, o]
            o += 1
        if found == 0 and fungible:
            fallen[p], gangs.amount[p], gangs.base[p] = True, base[p, 0], base[p, 0]
            found = locate(hosts, options[p, 0], gpus[p], base[p, 0], tight, parts)
            if found == 0:
                found = locate(bare, options[p, 0], gpus[p], nothing, tight, parts)
        total -= gpus[p] if found else 0
        count = put(hosts, gangs, p, parts, found, count)
        more = False
        for i in range(found):
            more = reclaim(hosts, gangs, parts[i, 0], count) or more
        if more:
            reclaim_all(hosts, gangs, count)
    return entries[:count], gangs.amount


@compiled
def occupied(servers: SynergyHosts, gangs: PlacedGangs) -> SynergyHosts:
    """Return the servers with the CPUs and memory that placed gangs hold taken, but with all GPUs free."""
    left = servers.left.copy()
    for p, h, part in gangs.entries:
        for r in range(2):
            left[h, r] -= gangs.amount[p, r] * part / gangs.gpus[p]
    return SynergyHosts(servers.types, servers.free, left, servers.capacity)


@compiled
def settle(entries: Ints, gpus: Ints, amount: Array, base: Array, servers: SynergyHosts) -> Array:
    """Let placed gangs on overfull servers fall back to their base; return the ``(m, 2)`` amounts that all gangs hold.

    `entries` ``(entries, 3)`` are gang, server and GPUs; `amount` and `base` ``(m, 2)`` are CPUs and gigabytes.
    """
    gangs = PlacedGangs(gpus, amount.copy(), base, np.zeros(gpus.size, np.bool_), entries)
    hosts = occupied(servers, gangs)
    reclaim_all(hosts, gangs, len(entries))
    return gangs.amount


@compiled
def spare(hosts: SynergyHosts, gangs: PlacedGangs, p: int, r: int) -> float:
    """Return how much of resource `r` gang `p` could hold: what it holds, plus what its servers have left for it."""
    most = np.inf
    for q, h, part in gangs.entries:
        if q == p:
            most = min(most, hosts.left[h, r] * gangs.gpus[p] / part)
    return float(gangs.amount[p, r] + max(most, 0.0))


@compiled
def refill(
    entries: Ints,
    gpus: Ints,
    amount: Array,
    want: Array,
    servers: SynergyHosts,
    kind: Ints,
    types: Ints,
    tables: Profiles,
) -> Array:
    """Let placed gangs, one after another, take CPUs and memory that are left on their servers; return what they hold.

    The result ``(m, 2)`` are CPUs and gigabytes, as `amount` and `want`. Of the levels between what it has and what it
    wants, a gang takes the one at which it is fastest; ties go to the fewest CPUs and the least memory. `entries` and
    `amount` are those of :func:`pack` with every gang placed; `kind` and `types` ``(m,)`` are the kinds of gangs and
    their GPU types.
    """
    gangs = PlacedGangs(gpus, amount.copy(), want, np.zeros(gpus.size, np.bool_), entries)
    hosts = occupied(servers, gangs)
    for p in range(gpus.size):
        held = gangs.amount[p]
        if held[0] >= want[p, 0] and held[1] >= want[p, 1]:
            continue
        cpus = min(want[p, 0], spare(hosts, gangs, p, 0)) * (1 + ROUNDING)
        memory = min(want[p, 1], spare(hosts, gangs, p, 1)) * (1 + ROUNDING)
        best, more, rate = -1.0, np.zeros(2), tables.rate[kind[p], types[p]]
        for i, x in enumerate(tables.cpus[kind[p]]):
            for k, y in enumerate(tables.memory_gb[kind[p]]):
                within = held[0] <= x * (1 + ROUNDING) and x <= cpus and held[1] <= y * (1 + ROUNDING) and y <= memory
                if within and rate[i, k] > best * (1 + ROUNDING):
                    best, more[0], more[1] = rate[i, k], x - held[0], y - held[1]
        held += more
        hold(hosts, gangs, p, len(entries), more)
    return gangs.amount


@compiled
def alignment(hosts: SynergyHosts, server_gpus: Ints, h: int, gpus: int, want: Array) -> float:
    """Return Tetris's alignment ``Σ_r demand_r · free_r`` of a gang with server `h`, over GPUs, CPUs and memory.

    Demand and free amounts are fractions of the server.
    """
    score = gpus * hosts.free[h] / server_gpus[h] ** 2
    for r in range(2):
        if hosts.capacity[h, r] > 0:
            score += want[r] * hosts.left[h, r] / hosts.capacity[h, r] ** 2
    return float(score)


@compiled
def spot(
    hosts: SynergyHosts, server_gpus: Ints, gpus: int, options: Ints, want: Array, scratch: Ints, parts: Ints
) -> tuple[float, int, int]:
    """Find the servers with which a gang is best aligned; return the alignment, the option, and the number of `parts`.

    The number is 0 if the gang fits nowhere. If it fits on no single server of a type, its alignment is the mean over
    its parts on the fewest servers, weighted by GPUs.
    """
    highest, option, found = -np.inf, -1, 0
    for o in range(options.size):
        if options[o] < 0:
            break
        alone = False
        for h in range(hosts.types.size):
            if hosts.types[h] == options[o] and fits(hosts, h, gpus, want[o]):
                alone = True
                score = alignment(hosts, server_gpus, h, gpus, want[o])
                if score > highest:
                    highest, option, found = score, o, 1
                    parts[0] = h, gpus
        if alone or gpus == 1:
            continue
        pieces = split(hosts, options[o], gpus, want[o], scratch)
        score = 0.0
        for h, part in scratch[:pieces]:
            score += part / gpus * alignment(hosts, server_gpus, h, part, want[o] * part / gpus)
        if pieces and score > highest:
            highest, option, found = score, o, pieces
            parts[:pieces] = scratch[:pieces]
    return highest, option, found


@compiled
def align(
    gpus: Ints, options: Ints, want: Array, penalty: Array, first: Ints, servers: SynergyHosts
) -> tuple[Ints, Array]:
    """Place gangs by Tetris: repeatedly place the gang with the largest score on the servers that attain it.

    The score is the alignment, ``Σ_r demand_r · free_r`` as fractions of the server, minus the gang's `penalty` for its
    remaining work. Gangs of a group are alike, so only the one of least penalty can be next: gangs are sorted by group,
    then by ascending penalty, and group ``k`` starts at ``first[k]``. Other arguments are those of :func:`pack`.
    """
    hosts = SynergyHosts(servers.types, servers.free.copy(), servers.left.copy(), servers.capacity)
    amount = np.zeros((gpus.size, 2))
    gangs = PlacedGangs(gpus, amount, amount, np.zeros(gpus.size, np.bool_), np.empty((gpus.sum(), 3), np.int64))
    shape = hosts.types.size, 2
    scratch, parts, chosen = np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape, np.int64)
    following = first[:-1].copy()
    total, count = hosts.free.sum(), 0
    while total > 0:
        best, option, found, highest = -1, -1, 0, -np.inf
        for k in range(following.size):
            p = following[k]
            if p == first[k + 1]:
                continue
            score, o, pieces = spot(hosts, servers.free, gpus[p], options[p], want[p], scratch, parts)
            if pieces == 0:
                # A gang that does not fit now will not fit later: servers only fill up.
                following[k] = first[k + 1]
            elif score - penalty[p] > highest:
                best, option, found, highest = k, o, pieces, score - penalty[p]
                chosen[:pieces] = parts[:pieces]
        if best < 0:
            break
        p = following[best]
        following[best] += 1
        amount[p] = want[p, option]
        total -= gpus[p]
        count = put(hosts, gangs, p, chosen, found, count)
    return gangs.entries[:count], amount


@compiled
def improve_types(gpus: Ints, worth: Array, types: Ints, capacity: Ints) -> Ints:
    """Improve a valid choice of GPU types: move gangs to better types, and let pairs swap types, while that helps.

    `worth` ``(m, k)`` is the value of each gang on each type, negative where it cannot run.
    """
    found, free = types.copy(), capacity.copy()
    for p in range(gpus.size):
        free[found[p]] -= gpus[p]
    better = True
    while better:
        better = False
        for p in range(gpus.size):
            for i in range(capacity.size):
                if free[i] >= gpus[p] and worth[p, i] > worth[p, found[p]] * (1 + ROUNDING):
                    free[found[p]] += gpus[p]
                    free[i] -= gpus[p]
                    found[p], better = i, True
            for q in range(p):
                a, b = found[p], found[q]
                if a == b or worth[p, b] < 0 or worth[q, a] < 0:
                    continue
                if free[a] + gpus[p] < gpus[q] or free[b] + gpus[q] < gpus[p]:
                    continue
                if worth[p, b] + worth[q, a] > (worth[p, a] + worth[q, b]) * (1 + ROUNDING):
                    free[a] += gpus[p] - gpus[q]
                    free[b] += gpus[q] - gpus[p]
                    found[p], found[q], better = b, a, True
    return found


@compiled
def choose_types(gpus: Ints, worth: Array, types: Ints, capacity: Ints) -> Ints:
    """Choose the GPU types of gangs so that their total value is large.

    Gangs that lose most per GPU on their worst type are assigned first, each to its best type with room. If some gang
    finds no room, the valid choice `types` is used instead. Then :func:`improve_types` improves the choice.
    """
    regret = np.empty(gpus.size)
    for p in range(gpus.size):
        regret[p] = (worth[p].max() - max(worth[p].min(), 0.0)) / gpus[p]
    found, free = types.copy(), capacity.copy()
    for p in np.argsort(-regret, kind="mergesort"):
        best = -1
        for i in range(capacity.size):
            if free[i] >= gpus[p] and worth[p, i] >= 0 and (best < 0 or worth[p, i] > worth[p, best]):
                best = i
        if best < 0:
            return improve_types(gpus, worth, types, capacity)
        found[p] = best
        free[best] -= gpus[p]
    return improve_types(gpus, worth, found, capacity)
