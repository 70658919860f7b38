"""Compiled loops of the pricing problem; :mod:`.pricing` explains and calls them."""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import ROUNDING
from schedgap.instances.clock import njit

INFINITE = 1e300


@njit(cache=True)
def residuals(progress, work, most):  # type: ignore[no-untyped-def]
    """Return the amounts of work that a job can have left after some slots, unsorted; empty if more than `most`.

    Amounts may repeat.

    An odometer counts the slots at each level and carries when the work is done.
    """
    levels = len(progress)
    count = np.zeros(levels, np.int64)
    left = np.empty(most)
    size, now = 0, work
    while True:
        if size == most:
            return np.empty(0)
        left[size] = now
        size += 1
        i = levels - 1
        while i >= 0:
            count[i] += 1
            now -= progress[i]
            if now > ROUNDING * work:
                break
            now += count[i] * progress[i]
            count[i] = 0
            i -= 1
        if i < 0:
            return left[:size]


@njit(cache=True)
def automaton(left, progress, work):  # type: ignore[no-untyped-def]
    """Return the table ``(states, levels)`` of the state that follows one more slot, from sorted :func:`residuals`.

    State 0 is "done", the last state is "all work left". Two amounts of work share a state if the same slots complete
    both. This is the minimal automaton; it is built from small amounts to large ones.
    """
    levels = len(progress)
    state = np.empty(len(left), np.int64)
    table = np.zeros((len(left) + 1, levels), np.int32)
    last = 0
    after = np.zeros(levels, np.int32)
    at = np.zeros(levels, np.int64)
    for s in range(len(left)):
        if s > 0 and left[s] - left[s - 1] <= ROUNDING * work:
            state[s] = last
            continue
        same = last > 0
        for k in range(levels):
            then = left[s] - progress[k]
            after[k] = 0
            if then > ROUNDING * work:
                # The work left after a slot grows with the work left now: one pointer per level suffices.
                while left[at[k]] < then - ROUNDING * work:
                    at[k] += 1
                after[k] = state[at[k]]
            same = same and after[k] == table[last, k]
        if not same:
            last += 1
            table[last] = after
        state[s] = last
    return table[: last + 1].copy()


@njit(cache=True)
def grid(progress, work, credit, smallest, largest):  # type: ignore[no-untyped-def]
    """Return the progress of each level in whole units ``q``, and how many units are necessary and enough for the work.

    For any ``q``, ``Σ n·q ≥ (work − credit)·min(q/p)`` where ``Σ n·p ≥ work − credit``, and
    ``Σ n·q ≤ work·max(q/p)`` where ``Σ n·p < work``. Of all grids between `smallest` and `largest` units, the one with
    the smallest relative difference is returned; `credit` is the work that levels without units may contribute.
    """
    levels = len(progress)
    best = np.inf
    units, trial = np.ones(levels, np.int64), np.ones(levels, np.int64)
    need, enough = 1, 2
    for size in range(smallest, largest + 1):
        low, high = np.inf, 0.0
        for k in range(levels):
            trial[k] = max(1, int(progress[k] * size / work + 0.5))
            low = min(low, trial[k] / progress[k])
            high = max(high, trial[k] / progress[k])
        lower = max(1, int(np.ceil((work - credit) * low * (1 - 2 * ROUNDING) - 1e-9)))
        upper = int(np.floor(work * high * (1 + ROUNDING))) + 1
        if (upper - lower) / lower < best and upper <= 2 * largest:
            best = (upper - lower) / lower
            units[:] = trial
            need, enough = lower, upper
    return units, need, enough


