"""Compiled loops of the engine: check what a policy asks for, do a round's work; imported when a simulation starts.

Signatures are given, so that they are compiled, or loaded from the cache, then and not in the first measured round.
"""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.clock import njit

JOB, SERVER, NO_GPU, TWICE, ABSENT, OVER, GANG, COPY, UNABLE, CPUS, MEMORY, TYPES = range(1, 13)
"""What can be wrong with an assignment."""

SLACK = 1e-9
"""Relative CPUs or memory that sums may exceed capacity, or miss a level, by."""


@njit("Tuple((i8, i8))(UniTuple(i8[::1], 3), b1[::1], i8[::1])", cache=True)
def entries_fault(entries: tuple[Ints, Ints, Ints], present: Bools, server_gpus: Ints) -> tuple[int, int]:
    """Return what is wrong with entries sorted by job and server, 0 for nothing, and about which job or server."""
    job, server, gpus = entries
    fault, where = 0, -1
    if job.size and not 0 <= job.min() <= job.max() < present.size:
        return JOB, where
    if server.size and not 0 <= server.min() <= server.max() < server_gpus.size:
        return SERVER, where
    if gpus.size and gpus.min() < 1:
        return NO_GPU, where
    used = np.zeros(server_gpus.size, np.int64)
    for e in range(job.size):
        used[server[e]] += gpus[e]
        if fault == 0 and e and job[e] == job[e - 1] and server[e] == server[e - 1]:
            fault, where = TWICE, job[e]
        if fault == 0 and not present[job[e]]:
            fault, where = ABSENT, job[e]
    for h in range(server_gpus.size):
        if fault == 0 and used[h] > server_gpus[h]:
            fault, where = OVER, h
    return fault, where


@njit(
    "Tuple((i8, i8, i8[::1], f8[::1], b1[::1]))"
    "(UniTuple(i8[::1], 3), b1[::1], Tuple((i8[::1], f8[:, ::1], i8[::1], i8[::1])), f8, b1)",
    cache=True,
)
def examine(
    entries: tuple[Ints, Ints, Ints],
    present: Bools,
    limits: tuple[Ints, Array, Ints, Ints],
    spread_factor: float,
    forks: bool,
) -> tuple[int, int, Ints, Array, Bools]:
    """Check the entries of an assignment, and find the rates at which jobs run.

    Parameters
    ----------
    entries
        Job, server and GPUs, sorted by job and server.
    present
        ``(n,)`` which jobs are there.
    limits
        ``(n,)`` gangs, ``(n, k)`` rates of one GPU, ``(h,)`` types and GPUs of servers.
    spread_factor, forks
        See :func:`schedgap.heuristics.simulator.simulate`.

    Returns
    -------
    tuple
        What is wrong (0: nothing) and with which job or server; ``(g + 1,)`` where the entries of each running job
        begin; its rate in iterations per second; whether it is a gang of several types.
    """
    job, server, gpus = entries
    gang, rates, server_type, server_gpus = limits
    first = np.zeros(job.size + 1, np.int64)
    rate, mixed = np.zeros(job.size), np.zeros(job.size, np.bool_)
    fault, where = entries_fault(entries, present, server_gpus)
    g, begin = 0, 0
    while fault == 0 and begin < job.size:
        end, j = begin, job[begin]
        width, slowest, total, largest = 0, np.inf, 0.0, 0
        while end < job.size and job[end] == j:
            kind = server_type[server[end]]
            width += gpus[end]
            slowest = min(slowest, rates[j, kind])
            total += gpus[end] * rates[j, kind]
            largest = max(largest, gpus[end])
            mixed[g] |= kind != server_type[server[begin]]
            end += 1
        rate[g] = total if forks else slowest * width * (spread_factor if end - begin > 1 else 1.0)
        mixed[g] &= not forks
        if forks and largest > gang[j]:
            fault, where = COPY, j
        elif not forks and width != gang[j]:
            fault, where = GANG, j
        elif rate[g] <= 0:
            fault, where = UNABLE, j
        g += 1
        first[g] = begin = end
    return fault, where, first[: g + 1], rate[:g], mixed[:g]


@njit("b1(UniTuple(i8[::1], 4), i8, UniTuple(i8[::1], 4), i8)", cache=True)
def moved(now: tuple[Ints, Ints, Ints, Ints], g: int, before: tuple[Ints, Ints, Ints, Ints], old: int) -> bool:
    """Return whether gang `g` holds other GPUs than gang `old` of the previous round did."""
    server, gpus, first, _ = now
    old_server, old_gpus, old_first, _ = before
    entries = first[g + 1] - first[g]
    if entries != old_first[old + 1] - old_first[old]:
        return True
    for e in range(entries):
        here, there = first[g] + e, old_first[old] + e
        if server[here] != old_server[there] or gpus[here] != old_gpus[there]:
            return True
    return False


