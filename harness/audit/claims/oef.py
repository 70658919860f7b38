"""OEF (Mo, Xu, Lau): Theorems 5.1 to 5.4, several job types, Table 1, support, slips around expressions (3) and (6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from schedgap.harness import fairness
from schedgap.harness.audit.lab import Lab, Printed, certified, recomputed, solved
from schedgap.harness.audit.row import Count, Witness, claim
from schedgap.harness.verify import TOLERANCE
from schedgap.heuristics.oef import gandiva_fair
from schedgap.instances import load
from schedgap.instances.arrays import Array
from schedgap.instances.canonical import validate
from schedgap.instances.random_instances.oef import draw, of_matrix
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import Allocation, View, view

ALONE, TOGETHER, TRADING = "oef.noncooperative", "oef.cooperative", "oef.gandiva_fair"

SKIPPING = ((1, 2, 6), (1, 4, 8))
"""Speedups with which non-cooperative OEF gives tenant 1 types 1 and 3 only; their ratios rank tenants differently."""

WASTING = ((1, 1.5, 2), (1, 2, 5), (1, 3, 8))
"""Speedups with which cooperative OEF leaves 1/15 that would hurt nobody."""

ORDERED = ((1, 1.5, 1.875, 2.34375), (1, 1.75, 2.625, 7.21875), (1, 2.75, 8.25, 24.75))
"""Speedups, on 3, 2, 1 and 1 devices, with which cooperative OEF gives tenant 2 types 2 and 4 only, although their
ratios rank the tenants alike."""

WASTING_TWO = ((1, 1.3), (1, 2.5), (1, 2.6), (1, 3.9))
"""Speedups on two devices of each of two types with which cooperative OEF leaves 0.024 that would hurt nobody."""

UNTRADED = ((1, 1.5, 6), (1, 2, 4), (1, 3, 10.5))
"""Speedups on 2, 2 and 1 devices with which trading pairs of types leaves 0.5 that would hurt nobody."""

SEVERAL = ((1, 1.1), (1, 10), (1, 10))
"""Speedups of which the first two are the job types of one tenant."""

TEMPTING = ((1, 2), (1, 5))
"""Expression (6)."""


def ones(speedups: tuple[tuple[float, ...], ...]) -> Instance:
    """Return tenants with these speedups and one device of every type."""
    return of_matrix(speedups, [1] * len(speedups[0]))


def devices(method: str, v: View) -> Array:
    """Return the optimal devices, or those after Gandiva_fair's trades."""
    return gandiva_fair.shares(v) if method == TRADING else np.asarray(solved(method, v).decision.devices)


def several(speedups: ArrayLike, capacity: list[int], reported: ArrayLike | None = None) -> Instance:
    """Return the same tenants, but the first two rows are the job types of one."""
    parts = of_matrix(speedups, capacity, reported).model_dump(mode="json", exclude_defaults=True)
    first, second, *others = parts["tenants"]
    kinds = [{**t["job_types"][0], "name": name} for t, name in ((first, "a"), (second, "b"))]
    return validate({**parts, "tenants": [{**first, "job_types": kinds}, *others]}, "several")


def tried(
    instances: Iterable[Instance],
    method: str,
    judge: Callable[[View, Array], fairness.Finding[Any]],
    counts: Sequence[Count],
) -> list[str]:
    """Count on which instances the judge finds what a method decides to be as it should; return what it says."""
    told = []
    for instance in instances:
        v = view(instance)
        found = judge(v, devices(method, v))
        told.append(found.text)
        for count in counts:
            count.add(bool(found), instance, [method], found.text)
    return told


DRAWN = "random ones of up to 4 tenants and 4 types"


@claim(
    "oef.theorem-5.1",
    "Theorem 5.1",
    how="both properties by exact checkers; efficiency against the LP with all n(n−1) rows",
)
def theorem_5_1(lab: Lab) -> str:
    """Cooperative OEF is envy-free and sharing-incentive, and no envy-free allocation is more efficient."""
    for instance in (*map(ones, (SKIPPING, WASTING, TEMPTING)), *lab.drawn(draw, 150)):
        v = view(instance)
        x = devices(TOGETHER, v)
        envy, incentive = fairness.envy_free(v, x), fairness.sharing_incentive(v, x)
        full = solved(f"{TOGETHER}.full", v).solution.objective
        best = fairness.optimal_efficiency(v, x, full)
        shown = "; ".join(f.text for f in (envy, incentive, best) if not f)
        lab.add(bool(envy and incentive and best), instance, [TOGETHER, f"{TOGETHER}.full"], shown)
    return f"violated on {lab} instances ({DRAWN}, three by hand)"


