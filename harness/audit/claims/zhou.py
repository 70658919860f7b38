"""Zhou et al.: Theorems 1 and 6 on placements, 3, 5 and Lemma 1 on ratios, what α comes to, the two assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.audit.lab import Lab, always, certified, measured
from schedgap.harness.audit.registry import Count, Evidence, claim
from schedgap.heuristics.zhou.batches import Way, online
from schedgap.heuristics.zhou.lemma import lacking
from schedgap.instances import load
from schedgap.instances.elastic import Ledger, options
from schedgap.instances.schema import Instance
from schedgap.instances.small import picker
from schedgap.instances.small.zhou import instance as built
from schedgap.instances.small.zhou import job, ps, roomy_one, servers, small_one, tiny_one, worker
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, view
from schedgap.models.solve import SolveOptions
from schedgap.models.zhou.arrays import Choice, placement

Array = NDArray[np.float64]

NEAR = 1e-9
"""Relative difference of costs that counts as none."""


class Placed(NamedTuple):
    """Costs of one choice at random prices: the optimum, what the repaired and the printed algorithm find.

    `done` says whether the printed one places the workers that the choice needs.
    """

    best: float | None
    repaired: float | None
    printed: float | None
    done: bool


def priced(a: Architecture, rng: np.random.Generator, slots: int) -> tuple[Array, Array]:
    """Return what is free, and prices, at random: some of them 0, some dear, some servers partly booked."""
    shape = (*a.machines.capacity.shape, slots)
    price = rng.random(shape) * rng.choice([0.0, 1.0, 10.0, 1e4], shape)
    part = rng.choice([0.0, 0.34, 0.5, 0.67, 1.0, 1.0, 1.0], shape) if rng.random() < 0.5 else np.ones(shape)
    return a.machines.capacity[:, :, None] * part, price


def placements(rng: np.random.Generator, name: str, count: int) -> Iterator[Placed]:
    """Yield what so many random choices of types, workers and slots cost on random servers (problems (13), (21)).

    Parameters
    ----------
    rng
        Source of randomness.
    name
        ``"ps"`` or ``"ra"``.
    count
        Number of choices.
    """
    choose, tried = picker(rng), 0
    while tried < count:
        made = (tiny_one if rng.random() < 0.5 else small_one)(choose)
        a = view(made).architectures[name]
        every = options(a.machines, a.work, a.most, a.rates, prune=False)
        o = replace(every, slots=np.minimum(every.slots, 3))
        free, price = priced(a, rng, 4)
        # Line 5 of Algorithm 7 places as many workers as there are slots.
        as_printed = replace(o, workers=np.where(o.together, o.workers, o.slots)) if name == "ra" else o
        ledgers = [Ledger(a.machines, of, 4) for of in (o, as_printed)]
        for ledger in ledgers:
            ledger.set_free(free)
            ledger.post(price)
        for i in rng.permutation(len(o.slots))[: min(20, count - tried)].tolist():
            slots = int(o.slots[i])
            start = int(rng.integers(5 - slots))
            within = slice(start, start + slots)
            choice = Choice(
                int(o.worker_type[i]), int(o.ps_type[i]), bool(o.together[i]), int(o.workers[i]), int(a.most[o.job[i]])
            )
            window = free[:, :, within].min(axis=2), price[:, :, within].sum(axis=2)
            best, _ = placement(a.machines, choice, *window, EXACT)
            right, printed = (
                ledger.find(int(o.job[i]), start, start + slots, among=slice(i, i + 1), printed=way)
                for ledger, way in zip(ledgers, (False, True), strict=True)
            )
            tried += 1
            done = not printed or int(printed.workers.sum()) == int(o.workers[i])
            cost, found, literal = (one.cost if one else None for one in (best, right, printed))
            yield Placed(cost, found, literal, done)


EXACT = SolveOptions(rel_gap=0.0)


def _optimal(cost: float | None, best: float | None) -> bool:
    if cost is None or best is None:
        return cost is best
    return cost <= best * (1 + NEAR)


def one_worker() -> tuple[float, float]:
    """Return the least cost of a worker and a PS on two servers, and what Algorithm 4 as printed finds.

    The worker is cheaper on server 0, but the PS much more so, and both do not fit there. For host 0, line 15 ends with
    g = 1 = N, which asks for no PS at all, so that nothing is found: the PS goes to server 1.
    """
    case = built([job(1)], [servers(2, 1, 1.0, memory_gb=1.0)], [worker(cpus=0.0)], [ps()])
    a = view(case).architectures["ps"]
    price = np.zeros((2, 4, 1))
    price[:, 0, 0], price[:, 1, 0] = (1.0, 2.0), (0.0, 10.0)
    ledger = Ledger(a.machines, a.options, 1)
    ledger.post(price)
    right, printed = (ledger.find(0, 0, printed=way) for way in (False, True))
    return (right.cost if right else np.inf), (printed.cost if printed else np.inf)


def three_chunks() -> Instance:
    """Return a job on two servers of a GPU each, whose cheapest placement Algorithm 4 as printed does not find."""
    return built([job(3, submit_s=1.0)], [servers(2, 1, 3.3, bandwidth_gbps=4.0)])


def _compared(lab: Lab, name: str, printed: bool) -> tuple[Count, int, int]:
    """Count whether placements are optimal: at random prices, and on whole instances as ``harness compare`` sees them.

    Returns the counts, and in how many cases nothing was found and how many cost too much or leave work undone.
    """
    count, missed, dearer = Count(), 0, 0
    for placed in placements(lab.rng("choices"), name, lab.times(700)):
        if placed.best is None:
            continue
        cost, done = (placed.printed, placed.done) if printed else (placed.repaired, True)
        if not count.add(done and _optimal(cost, placed.best)):
            missed, dearer = missed + (cost is None), dearer + (cost is not None)
    method, choose = f"zhou.{name}.amincost{'?printed=true' if printed else ''}", picker(lab.rng("instances"))
    for instance in (three_chunks(), *(tiny_one(choose) for _ in range(lab.times(60)))):
        rows = certified(instance, [method, f"zhou.{name}.mincost"])
        best, mine = rows[f"zhou.{name}.mincost"], rows[method]
        if best.status != "optimal":
            continue
        told = "finds no valid placement" if mine.objective is None else f"costs {mine.objective:.6g}"
        shown = f"{method} {told}, the optimum is {best.objective:.6g}"
        if not count.add(_optimal(mine.objective, best.objective), instance, [best.method, method], shown):
            missed, dearer = missed + (mine.objective is None), dearer + (mine.objective is not None)
    return count, missed, dearer


@claim(
    "zhou.theorem-1.printed",
    "Theorem 1",
    "Algorithms 4 and 5 solve problem (13) to optimality.",
    scope="Algorithm 4 as printed, N̂ reset for every host",
    how="against the ILP (13) at random prices and loads, and on whole instances",
)
def theorem_1_printed(lab: Lab) -> Evidence:
    """Compare with the ILP."""
    count, missed, dearer = _compared(lab, "ps", printed=True)
    right, printed = one_worker()
    text = (
        f"not optimal in {count.failed} of {count.tested} cases ({missed} times nothing is found, {dearer} times it "
        f"costs more); one worker on two servers: {printed:g} instead of {right:g}"
    )
    return count.evidence(text, numbers={"best": right, "printed": printed})


@claim(
    "zhou.theorem-1.repaired",
    "Theorem 1",
    "Algorithms 4 and 5, with at least one PS and all hosts tried, solve problem (13) to optimality.",
    how="as zhou.theorem-1.printed",
)
def theorem_1_repaired(lab: Lab) -> Evidence:
    """Compare with the ILP."""
    count, _, _ = _compared(lab, "ps", printed=False)
    return count.evidence(f"not optimal in {count.failed} of {count.tested} cases")


@claim(
    "zhou.theorem-6.repaired",
    "Theorem 6",
    "Algorithms 6 and 7, with N̂ = Φ′ workers, solve problem (21) to optimality.",
    how="against the ILP (21) at random prices and loads, and on whole instances",
)
def theorem_6(lab: Lab) -> Evidence:
    """Compare with the ILP."""
    count, _, _ = _compared(lab, "ra", printed=False)
    return count.evidence(f"not optimal in {count.failed} of {count.tested} cases")


@claim(
    "zhou.theorem-6.printed",
    "Theorem 6",
    "Algorithms 6 and 7 solve problem (21) to optimality.",
    scope="Algorithm 7 as printed, N̂ = d̂, reset for every start",
    how="as zhou.theorem-6.repaired; a placement of other than Φ′ workers does not do the job's work",
)
def theorem_6_printed(lab: Lab) -> Evidence:
    """Compare with the ILP."""
    count, missed, other = _compared(lab, "ra", printed=True)
    text = (
        f"not optimal in {count.failed} of {count.tested} cases ({missed} times nothing valid is found, {other} times "
        "other than Φ′ workers, or dearer ones)"
    )
    return count.evidence(text)


def ratios(lab: Lab, arch: str, method: str, exact: str, assumed: bool = True) -> Evidence:
    """Measure a ratio on instances that mostly meet the assumptions, and on tiny ones that mostly do not.

    Where the theorem does not assume anything of jobs (`assumed` is false), all of them count.
    """
    choose = picker(lab.rng())
    drawn = [make(choose) for _ in range(lab.times(70)) for make in (roomy_one, tiny_one)]
    what = "random ones of up to 6 jobs and 3 servers"
    names = f"zhou.{arch}.{method}", (f"zhou.{arch}.{exact}",)
    inside = (lambda instance: _meets_assumptions(instance, arch)) if assumed else always
    return measured(drawn, *names, what, inside)


def _meets_assumptions(instance: Instance, arch: str) -> bool:
    a = view(instance).architectures[arch]
    return bool(a.assumption_1.all() and a.assumption_2.all())


for _arch, _suffix, _name in (("ps", "", "parameter servers"), ("ra", ".ra", "rings")):

    @claim(
        f"zhou.theorem-3{_suffix}",
        "Theorem 3",
        f"A_maxweight is 2 log λ-approximate with {_name}.",
        scope="jobs that meet both assumptions, as far as the view can tell",
        how="against the proved optimum of (8); confirmed means: not exceeded on the instances tried",
    )
    def theorem_3(lab: Lab, arch: str = _arch) -> Evidence:
        """Measure the ratio."""
        return ratios(lab, arch, "amaxweight", "schedules")

    @claim(
        f"zhou.theorem-5{_suffix}",
        "Theorem 5",
        f"A_online is 4α-competitive with {_name}, for its α by the formula.",
        scope="jobs that meet both assumptions, as far as the view can tell",
        how="against the proved optimum of (2); confirmed means: not exceeded on the instances tried",
    )
    def theorem_5(lab: Lab, arch: str = _arch) -> Evidence:
        """Measure the ratio."""
        return ratios(lab, arch, "online?alpha=formula", "schedules.offline")

    @claim(
        f"zhou.lemma-1{_suffix}",
        "Lemma 1",
        f"A_online is 4α-competitive with {_name} where A_dual gets the weight of an optimal schedule by τ_i.",
        scope="α = 4, runs that are shown to get that weight in every batch",
        how="against the proved optimum of (2); confirmed means: not exceeded on the instances tried",
    )
    def lemma_1(lab: Lab, arch: str = _arch) -> Evidence:
        """Measure the ratio."""
        return ratios(lab, arch, "online", "schedules.offline", assumed=False)


def settings(lab: Lab) -> Iterator[tuple[Instance, Architecture]]:
    """Yield instances of the paper's ranges at a sixth of its size, for both architectures, T = 150 and 300 in turn."""
    for i in range(lab.times(6)):
        instance = load(f"gen/zhou-ps?jobs=30&servers=24&slots={300 if i % 2 else 150}&seed={1 + i // 2}")
        for name in ARCHITECTURES:
            yield instance, view(instance).architectures[name]


