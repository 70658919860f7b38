"""Hadar and Gavel: prices of GPUs by slot bound total utility; fluids of gangs or of copies bound completion times.

The problems about completion times are called Gavel's. The best response of a job to prices is computed exactly, by a
dynamic program over slots and amounts of remaining work.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .basics import DEAR, LESS, LOW, MORE, NEVER, Array, Data, require, up
from .fluid import READS, EndWorth, Fleet, Kind, completion, last_end, over_intervals, percentile, seconds
from .packing import SLOTTED, PackingRule, Uses, by_slots
from .reading.gangs import gangs_of
from .rules import register


class HadarPacking(PackingRule):
    """Hadar's gangs: a schedule is a set of slots, in each of which the gang holds GPUs of any types.

    The gang runs at the rate of its slowest GPU. Jobs may be rejected unless the problem is to `complete` them all.
    """

    complete = False

    def prepare(self, data: Data, horizon: Data) -> None:
        self.gangs = gangs_of(data)
        own = self.gangs.slot_s, self.gangs.slots
        require((self.slot_s, self.slots) == own, "slots are not the instance's own")
        self.capacity, self.rates = self.gangs.capacity.tolist(), self.gangs.jobs.rates
        self.arrival = [min(a, self.slots) for a in self.gangs.arrival.tolist()]
        self.worth = [up(np.append(self.gangs.worth(j, self.slots), 0.0), self.unit) for j in range(len(self.jobs))]
        for worth in self.worth:
            worth[-1] = NEVER if self.complete else 0

    def cuts(self, proof: Data) -> list[Fraction]:
        """Read the covers, and return their right-hand sides.

        A cover is a row with a set of jobs, for which all of their GPUs are reserved, and a ``spare``. A job counts
        with what it takes up to its reserve, or with what it takes beyond ``spare``, whichever is more; the sum is at
        most the capacity less ``spare``. The row is valid since all reserves fit next to ``spare``: if a job takes more
        than its reserve and ``spare``, that much is missing for the others.
        """
        covers, right = proof.get("covers", ()), []
        self.covers = [(divmod(row, self.slots), int(spare), set(jobs)) for row, spare, jobs in covers]
        for (r, _), spare, kept in self.covers:
            rest, reserved = self.whole[r] - spare, [self.jobs[j]["gpus"] for j in kept]
            fits = min(spare, rest - 1, rest - sum(reserved)) >= 0
            require(fits, "the jobs of a cover do not fit next to what they spare")
            right.append(rest)
        return right

    @cache  # noqa: B019 -- there is one object
    def states(self, j: int) -> Array:
        """Return, for each state, the state after one more slot at each level; state 0 is done, the last has all work.

        Amounts of remaining work, in units of 2^-40 of the work, form one state if the same sets of slots complete
        them.
        """
        each = [self.jobs[j]["gpus"] * self.rates[j][types].min() * self.slot_s for types in self.gangs.levels(j)]
        # A slot that completes all the work may be worth more of it than numbers of 64 bits hold.
        steps = np.array([min(math.ceil(Fraction(float(p)) * 2**40 / self.work[j]), 2**40) for p in each])
        work, sums = math.floor(2**40 * Fraction(LESS)), np.zeros(1, np.int64)
        for step in steps:
            times = min(work // step, self.slots) + 1
            require(len(sums) * times < 5e7, f"job {j} is too long for this plain program")
            sums = np.add.outer(sums, step * np.arange(times))
            sums = np.sort(sums[sums < work])
            sums = sums[np.diff(sums, prepend=-1) > 0]
        # The same slots complete any amount of work between two neighbouring sums of progress.
        state, first = np.unique(np.searchsorted(sums, work - sums), return_index=True)
        after = np.searchsorted(sums, (work - sums[first])[:, None] - steps)
        return np.vstack([np.zeros((1, len(steps)), int), np.searchsorted(state, after, side="right")])

    def cost(self, among: Array, prices: Array, low: Array, high: Array, gang: int) -> Array:
        """Return, for each slot, what the cheapest gang on the types `among` costs, with `low` to `high` GPUs of each.

        `prices` has the price of the first, second, … GPU of each type and slot; covers may make later ones dearer.
        """
        number = np.arange(gang)[:, None]
        held, free = number < low[:, None], (number >= low[:, None]) & (number < high[:, None])
        left = gang - low.sum(axis=0)
        order = np.sort(np.where(free, prices, DEAR)[among].reshape(-1, self.slots), axis=0)
        taken = np.arange(len(order))[:, None] < left
        fits = (left >= 0) & (free[among].sum(axis=(0, 1)) >= left) & ~np.delete(low, among, axis=0).any(axis=0)
        return np.where(fits, np.where(held, prices, 0).sum(axis=(0, 1)) + np.where(taken, order, 0).sum(axis=0), DEAR)

    def answer(self, j: int, worth: Array, which: int, uses: Uses) -> int:
        gang, never, worth = self.jobs[j]["gpus"], int(worth[-1]), worth[:-1]
        prices = np.repeat(self.prices[which][:, None], gang, axis=1)
        for ((r, t), spare, kept), price in zip(self.covers, self.extra[which], strict=True):
            prices[r, 0 if j in kept else spare :, t] += price
        low, high = np.zeros_like(self.prices[which]), np.repeat(np.array(self.capacity)[:, None], self.slots, axis=1)
        for _, row, least, most in uses:
            low.flat[row], high.flat[row] = least, max(least, min(most, high.flat[row]))
        forced = np.asarray(low.any(axis=0))
        worth = np.where(np.arange(self.slots) >= np.flatnonzero(forced).max(initial=0), worth, NEVER)
        costs = [self.cost(among, prices, low, high, gang) for among in self.gangs.levels(j)]
        if not costs:
            return never
        if j in self.divisible:
            return max(never, self.divided(j, worth, np.array(costs)))
        table, best = self.states(j), never
        value = np.append(0, np.full(len(table) - 1, DEAR))
        latest = np.maximum.accumulate(worth[::-1])[::-1]
        for t in range(self.arrival[j], self.slots):
            if latest[t] <= best:  # no later end is worth more
                break
            run = np.min([value[after] + cost[t] for after, cost in zip(table.T, costs, strict=True)], axis=0)
            value = np.minimum(run, DEAR if forced[t] else value)
            best = max(best, int(worth[t] - value[-1]))
        return best

    def divided(self, j: int, worth: Array, costs: Array) -> int:
        """Return the largest worth less payment of a job if it may use fractions of slots.

        At any price per unit of work, the slots up to an end cost at least the price of the work, less the largest
        profit that each slot can make of that price. :data:`PRICES` prices choose the ends that may be best.
        """
        since, need = self.arrival[j], self.work[j] * LESS
        own = [self.rates[j][types].min() * self.jobs[j]["gpus"] * self.slot_s for types in self.gangs.levels(j)]
        pace = np.append(0.0, own)
        worth, cost = worth[since:], np.vstack([np.zeros(self.slots - since), costs[:, since:]])
        begin = np.flatnonzero(np.append(True, np.diff(cost).any(axis=0)))
        cost, length = cost[:, begin], np.diff(begin, append=cost.shape[1])
        pairs = combinations(range(len(pace)), 2)
        each = np.concatenate([(cost[a] - cost[b]) / (pace[a] - pace[b]) for a, b in pairs])
        each = np.unique(np.append(each[each > 0], DEAR / pace.max()))
        some = each[np.unique(np.linspace(0, len(each) - 1, PRICES).astype(np.int64))]
        require(some.size * len(begin) < 5e7, f"prices are too many for job {j} and this plain program")

        def gains(unit: Array, upto: int) -> Array:
            return np.asarray(np.max([unit * p - c for p, c in zip(pace, cost[:, :upto], strict=True)], axis=0))

        gain = gains(some[:, None], len(begin))
        after = np.cumsum(gain * length, axis=1)
        least = np.clip((some[:, None] * need * LOW - after).max(axis=0), 0.0, DEAR)
        most, best = np.maximum.reduceat(worth, begin) - least.astype(np.int64), NEVER
        for i in np.argsort(-most).tolist():
            if most[i] <= best:
                break
            slots = np.arange(length[i])
            # The bound is concave in the price: the best of all prices is next to the best of some.
            at = (some[:, None] * need * LOW - after[:, i : i + 1] + gain[:, i : i + 1] * slots).argmax(axis=0)
            low, high = some[max(at.min() - 1, 0)], some[min(at.max() + 1, len(some) - 1)]
            near = each[(each >= low) & (each <= high)][:, None]
            require(near.size * (i + 1) < 5e7, f"prices are too many for job {j} and this plain program")
            exact = gains(near, i + 1)
            until = near * need * LOW - (exact * length[: i + 1]).sum(axis=1, keepdims=True)
            paid = np.clip((until + exact[:, i:] * slots).max(axis=0)[::-1], 0.0, DEAR).astype(np.int64)
            best = max(best, int((worth[begin[i] : begin[i] + length[i]] - paid).max()))
        return best


class Forked(HadarPacking):
    """Jobs that run as copies, one on each server: a job buys whole GPUs anywhere, at most its gang's size per server.

    The GPUs of all servers of one type and size have the same price in a slot.
    """

    def prepare(self, data: Data, horizon: Data) -> None:
        super().prepare(data, horizon)
        kinds = [(r, gpus, servers) for (r, gpus), servers in self.gangs.classes.items()]
        self.type, self.capacity = [r for r, *_ in kinds], [gpus * servers for _, gpus, servers in kinds]
        self.most = [[servers * min(job["gpus"], gpus) for _, gpus, servers in kinds] for job in self.jobs]

    def answer(self, j: int, worth: Array, which: int, uses: Uses) -> int:
        pace, prices = self.rates[j][self.type] * self.slot_s, self.prices[which].astype(float)
        low, high = np.zeros(prices.shape, int), np.repeat(np.array(self.most[j])[:, None], self.slots, axis=1)
        for _, row, least, most in uses:
            low.flat[row], high.flat[row] = least, max(least, min(most, high.flat[row]))
        first = max(self.arrival[j], np.flatnonzero(low.any(axis=0)).max(initial=0))
        need = self.work[j] * LESS - float((low * pace[:, None]).sum())
        able, since, room = pace > 0, self.arrival[j], high - low
        held, best = math.floor(float((low * prices).sum()) * LOW), int(worth[-1])
        offer = GpuOffer(prices[able, since:], room[able, since:], pace[able])
        ends = np.flatnonzero(worth[first : self.slots] > NEVER) + first
        most = worth[ends] - held - np.floor(offer.least(need)[ends - since] * LOW).astype(np.int64)
        for i in np.argsort(-most).tolist():
            if most[i] <= best:
                break
            best = max(best, int(worth[ends[i]]) - held - math.floor(offer.until(ends[i] - since).whole(need) * LOW))
        return best


PRICES = 64
"""Number of prices per unit of work that bound the cost of GPUs."""


class GpuOffer(NamedTuple):
    """The GPUs that a job can buy: their price and number by class and slot, and the work of one GPU in a slot.

    `price` and `room` are by class of servers and slot, `pace` by class.
    """

    price: Array
    room: Array
    pace: Array

    def until(self, slot: int) -> GpuOffer:
        """Return what is offered up to a slot."""
        return GpuOffer(self.price[:, : slot + 1], self.room[:, : slot + 1], self.pace)

    def least(self, need: float) -> Array:
        """Return, for each slot, a lower bound on the cost of the work with GPUs up to that slot.

        At any price per unit of work, GPUs cost at least the price of the work less the profit of all GPUs that are
        cheaper. Of some such prices, the best is taken.
        """
        unit, there = self.price / self.pace[:, None], self.room * self.pace[:, None]
        some = np.unique(np.quantile(unit, np.linspace(0, 1, PRICES))) if unit.size else np.zeros(0)
        profit = np.array([(there * np.maximum(one - unit, 0.0)).sum(axis=0) for one in some.tolist()])
        bounds = some[:, None] * max(need, 0.0) - np.cumsum(profit.reshape(len(some), -1), axis=1)
        return np.asarray(np.clip(bounds.max(axis=0, initial=0.0), 0.0, DEAR / 4))

    def bought(self, need: float) -> tuple[float, float]:
        """Return what the cheapest divisible GPUs that do the work cost, and the highest price of a unit of work."""
        unit, there = (self.price / self.pace[:, None]).ravel(), (self.room * self.pace[:, None]).ravel()
        order = np.argsort(unit)
        left = need - (np.cumsum(there[order]) - there[order])
        if left.size == 0 or left[-1] > there[order[-1]] * MORE:
            return (0.0, 0.0) if need <= 0 else (1e300, 0.0)
        done = np.clip(left, 0, there[order])
        return float((done * unit[order]).sum()), float(unit[order][done > 0].max(initial=0.0))

    def whole(self, need: float) -> float:
        """Return what the cheapest whole GPUs that do the work cost.

        The reduced cost of GPUs is their cost less the value of their work at the highest unit price of the fractional
        solution. Only numbers of GPUs whose reduced costs are together within the gap of the least ones can be optimal.
        Of their combinations, only those matter that no other combination beats in both work and cost.
        """
        least, dual = self.bought(need)
        if need <= 0 or least >= 1e300:
            return least
        paces, costs, floor = np.unique(self.pace), [], dual * need
        for pace in paces:
            own = self.pace == pace
            price, room, most = self.price[own].ravel(), self.room[own].ravel(), math.ceil(need / pace)
            order = np.argsort(price)
            order = order[: np.searchsorted(np.cumsum(room[order]), most) + 1]
            each = np.repeat(price[order], room[order])[:most]
            costs.append(np.concatenate([[0.0], np.cumsum(each)]))
        above = [cost - dual * pace * np.arange(len(cost)) for cost, pace in zip(costs, paces, strict=True)]
        floor += sum(float(x.min()) for x in above)
        at = np.array([int(x.argmin()) for x in above])
        rest, start = max(need - float(at @ paces), 0.0), sum(cost[n] for cost, n in zip(costs, at, strict=True))
        more = np.maximum(np.ceil(rest / paces * (1 - 1e-12)), 0).astype(int)
        tried = [start - c[n] + c[n + m] for c, n, m in zip(costs, at, more, strict=True) if n + m < len(c)]
        gap = (min(tried, default=math.inf) - floor) * MORE + abs(floor) * 1e-12
        done, paid, over = np.zeros(1), np.zeros(1), np.zeros(1)
        for cost, x, pace in zip(costs[:-1], above, paces, strict=False):
            order = np.lexsort((paid, -done))
            order = order[paid[order] < np.minimum.accumulate(np.concatenate([[np.inf], paid[order][:-1]]))]
            excess = x - x.min()
            numbers = np.flatnonzero(excess <= gap)
            require(len(order) * len(numbers) < 5e7, "there are too many numbers of GPUs for this plain program")
            sums = (done, numbers * pace), (paid, cost[numbers]), (over, excess[numbers])
            done, paid, over = (np.add.outer(old[order], new).ravel() for old, new in sums)
            near = over <= gap
            done, paid, over = done[near], paid[near], over[near]
        # GPUs of the last pace do the rest, as few as possible, since more of them cost more.
        last = np.maximum(np.ceil((need - done) / paces[-1] * (1 - 1e-12)), 0).astype(int)
        enough = last < len(costs[-1])
        return float((paid[enough] + costs[-1][last[enough]]).min(initial=1e300))


class GangFleet(Fleet):
    """Hadar's gangs as a fluid: each GPU of a gang counts at its own rate, and resources are GPU types.

    If `together` is true, jobs run as copies, one on each server.
    """

    def __init__(self, data: Data, proof: Data, grain: float = 0.0, together: bool = False) -> None:
        self.grain, self.together, self.gangs = grain, together, gangs_of(data)
        require(proof["slot_s"] == self.gangs.slot_s, "slots are not the instance's own")
        self.jobs, self.there = self.gangs.jobs, self.gangs.capacity.astype(float)
        jobs = range(self.jobs.size)
        self.which = [j for j in jobs if (self.speed(j).any() if together else self.gangs.levels(j))]
        self.start = self.gangs.arrival[self.which].tolist()
        self.weight = [1.0] * len(self.which)
        self.alone = [max(self.fastest(j), self.grain) for j in self.which]
        self.arrived_s = self.jobs.arrival_s[self.which].tolist()

    def speed(self, job: int) -> Array:
        """Return, for each GPU type, the most iterations that a job can do in a slot."""
        gang, held = self.jobs.gpus[job], np.zeros(len(self.there))
        for (r, gpus), servers in self.gangs.classes.items():
            held[r] += servers * min(gpus, gang)
        held = held if self.together else gang * (held > 0)
        return np.asarray(self.jobs.rates[job] * held * self.gangs.slot_s)

    def fastest(self, job: int) -> float:
        """Return the least duration of a job's work."""
        if self.together:
            return float(self.jobs.work[job] * LESS / self.speed(job).sum())
        rate = min(self.jobs.rates[job][self.gangs.levels(job)[0]])
        return float(self.jobs.work[job] * LESS / (self.jobs.gpus[job] * rate * self.gangs.slot_s))

    def ways(self, j: int) -> tuple[Array, Array]:
        job = self.which[j]
        work, gang, rates = self.jobs.work[job] * LESS, self.jobs.gpus[job], self.jobs.rates[job]
        with np.errstate(divide="ignore"):
            times = np.maximum(work / self.speed(job), self.grain)
            each = work / (rates * self.gangs.slot_s) if self.together else times * gang
        return times, np.diag(np.where(np.isfinite(times), each, 0.0))

    def worth(self, j: int, slots: int) -> Array:
        """Return the utility of a job for each last slot."""
        return self.gangs.worth(self.which[j], slots)


