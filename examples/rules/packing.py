"""Packing problems: prices of capacity, trees, and what gangs in slots (Hadar) make of prices.

Prices are whole numbers of a unit, a power of two; worth is rounded up to such units, and what is paid down, so that
sums are exact and err to the safe side. With a tree, a node splits when a job ends, or what it takes of a row.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np

LESS, MORE = 1 - 1e-9, 1 + 1e-9
NEVER, DEAR = -(2**62), 2**61


class RefusedError(Exception):
    """What a certificate claims does not follow from it."""


def require(true, reason):
    """Refuse unless something is true."""
    if not true:
        raise RefusedError(reason)


def up(value, unit):
    """Return values as whole numbers of a unit, rounded up by more than floating point is off."""
    scaled = np.maximum(np.asarray(value, float) / unit, NEVER)
    require((scaled < DEAR).all(), "a value is too large for the unit")
    return np.ceil(scaled + np.abs(scaled) * 1e-12).astype(np.int64)


def utility(job, work, begin_s, best):
    """Return what completing a job is worth by seconds since `begin_s`; `best` is its largest rate."""
    given = job.get("utility", {"kind": "effective_throughput"})
    kind, a = given["kind"], given.get("amplitude")
    if kind in ("effective_throughput", "normalised"):
        return lambda d: (work / (job["gpus"] * best) if kind == "normalised" else work) / d
    if kind == "sigmoid":
        return lambda d: (
            a / (1 + np.exp(np.clip(given["steepness_per_s"] * (d - given.get("midpoint_s", 0)), -700, 700)))
        )
    due = math.inf if kind == "constant" or job.get("deadline_s") is None else job["deadline_s"] - begin_s
    grace = given.get("grace_s", 0.0)
    return lambda d: a * np.where(d <= due, 1.0, np.clip(1 - (d - due) / grace, 0, 1) if grace else 0.0)


class Packing:
    """Jobs that take one schedule each, or none.

    Subclasses say what there is in a slot (``capacity``, one number per row of prices), and by job the ``worth`` of its
    ends in units (the last one is no schedule, or an end after all slots), and its best ``answer`` to prices.
    """

    sense = 1

    def __init__(self, data, proof):
        self.unit, self.slot_s, self.slots = proof.get("unit", 1.0), proof["slot_s"], proof.get("slots", 0)
        horizon = data.get("horizon", {"slot_s": self.slot_s, "slots": self.slots})
        self.jobs, self.groups = data["jobs"], data["cluster"]["servers"]
        self.work = [job["epochs"] * job.get("chunks", 1) * job.get("minibatches_per_chunk", 1) for job in self.jobs]
        require(math.frexp(self.unit)[0] == 0.5, "the unit is no power of two")
        self.prepare(data, horizon)
        self.answers = {}
        self.take(proof)

    def take(self, proof):
        """Read prices."""
        cells, given = len(self.capacity) * self.slots, [np.array(prices, np.int64) for prices in proof["prices"]]
        self.prices = [prices[:cells].reshape(len(self.capacity), self.slots) for prices in given]
        self.covers = [(divmod(row, self.slots), spare, set(who)) for row, spare, who in proof.get("covers", ())]
        self.extra = [prices[cells:].tolist() for prices in given]
        require(all((p >= 0).all() for p in given), "prices are negative")
        require(all(len(e) == len(self.covers) for e in self.extra), "there are other prices than rows")
        require(all(self.paid(i) < DEAR // 2 for i in range(len(given))), "prices are too large")
        for (r, _), spare, who in self.covers:
            whole = self.capacity[r] - spare - sum(self.jobs[j]["gpus"] for j in who)
            require(spare >= 0 and whole >= 0, "the jobs of a cover do not fit beside what they spare")

    def paid(self, which):
        """Return what all capacity costs at one set of prices, and what the jobs of covers share.

        A cover says that its jobs, which fit beside ``spare`` GPUs of a type and slot, and of others what is beyond
        ``spare``, take no more than the rest: where one other takes more, that much is missing to the covers' jobs.
        """
        rows = zip(self.capacity, self.prices[which].tolist(), strict=True)
        shared = zip(self.covers, self.extra[which], strict=True)
        return sum(Fraction(float(c)) * sum(row) for c, row in rows) + sum(
            (self.capacity[r] - spare) * price for ((r, _), spare, _), price in shared
        )

    def bound(self, which, first, last, uses):
        """Return the bound at one set of prices for jobs that end, or count as ending, from `first` to `last`."""
        total = self.paid(which)
        for j, worth in enumerate(self.worth):
            key = which, j, first[j], last[j], tuple(use for use in uses if use[0] == j)
            if key not in self.answers:
                end = np.arange(len(worth))
                counted = np.where(end <= last[j], worth[np.maximum(end, first[j])], NEVER)
                self.answers[key] = int(self.answer(j, counted, which, key[4]))
            total += self.answers[key]
        return total

    def tree(self, nodes):
        """Return the largest bound of any leaf of a tree whose node 0 has all solutions."""
        ends = [len(worth) - 1 for worth in self.worth]
        todo, best, seen = [(0, [0] * len(ends), ends, ())], None, set()
        while todo:
            at, first, last, uses = todo.pop()
            require(at not in seen, f"node {at} has two parents")
            seen.add(at)
            node = nodes[at]
            if "end" in node:
                j, end = node["job"], node["end"]
                require(first[j] <= end < last[j], f"node {at} splits at an end that it does not have")
                todo.append((node["then"][0], first, [*last[:j], end, *last[j + 1 :]], uses))
                todo.append((node["then"][1], [*first[:j], end + 1, *first[j + 1 :]], last, uses))
            elif "row" in node:
                j, row, most = node["job"], node["row"], node["most"]
                low, high = next(((a, b) for i, r, a, b in uses if (i, r) == (j, row)), (0, 2**31))
                others = tuple(use for use in uses if use[:2] != (j, row))
                todo.append((node["then"][0], first, last, (*others, (j, row, low, min(high, most)))))
                todo.append((node["then"][1], first, last, (*others, (j, row, max(low, most + 1), high))))
            else:
                found = self.bound(node["prices"], first, last, uses)
                best = found if best is None else max(best, found)
        return best

    def value(self, proof):
        """Return the bound that the certificate proves."""
        return self.sense * Fraction(self.unit) * self.tree(proof.get("tree") or [{"prices": 0}])


class Hadar(Packing):
    """A schedule is a set of slots; in each of them a gang holds GPUs of any types, and runs at the slowest's rate."""

    complete = False

    def prepare(self, data, horizon):
        require((self.slot_s, self.slots) == (horizon["slot_s"], horizon["slots"]), "slots are not the instance's own")
        self.types = [g["name"] for g in data["cluster"]["gpu_types"]]
        self.capacity = [sum(g["count"] * g["gpus"] for g in self.groups if g["gpu_type"] == r) for r in self.types]
        tenants, self.rates, self.arrival, self.worth = {t["id"]: t for t in data.get("tenants", ())}, [], [], []
        for job, work in zip(self.jobs, self.work, strict=True):
            tenant = tenants.get(job.get("tenant", job["id"]), {})
            kinds = tenant.get("job_types", ())
            given = job.get("rates") or ([k for k in kinds if k["name"] == job.get("model")] or kinds)[0]["rates"]
            self.rates.append(np.array([given.get(r, 0.0) for r in self.types]))
            submit = max(job.get("submit_s", 0.0), tenant.get("arrive_s", 0.0))
            self.arrival.append(a := min(math.ceil(submit / self.slot_s * LESS), self.slots))
            value = utility(job, work, a * self.slot_s, self.rates[-1].max())
            worth = np.concatenate([np.zeros(a), value(np.arange(1, self.slots - a + 1) * self.slot_s), [0.0]])
            self.worth.append(up(worth, self.unit))
            self.worth[-1][-1] = NEVER if self.complete else 0

    def levels(self, j):
        """Return the types that are at least as fast as each rate of the job, if its gang fits on them."""
        among = [np.flatnonzero(self.rates[j] >= rate) for rate in sorted({r for r in self.rates[j] if r > 0})[::-1]]
        return [types for types in among if sum(self.capacity[r] for r in types) >= self.jobs[j]["gpus"]]

    @cache  # noqa: B019 -- there is one object
    def states(self, j):
        """Return the state after a slot at each level, by state; 0 is done, and all work is left in the last one.

        Amounts of work left, in 2^-40 of the work, are one state if the same slots lead from them to the end.
        """
        each = [self.jobs[j]["gpus"] * self.rates[j][types].min() * self.slot_s for types in self.levels(j)]
        steps = np.array([math.ceil(Fraction(float(p)) * 2**40 / self.work[j]) for p in each])
        work, sums = math.floor(2**40 * Fraction(LESS)), np.zeros(1, np.int64)
        for step in steps:
            times = min(work // step, self.slots) + 1
            require(len(sums) * times < 5e7, f"job {j} is too long for this plain program")
            sums = np.add.outer(sums, step * np.arange(times))
            sums = np.sort(sums[sums < work])
            sums = sums[np.diff(sums, prepend=-1) > 0]
        # The same slots are enough for all work between two sums of progress.
        state, first = np.unique(np.searchsorted(sums, work - sums), return_index=True)
        after = np.searchsorted(sums, (work - sums[first])[:, None] - steps)
        return np.vstack([np.zeros((1, len(steps)), int), np.searchsorted(state, after, side="right")])

    def cost(self, among, prices, low, high, gang):
        """Return what the cheapest gang on some types costs by slot; it has `low` to `high` GPUs of each type.

        `prices` has those of the first, second, … GPU of a type and slot; covers make later ones dearer, never cheaper.
        """
        number = np.arange(gang)[:, None]
        held, free = number < low[:, None], (number >= low[:, None]) & (number < high[:, None])
        left = gang - low.sum(axis=0)
        order = np.sort(np.where(free, prices, DEAR)[among].reshape(-1, self.slots), axis=0)
        taken = np.arange(len(order))[:, None] < left
        fits = (left >= 0) & (free[among].sum(axis=(0, 1)) >= left) & ~np.delete(low, among, axis=0).any(axis=0)
        return np.where(fits, np.where(held, prices, 0).sum(axis=(0, 1)) + np.where(taken, order, 0).sum(axis=0), DEAR)

    def answer(self, j, worth, which, uses):
        gang, never, worth = self.jobs[j]["gpus"], worth[-1], worth[:-1]
        prices = np.repeat(self.prices[which][:, None], gang, axis=1)
        for ((r, t), spare, who), price in zip(self.covers, self.extra[which], strict=True):
            prices[r, 0 if j in who else spare :, t] += price
        low, high = np.zeros_like(self.prices[which]), np.repeat(np.array(self.capacity)[:, None], self.slots, axis=1)
        for _, row, least, most in uses:
            low.flat[row], high.flat[row] = least, max(least, min(most, high.flat[row]))
        forced = low.any(axis=0)
        worth = np.where(np.arange(self.slots) >= np.flatnonzero(forced).max(initial=0), worth, NEVER)
        costs = [self.cost(among, prices, low, high, gang) for among in self.levels(j)]
        if not costs:
            return never
        table = self.states(j)
        value = np.full(len(table), NEVER)
        for t in range(self.slots - 1, self.arrival[j] - 1, -1):
            value[0] = worth[t]
            run = np.max([value[after] - cost[t] for after, cost in zip(table.T, costs, strict=True)], axis=0)
            value = np.maximum(run, NEVER if forced[t] else value)
        return max(value[-1], never)


class Complete(Hadar):
    """Every job completes."""

    complete = True


class Forked(Hadar):
    """A job runs as copies on any servers, of up to a gang of GPUs each; GPUs and work can be divided.

    Prices are those of the GPUs of all servers of one type and size, by slot.
    """

    def prepare(self, data, horizon):
        super().prepare(data, horizon)
        count = {}
        for g in self.groups:
            kind = self.types.index(g["gpu_type"]), g["gpus"]
            count[kind] = count.get(kind, 0) + g["count"]
        self.kinds = [(r, gpus, count[r, gpus]) for r, gpus in sorted(count)]
        self.capacity = [gpus * servers for _, gpus, servers in self.kinds]

    def answer(self, j, worth, which, uses):
        gang, a, best, prices = self.jobs[j]["gpus"], self.arrival[j], int(worth[-1]), self.prices[which]
        most = np.array([servers * min(gang, gpus) for _, gpus, servers in self.kinds])
        rate = self.rates[j][[r for r, _, _ in self.kinds]]
        able = [i for i in range(len(rate)) if most[i] and rate[i] > 0]
        each = np.repeat(rate[able] * self.slot_s, self.slots - a).reshape(len(able), -1)
        with np.errstate(over="ignore"):
            price = np.minimum(prices[able, a:] / each, 1e300)
        room = each * most[able][:, None]
        for t in range(self.slots - a):
            order = np.argsort(price[:, : t + 1], axis=None)
            there = room[:, : t + 1].ravel()[order]
            done = np.clip(self.work[j] * LESS - (np.cumsum(there) - there), 0, there)
            if there.sum() >= self.work[j] * LESS:
                cost = (done * price[:, : t + 1].ravel()[order]).sum() * (1 - 1e-11)
                best = max(best, int(worth[a + t]) - math.floor(cost))
        return best


PROBLEMS = {"hadar.utility": Hadar, "hadar.complete": Complete, "hadar.forked": Forked}
