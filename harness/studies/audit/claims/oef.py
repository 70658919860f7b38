"""OEF (Mo, Xu, Lau): Lemma 3.1, Theorems 3.2 to 5.4, job types, Table 1, support, slips around (3) and (6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from schedgap.harness.ask import fairness
from schedgap.harness.ask.mechanisms import mechanism
from schedgap.harness.ask.properties import PROPERTIES, cases
from schedgap.harness.ask.situations import Situation
from schedgap.harness.check import TOLERANCE
from schedgap.harness.show.text import number, rounded
from schedgap.harness.studies.audit.lab import ClaimLab, Printed, certified, recomputed, solved
from schedgap.harness.studies.audit.row import Count, Witness, claim
from schedgap.heuristics.oef import gandiva_fair
from schedgap.heuristics.oef.rounding import Placer, Rule
from schedgap.instances import load
from schedgap.instances.arrays import Array
from schedgap.instances.random_instances.oef import draw, of_matrix, of_tenants
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import OefView, efficiency, view

ALONE, TOGETHER, TRADING = "oef.noncooperative", "oef.cooperative", "oef.gandiva_fair"
FULL, SHARING = "oef.cooperative.full", "oef.sharing_incentive"

SKIPPING = ((1, 2, 6), (1, 4, 8))
"""Speedups with which non-cooperative OEF gives tenant 1 types 1 and 3 only; their ratios rank tenants differently."""

WASTING = ((1, 1.5, 2), (1, 2, 5), (1, 3, 8))
"""Speedups with which cooperative OEF leaves an efficiency of 1/15 unused, which would hurt nobody."""

ORDERED = ((1, 1.5, 1.875, 2.34375), (1, 1.75, 2.625, 7.21875), (1, 2.75, 8.25, 24.75))
"""Speedups, on 3, 2, 1 and 1 devices, with which cooperative OEF gives tenant 2 types 2 and 4 only, although their
ratios rank the tenants alike."""

WASTING_TWO = ((1, 1.3), (1, 2.5), (1, 2.6), (1, 3.9))
"""Speedups on two devices of each of two types with which cooperative OEF leaves an efficiency of 0.024 unused."""

UNTRADED = ((1, 1.5, 6), (1, 2, 4), (1, 3, 10.5))
"""Speedups on 2, 2 and 1 devices with which trading pairs of types leaves an efficiency of 0.5 unused."""

SEVERAL = ((1, 1.1), (1, 10), (1, 10))
"""Speedups; the first two rows are the job types of one tenant."""

TEMPTING = ((1, 2), (1, 5))
"""Speedups of expression (6)."""


PATIENCE = 40
"""A tenant starves if it waits for so many times the rounds in which its share sums to its smallest job."""


def ones(speedups: tuple[tuple[float, ...], ...]) -> Instance:
    """Return tenants with these speedups and one device of every type."""
    return of_matrix(speedups, [1] * len(speedups[0]))


def devices(method: str, v: OefView) -> Array:
    """Return a model's optimal devices, or the devices after Gandiva_fair's trades."""
    return gandiva_fair.shares(v) if method == TRADING else np.asarray(solved(method, v).decision.devices)


def several(speedups: ArrayLike, capacity: list[int], reported: ArrayLike | None = None) -> Instance:
    """Return tenants with these speedups; the first two rows are the job types of one tenant."""

    def of_owners(rows: list[list[float]]) -> list[list[list[float]]]:
        return [rows[:2], *([row] for row in rows[2:])]

    true, told = (None if w is None else of_owners(np.asarray(w, float).tolist()) for w in (speedups, reported))
    return of_tenants(true or [], capacity, told)


def tried(
    instances: Iterable[Instance],
    method: str,
    judge: Callable[[OefView, Array], fairness.PropertyCheck[Any]],
    counts: Sequence[Count],
) -> list[str]:
    """Count whether a method's allocations pass the judge; return the judge's text for each instance."""
    texts = []
    for instance in instances:
        v = view(instance)
        finding = judge(v, devices(method, v))
        texts.append(finding.text)
        for count in counts:
            count.add(bool(finding), instance, [method], finding.text)
    return texts


DRAWN = "random ones of up to 4 tenants and 4 types"


@claim(
    "oef.lemma-3.1",
    "Lemma 3.1",
    scope="optima without envy, or with sharing incentive, where one tenant has the least speedup on every type",
    how="that tenant's shares at the vertex that the simplex method finds",
)
def lemma_3_1(lab: ClaimLab) -> str:
    """The slowest tenant has all devices of the slowest types, and a part of those of the next one."""
    alike = lab.within("speedup ratios that rank all tenants alike")
    ordered = lab.drawn(draw, 60, "ordered", ordered=True)
    for i, instance in enumerate((*ordered, ones(SKIPPING), *lab.drawn(draw, 60))):
        v = view(instance)
        slowest = np.flatnonzero((v.speedups == v.speedups.min(axis=0)).all(axis=1))
        for method in (TOGETHER, SHARING) if slowest.size == 1 else ():
            own = devices(method, v)[slowest[0]]
            last = np.flatnonzero(own > TOLERANCE * v.capacity)[-1]
            holds = bool(np.all(own[:last] >= v.capacity[:last] * (1 - TOLERANCE)))
            lab.add(holds, instance, [method], f"{v.labels[slowest[0]]} has {own.round(4).tolist()}")
            if i < len(ordered):
                alike.add(holds)
    return f"fails in {lab} allocations ({DRAWN}), in {alike} where speedup ratios rank all tenants alike"


@claim(
    "oef.theorem-3.2",
    "Theorem 3.2",
    how="an over-report in Fig. 2 that pays in all optima: whichever of them a mechanism takes",
    text="No mechanism of optimal efficiency is both envy-free and strategy-proof.",
    method=FULL,
)
@claim(
    "oef.theorem-3.3",
    "Theorem 3.3",
    how="as oef.theorem-3.2",
    text="No mechanism of optimal efficiency is both sharing-incentive and strategy-proof.",
    method=SHARING,
)
def conflict(lab: ClaimLab, method: str) -> str:
    """No mechanism of optimal efficiency with this kind of fairness is strategy-proof."""
    lie = Count()
    gain = _lie(lie, load("paper/oef-fig2"), 0, np.array([1.0, 3.0]), method=method)
    lab.add(lie.failed > 0)
    lab.also = [lie.witness] if lie.witness else ()
    return f"W = ⟨1,2; 1,4⟩, m = (1,1): u1 reports ⟨1,3⟩ and gains {gain:.0%}"


@claim(
    "oef.dilemma",
    "section 3.1.1, after (6)",
    scope="cooperative OEF",
    how="u2's best efficiency over all optima, with reports from 1 to 10 while u1 reports 4",
)
def dilemma(lab: ClaimLab) -> str:
    """After u1 lies in (6), u2 has an incentive to lie, too, up to max-min fairness."""
    instance = load("paper/oef-eq6-lie")
    v = view(instance)
    full, worth = mechanism(FULL), fairness.own_worth(v, 1)
    views = [replace(v, speedups=np.array([v.speedups[0], [1.0, report]])) for report in np.arange(1, 10.1, 0.25)]
    # Below 4, u2 takes u1's place in (6) and has 1 + 5 (r − 1) / 2r, less than 2.875; above, nothing changes.
    honest, lied = float(full(v).least(worth)), float(max(full(seen).most(worth) for seen in views))
    shown = f"u2 has {honest:.4g} with the truth, and at most {number(lied, side='at most')} with a lie"
    lab.add(lied > honest * (1 + TOLERANCE), instance, [TOGETHER], shown)
    return shown


@claim("oef.theorem-5.1", "Theorem 5.1", how="exact checkers of both; efficiency against the LP with all rows")
def theorem_5_1(lab: ClaimLab) -> str:
    """Cooperative OEF is envy-free and sharing-incentive, and no envy-free allocation is more efficient."""
    for instance in (*map(ones, (SKIPPING, WASTING, TEMPTING)), *lab.drawn(draw, 150)):
        v = view(instance)
        x = devices(TOGETHER, v)
        envy, incentive = fairness.envy_free(v, x), fairness.sharing_incentive(v, x)
        best = fairness.optimal_efficiency(v, x, _total(FULL, v))
        shown = "; ".join(f.text for f in (envy, incentive, best) if not f)
        lab.add(bool(envy and incentive and best), instance, [TOGETHER, FULL], shown)
    return f"violated on {lab} instances ({DRAWN}, three by hand)"


@claim(
    "oef.theorem-5.2",
    "Theorem 5.2",
    scope="cooperative and non-cooperative OEF",
    how="types of the simplex method's vertex",
)
def theorem_5_2(lab: ClaimLab) -> str:
    """Every tenant gets types that are neighbours in speed."""
    narrower = "{} OEF where speedup ratios rank all tenants alike"
    alone, together = (lab.within(narrower.format(kind)) for kind in ("non-cooperative", "cooperative"))
    ordered = [of_matrix(ORDERED, [3, 2, 1, 1]), *lab.drawn(draw, 150, "ordered", ordered=True)]
    for i, instance in enumerate((*ordered, ones(SKIPPING), *lab.drawn(draw, 60))):
        v = view(instance)
        for method, narrow in ((ALONE, alone), (TOGETHER, together)):
            finding = fairness.adjacent(v, devices(method, v))
            gaps = "; ".join(f"{tenant} has {', '.join(types)} only" for tenant, types in finding.witness.items())
            lab.add(bool(finding), instance, [method], f"{method}: {gaps}")
            if i < len(ordered):
                narrow.add(bool(finding), instance, [method])
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
def pareto(lab: ClaimLab, method: str) -> str:
    """Gandiva_fair is Pareto-efficient."""
    two = lab.within("two GPU types")
    by_hand = (ones(WASTING), of_matrix(WASTING_TWO, [2, 2]), of_matrix(UNTRADED, [2, 2, 1]))
    examples = []
    for one in (*by_hand, *lab.drawn(draw, 100)):
        counts = [lab, two] if view(one).capacity.size == 2 else [lab]
        examples += tried([one], method, fairness.pareto_efficient, counts)
    return (
        f"W = ⟨1,1.5,2; 1,2,5; 1,3,8⟩, m = 1: {examples[0]}; ⟨1,1.3; 1,2.5; 1,2.6; 1,3.9⟩, m = 2: {examples[1]}; "
        f"⟨1,1.5,6; 1,2,4; 1,3,10.5⟩, m = (2,2,1): {examples[2]}; fails on {lab} instances ({DRAWN})"
    )


@claim(
    "oef.theorem-5.4",
    "Theorem 5.4",
    scope="over- and under-reports; the definition in section 2.3.1 speaks of inflated ones",
    how="random reports of one tenant, above and below the truth, while the others are honest; over all optima",
)
def theorem_5_4(lab: ClaimLab) -> str:
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
    least = rounded(100 * most, 0, "at most")
    return f"{text}; under-reports gain in {under}, by at most {least} %, over-reports in {over}"


def inflated(lab: ClaimLab, instances: Iterable[Instance]) -> Iterator[tuple[Instance, int, Array]]:
    """Yield instances with a tenant and an over-report of it: no speedup is below the truth, and one is above."""
    rng = lab.rng("reports")
    for instance in instances:
        truth = view(instance).true_speedups
        who = int(rng.integers(len(truth)))
        factor = np.exp(rng.uniform(0, np.log(4), truth.shape[1]))
        yield instance, who, np.r_[1.0, (truth[who] * factor)[1:]]


def fig_4() -> tuple[Instance, int, Array]:
    """Return the users of Fig. 4 (LSTM, Transformer, ResNet, VGG on 24 GPUs), and user 1, which doubles each step."""
    v = view(load("gen/oef-4"))
    return of_matrix(v.true_speedups, v.capacity.tolist()), 0, v.true_speedups[0] * 2.0 ** np.arange(v.capacity.size)


@claim(
    "oef.inflated",
    "section 2.3.1 (1), Theorem 5.4",
    scope="non-cooperative OEF, reports of which no element is below the truth and one is above",
    how="the liar's throughput in its best optimum after the lie and its worst one before; Fig. 4, by hand, random",
    text="If a tenant reports speedups none of which is less than the truth, its throughput will decrease.",
    honest=False,
)
@claim(
    "oef.honest-gain",
    "section 6.2.1",
    scope="non-cooperative OEF, over-reports of one tenant",
    how="another tenant's throughput, before and after; Fig. 4, by hand, random",
    text="The throughput of honest users improves after somebody exaggerates.",
    honest=True,
)
def exaggerated(lab: ClaimLab, *, honest: bool) -> str:
    """After an exaggeration, the liar has less than before, or (`honest`) another tenant has more."""
    held, alone = lab.within("lies about a type that the tenant holds a part of"), mechanism(ALONE)
    worse, changes = Count(), list[float]()
    sign = 1 if honest else -1
    unheld = of_matrix(TEMPTING, [8, 1]), 0, np.array([1.0, 3.0])  # u1 holds devices of the slow type only
    for instance, who, report in (fig_4(), unheld, *inflated(lab, lab.drawn(draw, 100))):
        v = view(instance)
        told = v.true_speedups.copy()
        told[who] = report
        worth = sign * fairness.own_worth(v, (who + 1) % v.size if honest else who)
        after, before = float(alone(replace(v, speedups=told)).least(worth)), float(alone(v).most(worth))
        changes.append(after / before - 1)
        shown = f"{v.labels[who]} reports {np.round(report, 4).tolist()}: {abs(after):.4g} instead of {abs(before):.4g}"
        holds = after > before + TOLERANCE * abs(before)
        lab.add(holds, of_matrix(v.true_speedups, v.capacity.tolist(), told), [ALONE], shown)
        worse.add(after >= before - TOLERANCE * abs(before))
        if (devices(ALONE, v)[who] > TOLERANCE * v.capacity)[report > v.true_speedups[who]].any():
            held.add(holds)
    lab.numbers = {"in_fig_4": changes[0]}
    whose = "that of honest users" if honest else "its throughput"
    text = f"in Fig. 4, where user 1 doubles each step, {whose} changes by {changes[0]:+.1%}"
    text += "; W = ⟨1,2; 1,5⟩, m = (8,1): u1 holds the slow type only, and reporting ⟨1,3⟩ changes nothing"
    return f"{text}; it fails in {lab} cases, and the contrary holds in {worse}"


@claim(
    "oef.starved",
    "section 4.3",
    scope="the printed rounding, and its repair where it exceeds a type's devices; smallest jobs that fit on a type",
    how="rounds until every tenant has the devices of its smallest job: 20 tenants with gangs of four, and random ones",
)
def starved(lab: ClaimLab) -> str:
    """Tenants whose share is less than a job needs accumulate deviation, and sooner or later run at least one job."""
    printed = lab.within("the printed rounding alone, which may exceed a type's devices")
    rules: list[tuple[Rule, Count]] = [("round", lab), ("independent", printed)]
    rng, longest = lab.rng("demands"), 0.0
    views = [view(load("gen/oef-20?gangs=4&gang_probabilities=1")), *map(view, lab.drawn(draw, 40))]
    for i, v in enumerate(views):
        ideal = devices(TOGETHER, v)
        most = (v.capacity * (ideal > TOLERANCE)).max(axis=1).astype(int)  # devices of a type that a tenant holds
        demand = v.min_demand if i == 0 else rng.integers(1, most + 1)
        due = np.ceil(demand / ideal.max(axis=1))  # rounds in which its largest share sums to its smallest job
        for rule, count in rules:
            placer, first = Placer(v.size, v.capacity, rule), np.full(v.size, np.inf)
            for t in range(1, int(PATIENCE * due.max()) + 1):
                got = placer.place(ideal, demand).max(axis=1) >= demand
                first = np.where(got, np.minimum(first, t), first)
            late = float((first / due).max())
            longest = max(longest, late) if np.isfinite(late) else longest
            count.add(bool(np.all(first < np.inf)), v.instance, ["oef.rounding"], f"{rule}: demands {demand.tolist()}")
    lab.numbers = {"longest_wait": longest}
    text = f"a tenant waits for over {PATIENCE} times the rounds in which its share sums to its smallest job"
    return f"{text} in {lab} cases (with the repair) and {printed} (without); the longest wait is {longest:.2g} times"


@claim(
    "oef.weights-in-program",
    "section 4.2.3",
    scope="cooperative and non-cooperative OEF, a tenant with two job types, each of which has a row and a weight",
    how="optima by weights within (9) and (10), and by replicated rows",
)
def weights_in_program(lab: ClaimLab) -> str:
    """Solutions that put weights into the program, instead of replicating rows, cannot handle several job types."""
    matrices = [([[1, 2], [1, 3], [1, 5]], [1, 1]), (SEVERAL, [1, 1])]
    drawn = [view(one) for one in lab.drawn(draw, 40)]
    matrices += [(v.true_speedups.tolist(), [int(m) for m in v.capacity]) for v in drawn if v.size > 2]
    for speedups, capacity in matrices:
        weighted = view(several(speedups, capacity))  # weights 1/2, 1/2 and 1
        rows = np.repeat(weighted.true_speedups, [1, 1] + [2] * (weighted.size - 2), axis=0)
        replicated = view(of_matrix(rows, capacity))
        for method in (ALONE, TOGETHER):
            one, other = (_total(method, v) or 0.0 for v in (weighted, replicated))
            apart = abs(one - other) > 1e-6 * other
            lab.add(bool(apart), weighted.instance, [method], f"{method}: {one:.6g} by weights, {other:.6g} by rows")
    return f"weights within the program give what replication gives in {lab} cases, section 4.2.4's example among them"


@claim(
    "oef.gavel-lie",
    "section 2.4, after (3)",
    scope="Gavel without a limit on a tenant's devices, and with at most one, as in (3)",
    how="u1's allocation and its throughput at true speedups, when it reports 2.5",
)
def gavel_lie(lab: ClaimLab) -> str:
    """When u1 reports a speedup of 2.5 on GPU2, Gavel gives it ⟨0.85, 0.15⟩, which is better for it."""
    capped = lab.within("at most one device per tenant")
    honest, lie = load("paper/oef-eq1"), load("paper/oef-eq3-lie")
    shown = []
    for method, counts in (("oef.gavel", [lab]), ("oef.gavel?row_cap=true", [lab, capped])):
        before, after = (devices(method, view(one))[0] for one in (honest, lie))
        gain = float(after @ [1, 2] / (before @ [1, 2]) - 1)
        right = bool(np.all(np.abs(after - [0.85, 0.15]) <= 0.005) and gain > TOLERANCE)
        shown.append(f"{method}: ⟨{after[0]:.3f}, {after[1]:.3f}⟩, {gain:+.1%}")
        for count in counts:
            count.add(right, lie, [method], shown[-1])
    return "; ".join(shown)


@claim(
    "oef.gandiva-fastest",
    "section 2.4",
    scope="two GPU types, over- and under-reports",
    how="random reports of the tenant of the largest speedup, above and below the truth, while the others are honest",
)
def second_price(lab: ClaimLab) -> str:
    """Gandiva_fair's second price prevents the fastest-accelerating user from lying about its speedup on fast GPUs."""
    over, rng = lab.within("over-reports"), lab.rng("reports")
    example = _lie(lab, load("paper/oef-eq1"), 2, np.array([1.0, 2.5]), method=TRADING)
    for instance in lab.drawn(draw, 60, types=2):
        truth = view(instance).true_speedups[:, 1]
        who, factor = int(truth.argmax()), rng.uniform(1, 4)
        for report, also in ((truth[who] * factor, over), (max(truth[who] / factor, 1.0), None)):
            _lie(lab, instance, who, np.array([1.0, report]), also, method=TRADING)
    under = Count("under-reports", lab.tested - over.tested, lab.failed - over.failed)
    text = f"expression (1): u3 reports ⟨1,2.5⟩ and gains {example:.0%}, for it buys second, at a lower price"
    return f"{text}; under-reports gain in {under}, over-reports in {over}"


