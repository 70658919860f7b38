"""Hadar and HadarE (Sultana et al.): theorems, Definition 1, Algorithm 2, the dual's start, Fig. 1, slips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from schedgap import heuristics
from schedgap.harness.check import TOLERANCE, differ
from schedgap.harness.show.text import rounded
from schedgap.harness.studies.adversary.families import point
from schedgap.harness.studies.audit.lab import ClaimLab, Printed, certified, measured, on_family, recomputed, solved
from schedgap.harness.studies.audit.row import Witness, claim
from schedgap.heuristics.hadar.algorithm2 import literal_dp
from schedgap.heuristics.hadar.duality import dual_objective, earned, loads, shown
from schedgap.heuristics.hadar.hadare import utilisation
from schedgap.heuristics.hadar.planning import Planner, Planning, RoundToPlan
from schedgap.heuristics.hadar.prices import guarantee, prices
from schedgap.heuristics.simulator import POLICIES, Trace, servers, simulate, workload
from schedgap.heuristics.simulator.engine import in_slots
from schedgap.instances import load
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.families import HARD
from schedgap.instances.random_instances.hadar import draw, gangs, linear, private
from schedgap.instances.schema import Horizon, Instance
from schedgap.instances.views.hadar import HadarView, view
from schedgap.instances.workload import Servers
from schedgap.models.hadar.schedules import schedules

FIG_1 = "paper/hadar-fig1"
P1, P2 = "hadar.p1", "hadar.p2.enumerated"
ONLINE = "hadar.online?payoff=lifetime"
"""Hadar with the payoff (8), which Theorem 2 is about; by default, a job pays for one round (line 31)."""

ARGUMENT = "hadar.online?mode=incremental&payoff=lifetime"
"""The same without preemption: what the proof of Theorem 2 describes."""


def worth(amplitude: float, epochs: int, rates: dict[str, float], gpus: int = 1) -> dict[str, object]:
    """Return a job with constant utility."""
    utility = {"kind": "constant", "amplitude": amplitude}
    return {"gpus": gpus, "epochs": epochs, "rates": rates, "utility": utility}


@claim(
    "hadar.p1-equals-p2",
    "section III-B, problems (1) and (2)",
    scope="P1 completes every job, P2 may reject jobs",
    how="both as MILPs on random instances of up to 3 jobs, 5 slots and 3 GPU types; optima to 1e-6",
)
def p1_equals_p2(lab: ClaimLab) -> str:
    """P1 and P2 are equivalent."""
    same = lab.within("the same rule of completion in both")

    def equal(one: str, other: str) -> bool:
        a, b = rows[one].objective, rows[other].objective
        return a is b if a is None or b is None else not differ(a, b)

    # The second job keeps the first one off the only fast GPU.
    jobs = [{"gpus": 1, "epochs": 2, "rates": {"fast": 2.0, "slow": 1.0}}, worth(0.1, 3, {"fast": 1.0})]
    for instance in (linear(jobs, {"fast": 1, "slow": 1}, slots=3), *lab.drawn(draw, 30)):
        rows = certified(instance, [P1, f"{P1}.complete", P2, f"{P2}.complete"])
        if any(row.status not in ("optimal", "infeasible") for row in rows.values()):
            continue
        shown = f"P1 (all complete): {rows[f'{P1}.complete'].objective}, P2 (may reject): {rows[P2].objective}"
        lab.add(equal(f"{P1}.complete", P2), instance, [f"{P1}.complete", P2], shown)
        for rule in ("", ".complete"):
            same.add(equal(P1 + rule, P2 + rule), instance, [P1 + rule, P2 + rule])
    return f"optima differ on {lab} instances as printed, in {same} comparisons under the same rule"


def waiting(v: HadarView) -> RoundToPlan:
    """Return a round in which all jobs have arrived and nothing runs."""
    nothing = np.zeros(v.servers.size, np.int64)
    return RoundToPlan(np.arange(v.size), v.workload.work, int(v.arrival.max()), nothing, np.zeros((0, 3), np.int64))


@claim(
    "hadar.line-20",
    "Algorithm 2, line 20",
    how="the literal recursion against the exact DP over payoffs on random queues of up to 5 jobs, empty cluster",
)
def line_20(lab: ClaimLab) -> str:
    """The branch with the smaller cost is the better one, so the returned plan is worth most."""
    empty = 0
    for instance in lab.drawn(draw, 300, jobs=5):
        v = view(instance)
        around, plans = waiting(v), Planner(v, prices(v), Planning(exact=v.size))
        best = plans.dp_allocation(plans.line_up(around))
        if best.payoff <= 0:
            continue
        literal = literal_dp(plans, around)
        empty += not literal.any()
        shown = f"line 20 schedules nothing; a plan of payoff {best.payoff:.4g} exists"
        lab.add(bool(literal.any()), instance, ["hadar.online", P1], shown)
    return f"{empty} of {lab.tested} literal runs schedule nothing although a plan with a positive payoff exists"


def _steps(lab: ClaimLab) -> Iterator[tuple[Instance, float, int]]:
    """Yield an instance, ``U_max/U_min`` and the GPUs of each server; the first one has a ratio of 100 and 4 GPUs."""
    four_gpus = linear([worth(1.0, 1, {"a": 1.0}), worth(1.25, 1, {"a": 1.0})], {"a": 4}, slots=5)
    for instance in (four_gpus, *lab.drawn(draw, 200)):
        v = view(instance)
        pricing = prices(v)
        for kind, gpus in zip(v.servers.gpu_type.tolist(), v.servers.gpus.tolist(), strict=True):
            if v.possible.size and pricing.high[kind] > pricing.low[kind]:  # equal if no job is worth anything
                yield instance, float(pricing.high[kind] / pricing.low[kind]), gpus


def _price(ratio: float, gpus: int, used: float) -> float:
    """Return the price (5) on a server with `used` of its GPUs taken, in units of ``U_min``."""
    return float(ratio ** (used / gpus))


@claim(
    "hadar.lemma-3",
    "Lemma 3, Definition 2",
    how="k(γ) against (c/α)·k'(γ), by central differences at ten γ on each server of random instances",
)
def lemma_3(lab: ClaimLab) -> str:
    """With α_h^r = ln(U_max/U_min), which is 1 or more, the prices (5) satisfy k(γ) dγ ≥ (c/α_h^r) dk(γ)."""
    closest = 0.0
    for instance, ratio, gpus in _steps(lab):
        alpha, width = float(np.log(ratio)), 1e-5 * gpus
        for used in np.linspace(0.05 * gpus, 0.95 * gpus, 10).tolist():
            price = _price(ratio, gpus, used)
            slope = (_price(ratio, gpus, used + width) - _price(ratio, gpus, used - width)) / (2 * width)
            right = gpus / alpha * slope / price
            shown = f"U_max/U_min = {ratio:.4g}, c = {gpus}, γ = {used:.3g}: 1 < {right:.6g}, or α = {alpha:.3g} < 1"
            lab.add(alpha >= 1 and right <= 1 + 1e-6, instance, [ONLINE], shown)
            closest = max(closest, right)
    return f"fails at {lab} points; both sides are equal: the largest right one is {closest:.6f} of the left one"


@claim(
    "hadar.definition-2",
    "the step from Definition 2 to Definition 1, after Lemma 3",
    how="steps of one GPU, where a job's demand is 'less than the capacity', on servers of random instances",
)
def definition_2(lab: ClaimLab) -> str:
    """The differential relationship implies Definition 1 with the same α, as dk = k'(γ)·Δγ = k(γ + Δγ) − k(γ)."""
    for instance, ratio, gpus in _steps(lab):
        alpha = float(np.log(ratio))
        differential, step = alpha / gpus, _price(ratio, gpus, 1) - 1
        shown = (
            f"U_max/U_min = {ratio:.4g}, c = {gpus}, Δγ = 1: k' Δγ = {differential:.4g} k, and the step {step:.4g} k"
        )
        lab.add(gpus / alpha * step <= 1 + TOLERANCE, instance, [ONLINE], shown)
    return (
        f"fails for {lab} steps of one GPU: (5) is convex, so a step costs more than its derivative at the start says"
    )


