"""Compiled parts of Hadar (utilities, FIND_ALLOC of Algorithm 2, placing jobs), HadarE (copies) and Gavel (rounds)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from schedgap.heuristics.simulator._kernels import grant
from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.clock import njit
from schedgap.instances.utility import DEADLINE, SIGMOID, Utilities

SLACK = 1 - 1e-9
"""Lower bounds on a gang's cost are multiplied by this, so that rounding never lifts them above the summed cost."""


compiled = njit(cache=True, error_model="numpy")
"""Decorator that compiles a function in which division by 0 gives ``inf`` or NaN, as in numpy.

A compiled function that can raise would spend most of its time counting references.
"""


class HadarHosts(NamedTuple):
    """The ``h`` servers and their prices.

    The price of a GPU on server ``h`` with ``u`` GPUs taken is ``price[first[h] + u]``. A server with GPUs of several
    types has one entry per type, all with the same `machine`; `machine` is empty if every server has one type.
    """

    gpu_type: Ints
    gpus: Ints
    machine: Ints
    first: Ints
    price: Array


class Queue(NamedTuple):
    """The ``n`` jobs to plan on ``k`` GPU types.

    `gpus` ``(n,)`` are gang sizes, `rate` ``(n, k)`` rates, and `by_rate` ``(n, k)`` types by descending rate. For a
    gang whose slowest type is ``k``, ``(n, k)`` each: `worth` is the utility, `rounds` are the rounds until completion,
    and `paid` the rounds to pay for. Entries ``held[i]`` up to ``held[i + 1]`` of `held_server` and `held_gpus` are the
    servers and GPUs that job ``i`` holds.
    `beta` and `communication` price servers beyond the first; `by_cost` selects the cheapest allocation instead of the
    one of highest payoff; with `stop`, the first job without an allocation ends the planning.
    """

    gpus: Ints
    rate: Array
    by_rate: Ints
    worth: Array
    rounds: Array
    paid: Array
    held: Ints
    held_server: Ints
    held_gpus: Ints
    beta: float
    communication: float
    by_cost: bool
    stop: bool


IDLE, WHERE, THERE = range(3)
"""Columns of :attr:`States.kinds`."""


class States(NamedTuple):
    """The ``m`` states of the cluster that the search compares, one per row.

    `used` ``(m, h)`` counts the GPUs taken on each server, `price` ``(m, k)`` is the lowest price of an idle GPU of
    each type. `kinds` ``(m, k, 3)`` holds for each type the number of idle GPUs, the first server of lowest price, and
    the idle GPUs there.
    """

    used: Ints
    price: Array
    kinds: Ints


@compiled
def states(rows, servers, types):  # type: ignore[no-untyped-def]
    """Return arrays for `rows` states whose numbers are not set yet."""
    return States(np.empty((rows, servers), np.int64), np.empty((rows, types)), np.empty((rows, types, 3), np.int64))


@compiled
def utility(utilities, j, duration_s):  # type: ignore[no-untyped-def]
    """Return the utility of job `j` if it completes `duration_s` after its arrival.

    The result equals that of ``Utilities.value`` bit for bit.
    """
    a, b, c = utilities.a[j], utilities.b[j], utilities.c[j]
    if utilities.shape[j] == SIGMOID:
        return a * (1.0 / (1.0 + math.exp(b * (duration_s - c))))
    if utilities.shape[j] == DEADLINE:
        late = 0.0 if duration_s <= b else (duration_s - b) / c
        return a * (1.0 - min(late, 1.0))
    return a / duration_s


@compiled
def worths(utilities, jobs, waited, rounds, most, slot_s):  # type: ignore[no-untyped-def]
    """Return the ``(q, k)`` utilities of `jobs` that complete after `rounds` ``(q, k)`` more; 0 for more than `most`.

    `waited` ``(q,)`` is the number of rounds since each job's arrival.
    """
    worth = np.zeros(rounds.shape)
    for i in range(jobs.size):
        for k in range(rounds.shape[1]):
            if rounds[i, k] <= most:
                worth[i, k] = utility(utilities, jobs[i], (waited[i] + rounds[i, k]) * slot_s)
    return worth


@compiled
def copy(source, target, count):  # type: ignore[no-untyped-def]
    """Copy the first `count` numbers of `source` to `target`; slice assignment would take seconds longer to compile."""
    for i in range(count):
        target[i] = source[i]


