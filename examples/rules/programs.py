"""Linear programs (OEF, Gavel, Synergy) and single machines: multipliers of rows, and what follows from them.

Everything is a fraction of whole numbers here: multipliers are whole numbers of a unit; rates and needs of jobs, which
are computed in floating point, are taken as they are.
"""

import math
from fractions import Fraction

import numpy as np

from rules.packing import LESS, MORE, require


class Sharing:
    """OEF: tenants share devices, and multipliers of their rows say what a device is worth with each of them.

    Tenants of equal speedups count as one: rows add up. Capacity costs as much as the tenant pays that pays most.
    """

    sense = 1

    def __init__(self, data, proof):
        total = {g["name"]: 0 for g in data["cluster"]["gpu_types"]}
        for g in data["cluster"]["servers"]:
            total[g["gpu_type"]] += g["count"] * g["gpus"]
        types = [r for r in total if total[r]]
        rows = self.declared(data) or self.asked(data, types)
        true = np.array([[kind["rates"][r] for r in types] for kind, _ in rows])
        order = [types[j] for j in np.argsort(np.log(true).mean(axis=0), kind="stable")]
        self.devices, self.weight = [total[r] for r in order], {}
        for kind, weight in rows:
            rates = kind.get("reported_rates") or kind["rates"]
            key = tuple(rates[r] / rates[order[0]] for r in order)
            self.weight[key] = self.weight.get(key, 0) + Fraction(weight)
        self.weight = dict(sorted(self.weight.items()))

    @staticmethod
    def declared(data):
        """Return the job types that tenants declare, each with its part of the tenant's weight."""
        tenants = data.get("tenants", ())
        return [(k, t.get("weight", 1.0) / len(t["job_types"])) for t in tenants for k in t.get("job_types", ())]

    @staticmethod
    def asked(data, types):
        """Return the job types of the jobs, by tenant, model and speedups."""
        weights, kinds = {t["id"]: t.get("weight", 1.0) for t in data.get("tenants", ())}, {}
        for job in data.get("jobs", ()):
            rates = [job.get("rates", {}).get(r, 0.0) for r in types]
            if min(rates) > 0:
                key = job.get("model", "job"), tuple(float(f"{x / max(rates):.12g}") for x in rates)
                owner = job.get("tenant", job["id"])
                kinds.setdefault(owner, {})[key] = {"rates": dict(zip(types, key[1], strict=True))}
        return [(kind, weights.get(t, 1.0) / len(own)) for t, own in kinds.items() for kind in own.values()]

    def value(self, proof):
        """Return the bound: devices at what they are worth, less what tenants have to get."""
        unit, tenants, envy = Fraction(proof["unit"]), proof.get("tenants", []), proof.get("envy", [])
        speedups, weight = [[Fraction(x) for x in row] for row in self.weight], list(self.weight.values())
        own = [unit * x for x in tenants] or [Fraction(0)] * len(weight)
        require(len(own) == len(weight), "multipliers are not one for each kind of tenant")
        own, rest = self.rows(own, speedups, weight)
        worth = [[x * (1 + o) for x in row] for row, o in zip(speedups, own, strict=True)]
        require(not envy or self.envious, "envy matters where the problem has none")
        for a, b, times in envy:
            require(times >= 0 and min(a, b) >= 0, "a multiplier is negative")
            for j, x in enumerate(speedups[a]):
                worth[a][j] += unit * times * x / weight[a]
                worth[b][j] -= unit * times * x / weight[b]
        return rest + sum(m * max(0, *column) for m, column in zip(self.devices, zip(*worth, strict=True), strict=True))

    envious = False

    def rows(self, own, speedups, weight):
        """Return the multipliers of the tenants' own rows, and what their right sides add."""
        require(not any(own), "tenants have no rows of their own")
        return own, 0


class EnvyFree(Sharing):
    """Nobody prefers another share, per weight."""

    envious = True


class Equal(Sharing):
    """All have the same efficiency per weight, whatever it is: multipliers balance."""

    def rows(self, own, speedups, weight):
        mean = sum(o * w for o, w in zip(own, weight, strict=True)) / sum(weight)
        return [o - mean for o in own], 0


class Incentive(Sharing):
    """Everybody has as much as with an equal split, by weight."""

    def rows(self, own, speedups, weight):
        require(min(own) >= 0, "a multiplier is negative")
        split = [
            sum(x * m for x, m in zip(row, self.devices, strict=True)) * w / sum(weight)
            for row, w in zip(speedups, weight, strict=True)
        ]
        return own, -sum(o * e for o, e in zip(own, split, strict=True))