@claim("hadar.definition-1", "Definition 1 with Lemma 3", how="every whole step in random instances, prices by (5)–(7)")
def definition_1(lab: ClaimLab) -> str:
    """k(γ)·Δγ ≥ (c/α)·(k(γ+Δγ) − k(γ)) with α = max_r (1, ln(U_max/U_min)) and the prices (5)."""
    # U_max/U_min = 100 by (6) and (7).
    four_gpus = linear([worth(1.0, 1, {"a": 1.0}), worth(1.25, 1, {"a": 1.0})], {"a": 4}, slots=5)
    for instance in (four_gpus, *lab.drawn(draw, 200)):
        v = view(instance)
        pricing = prices(v)
        if not v.possible.size:
            continue
        for kind, gpus in zip(v.servers.gpu_type.tolist(), v.servers.gpus.tolist(), strict=True):
            ratio = float(pricing.high[kind] / pricing.low[kind])
            for step in range(1, gpus + 1):
                right = _right_side(ratio, gpus, step, pricing.alpha)
                shown = f"U_max/U_min = {ratio:.4g}, c = {gpus}: {step} < {right:.4g}"
                lab.add(step >= right * (1 - TOLERANCE), instance, [ONLINE], shown)
    alpha = float(np.log(100))
    example, limit = _right_side(100.0, 4, 1, alpha), _right_side(100.0, 4, 1e-6, alpha) / 1e-6
    lab.numbers = {"right_side": example}
    return (
        f"fails in {lab} steps; U_max/U_min = 100, c = 4, Δγ = 1: 1 < {example:.2f}. "
        f"In the limit Δγ → 0 both sides are equal (1 and {limit:.4f}), but GPUs are given out whole"
    )


