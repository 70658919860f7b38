"""Compiled loops of :mod:`schedgap.heuristics.synergy`: gangs with CPUs and memory onto servers.

Imported when a policy is built, because numba takes a while.
Signatures are given, so that they are compiled, or loaded from the cache, then and not in the first measured round.
"""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.clock import njit

SLACK = 1e-9
"""Relative CPUs or memory that a fit may exceed what is free by, so that thirds of a server fit three times."""


@njit("b1(i8, f8, f8, i8, i8[::1], f8[:, ::1], f8[:, ::1])", cache=True)
def fits(gpus: int, cpus: float, memory: float, h: int, free: Ints, left: Array, capacity: Array) -> bool:
    """Return whether server `h` has so many free GPUs, CPUs and gigabytes."""
    enough = free[h] >= gpus
    enough &= left[h, 0] + SLACK * capacity[h, 0] >= cpus
    enough &= left[h, 1] + SLACK * capacity[h, 1] >= memory
    return bool(enough)


@njit("i8(i8, i8, f8, f8, b1, i8[::1], i8[::1], f8[:, ::1], f8[:, ::1])", cache=True)
def whole(
    kind: int, gpus: int, cpus: float, memory: float, tight: bool, types: Ints, free: Ints, left: Array, capacity: Array
) -> int:
    """Return a server of a type that holds the whole demand, −1 for none.

    The fullest one where it is to be `tight` (the fewest free GPUs, then CPUs, then memory), otherwise the first.
    """
    best = -1
    for h in range(types.size):
        if types[h] != kind or not fits(gpus, cpus, memory, h, free, left, capacity):
            continue
        same = best >= 0 and free[h] == free[best]
        fuller = same and (left[h, 0] < left[best, 0] or (left[h, 0] == left[best, 0] and left[h, 1] < left[best, 1]))
        if best < 0 or free[h] < free[best] or fuller:
            best = h
        if not tight:
            return best
    return best


@njit("i8(i8, f8, f8, i8, i8[::1], f8[:, ::1], f8[:, ::1])", cache=True)
def room(gpus: int, cpus: float, memory: float, h: int, free: Ints, left: Array, capacity: Array) -> int:
    """Return how many of a gang's GPUs server `h` has room for, each with its part of the CPUs and memory."""
    most = min(free[h], gpus)
    for r in range(2):
        wanted = cpus if r == 0 else memory
        if wanted > 0:
            parts = (left[h, r] + SLACK * capacity[h, r]) * gpus / wanted
            most = min(most, int(max(parts, 0.0)))
    return int(most)


@njit("i8(i8, i8, f8, f8, i8[::1], i8[::1], f8[:, ::1], f8[:, ::1], i8[:, ::1])", cache=True)
def split(
    kind: int,
    gpus: int,
    cpus: float,
    memory: float,
    types: Ints,
    free: Ints,
    left: Array,
    capacity: Array,
    parts: Ints,
) -> int:
    """Spread a gang over the fewest servers of a type; each GPU keeps its part of the CPUs and memory.

    The servers with the most room come first; the last one is the fullest that has room for the rest.

    Returns
    -------
    int
        Number of `parts` (server, GPUs) written; 0 where the gang does not fit.
    """
    count, missing = 0, gpus
    taken = np.zeros(types.size, np.bool_)
    while missing > 0:
        best, most = -1, 0
        for h in range(types.size):
            if types[h] != kind or taken[h] or free[h] == 0:
                continue
            here = room(gpus, cpus, memory, h, free, left, capacity)
            if here == 0:
                continue
            enough, had = here >= missing, most >= missing
            tighter = best >= 0 and (free[h] < free[best] or (free[h] == free[best] and left[h, 0] < left[best, 0]))
            if best < 0 or (enough and (not had or tighter)) or (not enough and not had and here > most):
                best, most = h, here
        if best < 0:
            return 0
        parts[count, 0], parts[count, 1] = best, min(most, missing)
        missing -= parts[count, 1]
        taken[best] = True
        count += 1
    return count