RANGES = "the paper's ranges, 30 jobs on 24 servers, T = 150 and 300, both architectures"


def _close_to_4(alpha: float) -> bool:
    """Whether it is within a factor of two."""
    return 2 <= alpha <= 8


@claim(
    "zhou.alpha.formula",
    "after Theorem 5",
    "α, by its formula, is close to 4.",
    how=f"the formula on {RANGES}; close: within a factor of 2",
)
def alpha_formula(lab: Lab) -> Evidence:
    """Evaluate the formula."""
    count, found = Count(), []
    for instance, a in settings(lab):
        found.append(a.alpha)
        method = f"zhou.{a.id}.online?alpha=formula"
        count.add(_close_to_4(a.alpha), instance, [method], f"guarantee of {method}: 4α = {4 * a.alpha}")
    text = f"α from {min(found)} to {max(found)} on {count.tested} cases ({RANGES})"
    return count.evidence(text, numbers={"least": min(found), "largest": max(found)})


@claim(
    "zhou.alpha.realised",
    "after Theorem 5",
    "The number of windows that a batch really needs is typically close to 4.",
    how=f"mean number of windows of a batch on {RANGES}; close: within a factor of 2",
)
def alpha_realised(lab: Lab) -> Evidence:
    """Run A_online, whose batches take as many windows as they fill, and count these."""
    count, rounds = Count(), []
    for _, a in settings(lab):
        rounds += online(a, Way(alpha="realised")).window_rounds.tolist()
    mean, most = float(np.mean(rounds)), max(rounds)
    count.add(_close_to_4(mean))
    text = f"{len(rounds)} batches need {min(rounds)} to {most} windows, {mean:.2f} on average ({RANGES})"
    return count.evidence(text, numbers={"mean": mean, "largest": most})


