"""A compiled loop over the events of one pool in which waiting jobs have priorities that change, and may overtake.

It takes the jobs in the order of release, with times in ticks, as :mod:`schedgap.instances.rigid._kernels` does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.rigid._kernels import NEVER, compiled, pop, push, reserve, sizes_of

FIXED, WFP3, MULTIFACTOR = range(3)
"""Priorities: given numbers, WFP3's, or Slurm's."""

NOBODY, EASY, PLAN = range(3)
"""Who overtakes the first job that does not fit: nobody, jobs that do not delay that job, or ones that delay no job."""

SHIFTS = 20
"""Moves per waiting job after which a list is sorted anew instead of mended."""


class Factors(NamedTuple):
    """Settings of Slurm's priority: weights of its factors; times in ticks; which formulas apply.

    Usage is multiplied by `decay` at the end of each `period`.
    """

    age: float
    fairshare: float
    size: float
    max_age: float
    decay: float
    period: int
    damping: float
    tree: bool
    small: bool


class Accounts(NamedTuple):
    """Users: usage until the last period, what the current period adds, GPUs held, and the fair-share factor, ``(u,)``.

    `clock` holds the time up to which GPUs are charged, and the end of the period.
    """

    usage: Array
    charged: Array
    held: Ints
    factor: Array
    clock: Ints


class RunningGangs(NamedTuple):
    """Running jobs: a heap by end, and jobs in the order of the ends that they requested, all ``(n,)``."""

    ends: Array
    jobs: Ints
    due: Ints
    holder: Ints


@compiled
def charge(accounts: Accounts, factors: Factors, now: int) -> None:
    """Charge users for the GPUs they hold until `now`; at the end of a period, usage and fair-share factors follow."""
    usage, charged, held, factor, clock = accounts
    ended = False
    while clock[1] <= now:
        charged += held * (clock[1] - clock[0])
        usage *= factors.decay
        usage += charged
        charged[:] = 0.0
        clock[0], clock[1], ended = clock[1], clock[1] + factors.period, True
        if clock[1] <= now and not held.any():
            idle = (now - clock[1]) // factors.period + 1
            usage *= factors.decay**idle
            clock[0] += idle * factors.period
            clock[1] += idle * factors.period
    charged += held * (now - clock[0])
    clock[0] = now
    if not ended:
        return
    users, total = usage.size, usage.sum()
    if factors.tree:
        factor[:] = (users - np.searchsorted(np.sort(usage), usage)) / users
    elif total > 0:
        factor[:] = 2.0 ** (-usage / total * users / factors.damping)


@compiled
def ordered(queue: Ints, waiting: int, fresh: int, value: Array) -> None:
    """Sort waiting jobs by descending value, ties by number; those before `fresh` are sorted already."""
    left = SHIFTS * (waiting + 1)
    for i in range(max(fresh, 1), waiting):
        job, at = queue[i], i
        while at > 0 and (
            value[queue[at - 1]] < value[job] or (value[queue[at - 1]] == value[job] and queue[at - 1] > job)
        ):
            queue[at] = queue[at - 1]
            at -= 1
        queue[at] = job
        left -= i - at
        if left < 0:
            jobs = np.sort(queue[:waiting])
            queue[:waiting] = jobs[np.argsort(-value[jobs], kind="mergesort")]
            return


@compiled
def begin(running: RunningGangs, busy: int, job: int, end: int, due: int) -> int:
    """Add a job to the `busy` running ones, and return their new number."""
    push(running.ends, running.jobs, 0, busy, end, job)
    at = np.searchsorted(running.due[:busy], due)
    for k in range(busy, at, -1):
        running.due[k], running.holder[k] = running.due[k - 1], running.holder[k - 1]
    running.due[at], running.holder[at] = due, job
    return busy + 1


@compiled
def finish(running: RunningGangs, busy: int, start: Ints, requested: Ints) -> int:
    """Remove the job that ends first from the `busy` running ones, and return it."""
    job = pop(running.ends, running.jobs, 0, busy)
    at = np.searchsorted(running.due[:busy], start[job] + requested[job])
    while running.holder[at] != job:
        at += 1
    for k in range(at, busy - 1):
        running.due[k], running.holder[k] = running.due[k + 1], running.holder[k + 1]
    return job


class RigidJobs(NamedTuple):
    """Jobs of a pool, ``(n,)`` each: times, the times for which they reserve GPUs, and their GPUs.

    `kind` numbers the pairs of requested time and GPUs: within a plan, the next job of a pair fits no earlier.
    """

    release: Ints
    duration: Ints
    requested: Ints
    gpus: Ints
    kind: Ints


@compiled
def in_order(
    jobs: RigidJobs, queue: Ints, running: RunningGangs, busy: int, now: int, free: int, start: Ints, easy: bool
) -> int:
    """Start jobs of a list until one does not fit and, if `easy`, others that do not delay that one.

    Its reservation is at the shadow time, by which running jobs will have left enough GPUs by their requested ends.
    """
    head = 0
    while head < queue.size and jobs.gpus[queue[head]] <= free:
        j = queue[head]
        start[j], free, head = now, free - jobs.gpus[j], head + 1
        busy = begin(running, busy, j, now + jobs.duration[j], now + jobs.requested[j])
    if head == queue.size or not easy:
        return busy
    shadow, extra, need = now, free, jobs.gpus[queue[head]]
    for k in range(busy):
        if extra >= need and running.due[k] > shadow:
            break
        extra += jobs.gpus[running.holder[k]]
        shadow = running.due[k]
    extra -= need
    for j in queue[head + 1 :]:
        if free == 0:
            break
        late = now + jobs.requested[j] > shadow
        if jobs.gpus[j] <= (min(free, extra) if late else free):
            start[j], free = now, free - jobs.gpus[j]
            extra -= jobs.gpus[j] if late else 0
            busy = begin(running, busy, j, now + jobs.duration[j], now + jobs.requested[j])
    return busy


class Plan(NamedTuple):
    """Room for a plan: the profile of free GPUs, and for each kind of job the latest start found, and in which plan."""

    times: Ints
    free: Ints
    found: Ints
    turn: Ints


@compiled
def planned(
    jobs: RigidJobs,
    queue: Ints,
    running: RunningGangs,
    busy: int,
    now: int,
    free: int,
    start: Ints,
    plan: Plan,
    turn: int,
) -> int:
    """Reserve the earliest interval for one job of a list after another, and start those whose interval begins now.

    The plan ends as soon as none of the jobs that remain would fit now, since all others are planned anew later.
    """
    times, room, found, last = plan
    times[0], room[0], steps = now, free, 1
    for k in range(busy):
        if times[steps - 1] < running.due[k]:
            times[steps], room[steps] = running.due[k], room[steps - 1]
            steps += 1
        room[steps - 1] += jobs.gpus[running.holder[k]]
    least = np.empty(queue.size + 1, np.int64)
    least[queue.size] = NEVER
    for i in range(queue.size - 1, -1, -1):
        least[i] = min(least[i + 1], jobs.gpus[queue[i]])
    for i in range(queue.size):
        if room[0] < least[i]:
            break
        j = queue[i]
        kind = jobs.kind[j]
        early = found[kind] if last[kind] == turn else now
        early, steps = reserve(times, room, 0, steps, early, jobs.requested[j], jobs.gpus[j])
        found[kind], last[kind] = early, turn
        if early == now:
            start[j] = now
            busy = begin(running, busy, j, now + jobs.duration[j], now + jobs.requested[j])
    return busy


@compiled
def valued(
    jobs: RigidJobs,
    queue: Ints,
    now: int,
    capacity: int,
    rule: int,
    user: Ints,
    factors: Factors,
    share: Array,
    value: Array,
) -> None:
    """Write the priorities of waiting jobs by a rule that changes them; `share` are the users' fair-share factors."""
    for j in queue:
        wait, gpus = now - jobs.release[j], jobs.gpus[j]
        if rule == WFP3:
            value[j] = (wait / max(jobs.requested[j], 1)) ** 3 * gpus
        else:
            size = (capacity + 1 - gpus if factors.small else gpus) / capacity
            own = factors.age * min(wait / factors.max_age, 1.0) + factors.size * size
            value[j] = np.floor(own + factors.fairshare * share[user[j]])