def _right_side(ratio: float, gpus: int, step: float, alpha: float) -> float:
    """Return ``(c/α)·(ratio^(step/c) − 1)``, in units of k(γ)."""
    return float(gpus / alpha * (ratio ** (step / gpus) - 1))


@claim(
    "hadar.theorem-1",
    "Theorem 1",
    scope="the exact dynamic program",
    how="entries of the memo: jobs that each run on a GPU of their own, and random gangs on 48 GPUs",
)
def theorem_1(lab: ClaimLab) -> str:
    """Algorithm 2 runs in polynomial time: its memo has at most n(Q)·H·R entries."""
    grown = {n: _entries(lab, private(n)) for n in (2, 5, 10, 15)}
    drawn = {n: _entries(lab, gangs(n)) for n in ((5, 10, 15) if lab.effort < 1 else (5, 10, 15, 20))}
    doubled = ", ".join(f"{n} jobs: {entries:,}" for n, entries in grown.items())
    random = ", ".join(f"{n}: {entries:,}" for n, entries in drawn.items())
    lab.numbers = {"doubling": list(grown.values()), "gangs": list(drawn.values())}
    return (
        f"n jobs with a GPU type each have 2^n − 1 entries ({doubled}); random gangs on 6 servers of 8 GPUs, by jobs: "
        f"{random}. More than n(Q)·H·R in {lab} queues"
    )


def _entries(lab: ClaimLab, instance: Instance) -> int:
    v = view(instance)
    entries = Planner(v, prices(v)).memo_entries(waiting(v))
    most = v.size * v.servers.size * len(v.capacity)
    shown = f"{entries:,} entries of the memo for {v.size} jobs, n(Q)·H·R = {most:,}"
    lab.add(entries <= most, instance, ["hadar.online"], shown)
    return entries


@claim(
    "hadar.theorem-2",
    "Theorem 2",
    scope="utilities positive at the horizon, jobs planned anew in each round",
    how=f"{ONLINE} on jobs that outbid each other and random ones, against verified schedules and bounds of P1",
    online=ONLINE,
    against=ARGUMENT,
    families={"hadar-outbidding?slots=5&rise=0.25": (16,), "hadar-outbidding": (20, 40)},
)
@claim(
    "hadar.theorem-2.kept",
    "Theorem 2",
    scope="utilities positive at the horizon, running jobs keep their GPUs (section IV, Scalability)",
    how=f"{ARGUMENT} on three families and random instances, against verified schedules and certified bounds of P1",
    online=ARGUMENT,
    against=P1,
    families={"hadar-late": (11, 100), "hadar-long-first": (20, 40), "hadar-small-first": (8, 16)},
)
def theorem_2(lab: ClaimLab, online: str, against: str, families: Mapping[str, Sequence[int]]) -> str:
    """Hadar is 2α-competitive, α = max_r max(1, ln(U_max/U_min))."""
    found = [on_family(lab, name, online, value, against) for name, values in families.items() for value in values]
    what = "and random ones of up to 3 jobs and 5 slots, all of which can complete"
    text = measured(lab, lab.drawn(draw, 150), online, (P1,), what, lambda instance: not any(view(instance).hopeless))
    listed = "; ".join(f"{one.ratio:.4g} on {one.ref}, where {one.guarantee}" for one in found)
    return f"a verified schedule is better by a factor of {listed}; {text}"


ROUND = "hadar.online"
"""Hadar as its line 31 is printed: a job pays for one round."""


