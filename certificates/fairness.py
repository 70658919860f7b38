"""OEF's fairness properties (§2.3.1, §5), checked on plain arrays; a failure comes with a witness.

Rows are virtual tenants with their weights, as in the problems: a tenant of weight π counts as π tenants of weight 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from .basics import Array

TOLERANCE = 1e-8
"""Tolerance, relative to the largest quantity compared; rules for bounds allow more (:data:`.basics.STRETCH`)."""

W = TypeVar("W")


@dataclass(frozen=True, eq=False)
class PropertyCheck(Generic[W]):
    """Whether an allocation has a property, within the tolerance, and a witness if it has not.

    Each property defines its `witness` and its `margin`, which is negative if the property fails; `text` is for tables.
    `missed` is the amount by which an allocation misses the property, in the unit of the tolerance.
    """

    name: str
    holds: bool
    witness: W
    margin: float
    text: str
    missed: float = 0.0

    def __bool__(self) -> bool:
        return self.holds


class Tenants(Protocol):
    """Tenants that share devices: ``(v,)`` `labels` and `weight`, ``(k,)`` `capacity`, and ``(v, k)`` `speedups`."""

    @property
    def labels(self) -> Sequence[str]: ...
    @property
    def weight(self) -> Array: ...
    @property
    def capacity(self) -> Array: ...
    @property
    def speedups(self) -> Array: ...


def efficiency(speedups: Array, devices: Array) -> Array:
    """Return ``(v,)`` the efficiency of each tenant, ``E_l = Σ_j w[l, j]·x[l, j]``."""
    return np.asarray((speedups * devices).sum(axis=1))


def equal_split(tenants: Tenants) -> Array:
    """Return ``(v, k)`` the devices of each tenant if every type is divided in proportion to the weights."""
    return np.outer(tenants.weight / tenants.weight.sum(), tenants.capacity)


def split_efficiency(tenants: Tenants) -> Array:
    """Return ``(v,)`` the efficiency of each tenant with an equal split."""
    return efficiency(tenants.speedups, equal_split(tenants))


def envy_free(tenants: Tenants, devices: Array, epsilon: float = 0.0) -> PropertyCheck[dict[tuple[str, str], float]]:
    """Check that no tenant prefers another tenant's devices, per unit of weight: ``w_l·x_l/π_l ≥ (1−ε)·w_l·x_i/π_i``.

    Envy is measured relative to the tenant's efficiency under an equal split, so that scales do not matter. With an
    `epsilon` ε above 0, a tenant may lack that part of what another's devices are worth to it.

    Witness: the efficiency per weight that a tenant would gain with the allocation of another, for every pair of
    labels in which it is positive. Margin: minus the largest envy.
    """
    labels, bundle = tenants.labels, devices / tenants.weight[:, None]
    own = efficiency(tenants.speedups, bundle)
    alone = split_efficiency(tenants) / tenants.weight
    pairs, largest, missed, text = dict[tuple[str, str], float](), -np.inf, -np.inf, ""
    for rows in blocks(len(own)):
        envy = (1 - epsilon) * (tenants.speedups[rows] @ bundle.T) - own[rows, None]
        relative = envy / alone[rows, None]
        found = np.argwhere(relative > TOLERANCE).tolist()
        pairs |= {(labels[rows.start + l], labels[i]): float(envy[l, i]) for l, i in found}
        largest = max(largest, float(envy.max()))
        if relative.max() > missed:
            missed = float(relative.max())
            at, i = map(int, np.unravel_index(relative.argmax(), envy.shape))
            l = rows.start + at
            text = f"{labels[l]} envies {labels[i]}: {own[l] + envy[at, i]:.6g} is more than its {own[l]:.6g}"
    text = text if pairs else "nobody envies anybody"
    return PropertyCheck("envy-free", not pairs, pairs, -largest, text, max(missed, 0.0))


def blocks(size: int, cells: int = 4_000_000) -> Iterator[slice]:
    """Yield slices of so many rows that a block of a square matrix has about `cells` entries."""
    rows = max(1, cells // size)
    for start in range(0, size, rows):
        yield slice(start, min(start + rows, size))


def equal_efficiency(tenants: Tenants, devices: Array) -> PropertyCheck[Array]:
    """Check that all tenants have the same efficiency per weight (9c).

    Witness: ``(v,)`` efficiencies per weight. Margin: minus their spread, relative to the largest.
    """
    labels, level = tenants.labels, efficiency(tenants.speedups, devices) / tenants.weight
    low, high = int(level.argmin()), int(level.argmax())
    spread = float(np.ptp(level) / level[high]) if level[high] > 0 else 0.0
    text = f"{labels[low]} has {level[low]:.6g} per weight, {labels[high]} has {level[high]:.6g}"
    return PropertyCheck("equal efficiency", spread <= TOLERANCE, level, -spread, text, spread)


def least_envy(tenants: Tenants, devices: Array) -> float:
    """Return the least ε at which an allocation is free of ε-envy: the largest part that a tenant lacks of another's.

    It is 0 if nobody envies anybody, and 1 if a tenant with nothing could use another's devices.
    """
    bundle = devices / tenants.weight[:, None]
    own = efficiency(tenants.speedups, bundle)
    most = np.concatenate([(tenants.speedups[rows] @ bundle.T).max(axis=1) for rows in blocks(len(own))])
    return float((1 - np.divide(own, most, out=np.ones_like(own), where=most > own)).max())


def least_share(tenants: Tenants, devices: Array) -> float:
    """Return the largest σ at which an allocation has σ of the sharing incentive: the least share of an equal split."""
    return float((efficiency(tenants.speedups, devices) / split_efficiency(tenants)).min())


def sharing_incentive(tenants: Tenants, devices: Array, sigma: float = 1.0) -> PropertyCheck[dict[str, float]]:
    """Check that no tenant is worse off than with its share, by weight, of every type: ``E_l ≥ σ·w_l·(π_l/Σπ)·m``.

    With a `sigma` σ below 1, that part of the equal split's efficiency is enough.

    Witness: the loss of each tenant below its equal split, by label. Margin: the smallest relative gain over it.
    """
    labels, own = tenants.labels, efficiency(tenants.speedups, devices)
    alone = split_efficiency(tenants)
    relative = own / alone - sigma
    losers = {labels[i]: float(sigma * alone[i] - own[i]) for i in np.flatnonzero(relative < -TOLERANCE).tolist()}
    l = int(np.argmin(relative))
    than = "less than" if losers else "at least"
    share = "an equal split" if sigma == 1 else f"{sigma:.6g} of an equal split"
    text = f"{labels[l]} gets {own[l]:.6g}, {than} the {sigma * alone[l]:.6g} of {share}"
    return PropertyCheck(
        "sharing incentive", not losers, losers, float(relative[l]), text, max(-float(relative[l]), 0.0)
    )
