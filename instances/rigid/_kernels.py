"""Compiled loops over the events of one pool: list scheduling, reservations, interruptions, and a search.

All take the jobs of a pool in the order of release, with times in ticks; a job's number is its index in that order,
which also breaks ties. Imported on demand, because numba is slow to import.
"""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit

compiled = njit(cache=True)

STATIC, SHORTEST_LEFT, LEAST_ATTAINED = range(3)
"""Orders of jobs: a fixed key, the remaining time, or the queue by attained service."""

NEVER = np.iinfo(np.int64).max


@compiled
def push(keys: Array, jobs: Ints, first: int, count: int, key: float, job: int) -> None:
    """Push a job onto the heap of `count` jobs that begins at `first`."""
    at = count
    while at > 0:
        up = (at - 1) // 2
        if keys[first + up] < key or (keys[first + up] == key and jobs[first + up] < job):
            break
        keys[first + at], jobs[first + at] = keys[first + up], jobs[first + up]
        at = up
    keys[first + at], jobs[first + at] = key, job


@compiled
def pop(keys: Array, jobs: Ints, first: int, count: int) -> int:
    """Pop the first job from the heap of `count` jobs that begins at `first`."""
    found, count = int(jobs[first]), count - 1
    key, job, at = keys[first + count], jobs[first + count], 0
    while 2 * at + 1 < count:
        down = 2 * at + 1
        a, b = first + down, first + down + 1
        if down + 1 < count and (keys[b] < keys[a] or (keys[b] == keys[a] and jobs[b] < jobs[a])):
            down += 1
        if key < keys[first + down] or (key == keys[first + down] and job < jobs[first + down]):
            break
        keys[first + at], jobs[first + at] = keys[first + down], jobs[first + down]
        at = down
    keys[first + at], jobs[first + at] = key, job
    return found


