"""Moldable jobs (Zhou, admission): packing problems in which a schedule is an uninterrupted run of workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from .basics import DEAR, STRETCH, Array, Data, require
from .packing import PackingRule, Uses
from .reading.moldable import RawMoldable as Runs


class MoldablePacking(PackingRule):
    """The packing problem of moldable jobs, which run on workers with parameter servers (PSs), or on a ring of workers.

    All PSs of a job are on one server, and their bandwidth limits the number of workers on other servers. In a `ring`
    there are no PSs. Equal servers form a class. Slots are numbered from 0 here; jobs arrive in slots `begin`.
    """

    ring = False
    begin: list[int]
    earliest: list[int]

    def prepare(self, data: Data, horizon: Data) -> None:
        self.read = self.reading(data)
        hardware = self.read.hardware
        self.workers, self.servers, self.need = hardware.workers, hardware.ps, hardware.takes
        self.has, self.count, self.room = self.read.has, self.read.count, self.read.room
        most = [[self.most(c, r) for r in range(self.has.shape[1])] for c in range(len(self.has))]
        self.capacity = (np.array(most) * self.count[:, None]).ravel() * STRETCH
        self.ends()

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
    def options(self, j: int) -> list[tuple[int, int, int, int, int]]:
        """Return the options of a job with the fewest workers for each duration.

        An option is a worker type, a PS type, whether all is on one server, the number of workers, and of slots.
        """
        options = []
        n = np.arange(1, self.read.chunks[j] + 1)
        for layout in self.read.layouts():
            slots, first = np.unique(self.read.slots(j, layout, n), return_index=True)
            finite = np.isfinite(slots)
            pairs = zip(n[first[finite]].tolist(), slots[finite].tolist(), strict=True)
            options += [(*layout, number, int(length)) for number, length in pairs]
        return options

    @cache  # noqa: B019
    def cost(self, which: int, part: int, kind: int, slots: int) -> Array:
        """Return the cost of a worker (part 0) or PS (part 1) in each window of `slots` slots, by class of servers."""
        prices = self.prices[which].reshape(*self.has.shape, -1)
        per_slot = np.floor(np.einsum("crt,r->ct", prices, self.need[part][kind]) * (1 - 1e-14))
        per_slot = np.minimum(per_slot, DEAR).astype(np.int64)
        total = np.pad(np.cumsum(per_slot, axis=1), ((0, 0), (1, 0)))
        return np.asarray(total[:, slots:] - total[:, :-slots])

    @cache  # noqa: B019
    def place(self, which: int, m: int, p: int, together: int, number: int, slots: int) -> Array:
        """Return what the cheapest placement of an option costs, by the window of slots in which it runs."""
        costs = [self.cost(which, part, kind, slots) for part, kind in enumerate((m, p)[: 2 - self.ring])]
        return self.cheapest(
            (m, p, together, number), costs, self.room[m][:, None], self.has[:, :, None] * STRETCH, DEAR
        )

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
        best = np.full(cost.shape[1], dear)
        ps_per_worker = self.workers[m]["bandwidth_gbps"] / self.servers[p]["bandwidth_gbps"] / STRETCH
        for g in [number] if together else range(min(number - 1, room.max()) + 1):
            s = max(1, math.ceil((number - g) * ps_per_worker))
            needed = g * self.need[0][m] + s * self.need[1][p]
            fits = (room >= g) & (needed[:, None] <= free).all(axis=1)
            for c in np.flatnonzero(fits.any(axis=1)):
                own = np.where(fits[c], g * cost[c] + s * costs[1][c], dear)
                if (own < best).any():
                    others = everywhere - room * (np.arange(len(room)) == c)[:, None]
                    best = np.minimum(best, own + spread(cost, others, number - g, dear))
        return best

    def kept(self, jobs: Sequence[Any]) -> dict[int, int]:
        return {j: int(most) for j, most in jobs}

    @cache  # noqa: B019
    def priced(self, which: int, m: int) -> tuple[Array, ...]:
        """Return slot, resource, spare and price of the covers that workers of type `m` pay for, and their numbers.

        Workers that fit on one class of servers only pay for the covers of this class; other workers pay for none.
        """
        classes, resources = np.flatnonzero(self.room[m]).tolist(), self.has.shape[1]
        prices = enumerate(self.extra[which])
        at = [i for i, price in prices if price and [self.covers[i][0][0] // resources] == classes]
        rows = [(t, row % resources, spare) for (row, t), spare, _ in (self.covers[i] for i in at)]
        t, resource, spare = np.array(rows, np.int64).reshape(-1, 3).T
        return t, resource, spare, np.array([self.extra[which][i] for i in at], float), np.array(at, np.int64)

    @cache  # noqa: B019
    def shared(self, which: int, j: int, m: int, number: int) -> Array:
        """Return what `number` workers pay for covers in the first 0, 1, … slots together, rounded down."""
        t, resource, spare, price, at = self.priced(which, m)
        kept = np.array([self.covers[i][2].get(j, 0) for i in at.tolist()], np.int64)
        use = number * self.need[0][m][resource] * (1 - 1e-15)
        costs = np.zeros(self.slots + 1, np.int64)
        taken = np.maximum(np.minimum(use, kept), use - spare)
        np.add.at(costs, t + 1, np.floor(price * taken * (1 - 1e-14)).astype(np.int64))
        return np.asarray(np.cumsum(costs))

    def answer(self, j: int, worth: Array, which: int, uses: Uses) -> int:
        require(not uses, "trees of moldable jobs branch on ends only")
        first, best, upper = self.earliest[j], worth[-1], []
        # Costs may overflow on servers where a PS does not fit: prices of a capacity of 0 have no limit.
        hosts = [(need <= self.has * STRETCH).all(axis=1) for need in self.need[1]]
        for option in self.options(j):
            m, p, _, number, slots = option
            if first + slots <= self.slots:
                usable = self.cost(which, 0, m, slots)[self.room[m] > 0, first:].min(axis=0) * number
                if not self.ring:
                    usable = usable + self.cost(which, 1, p, slots)[hosts[p], first:].min(axis=0, initial=DEAR)
                upper.append(((worth[first + slots : self.slots + 1] - usable).max(), option))
        for most, option in sorted(upper, reverse=True):
            if most <= best:
                break
            paid = self.place(which, *option)
            if self.covers:
                until = self.shared(which, j, option[0], option[3])
                paid = paid + (until[option[4] :] - until[: -option[4]])
            best = max(best, (worth[first + option[4] : -1] - paid[first:]).max())
        return int(best)


def spread(cost: Array, room: Array, number: int, dear: float) -> Array:
    """Return what the cheapest `number` workers cost, by window; `dear` where so many do not fit."""
    order = np.argsort(cost, axis=0)
    there = np.take_along_axis(np.broadcast_to(room, cost.shape), order, 0)
    taken = np.clip(number - (np.cumsum(there, axis=0) - there), 0, there)
    paid = (taken * np.take_along_axis(cost, order, 0)).sum(axis=0)
    return np.asarray(np.where(room.sum(axis=0) >= number, paid, dear))
