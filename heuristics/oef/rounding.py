"""OEF's rounding placer (§4.3), which turns fractional shares into whole devices, round by round.

For every type the placer tracks ``dev[l] = Σ ideal[l] − Σ real[l]``, the devices that it still owes tenant ``l``. The
rules are:

``round``
    The paper's rule, made to fit: ``real = round(ideal + dev)``, each tenant on its own. This alone exceeds capacity:
    ideals ½, ½ of one device give 0, 0 and 1, 1 in turn. The paper states no repair; here devices then go by largest
    remainder. If the rounded shares sum to less than a type has, devices idle, as printed, and debts grow until the
    rounded shares use them.
``independent``
    The rule ``round`` without the repair, to measure how often it exceeds capacity. Deviations stay within half a
    device.
``largest_remainder``
    Every tenant gets the whole devices owed, then devices go one by one to the tenant that is owed most. Capacity
    always holds; deviations are bounded, but not by one device.
``tijdeman``
    The chairman assignment (Tijdeman, Discrete Mathematics 32, 1980) gives out one device at a time. Of the tenants
    that are owed something, the one with the earliest deadline gets it: the moment at which it would be owed a whole
    device.
``memoryless``
    Each round's shares are rounded by largest remainder and debts are forgotten, as in a scheduler without ``dev``,
    with which §6.3.2 compares ("even when allocated GPU resources are less than their job expectations"). A tenant with
    the smallest remainder never gets the device, so tenants with small shares may never start.

*Several devices per round.* Tijdeman assigns one unit per round. Here whole shares are given out first, and a round
with ``R`` devices left is cut into ``R`` sub-rounds of one device, in each of which a tenant earns
``(ideal − ⌊ideal⌋)/R``. A phantom tenant, which stands for idle devices, earns the rest, so that the total is one
device per sub-round. Device ``i`` of a tenant must fall between the moments at which the tenant has earned ``i`` and
``i + 1`` devices. The shares fill these windows fractionally, and the windows are intervals, so a perfect matching of
devices to sub-rounds exists; for unit work on one machine with release times and deadlines, earliest deadline first
finds it. Hence ``|dev| < 1`` after every sub-round, and so after every round, as long as the shares do not change. If
they change, debts are kept.

*Smallest jobs.* A tenant whose smallest job needs ``d`` devices gets none or at least ``d`` of a type (or all of them);
smaller shares are kept as deviation. The paper writes ``real`` per user; here it is per type, like the shares, so that
a job need not be spread over types to have ``d``. Devices then come in batches, for which no such theorem holds:
``largest_remainder`` and ``tijdeman`` serve types with batches by largest remainder.

All sums are integers in units of ``1/UNIT`` device, so there is no drift, and rounding noise decides no tie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.errors import UsageError
from schedgap.instances.views.oef import Allocation, OefView

Rule = Literal["round", "largest_remainder", "tijdeman", "independent", "memoryless"]

ROUNDS = 288
"""Number of rounds of the placer: 24 hours of 5 minutes each."""

UNIT = 1 << 30
"""Shares are rounded down to multiples of ``1/UNIT`` of a device."""

NEVER = np.iinfo(np.int64).max
"""Deadline of a tenant whose debt does not grow: it never reaches one device."""

TOLERANCE = 1e-6
"""Shares may exceed a type's devices by this fraction, because solvers have tolerances."""


class Placer:
    """A placer: it rounds tenants' shares to whole devices by one of the rules, and tracks what it owes each tenant.

    `capacity` ``(k,)`` are devices of each type; fractions of a device are not used. Raises `UsageError` for an unknown
    rule.
    """

    def __init__(self, tenants: int, capacity: Array, rule: Rule = "largest_remainder") -> None:
        if rule not in get_args(Rule):
            raise UsageError(f"unknown rounding rule {rule!r}; known: {', '.join(get_args(Rule))}")
        self.rule: Rule = rule
        self.capacity: Ints = np.floor(np.asarray(capacity, float) + 1e-9).astype(np.int64)
        self._debt = np.zeros((tenants + 1, self.capacity.size), np.int64)  # the last row is the phantom's

    @property
    def deviation(self) -> Array:
        """``(v, k)`` devices that the placer owes each tenant so far; negative if the tenant got them early."""
        return np.asarray(self._debt[:-1] / UNIT)

    def forget(self, gone: Bools) -> None:
        """Forget what tenants are owed that have left (mask `gone` ``(v,)``): their debts go to the phantom tenant."""
        rows = np.append(gone, False)
        self._debt[-1] += self._debt[rows].sum(axis=0)
        self._debt[rows] = 0

    def place(self, ideal: Array, min_demand: Ints) -> Ints:
        """Return the ``(v, k)`` whole devices of the next round.

        The sum over a type is at most its capacity, except with the rule ``independent``. `ideal` ``(v, k)`` are the
        shares of this round; `min_demand` ``(v,)`` is the size of each tenant's smallest job, 1 for no restriction.
        Raises `UsageError` if the shares of a type exceed its capacity or a share is negative.
        """
        total, capacity = ideal.sum(axis=0), self.capacity
        excess = total - capacity * (1 + TOLERANCE)
        if excess.max() > TOLERANCE or ideal.min() < -TOLERANCE:
            j = int(np.argmax(excess))
            raise UsageError(f"shares of type {j} sum to {total[j]:g}: at most {capacity[j]} allowed, none negative")
        within = np.maximum(ideal, 0) * np.minimum(1.0, capacity / np.maximum(total, 1e-300))
        units = np.floor(within * UNIT).astype(np.int64)
        earned = np.vstack([units, np.maximum(capacity * UNIT - units.sum(axis=0), 0)])  # the last row is the phantom's
        batch = np.append(np.asarray(min_demand, np.int64), 1)
        real = np.zeros_like(earned)
        for j, devices in enumerate(self.capacity.tolist()):
            smallest = np.minimum(batch, max(devices, 1))
            real[:, j] = _RULES[self.rule](self._debt[:, j], earned[:, j], smallest, devices)
        if self.rule != "memoryless":
            self._debt += earned - real * UNIT
        return real[:-1]


