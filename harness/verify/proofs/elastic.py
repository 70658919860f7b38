"""Jobs that choose their workers (Zhou, admission): packing problems whose schedules are uninterrupted runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from .basics import DEAR, LESS, LOW, MORE, Array, Data, require, slot_of, times, up, utility
from .packing import Packing, Uses


class Elastic(Packing):
    """Workers and parameter servers (PSs), or a ring of workers, which run without interruption.

    PSs are all on one server; each has the bandwidth for so many workers elsewhere. Equal servers make a class. In a
    `ring` there are no PSs.
    """

    ring = False
    earliest: list[int]

    def prepare(self, data: Data, horizon: Data) -> None:
        self.workers, self.servers, have, self.need = self.parts(data)
        able = [[self.can(w, g) for w in self.workers] for g in self.groups]
        kinds: dict[Any, int] = {}
        for group, amount, runs in zip(self.groups, have, able, strict=True):
            kinds[tuple(amount), tuple(runs)] = kinds.get((tuple(amount), tuple(runs)), 0) + group["count"]
        self.has, self.count = np.array([has for has, _ in kinds], float), np.array(list(kinds.values()))
        with np.errstate(divide="ignore", invalid="ignore"):
            fits = np.nanmin(np.floor(self.has[:, None] * MORE / self.need[0]), axis=2)
        self.room = np.where([runs for _, runs in kinds], np.minimum(fits, 10**6), 0).astype(int).T
        most = [[self.most(c, r) for r in range(self.has.shape[1])] for c in range(len(self.has))]
        self.capacity = (np.array(most) * self.count[:, None]).ravel()
        self.ends(horizon)

    def most(self, c: int, resource: int) -> float:
        """Return the largest sum, up to what a server has of a resource, of what whole workers and PSs need of it.

        Where there are too many sums, it is all that the server has.
        """
        has = self.has[c]
        able = [w for w, room in zip(self.need[0], self.room, strict=True) if room[c]]
        able += [s for s in self.need[1] if (s <= has * MORE).all()]
        sums, limit = np.zeros(1), has[resource] * MORE
        for need in sorted({float(one[resource]) for one in able} - {0.0}):
            number = math.floor(limit / need) + 1
            if len(sums) * number > 10**6:
                return float(has[resource])
            more = (sums[:, None] + need * np.arange(number)).ravel()
            more = more[more <= limit]
            sums = more[np.unique((more / has[resource]).round(12), return_index=True)[1]]
        return float(min(sums.max(), has[resource]) or has[resource])

    def parts(self, data: Data) -> tuple[Any, Any, Any, Any]:
        """Return worker and PS types, what a server of each group has, and what one of each type needs of it."""
        workers, servers = data["worker_types"], [] if self.ring else data["ps_types"]
        kinds = ("gpus", "cpus", "memory_gb", "bandwidth_gbps")
        have, *need = (
            np.array([[x.get(r, 0.0) for r in kinds] for x in part]) for part in (self.groups, workers, servers)
        )
        return workers, servers, have, need

    def can(self, worker: Data, group: Data) -> bool:
        """Return whether workers of a type run on servers of a group."""
        return worker.get("gpu_type") in (None, group["gpu_type"])

    def ends(self, horizon: Data) -> None:
        """Say from when on jobs may run, and what their ends are worth."""
        raise NotImplementedError

    def own_slots(self, horizon: Data) -> None:
        """Require Zhou's slots: hours, unless the instance has longer slots, or less than a day of them."""
        slot_s, day = horizon["slot_s"], 24 * 3600
        hour = slot_s if "slots" in horizon and (slot_s >= 3600 or slot_s * horizon["slots"] < day) else 3600.0
        require(self.slot_s == hour, "slots are not the problem's")

    def until(self, due_slot: int | None) -> None:
        """Require the slots before τ, if the instance says it."""
        require(due_slot in (None, self.slots + 1), "slots do not end with the instance's τ")

    def begin(self, job: Data) -> int:
        """Return the slot in which a job arrives."""
        return slot_of(job.get("submit_s", 0.0), self.slot_s)

    def layouts(self, j: int) -> Iterator[tuple[int, int, int, Array, Array]]:
        """Yield worker type, PS type, whether all is on one server, 1, 2, … workers, and slots of a mini-batch."""
        n = np.arange(1, self.jobs[j].get("chunks", 1) + 1)
        share = (n - 1) / n if self.ring else np.ones(len(n))
        for m, p in np.ndindex(len(self.workers), len(self.servers) or 1):
            seconds = times(self.jobs[j], self.workers[m], None if self.ring else self.servers[p])
            compute, update, transfer = (x / self.slot_s for x in seconds)
            for one in range(2 if math.isfinite(compute) and self.room[m].any() else 0):
                yield m, p, one, n, compute + share * (update + (0.0 if one else transfer))

    @cache  # noqa: B019
    def options(self, j: int) -> list[tuple[int, int, int, int, int]]:
        """Return type, PS type, whether on one server, workers and slots: the fewest workers for each duration."""
        found = []
        for m, p, one, n, each in self.layouts(j):
            slots = np.maximum(np.ceil(self.work[j] * each / n * LESS), 1)
            found += [(m, p, one, int(n[i]), int(slots[i])) for i in np.unique(slots, return_index=True)[1]]
        return found

    @cache  # noqa: B019
    def cost(self, which: int, part: int, kind: int, slots: int) -> Array:
        """Return what one worker (part 0) or PS (1) costs in each window of so many slots, by class of servers."""
        prices = self.prices[which].reshape(*self.has.shape, -1)
        each = np.floor(np.einsum("crt,r->ct", prices, self.need[part][kind]) * (1 - 1e-14)).astype(np.int64)
        total = np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0)))
        return np.asarray(total[:, slots:] - total[:, :-slots])

    @cache  # noqa: B019
    def place(self, which: int, m: int, p: int, one: int, number: int, slots: int) -> Array:
        """Return what the cheapest placement of an option costs by window."""
        costs = [self.cost(which, part, kind, slots) for part, kind in enumerate((m, p)[: 2 - self.ring])]
        return self.cheapest((m, p, one, number), costs, self.room[m][:, None], self.has[:, :, None] * MORE, DEAR)

    def cheapest(self, option: Sequence[int], costs: Sequence[Array], room: Array, free: Array, dear: float) -> Array:
        """Return what the cheapest placement of an option costs by window, `dear` where it does not fit.

        There are ``(classes, windows)`` costs of a worker and of a PS, and so much `room` for workers on a server of
        each class, on which ``(classes, resources, windows)`` are `free`.
        """
        m, p, one, number = option
        cost, everywhere = costs[0], room * self.count[:, None]
        if self.ring:
            whole = np.where(room >= number, number * cost, dear).min(axis=0)
            return whole if one else spread(cost, everywhere, number, dear)
        best = np.full(cost.shape[1], dear)
        each = self.workers[m]["bandwidth_gbps"] / self.servers[p]["bandwidth_gbps"] * LESS
        for g in [number] if one else range(min(number - 1, room.max()) + 1):
            s = max(1, math.ceil((number - g) * each))
            needed = g * self.need[0][m] + s * self.need[1][p]
            fits = (room >= g) & (needed[:, None] <= free).all(axis=1)
            for c in np.flatnonzero(fits.any(axis=1)):
                own = np.where(fits[c], g * cost[c] + s * costs[1][c], dear)
                if (own < best).any():
                    others = everywhere - room * (np.arange(len(room)) == c)[:, None]
                    best = np.minimum(best, own + spread(cost, others, number - g, dear))
        return best

    def kept(self, who: Sequence[Any]) -> dict[int, int]:
        return {j: int(most) for j, most in who}

    def shared(self, which: int, j: int, m: int, number: int, slots: int) -> Array:
        """Return what so many workers cost by covers, by window, where they fit on one class of servers alone."""
        each, classes = np.zeros(self.slots + 1, np.int64), np.flatnonzero(self.room[m])
        for ((row, t), spare, who), price in zip(self.covers, self.extra[which], strict=True):
            c, resource = divmod(row, self.has.shape[1])
            if price and classes.tolist() == [c]:
                use = number * Fraction(float(self.need[0][m][resource]))
                each[t + 1] += math.floor(price * max(min(use, who.get(j, 0)), use - spare))
        total = np.cumsum(each)
        return np.asarray(total[slots:] - total[:-slots])

    def answer(self, j: int, worth: Array, which: int, uses: Uses) -> int:
        require(not uses, "only ends are decided here")
        first, best, least = self.earliest[j], worth[-1], []
        for option in self.options(j):
            m, p, _, number, slots = option
            if first + slots <= self.slots:
                usable = self.cost(which, 0, m, slots)[self.room[m] > 0, first:].min(axis=0) * number
                usable = usable + (0 if self.ring else self.cost(which, 1, p, slots)[:, first:].min(axis=0))
                least.append(((worth[first + slots : self.slots + 1] - usable).max(), option))
        for most, option in sorted(least, reverse=True):
            if most <= best:
                break
            paid = self.place(which, *option)
            if self.covers:
                paid = paid + self.shared(which, j, option[0], *option[3:])
            best = max(best, (worth[first + option[4] : -1] - paid[first:]).max())
        return int(best)


