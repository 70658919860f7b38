"""OEF: tenants share devices, and multipliers of their rows say what a device is worth with each of them.

Multipliers are whole numbers of a unit, and speedups are taken as they are: everything is an exact fraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .basics import Data, require

Rows = list[tuple[Mapping[str, Any], float]]


def kinds(data: Data, types: Sequence[str]) -> Rows:
    """Return the job types of tenants, each with its part of the tenant's weight.

    Where tenants declare none, they are those of the jobs, by model and speedups.
    """
    tenants = data.get("tenants", ())
    found = [(k, t.get("weight", 1.0) / len(t["job_types"])) for t in tenants for k in t.get("job_types", ())]
    weights = {t["id"]: t.get("weight", 1.0) for t in tenants}
    asked: dict[str, dict[Any, Any]] = {}
    for job in () if found else data.get("jobs", ()):
        rates = [job.get("rates", {}).get(r, 0.0) for r in types]
        if min(rates) > 0:
            key = job.get("model", "job"), tuple(float(f"{x / max(rates):.12g}") for x in rates)
            owner = job.get("tenant", job["id"])
            asked.setdefault(owner, {})[key] = {"rates": dict(zip(types, key[1], strict=True))}
    return found or [(kind, weights.get(t, 1.0) / len(own)) for t, own in asked.items() for kind in own.values()]


def shared(data: Data) -> tuple[list[int], dict[tuple[float, ...], Fraction]]:
    """Return the devices by type, slow ones first, and weights of tenants by speedups: equal ones count as one."""
    total = {g["name"]: 0 for g in data["cluster"]["gpu_types"]}
    for g in data["cluster"]["servers"]:
        total[g["gpu_type"]] += g["count"] * g["gpus"]
    types = [r for r in total if total[r]]
    rows = kinds(data, types)
    true = np.array([[kind["rates"][r] for r in types] for kind, _ in rows])
    order = [types[j] for j in np.argsort(np.log(true).mean(axis=0), kind="stable")]
    found: dict[tuple[float, ...], Fraction] = {}
    for kind, weight in rows:
        rates = kind.get("reported_rates") or kind["rates"]
        key = tuple(rates[r] / rates[order[0]] for r in order)
        found[key] = found.get(key, Fraction(0)) + Fraction(weight)
    return [total[r] for r in order], dict(sorted(found.items()))


def efficiency(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on total efficiency: devices at what they are worth, less what tenants have to get.

    A device costs what the tenant pays that pays most. In ``oef.equal_efficiency`` all have the same efficiency per
    weight, whatever it is, so that multipliers balance; in ``oef.sharing_incentive`` everybody has as much as with an
    equal split, by weight; and in ``oef.envy_free`` nobody prefers another share, per weight.
    """
    devices, weights = shared(data)
    unit, tenants, envy = Fraction(proof["unit"]), proof.get("tenants", []), proof.get("envy", [])
    speedups, weight = [[Fraction(x) for x in row] for row in weights], list(weights.values())
    own, rest = [unit * Fraction(x) for x in tenants] or [Fraction(0)] * len(weight), Fraction(0)
    problem = proof["problem"]
    require(len(own) == len(weight), "multipliers are not one for each kind of tenant")
    if problem == "oef.equal_efficiency":
        mean = sum((o * w for o, w in zip(own, weight, strict=True)), Fraction(0)) / sum(weight)
        own = [o - mean for o in own]
    elif problem == "oef.sharing_incentive":
        require(min(own) >= 0, "a multiplier is negative")
        for o, row, w in zip(own, speedups, weight, strict=True):
            rest -= o * sum(x * m for x, m in zip(row, devices, strict=True)) * w / sum(weight)
    else:
        require(not any(own), "tenants have no rows of their own")
    worth = [[x * (1 + o) for x in row] for row, o in zip(speedups, own, strict=True)]
    require(not envy or problem == "oef.envy_free", "envy matters where the problem has none")
    for a, b, number in envy:
        times = unit * Fraction(number)
        require(times >= 0 and min(a, b) >= 0, "a multiplier is negative")
        for j, x in enumerate(speedups[a]):
            worth[a][j] += times * x / weight[a]
            worth[b][j] -= times * x / weight[b]
    most = [max(Fraction(0), *column) for column in zip(*worth, strict=True)]
    return 1, rest + sum((m * x for m, x in zip(devices, most, strict=True)), Fraction(0))


PROBLEMS = {f"oef.{name}": efficiency for name in ("allocation", "envy_free", "equal_efficiency", "sharing_incentive")}