@njit("i8(i8, i8, f8, f8, b1, i8[::1], i8[::1], f8[:, ::1], f8[:, ::1], i8[:, ::1])", cache=True)
def locate(
    kind: int,
    gpus: int,
    cpus: float,
    memory: float,
    tight: bool,
    types: Ints,
    free: Ints,
    left: Array,
    capacity: Array,
    parts: Ints,
) -> int:
    """Find one server for a gang, or the fewest for more than one GPU; returns the number of `parts`, 0 for none."""
    h = whole(kind, gpus, cpus, memory, tight, types, free, left, capacity)
    if h >= 0:
        parts[0, 0], parts[0, 1] = h, gpus
        return 1
    return 0 if gpus == 1 else split(kind, gpus, cpus, memory, types, free, left, capacity, parts)


@njit(
    "i8(i8, i8, i8[:, ::1], i8[::1], f8[:, ::1], f8[:, ::1], b1[::1], f8[:, ::1])",
    cache=True,
)
def most_over(
    h: int, count: int, entries: Ints, gpus: Ints, amount: Array, base: Array, fallen: Bools, capacity: Array
) -> int:
    """Return the gang on server `h` that holds most above its base there, −1 for none above it."""
    best, most = -1, 0.0
    for e in range(count):
        if entries[e, 1] != h or fallen[entries[e, 0]]:
            continue
        p = entries[e, 0]
        over = 0.0
        for r in range(2):
            excess = (amount[p, r] - base[p, r]) * entries[e, 2] / gpus[p]
            if excess > 0 and capacity[h, r] > 0:
                over = max(over, excess / capacity[h, r])
        if over > most:
            best, most = p, over
    return best


@njit("void(i8, i8, i8[:, ::1], i8[::1], f8[:, ::1], f8[:, ::1], b1[::1], f8[:, ::1])", cache=True)
def fall_back(
    p: int, count: int, entries: Ints, gpus: Ints, amount: Array, base: Array, fallen: Bools, left: Array
) -> None:
    """Give a gang its base only, and free the rest on all its servers."""
    for e in range(count):
        if entries[e, 0] == p:
            for r in range(2):
                left[entries[e, 1], r] += (amount[p, r] - base[p, r]) * entries[e, 2] / gpus[p]
    amount[p] = base[p]
    fallen[p] = True


@njit(
    "void(i8, i8, i8[:, ::1], i8[::1], f8[:, ::1], f8[:, ::1], b1[::1], f8[:, ::1], f8[:, ::1])",
    cache=True,
)
def reclaim(
    h: int,
    count: int,
    entries: Ints,
    gpus: Ints,
    amount: Array,
    base: Array,
    fallen: Bools,
    left: Array,
    capacity: Array,
) -> None:
    """Let gangs on an overfull server fall back, those most over their base first, until it holds what is on it."""
    while left[h, 0] < -SLACK * capacity[h, 0] or left[h, 1] < -SLACK * capacity[h, 1]:
        p = most_over(h, count, entries, gpus, amount, base, fallen, capacity)
        if p < 0:
            return
        fall_back(p, count, entries, gpus, amount, base, fallen, left)


@njit(
    "i8(i8, i8, i8[:, ::1], i8, i8[:, ::1], i8[::1], f8[:, ::1], i8[::1], f8[:, ::1])",
    cache=True,
)
def put(
    p: int,
    found: int,
    parts: Ints,
    count: int,
    entries: Ints,
    gpus: Ints,
    amount: Array,
    free: Ints,
    left: Array,
) -> int:
    """Write the parts of gang `p` as entries after the first `count`, take what they hold; returns the new count."""
    for i in range(found):
        h, part = parts[i]
        entries[count + i] = p, h, part
        free[h] -= part
        for r in range(2):
            left[h, r] -= amount[p, r] * part / gpus[p]
    return count + found