@dataclass(frozen=True)
class Quality:
    """How far the whole devices of many rounds are from constant shares.

    `largest_deviation` is the largest ``|Σ ideal − Σ real|`` of a tenant and type after any round, in devices;
    `violations` counts the pairs of round and type in which more devices are given out than exist.
    """

    largest_deviation: float
    violations: int


def quality(ideal: Array, rounds: Ints, capacity: Array) -> Quality:
    """Compare a placer's ``(rounds, v, k)`` whole devices with the constant shares `ideal` ``(v, k)``."""
    due = ideal * np.arange(1, len(rounds) + 1)[:, None, None]
    deviation = np.abs(due - rounds.cumsum(axis=0)).max(initial=0.0)
    return Quality(float(deviation), int((rounds.sum(axis=1) > capacity).sum()))


def _independent(debt: Ints, earned: Ints, demand: Ints, devices: int) -> Ints:
    """Round what each tenant is owed to the nearest integer; the phantom gets the rest, which may be negative."""
    real = np.rint((debt + earned) / UNIT).astype(np.int64)
    real[real < demand] = 0
    real[-1] = devices - real[:-1].sum()
    return real


def _largest_remainder(debt: Ints, earned: Ints, demand: Ints, devices: int) -> Ints:
    """Give every tenant the whole devices that it is owed, then the rest one by one to the tenant that is owed most."""
    owed = debt + earned
    real: Ints = np.maximum(owed // UNIT, 0)
    real[real < demand] = 0
    if real.sum() > devices:
        real[:] = 0
    owed -= real * UNIT
    left = devices - int(real.sum())
    while left > 0:
        batch = np.where(real > 0, 1, demand)
        tenant = np.argmax(np.where(batch <= left, owed - batch * UNIT, -NEVER))
        real[tenant] += batch[tenant]
        owed[tenant] -= batch[tenant] * UNIT
        left -= int(batch[tenant])
    return real


def _round(debt: Ints, earned: Ints, demand: Ints, devices: int) -> Ints:
    """Round what each tenant is owed on its own or, if the devices do not suffice, by largest remainder."""
    real = _independent(debt, earned, demand, devices)
    return real if real[-1] >= 0 else _largest_remainder(debt, earned, demand, devices)


def _tijdeman(debt: Ints, earned: Ints, demand: Ints, devices: int) -> Ints:
    """Give tenants whole devices of their shares, then one device per sub-round to the tenant of earliest deadline.

    Debts are scaled by the number of sub-rounds, so that the earnings of a sub-round are integers.
    """
    if np.max(demand[(earned > 0) | (debt > 0)], initial=1) > 1:
        return _largest_remainder(debt, earned, demand, devices)
    real = earned // UNIT
    left = devices - int(real.sum())
    rate = earned - real * UNIT
    device, owed = left * UNIT, debt * left
    for _ in range(left):
        eligible = np.flatnonzero(owed + rate > 0)
        # The deadline is the number of sub-rounds until a debt reaches one device.
        earning = np.maximum(rate[eligible], 1)
        deadline = np.where(rate[eligible] > 0, -((owed[eligible] - device) // earning), NEVER)
        tenant = eligible[np.argmin(deadline)]
        owed += rate
        real[tenant] += 1
        owed[tenant] -= device
    return real


_RULES: dict[Rule, Callable[[Ints, Ints, Ints, int], Ints]] = {
    "round": _round,
    "largest_remainder": _largest_remainder,
    "tijdeman": _tijdeman,
    "independent": _independent,
    "memoryless": _largest_remainder,
}


def round_shares(view: OefView, ideal: Array, rule: Rule, rounds: int = ROUNDS) -> Allocation:
    """Round constant shares ``(v, k)`` for a number of rounds; return the devices of each round and their average."""
    placer = Placer(view.size, view.capacity, rule)
    placed = np.stack([placer.place(ideal, view.min_demand) for _ in range(rounds)])
    return Allocation(placed.mean(axis=0), placed)
