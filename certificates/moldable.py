"""Moldable jobs (Zhou, admission): packing problems in which a schedule is an uninterrupted run of workers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .basics import DEAR, NEVER, STRETCH, Array, Data, require
from .packing import SLOTTED, PackingRule, Uses
from .reading.moldable import RawMoldable as Runs


class RawOptions(NamedTuple):
    """RawOptions of a job ``(options,)``: types of workers and PSs, whether all is on one server, and numbers.

    The numbers are those of workers and of slots, and the fewest PSs that do.
    """

    worker: Array
    ps: Array
    together: Array
    workers: Array
    slots: Array
    fewest: Array

    def take(self, which: slice) -> RawOptions:
        """Return some of the options."""
        return RawOptions(*(part[which] for part in self))

    def parts(self, begins: int) -> Iterator[RawOptions]:
        """Yield the options in parts whose tables, for that many begins of runs, have at most `MOST` cells."""
        step = max(MOST // max(begins, 1), 1)
        return (self.take(slice(i, i + step)) for i in range(0, len(self.slots), step))


MOST = 10**6
"""Most cells of a table of options and begins of runs."""

MOST_WEIGHTS = 10**8
"""Most weights of cuts, and most cells of the table that checks them."""


class MoldablePacking(PackingRule):
    """The packing problem of moldable jobs, which run on workers with parameter servers (PSs), or on a ring of workers.

    All PSs of a job are on one server, and their bandwidth limits the number of workers on other servers. In a `ring`
    there are no PSs. Equal servers form a class. Slots are numbered from 0 here; jobs arrive in slots `begin`.
    """

    ring = False
    begin: list[int]
    earliest: list[int]

    def __init__(self, data: Data, proof: Data, **settings: Any) -> None:
        self.units = [(resource, Fraction(unit)) for resource, unit in proof.get("units", ())]
        super().__init__(data, proof, **settings)

    def prepare(self, data: Data, horizon: Data) -> None:
        self.read = self.reading(data)
        hardware = self.read.hardware
        self.workers, self.servers = hardware.workers, hardware.ps
        self.need = self.counted(hardware.takes[0]), self.counted(hardware.takes[1], 0.0)
        self.has, self.count, self.room = self.counted(self.read.has, STRETCH), self.read.count, self.read.room
        most = [[self.most(c, r) for r in range(self.has.shape[1])] for c in range(len(self.has))]
        self.capacity = (np.array(most) * self.count[:, None]).ravel() * STRETCH
        self.ends()

    def counted(self, amounts: Array, stretch: float = 1.0) -> Array:
        """Return amounts ``(…, R)`` with a further resource for each of the certificate's units: how many it holds.

        The whole units of needs that fit into a server together are at most those of its capacity, all the more if
        those of PSs do not count, for which `stretch` is 0.
        """
        known, whole = amounts.shape[1], [list[float]() for _ in amounts]
        for resource, unit in self.units:
            require(0 <= resource < known and unit > 0, "a unit belongs to no resource")
            for row, amount in zip(whole, amounts[:, resource].tolist(), strict=True):
                row.append(math.floor(Fraction(amount) * Fraction(stretch) / unit))
        return np.hstack([amounts, np.array(whole, float).reshape(len(amounts), len(self.units))])

    def reading(self, data: Data) -> Runs:
        """Read the jobs and their hardware; set in which slots jobs arrive, and check the slots of the certificate."""
        raise NotImplementedError

    def ends(self) -> None:
        """Set the `earliest` slots of the jobs and the `worth` of their ends."""
        raise NotImplementedError

    def most(self, c: int, resource: int) -> float:
        """Return how much of a resource can be used on a server of class `c`, since workers and PSs are whole.

        This is the largest sum of their needs within the capacity, or the capacity itself if there are too many sums.
        """
        has = self.has[c]
        able = [w for w, room in zip(self.need[0], self.room, strict=True) if room[c]]
        able += [s for s in self.need[1] if (s <= has * STRETCH).all()]
        sums, limit = np.zeros(1), has[resource] * STRETCH
        for need in sorted({float(needs[resource]) for needs in able} - {0.0}):
            number = math.floor(limit / need) + 1
            if len(sums) * number > 10**6:
                return float(has[resource])
            more = (sums[:, None] + need * np.arange(number)).ravel()
            more = more[more <= limit]
            sums = more[np.unique((more / has[resource]).round(12), return_index=True)[1]]
        return float(min(sums.max(), has[resource]) or has[resource])

    @cache  # noqa: B019
    def options(self, j: int) -> RawOptions:
        """Return the options of a job that fit somewhere, with the fewest workers for each duration of a layout."""
        listed, n = [np.zeros((6, 0))], np.arange(1, self.read.chunks[j] + 1)
        for layout in self.read.layouts():
            fewest = self.read.servers(layout)[: n.size]
            slots, first = np.unique(self.read.slots(j, layout, n), return_index=True)
            fits = (slots <= self.slots) & np.isfinite(fewest[first])
            kept = first[fits]
            listed.append(np.stack([*(np.full(kept.size, i) for i in layout), n[kept], slots[fits], fewest[kept]]))
        return RawOptions(*np.concatenate(listed, axis=1).astype(np.int64))

    @cache  # noqa: B019
    def cost(self, which: int, part: int, kind: int, slots: int) -> Array:
        """Return the cost of a worker (part 0) or PS (part 1) in each window of `slots` slots, by class of servers."""
        prices = self.prices[which].reshape(*self.has.shape, -1)
        per_slot = np.floor(np.einsum("crt,r->ct", prices, self.need[part][kind]) * (1 - 1e-14))
        per_slot = np.minimum(per_slot, DEAR).astype(np.int64)
        total = np.pad(np.cumsum(per_slot, axis=1), ((0, 0), (1, 0)))
        return np.asarray(total[:, slots:] - total[:, :-slots])

    @cache  # noqa: B019
    def lowest(self, which: int, part: int, kind: int, slots: int) -> Array:
        """Return the least cost of a worker or PS on any server where one fits, by begin; 0 where a run ends too late.

        Elsewhere costs may overflow: prices of a capacity of 0 have no limit.
        """
        fits = (self.need[1][kind] <= self.has * STRETCH).all(axis=1) if part else self.room[kind] > 0
        least = self.cost(which, part, kind, slots)[fits].min(axis=0)
        return np.asarray(np.pad(least, (0, self.slots + 1 - len(least))))

    def promise(self, j: int, worth: Array, which: int, options: RawOptions) -> Array:
        """Return ``(options, begins)`` what runs are worth less what they pay at least, for begins from the arrival on.

        Workers and PSs are paid as on the cheapest servers; PSs are as few as can be.
        """
        first, ends = self.earliest[j], np.arange(self.earliest[j], self.slots + 1) + options.slots[:, None]
        paid = np.zeros(ends.shape, np.int64)
        parts = ((options.worker, options.workers), (options.ps, options.fewest))
        for part, (kind, number) in enumerate(parts[: 2 - self.ring]):
            pairs, row = np.unique(kind * (self.slots + 1) + options.slots, return_inverse=True)
            kinds = (divmod(pair, self.slots + 1) for pair in pairs.tolist())
            each = np.stack([self.lowest(which, part, *pair)[first:] for pair in kinds])
            paid += number[:, None] * each[row]
        return np.asarray(np.where(ends <= self.slots, worth[np.minimum(ends, self.slots)], NEVER) - paid)

    def cheapest(self, option: Sequence[int], costs: Sequence[Array], room: Array, free: Array, dear: float) -> Array:
        """Return what the cheapest placement of an option costs, by window; `dear` where it does not fit.

        `costs` holds ``(classes, windows)`` what a worker, and a PS, costs. A server of each class has `room` for that
        many workers, and `free` ``(classes, resources, windows)`` resources.
        """
        m, p, together, number = option
        cost, everywhere = costs[0], room * self.count[:, None]
        if self.ring:
            whole = np.where(room >= number, number * cost, dear).min(axis=0)
            return whole if together else spread(cost, everywhere, number, dear)
        best, least = np.full(cost.shape[1], dear), cost.min(axis=0, where=room > 0, initial=dear)
        ps_per_worker = self.workers[m]["bandwidth_gbps"] / self.servers[p]["bandwidth_gbps"] / STRETCH
        for g in [number] if together else range(min(number - 1, room.max()) + 1):
            s = max(1, math.ceil((number - g) * ps_per_worker))
            needed = g * self.need[0][m] + s * self.need[1][p]
            fits = (room >= g) & (needed[:, None] <= free).all(axis=1)
            for c in np.flatnonzero(fits.any(axis=1)):
                own = np.where(fits[c], g * cost[c] + s * costs[1][c], dear)
                if (own + (number - g) * np.where(own < dear, least, 0) < best).any():
                    others = everywhere - room * (np.arange(len(room)) == c)[:, None]
                    best = np.minimum(best, own + spread(cost, others, number - g, dear))
        return best

    def cuts(self, proof: Data) -> list[Fraction]:
        """Read the knapsack cuts, and return their right-hand sides.

        A cut is a row with a limit, and refers to weights of jobs that use 1, 2, … units of the row. After the rows of
        the last class come those of all classes together. Uses are rounded
        down, and more units than listed weigh as much as the last. The total weight of whole uses that fit into the
        capacity is at most the limit, by a dynamic program over the capacity. So is that of all uses that fit.
        """
        tables, cuts = proof.get("weights", ()), proof.get("cuts", ())
        self.cut_rows = np.array([divmod(row, self.slots) for row, _, _ in cuts], np.int64).reshape(-1, 2)
        self.cut_table = np.array([which for *_, which in cuts], np.int64)
        right = [Fraction(limit) for _, limit, _ in cuts]
        levels = max((len(weights) for table in tables for weights, _ in table), default=0) + 1
        require(len(tables) * len(self.jobs) * levels <= MOST_WEIGHTS, "cuts have too many weights for this program")
        require(all(0 <= which < len(tables) for which in self.cut_table.tolist()), "a cut has no weights")
        self.weights = np.zeros((len(tables), len(self.jobs), levels), np.int64)
        for i, table in enumerate(tables):
            for weights, jobs in table:
                own = np.array(weights, np.int64)
                self.weights[i, np.array(jobs, np.int64), 1:] = np.pad(own, (0, levels - 1 - len(own)), "edge")
        require(bool((np.diff(self.weights, axis=2) >= 0).all()), "weights of a cut fall with the use")
        require(bool((self.weights < 2**31).all()), "weights of a cut are too large")
        classes, resources = self.has.shape
        together = [sum(self.whole[r::resources], Fraction(0)) for r in range(resources)]
        require(bool((self.cut_rows[:, 0] < (classes + 1) * resources).all()), "a cut belongs to no row")
        rooms = [math.floor([*self.whole, *together][r]) for r in self.cut_rows[:, 0].tolist()]
        largest = self.largest(max(rooms, default=0)) if cuts else None
        for room, which, limit in zip(rooms, self.cut_table.tolist(), right, strict=True):
            require(largest is not None and largest[which, room] <= limit, "the jobs of a cut fit beyond its limit")
        return right

    def largest(self, most: int) -> Array:
        """Return ``(tables, most + 1)`` the largest total weight of jobs whose whole uses fit into each room."""
        cells = len(self.weights) * (most + 1)
        require(cells <= MOST_WEIGHTS, "cuts of so large a capacity are not checked by this program")
        best = np.zeros((len(self.weights), most + 1), np.int64)
        for weights in np.moveaxis(self.weights, 1, 0):
            before = best.copy()
            for use in np.flatnonzero(np.diff(weights, axis=1).any(axis=0)) + 1:
                if use <= most:
                    best[:, use:] = np.maximum(best[:, use:], before[:, : most + 1 - use] + weights[:, use, None])
        return best

    @cache  # noqa: B019
    def priced(self, which: int, m: int) -> tuple[Array, ...]:
        """Return the slots, resources, lists of weights and prices of the cuts that workers of type `m` pay for.

        All workers pay for the cuts of all classes together. Workers that fit on one class of servers only pay for the
        cuts of this class, too.
        """
        classes, resources = np.flatnonzero(self.room[m]), self.has.shape[1]
        row, slot = self.cut_rows.T
        prices = np.array(self.extra[which], np.int64)
        own = (len(classes) == 1) & np.isin(row // resources, classes)
        at = np.flatnonzero((prices > 0) & (own | (row // resources == len(self.has))))
        return slot[at], row[at] % resources, self.cut_table[at], prices[at]

    @cache  # noqa: B019
    def shared(self, which: int, j: int, m: int, number: int) -> Array:
        """Return what `number` workers pay for cuts in the first 0, 1, … slots together."""
        slot, resource, table, price = self.priced(which, m)
        use = np.floor(number * self.need[0][m][resource]).astype(np.int64)
        costs = np.zeros(self.slots + 1, np.int64)
        np.add.at(costs, slot + 1, price * self.weights[table, j, np.minimum(use, self.weights.shape[2] - 1)])
        return np.asarray(np.cumsum(costs))

    def answer(self, j: int, worth: Array, which: int, uses: Uses) -> int:
        require(not uses, "trees of moldable jobs branch on ends only")
        first, best = self.earliest[j], int(worth[-1])
        for options in self.options(j).parts(self.slots + 1 - first):
            promise = self.promise(j, worth, which, options)
            most = promise.max(axis=1)
            for i in np.argsort(-most).tolist():
                if most[i] <= best:
                    break
                best = max(best, self.profit(j, worth, which, [int(part[i]) for part in options], promise[i], best))
        return best

    def profit(self, j: int, worth: Array, which: int, option: Sequence[int], promise: Array, least: int) -> int:
        """Return the largest worth less payment of the runs of an option, or `least` if none is above that.

        `promise` is the option's row of :meth:`promise`.
        """
        (m, p, together, number, slots, _), first = option, self.earliest[j]
        begin, shared = np.flatnonzero(promise > least), np.zeros(1, np.int64)
        if self.right:
            until = self.shared(which, j, m, number)
            shared = until[begin + first + slots] - until[begin + first]
            near = promise[begin] - shared > least
            begin, shared = begin[near], shared[near]
        if not begin.size:
            return least
        begin = begin + first
        costs = [self.cost(which, i, kind, slots)[:, begin] for i, kind in enumerate((m, p)[: 2 - self.ring])]
        room, free = self.room[m][:, None], self.has[:, :, None] * STRETCH
        paid = self.cheapest((m, p, together, number), costs, room, free, DEAR)
        return max(least, int((worth[begin + slots] - paid - shared).max()))


def spread(cost: Array, room: Array, number: int, dear: float) -> Array:
    """Return what the cheapest `number` workers cost, by window; `dear` where so many do not fit."""
    order = np.argsort(cost, axis=0)
    there = np.take_along_axis(np.broadcast_to(room, cost.shape), order, 0)
    taken = np.clip(number - (np.cumsum(there, axis=0) - there), 0, there)
    paid = (taken * np.take_along_axis(cost, order, 0)).sum(axis=0)
    return np.asarray(np.where(room.sum(axis=0) >= number, paid, dear))


WEIGHED = (*SLOTTED, "units", "cuts", "weights")
"""Fields of certificates with prices of capacity in slots, with whole units, and with knapsack cuts."""