def utilities(fleet: GangFleet, j: int, edges: Array) -> EndWorth:
    """Return the worth of a job's ends for utilities.

    In each interval, a line from the utility of the first end lies above the utilities of all later ends.
    """
    worth, begin = fleet.worth(j, int(edges[-1])), np.maximum(edges[:-1], fleet.start[j])
    require(bool((np.diff(worth[fleet.start[j] :]) <= 0).all()), f"job {j} is worth more when it ends later")
    first = np.maximum(edges[:-1], fleet.first_end(j) - 1).astype(int)
    value, slope = np.full(len(begin), -np.inf), np.zeros(len(begin))
    for k in np.flatnonzero(first < edges[1:]):
        value[k] = worth[first[k]]
        later = worth[first[k] + 1 : int(edges[k + 1])]
        lost = (value[k] - later) / np.arange(1, len(later) + 1) - 1e-12 * abs(value[k])
        slope[k] = max(lost.min(initial=np.inf), 0.0) * fleet.alone[j] if len(later) else 0.0
    return EndWorth(value, slope, (first + 1 - begin) / fleet.alone[j])


def worth(kind: Kind, data: Data, proof: Data, must: bool = False) -> tuple[int, Fraction]:
    """Return a bound on total utility, by prices over intervals; `must` requires every job to complete."""
    fleet, edges = kind(data, proof), np.array(proof["edges"], float)
    require(edges[-1] == fleet.gangs.slots, "intervals do not end with the instance")
    return 1, over_intervals(fleet, proof, edges, utilities, must)


COPIES = partial(GangFleet, together=True)
GRAINED = partial(GangFleet, grain=1.0)

COVERED = (*SLOTTED, "covers")

register("hadar.utility", partial(by_slots, HadarPacking), (*COVERED, "divisible"))
register("hadar.complete", partial(by_slots, partial(HadarPacking, complete=True)), (*COVERED, "divisible"))
register("hadar.forked", partial(by_slots, Forked), COVERED)
# Certificates with edges have prices over intervals instead of slots.
for name, kind in {
    "utility": partial(worth, GRAINED),
    "complete": partial(worth, GRAINED, must=True),
    "forked": partial(worth, partial(COPIES, grain=1.0)),
}.items():
    register(f"hadar.{name}", kind, reads=("slot_s", "prices"), given="edges")
for name, bound in {"makespan": last_end, "mean": completion, "p99": percentile}.items():
    register(f"gavel.{name}", partial(seconds, GangFleet, bound), READS[bound], simulated=True)
    register(f"gavel.{name}_copies", partial(seconds, COPIES, bound), READS[bound], simulated=True)