@njit(
    "Tuple((i8[:, ::1], f8[:, ::1]))(i8[::1], i8[:, ::1], f8[:, :, ::1], f8[:, :, ::1], b1, b1,"
    "i8[::1], i8[::1], f8[:, ::1])",
    cache=True,
)
def pack(
    gpus: Ints,
    options: Ints,
    want: Array,
    base: Array,
    tight: bool,
    fungible: bool,
    types: Ints,
    server_gpus: Ints,
    capacity: Array,
) -> tuple[Ints, Array]:
    """Place gangs in order.

    A gang takes the first of its GPU types on which its demand fits. Where it fits on none and demands are `fungible`
    (Synergy-Tune), it falls back to its base on the first type; where that does not fit either, it is placed by GPUs
    alone, and gangs above their base on its servers fall back. Otherwise it is passed over.

    Parameters
    ----------
    gpus
        ``(m,)`` gangs, in the order in which they are placed.
    options
        ``(m, o)`` GPU types that each may use, by preference; −1 for none.
    want, base
        ``(m, o, 2)`` CPUs and gigabytes wanted, and to fall back to.
    tight
        Best fit; otherwise first fit.
    types, server_gpus, capacity
        ``(h,)`` GPU types and GPUs of servers, ``(h, 2)`` CPUs and gigabytes.

    Returns
    -------
    tuple
        ``(entries, 3)`` number of the gang, server, GPUs; ``(m, 2)`` what each gang holds in all.
    """
    free, left, unasked = server_gpus.copy(), capacity.copy(), np.zeros(capacity.shape)
    parts, entries = np.empty((types.size, 2), np.int64), np.empty((gpus.sum(), 3), np.int64)
    amount, floor = np.zeros((gpus.size, 2)), base[:, 0].copy()
    fallen = np.zeros(gpus.size, np.bool_)
    total, count = free.sum(), 0
    for p in range(gpus.size):
        found, o = 0, 0
        while total > 0 and found == 0 and o < options.shape[1] and options[p, o] >= 0:
            cpus, memory = want[p, o]
            found = locate(options[p, o], gpus[p], cpus, memory, tight, types, free, left, capacity, parts)
            amount[p], floor[p] = want[p, o], base[p, o]
            o += 1
        if found == 0 and fungible:
            fallen[p], amount[p], floor[p] = True, base[p, 0], base[p, 0]
            cpus, memory = base[p, 0]
            found = locate(options[p, 0], gpus[p], cpus, memory, tight, types, free, left, capacity, parts)
            if found == 0:
                found = locate(options[p, 0], gpus[p], 0.0, 0.0, tight, types, free, unasked, capacity, parts)
        total -= gpus[p] if found else 0
        count = put(p, found, parts, count, entries, gpus, amount, free, left)
        for i in range(found):
            reclaim(parts[i, 0], count, entries, gpus, amount, floor, fallen, left, capacity)
    return entries[:count], amount


@njit("f8[:, ::1](i8[:, ::1], i8[::1], f8[:, ::1], f8[:, ::1], f8[:, ::1])", cache=True)
def settle(entries: Ints, gpus: Ints, amount: Array, base: Array, capacity: Array) -> Array:
    """Return what gangs that are already placed hold when those on overfull servers fall back.

    Parameters
    ----------
    entries
        ``(entries, 3)`` number of the gang, server, GPUs.
    gpus, amount, base
        ``(m,)`` gangs; ``(m, 2)`` CPUs and gigabytes that each would hold, and those to fall back to.
    capacity
        ``(h, 2)`` CPUs and gigabytes of servers.
    """
    held, left = amount.copy(), capacity.copy()
    fallen = np.zeros(gpus.size, np.bool_)
    for e in range(len(entries)):
        p, h, part = entries[e]
        for r in range(2):
            left[h, r] -= held[p, r] * part / gpus[p]
    for h in range(len(capacity)):
        reclaim(h, len(entries), entries, gpus, held, base, fallen, left, capacity)
    return held


@njit("f8(i8, i8, i8[:, ::1], i8[::1], f8[::1], f8[:, ::1], i8)", cache=True)
def spare(p: int, r: int, entries: Ints, gpus: Ints, held: Array, left: Array, count: int) -> float:
    """Return how much of resource `r` gang `p` could hold in all: what it has, and its servers have left."""
    most = np.inf
    for e in range(count):
        if entries[e, 0] == p:
            most = min(most, left[entries[e, 1], r] * gpus[p] / entries[e, 2])
    return float(held[r] + max(most, 0.0))


