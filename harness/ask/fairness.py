"""Exact checkers of the fairness properties of OEF (§2.3.1, §5), each with a witness.

Envy-freeness, equal efficiency and sharing incentive are rules of :mod:`schedgap.certificates.fairness`, which the
checker of decisions applies, too.

Envy, sharing incentive, Pareto efficiency and optimal efficiency are checked at the speedups a view *reports*, since a
mechanism knows only these and can promise no more. To judge what tenants who misreport really get, check
``truthful(view)``. Strategy-proofness is about the truth: misreports are tried as reports, and gains are measured at
true speedups.

Rows are virtual tenants with their weights, as in the models: a tenant of weight π counts as π tenants of weight 1. To
judge tenants with several job types as a whole, use :func:`whole_tenants`: a property that holds between their virtual
rows need not hold between the tenants. Quantities are compared with the relative tolerance :data:`TOLERANCE`,
and those of the rules with the smaller one of decisions (:data:`schedgap.certificates.fairness.TOLERANCE`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from schedgap.certificates.fairness import PropertyCheck, envy_free, equal_efficiency, sharing_incentive
from schedgap.harness.ask.mechanisms import Mechanism, in_fractions
from schedgap.harness.ask.mechanisms import mechanism as registered
from schedgap.harness.check import TOLERANCE
from schedgap.harness.show.text import number
from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import OefView, efficiency, whole
from schedgap.models.engine.solve.exact import Exact

__all__ = [
    "REACH", "TOLERANCE", "Direction", "Misreport", "PropertyCheck", "adjacent", "envy_free",
    "equal_efficiency", "optimal_efficiency", "own_worth", "pareto_efficient", "sharing_incentive",
    "strategy_proof", "support_size", "truthful", "whole_tenants",
]  # fmt: skip

REACH = 4.0
"""Largest factor, up or down, between a misreport and the truth."""


def truthful(view: OefView) -> OefView:
    """Return the view in which every tenant reports its true speedups."""
    return replace(view, speedups=view.true_speedups)


def whole_tenants(view: OefView, devices: Array) -> tuple[OefView, Array]:
    """Return a view with one row per real tenant, and each tenant's devices, as input for the other checkers.

    A tenant makes the best use of any bundle, its own or another's: it values devices of a type at its largest speedup
    on them. This judges a mechanism leniently, since it counts what a tenant could do with its devices.
    """
    seen, _ = whole(view)
    bundle = np.zeros(seen.speedups.shape)
    np.add.at(bundle, view.owner, devices)
    return seen, bundle


def pareto_efficient(view: OefView, devices: Array) -> PropertyCheck[Array]:
    """Check that no other allocation gives some tenant more and no tenant less.

    Witness: the ``(v, k)`` allocation of the largest total that hurts nobody. Margin: minus its gain in total.
    """
    from schedgap.models.oef.printed import pareto_gain

    gain, better = pareto_gain(view, devices)
    total = float(efficiency(view.speedups, devices).sum())
    holds = gain <= TOLERANCE * total
    text = "nobody can gain" if holds else f"the total can grow by {gain:.4g}"
    return PropertyCheck("Pareto-efficient", holds, better, -gain, f"{text} without hurting anybody")


def optimal_efficiency(view: OefView, devices: Array, best: float | None = None) -> PropertyCheck[float]:
    """Check that the total efficiency reaches `best`, an optimum under fairness rules, or the optimum without rules.

    Without fairness rules, each type goes to the tenant with the largest speedup on it.

    Witness: the largest total. Margin: the total divided by it, minus 1.
    """
    most = float(view.capacity @ view.speedups.max(axis=0)) if best is None else best
    total = float(efficiency(view.speedups, devices).sum())
    short = total / most - 1
    text = f"total {total:.6g} of at most {number(most, 6, 'at most')}"
    return PropertyCheck("optimal efficiency", short >= -TOLERANCE, most, short, text)


def adjacent(view: OefView, devices: Array) -> PropertyCheck[dict[str, tuple[str, ...]]]:
    """Check that each tenant's types are adjacent in speed (Theorem 5.2).

    Witness: the types of each tenant that skips one, by label. Margin: minus the number of such tenants.
    """
    used = [np.flatnonzero(row) for row in devices > _support_tolerance(devices)]
    skipping = [l for l, types in enumerate(used) if types.size and np.ptp(types) >= types.size]
    gaps = {view.labels[l]: tuple(view.gpu_types[j] for j in used[l]) for l in skipping}
    text = f"{len(gaps)} of {view.size} skip a type"
    return PropertyCheck("adjacent types", not gaps, gaps, -float(len(gaps)), text)


def support_size(view: OefView, devices: Array) -> PropertyCheck[int]:
    """Check that at most ``n + k − 1`` shares are positive (§4.4, Extreme Point Theorem).

    Witness: the number of positive shares. Margin: ``n + k − 1`` minus it.
    """
    size = int((devices > _support_tolerance(devices)).sum())
    bound = view.size + len(view.gpu_types) - 1
    return PropertyCheck("support ≤ n + k − 1", size <= bound, size, bound - size, f"{size} shares, bound {bound}")


def _support_tolerance(devices: Array) -> float:
    return TOLERANCE * float(devices.max(initial=0.0))


Direction = Literal["over", "under", "any"]


@dataclass(frozen=True, eq=False)
class Misreport:
    """The ``(k,)`` speedups that a virtual tenant (a row) reports, and its owner's efficiency with and without the lie.

    Efficiencies cover all the owner's job types at true speedups: `honest` with the truth, `gained` with the report.
    """

    tenant: int
    report: Array
    honest: float
    gained: float

    @property
    def gain(self) -> float:
        """Relative gain of the misreport."""
        return self.gained / self.honest - 1


def strategy_proof(
    mechanism: str | Mechanism, view: OefView, *, direction: Direction = "any", trials: int = 60, steps: int = 40
) -> PropertyCheck[Misreport]:
    """Search for a tenant that gains by misreporting while the others tell the truth.

    Only refutations are proofs. For every tenant the search tries the others' speedups and random factors, then
    improves the best report by random steps of shrinking size. The truth is `view.true_speedups`. A report pays only if
    it does so whichever allocation the mechanism chooses, compared with the best one for the truth: no gain is a tie.

    Witness: the best misreport found, even if it does not pay. Margin: minus its relative gain.

    Parameters
    ----------
    mechanism
        Id of a registered method (``oef.cooperative``), or a function of a view
        (:data:`schedgap.harness.ask.mechanisms.Mechanism`).
    view
        The instance.
    direction
        ``"over"``: no entry below the truth, the paper's definition (§2.3.1); ``"under"``: none above; ``"any"``. The
        slowest type is the unit, so its entry stays 1, and no entry is below both 1 and the truth.
    trials, steps
        Random reports and improvement steps, per tenant; each costs one call of the mechanism.
    """
    run = registered(mechanism) if isinstance(mechanism, str) else mechanism
    honest_view, rng = truthful(view), np.random.default_rng(0)
    before = run(honest_view)
    honest = [float(before.most(own_worth(view, tenant))) for tenant in range(view.size)]

    def misreport(tenant: int, report: Array) -> Misreport:
        speedups = honest_view.speedups.copy()
        speedups[tenant, 1:] = _allowed(report, view.true_speedups[tenant], direction)[1:]
        after = run(replace(honest_view, speedups=speedups))
        return Misreport(tenant, speedups[tenant], honest[tenant], float(after.least(own_worth(view, tenant))))

    candidates = []
    for tenant, truth in enumerate(view.true_speedups):
        factors = np.exp(rng.uniform(-1, 1, (trials, truth.size)) * np.log(REACH))
        reports = [*np.delete(view.true_speedups, tenant, axis=0), *(truth * factors)] or [truth]
        best = max((misreport(tenant, report) for report in reports), key=lambda m: m.gained)
        for step in range(steps):
            size = np.log(REACH) * 0.5 ** (1 + 8 * step / steps)
            moved = best.report * np.exp(rng.normal(0, size, truth.size))
            best = max(best, misreport(tenant, moved), key=lambda m: m.gained)
        candidates.append(best)
    best = max(candidates, key=lambda m: m.gain)
    text = f"{view.labels[best.tenant]} gains {best.gain:.2%} by reporting {np.round(best.report, 4).tolist()}"
    return PropertyCheck("strategy-proof", best.gain <= TOLERANCE, best, -best.gain, text)


def _allowed(report: Array, truth: Array, direction: Direction) -> Array:
    """Return the nearest report in the direction: mirrored at the truth, with three decimals, within :data:`REACH`."""
    least, most = truth / REACH, truth * REACH
    if direction != "any":
        report = (np.maximum if direction == "over" else np.minimum)(report, truth**2 / report)
        least, most = (truth, most) if direction == "over" else (least, truth)
    return np.maximum(np.clip(np.round(report, 3), least, most), np.minimum(truth, 1.0))


def own_worth(view: OefView, row: int) -> Exact:
    """Return the ``(v, k)`` worth of devices to the owner of a virtual row: true speedups in its rows, else 0."""
    return in_fractions(np.where((view.owner == view.owner[row])[:, None], view.true_speedups, 0.0))