@claim(
    "hadar.theorem-2.round",
    "Theorem 2",
    scope="utilities positive at the horizon, a job pays for one round (line 31)",
    how=f"{ROUND} on a gang that holds all GPUs and random instances, against verified decisions and optima of P1",
)
def theorem_2_of_rounds(lab: ClaimLab) -> str:
    """Hadar is 2α-competitive, α = max_r max(1, ln(U_max/U_min))."""
    found = [point(HARD.get("hadar-gang-first"), ROUND, slots, "more=0.001") for slots in (6, 7)]
    tried = [(load(one.ref), one.objective, one.answer) for one in found]
    for instance in lab.drawn(draw, 150):
        v = view(instance)
        best = solved(P1, v).solution if v.possible.size else None
        if best is not None and best.status == "optimal" and best.objective:
            tried.append((instance, earned(v, heuristics.get(ROUND).decide(instance)), best.objective))
    for instance, reached, most in tried:
        promised = guarantee(view(instance))
        if promised.factor is not None:
            within = most <= promised.factor * reached * (1 + TOLERANCE)
            shown = f"{ROUND} reaches {reached:.4g}, a verified decision {most:.4g}; {promised.text}"
            lab.add(within, instance, [ROUND, P1], shown)
    listed = "; ".join(f"{one.ratio:.4g} on {one.ref}" for one in found)
    return f"a verified schedule is better by a factor of {listed}; exceeded on {lab} instances"


@claim(
    "hadar.theorem-2.shown",
    "Theorem 2, the end of its proof",
    scope="runs whose own dual shows it, as rows state it",
    how=f"{ARGUMENT}: the dual at the run's final prices, of value D, against certified optima of P1; D ≤ 2αP or not",
)
def shown_ratio(lab: ClaimLab) -> str:
    """Where P3 at the final prices (5), with each job's largest payoff, is at most 2αP, the run is within 2α of OPT."""
    spec, shows = heuristics.get(ARGUMENT), 0
    for instance in lab.drawn(draw, 150):
        v = view(instance)
        if not v.possible.size or prices(v).floored:
            continue
        schedule = spec.decide(instance)
        reached, most = earned(v, schedule), dual_objective(v, loads(v, schedule), prices(v))
        best = solved(P1, v).solution
        if best.status != "optimal" or best.objective is None:
            continue
        states = shown(v, schedule).factor
        within = states is None or best.objective <= states * reached * (1 + TOLERANCE)
        above = f"the dual at the final prices is {most:.4g}, the optimum {best.objective:.4g}"
        lab.add(best.objective <= most * (1 + TOLERANCE) and within, instance, [ARGUMENT, P1], above)
        shows += states is not None
    lab.numbers = {"shown": shows}
    return f"fails on {lab} instances; {shows} of the runs show their ratio, {lab.tested - shows} do not"


@claim(
    "hadar.theorem-2.credited",
    "Theorem 2's proof, P_j − P_(j−1)",
    scope="jobs planned anew in each round",
    how="jobs that start and do not complete, on jobs that outbid each other and random ones",
)
def credited(lab: ClaimLab) -> str:
    """A job that is scheduled earns the utility that the proof credits then."""
    kept = lab.within("running jobs that keep their GPUs (mode=incremental)")
    cases = [load(f"family/hadar-outbidding?jobs={jobs}") for jobs in (3, 20)]
    for instance in (*cases, *lab.drawn(draw, 100)):
        v = view(instance)
        if not v.possible.size:
            continue
        for online, count in ((ONLINE, lab), (ARGUMENT, kept)):
            lost = unearned(v, online)
            count.add(not lost, instance, [online, P1], f"{lost} jobs start and never complete")
    return f"a job starts and never completes on {lab} instances; on {kept} if running jobs keep their GPUs"


def unearned(v: HadarView, online: str) -> int:
    """Return how many jobs start, would earn something if they went on, and never complete."""
    policy = POLICIES.get(online).build(v.instance, None)
    trace, slot = in_slots(v.workload, v.servers, policy, v.slot_s, until_s=v.slots * v.slot_s)
    row, job, server, _ = trace.allocation.T
    count = 0
    for j in np.intersect1d(np.flatnonzero(~np.isfinite(trace.completion_s)), job):
        begun = row[job == j].min()
        held = v.servers.gpu_type[server[(job == j) & (row == begun)]]
        end = int(slot[begun]) + float(v.rounds(np.array([j]), v.workload.work[[j]])[0, held].max())
        # A job that would end too late is worth nothing; it gets GPUs that idle, and nothing is credited.
        count += bool(end <= v.slots and v.utilities.value(j, (end - v.arrival[j]) * v.slot_s) > 0)
    return count


