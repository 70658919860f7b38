"""OEF: tenants share devices; the multipliers of their rows determine the value of a device to each tenant.

Multipliers are integer multiples of a unit and speedups are not rounded: everything is an exact fraction.
"""

from __future__ import annotations

from fractions import Fraction

from .basics import Data, require
from .reading.oef import shares_of
from .rules import register


def shared(data: Data) -> tuple[list[int], dict[tuple[float, ...], Fraction]]:
    """Return devices by type, slow ones first, and tenants' weights by speedups; tenants with equal speedups merge."""
    read, weights = shares_of(data), dict[tuple[float, ...], Fraction]()
    for row, weight in zip(read.speedups.tolist(), read.weight.tolist(), strict=True):
        weights[tuple(row)] = weights.get(tuple(row), Fraction(0)) + Fraction(weight)
    return [read.devices[name] for name in read.gpu_types], dict(sorted(weights.items()))


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
    register(f"oef.{name}", efficiency, reads=("tenants", "envy"))
