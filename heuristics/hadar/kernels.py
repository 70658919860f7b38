"""Compiled parts of Hadar: FIND_ALLOC and the search over take-or-skip decisions (Algorithm 2)."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Hosts(NamedTuple):
    """``h`` servers: type, GPUs, and where the prices of each begin in `price`, by GPUs taken (0 to all)."""

    gpu_type: Ints
    gpus: Ints
    first: Ints
    price: Array


class Queue(NamedTuple):
    """``n`` jobs in the order of planning, ``k`` types.

    `gpus` ``(n,)`` of the gang; `rate` ``(n, k)``; by slowest type ``(n, k)``: `worth`, the utility, and `rounds`, the
    rounds to be paid and to be waited for; job ``i`` holds ``held_gpus`` of ``held_server`` from ``held[i]`` up to
    ``held[i + 1]``. `beta` prices communication, `lifetime` says whether all rounds are paid or one.
    """

    gpus: Ints
    rate: Array
    worth: Array
    rounds: Array
    held: Ints
    held_server: Ints
    held_gpus: Ints
    beta: float
    lifetime: bool


@numba.njit(cache=True)
def copy(source, target, count):  # type: ignore[no-untyped-def]
    """Copy the first `count` numbers (assigning slices takes seconds more to compile)."""
    for i in range(count):
        target[i] = source[i]


@numba.njit(cache=True)
def free(hosts, used):  # type: ignore[no-untyped-def]
    """Return the number of free GPUs."""
    count = 0
    for h in range(used.size):
        count += hosts.gpus[h] - used[h]
    return count


@numba.njit(cache=True)
def allocate(hosts, rate, least, need, packed, used, server, gpus):  # type: ignore[no-untyped-def]
    """Choose GPUs of rate `least` or more: fewest servers (`packed`), or cheapest.

    Returns the number of servers, written with their GPUs to `server` and `gpus`, and the cost of a round; no servers
    where the gang does not fit. `used` is changed and restored: a server once chosen is full, or the last one.
    """
    count, cost = 0, 0.0
    while need > 0:
        best, best_price, best_room = -1, np.inf, 0
        for h in range(hosts.gpus.size):
            idle = hosts.gpus[h] - used[h]
            if idle <= 0 or rate[hosts.gpu_type[h]] < least:
                continue
            price = hosts.price[hosts.first[h] + used[h]]
            room = min(idle, need) if packed else 1
            if room > best_room or (room == best_room and price < best_price):
                best, best_price, best_room = h, price, room
        if best < 0:
            break
        taken = min(need, hosts.gpus[best] - used[best])
        server[count], gpus[count] = best, taken
        used[best] += taken
        cost += best_price * taken
        need -= taken
        count += 1
    for i in range(count):
        used[server[i]] -= gpus[i]
    return (count, cost) if need == 0 else (0, 0.0)


@numba.njit(cache=True)
def payoff(queue, i, slowest, servers, cost):  # type: ignore[no-untyped-def]
    """Return the payoff of an allocation that costs that much per round."""
    communication = queue.beta * (servers - 1) * cost / queue.gpus[i]
    rounds = queue.rounds[i, slowest] if queue.lifetime else 1.0
    return queue.worth[i, slowest] - rounds * (cost + communication)


@numba.njit(cache=True)
def keep(hosts, queue, i, used, server, gpus):  # type: ignore[no-untyped-def]
    """Return servers, slowest type and payoff of what job `i` holds; no servers where it holds nothing or lost it."""
    begin, end = queue.held[i], queue.held[i + 1]
    cost, slowest = 0.0, -1
    for e in range(begin, end):
        h = queue.held_server[e]
        if hosts.gpus[h] - used[h] < queue.held_gpus[e]:
            return 0, -1, -np.inf
        r = hosts.gpu_type[h]
        if slowest < 0 or queue.rate[i, r] < queue.rate[i, slowest]:
            slowest = r
        cost += hosts.price[hosts.first[h] + used[h]] * queue.held_gpus[e]
        server[e - begin], gpus[e - begin] = h, queue.held_gpus[e]
    if slowest < 0:
        return 0, -1, -np.inf
    return end - begin, slowest, payoff(queue, i, slowest, end - begin, cost)


@numba.njit(cache=True)
def find(hosts, queue, i, used, server, gpus, try_server, try_gpus):  # type: ignore[no-untyped-def]
    """FIND_ALLOC: write the allocation of job `i` with the highest payoff; return its servers, slowest type and payoff.

    What the job holds wins against all but places with a higher payoff and an earlier end.
    """
    servers, slowest, best = keep(hosts, queue, i, used, server, gpus)
    limit = queue.rounds[i, slowest] if servers else np.inf
    for k in range(queue.rate.shape[1]):
        least = queue.rate[i, k]
        if least <= 0 or queue.rounds[i, k] >= limit:
            continue
        for packed in (True, False):
            count, cost = allocate(hosts, queue.rate[i], least, queue.gpus[i], packed, used, try_server, try_gpus)
            if not count:
                break
            value = payoff(queue, i, k, count, cost)
            if value > best:
                servers, slowest, best = count, k, value
                copy(try_server, server, count)
                copy(try_gpus, gpus, count)
    return servers, slowest, best


@numba.njit(cache=True)
def payoffs(hosts, queue, used):  # type: ignore[no-untyped-def]
    """Return the ``(n,)`` highest payoffs of all jobs, each alone in this state, and the rounds they take then.

    ``-inf`` where a job does not fit.
    """
    scratch = np.empty((4, hosts.gpus.size), np.int64)
    best, rounds = np.empty(queue.gpus.size), np.ones(queue.gpus.size)
    for i in range(best.size):
        servers, slowest, best[i] = find(hosts, queue, i, used, scratch[0], scratch[1], scratch[2], scratch[3])
        if servers:
            rounds[i] = queue.rounds[i, slowest]
    return best, rounds


@numba.njit(cache=True)
def place(hosts, queue, used, chosen):  # type: ignore[no-untyped-def]
    """Place the chosen jobs one after another where :func:`find` puts them; `used` is changed.

    Returns the ``(entries, 3)`` table of job, server and GPUs.
    """
    h = hosts.gpus.size
    scratch = np.empty((4, h), np.int64)
    table = np.empty((int(hosts.gpus.sum()), 3), np.int64)
    rows = 0
    for i in range(queue.gpus.size):
        if not chosen[i]:
            continue
        servers, _, _ = find(hosts, queue, i, used, scratch[0], scratch[1], scratch[2], scratch[3])
        for e in range(servers):
            table[rows, 0], table[rows, 1], table[rows, 2] = i, scratch[0, e], scratch[1, e]
            used[scratch[0, e]] += scratch[1, e]
            rows += 1
    return table[:rows]


@numba.njit(cache=True)
def same(a, b):  # type: ignore[no-untyped-def]
    """Whether two states are equal."""
    for h in range(a.size):  # noqa: SIM110 (compiled)
        if a[h] != b[h]:
            return False
    return True


class Layer(NamedTuple):
    """States after a job: GPUs taken ``(rows, h)``, payoffs so far, origins, and a hash table of the rows.

    The origin of a state is twice the row of its parent, plus one where the job is taken.
    """

    states: Ints
    values: Array
    origins: Ints
    table: Ints


@numba.njit(cache=True)
def insert(layer, row, value, origin, factor):  # type: ignore[no-untyped-def]
    """Put the state written to `row` into the table unless it is known; of two ways to a state the better one stays.

    Returns the row of the state and the number of rows then.
    """
    state = layer.states[row]
    key = np.uint64(0)
    for h in range(state.size):
        key += np.uint64(state[h] + 1) * factor[h]
    mask = np.uint64(layer.table.size - 1)
    slot = (key ^ (key >> np.uint64(29))) & mask
    while layer.table[slot] >= 0:
        known = layer.table[slot]
        if same(layer.states[known], state):
            if value > layer.values[known]:
                layer.values[known], layer.origins[known] = value, origin
            return known, row
        slot = (slot + np.uint64(1)) & mask
    layer.table[slot] = row
    layer.values[row], layer.origins[row] = value, origin
    return row, row + 1


@numba.njit(cache=True)
def expand(hosts, queue, i, states, values, size, greedy, factor, after):  # type: ignore[no-untyped-def]
    """Write to `after` the children of the first `size` states: job `i` taken, if its payoff is positive, or skipped.

    Returns the number of children (0 if no state can take the job), and the greedy state's child.
    """
    count, taken, greedy_child = 0, False, -1
    scratch = np.empty((4, hosts.gpus.size), np.int64)
    after.table.fill(-1)
    for s in range(size):
        servers, gain = 0, 0.0
        if free(hosts, states[s]) >= queue.gpus[i]:
            servers, _, gain = find(hosts, queue, i, states[s], scratch[0], scratch[1], scratch[2], scratch[3])
        if servers and gain > 0:
            taken = True
            copy(states[s], after.states[count], states.shape[1])
            for e in range(servers):
                after.states[count, scratch[0, e]] += scratch[1, e]
            row, count = insert(after, count, values[s] + gain, 2 * s + 1, factor)
            if s == greedy:
                greedy_child = row
        copy(states[s], after.states[count], states.shape[1])
        row, count = insert(after, count, values[s], 2 * s, factor)
        if s == greedy and greedy_child < 0:
            greedy_child = row
    return (count if taken else 0), greedy_child


@numba.njit(cache=True)
def survivors(values, count, width, greedy, kept):  # type: ignore[no-untyped-def]
    """Write to `kept` the rows of the best `width` states, the greedy one among them; return their number."""
    if count <= width:
        for row in range(count):
            kept[row] = row
        return count
    size = 0
    for row in range(count):
        if size == width and values[row] <= values[kept[size - 1]]:
            continue
        size = min(size + 1, width)
        at = size - 1
        while at > 0 and values[kept[at - 1]] < values[row]:
            kept[at] = kept[at - 1]
            at -= 1
        kept[at] = row
    for at in range(size):
        if kept[at] == greedy:
            return size
    kept[size - 1] = greedy
    return size


@numba.njit(cache=True)
def search(hosts, queue, used, width):  # type: ignore[no-untyped-def]
    """DP_allocation, forward: states after each job, equal ones merged, at most `width` kept.

    Returns which jobs to take ``(n,)``, the sum of their payoffs, the number of (job, state) pairs met, and whether
    states were dropped (if not, the result is exact).
    """
    n, h = queue.gpus.size, hosts.gpus.size
    factor = np.empty(h, np.uint64)
    for i in range(h):
        factor[i] = np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    size = 8
    while size < 8 * width:
        size *= 2
    room = 2 * width + 1
    after = Layer(np.empty((room, h), np.int64), np.empty(room), np.empty(room, np.int64), np.empty(size, np.int64))
    states, values = np.empty((width, h), np.int64), np.empty(width)
    copy(used, states[0], h)
    values[0] = 0.0
    origins, kept = np.empty((n, width), np.int64), np.empty(width, np.int64)
    size, greedy, met, dropped = 1, 0, 0, False
    for i in range(n):
        met += size
        count, child = expand(hosts, queue, i, states, values, size, greedy, factor, after)
        if not count:
            origins[i, 0] = -1
            continue
        dropped |= count > width
        size = survivors(after.values, count, width, child, kept)
        for row in range(size):
            copy(after.states[kept[row]], states[row], h)
            values[row] = after.values[kept[row]]
            origins[i, row] = after.origins[kept[row]]
            if kept[row] == child:
                greedy = row
    best = 0
    for row in range(size):
        if values[row] > values[best]:
            best = row
    return trace_back(origins, best), values[best], met, dropped


@numba.njit(cache=True)
def trace_back(origins, row):  # type: ignore[no-untyped-def]
    """Return which jobs were taken on the way to a state of the last layer; −1 stands for a job nobody could take."""
    taken = np.zeros(len(origins), np.bool_)
    for i in range(len(origins) - 1, -1, -1):
        if origins[i, 0] >= 0:
            taken[i] = origins[i, row] % 2 == 1
            row = origins[i, row] // 2
    return taken
