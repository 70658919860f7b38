"""Zhou's problems of moldable jobs: weighted completion times, the weight completed by τ, and the cheapest run."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial

import numpy as np

from .basics import LESS, LOW, MORE, STRETCH, Array, Data, require, up
from .fluid import READS, Fleet, completion, slots
from .moldable import WEIGHED, MoldablePacking
from .packing import by_slots
from .reading.zhou import RawArchitecture, zhou_of
from .rules import register


class Timed(MoldablePacking):
    """The packing problem of moldable jobs, with Zhou's jobs and slots."""

    def reading(self, data: Data) -> RawArchitecture:
        read = zhou_of(data)
        require(self.slot_s == read.slot_s, "slots are not the problem's")
        self.begin = (read.arrival - 1).tolist()
        return read.architectures["ra" if self.ring else "ps"]

    def until(self, read: RawArchitecture) -> RawArchitecture:
        """Return `read`, or refuse a certificate whose slots do not end just before τ."""
        require(read.deadline == self.slots + 1, "slots do not end with τ")
        return read


class Completion(Timed):
    """The problem of least weighted completion time: every job completes, at a cost of its weight per slot.

    Any end after all slots costs as much as the first of these.
    """

    sense = -1

    def ends(self) -> None:
        self.earliest = self.begin
        self.worth = [up(-weight * np.arange(1, self.slots + 3), self.unit) for weight in self.read.weight]


class Weight(Timed):
    """The problem of largest weight: jobs that complete within the slots count, and all are there at the start."""

    def reading(self, data: Data) -> RawArchitecture:
        return self.until(super().reading(data))

    def ends(self) -> None:
        self.earliest = [0] * len(self.jobs)
        self.worth = [up([weight] * (self.slots + 1) + [0], self.unit) for weight in self.read.weight]


Offer = Callable[[int], tuple[Array, Array]]
"""``offer(slots)`` returns what is free, and what a unit costs, in each window of so many slots.

Both are ``(servers, resources, windows)``."""


