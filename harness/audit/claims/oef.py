"""OEF (Mo, Xu, Lau): Theorems 5.1 to 5.4, the support of allocations, and slips around expressions (3) and (6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness import fairness
from harness.audit.arithmetic import Printed, recomputed
from harness.audit.lab import Lab, certified, solved
from harness.audit.registry import Count, Evidence, Witness, claim
from harness.verify import TOLERANCE
from instances import load
from instances.schema import Instance
from instances.small.oef import drawn, of_matrix
from instances.views.oef import View, efficiency, view

Array = NDArray[np.float64]

ALONE, TOGETHER = "oef.noncooperative", "oef.cooperative"

SKIPPING = ((1, 2, 6), (1, 4, 8))
"""Speedups with which non-cooperative OEF gives tenant 1 types 1 and 3 only; their ratios rank tenants differently."""

WASTING = ((1, 1.5, 2), (1, 2, 5), (1, 3, 8))
"""Speedups with which cooperative OEF leaves 1/15 that would hurt nobody."""

ORDERED = ((1, 1.5, 1.875, 2.34375), (1, 1.75, 2.625, 7.21875), (1, 2.75, 8.25, 24.75))
"""Speedups, on 3, 2, 1 and 1 devices, with which cooperative OEF gives tenant 2 types 2 and 4 only, although their
ratios rank the tenants alike."""

TEMPTING = ((1, 2), (1, 5))
"""Expression (6)."""


def some(lab: Lab, usual: int, *, ordered: bool = False, name: str = "") -> Iterator[Instance]:
    """Yield random tenants; `ordered`: the ratios of neighbouring types rank all tenants alike."""
    rng = lab.rng(name)
    for _ in range(lab.times(usual)):
        yield drawn(rng, ordered=ordered)


def ones(speedups: tuple[tuple[float, ...], ...]) -> Instance:
    """Return tenants with these speedups and one device of every type."""
    return of_matrix(speedups, [1] * len(speedups[0]))


def devices(method: str, v: View) -> Array:
    """Return the optimal devices."""
    return np.asarray(solved(method, v).decision.devices)


DRAWN = "random ones of up to 4 tenants and 4 types"


@claim(
    "oef.theorem-5.1",
    "Theorem 5.1",
    "Cooperative OEF is envy-free and sharing-incentive, and no envy-free allocation is more efficient.",
    how="both properties by exact checkers; efficiency against the LP with all n(n−1) rows",
)
def theorem_5_1(lab: Lab) -> Evidence:
    """Check the properties."""
    count = Count()
    for instance in (*map(ones, (SKIPPING, WASTING, TEMPTING)), *some(lab, 150)):
        v = view(instance)
        x = devices(TOGETHER, v)
        envy, incentive = fairness.envy_free(v, x), fairness.sharing_incentive(v, x)
        full = solved(f"{TOGETHER}.full", v).solution.objective
        best = fairness.optimal_efficiency(v, x, full)
        shown = "; ".join(f.text for f in (envy, incentive, best) if not f)
        count.add(bool(envy and incentive and best), instance, [TOGETHER, f"{TOGETHER}.full"], shown)
    return count.evidence(f"violated on {count.failed} of {count.tested} instances ({DRAWN}, three by hand)")


@claim(
    "oef.theorem-5.2",
    "Theorem 5.2",
    "Every tenant gets types that are neighbours in speed.",
    scope="cooperative and non-cooperative OEF",
    how="types of the vertex that the simplex method finds",
)
def theorem_5_2(lab: Lab) -> Evidence:
    """Look for tenants who skip a type."""
    stated = Count()
    scopes = {
        ALONE: Count("non-cooperative OEF where speedup ratios rank all tenants alike"),
        TOGETHER: Count("cooperative OEF where speedup ratios rank all tenants alike"),
    }
    for ordered, instances in (
        (False, (ones(SKIPPING), *some(lab, 60))),
        (True, (of_matrix(ORDERED, [3, 2, 1, 1]), *some(lab, 150, ordered=True, name="ordered"))),
    ):
        for instance in instances:
            v = view(instance)
            for method, narrow in scopes.items():
                found = fairness.adjacent(v, devices(method, v))
                who = "; ".join(f"{tenant} has {', '.join(types)} only" for tenant, types in found.witness.items())
                stated.add(bool(found), instance, [method], f"{method}: {who}")
                if ordered:
                    narrow.add(bool(found), instance, [method])
    alone, together = scopes.values()
    text = (
        f"fails in {stated.failed} of {stated.tested} allocations; where the ratios of neighbouring types rank all "
        f"tenants alike, in {alone.failed} of {alone.tested} non-cooperative and in {together.failed} of "
        f"{together.tested} cooperative ones"
    )
    return stated.evidence(text, *scopes.values())


def _pareto(lab: Lab, method: str, usual: int) -> Evidence:
    count, example = Count(), ""
    for instance in (ones(WASTING), *some(lab, usual)):
        v = view(instance)
        found = fairness.pareto_efficient(v, devices(method, v))
        example = example or found.text
        count.add(bool(found), instance, [method], found.text)
    text = f"W = ⟨1,1.5,2; 1,2,5; 1,3,8⟩, m = 1: {example}; fails on {count.failed} of {count.tested} instances"
    return count.evidence(f"{text} ({DRAWN})")


@claim(
    "oef.theorem-5.3.cooperative",
    "Theorem 5.3",
    "Cooperative OEF is Pareto-efficient.",
    scope="cooperative OEF, all allocations",
    how="an LP for the largest gain in total efficiency that hurts nobody",
)
def theorem_5_3_cooperative(lab: Lab) -> Evidence:
    """Look for gains that hurt nobody."""
    return _pareto(lab, TOGETHER, 100)


@claim(
    "oef.theorem-5.3.noncooperative",
    "Theorem 5.3",
    "Non-cooperative OEF is Pareto-efficient.",
    scope="non-cooperative OEF",
    how="as oef.theorem-5.3.cooperative",
)
def theorem_5_3_noncooperative(lab: Lab) -> Evidence:
    """Look for gains that hurt nobody."""
    return _pareto(lab, ALONE, 100)


@claim(
    "oef.theorem-5.4",
    "Theorem 5.4",
    "Under non-cooperative OEF nobody gains by misreporting speedups.",
    scope="over- and under-reports; the definition in section 2.3.1 speaks of inflated ones",
    how="random reports of one tenant, above and below the truth, while the others are honest",
)
def theorem_5_4(lab: Lab) -> Evidence:
    """Let tenant after tenant misreport."""
    stated, over = Count(), Count("over-reports")
    most, rng = 0.0, lab.rng("reports")
    example = _lie(stated, ones(TEMPTING), 1, np.array([1.0, 3.0]))
    for instance in some(lab, 150):
        v = view(instance)
        who = int(rng.integers(v.size))
        for above in (True, False):
            factor = np.exp(rng.uniform(0, np.log(4), v.capacity.size))
            truth = v.true_speedups[who]
            report = truth * factor if above else np.maximum(truth / factor, 1.0)
            report[0] = 1.0
            gain = _lie(stated, instance, who, report, over if above else None)
            most = max(most, gain)
    under = stated.tested - over.tested
    text = (
        f"W = ⟨1,2; 1,5⟩, m = (1,1): u2 reports ⟨1,3⟩ and gains {example:.0%}; under-reports gain in "
        f"{stated.failed - over.failed} of {under}, by up to {max(most, example):.0%}, over-reports in {over.failed} "
        f"of {over.tested}"
    )
    return stated.evidence(text, over, numbers={"largest_gain": max(most, example)})


def _lie(count: Count, instance: Instance, who: int, report: Array, also: Count | None = None) -> float:
    """Count whether a report pays; returns what the tenant gains, relative to the truth."""
    v = view(instance)
    told = v.true_speedups.copy()
    told[who] = report
    honest = float(efficiency(v.true_speedups, devices(ALONE, v))[who])
    lied = float(efficiency(v.true_speedups, devices(ALONE, replace(v, speedups=told)))[who])
    holds = lied <= honest * (1 + TOLERANCE)
    shown = (
        f"{v.labels[who]} reports {np.round(report, 4).tolist()}: {lied:.4g} at its true speedups, {honest:.4g} honest"
    )
    count.add(holds, of_matrix(v.true_speedups, v.capacity.tolist(), told), [ALONE], shown)
    if also is not None:
        also.add(holds)
    return lied / honest - 1


@claim(
    "oef.support",
    "section 4.4",
    "At most n + k − 1 shares are positive (Extreme Point Theorem).",
    scope="cooperative and non-cooperative OEF",
    how="positive shares of the vertex that the simplex method finds",
)
def support(lab: Lab) -> Evidence:
    """Count positive shares."""
    stated, alone = Count(), Count("non-cooperative OEF")
    for instance in (ones(WASTING), *some(lab, 120)):
        v = view(instance)
        for method in (ALONE, TOGETHER):
            found = fairness.support_size(v, devices(method, v))
            stated.add(bool(found), instance, [method], f"{method}: {found.text}")
            if method == ALONE:
                alone.add(bool(found))
    text = f"exceeded in {alone.failed} of {alone.tested} non-cooperative and {stated.failed} of as many cooperative"
    return stated.evidence(f"{text} allocations ({DRAWN})", alone)


@claim(
    "oef.slip.gavel-total",
    "section 2.4, after (3)",
    "Gavel's total efficiency on (1) is even lower than that of Gandiva_fair.",
    how="both exactly, Gavel with and without at most one device per tenant",
)
def slip_gavel(lab: Lab) -> Evidence:
    """Compare the totals."""
    instance, count = load("paper/oef-eq1"), Count()
    names = ("oef.gavel?row_cap=true", "oef.gavel", "oef.gandiva_fair")
    rows = certified(instance, names)
    total = {name: rows[name].objective or 0.0 for name in names}
    shown = ", ".join(f"{name} {value:.4f}" for name, value in total.items())
    for name in names[:2]:
        count.add(total[name] < total["oef.gandiva_fair"], instance, names, shown)
    return count.evidence(shown, numbers=total)


@claim(
    "oef.slip.8-percent",
    "section 3.1.1, after (6)",
    "When u1 reports 4 for 2, the total efficiency drops by 8 %.",
    how="the cooperative optimum of (6) with the truth and with the lie, at true speedups",
)
def slip_drop(lab: Lab) -> Evidence:
    """Compare the totals."""
    honest, lie = load("paper/oef-eq6"), load("paper/oef-eq6-lie")
    first, second = (certified(one, [TOGETHER])[TOGETHER].metrics["true_total"] for one in (honest, lie))
    drop = 100 * (1 - float(second or 0.0) / float(first or 1.0))
    shown = f"true_total {second:.6g} instead of {first:.6g}: {drop:.2f} % less"
    return recomputed([Printed("per cent", 8, drop, 0.5)], witnesses=[Witness(lie, (TOGETHER,), shown)])


@claim(
    "oef.slip.coefficient",
    "section 3.1.1, after (6)",
    "Sharing incentive on (6) asks for x_2^1 + 4·x_2^2 ≥ 3.",
    how="the coefficient with which an equal split gives the printed right-hand side",
)
def slip_coefficient(lab: Lab) -> Evidence:
    """Solve ``0.5 + 0.5·c = 3``."""
    instance = load("paper/oef-eq6")
    made = (3 - 0.5) / 0.5
    shown = f"u2's speedup is {view(instance).speedups[1, 1]:g}"
    return recomputed(
        [Printed("coefficient of x_2^2", 4, made, 0.0)], witnesses=[Witness(instance, ("oef.maxmin",), shown)]
    )


@claim(
    "oef.slip.0.0495",
    "section 2.4, after (3)",
    "By trading with u1, u2 comes to 0.0495 of GPU2.",
    how="what u2 has in (3) and what u1 gives away: 0.45 + (0.09 − 0.045)",
)
def slip_trade(lab: Lab) -> Evidence:
    """Add up."""
    return recomputed([Printed("u2's share of GPU2", 0.0495, 0.45 + (0.09 - 0.045), 0.00005)])