@njit(cache=True)
def fill(prices, dearer, room, held, order, among, gpus, t, take):  # type: ignore[no-untyped-def]
    """Put a gang on the GPUs that it must hold and on the cheapest others of its first `among` types; return the cost.

    Each further GPU of a type and slot costs more, by `dearer` ``(k, T, n)``, so a greedy choice is optimal. The cost
    is infinite if there is no room.
    """
    left, cost = gpus, 0.0
    take[:] = 0
    for i in range(among):
        r = order[i]
        take[r] = held[r, t]
        left -= take[r]
        cost += take[r] * prices[r, t] + dearer[r, t, : take[r]].sum()
    for i in range(among, len(order)):
        if held[order[i], t] > 0:
            return INFINITE
    if left < 0:
        return INFINITE
    while left > 0:
        cheapest, least = -1, np.inf
        for i in range(among):
            r = order[i]
            if room[r, t] > take[r]:
                next_one = prices[r, t] + (dearer[r, t, take[r]] if dearer.shape[2] else 0.0)
                if next_one < least:
                    cheapest, least = r, next_one
        if cheapest < 0:
            return INFINITE
        some = 1 if dearer.shape[2] else min(left, room[cheapest, t] - take[cheapest])
        # A full type is never chosen again: its take equals its room.
        take[cheapest] += some
        left -= some
        cost += some * least
    return cost


@njit(cache=True)
def alike(prices, room, uses, covers):  # type: ignore[no-untyped-def]
    """Return the first slots of the *runs* of slots that are all alike to every job, and the end of the last run.

    Within a run, prices and room are constant, and no slot has a cover or a bound on the GPUs of a job of its own.
    """
    slots = prices.shape[1]
    new = np.zeros(slots + 1, np.bool_)
    new[0], new[slots] = True, True
    for t in range(1, slots):
        for r in range(len(prices)):
            if prices[r, t] != prices[r, t - 1] or room[r, t] != room[r, t - 1]:
                new[t] = True
    for cells in (uses[1], covers[0]):
        for cell in cells:
            new[cell % slots], new[cell % slots + 1] = True, True
    return np.flatnonzero(new)


@njit(cache=True)
def costs(prices, dearer, room, held, order, among, gpus, begin, out):  # type: ignore[no-untyped-def]
    """Write to `out` what a gang pays in one slot of every run, at every level."""
    take = np.zeros(len(room), np.int64)
    for i in range(len(out)):
        for k in range(out.shape[1]):
            out[i, k] = fill(prices, dearer, room, held, order, among[k], gpus, begin[i], take)


@njit(cache=True)
def charge(prices, covers, j, gpus, own, dearer):  # type: ignore[no-untyped-def]
    """Write the GPU prices that a job pays, raised by the prices of covers.

    A cover with a reserve for the job (a *member*) raises the price of all of its GPUs; any other cover raises the
    price of the GPUs beyond the spare. `own` is the price of the first GPU, `dearer` what further GPUs cost on top.
    """
    row, spare, member, price = covers
    if len(row) == 0:
        return
    own[:] = prices
    dearer[:] = 0.0
    for c in range(len(row)):
        r, t = divmod(row[c], prices.shape[1])
        if member[c, j]:
            own[r, t] += price[c]
        elif gpus > spare[c]:
            dearer[r, t, spare[c] : gpus] += price[c]


@njit(cache=True)
def least_cost(cost, begin, progress, work, a):  # type: ignore[no-untyped-def]
    """Return a lower bound on the cost of the work: all of it at the cheapest price per iteration."""
    best = np.inf
    for i in range(len(cost)):
        if begin[i + 1] > a:
            for k in range(cost.shape[1]):
                best = min(best, cost[i, k] / progress[k])
    return max(work, 0.0) * best if best < INFINITE else INFINITE


@njit(cache=True)
def earliest_end(forced, a):  # type: ignore[no-untyped-def]
    """Return the last slot that the job is forced to use, 0 if there is none.

    If one is before its arrival `a`, the job can never end: the result is then the number of slots.
    """
    if forced[:a].any():
        return len(forced)
    final = 0
    for t in range(a, len(forced)):
        if forced[t]:
            final = t
    return final