class Fluid:
    """Gangs in configurations (GPUs, CPUs, memory of a type) for some time: prices say what the job's work costs."""

    sense = -1

    def __init__(self, data, proof):
        self.data, self.types = data, [g["name"] for g in data["cluster"]["gpu_types"]]
        self.slot_s = proof["slot_s"]
        require(self.slot_s == data.get("horizon", proof)["slot_s"], "slots are not the instance's own")
        tenants = {t["id"]: t for t in data.get("tenants", ())}
        self.jobs, self.arrival, self.start, self.work, self.rates, self.gpus = data["jobs"], [], [], [], [], []
        self.groups = [[g for g in data["cluster"]["servers"] if g["gpu_type"] == r and g["gpus"]] for r in self.types]
        self.total = [
            [sum(g["count"] * g.get(x, 0) for g in own) for x in ("gpus", "cpus", "memory_gb")] for own in self.groups
        ]
        for job in self.jobs:
            tenant = tenants.get(job.get("tenant", job["id"]), {})
            kinds = tenant.get("job_types", ())
            given = job.get("rates") or ([k for k in kinds if k["name"] == job.get("model")] or kinds)[0]["rates"]
            self.rates.append([given.get(r, 0.0) for r in self.types])
            self.arrival.append(max(job.get("submit_s", 0.0), tenant.get("arrive_s", 0.0)))
            self.start.append(math.ceil(self.arrival[-1] / self.slot_s * LESS) * Fraction(self.slot_s))
            self.work.append(job["epochs"] * job.get("chunks", 1) * job.get("minibatches_per_chunk", 1))
        self.held = {}
        for j, job in enumerate(self.jobs):
            key = repr(job.get("sensitivity")), job["gpus"], tuple(self.rates[j])
            if key not in self.held:
                self.held[key] = list(self.configurations(job, self.rates[j]))
            self.held[j] = self.held[key]

    def configurations(self, job, rates):
        """Yield (type, (GPUs, CPUs, gigabytes), iterations per second): here, GPUs alone."""
        for i, rate in enumerate(rates):
            if rate > 0 and self.total[i][0] > 0:
                yield i, (job["gpus"], 0, 0), job["gpus"] * rate

    def paid(self, proof):
        """Return prices as fractions of what all there is costs (plus `jobs`, their multipliers)."""
        prices, own = proof["prices"], proof.get("jobs", [0] * len(self.jobs))
        require(min(*map(min, prices), *own) >= 0, "a multiplier is negative")
        there = sum(
            p * Fraction(c)
            for row, total in zip(prices, self.total, strict=True)
            for p, c in zip(row, total, strict=True)
        )
        require(there + sum(own) > 0, "all multipliers are 0")
        return [[Fraction(p) / (there + sum(own)) for p in row] for row in prices], [
            Fraction(v) / (there + sum(own)) for v in own
        ]

    def least(self, j, prices, own=0):
        """Return what the work of a job costs at least."""
        each = {
            (i, use): sum(p * Fraction(u) for p, u in zip(prices[i], use, strict=True)) + own
            for i, use, _ in self.held[j]
        }
        return min(each[i, use] / Fraction(rate) for i, use, rate in self.held[j] if rate > 0) * self.work[j]

    def value(self, proof):
        """Return the bound on the end of the last job."""
        prices, own = self.paid(proof)
        active = [j for j in range(len(self.jobs)) if self.able(j)]
        first = min(self.start[j] for j in active)
        spent = sum(v * self.start[j] for j, v in enumerate(own))
        return first * (1 - sum(own)) + spent + sum(self.least(j, prices, own[j]) for j in active)

    def able(self, j):
        """Return whether a job can ever run."""
        return True


