"""Check certificates of bounds without any code of the package that wrote them: "bound 3159.2 holds", or why not.

    python check_certificate.py RUN/certificates/*.json.gz

A certificate names an instance, a problem and a bound, and has prices from which the bound follows by weak duality:
whatever capacity costs (0 or more), no schedule is worth more than all capacity at these prices and what each job can be
worth alone, less what it pays. This file reads the instance, finds these best responses by dynamic programs of its own,
and adds up. Prices are whole numbers of a unit, a power of two; worth is rounded up to such units, and what is paid down,
so that sums are exact and err to the safe side. As in the problems, 1e-9 of a job's work, of a time or of a need may be
missing. With a tree, a node splits when a job ends, or what it takes of a row, and each leaf has prices of its own.
"""

import gzip
import hashlib
import json
import math
import sys
from fractions import Fraction as F
from functools import lru_cache
from pathlib import Path

import check_programs
import numpy as np

LESS, MORE = 1 - 1e-9, 1 + 1e-9
NEVER, DEAR = -(2**62), 2**61
PRESENTATION = {"name", "title", "source", "licence", "derived", "published"}


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
        return lambda d: a / (1 + np.exp(np.clip(given["steepness_per_s"] * (d - given.get("midpoint_s", 0)), -700, 700)))
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
        self.unit, self.slot_s, self.slots = proof["unit"], proof["slot_s"], proof["slots"]
        horizon = data.get("horizon", {"slot_s": self.slot_s, "slots": self.slots})
        self.jobs, self.groups = data["jobs"], data["cluster"]["servers"]
        self.work = [job["epochs"] * job.get("chunks", 1) * job.get("minibatches_per_chunk", 1) for job in self.jobs]
        require(math.frexp(self.unit)[0] == 0.5, "the unit is no power of two")
        self.prepare(data, horizon)
        self.prices = [np.array(prices, np.int64).reshape(len(self.capacity), self.slots) for prices in proof["prices"]]
        require(all((p >= 0).all() and self.paid(p) < DEAR // 2 for p in self.prices), "prices are negative or too large")
        self.answers = {}

    def paid(self, prices):
        """Return what all capacity costs."""
        return sum(F(float(c)) * sum(row) for c, row in zip(self.capacity, prices.tolist(), strict=True))

    def bound(self, which, first, last, uses):
        """Return the bound at one set of prices for jobs that end, or count as ending, from `first` to `last`."""
        total = self.paid(self.prices[which])
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
        return self.sense * F(self.unit) * self.tree(proof.get("tree") or [{"prices": 0}])


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

    @lru_cache(maxsize=None)  # noqa: B019 -- there is one object
    def states(self, j):
        """Return the state after a slot at each level, by state; 0 is done, and all work is left in the last one.

        Amounts of work left, in 2^-40 of the work, are one state if the same slots lead from them to the end.
        """
        each = [self.jobs[j]["gpus"] * self.rates[j][types].min() * self.slot_s for types in self.levels(j)]
        steps = [math.ceil(F(float(p)) * 2**40 / self.work[j]) for p in each]
        left, todo = set(), {math.floor(2**40 * F(LESS))}
        while todo:
            left |= todo
            require(len(left) < 3_000_000, f"job {j} is too long for this plain program")
            todo = {now - s for now in todo for s in steps if now > s} - left
        table, state, known = [(0,) * len(steps)], {}, {}
        for now in sorted(left):
            after = tuple(state.get(now - s, 0) for s in steps)
            if after not in known:
                known[after] = len(table)
                table.append(after)
            state[now] = known[after]
        return np.array(table)

    def cost(self, j, among, prices, low, high):
        """Return what the cheapest gang on some types costs by slot, of each from `low` to `high`."""
        order = np.argsort(prices[among], axis=0, kind="stable")
        price, room = (np.take_along_axis(part[among], order, 0) for part in (prices, high - low))
        left = self.jobs[j]["gpus"] - low.sum(axis=0)
        taken = np.clip(left - (np.cumsum(room, axis=0) - room), 0, room)
        fits = (left >= 0) & (room.sum(axis=0) >= left) & ~np.delete(low, among, axis=0).any(axis=0)
        return np.where(fits, (low * prices).sum(axis=0) + (taken * price).sum(axis=0), DEAR)

    def answer(self, j, worth, which, uses):
        prices, never, worth = self.prices[which], worth[-1], worth[:-1]
        low, high = np.zeros_like(prices), np.repeat(np.array(self.capacity)[:, None], self.slots, axis=1)
        for _, row, least, most in uses:
            low.flat[row], high.flat[row] = least, max(least, min(most, high.flat[row]))
        forced = low.any(axis=0)
        worth = np.where(np.arange(self.slots) >= np.flatnonzero(forced).max(initial=0), worth, NEVER)
        costs = [self.cost(j, among, prices, low, high) for among in self.levels(j)]
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
    """A job runs as copies on any servers, of up to a gang of GPUs each; GPUs and work can be divided."""

    def answer(self, j, worth, which, uses):
        gang, a, best, prices = self.jobs[j]["gpus"], self.arrival[j], int(worth[-1]), self.prices[which]
        most = [sum(g["count"] * min(gang, g["gpus"]) for g in self.groups if g["gpu_type"] == r) for r in self.types]
        able = [r for r, rate in enumerate(self.rates[j]) if most[r] and rate > 0]
        each = np.repeat(self.rates[j][able] * self.slot_s, self.slots - a).reshape(len(able), -1)
        price, room = prices[able, a:] / each, each * np.array(most)[able][:, None]
        for t in range(self.slots - a):
            order = np.argsort(price[:, : t + 1], axis=None)
            there = room[:, : t + 1].ravel()[order]
            done = np.clip(self.work[j] * LESS - (np.cumsum(there) - there), 0, there)
            if there.sum() >= self.work[j] * LESS:
                cost = (done * price[:, : t + 1].ravel()[order]).sum() * (1 - 1e-10)
                best = max(best, int(worth[a + t]) - math.floor(cost))
        return best


class Elastic(Packing):
    """Workers and parameter servers (PSs), or a ring of workers, which run without interruption; servers come in classes.

    PSs are all on one server; each has the bandwidth for so many workers elsewhere.
    """

    ring = False

    def prepare(self, data, horizon):
        self.workers, self.servers, have, self.need = self.parts(data)
        able = [[self.can(w, g) for w in self.workers] for g in self.groups]
        kinds = {}
        for group, amount, runs in zip(self.groups, have, able, strict=True):
            kinds[tuple(amount), tuple(runs)] = kinds.get((tuple(amount), tuple(runs)), 0) + group["count"]
        self.has, self.count = np.array([has for has, _ in kinds], float), np.array(list(kinds.values()))
        self.capacity = (self.has * self.count[:, None]).ravel()
        with np.errstate(divide="ignore", invalid="ignore"):
            fits = np.nanmin(np.floor(self.has[:, None] * MORE / self.need[0]), axis=2)
        self.room = np.where([runs for _, runs in kinds], np.minimum(fits, 10**6), 0).astype(int).T
        self.ends(horizon)

    def parts(self, data):
        """Return worker and PS types, what a server of each group has, and what one of each type needs of it."""
        workers, servers = data["worker_types"], [] if self.ring else data["ps_types"]
        kinds = ("gpus", "cpus", "memory_gb", "bandwidth_gbps")
        have, *need = (np.array([[x.get(r, 0.0) for r in kinds] for x in part]) for part in (self.groups, workers, servers))
        return workers, servers, have, need

    def can(self, worker, group):
        """Return whether workers of a type run on servers of a group."""
        return worker.get("gpu_type") in (None, group["gpu_type"])

    def begin(self, job):
        """Return the slot in which a job arrives."""
        return math.ceil(job.get("submit_s", 0.0) / self.slot_s * LESS)

    def pace(self, job):
        """Return the slots of a mini-batch by worker type, of an update by PS type, and of a transfer by worker type."""
        profile = job.get("distributed", {})
        if together := profile.get("colocated_rate_per_s"):
            apart = max(1 / (profile.get("spread_rate_per_s") or together) - 1 / together, 0.0)
            return [[x / self.slot_s] * (len(self.workers) + len(self.servers)) for x in (1 / together, 0.0, apart)]
        given, updates = profile.get("minibatch_ms", {}), profile.get("update_ms", {})
        rates = [job.get("rates", {}).get(w.get("gpu_type") or "", 0.0) * w["gpus"] for w in self.workers]
        alone = [given[w["name"]] / 1000 if w["name"] in given else 1 / r if r else math.inf
                 for w, r in zip(self.workers, rates, strict=True)]
        least = profile.get("ring_update_ms")
        ring = min(updates.values(), default=0.0) if least is None else least
        update = [ring] if self.ring else [updates.get(s["name"], 0.0) for s in self.servers]
        sent = [profile.get("gradient_mb", 0.0) * 16 / (w["bandwidth_gbps"] * 1000) for w in self.workers]
        return ([x / self.slot_s for x in part] for part in (alone, np.array(update) / 1000, sent))

    @lru_cache(maxsize=None)  # noqa: B019
    def options(self, j):
        """Return type, PS type, whether on one server, workers and slots: the fewest workers for each duration."""
        compute, update, transfer = self.pace(self.jobs[j])
        n, found = np.arange(1, self.jobs[j].get("chunks", 1) + 1), []
        share = (n - 1) / n if self.ring else 1.0
        for m, p, one in np.ndindex(len(self.workers), len(update), 2):
            if math.isfinite(compute[m]) and self.room[m].any():
                each = compute[m] + share * (update[p] + (0.0 if one else transfer[m]))
                slots = np.maximum(np.ceil(self.work[j] * each / n * LESS), 1)
                found += [(m, p, one, int(n[i]), int(slots[i])) for i in np.unique(slots, return_index=True)[1]]
        return [option for option in found if option[4] <= self.slots]

    @lru_cache(maxsize=None)  # noqa: B019
    def cost(self, which, part, kind, slots):
        """Return what one worker (part 0) or PS (1) costs in each window of so many slots, by class of servers."""
        prices = self.prices[which].reshape(*self.has.shape, -1)
        each = np.floor(np.einsum("crt,r->ct", prices, self.need[part][kind]) * (1 - 1e-14)).astype(np.int64)
        total = np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0)))
        return total[:, slots:] - total[:, :-slots]

    @staticmethod
    def cheapest(cost, room, number):
        """Return what the cheapest so many workers cost by window."""
        order = np.argsort(cost, axis=0)
        there = room[order]
        taken = np.clip(number - (np.cumsum(there, axis=0) - there), 0, there)
        return (taken * np.take_along_axis(cost, order, 0)).sum(axis=0) if room.sum() >= number else np.full(cost.shape[1], DEAR)

    @lru_cache(maxsize=None)  # noqa: B019
    def place(self, which, m, p, one, number, slots):
        """Return what the cheapest placement of an option costs by window."""
        cost, e, room = self.cost(which, 0, m, slots), self.need[0][m], self.room[m]
        if self.ring:
            whole = np.where((room >= number)[:, None], number * cost, DEAR).min(axis=0)
            return whole if one else self.cheapest(cost, room * self.count, number)
        z, ps, best = self.need[1][p], self.cost(which, 1, p, slots), np.full(cost.shape[1], DEAR)
        covers = self.workers[m]["bandwidth_gbps"] / self.servers[p]["bandwidth_gbps"] * LESS
        for c in range(len(self.has)):
            for g in [number] if one else range(min(number - 1, room[c]) + 1):
                s = max(1, math.ceil((number - g) * covers))
                if g <= room[c] and (g * e + s * z <= self.has[c] * MORE).all():
                    others = room * (self.count - (np.arange(len(room)) == c))
                    best = np.minimum(best, g * cost[c] + s * ps[c] + self.cheapest(cost, others, number - g))
        return best

    def answer(self, j, worth, which, uses):
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
            best = max(best, (worth[first + option[4] : -1] - self.place(which, *option)[first:]).max())
        return best