@njit(cache=True)
def advance(cost, table, value, choice, reach, forced):  # type: ignore[no-untyped-def]
    """Update the dynamic program by one slot, which costs `cost[k]` at level k and has to be used if `forced`."""
    for s in range(reach, -1, -1):
        if s == 0 and not forced:
            break
        least = INFINITE if forced else value[s]
        for k in range(table.shape[1]):
            if cost[k] < INFINITE:
                total = cost[k] + value[table[s, k]]
                if total < least:
                    least = total
                    choice[s] = k + 1
        value[s] = least


@njit(cache=True)
def from_then_on(payoffs, later):  # type: ignore[no-untyped-def]
    """Write to `later` the largest payoff of each slot and all slots after it."""
    most = -INFINITE
    for t in range(len(later) - 1, -1, -1):
        most = max(most, payoffs[t])
        later[t] = most


@njit(cache=True)
def sweep(cost, begin, states, worth, a, forced, floor, choice, value, payoffs, by_end, later):  # type: ignore[no-untyped-def]
    """Find, for every last slot, the cheapest slots that do the work by then and include all `forced` slots.

    ``value[s]`` is the least cost of finishing from state ``s`` with the slots so far; the DP visits every slot and
    state once. `by_end` comes with upper bounds on payoffs from :func:`greedy`, and the DP stops when no `later` slot
    can beat the best one. Then ``payoffs[f]`` is the payoff of the cheapest slots that end in ``f``, and ``by_end[f]``
    an upper bound on the payoff of any.

    Returns
    -------
    most, when_most, sure, when_sure
        Largest payoff and its last slot from state `need`, and from state `enough`; -1 where none is above `floor`.
    """
    table, need, enough = states
    value[0] = 0.0
    value[1 : enough + 1] = INFINITE
    most, when_most, sure, when_sure = floor, -1, floor, -1
    reach, final, run = 0, earliest_end(forced, a), 0
    payoffs[:] = -INFINITE
    from_then_on(by_end, later)
    by_end[:final] = -INFINITE
    for t in range(a, len(worth)):
        if later[t] <= min(most, sure):
            break
        while begin[run + 1] <= t:
            run += 1
        before = reach
        while reach < enough and table[reach + 1, 0] <= before:
            reach += 1
        choice[t, : reach + 1] = 0
        advance(cost[run], table, value, choice[t], reach, forced[t])
        if t < final or reach < need:
            continue
        by_end[t] = min(by_end[t], worth[t] - value[need])
        # A schedule that does not use this slot ends earlier, where its utility is no less.
        if choice[t, need] > 0:
            payoffs[t] = worth[t] - value[need]
            if payoffs[t] > most:
                most, when_most = payoffs[t], t
        if reach >= enough and choice[t, enough] > 0 and worth[t] - value[enough] > sure:
            sure, when_sure = worth[t] - value[enough], t
    return most, when_most, sure, when_sure


@njit(cache=True)
def offer(cost, progress, slope, rate, reached):  # type: ignore[no-untyped-def]
    """Write the steps by which a gang becomes faster in a slot, level by level, and return their number.

    A step has a cost per iteration, a number of iterations, and the level that it reaches. Levels above the line
    between two others are left out, so costs per iteration increase; of several levels on a line, one step reaches the
    fastest.
    """
    count, speed, spent = 0, 0.0, 0.0
    while True:
        least, at = INFINITE, -1
        for k in range(len(progress)):
            if progress[k] > speed and cost[k] < INFINITE:
                each = (cost[k] - spent) / (progress[k] - speed)
                if each < least:
                    least, at = each, k
        if at < 0:
            return count
        slope[count], rate[count], reached[count] = least, progress[at] - speed, at
        speed, spent = progress[at], cost[at]
        count += 1


@njit(cache=True)
def blank(size):  # type: ignore[no-untyped-def]
    """Allocate arrays for `size` steps: their order, cost per iteration, iterations, level reached, and count."""
    numbers, amounts = np.empty((3, size), np.int64), np.empty((2, size))
    return numbers[0], amounts[0], amounts[1], numbers[1], numbers[2]