@njit(
    "f8[:, ::1](i8[:, ::1], i8[::1], f8[:, ::1], f8[:, ::1], f8[:, ::1], i8[::1], i8[::1], f8[:, ::1], f8[:, ::1],"
    "f8[:, :, :, ::1])",
    cache=True,
)
def refill(
    entries: Ints,
    gpus: Ints,
    amount: Array,
    want: Array,
    capacity: Array,
    kind: Ints,
    types: Ints,
    cpu_levels: Array,
    memory_levels: Array,
    rate: Array,
) -> Array:
    """Return what placed gangs hold when servers' leftovers are given out, to one gang after the other.

    A gang takes the level at which it is fastest among those between what it has and what it wants, the fewest CPUs and
    the least memory of equals.

    Parameters
    ----------
    entries, gpus, amount, capacity
        As :func:`pack` returns and takes them; every gang is placed, and served in the order given.
    want
        ``(m, 2)`` CPUs and gigabytes at which a gang is fastest.
    kind, types
        ``(m,)`` kinds of gangs and the GPU types that they run on.
    cpu_levels, memory_levels, rate
        Tables by kind, see :class:`schedgap.instances.sensitivity.Profiles`.
    """
    held, left = amount.copy(), capacity.copy()
    for e in range(len(entries)):
        for r in range(2):
            left[entries[e, 1], r] -= held[entries[e, 0], r] * entries[e, 2] / gpus[entries[e, 0]]
    for p in range(gpus.size):
        if held[p, 0] >= want[p, 0] and held[p, 1] >= want[p, 1]:
            continue
        cpus = min(want[p, 0], spare(p, 0, entries, gpus, held[p], left, len(entries))) * (1 + SLACK)
        memory = min(want[p, 1], spare(p, 1, entries, gpus, held[p], left, len(entries))) * (1 + SLACK)
        best, a, b = -1.0, -1, -1
        for i in range(cpu_levels.shape[1]):
            for k in range(memory_levels.shape[1]):
                x, y = cpu_levels[kind[p], i], memory_levels[kind[p], k]
                within = held[p, 0] <= x * (1 + SLACK) and x <= cpus and held[p, 1] <= y * (1 + SLACK) and y <= memory
                if within and rate[kind[p], types[p], i, k] > best * (1 + SLACK):
                    best, a, b = rate[kind[p], types[p], i, k], i, k
        if a < 0:
            continue
        for r in range(2):
            more = (cpu_levels[kind[p], a] if r == 0 else memory_levels[kind[p], b]) - held[p, r]
            held[p, r] += more
            for e in range(len(entries)):
                if entries[e, 0] == p:
                    left[entries[e, 1], r] -= more * entries[e, 2] / gpus[p]
    return held


@njit("f8(i8, f8[::1], i8, i8[::1], f8[:, ::1], i8[::1], f8[:, ::1])", cache=True)
def alignment(gpus: int, want: Array, h: int, free: Ints, left: Array, server_gpus: Ints, capacity: Array) -> float:
    """Return ``Σ_r demand_r · free_r`` over GPUs, CPUs and memory, in parts of server `h`."""
    score = gpus * free[h] / server_gpus[h] ** 2
    for r in range(2):
        if capacity[h, r] > 0:
            score += want[r] * left[h, r] / capacity[h, r] ** 2
    return float(score)


@njit(
    "Tuple((f8, i8, i8))(i8, i8[::1], f8[:, ::1], i8[::1], i8[::1], f8[:, ::1], i8[::1], f8[:, ::1],"
    "i8[:, ::1], i8[:, ::1])",
    cache=True,
)
def spot(
    gpus: int,
    options: Ints,
    want: Array,
    types: Ints,
    free: Ints,
    left: Array,
    server_gpus: Ints,
    capacity: Array,
    scratch: Ints,
    parts: Ints,
) -> tuple[float, int, int]:
    """Return the best alignment of a gang, its option, and the number of `parts` there; 0 parts where it fits nowhere.

    A gang that fits on no single server of a type has the mean alignment of its parts on the fewest, by their GPUs.
    """
    highest, option, found = -np.inf, -1, 0
    for o in range(options.size):
        if options[o] < 0:
            break
        cpus, memory = want[o]
        alone = False
        for h in range(types.size):
            if types[h] == options[o] and fits(gpus, cpus, memory, h, free, left, capacity):
                alone = True
                score = alignment(gpus, want[o], h, free, left, server_gpus, capacity)
                if score > highest:
                    highest, option, found = score, o, 1
                    parts[0, 0], parts[0, 1] = h, gpus
        if alone or gpus == 1:
            continue
        pieces = split(options[o], gpus, cpus, memory, types, free, left, capacity, scratch)
        score = 0.0
        for i in range(pieces):
            h, part = scratch[i]
            score += part / gpus * alignment(part, want[o] * part / gpus, h, free, left, server_gpus, capacity)
        if pieces and score > highest:
            highest, option, found = score, o, pieces
            parts[:pieces] = scratch[:pieces]
    return highest, option, found