class Completion(Elastic):
    """Every job completes, at a cost of its weight per slot; after all slots at that of the first end there."""

    sense = -1

    def ends(self, horizon: Data) -> None:
        self.own_slots(horizon)
        self.earliest = [self.begin(job) for job in self.jobs]
        self.worth = [up(-job.get("weight", 1.0) * np.arange(1, self.slots + 3), self.unit) for job in self.jobs]


class Weight(Elastic):
    """The weight of the jobs that complete within the slots, all of which are there at first."""

    def prepare(self, data: Data, horizon: Data) -> None:
        self.until(data.get("due_slot"))
        super().prepare(data, horizon)

    def ends(self, horizon: Data) -> None:
        self.own_slots(horizon)
        self.earliest = [0] * len(self.jobs)
        self.worth = [up([job.get("weight", 1.0)] * (self.slots + 1) + [0], self.unit) for job in self.jobs]


class Admission(Elastic):
    """Utilities and deadlines; servers have room for so many workers of each type, and so many PSs.

    Jobs start so many slots `late` after the one in which they arrive.
    """

    late = 1

    def parts(self, data: Data) -> tuple[Any, Any, Any, Any]:
        kept: dict[Any, str] = {}
        for w in sorted((w for w in data["worker_types"] if w["gpus"]), key=lambda w: w["gpus"]):
            kept.setdefault(w.get("gpu_type"), w["name"])
        workers = [w for w in data["worker_types"] if w["name"] in kept.values()]
        have = [
            [*(g["gpus"] // w["gpus"] * super(Admission, self).can(w, g) for w in workers), g.get("ps_slots", 0)]
            for g in self.groups
        ]
        unit = np.eye(len(workers) + 1)
        return workers, [max(data["ps_types"], key=lambda p: p["bandwidth_gbps"])], have, (unit[:-1], unit[-1:])

    def can(self, worker: Data, group: Data) -> bool:
        return True

    def ends(self, horizon: Data) -> None:
        require((self.slot_s, self.slots) == (horizon["slot_s"], horizon["slots"]), "slots are not the instance's own")
        self.earliest, self.worth = [self.begin(job) + self.late for job in self.jobs], []
        for job in self.jobs:
            a, worth = self.begin(job), np.full(self.slots + 2, -math.inf)
            due = math.floor(min((job.get("deadline_s") or math.inf) / self.slot_s * MORE, self.slots))
            value = utility(job, a * self.slot_s, max(job.get("rates", {}).values(), default=0.0))
            worth[a + 1 : due + 1] = value(np.arange(1, due - a + 1) * self.slot_s)
            worth[-1] = 0
            self.worth.append(up(worth, self.unit))


Offer = Callable[[int], tuple[Array, Array]]
"""What is free, and what a unit costs, ``(servers, resources, windows)``, in each window of so many slots."""


class Cheapest(Elastic):
    """The cheapest run of the heaviest job beside loads, in slots up to τ, at the prices that the loads make.

    There are no multipliers: all choices that might be cheaper than the best are placed. Prices grow with F, the
    largest weight per consumption of any job, so that one `job` is enough to show that they are not too high.
    """

    sense = -1

    def prepare(self, data: Data, horizon: Data) -> None:
        self.own_slots(horizon)
        self.until(data.get("due_slot"))
        self.groups = [group for group in self.groups for _ in range(group["count"])]
        self.count = np.ones(len(self.groups), int)
        self.workers, self.servers, self.has, self.need = self.parts(data)
        self.room = np.array([[self.can(w, g) for g in self.groups] for w in self.workers]).astype(int)
        h, resource, t = np.indices((*self.has.shape, self.slots))
        self.used = self.has[:, :, None] * ((3 * h + 7 * resource + 5 * t) % 11 // 2) / 11
        self.used[:, 0] = np.floor(self.used[:, 0])
        end = horizon["slot_s"] * horizon["slots"] if "horizon" in data else 0
        self.timespan = max(slot_of(end, self.slot_s), *(1 + self.begin(job) for job in self.jobs))
        self.unit_worth = data.get("unit_worth")

    def take(self, proof: Data) -> None:
        worth = self.unit_worth
        if worth is None:
            j = proof["job"]
            has = self.has[:, :, None]
            least = self.least(j, lambda slots: (has, np.full_like(has, slots)))
            worth = max(self.jobs[j].get("weight", 1.0) / least, 1e-12)
        most = 2 * self.timespan * self.has.size * worth + 1
        require(1 <= proof["base"] <= most * MORE, "prices are higher than those of the instance")
        self.base = proof["base"]

    def least(self, j: int, offer: Offer) -> float:
        """Return what the cheapest run of a job costs."""
        least, best = [], math.inf
        for option in self.options(j):
            m, p, _, n, slots = option
            price = offer(slots)[1]
            if price.shape[2]:
                lowest = [float(cost.min()) for cost in self.costs(m, p, price)]
                least.append((n * lowest[0] + sum(lowest[1:]), option))
        for lower, option in sorted(least):
            if lower >= best:
                break
            (m, p, _, number, _), (free, price) = option, offer(option[4])
            free = free + 1e-8 * self.has[:, :, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.minimum(np.nanmin(np.floor(free / self.need[0][m][:, None]), axis=1), number)
            room = np.where(self.room[m][:, None] > 0, room, 0).astype(int)
            found = self.cheapest(option[:4], self.costs(m, p, price), room, free, np.inf)
            best = min(best, float(found.min()))
        return best * LOW

    def costs(self, m: int, p: int, price: Array) -> list[Array]:
        """Return what a worker, and a PS where there are any, cost by server and window."""
        kinds = enumerate((m, p)[: 2 - self.ring])
        return [np.einsum("hrs,r->hs", price, self.need[part][kind]) for part, kind in kinds]

    def window(self, slots: int) -> tuple[Array, Array]:
        """Return what is free in all of so many slots, and what a unit costs in them together."""
        if slots > self.slots:
            return self.has[:, :, None][:, :, :0], self.has[:, :, None][:, :, :0]
        has = self.has[:, :, None]
        part = np.divide(self.used, has, out=np.zeros_like(self.used), where=has > 0)
        price = np.expm1(part * math.log(self.base))
        free = has - self.used
        each = np.lib.stride_tricks.sliding_window_view
        return each(free, slots, axis=2).min(axis=3), each(price, slots, axis=2).sum(axis=3)

    def value(self, proof: Data) -> Fraction:
        weights = [job.get("weight", 1.0) for job in self.jobs]
        return Fraction(self.least(weights.index(max(weights)), cache(self.window)))


PROBLEMS = {
    "admission.utility": Admission,
    "admission.from_arrival": partial(Admission, late=0),
    "zhou.ps.cost": Cheapest,
    "zhou.ra.cost": partial(Cheapest, ring=True),
    "zhou.ps.completion": Completion,
    "zhou.ra.completion": partial(Completion, ring=True),
    "zhou.ps.weight": Weight,
    "zhou.ra.weight": partial(Weight, ring=True),
}


def spread(cost: Array, room: Array, number: int, dear: float) -> Array:
    """Return what the cheapest so many workers cost by window, `dear` where they do not fit."""
    order = np.argsort(cost, axis=0)
    there = np.take_along_axis(np.broadcast_to(room, cost.shape), order, 0)
    taken = np.clip(number - (np.cumsum(there, axis=0) - there), 0, there)
    paid = (taken * np.take_along_axis(cost, order, 0)).sum(axis=0)
    return np.asarray(np.where(room.sum(axis=0) >= number, paid, dear))