class Completion(Elastic):
    """Every job completes, at a cost of its weight per slot; after all slots at that of the first end there."""

    sense = -1

    def ends(self, horizon):
        slot_s, day = horizon["slot_s"], 24 * 3600
        hour = slot_s if "slots" in horizon and (slot_s >= 3600 or slot_s * horizon["slots"] < day) else 3600.0
        require(self.slot_s == hour, "slots are not the problem's")
        self.earliest = [self.begin(job) for job in self.jobs]
        self.worth = [up(-job.get("weight", 1.0) * np.arange(1, self.slots + 3), self.unit) for job in self.jobs]


class Weight(Elastic):
    """The weight of the jobs that complete within the slots, all of which are there at first."""

    def ends(self, horizon):
        self.earliest = [0] * len(self.jobs)
        self.worth = [up([job.get("weight", 1.0)] * (self.slots + 1) + [0], self.unit) for job in self.jobs]


class Admission(Elastic):
    """Utilities and deadlines; servers have room for so many workers of each type, and so many PSs."""

    late = 1

    def parts(self, data):
        kept = {}
        for w in sorted((w for w in data["worker_types"] if w["gpus"]), key=lambda w: w["gpus"]):
            kept.setdefault(w.get("gpu_type"), w["name"])
        workers = [w for w in data["worker_types"] if w["name"] in kept.values()]
        have = [[*(g["gpus"] // w["gpus"] * super(Admission, self).can(w, g) for w in workers), g.get("ps_slots", 0)]
                for g in self.groups]
        unit = np.eye(len(workers) + 1)
        return workers, [max(data["ps_types"], key=lambda p: p["bandwidth_gbps"])], have, (unit[:-1], unit[-1:])

    def can(self, worker, group):
        return True

    def ends(self, horizon):
        require((self.slot_s, self.slots) == (horizon["slot_s"], horizon["slots"]), "slots are not the instance's own")
        self.earliest, self.worth = [self.begin(job) + self.late for job in self.jobs], []
        for job, work in zip(self.jobs, self.work, strict=True):
            a, worth = self.begin(job), np.full(self.slots + 2, -math.inf)
            due = min(math.floor(job.get("deadline_s", math.inf) / self.slot_s * MORE), self.slots) \
                if job.get("deadline_s") else self.slots
            value = utility(job, work, a * self.slot_s, max(job.get("rates", {}).values(), default=0.0))
            worth[a + 1 : due + 1] = value(np.arange(1, due - a + 1) * self.slot_s)
            worth[-1] = 0
            self.worth.append(up(worth, self.unit))


PROBLEMS = {"hadar.utility": Hadar, "hadar.complete": Complete, "hadar.forked": Forked, "admission.utility": Admission,
            "admission.from_arrival": type("", (Admission,), {"late": 0}),
            "zhou.ps.completion": Completion, "zhou.ra.completion": type("", (Completion,), {"ring": True}),
            "zhou.ps.weight": Weight, "zhou.ra.weight": type("", (Weight,), {"ring": True}), **check_programs.PROBLEMS}


def check(path):
    """Return the certificate in a file, and its instance; refuse where the bound does not follow."""
    proof = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    name = proof["instance"]
    data = json.loads((path.parent.parent / "instances" / f"{name}.json").read_bytes())
    for content, digest in (({k: v for k, v in data.items() if k not in PRESENTATION}, name),
                            ({k: v for k, v in proof.items() if k != "digest"}, proof["digest"])):
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        require(hashlib.sha256(text.encode()).hexdigest() == digest, "a file was changed: its digest is another one")
    require(proof["problem"] in PROBLEMS, f"no rule for {proof['problem']}")
    problem = PROBLEMS[proof["problem"]](data, proof)
    value, bound = problem.value(proof), F(proof["bound"])
    beyond = problem.sense * (value - bound) > 0
    require(not beyond, f"only {float(value):.10g} follows, not {proof['bound']:.10g}")
    return proof, value


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        try:
            proof, value = check(Path(argument))
            print(f"{argument}: bound {proof['bound']:.10g} holds for {proof['problem']} ({float(value):.10g})")
        except (RefusedError, KeyError, ValueError, TypeError, IndexError, OSError) as reason:
            sys.exit(f"{argument}: refused: {type(reason).__name__}: {reason}")