def _lie(
    count: Count, instance: Instance, who: int, report: Array, also: Count | None = None, method: str = ALONE
) -> float:
    """Add a misreport to the cases of a count, where the claim holds if it does not pay; return its relative gain."""
    v = view(instance)
    reported = v.true_speedups.copy()
    reported[who] = report
    # The lie counts in its worst optimum and the truth in its best one, so no gain is a tie.
    shared, worth = mechanism(method), fairness.own_worth(v, who)
    honest, lied = float(shared(v).most(worth)), float(shared(replace(v, speedups=reported)).least(worth))
    holds = lied <= honest * (1 + TOLERANCE)
    said = np.round(report, 4).tolist()
    shown = f"{v.labels[who]} reports {said}: {lied:.4g} at its true speedups, {honest:.4g} honest"
    made = several if v.size > len(v.tenants) else of_matrix
    count.add(holds, made(v.true_speedups, [int(m) for m in v.capacity], reported), [method], shown)
    if also is not None:
        also.add(holds)
    return lied / honest - 1


@claim(
    "oef.multi.strategy-proof",
    "Theorem 5.4, section 4.2.4",
    scope="tenants with two job types, over-reports, throughput of both together",
    how="over-reports of one job type, while all else is honest; over all optima",
)
def multi_strategy_proof(lab: ClaimLab) -> str:
    """Under non-cooperative OEF a tenant with several job types does not gain by inflating the speedups of one."""
    rng = lab.rng("reports")
    example = _lie(lab, several(SEVERAL, [1, 1]), 0, np.array([1.0, 9.0]))
    for one in lab.drawn(draw, 60):
        v = view(one)
        if v.size > 2:
            factor = np.exp(rng.uniform(0, np.log(4), v.capacity.size))
            report = np.r_[1.0, (v.true_speedups[0] * factor)[1:]]
            _lie(lab, several(v.true_speedups, [int(m) for m in v.capacity]), 0, report)
    text = f"next to ⟨1,10⟩, a tenant with ⟨1,1.1⟩ and ⟨1,10⟩ reports ⟨1,9⟩ for the former and gains {example:.0%}"
    return f"{text}, m = (1,1); over-reports gain in {lab} cases"