def start_of_dual(v: HadarView) -> tuple[float, float]:
    """Return the dual objective D_0 before the first job, as the paper prints it and as we repair it.

    ``1/η`` is the largest that (9) allows.
    """
    pricing = prices(v)
    jobs = np.arange(v.size)
    rounds = v.rounds(jobs, v.workload.work)[:, v.capacity > 0]
    able = rounds.min(axis=1) <= v.slots - v.arrival
    longest = np.where(np.isfinite(rounds), rounds, 0.0).max(axis=1)
    least = float((longest * v.workload.gpus)[able].min(initial=np.inf))
    repaired = v.slots * float(pricing.low @ v.capacity)
    everything = float(v.capacity.sum())
    return repaired * (least / everything) / min(1.0, least / (v.slots * everything)), repaired


@claim(
    "hadar.d0.repaired",
    "Theorem 2's proof, (9)",
    scope="utilities positive at the horizon",
    how="as hadar.d0",
    text="D_0 ≤ OPT/2 with 1/η ≤ t_j^max·W_j/(T·ΣC): the sum over slots kept.",
    repaired=True,
)
@claim(
    "hadar.d0",
    "Theorem 2's proof, (9)",
    scope="utilities positive at the horizon",
    how="D_0 at the largest 1/η that the condition allows, against the certified optimum",
)
def start_is_low(lab: ClaimLab, repaired: bool = False) -> str:
    """D_0 ≤ OPT/2 with 1/η ≤ t_j^max·W_j/ΣC."""
    example = ""
    one_job = linear([worth(1.0, 40, {"a": 1.0}, gpus=4)], {"a": 60}, slots=100)
    for instance in (one_job, *lab.drawn(draw, 60)):
        v = view(instance)
        if not v.possible.size or prices(v).floored:
            continue
        start = start_of_dual(v)[repaired]
        best = solved("hadar.p2.columns" if v.size == 1 else P1, v).solution
        if best.status != "optimal" or not best.objective:
            continue
        shown = f"D_0 = {start:.4g} > OPT/2 = {best.objective / 2:.4g}"
        lab.add(start <= best.objective / 2 * (1 + TOLERANCE), instance, [ONLINE, "hadar.p2.columns"], shown)
        example = example or f"D_0 = {start:.4g}, OPT = {best.objective:.4g}"
    return f"T = 100, ΣC = 60, W·t_max = 40, U = 1: {example}; D_0 > OPT/2 on {lab} instances"


def one_by_one(v: HadarView) -> tuple[Array, float]:
    """Return the ``(admitted, 2)`` increments of P2 and P3 by each job, and the least α for which Definition 1 holds.

    As in the proof, each job is decided once, at its arrival: it takes its schedule of highest payoff, (4), at the
    current prices (5), if that payoff is positive and there is room, and raises the prices of what it takes.
    """
    pricing, columns, hosts = prices(v), schedules(v), v.servers
    used, alpha, steps = np.zeros((v.slots, hosts.size), np.int64), 1.0, []
    for job in np.argsort(v.arrival, kind="stable"):
        price = pricing.price(hosts.gpu_type, used, hosts.gpus)
        best, taken = 0.0, np.zeros_like(used)
        for s in np.flatnonzero(columns.job == job):
            cells = columns.schedule == s
            held = _cheapest(columns.slot[cells], columns.gpu_type[cells], columns.gpus[cells], hosts, used, price)
            if held is not None and columns.utility[s] - float((held * price).sum()) > best:
                best, taken = float(columns.utility[s] - (held * price).sum()), held
        if best > 0:
            used = used + taken
            rise = (pricing.price(hosts.gpu_type, used, hosts.gpus) - price) * hosts.gpus
            cost = taken * price
            alpha = max(alpha, float((rise[taken > 0] / cost[taken > 0]).max()))
            steps.append((best + cost.sum(), best + rise.sum()))
    return np.array(steps).reshape(-1, 2), alpha


def _cheapest(slot: Ints, gpu_type: Ints, gpus: Ints, hosts: Servers, used: Ints, price: Array) -> Ints | None:
    """Return the ``(T, h)`` cheapest free GPUs with the given numbers by slot and type; ``None`` if too few."""
    held = np.zeros_like(used)
    for t, kind, count in zip(slot.tolist(), gpu_type.tolist(), gpus.tolist(), strict=True):
        of = np.flatnonzero(hosts.gpu_type == kind)
        for h in of[np.argsort(price[t, of], kind="stable")]:
            held[t, h] = min(count - held[t, of].sum(), hosts.gpus[h] - used[t, h])
        if held[t, of].sum() < count:
            return None
    return held