@claim(
    "zhou.alpha.enough",
    "Lemma 1, after Theorem 5",
    "With α = 4, A_dual gets at least the weight of an optimal schedule of the batch by τ_i.",
    how=f"every batch of a run against a fractional knapsack that bounds that weight from above, on {RANGES}",
)
def alpha_enough(lab: Lab) -> Evidence:
    """Run A_online with α = 4, and with 1 for comparison."""
    count, short = Count(), 0
    for instance, a in settings(lab):
        tau = lacking(a, online(a, Way()))
        count.add(tau is None, instance, [f"zhou.{a.id}.online"], f"the batch of τ = {tau} is not shown to")
        short += lacking(a, online(a, Way(alpha=1))) is not None
    text = f"shown on {count.tested - count.failed} of {count.tested} cases ({RANGES}); not with α = 1 on {short}"
    return count.evidence(text, numbers={"not_with_1": short})


def _violated(lab: Lab, which: str) -> Evidence:
    count, shares = Count(), []
    for instance, a in settings(lab):
        met = a.assumption_1 if which == "assumption_1" else a.assumption_2
        for one in met.tolist():
            count.add(bool(one), instance, [f"zhou.{a.id}.online"], f"{1 - met.mean():.0%} of the jobs violate it")
        shares.append(float(1 - met.mean()))
    text = f"violated by {min(shares):.0%} to {max(shares):.0%} of the jobs ({RANGES})"
    return count.evidence(text, numbers={"least": min(shares), "largest": max(shares)})


@claim(
    "zhou.assumption-1",
    "section 5.1, first assumption",
    "A job's weight is at least what its schedules consume.",
    scope="the paper's own ranges; a server's capacity of a resource is 1",
    how=f"the thriftiest schedule of every job on {RANGES}",
)
def assumption_1(lab: Lab) -> Evidence:
    """Count the jobs that violate it."""
    return _violated(lab, "assumption_1")


@claim(
    "zhou.assumption-2",
    "section 5.1, second assumption",
    "A job takes at most 1/log λ of a server's capacity of any resource.",
    scope="the paper's own ranges",
    how=f"the smallest worker of every job on {RANGES}",
)
def assumption_2(lab: Lab) -> Evidence:
    """Count the jobs that violate it."""
    return _violated(lab, "assumption_2")