@njit(
    "Tuple((i8, b1[::1], f8[::1], f8[::1]))(UniTuple(i8[::1], 4), UniTuple(i8[::1], 4), i8[::1], f8[::1],"
    "UniTuple(f8, 4), f8[::1], UniTuple(f8[::1], 4))",
    cache=True,
)
def advance(
    now: tuple[Ints, Ints, Ints, Ints],
    before: tuple[Ints, Ints, Ints, Ints],
    width: Ints,
    rate: Array,
    clock: tuple[float, float, float, float],
    leave_s: Array,
    progress: tuple[Array, Array, Array, Array],
) -> tuple[int, Bools, Array, Array]:
    """Do a round's work.

    Parameters
    ----------
    now, before
        Servers and GPUs of the entries sorted by job and server, where those of each running job begin, and these ``g``
        jobs; of this round and the previous one.
    width, rate
        ``(g,)`` GPUs and iterations per second.
    clock
        Start of the round, its length, what a changed allocation costs, and the relative error that counts as done.
    leave_s
        ``(n,)`` departures.
    progress
        ``(n,)`` remaining iterations, attained GPU-seconds, completion and first start; changed in place.

    Returns
    -------
    tuple
        Number of restarts; ``(g,)`` who finished, iterations done, and seconds computed.
    """
    jobs, old_jobs = now[3], before[3]
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
        if attained_s[j] > 0:
            ran = old < old_jobs.size and old_jobs[old] == j
            if not ran or moved(now, g, before, old):
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


@njit("i8(f8[::1], f8)", cache=True)
def level(levels: Array, amount: float) -> int:
    """Return the highest level at or below an amount, −1 below the lowest."""
    at = -1
    while at + 1 < levels.size and levels[at + 1] <= amount * (1 + SLACK):
        at += 1
    return at


@njit(
    "Tuple((i8, i8, f8[::1]))(UniTuple(i8[::1], 3), UniTuple(f8[::1], 2), i8[::1],"
    "Tuple((i8[::1], f8[:, ::1], i8[::1], i8[::1])), UniTuple(f8[::1], 2),"
    "Tuple((i8[::1], f8[:, ::1], f8[:, ::1], f8[:, :, :, ::1])))",
    cache=True,
)
def speeds(
    entries: tuple[Ints, Ints, Ints],
    shares: tuple[Array, Array],
    first: Ints,
    limits: tuple[Ints, Array, Ints, Ints],
    capacity: tuple[Array, Array],
    tables: tuple[Ints, Array, Array, Array],
) -> tuple[int, int, Array]:
    """Check CPUs and memory of valid entries, and find the factors that they make on the rates of gangs.

    A gang advances at the pace of the GPU that has the least CPUs and the least memory.

    Parameters
    ----------
    entries, first, limits
        As in :func:`examine`, and where the entries of each of the ``g`` gangs begin.
    shares
        CPUs and gigabytes of the entries.
    capacity
        ``(h,)`` CPUs and gigabytes of the servers.
    tables
        Kinds of the jobs, levels of CPUs and memory, and rates, as in :class:`schedgap.instances.sensitivity.Profiles`.

    Returns
    -------
    tuple
        What is wrong (0: nothing), with which job or server, and ``(g,)`` factors on ``gang · rate of one GPU``.
    """
    job, server, gpus = entries
    cpus, memory = shares
    gang, rates, server_type, _ = limits
    kind, cpu_levels, memory_levels, rate = tables
    speed = np.zeros(first.size - 1)
    used_cpus, used_memory = np.zeros(server_type.size), np.zeros(server_type.size)
    for e in range(job.size):
        used_cpus[server[e]] += cpus[e]
        used_memory[server[e]] += memory[e]
    for h in range(server_type.size):
        if used_cpus[h] > capacity[0][h] * (1 + SLACK):
            return CPUS, h, speed
        if used_memory[h] > capacity[1][h] * (1 + SLACK):
            return MEMORY, h, speed
    for g in range(first.size - 1):
        j = job[first[g]]
        least_cpus, least_memory = np.inf, np.inf
        for e in range(first[g], first[g + 1]):
            if server_type[server[e]] != server_type[server[first[g]]]:
                return TYPES, j, speed
            least_cpus = min(least_cpus, cpus[e] / gpus[e])
            least_memory = min(least_memory, memory[e] / gpus[e])
        a = level(cpu_levels[kind[j]], least_cpus * gang[j])
        b = level(memory_levels[kind[j]], least_memory * gang[j])
        if a >= 0 and b >= 0:
            r = server_type[server[first[g]]]
            speed[g] = rate[kind[j], r, a, b] / (gang[j] * rates[j, r])
    return 0, -1, speed
