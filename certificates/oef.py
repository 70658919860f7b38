"""OEF: multipliers of the tenants' rows determine what a device is worth to each tenant, and so bound efficiency.

Multipliers are integer multiples of a unit and speedups are not rounded: all numbers are exact fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction

from .basics import HIGH, STRETCH, Data, require
from .reading.oef import shares_of
from .rules import register

FAIR = "oef.fair"
"""The problem whose certificates state how much envy is allowed, and which part of an equal split is due."""


def shared(data: Data, whole: bool = False) -> tuple[list[int], dict[tuple[float, ...], Fraction]]:
    """Return the devices of each type, slowest first, and the total weight of all tenants with the same speedups.

    Tenants are virtual ones, a row for each job type, or `whole`.
    """
    read, weights = shares_of(data), dict[tuple[float, ...], Fraction]()
    read = read.whole if whole else read
    for row, weight in zip(read.speedups.tolist(), read.weight.tolist(), strict=True):
        weights[tuple(row)] = weights.get(tuple(row), Fraction(0)) + Fraction(weight)
    return [read.devices[name] for name in read.gpu_types], dict(sorted(weights.items()))


SPARE = Fraction(STRETCH) - 1
"""Fraction by which allocations may violate capacity, equal splits and equal levels: more than checkers accept."""


def efficiency(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on total efficiency: the value of all devices, less what is due to the tenants.

    A device is worth what it is worth to the tenant who values it most. In ``oef.equal_efficiency`` all tenants have
    the same efficiency per weight, whatever it is, so multipliers must balance; in ``oef.sharing_incentive`` everybody
    has at least an equal split, by weight; and in ``oef.envy_free`` nobody prefers another's share, per weight.
    ``oef.fair`` has both of these less strictly: nobody prefers ``1 − epsilon`` of another's share, and everybody has
    ``sigma`` of an equal split. A certificate states both numbers.

    Allocations may violate all of this by :data:`SPARE`, as a fraction of the devices of a type, of an equal split
    (also for envy), and of the highest efficiency per weight.
    """
    devices, weights = shared(data)
    speedups, weight = [[Fraction(x) for x in row] for row in weights], list(weights.values())
    split = [_total(row, devices) / sum(weight) for row in speedups]
    part, share = _strictness(proof)
    own = _own(proof, weight)
    wanted, unwanted = _envy(proof, speedups)
    worth = [
        [x * (1 + o + w / of) - part * u / of for x, u in zip(row, other, strict=True)]
        for row, o, w, other, of in zip(speedups, own, wanted, unwanted, weight, strict=True)
    ]
    missed = sum((w * s for w, s in zip(wanted, split, strict=True)), Fraction(0)) * SPARE
    most = [max(Fraction(0), *column) for column in zip(*worth, strict=True)]
    bound = _total(most, devices) * (1 + SPARE) + missed
    if proof["problem"] == "oef.equal_efficiency":
        return 1, bound / (1 - _unequal(own, weight))
    due = sum((o * e * w for o, e, w in zip(own, split, weight, strict=True)), Fraction(0))
    return 1, bound - due * (share - SPARE)


def _strictness(proof: Data) -> tuple[Fraction, Fraction]:
    """Return the part of another's share that nobody prefers to its own, and that of an equal split that all have."""
    if proof["problem"] != FAIR:
        return Fraction(1), Fraction(1)
    epsilon, sigma = Fraction(proof["epsilon"]), Fraction(proof["sigma"])
    require(0 <= epsilon <= 1, "its epsilon is not between 0 and 1")
    require(0 <= sigma <= 1, "its sigma is not between 0 and 1")
    return 1 - epsilon, sigma


def _total(worth: list[Fraction], devices: list[int]) -> Fraction:
    return sum((x * m for x, m in zip(worth, devices, strict=True)), Fraction(0))


def _own(proof: Data, weight: list[Fraction]) -> list[Fraction]:
    """Return the multipliers of the tenants' rows, 0 if there are none; for equal efficiency, their mean is made 0."""
    unit, problem = Fraction(proof["unit"]), proof["problem"]
    own = [unit * Fraction(x) for x in proof.get("tenants", [])] or [Fraction(0)] * len(weight)
    require(len(own) == len(weight), "there must be one multiplier for each kind of tenant")
    if problem == "oef.equal_efficiency":
        mean = sum((o * w for o, w in zip(own, weight, strict=True)), Fraction(0)) / sum(weight)
        return [o - mean for o in own]
    if problem in ("oef.sharing_incentive", FAIR):
        require(min(own) >= 0, "a multiplier is negative")
    else:
        require(not any(own), "tenants have no rows in this problem")
    return own