@claim(
    "oef.theorem-5.2",
    "Theorem 5.2",
    scope="cooperative and non-cooperative OEF",
    how="types of the vertex that the simplex method finds",
)
def theorem_5_2(lab: Lab) -> str:
    """Every tenant gets types that are neighbours in speed."""
    narrower = "{} OEF where speedup ratios rank all tenants alike"
    alone, together = (lab.within(narrower.format(kind)) for kind in ("non-cooperative", "cooperative"))
    ordered = [of_matrix(ORDERED, [3, 2, 1, 1]), *lab.drawn(draw, 150, "ordered", ordered=True)]
    for i, instance in enumerate((*ordered, ones(SKIPPING), *lab.drawn(draw, 60))):
        v = view(instance)
        for method, narrow in ((ALONE, alone), (TOGETHER, together)):
            found = fairness.adjacent(v, devices(method, v))
            who = "; ".join(f"{tenant} has {', '.join(types)} only" for tenant, types in found.witness.items())
            lab.add(bool(found), instance, [method], f"{method}: {who}")
            if i < len(ordered):
                narrow.add(bool(found), instance, [method])
    text = f"fails in {lab} allocations; where the ratios of neighbouring types rank all tenants alike"
    return f"{text}, in {alone} non-cooperative and in {together} cooperative ones"


@claim(
    "oef.theorem-5.3.noncooperative",
    "Theorem 5.3",
    scope="non-cooperative OEF",
    how="as oef.theorem-5.3.cooperative",
    text="Non-cooperative OEF is Pareto-efficient.",
    method=ALONE,
)
@claim(
    "oef.theorem-5.3.cooperative",
    "Theorem 5.3",
    scope="cooperative OEF, all allocations",
    how="an LP for the largest gain in total efficiency that hurts nobody",
    text="Cooperative OEF is Pareto-efficient.",
    method=TOGETHER,
)
@claim("oef.gandiva-pareto", "section 2.4", how="as oef.theorem-5.3.cooperative", method=TRADING)
def pareto(lab: Lab, method: str) -> str:
    """Gandiva_fair is Pareto-efficient."""
    two = lab.within("two GPU types")
    by_hand = (ones(WASTING), of_matrix(WASTING_TWO, [2, 2]), of_matrix(UNTRADED, [2, 2, 1]))
    examples = []
    for one in (*by_hand, *lab.drawn(draw, 100)):
        counts = [lab, two] if view(one).capacity.size == 2 else [lab]
        examples += tried([one], method, fairness.pareto_efficient, counts)
    text = (
        f"W = ⟨1,1.5,2; 1,2,5; 1,3,8⟩, m = 1: {examples[0]}; ⟨1,1.3; 1,2.5; 1,2.6; 1,3.9⟩, m = 2: {examples[1]}; "
        f"⟨1,1.5,6; 1,2,4; 1,3,10.5⟩, m = (2,2,1): {examples[2]}; fails on {lab} instances"
    )
    return f"{text} ({DRAWN})"


@claim(
    "oef.theorem-5.4",
    "Theorem 5.4",
    scope="over- and under-reports; the definition in section 2.3.1 speaks of inflated ones",
    how="random reports of one tenant, above and below the truth, while the others are honest; over all optima",
)
def theorem_5_4(lab: Lab) -> str:
    """Under non-cooperative OEF nobody gains by misreporting speedups."""
    over = lab.within("over-reports")
    rng = lab.rng("reports")
    example = most = _lie(lab, ones(TEMPTING), 1, np.array([1.0, 3.0]))
    for instance in lab.drawn(draw, 150):
        v = view(instance)
        who = int(rng.integers(v.size))
        for above in (True, False):
            factor = np.exp(rng.uniform(0, np.log(4), v.capacity.size))
            truth = v.true_speedups[who]
            report = truth * factor if above else np.maximum(truth / factor, 1.0)
            report[0] = 1.0
            most = max(most, _lie(lab, instance, who, report, over if above else None))
    lab.numbers = {"largest_gain": most}
    under = Count("under-reports", lab.tested - over.tested, lab.failed - over.failed)
    text = f"W = ⟨1,2; 1,5⟩, m = (1,1): u2 reports ⟨1,3⟩ and gains {example:.0%}"
    return f"{text}; under-reports gain in {under}, by up to {most:.0%}, over-reports in {over}"