@compiled
def sizes_of(gpus: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the sizes of gangs, ascending, the index of each job's size, and the beginning of each size's heap."""
    sizes = np.unique(gpus)
    which = np.searchsorted(sizes, gpus)
    first = np.zeros(sizes.size + 1, np.int64)
    for s in which:
        first[s + 1] += 1
    return sizes, which, np.cumsum(first)


@compiled
def least(keys: Array, jobs: Ints, first: Ints, count: Ints, fitting: int) -> int:
    """Return which of the `fitting` smallest gang sizes has the job of least key waiting; -1 if no job waits."""
    best = -1
    for s in range(fitting):
        if count[s] == 0:
            continue
        a, b = first[s], first[best]
        if best < 0 or keys[a] < keys[b] or (keys[a] == keys[b] and jobs[a] < jobs[b]):
            best = s
    return best


@compiled
def by_list(release: Ints, duration: Ints, gpus: Ints, capacity: int, key: Array, strict: bool) -> Ints:
    """Return the starts of list scheduling by a key: at each event, waiting jobs that fit start in the order of keys.

    If `strict`, no job starts before the jobs ahead of it.
    While jobs start at an event, free GPUs only decrease, so that a job that did not fit will not fit later. Hence
    taking the first job from the heaps of all sizes that fit is equivalent to one pass through the queue.
    """
    n = release.size
    sizes, which, first = sizes_of(gpus)
    count = np.zeros(sizes.size, np.int64)
    keys, jobs = np.empty(n), np.empty(n, np.int64)
    ends, running, busy = np.empty(n), np.empty(n, np.int64), 0
    start = np.empty(n, np.int64)
    free, arrived, left = capacity, 0, n
    while left > 0:
        now = NEVER if arrived == n else release[arrived]
        if busy and ends[0] < now:
            now = np.int64(ends[0])
        while busy and ends[0] <= now:
            free += gpus[pop(ends, running, 0, busy)]
            busy -= 1
        while arrived < n and release[arrived] <= now:
            s = which[arrived]
            push(keys, jobs, first[s], count[s], key[arrived], arrived)
            count[s] += 1
            arrived += 1
        while True:
            fitting = sizes.size if strict else int(np.searchsorted(sizes, free, "right"))
            s = least(keys, jobs, first, count, fitting)
            if s < 0 or sizes[s] > free:
                break
            job = pop(keys, jobs, first[s], count[s])
            count[s] -= 1
            start[job] = now
            free -= sizes[s]
            left -= 1
            push(ends, running, 0, busy, now + duration[job], job)
            busy += 1
    return start


@compiled
def interrupting(
    release: Ints, duration: Ints, gpus: Ints, capacity: int, rule: int, threshold: float
) -> tuple[Ints, Ints, Ints]:
    """Return intervals (job, start, end) of a rule that, at each event, lets the jobs run that come first in its order.

    With least attained service, jobs with less than `threshold` GPU-ticks come first; both queues are in the order of
    release. A job that reaches the threshold causes an event.
    """
    n = release.size
    sizes, which, first = sizes_of(gpus)
    count = np.zeros(sizes.size, np.int64)
    keys, jobs = np.empty(n), np.empty(n, np.int64)
    left, begun, chosen = duration.copy(), np.full(n, -1, np.int64), np.zeros(n, np.int64)
    running, busy, arrived, done, now, turn = np.empty(n, np.int64), 0, 0, 0, 0, 0
    found = [(0, 0, 0)][:0]
    while done < n:
        turn += 1
        then = NEVER if arrived == n else release[arrived]
        for j in running[:busy]:
            then = min(then, now + left[j])
            below = np.int64(np.ceil(threshold / gpus[j])) - (duration[j] - left[j])
            if rule == LEAST_ATTAINED and below > 0:
                then = min(then, now + below)
        left[running[:busy]] -= then - now
        now, before = then, running[:busy].copy()
        while arrived < n and release[arrived] <= now:
            s = which[arrived]
            push(keys, jobs, first[s], count[s], urgency(arrived, left, duration, gpus, rule, threshold), arrived)
            count[s] += 1
            arrived += 1
        for j in before:
            if left[j] > 0:
                s = which[j]
                push(keys, jobs, first[s], count[s], urgency(j, left, duration, gpus, rule, threshold), j)
                count[s] += 1
        free, busy = capacity, 0
        s = least(keys, jobs, first, count, sizes.size)
        while s >= 0:
            j = pop(keys, jobs, first[s], count[s])
            count[s] -= 1
            free -= sizes[s]
            running[busy], chosen[j] = j, turn
            begun[j] = now if begun[j] < 0 else begun[j]
            busy += 1
            s = least(keys, jobs, first, count, int(np.searchsorted(sizes, free, "right")))
        for j in before:
            if chosen[j] < turn:
                found.append((j, begun[j], now))
                begun[j] = -1
                done += left[j] == 0
    out = np.array(found)
    return out[:, 0].copy(), out[:, 1].copy(), out[:, 2].copy()


@compiled
def urgency(j: int, left: Ints, duration: Ints, gpus: Ints, rule: int, threshold: float) -> float:
    """Return the current key of a job under a rule; the smallest key comes first."""
    if rule == SHORTEST_LEFT:
        return float(left[j])
    return 0.0 if (duration[j] - left[j]) * gpus[j] < threshold else 1.0


@compiled
def backfilled(release: Ints, duration: Ints, gpus: Ints, capacity: int, key: Array, most: int) -> Ints:
    """Return the starts of EASY backfilling with known durations and a queue by key; none if it is too much work.

    At each event, jobs start in the order of keys while they fit. The first that does not fit has a reservation, and
    later ones start if they do not delay it. It is too much work to look at more than `most` jobs.
    """
    n = release.size
    start = np.empty(n, np.int64)
    queue, waiting, ranked = np.empty(n, np.int64), 0, np.empty(n)
    ends, held, busy = np.empty(n), np.empty(n, np.int64), 0
    free, arrived, work = capacity, 0, 0
    while waiting > 0 or arrived < n:
        now = release[arrived] if arrived < n else NEVER
        if busy and ends[0] < now:
            now = np.int64(ends[0])
        over = int(np.searchsorted(ends[:busy], now, "right"))
        free += held[:over].sum()
        ends[: busy - over], held[: busy - over] = ends[over:busy].copy(), held[over:busy].copy()
        busy -= over
        while arrived < n and release[arrived] <= now:
            waiting = ranged(ranked, queue, waiting, key[arrived], arrived)
            arrived += 1
        work += waiting + busy
        if work > most:
            return start[:0]
        blocked, shadow, extra, kept = False, now, 0, 0
        for i in range(waiting):
            j = queue[i]
            if gpus[j] <= free and (not blocked or now + duration[j] <= shadow or gpus[j] <= extra):
                start[j] = now
                free -= gpus[j]
                extra -= gpus[j] if blocked and now + duration[j] > shadow else 0
                busy = ranged(ends, held, busy, now + duration[j], gpus[j])
                continue
            if not blocked:
                blocked, at, extra = True, 0, free - gpus[j]
                while extra < 0 or (at < busy and ends[at] == shadow):
                    shadow = np.int64(ends[at])
                    extra += held[at]
                    at += 1
            queue[kept], ranked[kept] = j, ranked[i]
            kept += 1
        waiting = kept
    return start


@compiled
def ranged(keys: Array, numbers: Ints, count: int, key: float, number: int) -> int:
    """Insert a number into a list of `count` numbers in the order of keys, and return its new length."""
    at = int(np.searchsorted(keys[:count], key, "right"))
    for k in range(count, at, -1):
        keys[k], numbers[k] = keys[k - 1], numbers[k - 1]
    keys[at], numbers[at] = key, number
    return count + 1


@compiled
def earliest(times: Ints, free: Ints, low: int, count: int, release: int, length: int, need: int) -> int:
    """Return the first time from `release` on from which `need` GPUs stay free for `length`.

    In the profile, ``free[i]`` GPUs are free from ``times[i]`` on; entries before `low` are past.
    """
    i = low + int(np.searchsorted(times[low:count], release, "right")) - 1
    while True:
        start = max(times[i], release)
        k = i
        while free[k] >= need and k + 1 < count and times[k + 1] < start + length:
            k += 1
        if free[k] >= need:
            return int(start)
        i = k + 1


@compiled
def reserve(times: Ints, free: Ints, low: int, count: int, release: int, length: int, need: int) -> tuple[int, int]:
    """Reserve `need` GPUs for `length` as early as possible; return the start and the new size of the profile."""
    start = earliest(times, free, low, count, release, length, need)
    if length == 0:
        return start, count
    for moment in (start, start + length):
        at = low + int(np.searchsorted(times[low:count], moment))
        if at == count or times[at] != moment:
            for k in range(count, at, -1):
                times[k], free[k] = times[k - 1], free[k - 1]
            times[at], free[at] = moment, free[at - 1]
            count += 1
    at = low + int(np.searchsorted(times[low:count], start))
    while at < count and times[at] < start + length:
        free[at] -= need
        at += 1
    return start, count


@compiled
def in_turn(release: Ints, duration: Ints, gpus: Ints, capacity: int, order: Ints, by_release: bool) -> Ints:
    """Return the starts of jobs that, in this order, each reserve their earliest possible interval.

    In the order of release, this is conservative backfilling with known durations.
    """
    n = release.size
    times, free = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    times[0], free[0], low, count = 0, capacity, 0, 1
    start = np.empty(n, np.int64)
    for j in order:
        start[j], count = reserve(times, free, low, count, release[j], duration[j], gpus[j])
        while by_release and low + 1 < count and times[low + 1] <= release[j]:
            low += 1
    return start


@compiled
def completed(start: int, j: int, release: Ints, duration: Ints, weight: Array, floor: Ints, latest: bool) -> float:
    """Return the cost of a job that starts at `start`: its weighted flow time or, if `latest`, its completion."""
    end = max(start + duration[j], floor[j])
    return float(end) if latest else weight[j] * float(end - release[j])


@compiled
def cost(start: Ints, release: Ints, duration: Ints, weight: Array, floor: Ints, latest: bool) -> float:
    """Return the cost of all jobs: the sum of weighted flow times or, if `latest`, the last completion."""
    total, last = 0.0, 0.0
    for j in range(start.size):
        own = completed(start[j], j, release, duration, weight, floor, latest)
        total += own
        last = max(last, own)
    return last if latest else total


@compiled
def reordered(part: Ints, duration: Ints, area: Array, rng: np.random.Generator) -> Ints:
    """Return jobs in another order: shuffled, by duration, by area per weight, or with one job moved."""
    how = rng.integers(0, 4)
    if how == 0:
        return rng.permutation(part)
    if how == 1:
        return part[np.argsort(duration[part], kind="mergesort")]
    if how == 2:
        return part[np.argsort(area[part], kind="mergesort")]
    moved, place = rng.integers(0, part.size), rng.integers(0, part.size)
    rest = np.delete(part, moved)
    return np.concatenate((rest[:place], part[moved : moved + 1], rest[place:]))


@compiled
def improve(
    release: Ints,
    duration: Ints,
    gpus: Ints,
    capacity: int,
    weight: Array,
    floor: Ints,
    latest: bool,
    start: Ints,
    rounds: int,
    rng: np.random.Generator,
) -> tuple[Ints, float]:
    """Return the best starts of a large-neighbourhood search, and their cost.

    A round reorders jobs that start consecutively in the best schedule and rebuilds all starts from the new list: by
    list scheduling or, in every other round, with each job in its earliest possible interval.
    """
    n = release.size
    best, least_cost = start.copy(), cost(start, release, duration, weight, floor, latest)
    key, order = np.empty(n), np.argsort(start, kind="mergesort")
    area = duration * gpus / np.maximum(weight, 1e-300)
    for i in range(rounds):
        width = min(n, 2 + int(rng.random() ** 3 * min(n, 60)))
        at = rng.integers(0, n - width + 1)
        tried = order.copy()
        tried[at : at + width] = reordered(order[at : at + width].copy(), duration, area, rng)
        if i % 2:
            found = in_turn(release, duration, gpus, capacity, tried, False)
        else:
            key[tried] = np.arange(n)
            found = by_list(release, duration, gpus, capacity, key, False)
        value = cost(found, release, duration, weight, floor, latest)
        if value <= least_cost:
            if value < least_cost:
                best, least_cost = found, value
            order = np.argsort(found, kind="mergesort")
    return best, least_cost


@compiled
def best_order(
    release: Ints,
    duration: Ints,
    gpus: Ints,
    capacity: int,
    weight: Array,
    floor: Ints,
    latest: bool,
    first: Ints,
    best: Ints,
    most: float,
) -> tuple[float, int]:
    """Find the cheapest schedule by branch and bound over the lists of jobs that begin with the jobs `first`.

    The jobs of a list take their earliest places one after another. The schedule is written to `best` if it costs less
    than `most`. Return its cost, or `most`, and the number of lists begun. Only lists whose starts do not decrease
    (ties by number) are tried: of all optimal schedules, the one with the least sum of starts results from its own
    list. A list is dropped as soon as its jobs, with every other job at its own earliest place, cost `most`.
    """
    n = release.size
    times, free = np.empty((n + 1, 2 * n + 2), np.int64), np.empty((n + 1, 2 * n + 2), np.int64)
    size, begin = np.ones(n + 1, np.int64), np.empty((n + 1, n), np.int64)
    times[0, 0], free[0, 0] = 0, capacity
    spent, tried = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    order, placed, start = np.empty(n, np.int64), np.zeros(n, np.bool_), np.empty(n, np.int64)
    begin[0] = release
    depth, nodes = 0, 0
    while depth >= 0:
        j = tried[depth]
        if j == n:
            depth -= 1
            if depth >= 0:
                placed[order[depth]] = False
            continue
        tried[depth] += 1
        before = order[depth - 1] if depth else 0
        early = depth > 0 and (begin[depth, j], j) < (start[before], before)
        if placed[j] or early or (depth < first.size and first[depth] != j):
            continue
        nodes += 1
        below = depth + 1
        times[below], free[below] = times[depth], free[depth]
        start[j], size[below] = reserve(times[below], free[below], 0, size[depth], release[j], duration[j], gpus[j])
        order[depth], placed[j] = j, True
        own = completed(start[j], j, release, duration, weight, floor, latest)
        spent[below] = max(spent[depth], own) if latest else spent[depth] + own
        bound = spent[below]
        for k in range(n):
            if not placed[k]:
                begin[below, k] = earliest(times[below], free[below], 0, size[below], release[k], duration[k], gpus[k])
                rest = completed(begin[below, k], k, release, duration, weight, floor, latest)
                bound = max(bound, rest) if latest else bound + rest
        if bound < most and below < n:
            depth, tried[below] = below, 0
            continue
        if bound < most:
            most = bound
            best[:] = start
        placed[j] = False
    return most, nodes
