"""Compiled loops: placing gangs on types and servers, checking assignments, and advancing the work of a round.

Imported only when a policy is built or a simulation starts, because importing numba is slow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import ROUNDING, SLACK, Array, Bools, Ints
from schedgap.instances.clock import njit
from schedgap.instances.sensitivity import Profiles

compiled = njit(cache=True)

HELD = (1 + SLACK) * (1 + ROUNDING)
"""Factor by which the CPUs or memory that jobs hold may exceed those of a server.

Policies round the optima of models, which are exact to :data:`SLACK`; checkers accept a little more.
"""

JOB, SERVER, NO_GPU, TWICE, ABSENT, OVER, GANG, COPY, UNABLE, CPUS, MEMORY, TYPES, SHARE = range(1, 14)
"""Codes of what can be wrong with an assignment; 0 means that it is valid."""


class Entries(NamedTuple):
    """Entries ``(entries,)`` of an assignment: job, server and GPUs, sorted by job and server."""

    job: Ints
    server: Ints
    gpus: Ints


class AssignmentLimits(NamedTuple):
    """The data of jobs and servers against which assignments are checked.

    These are the ``(n,)`` gang sizes, the ``(n, k)`` rates of one GPU, the ``(n,)`` seconds per iteration that gangs
    over several servers lose to the network, the ``(h,)`` types, GPUs, CPUs and gigabytes of servers, and the
    ``(k, 3)`` most GPUs, CPUs and gigabytes that a server of each type has.
    """

    gang: Ints
    rates: Array
    exchange_s: Array
    server_type: Ints
    server_gpus: Ints
    cpus: Array
    memory_gb: Array
    largest: Array


class Holdings(NamedTuple):
    """The GPUs that running jobs hold in a round.

    `server` and `gpus` are those of the entries, sorted by job and server; `first` is the first entry of each running
    job, and `jobs` its number.
    """

    server: Ints
    gpus: Ints
    first: Ints
    jobs: Ints


class Progress(NamedTuple):
    """The progress of all jobs, ``(n,)`` each: iterations left, GPU-seconds received, completion and first start."""

    remaining: Array
    attained_s: Array
    completion_s: Array
    first_start_s: Array


@compiled
def fits(usage: Ints, free: Ints) -> bool:
    """Return whether the GPUs `usage` ``(k,)`` of each type are free."""
    enough = True
    for r in range(free.size):
        enough &= usage[r] <= free[r]
    return enough


@compiled
def grant(row: int, option: int, chosen: Ints, usage: Ints, free: Ints) -> int:
    """Let a gang that has no option yet take `option` if its GPUs are free; return the number of GPUs it takes.

    The number is 0 if the gang takes nothing; it never takes option −1. `chosen` and `free` are changed.
    """
    if option < 0 or chosen[row] >= 0 or not fits(usage[row, option], free):
        return 0
    chosen[row] = option
    free -= usage[row, option]
    return int(usage[row, option].sum())


@compiled
def take(rows: Ints, options: Ints, usage: Ints, free: Ints, in_turn: bool) -> Ints:
    """Serve pairs ``(p,)`` of gang and option in order; return the options ``(a,)`` that gangs take, −1 for none.

    A gang takes its first option that fits. Options use `usage` ``(a, k + 1, k)`` GPUs of those that are `free`
    ``(k,)``, which is changed in place. A gang without a fitting option is skipped; if gangs are served `in_turn`, it
    ends the search instead, and the pairs of a gang must be adjacent.
    """
    chosen = np.full(usage.shape[0], -1, np.int64)
    left = free.sum()
    for p in range(rows.size):
        if left == 0 or (in_turn and p > 0 and rows[p] != rows[p - 1] and chosen[rows[p - 1]] < 0):
            break
        left -= grant(rows[p], options[p], chosen, usage, free)
    return chosen


@compiled
def take_anywhere(rows: Ints, held: Ints, allowed: Ints, usage: Ints, free: Ints, wanted: Array, ties: Array) -> Ints:
    """Serve the gangs `rows` in order; each keeps its option of the previous round or takes the one of highest value.

    `held` ``(a,)`` are the options of the previous round, −1 for none, which gangs keep if they fit; `allowed`
    ``(a, k + 1)`` marks the options in which a gang can run. The value of an option is `wanted` ``(a, k + 1)`` or, if
    that is empty, the number of free GPUs of its types; the higher entry of `ties` wins among equal values.
    """
    chosen = np.full(usage.shape[0], -1, np.int64)
    for row in rows:
        best, most = -1, 0.0
        for option in range(usage.shape[1]):
            if not allowed[row, option] or not fits(usage[row, option], free):
                continue
            if option == held[row]:
                best = option
                break
            value = wanted[row, option] if wanted.size else float(free[usage[row, option] > 0].sum())
            if best < 0 or value > most or (value == most and ties[row, option] > ties[row, best]):
                best, most = option, value
        if best >= 0:
            chosen[row] = best
            free -= usage[row, best]
    return chosen


@compiled
def stayers(position: Ints, need: Ints, held: Entries, server_type: Ints) -> Bools:
    """Return the ``(g,)`` mask of gangs that need as many GPUs of each type as they held in the previous round."""
    missing = need.copy()
    for e in range(held.job.size):
        g = position[held.job[e]]
        if g >= 0:
            missing[g, server_type[held.server[e]]] -= held.gpus[e]
    stays = np.ones(need.shape[0], np.bool_)
    for g in range(need.shape[0]):
        stays[g] = not missing[g].any()
    return stays


@compiled
def tightest(kind: int, wanted: int, free: Ints, server_type: Ints) -> int:
    """Return the fullest server of a type with enough free GPUs or, if there is none, the one with the most."""
    best = -1
    for h in range(free.size):
        if server_type[h] != kind or free[h] == 0:
            continue
        enough = best >= 0 and free[best] >= wanted
        if best < 0 or (enough and wanted <= free[h] < free[best]) or (not enough and free[h] > free[best]):
            best = h
    return best


@compiled
def place(jobs: Ints, need: Ints, size: int, held: Entries, server_type: Ints, server_gpus: Ints) -> Ints:
    """Place gangs on servers; return ``(entries, 3)`` job, server and GPUs.

    Gangs that need as many GPUs of each type as in the previous round stay where they are. The other gangs follow, the
    largest first, each on the fullest server with enough GPUs. What all gangs `need` ``(g, k)`` together must fit the
    cluster. `held` is the previous assignment in any order, `size` the number of all jobs.
    """
    free = server_gpus.copy()
    position = np.full(size, -1, np.int64)
    for g in range(jobs.size):
        position[jobs[g]] = g
    stays = stayers(position, need, held, server_type)
    entries = np.empty((need.sum(), 3), np.int64)
    count = 0
    for e in range(held.job.size):
        g = position[held.job[e]]
        if g >= 0 and stays[g]:
            entries[count] = held.job[e], held.server[e], held.gpus[e]
            free[held.server[e]] -= held.gpus[e]
            count += 1
    for g in np.argsort(-need.sum(axis=1), kind="mergesort"):
        for r in range(0 if stays[g] else need.shape[1]):
            wanted = need[g, r]
            while wanted > 0:
                best = tightest(r, wanted, free, server_type)
                entries[count] = jobs[g], best, min(free[best], wanted)
                free[best] -= entries[count, 2]
                wanted -= entries[count, 2]
                count += 1
    return entries[:count]


@compiled
def entries_fault(entries: Entries, present: Bools, server_gpus: Ints) -> tuple[int, int]:  # noqa: PLR0911
    """Check entries without gangs and rates; return the fault code, 0 if valid, and the job or server at fault."""
    job, server, gpus = entries
    if job.size and not 0 <= job.min() <= job.max() < present.size:
        return JOB, -1
    if server.size and not 0 <= server.min() <= server.max() < server_gpus.size:
        return SERVER, -1
    if gpus.size and gpus.min() < 1:
        return NO_GPU, -1
    used = np.zeros(server_gpus.size, np.int64)
    for e in range(job.size):
        used[server[e]] += gpus[e]
        if e and job[e] == job[e - 1] and server[e] == server[e - 1]:
            return TWICE, job[e]
        if not present[job[e]]:
            return ABSENT, job[e]
    for h in range(server_gpus.size):
        if used[h] > server_gpus[h]:
            return OVER, h
    return 0, -1


@compiled
def examine(
    entries: Entries, present: Bools, limits: AssignmentLimits, spread_factor: float, forks: bool
) -> tuple[int, int, Ints, Array, Bools]:
    """Check an assignment's entries, and compute the rates of the jobs that run.

    `present` ``(n,)`` marks active jobs. Returns the fault code (0: valid) and the job or server at fault; the
    ``(g + 1,)`` first entries of the running jobs; their ``(g,)`` rates in iterations per second; and the ``(g,)`` mask
    of gangs on several types.
    """
    job, server, gpus = entries
    first = np.zeros(job.size + 1, np.int64)
    rate, mixed = np.zeros(job.size), np.zeros(job.size, np.bool_)
    fault, where = entries_fault(entries, present, limits.server_gpus)
    g, begin = 0, 0
    while fault == 0 and begin < job.size:
        end, j = begin, job[begin]
        width, slowest, total, largest = 0, np.inf, 0.0, 0
        while end < job.size and job[end] == j:
            kind = limits.server_type[server[end]]
            width += gpus[end]
            slowest = min(slowest, limits.rates[j, kind])
            total += gpus[end] * limits.rates[j, kind]
            largest = max(largest, gpus[end])
            mixed[g] |= kind != limits.server_type[server[begin]]
            end += 1
        over_network = spread_factor / (1 + slowest * limits.exchange_s[j]) if end - begin > 1 else 1.0
        rate[g] = total if forks else slowest * width * over_network
        mixed[g] &= not forks
        if forks and largest > limits.gang[j]:
            fault, where = COPY, j
        elif not forks and width != limits.gang[j]:
            fault, where = GANG, j
        elif rate[g] <= 0:
            fault, where = UNABLE, j
        g += 1
        first[g] = begin = end
    return fault, where, first[: g + 1], rate[:g], mixed[:g]


@compiled
def moved(now: Holdings, g: int, before: Holdings, old: int) -> bool:
    """Return whether a job holds other GPUs `now` (as gang `g`) than in the round `before` (as gang `old`)."""
    entries = now.first[g + 1] - now.first[g]
    if entries != before.first[old + 1] - before.first[old]:
        return True
    for e in range(entries):
        here, there = now.first[g] + e, before.first[old] + e
        if now.server[here] != before.server[there] or now.gpus[here] != before.gpus[there]:
            return True
    return False


@compiled
def advance(
    now: Holdings,
    before: Holdings,
    width: Ints,
    rate: Array,
    clock: tuple[float, float, float, float],
    leave_s: Array,
    progress: Progress,
) -> tuple[int, Bools, Array, Array]:
    """Advance the running jobs by one round: restarts first, then work, until the job is done or the round ends.

    `width` and `rate` ``(g,)`` are GPUs and iterations per second of the running jobs. `clock` holds the start of the
    round, its length, the cost of a restart, and the relative rounding error up to which work counts as done.
    `progress` is changed in place. Returns the number of restarts, the ``(g,)`` mask of completed jobs, their
    iterations, and their seconds of computing.
    """
    jobs, old_jobs = now.jobs, before.jobs
    start_s, round_s, restart_s, rounding = clock
    remaining, attained_s, completion_s, first_start_s = progress
    done = np.zeros(jobs.size, np.bool_)
    iterations, busy_s = np.zeros(jobs.size), np.zeros(jobs.size)
    restarts, old = 0, 0
    for g in range(jobs.size):
        j = jobs[g]
        overhead_s = 0.0
        while old < old_jobs.size and old_jobs[old] < j:
            old += 1
        ran = old < old_jobs.size and old_jobs[old] == j
        if attained_s[j] > 0 and (not ran or moved(now, g, before, old)):
            overhead_s = restart_s
            restarts += 1
        useful_s = max(min(start_s + round_s, leave_s[j]) - start_s - overhead_s, 0.0)
        needed_s = remaining[j] / rate[g]
        done[g] = needed_s <= useful_s * (1 + rounding)
        if done[g]:
            busy_s[g], iterations[g] = needed_s, remaining[j]
            completion_s[j] = start_s + overhead_s + needed_s
        else:
            busy_s[g], iterations[g] = useful_s, rate[g] * useful_s
        remaining[j] -= iterations[g]
        attained_s[j] += width[g] * busy_s[g]
        if np.isnan(first_start_s[j]):
            first_start_s[j] = start_s
    return restarts, done, iterations, busy_s


@compiled
def level(levels: Array, amount: float) -> int:
    """Return the index of the highest of ascending levels that is at most an amount, −1 if there is none."""
    at = -1
    while at + 1 < levels.size and levels[at + 1] <= amount * (1 + ROUNDING):
        at += 1
    return at


@compiled
def speeds(
    entries: Entries, cpus: Array, memory_gb: Array, first: Ints, limits: AssignmentLimits, tables: Profiles
) -> tuple[int, int, Array]:
    """Check the CPUs and memory of valid entries, and compute how they change the rates of gangs.

    The GPU with the fewest CPUs and the one with the least memory set the pace of the whole gang. A gang may have at
    most the CPUs and memory of as many of the largest servers as its GPUs need: profiles and bounds go no further.

    `cpus` and `memory_gb` are those of the entries, `first` ``(g + 1,)`` the first entries of the gangs. Returns the
    fault code (0: valid), the job or server at fault, and the ``(g,)`` factors on ``gang · rate of one GPU``.
    """
    job, server, gpus = entries
    types, hosts = limits.server_type, limits.server_type.size
    speed = np.zeros(first.size - 1)
    used_cpus, used_memory = np.zeros(hosts), np.zeros(hosts)
    for e in range(job.size):
        used_cpus[server[e]] += cpus[e]
        used_memory[server[e]] += memory_gb[e]
    for h in range(hosts):
        if used_cpus[h] > limits.cpus[h] * HELD:
            return CPUS, h, speed
        if used_memory[h] > limits.memory_gb[h] * HELD:
            return MEMORY, h, speed
    for g in range(first.size - 1):
        j, r = job[first[g]], types[server[first[g]]]
        gang, kind, least_cpus, least_memory = limits.gang[j], tables.kind[j], np.inf, np.inf
        all_cpus, all_memory = 0.0, 0.0
        for e in range(first[g], first[g + 1]):
            if types[server[e]] != r:
                return TYPES, j, speed
            least_cpus = min(least_cpus, cpus[e] / gpus[e])
            least_memory = min(least_memory, memory_gb[e] / gpus[e])
            all_cpus += cpus[e]
            all_memory += memory_gb[e]
        most = np.ceil(gang / limits.largest[r, 0]) * HELD
        if all_cpus > most * limits.largest[r, 1] or all_memory > most * limits.largest[r, 2]:
            return SHARE, j, speed
        a = level(tables.cpus[kind], least_cpus * gang)
        b = level(tables.memory_gb[kind], least_memory * gang)
        if a >= 0 and b >= 0:
            speed[g] = tables.rate[kind, r, a, b] / (gang * limits.rates[j, r])
    return 0, -1, speed