def _lie(count: Count, instance: Instance, who: int, report: Array, also: Count | None = None) -> float:
    """Count whether a report pays; returns what the tenant gains, relative to the truth."""
    v = view(instance)
    told = v.true_speedups.copy()
    told[who] = report
    # What the lie earns in the worst of its optima against the truth in its best: no gain is a tie.
    least, worth = fairness.least_worth(ALONE), fairness.own_worth(v, who)
    honest, lied = -least(v, -worth), least(replace(v, speedups=told), worth)
    holds = lied <= honest * (1 + TOLERANCE)
    said = np.round(report, 4).tolist()
    shown = f"{v.labels[who]} reports {said}: {lied:.4g} at its true speedups, {honest:.4g} honest"
    made = several if v.size > len(v.tenants) else of_matrix
    count.add(holds, made(v.true_speedups, [int(m) for m in v.capacity], told), [ALONE], shown)
    if also is not None:
        also.add(holds)
    return lied / honest - 1


@claim(
    "oef.multi.strategy-proof",
    "Theorem 5.4, section 4.2.4",
    scope="tenants with two job types, over-reports, throughput of both together",
    how="over-reports of one job type, while all else is honest; over all optima",
)
def multi_strategy_proof(lab: Lab) -> str:
    """Under non-cooperative OEF a tenant with several job types does not gain by inflating the speedups of one."""
    rng = lab.rng("reports")
    example = _lie(lab, several(SEVERAL, [1, 1]), 0, np.array([1.0, 9.0]))
    for one in lab.drawn(draw, 60):
        v = view(one)
        if v.size > 2:
            factor = np.exp(rng.uniform(0, np.log(4), v.capacity.size))
            report = np.r_[1.0, (v.true_speedups[0] * factor)[1:]]
            _lie(lab, several(v.true_speedups, [int(m) for m in v.capacity]), 0, report)
    text = f"a tenant with ⟨1,1.1⟩ and ⟨1,10⟩ reports ⟨1,9⟩ for the former and gains {example:.0%} beside ⟨1,10⟩"
    return f"{text}, m = (1,1); over-reports gain in {lab} cases"


@claim(
    "oef.multi.properties",
    "section 4.2.3",
    scope="cooperative OEF, whole tenants, who use any bundle as well as they can",
    how="envy-freeness and sharing incentive by exact checkers, for tenants and for virtual rows",
)
def multi_properties(lab: Lab) -> str:
    """Replication maintains all the fairness properties of OEF perfectly, also where a user runs several DL jobs."""
    rows = lab.within("virtual tenants of one job type")
    made = (
        several(v.true_speedups, [int(m) for m in v.capacity]) for v in map(view, lab.drawn(draw, 60)) if v.size > 2
    )
    for instance in (several(SEVERAL, [1, 1]), *made):
        v = view(instance)
        x = devices(TOGETHER, v)
        for count, (seen, bundle) in ((rows, (v, x)), (lab, fairness.whole_tenants(v, x))):
            found = fairness.envy_free(seen, bundle), fairness.sharing_incentive(seen, bundle)
            count.add(all(found), instance, [TOGETHER], "; ".join(f.text for f in found if not f))
    text = f"whole tenants envy or have less than an equal split in {lab} cases"
    return f"{text}, virtual rows in {rows.failed}"


PROPERTIES: dict[str, tuple[str, Callable[[str, View, Array], fairness.Finding[Any]]]] = {
    "PE": ("Pareto-efficient", lambda method, v, x: fairness.pareto_efficient(v, x)),
    "EF": ("envy-free", lambda method, v, x: fairness.envy_free(v, x)),
    "SI": ("sharing-incentive", lambda method, v, x: fairness.sharing_incentive(v, x)),
    "SP": (  # over-reports, the paper's definition
        "strategy-proof",
        lambda method, v, x: fairness.strategy_proof(
            lambda seen: Allocation(devices(method, seen)), v, direction="over", trials=2, steps=1
        ),
    ),
    "efficiency": (  # the largest total at which nobody has less than an equal split is what all three promise
        "of the optimal efficiency that the sharing incentive allows",
        lambda method, v, x: fairness.optimal_efficiency(v, x, solved("oef.sharing_incentive", v).solution.objective),
    ),
}
"""Columns of Table 1: in words, and how an allocation is judged."""

TABLE_1 = {
    "Gavel": (("oef.gavel", "oef.gavel?row_cap=true"), {"SI"}),
    "Gandiva_fair": ((TRADING,), {"PE", "SI"}),
    "OEF": ((TOGETHER, ALONE), set(PROPERTIES)),
}
"""Rows of Table 1 with what they guarantee. The marks themselves are pictures; sections 2.4 and 5 say the same."""

ENVIRONMENT = {"EF": (TOGETHER,), "SI": (TOGETHER,), "SP": (ALONE,), "efficiency": (TOGETHER,)}
"""In which of its environments OEF promises what; Pareto efficiency in both."""