@claim(
    "oef.multi.properties",
    "section 4.2.3",
    scope="cooperative OEF, whole tenants, who use any bundle as well as they can",
    how="envy-freeness and sharing incentive by exact checkers, for tenants and for virtual rows",
)
def multi_properties(lab: ClaimLab) -> str:
    """Replication maintains all the fairness properties of OEF perfectly, also where a user runs several DL jobs."""
    rows = lab.within("virtual tenants of one job type")
    made = (
        several(v.true_speedups, [int(m) for m in v.capacity]) for v in map(view, lab.drawn(draw, 60)) if v.size > 2
    )
    for instance in (several(SEVERAL, [1, 1]), *made):
        v = view(instance)
        x = devices(TOGETHER, v)
        for count, (seen, bundle) in ((rows, (v, x)), (lab, fairness.whole_tenants(v, x))):
            findings = fairness.envy_free(seen, bundle), fairness.sharing_incentive(seen, bundle)
            count.add(all(findings), instance, [TOGETHER], "; ".join(f.text for f in findings if not f))
    text = f"whole tenants envy or have less than an equal split in {lab} cases"
    return f"{text}, virtual rows in {rows.failed}"


def _total(method: str, v: OefView) -> float | None:
    return solved(method, v).solution.objective


@claim("oef.weights", "section 4.2.3", scope="cooperative and non-cooperative OEF", how="the paper's weighted example")
def weights(lab: ClaimLab) -> str:
    """A user of weight 2 gets twice the total throughput of a user of weight 1."""
    instance, alone = load("paper/oef-weighted"), lab.within("non-cooperative OEF")
    v = view(instance)
    shown = []
    for method, counts in ((ALONE, [lab, alone]), (TOGETHER, [lab])):
        first, second = efficiency(v.speedups, devices(method, v))
        shown.append(f"{method}: {second / first:.4g} times")
        for count in counts:
            count.add(bool(abs(second / first - 2) <= 2 * TOLERANCE), instance, [method], shown[-1])
    return "; ".join(shown)


