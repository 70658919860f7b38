"""OEF's rounding placer (§4.3): fractional shares become whole devices, round by round, without lasting deviation.

For every type the placer keeps ``dev[l] = Σ ideal[l] − Σ real[l]``, what it still owes a tenant. Three rules:

``independent``
    The paper's: ``real = round(ideal + dev)`` for each tenant on its own. The deviation stays within half a device, but
    the whole exceeds capacity: ideals ½, ½ of one device give 0, 0 and 1, 1 in turn. Kept to measure that.
``largest_remainder``
    Devices go one by one to whoever is owed most. Capacity always holds; deviations are bounded, but not by one device.
``tijdeman``
    The chairman assignment of Tijdeman (Discrete Math. 32, 1980): one device at a time, among the tenants whose deficit
    is positive the one whose deadline is earliest, the deadline being the moment the deficit would reach one device.

*Several devices per round.* Tijdeman assigns one unit per round. Here a round in which ``R`` devices are not already
fixed by whole shares (``⌊ideal⌋``) is cut into ``R`` sub-rounds of one device each, in which tenant ``l`` earns
``(ideal[l] − ⌊ideal[l]⌋)/R``; a phantom tenant earns what nobody is entitled to and stands for idle devices, so that all
earn exactly one device per sub-round. Unit ``i`` of a tenant may run in the sub-rounds between the moments it has earned
``i`` and ``i + 1`` devices. The fractional shares fill these windows, which are the intervals of a bipartite convex
graph, so a perfect matching exists, and for unit work on one machine the earliest deadline finds it. Hence
``|dev| < 1`` after every sub-round, in particular after every round, for shares that do not change. Where shares change,
the debts are kept and the rule goes on from them.

*Smallest jobs.* A tenant whose smallest job needs ``d`` devices gets none, or at least ``d``, of a type (never more than
the type has): less is kept as deviation. Its devices then come in batches of ``d``, its deficit may reach ``d``, and
whoever shares the type with it can be ahead or behind by as much.

All sums are integers in units of ``1/UNIT`` devices: no drift, no ties decided by rounding noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from instances.errors import UsageError

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Rule = Literal["largest_remainder", "tijdeman", "independent"]

UNIT = 1 << 30
"""Shares are rounded to multiples of ``1/UNIT`` device."""


class Placer:
    """Rounds shares to devices and remembers what it owes.

    Parameters
    ----------
    capacity
        ``(k,)`` devices of each type.
    min_demand
        ``(v,)`` devices of each tenant's smallest job; 1 accepts any number.
    rule
        See the module's docstring.
    """

    def __init__(self, capacity: Array, min_demand: Ints, rule: Rule = "largest_remainder") -> None:
        if rule not in get_args(Rule):
            raise UsageError(f"unknown rounding rule {rule!r}; known: {', '.join(get_args(Rule))}")
        self.rule = rule
        self.capacity = np.floor(np.asarray(capacity, float) + 1e-9).astype(np.int64)
        self._demand = np.append(np.asarray(min_demand, np.int64), 1)
        self._debt = np.zeros((self._demand.size, self.capacity.size), np.int64)

    @property
    def deviation(self) -> Array:
        """``(v, k)`` devices owed so far (negative: received too early)."""
        return np.asarray(self._debt[:-1] / UNIT)

    def forget(self, tenants: NDArray[np.bool_]) -> None:
        """Drop the debts of `tenants` ``(v,)``, who left; the phantom of idle devices takes them over."""
        gone = np.append(tenants, False)
        self._debt[-1] += self._debt[gone].sum(axis=0)
        self._debt[gone] = 0

    def place(self, ideal: Array) -> Ints:
        """Return the whole devices of the next round.

        Parameters
        ----------
        ideal
            ``(v, k)`` fractional shares of this round.

        Returns
        -------
        array
            ``(v, k)`` devices; each type's sum is at most its capacity, except by the rule ``independent``.

        Raises
        ------
        UsageError
            If the shares of a type exceed its capacity.
        """
        earned = _in_units(ideal, self.capacity)
        step = _RULES[self.rule]
        real = np.zeros_like(earned)
        for j, devices in enumerate(self.capacity.tolist()):
            demand = np.minimum(self._demand, max(devices, 1))
            real[:, j] = step(self._debt[:, j], earned[:, j], demand, devices)
        self._debt += earned - real * UNIT
        return real[:-1]


def _in_units(ideal: Array, capacity: Ints) -> Ints:
    """Return ``(v + 1, k)`` shares in units; the last row is what nobody is entitled to."""
    total = ideal.sum(axis=0)
    if np.any(ideal < -1e-6) or np.any(total > capacity + 1e-6 * np.maximum(capacity, 1)):
        j = int(np.argmax(total - capacity))
        raise UsageError(
            f"shares of type {j} add up to {total[j]:g} devices: at most {capacity[j]}, none negative"
        )
    units = np.rint(np.maximum(ideal, 0) * UNIT).astype(np.int64)
    idle = capacity * UNIT - units.sum(axis=0)
    largest = units.argmax(axis=0)
    units[largest, np.arange(capacity.size)] += np.minimum(
        idle, 0
    )  # the solver's tolerance: at most 1e-6 of a device
    return np.vstack([units, np.maximum(idle, 0)])


def _independent(debt: Ints, earned: Ints, demand: Ints, devices: int) -> Ints:
    """Round each tenant on its own; halves to even, as the paper's language does. Idle devices are what is left."""
    real = np.rint((debt + earned) / UNIT).astype(np.int64)
    real[real < demand] = 0
    real[-1] = devices - real[:-1].sum()
    return real