@claim(
    "hadar.lemma-1",
    "Theorem 2's proof, Lemma 1",
    scope="each job decided once, at its arrival, by (4)",
    how="two gangs that do not fit together and random instances, with the least α for which the condition holds, and "
    "the certified optimum of P1",
)
def lemma_1(lab: ClaimLab) -> str:
    """If P_j − P_{j−1} ≥ (D_j − D_{j−1})/α for all jobs, P_0 = 0 and D_0 ≤ OPT/2, Algorithm 1 is 2α-competitive."""
    largest = 0.0
    # Two of 16 GPUs are taken for both slots, and a gang of 15 finds no room. The price at that load is nearly U_min,
    # so that its payoff is positive; but its μ stays 0, which violates (3a), and D is not at least OPT.
    apart = linear([worth(1.0, 4, {"a": 1.0}, 2), worth(15.0, 15, {"a": 1.0}, 15)], {"a": 16}, slots=2)
    for instance in (apart, *lab.drawn(draw, 150)):
        v = view(instance)
        best = solved(P1, v).solution if v.possible.size else None
        if best is None or best.status != "optimal" or not best.objective:
            continue
        if v.slots * float(prices(v).low @ v.capacity) > best.objective / 2:
            continue
        try:
            steps, _ = one_by_one(v)
        except NotApplicableError:  # a few draws have too many schedules to list
            continue
        alpha = float((steps[:, 1] / steps[:, 0]).max(initial=1.0))
        reached = float(steps[:, 0].sum())
        shown = f"P = {reached:.4g} < OPT/2α = {best.objective / (2 * alpha):.4g}, α = {alpha:.4g}"
        lab.add(reached >= best.objective / (2 * alpha) * (1 - TOLERANCE), instance, [ONLINE, P1], shown)
        largest = max(largest, best.objective / (2 * alpha * reached) if reached else np.inf)
    return f"fails on {lab} instances; largest OPT/(2α·P): {largest:.3g}"


@claim(
    "hadar.lemma-2",
    "Theorem 2's proof, Lemma 2",
    scope="each job decided once, at its arrival, by (4)",
    how="on random instances, with the least α for which Definition 1 holds",
)
def lemma_2(lab: ClaimLab) -> str:
    """If the allocation-cost relationship holds for α ≥ 1, P_j − P_{j−1} ≥ (D_j − D_{j−1})/α for all jobs."""
    largest = 0.0
    for instance in lab.drawn(draw, 200):
        steps, alpha = one_by_one(view(instance))
        for primal, dual in steps:
            shown = f"P_j − P_(j−1) = {primal:.4g} < (D_j − D_(j−1))/α = {dual / alpha:.4g}, α = {alpha:.4g}"
            lab.add(primal >= dual / alpha * (1 - TOLERANCE), instance, [ONLINE], shown)
            largest = max(largest, dual / alpha / primal)
    return f"fails for {lab} jobs; largest (D_j − D_(j−1))/α, of P_j − P_(j−1): {largest:.3g}"


@claim(
    "hadar.unused",
    "section IV-B, GPU resource utilisation",
    how="rounds of gen/20jobs?load=4 in which a job waits; one fails where a waiting gang fits on idle GPUs",
)
def unused(lab: ClaimLab) -> str:
    """The number of GPUs left unused is minimized."""
    instance = load("gen/20jobs?load=4")
    jobs, hosts = workload(instance), servers(instance)
    counts = {
        "": lab,
        "payoff=lifetime": lab.within("the cost of all rounds in the payoff, as (8) is printed (payoff=lifetime)"),
        "conserving=true": lab.within("idle GPUs given to jobs without a payoff (conserving=true)"),
    }
    for setting, count in counts.items():
        policy = f"hadar.online?{setting}".removesuffix("?")
        trace = simulate(jobs, hosts, POLICIES.get(policy).build(instance, None), round_s=360.0)
        for row, start_s in enumerate(trace.start_s):
            runs = trace.assignment(row)
            free = hosts.gpus - np.bincount(runs.server, runs.gpus, hosts.size)
            there = np.flatnonzero((jobs.arrival_s <= start_s) & (trace.completion_s > start_s))
            waits = np.setdiff1d(there, runs.job)
            if waits.size:
                room = (jobs.rates[waits][:, hosts.gpu_type] > 0) @ free
                shown = f"{policy}: in round {row + 1} a waiting gang fits on {free.sum():g} idle GPUs"
                count.add(not (room >= jobs.gpus[waits]).any(), instance, [policy], shown)
    named = (f"{count} rounds {f'with {setting}' if setting else 'by default'}" for setting, count in counts.items())
    return f"a waiting gang fits on idle GPUs in {', '.join(named)}"