COLUMNS = {
    "PE": ("Pareto-efficient", "pareto-efficient"),
    "EF": ("envy-free", "envy-free"),
    "SI": ("sharing-incentive", "sharing-incentive"),
    "SP": ("strategy-proof", "over-reports"),  # the paper's definition
    # All three promise the largest total at which nobody has less than an equal split.
    "efficiency": ("of the optimal efficiency that the sharing incentive allows", "optimal-efficiency"),
}
"""Columns of Table 1: the property in words, and its id (:data:`schedgap.harness.ask.properties.PROPERTIES`)."""

TABLE_1 = {
    "Gavel": (("oef.gavel", "oef.gavel?row_cap=true"), {"SI"}),
    "Gandiva_fair": ((TRADING,), {"PE", "SI"}),
    "OEF": ((TOGETHER, ALONE), set(COLUMNS)),
}
"""Rows of Table 1: methods and guaranteed properties. The table's marks are pictures; sections 2.4 and 5 state them."""

ENVIRONMENT = {"EF": (TOGETHER,), "SI": (TOGETHER,), "SP": (ALONE,), "efficiency": (TOGETHER,)}
"""The environment in which OEF promises each property; it promises Pareto efficiency in both."""


BY_HAND = (
    Situation((((1, 2),), ((1, 3),), ((1, 4),)), (1, 1), (1, 1, 1)),
    Situation((((1, 2),), ((1, 5),)), (1, 1), (1, 1)),
    Situation((((2, 3, 4),), ((1, 2, 5),), ((1, 3, 8),)), (1, 1, 1), (1, 1, 1)),
    Situation((((2, 3, 12),), ((1, 2, 4),), ((2, 6, 21),)), (2, 2, 1), (1, 1, 1)),
)
"""Expressions (1) and (6), and the speedups :data:`WASTING` and :data:`UNTRADED`."""