def _largest_remainder(debt: Ints, earned: Ints, demand: Ints, devices: int) -> Ints:
    """Give everybody the whole devices owed, then the rest one by one to whoever is owed most."""
    owed = debt + earned
    real = np.maximum(owed // UNIT, 0)
    real[real < demand] = 0
    if real.sum() > devices:
        real[:] = 0
    owed -= real * UNIT
    left = devices - int(real.sum())
    while left > 0:
        batch = np.where(real > 0, 1, demand)
        tenant = _most_owed(owed, batch, left, UNIT)
        left -= _grant(tenant, batch, real, owed, UNIT)
    return real


def _tijdeman(debt: Ints, earned: Ints, demand: Ints, devices: int) -> Ints:
    """Give whole shares, then one device per sub-round to the earliest deadline; see the module's docstring.

    Debts are scaled by the number of sub-rounds, so that what is earned in one of them is an integer.
    """
    if demand[(earned > 0) | (debt > 0)].max() > 1:
        return _largest_remainder(debt, earned, demand, devices)
    real = earned // UNIT
    left = devices - int(real.sum())
    rate = earned - real * UNIT
    device, owed = left * UNIT, debt * left
    for _ in range(left):
        eligible = np.flatnonzero(owed + rate > 0)
        tenant = int(eligible[np.argmin(_deadline(owed[eligible], rate[eligible], device))])
        owed += rate
        _grant(tenant, np.ones_like(real), real, owed, device)
    return real


def _deadline(owed: Ints, rate: Ints, limit: int) -> Ints:
    """Return the number of sub-rounds after which each debt reaches its limit."""
    never = np.full_like(owed, np.iinfo(np.int64).max)
    return np.asarray(-np.floor_divide(owed - limit, rate, out=-never, where=rate > 0))


def _most_owed(owed: Ints, batch: Ints, left: int, device: int) -> int:
    """Return who is owed most after receiving its next batch, among those whose batch fits into `left` devices."""
    return int(np.argmax(np.where(batch <= left, owed - batch * device, np.iinfo(np.int64).min)))


def _grant(tenant: int, batch: Ints, real: Ints, owed: Ints, device: int) -> int:
    """Give `tenant` its next batch; returns its devices."""
    real[tenant] += batch[tenant]
    owed[tenant] -= batch[tenant] * device
    return int(batch[tenant])


_RULES: dict[Rule, Callable[[Ints, Ints, Ints, int], Ints]] = {
    "largest_remainder": _largest_remainder,
    "tijdeman": _tijdeman,
    "independent": _independent,
}