class Sensitive(Fluid):
    """Synergy: rates depend on CPUs and memory, in levels; a gang has those of as many servers as it needs at most."""

    def configurations(self, job, rates):
        for i, rate in enumerate(rates):
            if rate > 0 and job["gpus"] <= self.total[i][0]:
                cpus, memory, table = self.table(job, rate)
                span = math.ceil(job["gpus"] / max(g["gpus"] for g in self.groups[i]))
                most = [span * max(g.get(x, 0.0) for g in self.groups[i]) * MORE for x in ("cpus", "memory_gb")]
                for c, row in zip(cpus, table, strict=True):
                    for m, progress in zip(memory, row, strict=True):
                        if c <= most[0] and m <= most[1]:
                            yield i, (job["gpus"], float(c), float(m)), float(progress)

    def table(self, job, rate):
        """Return levels of CPUs and of memory, and iterations per second."""
        given, gpus = job["sensitivity"], job["gpus"]
        if given["kind"] == "matrix":
            cpus, memory = (gpus * np.array(given[x], float) for x in ("cpus_per_gpu", "memory_gb_per_gpu"))
            return cpus, memory, gpus * rate * np.array(given["progress"], float)
        hosts = [g for own in self.groups for g in own]
        span, levels = math.ceil(gpus / max(g["gpus"] for g in hosts)), []
        for x, least, most in (("cpus", 1.0, 48), ("memory_gb", 50.0, 32)):
            top = max(g.get(x, 0.0) for g in hosts)
            unit = least * max(1, math.ceil(top / least / most))
            levels.append(span * unit * np.arange(1, int(top / unit * MORE) + 1))
        cpus, memory = levels
        missed = given["item_mb_per_iteration"] * (
            1 - np.clip((memory - given.get("process_memory_gb", 0)) / given["dataset_gb"], 0, 1)
        )
        fetched = np.divide(given["storage_mb_per_s"], missed, out=np.full(len(memory), np.inf), where=missed > 0)
        rates = np.minimum(np.minimum(gpus * rate, cpus[:, None] * given["prep_rate_per_cpu"]), fetched)
        return cpus, memory, np.where(memory * MORE >= given["process_memory_gb"], rates, 0.0)

    def fair(self, j):
        """Return the rate of a job at its proportional share of CPUs and memory, by type."""
        found, gpus = [0.0] * len(self.types), self.jobs[j]["gpus"]
        for i, (_, cpus, memory), rate in self.held[j]:
            each = [min(g.get(x, 0.0) / g["gpus"] for g in self.groups[i]) * gpus * MORE for x in ("cpus", "memory_gb")]
            if cpus <= each[0] and memory <= each[1]:
                found[i] = max(found[i], rate)
        return found

    def able(self, j):
        return max(self.fair(j)) > 0


class Round(Sensitive):
    """The progress of a round's jobs, each of which holds a configuration, or none: prices of GPUs, CPUs and memory."""

    sense, everybody = 1, False

    def value(self, proof):
        unit, index = Fraction(proof["unit"]), {job["id"]: j for j, job in enumerate(self.jobs)}
        require(min(map(min, proof["prices"])) >= 0, "a price is negative")
        prices = [[unit * p for p in row] for row in proof["prices"]]
        cells = [(p, c) for row, own in zip(prices, self.total, strict=True) for p, c in zip(row, own, strict=True)]
        total = sum(p * Fraction(c) * Fraction(MORE) for p, c in cells)
        chosen = [index[name] for name in proof["round"]]
        floors = self.floors(chosen)
        for j in chosen:
            best = Fraction(max(self.fair(j)))
            gains = [
                Fraction(rate) / best - sum(p * Fraction(u) for p, u in zip(prices[i], use, strict=True))
                for i, use, rate in self.held[j]
                if rate > 0 and rate >= floors[j][i] * LESS
            ]
            total += max(gains) if self.everybody else max(0, *gains)
        return total

    def floors(self, chosen):
        """Return the rates that jobs must reach, by type."""
        return {j: [0.0] * len(self.types) for j in chosen}


class Ideal(Round):
    """Every job is at least at its fair progress on the type where it runs."""

    everybody = True

    def floors(self, chosen):
        return {j: [x or math.inf for x in self.fair(j)] for j in chosen}


class Oracle(Round):
    """Every job is at least at the progress that 1/n of every type gives it."""

    everybody = True

    def floors(self, chosen):
        parts = {j: [own[0] / (len(chosen) * self.jobs[j]["gpus"]) for own in self.total] for j in chosen}
        fair = {j: self.fair(j) for j in chosen}
        return {
            j: [sum(p * f for p, f in zip(parts[j], fair[j], strict=True)) / max(1.0, sum(parts[j]))] * len(self.types)
            for j in chosen
        }


PROBLEMS = {
    "oef.allocation": Sharing,
    "oef.envy_free": EnvyFree,
    "oef.equal_efficiency": Equal,
    "oef.sharing_incentive": Incentive,
    "gavel.makespan": Fluid,
    "synergy.makespan": Sensitive,
    "synergy.free": Round,
    "synergy.ideal": Ideal,
    "synergy.oracle": Oracle,
}