def table_1(lab: Lab, *, methods: tuple[str, ...], column: str, promised: bool) -> str:
    """Try one cell: a promise on random tenants; that there is none, by a counterexample to each method."""
    lines = []
    by_hand = (load("paper/oef-eq1"), load("paper/oef-eq6"), ones(WASTING), of_matrix(UNTRADED, [2, 2, 1]))
    drawn = (*by_hand, *lab.drawn(draw, 2 if column == "SP" else 15))
    for method in methods:
        shown = Count(method)
        own = lab.within(method) if len(methods) > 1 else Count()
        tried(drawn, method, partial(PROPERTIES[column][1], method), [shown, *((own, lab) if promised else ())])
        if not promised:
            own.add(shown.failed > 0)
            lab.add(shown.failed > 0)
        lines.append(f"{method} fails in {shown} cases")
    lab.also = [shown.witness] if shown.witness and not promised else ()
    return "; ".join(lines)


for _row, (_methods, _promises) in TABLE_1.items():
    for _column, (_words, _) in PROPERTIES.items():
        _promised = _column in _promises
        claim(
            f"oef.table-1.{_row.lower()}.{_column.lower()}",
            "Table 1",
            text=f"{_row} is {'' if _promised else 'not always '}{_words}.",
            scope="over-reports" if _column == "SP" else "the environment that promises it",
            how="exact checkers on (1), (6), two more by hand and random tenants",
            methods=ENVIRONMENT.get(_column, _methods) if _row == "OEF" else _methods,
            column=_column,
            promised=_promised,
        )(table_1)


@claim(
    "oef.support",
    "section 4.4",
    scope="cooperative and non-cooperative OEF",
    how="positive shares of the vertex that the simplex method finds",
)
def support(lab: Lab) -> str:
    """At most n + k − 1 shares are positive (Extreme Point Theorem)."""
    alone = lab.within("non-cooperative OEF")
    drawn = (ones(WASTING), *lab.drawn(draw, 120))
    for method, counts in ((ALONE, [lab, alone]), (TOGETHER, [lab])):
        tried(drawn, method, fairness.support_size, counts)
    text = f"exceeded in {alone} non-cooperative and {lab.failed} of as many cooperative"
    return f"{text} allocations ({DRAWN})"


@claim(
    "oef.slip.gavel-total",
    "section 2.4, after (3)",
    how="both exactly, Gavel with and without at most one device per tenant",
)
def slip_gavel(lab: Lab) -> str:
    """Gavel's total efficiency on (1) is even lower than that of Gandiva_fair."""
    instance = load("paper/oef-eq1")
    names = ("oef.gavel?row_cap=true", "oef.gavel", "oef.gandiva_fair")
    rows = certified(instance, names)
    total = {name: rows[name].objective or 0.0 for name in names}
    shown = ", ".join(f"{name} {value:.4f}" for name, value in total.items())
    for name in names[:2]:
        lab.add(total[name] < total["oef.gandiva_fair"], instance, names, shown)
    lab.numbers = total
    return shown


@claim(
    "oef.slip.8-percent",
    "section 3.1.1, after (6)",
    how="the cooperative optimum of (6) with the truth and with the lie, at true speedups",
)
def slip_drop(lab: Lab) -> str:
    """When u1 reports 4 for 2, the total efficiency drops by 8 %."""
    honest, lie = load("paper/oef-eq6"), load("paper/oef-eq6-lie")
    first, second = (certified(one, [TOGETHER])[TOGETHER].metrics["true_total"] for one in (honest, lie))
    drop = 100 * (1 - float(second or 0.0) / float(first or 1.0))
    shown = f"true_total {second:.6g} instead of {first:.6g}: {drop:.2f} % less"
    lab.also = [Witness(lie, (TOGETHER,), shown)]
    return recomputed(lab, Printed("per cent", 8, drop, 0.5))


@claim(
    "oef.slip.coefficient",
    "section 3.1.1, after (6)",
    how="the coefficient with which an equal split gives the printed right-hand side",
)
def slip_coefficient(lab: Lab) -> str:
    """Sharing incentive on (6) asks for x_2^1 + 4·x_2^2 ≥ 3."""
    instance = load("paper/oef-eq6")
    lab.also = [Witness(instance, ("oef.maxmin",), f"u2's speedup is {view(instance).speedups[1, 1]:g}")]
    return recomputed(lab, Printed("coefficient of x_2^2", 4, (3 - 0.5) / 0.5, 0.0))


@claim(
    "oef.slip.0.0495", "section 2.4, after (3)", how="what u2 has in (3) and what u1 gives away: 0.45 + (0.09 − 0.045)"
)
def slip_trade(lab: Lab) -> str:
    """By trading with u1, u2 comes to 0.0495 of GPU2."""
    return recomputed(lab, Printed("u2's share of GPU2", 0.0495, 0.45 + (0.09 - 0.045), 0.00005))