@compiled
def survey(hosts, states, s):  # type: ignore[no-untyped-def]
    """Compute `price` and `kinds` of state `s` from its `used`."""
    used, price, kinds = states
    gpu_type, gpus, _, first, prices = hosts
    for r in range(price.shape[1]):
        price[s, r] = np.inf
        kinds[s, r, IDLE], kinds[s, r, WHERE], kinds[s, r, THERE] = 0, -1, 0
    for h in range(gpus.size):
        r, room = gpu_type[h], gpus[h] - used[s, h]
        if room > 0:
            kinds[s, r, IDLE] += room
            asked = prices[first[h] + used[s, h]]
            if asked < price[s, r]:
                price[s, r], kinds[s, r, WHERE], kinds[s, r, THERE] = asked, h, room


@compiled
def state(hosts, queue, used):  # type: ignore[no-untyped-def]
    """Return the state in which the GPUs `used` ``(h,)`` are taken."""
    one, first = states(np.int64(1), used.size, queue.rate.shape[1]), np.int64(0)
    copy(used, one.used[first], used.size)
    survey(hosts, one, first)
    return one


@compiled
def allocate(hosts, rate, least, need, packed, used, server, gpus):  # type: ignore[no-untyped-def]
    """Choose `need` GPUs of rate `least` or more for a gang: on the fewest servers if `packed`, otherwise the cheapest.

    Ties go to the faster type. Returns the number of servers, 0 if the gang does not fit, and the cost of a round; the
    servers and their GPUs are written to `server` and `gpus`. Every chosen server but the last is used up. If a server
    has several types, all its GPUs that are fast enough count as its room, and a server once opened is used up first.
    `used` is changed and restored.
    """
    gpu_type, all_gpus, machine, first, prices = hosts
    count, cost, opened = 0, 0.0, -1
    free = np.zeros(machine.size if packed else 0, np.int64)
    for h in range(free.size):
        if rate[gpu_type[h]] >= least:
            free[machine[h]] += all_gpus[h] - used[h]
    while need > 0:
        best, best_price, best_room, best_rate = -1, np.inf, 0, 0.0
        for h in range(all_gpus.size):
            idle, pace = all_gpus[h] - used[h], rate[gpu_type[h]]
            if idle <= 0 or pace < least:
                continue
            price = prices[first[h] + used[h]]
            room = 1
            if free.size:
                room = need + 1 if machine[h] == opened else min(free[machine[h]], need)
            elif packed:
                room = min(idle, need)
            cheaper = price < best_price or (price == best_price and pace > best_rate)
            if room > best_room or (room == best_room and cheaper):
                best, best_price, best_room, best_rate = h, price, room, pace
        if best < 0:
            break
        taken = min(need, all_gpus[best] - used[best])
        opened = machine[best] if free.size else -1
        server[count], gpus[count] = best, taken
        used[best] += taken
        cost += best_price * taken
        need -= taken
        count += 1
    for i in range(count):
        used[server[i]] -= gpus[i]
    return (count, cost) if need == 0 else (0, 0.0)


@compiled
def payoff(worth, paid, cost, hosts, queue, server, count, gang):  # type: ignore[no-untyped-def]
    """Return the payoff of an allocation on the first `count` entries of `server` that costs `cost` per round."""
    if queue.beta + queue.communication == 0 or count < 2:
        return worth - paid * cost
    apart = 0
    for a in range(count):
        known = False
        for b in range(a):
            known = known or (hosts.machine.size > 0 and hosts.machine[server[a]] == hosts.machine[server[b]])
        apart += not known
    each = queue.beta * cost / gang + queue.communication
    return worth - paid * (cost + (apart - 1) * each)


@compiled
def keep(hosts, queue, i, used, scratch):  # type: ignore[no-untyped-def]
    """Return the number of servers, the slowest type and the payoff if job `i` keeps the GPUs that it holds.

    The number is 0 if the job holds none, or if some of them are taken. The servers and their GPUs are written to the
    first two rows of `scratch`.
    """
    begin, end = queue.held[i], queue.held[i + 1]
    slowest, cost = np.int64(-1), 0.0
    if begin == end:
        return 0, slowest, -np.inf
    for e in range(begin, end):
        h = queue.held_server[e]
        if hosts.gpus[h] - used[h] < queue.held_gpus[e]:
            return 0, -1, -np.inf
        r = hosts.gpu_type[h]
        if slowest < 0 or queue.rate[i, r] < queue.rate[i, slowest]:
            slowest = r
        cost += hosts.price[hosts.first[h] + used[h]] * queue.held_gpus[e]
        scratch[0, e - begin], scratch[1, e - begin] = h, queue.held_gpus[e]
    servers, worth, paid = end - begin, queue.worth[i, slowest], queue.paid[i, slowest]
    return servers, slowest, payoff(worth, paid, cost, hosts, queue, scratch[0], servers, queue.gpus[i])