@njit(
    "Tuple((i8[:, ::1], f8[:, ::1]))(i8[::1], i8[:, ::1], f8[:, :, ::1], f8[::1], i8[::1], i8[::1], i8[::1],"
    "f8[:, ::1])",
    cache=True,
)
def align(
    gpus: Ints,
    options: Ints,
    want: Array,
    penalty: Array,
    first: Ints,
    types: Ints,
    server_gpus: Ints,
    capacity: Array,
) -> tuple[Ints, Array]:
    """Place gangs by Tetris: always the gang and servers with the largest score of those that fit.

    The score is the alignment, ``Σ_r demand_r · free_r`` in parts of the server, less the gang's `penalty` for its
    remaining work. Of gangs of one group, which are alike, only the one with the least penalty can be next.

    Parameters
    ----------
    gpus, options, want, types, server_gpus, capacity
        As in :func:`pack`; gangs group by group, within a group by ascending penalty.
    penalty
        ``(m,)``.
    first
        ``(groups + 1,)`` where each group begins.
    """
    free, left = server_gpus.copy(), capacity.copy()
    scratch, parts = np.empty((types.size, 2), np.int64), np.empty((types.size, 2), np.int64)
    chosen = np.empty((types.size, 2), np.int64)
    entries, amount = np.empty((gpus.sum(), 3), np.int64), np.zeros((gpus.size, 2))
    following = first[:-1].copy()
    total, count = free.sum(), 0
    while total > 0:
        best, option, found, highest = -1, -1, 0, -np.inf
        for k in range(following.size):
            p = following[k]
            if p == first[k + 1]:
                continue
            score, o, pieces = spot(
                gpus[p], options[p], want[p], types, free, left, server_gpus, capacity, scratch, parts
            )
            if pieces == 0:
                # What does not fit now will not fit later: servers only fill up.
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
        count = put(p, found, chosen, count, entries, gpus, amount, free, left)
    return entries[:count], amount


@njit("i8[::1](i8[::1], f8[:, ::1], i8[::1], i8[::1])", cache=True)
def improve_types(gpus: Ints, worth: Array, types: Ints, capacity: Ints) -> Ints:
    """Improve GPU types of gangs by moves and exchanges until none is left.

    Parameters
    ----------
    gpus
        ``(m,)`` gangs.
    worth
        ``(m, k)`` what each is worth on each type; negative where it cannot run.
    types
        ``(m,)`` a valid choice to begin with.
    capacity
        ``(k,)`` GPUs.
    """
    found, free = types.copy(), capacity.copy()
    for p in range(gpus.size):
        free[found[p]] -= gpus[p]
    better = True
    while better:
        better = False
        for p in range(gpus.size):
            for i in range(capacity.size):
                if free[i] >= gpus[p] and worth[p, i] > worth[p, found[p]] * (1 + SLACK):
                    free[found[p]] += gpus[p]
                    free[i] -= gpus[p]
                    found[p], better = i, True
            for q in range(p):
                a, b = found[p], found[q]
                if a == b or worth[p, b] < 0 or worth[q, a] < 0:
                    continue
                if free[a] + gpus[p] < gpus[q] or free[b] + gpus[q] < gpus[p]:
                    continue
                if worth[p, b] + worth[q, a] > (worth[p, a] + worth[q, b]) * (1 + SLACK):
                    free[a] += gpus[p] - gpus[q]
                    free[b] += gpus[q] - gpus[p]
                    found[p], found[q], better = b, a, True
    return found


@njit("i8[::1](i8[::1], f8[:, ::1], i8[::1], i8[::1])", cache=True)
def choose_types(gpus: Ints, worth: Array, types: Ints, capacity: Ints) -> Ints:
    """Choose GPU types of gangs, so that they are worth much together.

    First by who would lose most per GPU on another type, each on its best type with room; where somebody finds none,
    from the choice `types`. Then by moves and exchanges.

    Parameters
    ----------
    gpus, worth, types, capacity
        As in :func:`improve_types`.
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