@njit(cache=True)
def line_up(order, slope, head, tail, first, several, most):  # type: ignore[no-untyped-def]
    """Insert into `order`, dearest first, the steps from `first` on that cost less than `most` per iteration.

    Returns the new end of `order`.
    """
    for g in range(first, first + several):
        if slope[g] >= most:
            break
        at = tail
        while at > head and slope[order[at - 1]] < slope[g]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = g
        tail += 1
    return tail


@njit(cache=True)
def greedy(cost, begin, progress, work, worth, a, until, cheapest, floor, by_end, payoffs, steps):  # type: ignore[no-untyped-def]
    """Choose, for every last slot, the cheapest :func:`steps <offer>` that together do the work by then.

    Without the excess of the last step, these steps cost no more than any schedule. The slots of a run have equal
    steps, which are stored once, with a count.

    Parameters
    ----------
    until
        Slot before which a schedule ends.
    by_end, payoffs
        ``(slots,)`` upper bound on the payoff of schedules with that last slot, and the payoff of the steps.
    steps
        ``order``, ``slope``, ``rate``, ``reached`` and ``count`` by run and step: workspace, and the steps taken.

    Returns
    -------
    most, sure, when, head, tail
        Upper bound on the largest payoff; largest payoff of steps, and its last slot (-1 if none is above `floor`); and
        the range in `order` of the steps taken in the end.
    """
    order, slope, rate, reached, count = steps
    levels = len(progress)
    head, tail, done, paid = 0, 0, 0.0, 0.0
    most, sure, when = floor, floor, -1
    by_end[:], payoffs[:] = -INFINITE, -INFINITE
    for i in range(len(cost)):
        if begin[i + 1] <= a:
            continue
        if begin[i] >= until:
            break
        first = i * levels
        several = offer(cost[i], progress, slope[first:], rate[first:], reached[first:])
        count[first : first + several] = 0
        most_each = slope[order[head]] if done >= work else INFINITE
        before, tail = tail, line_up(order, slope, head, tail, first, several, most_each)
        added = tail - before
        for t in range(max(begin[i], a), min(begin[i + 1], until)):
            if worth[t] - cheapest <= min(most, sure):
                by_end[t:until] = worth[t:until] - cheapest
                return most, sure, when, head, tail
            for g in range(first, first + added):
                if done >= work and slope[g] >= slope[order[head]]:
                    added = g - first
                    break
                count[g] += 1
                done, paid = done + rate[g], paid + rate[g] * slope[g]
            while tail > head and (count[order[head]] == 0 or done - rate[order[head]] >= work):
                g = order[head]
                if count[g] == 0:
                    head += 1
                else:
                    count[g] -= 1
                    done, paid = done - rate[g], paid - rate[g] * slope[g]
            if done >= work:
                by_end[t] = worth[t] - paid + (done - work) * slope[order[head]]
                payoffs[t] = worth[t] - paid
                most = max(most, by_end[t])
                if payoffs[t] > sure:
                    sure, when = payoffs[t], t
    return most, sure, when, head, tail


