"""Exact checkers of the fairness properties of OEF (§2.3.1, §5), each with a witness.

A property is checked at the speedups a view *reports*, for that is what a mechanism knows and can promise:
envy, sharing incentive, Pareto efficiency, optimal efficiency. To judge what tenants who misreport really
get, check ``truthful(view)``. Strategy-proofness is about the truth: misreports are tried as reports, gains
are counted at true speedups.

Rows are virtual tenants with their weights, as in the models: a tenant of weight π counts as π tenants of
weight 1. Tenants with several job types are judged as a whole in :func:`whole_tenants`: what holds between their
virtual rows need not hold between them. Quantities are compared with the relative tolerance :data:`TOLERANCE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import Allocation, View, efficiency

Mechanism = Callable[[View], Allocation]
"""Decides on a view's reported speedups."""

TOLERANCE = 1e-6
"""Relative to the largest quantity compared; LP optima are feasible to about 1e-9."""

REACH = 4.0
"""Largest factor between a misreport and the truth that is tried, either way."""

W = TypeVar("W")


@dataclass(frozen=True, eq=False)
class Finding(Generic[W]):
    """Whether a property holds within the tolerance, and what shows it.

    Each checker says what its `witness` is, and by how much (`margin`) the property holds, or fails if it is negative;
    `text` is one line for tables.
    """

    name: str
    holds: bool
    witness: W
    margin: float
    text: str

    def __bool__(self) -> bool:
        return self.holds


def truthful(view: View) -> View:
    """Return the view in which everybody reports the truth."""
    return replace(view, speedups=view.true_speedups)


def whole_tenants(view: View, devices: Array) -> tuple[View, Array]:
    """Return the view with a row per real tenant, and what each has, for the other checkers.

    A tenant makes the best use of any bundle, its own or another's: devices of a type are worth its largest speedup on
    them. This judges a mechanism mildly, since it counts what a tenant could do with what it has.
    """
    whole = np.arange(len(view.tenants))
    speedups, true, bundle = (np.zeros((whole.size, view.capacity.size)) for _ in range(3))
    np.maximum.at(speedups, view.owner, view.speedups)
    np.maximum.at(true, view.owner, view.true_speedups)
    np.add.at(bundle, view.owner, devices)
    seen = replace(
        view,
        labels=view.tenants,
        owner=whole,
        weight=np.asarray(np.bincount(view.owner, view.weight), float),
        speedups=speedups,
        true_speedups=true,
        min_demand=np.array([view.min_demand[view.owner == t].min() for t in whole]),
    )
    return seen, bundle


def envy_free(view: View, devices: Array) -> Finding[dict[tuple[str, str], float]]:
    """Nobody prefers another's allocation, per unit of weight: ``w_l·x_l/π_l ≥ w_l·x_i/π_i``.

    Envy is compared in units of what the tenant has from an equal split, so that nobody's scale hides another's.

    Witness: the efficiency per weight that a tenant would gain with the allocation of another, for every pair of
    labels in which it is positive. Margin: minus the largest envy.
    """
    value = view.speedups @ (devices / view.weight[:, None]).T
    envy = value - np.diag(value)[:, None]
    relative = envy / (view.split_efficiency / view.weight)[:, None]
    pairs = {(view.labels[l], view.labels[i]): float(envy[l, i]) for l, i in np.argwhere(relative > TOLERANCE)}
    l, i = map(int, np.unravel_index(relative.argmax(), envy.shape))
    text = f"{view.labels[l]} envies {view.labels[i]}: {value[l, i]:.6g} is more than its {value[l, l]:.6g}"
    text = text if pairs else "nobody envies anybody"
    return Finding("envy-free", not pairs, pairs, -float(envy.max()), text)