def fig_1(slots: int) -> Instance:
    """Return the instance of Fig. 1 with another horizon."""
    return load(FIG_1).model_copy(update={"horizon": Horizon(slot_s=1.0, slots=slots), "published": ()})


@claim(
    "hadar.fig-1.rounds",
    "Fig. 1(b)",
    scope="gangs all or nothing, (1e)",
    how="P1 with every job completed and a horizon of 5 and of 6 rounds, by MILP",
)
def fig_1_rounds(lab: ClaimLab) -> str:
    """Hadar completes the three jobs in 5 rounds."""
    method = f"{P1}.complete"
    status = {slots: certified(fig_1(slots), [method])[method].status for slots in (5, 6)}
    shown = "no schedule of gangs completes all jobs in 5 rounds: infeasible"
    lab.add(status[5] == "optimal", fig_1(5), [method], shown)
    lab.numbers = {"least_rounds": min((s for s in status if status[s] == "optimal"), default=0)}
    return f"a horizon of 5 rounds: {status[5]}; of 6 rounds: {status[6]}"


@claim(
    "hadar.fig-1.cru",
    "section II-A, last paragraph",
    scope="gangs all or nothing, (1e)",
    how="the GPUs of every set of jobs",
)
def fig_1_utilisation(lab: ClaimLab) -> str:
    """Hadar's cluster utilisation approaches 100 % in the first round."""
    instance = load(FIG_1)
    gpus, gang = instance.cluster.gpus, [job.gpus for job in instance.jobs]
    sums = sorted({sum(subset) for n in range(1, len(gang) + 1) for subset in combinations(gang, n)})
    shown = f"gangs of {gang} GPUs sum to {sums}, never to {gpus}"
    lab.add(gpus in sums, instance, [P1], shown)
    return f"{shown}; at most {max(s for s in sums if s <= gpus)} of {gpus} GPUs are in use"


Y_GAVEL = np.array([[0.6, 0.4, 0.0], [0.2, 0.6, 0.2], [0.2, 0.0, 0.8]])
"""Section II-A: the fractions of time that each job of Fig. 1 runs on V100, P100 and K80."""


@claim(
    "hadar.y-gavel",
    "section II-A, the matrix Y^Gavel",
    how="epochs per round of each job under the printed shares, against its best type all the time",
)
def printed_shares(lab: ClaimLab) -> str:
    """Y^Gavel is the optimal allocation if the cluster has sufficient capacity."""
    v = view(load(FIG_1))
    reached, best = (v.progress * Y_GAVEL).sum(axis=1), v.progress.max(axis=1)
    epochs = []
    for name, mine, most in zip(v.workload.ids, reached, best, strict=True):
        lab.add(mine >= most * (1 - TOLERANCE))
        epochs.append(f"{name} {mine:g} of {most:g}")
    used = zip(v.workload.gpus @ Y_GAVEL, v.capacity, v.workload.gpu_types, strict=True)
    taken = ", ".join(f"{gpus:.2g} of {there} {name}" for gpus, there, name in used)
    return (
        f"epochs per round, of those on the best type: {', '.join(epochs)}. All jobs have the best at once "
        f"where each type serves one job (the columns of Y^Gavel sum to 1). In GPUs, the shares take {taken}"
    )


@claim(
    "hadar.theorem-3.weak",
    "HadarE, Theorem 3",
    scope="a job longer than a round",
    how="as hadar.theorem-3",
    text="No number of copies has a higher utilisation than n copies on n nodes.",
    strict=False,
)
@claim(
    "hadar.theorem-3",
    "HadarE, Theorem 3, (11)",
    scope="a job longer than a round",
    how="Cases I to III of the proof for 2–8 nodes and 2–20 rounds",
)
def more_copies_are_better(lab: ClaimLab, strict: bool = True) -> str:
    """CRU with 1 copy < with x copies < with n copies, for 1 < x < n."""
    for nodes in range(2, 9):
        for rounds in range(2, 21):
            full = utilisation(rounds, nodes, nodes)
            for copies in range(1, nodes):
                share = utilisation(rounds, nodes, copies)
                grows = share < full and (copies == 1 or utilisation(rounds, nodes, 1) < share)
                lab.add(grows if strict else share <= full)
    shares = [utilisation(2, 3, x) for x in range(1, 4)]
    listed = ", ".join(f"{share:.0%}" for share in shares)
    lab.numbers = {"shares": shares}
    if strict:
        three = [f"node {i + 1}" for i in range(3)]
        job = {"gpus": 1, "epochs": 2, "rates": dict.fromkeys(three, 1.0)}
        shows = "one job of 2 rounds on 3 nodes: 2 and 3 copies both take one round at 67 %"
        lab.also = [Witness(linear([job], dict.fromkeys(three, 1), slots=6), ("hadar.hadare",), shows)]
    return f"fails in {lab} cases of 2–8 nodes and 2–20 rounds; R_1 = 2, n = 3: {listed} with 1 to 3 copies"