@compiled
def cheapest(rate, k, price, kinds, s):  # type: ignore[no-untyped-def]
    """Return the number of idle GPUs at least as fast as type `k`, and the type of the cheapest of them.

    Ties go to the faster type, then to the first server. The number is 0 if the rate of type `k` is 0.
    """
    room, best = 0, k
    if rate[k] > 0:
        for r in range(rate.size):
            if rate[r] >= rate[k]:
                room += kinds[s, r, IDLE]
                sooner = rate[r] == rate[best] and kinds[s, r, WHERE] < kinds[s, best, WHERE]
                if price[s, r] < price[s, best] or (price[s, r] == price[s, best] and (rate[r] > rate[best] or sooner)):
                    best = r
    return room, best


@compiled
def glance(gang, rate, by_rate, worth, paid, price, kinds, s, least):  # type: ignore[no-untyped-def]
    """Try to answer FIND_ALLOC, for a job that holds nothing, with one server alone.

    If the cheapest server has room for the whole gang, that allocation is both the cheapest and the one on the fewest
    servers. Returns the server, the slowest type and the payoff (-1, -1, `least` if no payoff exceeds `least`), and
    whether the answer is final: it is not if a type whose cheapest server is too small could pay more. Tables are
    passed one by one, because unpacking tuples would take most of the time.
    """
    server, slowest, best = -1, -1, least
    for k in by_rate:
        room, r = cheapest(rate, k, price, kinds, s)
        if room < gang or worth[k] - paid[k] * (gang * price[s, r] * SLACK) <= best:
            continue
        if kinds[s, r, THERE] < gang:
            return -1, -1, least, False
        value = worth[k] - paid[k] * (price[s, r] * gang)
        if value > best:
            server, slowest, best = kinds[s, r, WHERE], k, value
    return server, slowest, best, True


@compiled
def find_cheapest(hosts, queue, i, used, scratch):  # type: ignore[no-untyped-def]
    """Return what :func:`find` returns, for the cheapest allocation whatever its rate (lines 28 to 31 as printed)."""
    servers, slowest, least, pays = 0, np.int64(-1), np.inf, -np.inf
    rate, gang = queue.rate[i], queue.gpus[i]
    for k in queue.by_rate[i]:
        for packed in (True, False):
            if rate[k] <= 0:
                continue
            count, cost = allocate(hosts, rate, rate[k], gang, packed, used, scratch[2], scratch[3])
            asked = -payoff(0.0, 1.0, cost, hosts, queue, scratch[2], count, gang)
            if count and asked < least:
                servers, slowest, least = count, k, asked
                pays = payoff(queue.worth[i, k], queue.paid[i, k], cost, hosts, queue, scratch[2], count, gang)
                copy(scratch[2], scratch[0], count)
                copy(scratch[3], scratch[1], count)
    return servers, slowest, pays


@compiled
def find(hosts, queue, i, states, s, scratch):  # type: ignore[no-untyped-def]
    """Find the best allocation of job `i` in state `s` (FIND_ALLOC).

    Returns its number of servers, its slowest type and its payoff; the servers and their GPUs are written to the first
    two rows of `scratch` ``(4, h)``. Types are tried by descending rate; ties go to the first. The allocation that the
    job holds is replaced only if the best (or cheapest) one has a higher payoff and an earlier end.
    """
    gang, rate, worth, paid, rounds = queue.gpus[i], queue.rate[i], queue.worth[i], queue.paid[i], queue.rounds[i]
    used, price, kinds = states.used[s], states.price, states.kinds
    servers, slowest, best = keep(hosts, queue, i, used, scratch)
    if queue.by_cost:
        count, k, value = find_cheapest(hosts, queue, i, used, scratch)
        if not servers or (value > best and rounds[k] < rounds[slowest]):
            return count, k, value
        return keep(hosts, queue, i, used, scratch)
    if not servers:
        scratch[0, 0], slowest, best, sure = glance(gang, rate, queue.by_rate[i], worth, paid, price, kinds, s, -np.inf)
        if sure:
            scratch[1, 0] = gang
            return (1 if slowest >= 0 else 0), slowest, best
    limit = rounds[slowest] if servers else np.inf
    for k in queue.by_rate[i]:
        room, r = cheapest(rate, k, price, kinds, s)
        if room < gang or rounds[k] >= limit or worth[k] - paid[k] * (gang * price[s, r] * SLACK) <= best:
            continue
        for packed in (True, False):
            count, cost = allocate(hosts, rate, rate[k], gang, packed, used, scratch[2], scratch[3])
            value = payoff(worth[k], paid[k], cost, hosts, queue, scratch[2], count, gang)
            if value > best:
                servers, slowest, best = count, k, value
                copy(scratch[2], scratch[0], count)
                copy(scratch[3], scratch[1], count)
    return servers, slowest, best