class CheapestRun(Timed):
    """The problem of the cheapest run of the heaviest job, next to the loads of other jobs, in slots up to τ.

    The loads determine the prices. There are no multipliers: all options that might be cheaper than the best one found
    are placed.
    """

    sense = -1

    def prepare(self, data: Data, horizon: Data) -> None:
        read = self.until(self.reading(data))
        self.read, self.most_base = read, read.base
        self.workers, self.servers, self.need = read.hardware.workers, read.hardware.ps, read.hardware.takes
        self.has, self.count = read.capacity, np.ones(len(read.names), int)
        groups = np.array([group["count"] for group in self.groups])
        self.room = np.repeat(read.hardware.able, groups, axis=1).astype(int)
        self.used = read.loads(np.arange(len(read.names)), 1, self.slots + 1)

    def take(self, proof: Data) -> None:
        require(1 <= proof["base"] <= self.most_base * MORE, "prices are higher than those of the instance")
        self.base = proof["base"]

    def least(self, j: int, offer: Offer) -> float:
        """Return the cost of the cheapest run of a job."""
        lower, best = [], math.inf
        for option in zip(*(part.tolist() for part in self.options(j)[:5]), strict=True):
            m, p, _, n, slots = option
            price = offer(slots)[1]
            if price.shape[2]:
                lowest = [float(cost.min()) for cost in self.costs(m, p, price)]
                lower.append((n * lowest[0] + sum(lowest[1:]), option))
        for bound, option in sorted(lower):
            if bound >= best:
                break
            (m, p, _, number, _), (free, price) = option, offer(option[4])
            free = free + (STRETCH - 1) * self.has[:, :, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.minimum(np.nanmin(np.floor(free / self.need[0][m][:, None]), axis=1), number)
            room = np.where(self.room[m][:, None] > 0, room, 0).astype(int)
            best = min(best, float(self.cheapest(option[:4], self.costs(m, p, price), room, free, np.inf).min()))
        return best * LOW

    def costs(self, m: int, p: int, price: Array) -> list[Array]:
        """Return what a worker and, unless in a ring, a PS costs, by server and window."""
        kinds = enumerate((m, p)[: 2 - self.ring])
        return [np.einsum("hrs,r->hs", price, self.need[part][kind]) for part, kind in kinds]

    def window(self, slots: int) -> tuple[Array, Array]:
        """Return, for each window of `slots` slots, what is free in all of them, and what a unit costs in all."""
        has = self.has[:, :, None]
        if slots > self.slots:
            return has[:, :, :0], has[:, :, :0]
        part = np.divide(self.used, has, out=np.zeros_like(self.used), where=has > 0)
        price = np.expm1(part * math.log(self.base))
        free = has - self.used
        windows = np.lib.stride_tricks.sliding_window_view
        return windows(free, slots, axis=2).min(axis=3), windows(price, slots, axis=2).sum(axis=3)

    def value(self, proof: Data) -> Fraction:
        cost = self.least(int(self.read.weight.argmax()), cache(self.window))
        require(math.isfinite(cost), "no run of the heaviest job fits beside the loads")
        return Fraction(cost)


class MoldableFleet(Timed, Fleet):
    """Zhou's jobs as a fluid: they may be interrupted, and may change their workers and PSs from slot to slot.

    All servers of a class have one price. A job that does a fraction of its work in a slot pays at least that fraction
    of what all its work costs with the cheapest types and numbers of workers and PSs.
    """

    grain = 1.0

    def take(self, proof: Data) -> None:
        """Read nothing: the prices of a fluid are not by slot."""

    def ends(self) -> None:
        weight = self.read.weight.tolist()
        self.which = [j for j, w in enumerate(weight) if w > 0]
        self.weight = [weight[j] for j in self.which]
        self.start = [self.begin[j] + 1 for j in self.which]
        self.there = self.capacity
        self.alone = [float(self.times(j).min()) for j in range(len(self.which))]

    @cache  # noqa: B019 -- there is one object
    def choices(self, j: int) -> tuple[Array, ...]:
        """Return the choices of a job: worker type, PS type, number of workers and of PSs, and slots for all work."""
        job, choices = self.which[j], []
        n = np.arange(1, self.read.chunks[job] + 1)
        for layout in self.read.layouts():
            ps = self.read.servers(layout)[: len(n)]
            slots = np.maximum(self.work[job] * LESS * self.read.per_batch(job, layout, n) / n, 1.0)
            fits = np.isfinite(ps) & np.isfinite(slots)
            types = (np.full(len(n), kind) for kind in layout[:2])
            choices.append([x[fits] for x in (*types, n, ps, slots)])
        return tuple(np.concatenate(column) for column in zip(*choices, strict=True))

    def times(self, j: int) -> Array:
        return self.choices(j)[-1]

    def costs(self, j: int, prices: Array) -> Array:
        worker, server, n, ps, slots = self.choices(j)
        cost = self.each(0, prices.tobytes())[:, worker] * n
        return (cost if self.ring else cost + self.each(1, prices.tobytes())[:, server] * ps) * slots

    @cache  # noqa: B019 -- there is one object
    def each(self, part: int, prices: bytes) -> Array:
        """Return ``(m, types)`` what a worker (part 0) or PS (part 1) costs per slot on its cheapest class."""
        by_class, need = np.frombuffer(prices).reshape(-1, *self.has.shape), self.need[part]
        fits = (need[:, None] <= self.has * STRETCH).all(axis=2) if part else self.room > 0
        return np.asarray(np.where(fits, np.einsum("mcr,tr->mtc", by_class, need), np.inf).min(axis=2))


for name, ring in {"ps": False, "ra": True}.items():
    register(f"zhou.{name}.cost", partial(by_slots, partial(CheapestRun, ring=ring)), ("slot_s", "slots", "base"))
    register(f"zhou.{name}.completion", partial(by_slots, partial(Completion, ring=ring)), WEIGHED)
    register(f"zhou.{name}.weight", partial(by_slots, partial(Weight, ring=ring)), WEIGHED)
    register(f"zhou.{name}.preemptive", partial(slots, partial(MoldableFleet, ring=ring)), READS[completion])