def equal_efficiency(view: View, devices: Array) -> Finding[Array]:
    """Everybody reaches the same efficiency per weight (9c).

    Witness: ``(v,)`` efficiencies per weight. Margin: minus their spread, relative to the largest.
    """
    level = efficiency(view.speedups, devices) / view.weight
    low, high = int(level.argmin()), int(level.argmax())
    spread = float(np.ptp(level) / level[high]) if level[high] > 0 else 0.0
    text = f"{view.labels[low]} has {level[low]:.6g} per weight, {view.labels[high]} has {level[high]:.6g}"
    return Finding("equal efficiency", spread <= TOLERANCE, level, -spread, text)


def sharing_incentive(view: View, devices: Array) -> Finding[dict[str, float]]:
    """Nobody would be better off with the weight's part of every type: ``E_l ≥ w_l·(π_l/Σπ)·m``.

    Witness: what each tenant below its equal split loses, by label. Margin: the least relative gain over it.
    """
    own, alone = efficiency(view.speedups, devices), view.split_efficiency
    relative = own / alone - 1
    losers = {view.labels[i]: float(alone[i] - own[i]) for i in np.flatnonzero(relative < -TOLERANCE)}
    l = int(np.argmin(relative))
    than = "less than" if losers else "at least"
    text = f"{view.labels[l]} gets {own[l]:.6g}, {than} the {alone[l]:.6g} of an equal split"
    return Finding("sharing incentive", not losers, losers, float(relative[l]), text)


def pareto_efficient(view: View, devices: Array) -> Finding[Array]:
    """No other allocation gives somebody more and nobody less.

    Witness: ``(v, k)`` an allocation of the largest total that hurts nobody. Margin: minus its gain in total
    efficiency.
    """
    from schedgap.models.oef.printed import pareto_gain

    gain, better = pareto_gain(view, devices)
    total = float(efficiency(view.speedups, devices).sum())
    text = f"the total can grow by {max(gain, 0.0):.4g} without hurting anybody"
    return Finding("Pareto-efficient", gain <= TOLERANCE * total, better, -gain, text)


def optimal_efficiency(view: View, devices: Array, best: float | None = None) -> Finding[float]:
    """Compare the total efficiency with `best`, a model's largest one under fairness rules, or with the largest of all.

    That gives every type to the tenant of the greatest speedup on it.

    Witness: the largest total. Margin: total over that, minus 1.
    """
    most = float(view.capacity @ view.speedups.max(axis=0)) if best is None else best
    total = float(efficiency(view.speedups, devices).sum())
    short = total / most - 1
    text = f"total {total:.6g} of at most {most:.6g}"
    return Finding("optimal efficiency", short >= -TOLERANCE, most, short, text)


def adjacent(view: View, devices: Array) -> Finding[dict[str, tuple[str, ...]]]:
    """Everybody's types are neighbours in speed (Theorem 5.2).

    Witness: the types of each tenant who skips one, by label. Margin: minus their number.
    """
    used = [np.flatnonzero(row) for row in devices > _support_tolerance(devices)]
    skipping = [l for l, types in enumerate(used) if types.size and np.ptp(types) >= types.size]
    gaps = {view.labels[l]: tuple(view.gpu_types[j] for j in used[l]) for l in skipping}
    text = f"{len(gaps)} of {view.size} skip a type"
    return Finding("adjacent types", not gaps, gaps, -float(len(gaps)), text)


def support_size(view: View, devices: Array) -> Finding[int]:
    """At most ``n + k − 1`` shares are positive (§4.4, Extreme Point Theorem).

    Witness: the number of positive shares. Margin: ``n + k − 1`` minus it.
    """
    size = int((devices > _support_tolerance(devices)).sum())
    bound = view.size + len(view.gpu_types) - 1
    return Finding("support ≤ n + k − 1", size <= bound, size, bound - size, f"{size} shares, bound {bound}")


def _support_tolerance(devices: Array) -> float:
    return TOLERANCE * float(devices.max(initial=0.0))


Direction = Literal["over", "under", "any"]

Worth = Callable[[View, Array], float]
"""Least ``Σ worth·x`` over all allocations between which the mechanism may choose on a view; `worth` is ``(v, k)``."""