@compiled
def empty_plan(jobs: RigidJobs, needed: bool) -> Plan:
    """Return room for plans of these jobs, or for none."""
    most, kinds = (3 * jobs.release.size + 2, jobs.kind.max() + 1) if needed else (0, 0)
    return Plan(
        np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(kinds, np.int64), np.zeros(kinds, np.int64)
    )


@compiled
def still_waiting(queue: Ints, tried: int, start: Ints) -> int:
    """Move those of the first `tried` jobs that have started before the others, and return their number."""
    first = queue[:tried].copy()
    begun, place = 0, tried
    for k in range(tried - 1, -1, -1):
        if start[first[k]] < 0:
            place -= 1
            queue[place] = first[k]
    for j in first:
        if start[j] >= 0:
            queue[begun] = j
            begun += 1
    return begun


@compiled
def ended_by(
    now: int, jobs: RigidJobs, running: RunningGangs, busy: int, start: Ints, user: Ints, held: Ints
) -> tuple[int, int]:
    """Take away the gangs that have ended; return how many still run, and how many GPUs are free again."""
    freed = 0
    while busy and running.ends[0] <= now:
        j = finish(running, busy, start, jobs.requested)
        busy -= 1
        freed += jobs.gpus[j]
        held[user[j]] -= jobs.gpus[j]
    return busy, freed