def _envy(proof: Data, speedups: list[list[Fraction]]) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Return the sum of each tenant's multipliers, and that of those who envy it, times their speedups by type.

    There may be hundreds of rows per tenant, so that sums are of integers: speedups times a common denominator.
    """
    unit, envy = Fraction(proof["unit"]), proof.get("envy", [])
    require(not envy or proof["problem"] in ("oef.envy_free", FAIR), "envy has no rows in this problem")
    common = math.lcm(*(x.denominator for row in speedups for x in row))
    whole = [[x.numerator * (common // x.denominator) for x in row] for row in speedups]
    wanted, unwanted = [Fraction(0)] * len(speedups), [[0] * len(row) for row in speedups]
    for a, b, given in envy:
        number = given if isinstance(given, int) else Fraction(given)
        require(number >= 0 and min(a, b) >= 0, "a multiplier is negative")
        wanted[a] += number
        unwanted[b] = [have + number * x for have, x in zip(unwanted[b], whole[a], strict=True)]
    return [unit * w for w in wanted], [[unit * x / common for x in row] for row in unwanted]


def _unequal(own: list[Fraction], weight: list[Fraction]) -> Fraction:
    """Return the error of the bound, as a fraction of total efficiency, if efficiencies per weight differ a little.

    They differ by at most :data:`SPARE` of the highest one, and the highest is at most their mean, which is the total
    divided by all weights, over ``1 − SPARE``. Multipliers above 0 balance those below, so that only half of their sum
    counts.
    """
    size = sum((abs(o) * w for o, w in zip(own, weight, strict=True)), Fraction(0)) / sum(weight)
    part = size / 2 * SPARE / (1 - SPARE)
    require(part < 1, "the multipliers are too large to bound anything")
    return part


def welfare(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on Nash welfare, the product by weight of the tenants' gains, from the prices of devices alone.

    Let tenants have budgets in proportion to their weights, which add up to the price of all devices. A tenant's budget
    buys at most a gain of r, on the type that is worth most to it per price, so that a gain of g costs at least g / r
    of its budget. No allocation costs more than all devices: the mean of g / r by weight is at most 1, and so is their
    product by weight. Devices of a type may exceed capacity by :data:`SPARE`.
    """
    devices, weights = shared(data, whole=True)
    price = [Fraction(x) for x in proof["prices"]]
    require(len(price) == len(devices) and min(price) > 0, "each type must have a price above 0")
    cost, every = _total(price, devices), float(sum(weights.values()))
    logs = []
    for row, weight in weights.items():
        speedups = [Fraction(x) for x in row]
        bought = cost * max(x / p for x, p in zip(speedups, price, strict=True)) / _total(speedups, devices)
        logs.append(float(weight) / every * math.log(float(bought)))
    # Errors of logarithms and sums are far below 1e-12, as none exceeds a few hundred.
    return 1, Fraction(math.exp(math.fsum(logs) + 1e-12)) * Fraction(HIGH) * (1 + SPARE)


def least_gain(data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return a bound on the least gain of a tenant over an equal split, from multipliers of the tenants.

    The sum of efficiencies times multipliers is at most that of all devices, each with the tenant to whom it is worth
    most; and it is at least the least gain times that of the equal split. Devices of a type may exceed capacity by
    :data:`SPARE`.
    """
    devices, weights = shared(data, whole=True)
    own = [Fraction(x) for x in proof["tenants"]]
    require(len(own) == len(weights) and min(own) >= 0, "there must be one multiplier for each kind of tenant")
    speedups = [[Fraction(x) for x in row] for row in weights]
    most = [
        max(column)
        for column in zip(*([o * x for x in row] for o, row in zip(own, speedups, strict=True)), strict=True)
    ]
    every = sum(weights.values())
    due = sum(
        (o * _total(row, devices) * w for o, row, w in zip(own, speedups, weights.values(), strict=True)), Fraction(0)
    )
    require(due > 0, "no tenant has a multiplier")
    return 1, _total(most, devices) * every / due * (1 + SPARE)


register("oef.least_gain", least_gain, reads=("tenants",))
register("oef.nash_welfare", welfare, reads=("prices",))
for name in ("allocation", "envy_free", "equal_efficiency", "sharing_incentive"):
    register(f"oef.{name}", efficiency, reads=("tenants", "envy"))
register(FAIR, efficiency, reads=("tenants", "envy", "epsilon", "sigma"))