@compiled
def payoffs(hosts, queue, used):  # type: ignore[no-untyped-def]
    """Return the ``(n,)`` payoffs of the best allocations of all jobs, and the rounds that the jobs then take.

    Each job is tried alone with the GPUs `used` taken; the payoff is ``-inf`` if it does not fit.
    """
    states, first, scratch = state(hosts, queue, used), np.int64(0), np.empty((4, used.size), np.int64)
    best, rounds = np.empty(queue.gpus.size), np.ones(queue.gpus.size)
    for i in range(best.size):
        servers, slowest, best[i] = find(hosts, queue, i, states, first, scratch)
        if servers:
            rounds[i] = queue.rounds[i, slowest]
    return best, rounds


@compiled
def place(hosts, queue, chosen, used):  # type: ignore[no-untyped-def]
    """Place the `chosen` jobs one after another by :func:`find`; return ``(entries, 3)`` job, server and GPUs."""
    states, first, scratch = state(hosts, queue, used), np.int64(0), np.empty((4, used.size), np.int64)
    table = np.empty((hosts.gpus.sum(), 3), np.int64)
    rows = 0
    for i in chosen:
        servers, _, _ = find(hosts, queue, i, states, first, scratch)
        for e in range(servers):
            table[rows, 0], table[rows, 1], table[rows, 2] = i, scratch[0, e], scratch[1, e]
            states.used[0, scratch[0, e]] += scratch[1, e]
            rows += 1
        if servers:
            survey(hosts, states, first)
    return table[:rows]


PORTION, ALL, ADDED = range(3)
"""What the payoff of a copy is about (:attr:`Forking.about`): its portion of the steps, all steps of its job, or what
it adds to the payoff of its job's copies together."""


class Forking(NamedTuple):
    """The ``a`` jobs of a round that HadarE forks into copies.

    `gpus`, `remaining` and `waited_s` ``(a,)`` are gang sizes, iterations left and seconds since arrival; `rate`
    ``(a, k)`` holds the tracker's estimates, and `portions` ``(a,)`` the throughput of all portions of a job. `copies`
    is the most copies of a job, and `about` what the payoff of a copy is about.
    """

    gpus: Ints
    remaining: Array
    waited_s: Array
    rate: Array
    portions: Array
    utilities: Utilities
    copies: int
    about: int


class Copies(NamedTuple):
    """The copies that HadarE has placed so far in a round.

    `gpus` ``(a, h)`` are the GPUs of each job's copy on each server, `number` ``(a,)`` counts a job's copies. A job's
    copies together have `rate`, `cost` per slot and `payoff` ``(a,)``.
    """

    gpus: Ints
    number: Ints
    rate: Array
    cost: Array
    payoff: Array


@compiled
def gain(hosts, jobs, copies, used, slot_s, i, h):  # type: ignore[no-untyped-def]
    """Return the payoff that a copy of job `i` on server `h` adds, and its GPUs; ``-inf`` if no copy is possible."""
    gpus = min(jobs.gpus[i], hosts.gpus[h] - used[h])
    own = gpus * jobs.rate[i, hosts.gpu_type[h]]
    if own <= 0 or copies.gpus[i, h] > 0 or copies.number[i] >= jobs.copies:
        return -np.inf, 0
    pace = jobs.portions[i] if jobs.about == PORTION else copies.rate[i] + own
    left = jobs.remaining[i] / pace / slot_s
    if jobs.about != ADDED:
        left = max(math.ceil(left * (1 - ROUNDING)), 1.0)
    paid = 1.0 if jobs.about == PORTION else left
    cost = copies.cost[i] + gpus * hosts.price[hosts.first[h] + used[h]]
    worth = utility(jobs.utilities, i, jobs.waited_s[i] + left * slot_s)
    return worth - paid * cost - copies.payoff[i], gpus