PRINTED_LIE = Situation((((2, 4),), ((1, 3),), ((1, 4),)), (1, 1), (1, 1, 1), reports=(((2, 5),), ((1, 3),), ((1, 4),)))
"""Expression (1), where u1 reports 2.5 (section 2.4, after (3))."""


def table_1(lab: ClaimLab, *, methods: tuple[str, ...], column: str, promised: bool) -> str:
    """Test one cell: a promise on random tenants, or the lack of a promise by a counterexample to each method."""
    lines, property = [], PROPERTIES[COLUMNS[column][1]]
    rng = lab.rng("situations")
    changed = [one for one in (property.change(rng, given) for given in BY_HAND) if one is not None]
    changed += [PRINTED_LIE] if column == "SP" else []
    drawn = [*changed, *cases(property, rng, lab.times(15), several=False)]
    for method in methods:
        shown, run = Count(method), mechanism(method)
        own = lab.within(method) if len(methods) > 1 else Count()
        for where in drawn:
            found = property.check(run, where)
            for count in (shown, *((own, lab) if promised else ())):
                count.add(found is None, where.after(), [method], found.text if found else "")
        if not promised:
            own.add(shown.failed > 0)
            lab.add(shown.failed > 0)
        lines.append(f"{method} fails in {shown} cases")
        if promised and column == "efficiency":  # optimal in the sense of Theorem 5.1
            unenvied = lab.within("allocations without envy")
            tried((where.before() for where in drawn), method, _best_without_envy, [unenvied])
    lab.also = [shown.witness] if shown.witness and not promised else ()
    return "; ".join(lines)