MIXES = ("M-1", "M-3", "M-4", "M-5", "M-8", "M-10", "M-12")
"""The mixes of section VI-B."""

BATCHES = [f"gen/hadar-{name}?mix={mix}" for name in ("aws", "testbed") for mix in MIXES]
"""These mixes on the two clusters."""


@claim(
    "hadar.theorem-3.mixes",
    "HadarE, Theorem 3, (14)",
    scope="batches of jobs",
    how="CRU of the seven mixes of both clusters with 1 to 5 copies, rounds of 360 s",
)
def more_copies_of_a_batch(lab: ClaimLab) -> str:
    """For m jobs in a batch, CRU with 1 copy < with x copies < with n copies, for 1 < x < n."""
    falls = []
    for ref in BATCHES:
        instance = load(ref)
        traces = [_forked(instance, f"hadar.hadare?copies={copies}") for copies in range(1, 6)]
        shares = [float(trace.node_utilisation.mean()) for trace in traces]
        listed = ", ".join(f"{share:.1%}" for share in shares)
        for copies in range(2, 5):
            grows = shares[0] < shares[copies - 1] < shares[-1]
            lab.add(grows, instance, [f"hadar.hadare?copies={copies}", "hadar.hadare"], f"{ref}: {listed}")
        if max(shares[:-1]) > shares[-1]:
            falls.append(f"{ref.removeprefix('gen/hadar-')}: {listed}")
    example = f", as on {falls[0]} with 1 to 5 copies" if falls else ""
    return f"fails in {lab} cases; on {len(falls)} of 14 mixes the CRU is larger with fewer copies than 5{example}"


def _forked(instance: Instance, policy: str) -> Trace:
    """Return the history of HadarE, with these settings, in rounds of 360 s."""
    built = POLICIES.get(policy).build(instance, None)
    return simulate(workload(instance), servers(instance), built, round_s=360.0, forks=True)


@claim(
    "hadar.corollary",
    "HadarE, Corollary of Theorem 3",
    how="rounds of 360 s on the seven mixes of both clusters, all but the last; one fails where a node has no copy",
)
def no_idle_node(lab: ClaimLab) -> str:
    """With n copies of every job on n nodes, no node idles in any round but possibly the last."""
    busy = []
    for ref in BATCHES:
        instance = load(ref)
        trace = _forked(instance, "hadar.hadare")
        for row in range(trace.rounds - 1):
            nodes, size = len(np.unique(trace.assignment(row).server)), trace.servers.size
            shown = f"in round {row + 1}, {nodes} of {size} nodes have a copy"
            lab.add(nodes == size, instance, ["hadar.hadare"], shown)
        busy += trace.node_utilisation[:-1].tolist()
    return (
        f"a node has no copy in {lab} rounds; nodes that have done their steps wait for the next round, so they "
        f"compute for {np.mean(busy):.0%} of these rounds on average, and at least "
        f"{rounded(100 * min(busy), 0, 'at least')} %"
    )


@claim("hadar.slip.m-5", "section VI-C, TTD of M-5", how="recomputed from the printed seconds")
def slip_m5(lab: ClaimLab) -> str:
    """4200 s against 3900 s (AWS) is a speedup of 1.18, 3300 s against 2800 s (testbed) one of 1.15."""
    text = recomputed(lab, Printed("AWS", 1.18, 4200 / 3900, 0.005), Printed("testbed", 1.15, 3300 / 2800, 0.005))
    return f"{text}; if seconds are rounded: {_rounded(4200, 3900, 50)} and {_rounded(3300, 2800, 50)}"


@claim("hadar.slip.yarn-cs", "section IV-B, TTD", how="recomputed from the printed hours")
def slip_yarn(lab: ClaimLab) -> str:
    """68 h of YARN-CS against 40 h of Hadar is 1.67 times."""
    text = recomputed(lab, Printed("TTD ratio", 1.67, 68 / 40, 0.005))
    return f"{text}; if hours are rounded: {_rounded(68, 40, 0.5)}"


def _rounded(one: float, other: float, half: float) -> str:
    """Return the range of the ratio of two numbers that are each rounded by up to `half`."""
    return f"{(one - half) / (other + half):.3f} to {(one + half) / (other - half):.3f}"