@compiled
def best_server(hosts, jobs, copies, used, slot_s, i):  # type: ignore[no-untyped-def]
    """Return the largest payoff that another copy of job `i` adds, and the server on which it adds that much.

    Ties go to the copy of larger throughput, then to the first server.
    """
    most, where, fastest = -np.inf, -1, 0.0
    for h in range(used.size):
        added, gpus = gain(hosts, jobs, copies, used, slot_s, i, h)
        own = gpus * jobs.rate[i, hosts.gpu_type[h]]
        if added > most or (added == most and own > fastest):
            most, where, fastest = added, h, own
    return most, where


@compiled
def fork(hosts, jobs, slot_s):  # type: ignore[no-untyped-def]
    """Place copies one by one, always the one that adds the largest payoff, until no copy is possible.

    Ties go to the first job, and then as :func:`best_server` says. Returns the ``(copies, 3)`` table of
    job, server and GPUs, in order of placement.

    `most` holds, for each job, an upper bound on the payoff that its next copy adds; the bound is exact if `where`
    names a server. Placing a copy changes the GPUs and the price of its own server only. So a bound changes only if it
    comes from this server, or if a copy on this server now adds more (with fewer GPUs it can). A bound is made exact
    when it is the highest.
    """
    count, used = jobs.gpus.size, np.zeros(hosts.gpus.size, np.int64)
    held, number = np.zeros((count, used.size), np.int64), np.zeros(count, np.int64)
    copies = Copies(held, number, np.zeros(count), np.zeros(count), np.zeros(count))
    most, where = np.empty(count), np.empty(count, np.int64)
    for i in range(count):
        most[i], where[i] = best_server(hosts, jobs, copies, used, slot_s, i)
    table, rows = np.empty((hosts.gpus.sum(), 3), np.int64), 0
    while True:
        i = int(most.argmax())
        if most[i] == -np.inf:
            return table[:rows]
        if where[i] < 0:
            most[i], where[i] = best_server(hosts, jobs, copies, used, slot_s, i)
            continue
        h = where[i]
        added, gpus = gain(hosts, jobs, copies, used, slot_s, i, h)
        copies.gpus[i, h] = gpus
        copies.number[i] += 1
        if jobs.about == ADDED:
            copies.rate[i] += gpus * jobs.rate[i, hosts.gpu_type[h]]
            copies.cost[i] += gpus * hosts.price[hosts.first[h] + used[h]]
            copies.payoff[i] += added
        used[h] += gpus
        table[rows, 0], table[rows, 1], table[rows, 2] = i, h, gpus
        rows += 1
        most[i], where[i] = np.inf, -1
        for j in range(count):
            added, _ = gain(hosts, jobs, copies, used, slot_s, j, h)
            if where[j] == h or added >= most[j]:
                most[j], where[j] = max(most[j], added), -1


NEW = 1e9
"""Factor on the share of a pair of job and option that has received no round yet, as in Gavel's code."""


@compiled
def serve(rows, options, shares, jobs, by_rate, rounds, received, usage, free):  # type: ignore[no-untyped-def]
    """Serve a round of Gavel: return the ``(n,)`` options in which jobs run, −1 for none, and count the rounds.

    The pairs ``(p,)`` of job and option are served by descending ``share · rounds / rounds received``. Leftover GPUs go
    to the present `jobs` in order, each on the fastest type with room (`by_rate` ``(n, k + 1)``, −1 for none). `rounds`
    ``(n,)``, `received` ``(n, k + 1)`` and `free` ``(k,)`` are changed in place.
    """
    priority = np.empty(rows.size)
    for p in range(rows.size):
        got = received[rows[p], options[p]]
        priority[p] = shares[p] * (rounds[rows[p]] / got if got > 0 else NEW)
    chosen, left = np.full(usage.shape[0], -1, np.int64), free.sum()
    for p in np.argsort(-priority, kind="mergesort"):
        if left > 0:
            left -= grant(rows[p], options[p], chosen, usage, free)
    for j in jobs:
        for k in range(by_rate.shape[1] if left > 0 else 0):
            left -= grant(j, by_rate[j, k], chosen, usage, free)
        rounds[j] += 1
        if chosen[j] >= 0:
            received[j, chosen[j]] += 1
    return chosen