def _best_without_envy(v: OefView, x: Array) -> fairness.PropertyCheck[float]:
    return fairness.optimal_efficiency(v, x, _total(FULL, v))


for _row, (_methods, _promises) in TABLE_1.items():
    for _column, (_words, _) in COLUMNS.items():
        _promised = _column in _promises
        claim(
            f"oef.table-1.{_row.lower()}.{_column.lower()}",
            "Table 1",
            text=f"{_row} is {'' if _promised else 'not always '}{_words}.",
            scope="over-reports" if _column == "SP" else "the environment that promises it",
            how="in exact arithmetic, over all optima, on (1), (6), two more by hand and random tenants",
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
def support(lab: ClaimLab) -> str:
    """At most n + k − 1 shares are positive (Extreme Point Theorem)."""
    alone = lab.within("non-cooperative OEF")
    drawn = (ones(WASTING), *lab.drawn(draw, 120))
    for method, counts in ((ALONE, [lab, alone]), (TOGETHER, [lab])):
        tried(drawn, method, fairness.support_size, counts)
    text = f"exceeded in {alone} non-cooperative and {lab.failed} of as many cooperative"
    return f"{text} allocations ({DRAWN})"


@claim("oef.slip.gavel-total", "section 2.4, after (3)", how="both exactly, Gavel with and without the row cap")
def slip_gavel(lab: ClaimLab) -> str:
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
    how="the optimum of (6) with sharing incentive, with the truth and with the lie, at true speedups",
)
def slip_drop(lab: ClaimLab) -> str:
    """With sharing incentive, when u1 reports 4 for 2, the total efficiency drops by 8 %."""
    honest, lie = load("paper/oef-eq6"), load("paper/oef-eq6-lie")
    first, second = (float(certified(one, [SHARING])[SHARING].metrics["true_total"] or 0.0) for one in (honest, lie))
    drop = 100 * (1 - second / first)
    shown = f"true_total {second:.6g} instead of {first:.6g}: {drop:.2f} % less"
    lab.also = [Witness(lie, (SHARING,), shown)]
    return f"{recomputed(lab, Printed('per cent', 8, drop, 0.5))}; the honest total is {first / second - 1:.1%} more"


@claim("oef.slip.coefficient", "section 3.1.1, after (6)", how="the coefficient for which an equal split gives 3")
def slip_coefficient(lab: ClaimLab) -> str:
    """Sharing incentive on (6) asks for x_2^1 + 4·x_2^2 ≥ 3."""
    instance = load("paper/oef-eq6")
    lab.also = [Witness(instance, ("oef.maxmin",), f"u2's speedup is {view(instance).speedups[1, 1]:g}")]
    return recomputed(lab, Printed("coefficient of x_2^2", 4, (3 - 0.5) / 0.5, 0.0))


@claim("oef.slip.0.0495", "section 2.4, after (3)", how="u2's share in (3) and what u1 gives: 0.45 + (0.09 − 0.045)")
def slip_trade(lab: ClaimLab) -> str:
    """By trading with u1, u2 comes to 0.0495 of GPU2."""
    return recomputed(lab, Printed("u2's share of GPU2", 0.0495, 0.45 + (0.09 - 0.045), 0.00005))