@compiled
def released_by(now: int, release: Ints, arrived: int, queue: Ints, which: Ints, queued: Ints) -> int:
    """Append the jobs that are released to the queue, and count them by size; return how many have been so far."""
    place = 0
    while arrived < release.size and release[arrived] <= now:
        queue[place] = arrived
        queued[which[arrived]] += 1
        place += 1
        arrived += 1
    return arrived


@compiled
def by_priority(
    jobs: RigidJobs,
    capacity: int,
    rule: int,
    key: Array,
    user: Ints,
    factors: Factors,
    overtaking: int,
    depth: int,
) -> Ints:
    """Return the starts of jobs that are tried by descending priority whenever a job is released or ends.

    Parameters
    ----------
    rule, key
        Rule of priorities; for `FIXED`, ``(n,)`` keys, the smallest of which comes first.
    user, factors
        ``(n,)`` user of each job, and settings, for `MULTIFACTOR`.
    overtaking, depth
        Who overtakes the first job that does not fit, and the most jobs that a plan considers.
    """
    release, gpus, n = jobs.release, jobs.gpus, jobs.release.size
    sizes, which, _ = sizes_of(gpus)
    queued, start, value = np.zeros(sizes.size, np.int64), np.full(n, -1, np.int64), -key
    every, head, waiting, fresh = np.empty(n, np.int64), 0, 0, 0
    running, busy = RunningGangs(np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)), 0
    plan = empty_plan(jobs, overtaking == PLAN)
    users, clock = user.max() + 1, np.array([release[0], release[0] + factors.period])
    accounts = Accounts(np.zeros(users), np.zeros(users), np.zeros(users, np.int64), np.ones(users), clock)
    free, arrived, left, turn = capacity, 0, n, 0
    while left > 0:
        now = NEVER if arrived == n else release[arrived]
        if busy and running.ends[0] < now:
            now = np.int64(running.ends[0])
        if rule == MULTIFACTOR:
            charge(accounts, factors, now)
        still = ended_by(now, jobs, running, busy, start, user, accounts.held)
        busy, free = still[0], free + still[1]
        came = released_by(now, release, arrived, every[head + waiting :], which, queued)
        waiting, arrived = waiting + came - arrived, came
        if not queued[: np.searchsorted(sizes, free, "right")].any():
            continue
        queue = every[head : head + waiting]
        if rule != FIXED:
            valued(jobs, queue, now, capacity, rule, user, factors, accounts.factor, value)
            fresh = 0
        ordered(queue, waiting, fresh, value)
        turn, tried = turn + 1, waiting
        if overtaking == PLAN:
            tried = min(waiting, depth)
            busy = planned(jobs, queue[:tried], running, busy, now, free, start, plan, turn)
        else:
            busy = in_order(jobs, queue, running, busy, now, free, start, overtaking == EASY)
        begun = still_waiting(queue, tried, start)
        for j in queue[:begun]:
            free -= gpus[j]
            accounts.held[user[j]] += gpus[j]
            queued[which[j]] -= 1
        left -= begun
        head += begun
        waiting -= begun
        fresh = waiting
    return start