def least_worth(model: str) -> Worth:
    """Return what tenants can count on under a model, whichever of its optima is taken."""
    from schedgap.models.oef.printed import least_over_optima

    return lambda view, worth: least_over_optima(model, view, worth)


@dataclass(frozen=True, eq=False)
class Misreport:
    """The ``(k,)`` speedups that a virtual tenant (a row) reports, and what its owner has from it.

    That is the efficiency over all its job types at true speedups: `honest` with the truth, `gained` with the report.
    """

    tenant: int
    report: Array
    honest: float
    gained: float

    @property
    def gain(self) -> float:
        """Relative gain."""
        return self.gained / self.honest - 1


def strategy_proof(
    mechanism: Mechanism,
    view: View,
    *,
    direction: Direction = "any",
    trials: int = 60,
    steps: int = 40,
    least: Worth | None = None,
) -> Finding[Misreport]:
    """Nobody gains by misreporting while the others tell the truth.

    This is a search: only its refutations are proofs. For every tenant it tries the others' speedups and random
    factors, then improves the best report by random steps of shrinking size. The truth is `view.true_speedups`.

    Witness: the best misreport found, also where it does not pay. Margin: minus its relative gain.

    Parameters
    ----------
    direction
        ``"over"``: no entry below the truth, the paper's definition (§2.3.1); ``"under"``: none above; ``"any"``. The
        slowest type is the unit, so its entry stays 1, and nothing is reported to be slower than both it and the truth.
    trials, steps
        Random reports and improvement steps, per tenant; each costs one call of the mechanism.
    least
        Where the mechanism takes one of several optima: what it gives at least (:func:`least_worth`). A report pays
        then only if it does so in every optimum, against the best one of the truth, so that no witness is a tie.
    """
    told, rng = truthful(view), np.random.default_rng(0)
    least = least or (lambda v, worth: float((worth * mechanism(v).devices).sum()))
    honest = [-least(told, -own_worth(view, tenant)) for tenant in range(view.size)]

    def tried(tenant: int, report: Array) -> Misreport:
        speedups, truth = told.speedups.copy(), view.true_speedups[tenant]
        # the nearest report in the direction: mirrored at the truth, then kept within reach
        if direction != "any":
            report = (np.maximum if direction == "over" else np.minimum)(report, truth**2 / report)
        report = np.maximum(np.clip(report, truth / REACH, truth * REACH), np.minimum(truth, 1.0))
        speedups[tenant, 0], speedups[tenant, 1:] = 1.0, report[1:]
        gained = least(replace(told, speedups=speedups), own_worth(view, tenant))
        return Misreport(tenant, speedups[tenant], honest[tenant], gained)

    found = []
    for tenant, truth in enumerate(view.true_speedups):
        factors = np.exp(rng.uniform(-1, 1, (trials, truth.size)) * np.log(REACH))
        reports = [*np.delete(view.true_speedups, tenant, axis=0), *(truth * factors)] or [truth]
        best = max((tried(tenant, report) for report in reports), key=lambda misreport: misreport.gained)
        for step in range(steps):
            size = np.log(REACH) * 0.5 ** (1 + 8 * step / steps)
            moved = best.report * np.exp(rng.normal(0, size, truth.size))
            best = max(best, tried(tenant, moved), key=lambda misreport: misreport.gained)
        found.append(best)
    best = max(found, key=lambda misreport: misreport.gain)
    text = f"{view.labels[best.tenant]} gains {best.gain:.2%} by reporting {np.round(best.report, 4).tolist()}"
    return Finding("strategy-proof", best.gain <= TOLERANCE, best, -best.gain, text)


def own_worth(view: View, row: int) -> Array:
    """Return what devices are worth to the owner of a virtual row, ``(v, k)``: true speedups in its rows, else 0."""
    return np.where((view.owner == view.owner[row])[:, None], view.true_speedups, 0.0)
