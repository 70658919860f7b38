"""OEF: tenants share devices; the multipliers of their rows determine the value of a device to each tenant.

Multipliers are integer multiples of a unit and speedups are not rounded: everything is an exact fraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .basics import Data, require
from .rules import register

Rows = list[tuple[Mapping[str, Any], float]]


def kinds(data: Data, types: Sequence[str]) -> Rows:
    """Return the tenants' job types, each with its share of the tenant's weight.

    If no tenant declares job types, they are derived from the jobs, by model and speedups.
    """
    tenants = data.get("tenants", ())
    declared = [(k, t.get("weight", 1.0) / len(t["job_types"])) for t in tenants for k in t.get("job_types", ())]
    weights = {t["id"]: t.get("weight", 1.0) for t in tenants}
    derived: dict[str, dict[Any, Any]] = {}
    for job in () if declared else data.get("jobs", ()):
        rates = [job.get("rates", {}).get(r, 0.0) for r in types]
        if min(rates) > 0:
            key = job.get("model", "job"), tuple(float(f"{x / max(rates):.12g}") for x in rates)
            owner = job.get("tenant", job["id"])
            derived.setdefault(owner, {})[key] = {"rates": dict(zip(types, key[1], strict=True))}
    return declared or [(kind, weights.get(t, 1.0) / len(own)) for t, own in derived.items() for kind in own.values()]


def shared(data: Data) -> tuple[list[int], dict[tuple[float, ...], Fraction]]:
    """Return devices by type, slow ones first, and tenants' weights by speedups; tenants with equal speedups merge."""
    total = {g["name"]: 0 for g in data["cluster"]["gpu_types"]}
    for g in data["cluster"]["servers"]:
        total[g["gpu_type"]] += g["count"] * g["gpus"]
    types = [r for r in total if total[r]]
    rows = kinds(data, types)
    true = np.array([[kind["rates"][r] for r in types] for kind, _ in rows])
    order = [types[j] for j in np.argsort(np.log(true).mean(axis=0), kind="stable")]
    weights: dict[tuple[float, ...], Fraction] = {}
    for kind, weight in rows:
        rates = kind.get("reported_rates") or kind["rates"]
        key = tuple(rates[r] / rates[order[0]] for r in order)
        weights[key] = weights.get(key, Fraction(0)) + Fraction(weight)
    return [total[r] for r in order], dict(sorted(weights.items()))


def efficiency(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on total efficiency: the value of all devices, less what is due to the tenants.

    A device is worth what it is worth to the tenant who values it most. In ``oef.equal_efficiency`` all tenants have
    the same efficiency per weight, whatever it is, so multipliers must balance; in ``oef.sharing_incentive`` everybody
    has at least an equal split, by weight; and in ``oef.envy_free`` nobody prefers another's share, per weight.
    """
    devices, weights = shared(data)
    unit, tenants, envy = Fraction(proof["unit"]), proof.get("tenants", []), proof.get("envy", [])
    speedups, weight = [[Fraction(x) for x in row] for row in weights], list(weights.values())
    own, rest = [unit * Fraction(x) for x in tenants] or [Fraction(0)] * len(weight), Fraction(0)
    problem = proof["problem"]
    require(len(own) == len(weight), "there must be one multiplier for each kind of tenant")
    if problem == "oef.equal_efficiency":
        mean = sum((o * w for o, w in zip(own, weight, strict=True)), Fraction(0)) / sum(weight)
        own = [o - mean for o in own]
    elif problem == "oef.sharing_incentive":
        require(min(own) >= 0, "a multiplier is negative")
        for o, row, w in zip(own, speedups, weight, strict=True):
            rest -= o * sum(x * m for x, m in zip(row, devices, strict=True)) * w / sum(weight)
    else:
        require(not any(own), "tenants have no rows in this problem")
    worth = [[x * (1 + o) for x in row] for row, o in zip(speedups, own, strict=True)]
    require(not envy or problem == "oef.envy_free", "envy has no rows in this problem")
    for a, b, number in envy:
        times = unit * Fraction(number)
        require(times >= 0 and min(a, b) >= 0, "a multiplier is negative")
        for j, x in enumerate(speedups[a]):
            worth[a][j] += times * x / weight[a]
            worth[b][j] -= times * x / weight[b]
    most = [max(Fraction(0), *column) for column in zip(*worth, strict=True)]
    return 1, rest + sum((m * x for m, x in zip(devices, most, strict=True)), Fraction(0))


for name in ("allocation", "envy_free", "equal_efficiency", "sharing_incentive"):
    register(f"oef.{name}", efficiency)