@njit(cache=True)
def taken(steps, head, tail, begin, a, levels, level):  # type: ignore[no-untyped-def]
    """Write to `level` the level plus 1 at which the steps taken use each slot, or 0 if none does; return the last one.

    Of the last run, the steps use the first slots, to end early; of the other runs, the last slots.
    """
    order, _, _, reached, count = steps
    level[:] = 0
    final = -1
    for at in range(head, tail):
        if count[order[at]] > 0:
            final = max(final, order[at] // levels)
    last = -1
    for at in range(head, tail):
        g = order[at]
        i = g // levels
        start = max(begin[i], a) if i == final else begin[i + 1] - count[g]
        for t in range(start, start + count[g]):
            # The last step of a slot reaches its fastest level, which comes first in order.
            level[t] = reached[g] + 1 if level[t] == 0 else min(level[t], reached[g] + 1)
            last = max(last, t)
    return last


@njit(cache=True)
def trail(choice, table, state, last, first, level):  # type: ignore[no-untyped-def]
    """Write to `level` the level plus 1 of each slot of the schedule that ends in `last`, 0 for unused slots."""
    level[:] = 0
    t = last
    while t >= first:
        # Slots before this state was in reach were not written; the walk reaches state 0 before it needs them.
        k = choice[t, state]
        if k > 0:
            level[t] = k
            state = table[state, k - 1]
        t -= 1


@njit(cache=True)
def work_of(level, progress):  # type: ignore[no-untyped-def]
    """Return the iterations that a schedule does, given the level plus 1 of each slot."""
    done = 0.0
    for k in level:
        if k > 0:
            done += progress[k - 1]
    return done


@njit(cache=True)
def runner_up(payoffs, a, best, floor):  # type: ignore[no-untyped-def]
    """Return the slot other than `best` in which ending pays most; -1 if none pays more than `floor`."""
    found = -1
    for t in range(a, len(payoffs)):
        if t != best and payoffs[t] > floor and (found < 0 or payoffs[t] > payoffs[found]):
            found = t
    return found


@njit(cache=True)
def emit(job, level, last, prices, dearer, room, held, order, among, gpus, entries, out):  # type: ignore[no-untyped-def]
    """Append the entries of a schedule; return the new number of entries, or -1 if they do not fit."""
    cell, count = out
    take = np.zeros(len(room), np.int64)
    for t in range(last + 1):
        if level[t] > 0:
            if entries + len(room) > len(cell):
                return -1
            fill(prices, dearer, room, held, order, among[level[t] - 1], gpus, t, take)
            for r in range(len(room)):
                if take[r] > 0:
                    cell[entries] = r * room.shape[1] + t
                    count[entries] = take[r]
                    entries += 1
    return entries


@njit(cache=True)
def bind(bounds, room, held, free, forced):  # type: ignore[no-untyped-def]
    """Write the fewest and most GPUs that `bounds` ``(4, u)`` let a job hold, and which slots it is forced to use."""
    for u in range(bounds.shape[1]):
        r, t = divmod(bounds[1, u], room.shape[1])
        held[r, t], free[r, t] = bounds[2, u], min(room[r, t], bounds[3, u])
        forced[t] = forced[t] or held[r, t] > 0


@njit(cache=True)
def unbind(bounds, room, held, free, forced):  # type: ignore[no-untyped-def]
    """Undo :func:`bind`."""
    for u in range(bounds.shape[1]):
        r, t = divmod(bounds[1, u], room.shape[1])
        held[r, t], free[r, t], forced[t] = 0, room[r, t], False


@njit(cache=True)
def follow(choice, states, when, sure_when, a, progress, work, level):  # type: ignore[no-untyped-def]
    """Write the schedule from the necessary units that ends in `when` or, if that does too little work, the sure one.

    The sure one is from the sufficient units. Returns the last slot of the schedule written (-1 for none), and whether
    it is the schedule from the necessary units.
    """
    table, need, enough = states
    trail(choice, table, need, when, a, level)
    if work_of(level, progress) >= work * (1 - ROUNDING):
        return when, True
    if sure_when >= 0:
        trail(choice, table, enough, sure_when, a, level)
    return sure_when, False


@njit(cache=True)
def price(prices, room, which, jobs, machines, worth, floor, uses, covers, several, close, out):  # type: ignore[no-untyped-def]
    """Find the best schedules of jobs at given prices, one job after another.

    :meth:`schedgap.models.engine.gangs.pricing.GangPricing._price` allocates the arrays for the results.

    Parameters
    ----------
    prices, room
        ``(k, T)`` price and free GPUs of every type and slot.
    which, jobs, machines, worth
        Jobs to price; arrays of all jobs and of their machines; ``(n, T)`` utilities.
    floor, several
        ``(n,)`` payoffs that a schedule must exceed; whether to look for a second schedule of each job.
    close
        Largest error of a payoff at which the greedy choice of the cheapest slots is good enough.
    uses
        ``(4, u)`` job, cell, and fewest and most GPUs that it holds there; jobs ascend.
    covers
        Cell, spare, members and price of :class:`schedgap.models.engine.columns.Covers`.
    out
        ``most``, ``sure`` ``(len(which),)``: upper bound on the payoff, and payoff attained; ``by_end`` ``(len(which),
        T)``: upper bound by last slot, or no rows if not needed; ``owner``, ``last``, ``ends`` ``(2·len(which),)``:
        job, last slot and end of the entries of every schedule found; ``cell`` and ``count`` ``(entries,)``: cell
        ``r·T + t`` and its GPUs.

    Returns the number of schedules; -1 if the entries do not fit.
    """
    arrival, gpus, work, order, among, progress = jobs
    tables, offset, need, enough, kept = machines
    most, sure, by_end, owner, last, ends, cell, count = out
    slots = prices.shape[1]
    size = int(enough[which].max()) + 1 if len(which) else 1
    choice = np.empty((slots, size), np.uint8)
    value, payoffs, paid, spare = np.empty(size), np.empty(slots), np.empty(slots), np.empty(slots)
    held, forced, level = np.zeros_like(room), np.zeros(slots, np.bool_), np.zeros(slots, np.int64)
    free = room.copy() if uses.shape[1] else room
    own, dearer = prices.copy(), np.zeros((prices.shape[0], slots, gpus.max() if len(covers[0]) > 0 else 0))
    begin = alike(prices, room, uses, covers)
    steps = blank(len(begin) * len(prices))
    found, entries = 0, 0
    for i in range(len(which)):
        j = which[i]
        charge(prices, covers, j, gpus[j], own, dearer)
        bounds = uses[:, np.searchsorted(uses[0], j) : np.searchsorted(uses[0], j, side="right")]
        bind(bounds, room, held, free, forced)
        a, target = arrival[j], work[j] * (1 - ROUNDING)
        table = tables[offset[j] : offset[j + 1]].reshape(-1, kept[j])
        speeds = progress[j, : np.count_nonzero(progress[j])]
        cost = np.empty((len(begin) - 1, len(speeds)))
        costs(own, dearer, free, held, order[j], among[j], gpus[j], begin, cost)
        cheapest = least_cost(cost, begin, speeds, target, a)
        most[i], sure[i], when, _, _ = greedy(
            cost, begin, speeds, target, worth[j], a, slots, cheapest, floor[j], paid, payoffs, steps
        )
        rough = len(table) == 0 or (close > 0 and most[i] - sure[i] <= close and not forced.any())
        states = table, need[j], enough[j]
        if not rough:
            most[i], when, sure[i], sure_when = sweep(
                cost, begin, states, worth[j], a, forced, floor[j], choice, value, payoffs, paid, spare
            )
        elif forced.any():  # steps ignore forced slots
            sure[i], when = -INFINITE, -1
        if len(by_end):
            by_end[i] = paid
        for second in range(2):
            if second:
                when = runner_up(payoffs, a, when, floor[j]) if several and when >= 0 else -1
            if when < 0:
                break
            if rough:
                again = greedy(
                    cost, begin, speeds, target, worth[j], a, when + 1, cheapest, floor[j], paid, spare, steps
                )
                ends_in = taken(steps, again[3], again[4], begin, a, len(speeds), level)
            else:
                ends_in, true = follow(choice, states, when, -1 if second else sure_when, a, speeds, work[j], level)
                sure[i] = most[i] if true and not second else sure[i]
            if ends_in < 0:
                break
            entries = emit(
                j, level, ends_in, own, dearer, free, held, order[j], among[j], gpus[j], entries, (cell, count)
            )
            if entries < 0:
                return -1
            owner[found], last[found], ends[found] = j, ends_in, entries
            found += 1
        unbind(bounds, room, held, free, forced)
    return found
