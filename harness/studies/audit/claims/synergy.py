"""Synergy (Mohan et al.): Theorems 4.1 and A.2, what Tune promises, errata of the programs, slips, Figs. 2 and 5."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import cast

import numpy as np

from schedgap.harness.check import TOLERANCE
from schedgap.harness.show.text import rounded
from schedgap.harness.studies.adversary.families import point
from schedgap.harness.studies.audit.lab import ClaimLab, Printed, certified, recomputed
from schedgap.harness.studies.audit.row import claim
from schedgap.heuristics.synergy.profiling import estimated, profiling, relative_error
from schedgap.instances import load
from schedgap.instances.arrays import Array
from schedgap.instances.families import HARD
from schedgap.instances.model_catalogue import MODELS
from schedgap.instances.random_instances.synergy import draw, instance, job, matrix, mix, pipelines, servers
from schedgap.instances.schema import Instance, MatrixSensitivity
from schedgap.instances.views.synergy import SynergyView, view
from schedgap.models.engine.solve import Session, SolveOptions, StandardForm, build, solve
from schedgap.models.engine.solve.session import interior_point
from schedgap.models.synergy.ideal import ideal_round
from schedgap.models.synergy.placement import Demands, demands, placed, placement_form
from schedgap.models.synergy.throughput import RELAXED, build_round

EXACT = SolveOptions(rel_gap=0.0)
LP1, ILP1 = "synergy.lp1", "synergy.ilp1"
TUNES = ("synergy.tune", "synergy.tune?order=policy&fit=first")
ROUNDS = ("synergy.opt", *TUNES, "synergy.proportional")

VISIBLE = 0.01
"""Smallest fraction of a job on a server that counts, because an interior-point method leaves tiny ones everywhere."""

SLACK = 1e-9


@claim(
    "synergy.theorem-4.1",
    "Theorem 4.1 (A.1)",
    scope="one GPU type, everybody at least at its fair progress",
    how="LP1 ≥ its optimum in integers ≥ every verified round, on random tables of up to 5 jobs",
)
def theorem_4_1(lab: ClaimLab) -> str:
    """LP1 is at least the throughput of an optimal solution."""
    tightest = np.inf
    for case in lab.drawn(draw, 50):
        rows = certified(case, [LP1, ILP1, *ROUNDS])
        bound, best = rows[LP1].own_bound, rows[ILP1].objective
        if rows[ILP1].status != "optimal" or bound is None or best is None:
            continue
        rounds = [row.objective for name in ROUNDS if (row := rows[name]).verified and row.objective is not None]
        highest = max([best, *rounds])
        shown = f"LP1 {bound:.6g}, largest of ILP1 and rounds {highest:.6g}"
        fine = bound >= highest * (1 - TOLERANCE)
        lab.add(fine, case, [LP1, ILP1, *ROUNDS], shown)
        tightest = min(tightest, bound / best if best else np.inf)
    lab.numbers = {"least_ratio": float(tightest)}
    return f"LP1 was too low on {lab} instances; it is at least {rounded(tightest, 4, 'at least')} times the ILP"


def wanted(v: SynergyView) -> Demands | None:
    """Return the demands that ILP1 assigns to the jobs of the round, or ``None`` if it has no solution."""
    ideal = ideal_round(v, EXACT)[1]
    return None if ideal is None else demands(v, ideal)


def lp2(needs: Demands, cost: Array) -> StandardForm:
    """Return LP2 with the given cost of each part of a demand on a server."""
    return placement_form(needs.part, needs.host, needs.demand, needs.count, np.ones((3, len(needs.hosts))), cost)


@claim(
    "synergy.theorem-a.2.vertices",
    "Theorem A.2",
    scope="vertices of LP2, which the simplex method finds",
    how="LP2 at random objectives, fragmented jobs counted",
)
def theorem_a_2(lab: ClaimLab) -> str:
    """LP2 fragments at most 3s jobs."""
    rng, costs, most = lab.rng("crowds"), lab.rng("costs"), 0.0
    for _ in range(lab.times(25)):
        count, seed = int(rng.integers(1, 7)), int(rng.integers(10**6))
        case = (pipelines if rng.random() < 0.5 else mix)(12 * count, [servers(count)], seed=seed)
        v = view(case)
        needs = wanted(v)
        if needs is None:
            continue
        form = lp2(needs, costs.random(len(needs.host)))
        x = Session(form, SolveOptions(method="simplex")).run().column_values
        if x is None:
            continue
        split = int((np.bincount(placed(v, needs, x).job) > 1).sum())
        most = max(most, split / (3 * v.servers.size))
        shown = f"{split} fragmented jobs on {v.servers.size} servers"
        lab.add(split <= 3 * v.servers.size, case, ["synergy.lp2.vertex"], shown)
    lab.numbers = {"most": most}
    return f"more than 3s in {lab} rounds; at most {rounded(most, 2, 'at most')} of 3s"


def different_jobs(count: int = 16, hosts: int = 2) -> Instance:
    """Return `count` jobs of one GPU with pairwise different demands."""
    jobs = [job(rates={"V100": 1.0}, sensitivity=matrix((1.0 + i / 16,), (30.0 + i,), [[1.0]])) for i in range(count)]
    return instance(jobs, [servers(hosts)], name="different jobs")


@claim(
    "synergy.theorem-a.2.interior",
    "Theorem A.2",
    scope="also solutions of interior-point methods",
    how="LP2 without objective, as printed, by HiGHS' interior-point method without crossover",
)
def theorem_a_2_interior(lab: ClaimLab) -> str:
    """Any optimal solution of LP2 fragments at most 3s jobs."""
    splits = []
    for jobs, hosts in ((16, 2), (24, 3), (32, 4)):
        case = different_jobs(jobs, hosts)
        needs = wanted(view(case))
        if needs is None or len(needs.count) < jobs:
            continue
        x = interior_point(lp2(needs, np.zeros(len(needs.host))))
        split = int((np.bincount(needs.demand, x > VISIBLE) > 1).sum())
        shown = f"an interior point splits {split} of {jobs} jobs on {hosts} servers, 3s = {3 * hosts}"
        lab.add(split <= 3 * hosts, case, ["synergy.lp2.vertex", "synergy.lp2.min_fragments"], shown)
        splits.append(f"{split} of {jobs} jobs on {hosts} (3s = {3 * hosts})")
    return f"interior points split: {', '.join(splits)}"


@claim(
    "synergy.tune.clamped",
    "section 4.2, last paragraph",
    scope="demands reduced elementwise to min(demand, share), in the text's order and in the artefact's",
    how="synergy.tune on random rounds, verified: within every server's capacity, nobody below its fair progress",
)
def tune_clamped(lab: ClaimLab) -> str:
    """Synergy-Tune's throughputs are never below GPU-proportional ones."""
    rng = lab.rng("mixes")
    for drawn in lab.drawn(draw, 100, jobs=8):
        for case in (drawn, mix(16, [servers(2)], seed=int(rng.integers(10**6)))):
            for name, row in certified(case, TUNES).items():
                lab.add(bool(row.verified), case, [name], "; ".join(row.violations))
    return f"violated in {lab} rounds of up to 16 jobs"


SERVER = np.array([8.0, 24.0, 500.0])
"""GPUs, CPUs and gigabytes of Synergy's server."""

THREE = np.array([[4, 20.0, 100.0], [3, 4.0, 330.0], [1, 3.0, 62.5]])
"""GPUs, CPUs and gigabytes of A, B and C. C lacks 3 CPUs; switching A to its share frees eight, and takes 150 GB."""


def three_jobs() -> Instance:
    """Return the server with A, B and C, whose progress grows up to their demands."""
    jobs = []
    for name, (gpus, all_cpus, all_memory_gb) in zip("ABC", THREE.tolist(), strict=True):
        cpus, memory_gb = all_cpus / gpus, all_memory_gb / gpus
        levels = sorted({1.0, min(3.0, cpus), cpus}), sorted({20.0, min(62.5, memory_gb), memory_gb})
        grown = matrix(*levels, [[(c / cpus + m / memory_gb) / 2 for m in levels[1]] for c in levels[0]])
        jobs.append(job(gpus=int(gpus), rates={"V100": 1.0}, id=name, sensitivity=grown))
    return instance(jobs, [servers(1)], name="three jobs")


def switched_total(demand: Array, everybody: bool) -> Array:
    """Return the GPUs, CPUs and gigabytes in use after other jobs are switched to their shares to place the last job.

    `demand` is ``(jobs, 3)``; all jobs but the last fit together. Either all jobs above their share in some
    dimension (`everybody`) are switched, or the fewest that release what the last job lacks.
    """
    share = demand[:, :1] * SERVER / SERVER[0]
    above = (demand > share + SLACK).any(axis=1)
    held = demand.copy()
    if above[-1]:  # step 1
        held[-1] = share[-1]
    peers = [i for i in range(len(demand) - 1) if above[i]]
    missing = held.sum(axis=0) - SERVER
    released = np.maximum(demand - share, 0.0)
    sets = [peers] if everybody else [list(subset) for n in range(len(peers) + 1) for subset in combinations(peers, n)]
    for subset in sets:
        if everybody or (released[subset].sum(axis=0) >= missing - SLACK).all():
            held[subset] = share[subset]
            break
    return np.asarray(held.sum(axis=0))


@claim(
    "synergy.tune.switched-all",
    "section 4.2, step 2 (a)",
    how="as synergy.tune.switched",
    text="Switching all jobs above their share in some dimension to exactly their shares makes the next job fit.",
    everybody=True,
)
@claim(
    "synergy.tune.switched",
    "section 4.2, step 2 (a)",
    scope="the fewest jobs that release enough, each switched to exactly its share",
    how="three jobs with random demands on a server of 8 GPUs, 24 CPUs and 500 GB",
)
def switching(lab: ClaimLab, everybody: bool = False) -> str:
    """Switching a set of jobs to their shares that releases what the next job misses makes it fit."""
    # A job above its share in one dimension can be below it in the other, and grow when switched. If all such peers are
    # switched, no job is above its share in any dimension.
    rng = lab.rng()
    cases = [THREE]
    while len(cases) < 1 + lab.times(500):
        gpus = rng.multinomial(5, [1 / 3] * 3) + 1
        demand = np.column_stack((gpus, rng.integers(1, 25, 3), rng.integers(20, 500, 3))).astype(float)
        if (demand[:2].sum(axis=0) <= SERVER).all() and (demand.sum(axis=0) > SERVER).any():
            cases.append(demand)
    used = switched_total(THREE, everybody)
    shown = f"A (4, 20, 100), B (3, 4, 330), C (1, 3, 62.5): {used[1]:g} of 24 CPUs and {used[2]:g} of 500 GB in use"
    for k, demand in enumerate(cases):
        fits = bool((switched_total(demand, everybody) <= SERVER + SLACK).all())
        lab.add(fits, None if k else three_jobs(), ["synergy.tune", "synergy.proportional"], shown)
    return f"the server overflows in {lab} cases of three jobs; {shown}"


WITHIN = 1 / 0.9
"""Ratio of an optimum to a value that is within 10 % of it."""


@claim(
    "synergy.tune.ten-percent",
    "section 5.6",
    scope="any jobs; the paper measured it with its own on 128 GPUs, and proves nothing",
    how="equal jobs with an odd one, and random rounds, against verified rounds",
)
def ten_percent(lab: ClaimLab) -> str:
    """Synergy-Tune converges at allocations that are within 10 % of the optimal value."""
    odd = HARD.get("synergy-odd-one")
    tune, peers = "synergy.tune", ("synergy.refill", "synergy.opt")
    found = [point(odd, tune, gpus) for gpus in (2, 8, 32)]
    for one in found:
        shows = f"a verified round is {one.ratio:.4g} times better than {tune}"
        lab.add(one.ratio <= WITHIN, load(one.ref), [tune, *peers], shows)
    for case in lab.drawn(draw, 60, jobs=8):
        row = certified(case, [tune, *peers])[tune]
        if (ratio := row.ratio_at_least) is not None:
            lab.add(ratio <= WITHIN, case, [tune, *peers], f"a verified round is {ratio:.4g} times better than {tune}")
    listed = "; ".join(f"{one.ratio:.4g} times better on {one.ref}" for one in found)
    return f"a verified round is {listed}; more than 10 % better in {lab} rounds"


@claim(
    "synergy.lp1.shares",
    "(5)",
    scope="shares off the grid of the matrix, rounded up to it",
    how="eight jobs on a server whose share per GPU, 2.5 CPUs, lies between the levels 2 and 3",
)
def shares_rounded_up(lab: ClaimLab) -> str:
    """LP1 has a solution, since everybody can get its share."""
    rising = matrix((1.0, 2.0, 3.0), (10.0,), [[1.0], [2.0], [3.0]])
    case = instance([job(sensitivity=rising)] * 8, [servers(1, cpus=20.0)], name="shares between levels")
    v = view(case)
    upward = replace(v, needs=replace(v.needs, fair=v.profiles.rate[:, :, 2, 0]))
    cases = {"up": upward, "down": v}
    status = {name: solve(build(build_round, one, RELAXED), EXACT).status for name, one in cases.items()}
    shown = f"LP1 with shares rounded up: {status['up']}, rounded down: {status['down']}"
    lab.add(status["up"] == "optimal", case, [LP1], shown)
    return shown


TABLE_5 = {"deployed": (16, 11.6, 4.81, 3.21, 17.32, 8.59), "simulated": (15.67, 11.33, 4.52, 3.19, 16.85, 8.54)}
"""Hours of makespan, mean JCT and 99th percentile JCT, each first of proportional shares, then of Tune."""


@claim("synergy.slip.table-5", "Table 5, caption", scope="deployed and simulated", how="recomputed from its hours")
def table_5(lab: ClaimLab) -> str:
    """Tune improves makespan by 1.4, average JCT by 1.5 and 99th percentile JCT by 2."""
    claimed = (("makespan", 1.4, 0.05), ("JCT", 1.5, 0.05), ("p99", 2, 0.5))
    numbers = [
        Printed(f"{metric}, {where}", improved, hours[2 * i] / hours[2 * i + 1], tolerance)
        for where, hours in TABLE_5.items()
        for i, (metric, improved, tolerance) in enumerate(claimed)
    ]
    deployed = lab.within("the deployed cluster")
    for number in numbers[:3]:
        deployed.add(number.right)
    return recomputed(lab, *numbers)


@claim("synergy.slip.fidelity", "section 5.2, Table 5", how="recomputed from the table's hours")
def slip_fidelity(lab: ClaimLab) -> str:
    """Metrics of the deployed and the simulated cluster differ by less than 5 %."""
    names = [f"{metric} of {who}" for metric in ("makespan", "JCT", "p99") for who in ("proportional", "Tune")]
    lab.numbers = {name: 1 - b / a for name, a, b in zip(names, *TABLE_5.values(), strict=True)}
    for apart in lab.numbers.values():
        lab.add(apart < 0.05)
    return "; ".join(f"{name}: {apart:.1%}" for name, apart in lab.numbers.items())


@claim("synergy.slip.fifo", "section 5.3.2, Fig. 9", how="recomputed from the printed hours")
def slip_fifo(lab: ClaimLab) -> str:
    """81 h reduced to 22 h is an improvement of up to 3.4."""
    return recomputed(lab, Printed("JCT ratio", 3.4, 81 / 22, 0.05))


# ---------------------------------------------------------------- Fig. 2, by the matrices of the artefact

MATRICES = "the throughput matrices of the paper's artefact, per GPU"
IMAGE = ("ShuffleNetv2", "AlexNet", "ResNet18", "MobileNetv2", "ResNet50")
TRANSFORMERS = ("GNMT", "Transformer-XL")


def measured_rates(model: str) -> tuple[Array, Array, Array]:
    """Return the CPUs, gigabytes and ``(CPUs, gigabytes)`` progress of one of the paper's models on one GPU."""
    table = cast(MatrixSensitivity, MODELS[f"Synergy {model}"].sensitivity)
    return np.array(table.cpus_per_gpu), np.array(table.memory_gb_per_gpu), np.array(table.progress)


def faster(model: str, few: float, many: float) -> float:
    """Return how much faster a model is with `many` CPUs per GPU than with `few`, with all memory."""
    cpus, _, rate = measured_rates(model)
    at = dict(zip(cpus.tolist(), rate[:, -1].tolist(), strict=True))
    return float(at[many] / at[few])


def saturating(model: str) -> float:
    """Return the fewest CPUs per GPU at which a model is as fast as with all, with all memory."""
    cpus, _, rate = measured_rates(model)
    return float(cpus[np.argmax(rate[:, -1] >= rate[:, -1].max() * (1 - SLACK))])


@claim("synergy.fig2.alexnet", "section 2.1, Fig. 2(a)", scope="0.05 either way", how=MATRICES)
def fig2_alexnet(lab: ClaimLab) -> str:
    """AlexNet is 3.1 times faster with 12 CPUs per GPU than with 3."""
    return recomputed(lab, Printed("AlexNet, 3 to 12 CPUs", 3.1, faster("AlexNet", 3, 12), 0.05))


@claim("synergy.fig2.resnet18", "section 2.1, Fig. 2(a)", scope="0.05 either way", how=MATRICES)
def fig2_resnet18(lab: ClaimLab) -> str:
    """ResNet18 is 2.3 times faster with 9 CPUs per GPU than with 3."""
    return recomputed(lab, Printed("ResNet18, 3 to 9 CPUs", 2.3, faster("ResNet18", 3, 9), 0.05))


@claim("synergy.fig2.cores", "section 2.1, Fig. 2(a)", how=MATRICES)
def fig2_cores(lab: ClaimLab) -> str:
    """ShuffleNet and ResNet18 need 9 to 24 CPUs per GPU."""
    lab.numbers = {model: saturating(model) for model in ("ShuffleNetv2", "ResNet18")}
    for cpus in lab.numbers.values():
        lab.add(9 <= cpus <= 24)
    return "; ".join(f"{model} is fastest from {cpus:g} CPUs on" for model, cpus in lab.numbers.items())


@claim("synergy.fig2.caption", "Fig. 2, caption", how=MATRICES)
def fig2_caption(lab: ClaimLab) -> str:
    """Transformers need one CPU per GPU, ShuffleNet more than 12."""
    one = lab.within("Transformers")
    for model in TRANSFORMERS:
        lab.add(one.add(saturating(model) <= 1))
    lab.add(saturating("ShuffleNetv2") > 12)
    lab.numbers = {model: saturating(model) for model in (*TRANSFORMERS, "ShuffleNetv2")}
    return "; ".join(f"{model} is fastest from {cpus:g} CPUs on" for model, cpus in lab.numbers.items())


@claim("synergy.fig2.gnmt", "section 2.1", how=MATRICES)
def fig2_gnmt(lab: ClaimLab) -> str:
    """GNMT with 20 GB is as fast as with more memory."""
    _, memory_gb, rate = measured_rates("GNMT")
    lab.add(bool(np.all(rate == rate[:, :1])))
    return f"GNMT at {memory_gb[0]:g} GB has {rate[:, 0].min() / rate.max():.3g} of its fastest rate"


@claim("synergy.fig2.image", "section 1", scope="the fastest gains 3, to 0.5", how=MATRICES)
def fig2_image(lab: ClaimLab) -> str:
    """Some image models are up to 3 times faster with more CPUs than their share."""
    most = max(IMAGE, key=lambda model: faster(model, 3, 24))
    return recomputed(lab, Printed(f"largest gain ({most})", 3, faster(most, 3, 24), 0.5))


# ---------------------------------------------------------------- Fig. 5, profiling

CORES = np.arange(1.0, 25.0)
"""CPUs per GPU that section 3.1 counts."""


@claim(
    "synergy.fig5.points",
    "section 3.1, Fig. 5(b)",
    how="the search of section 3.1 on the artefact's matrix of ResNet18, interpolated to 24 CPUs",
)
def fig5_points(lab: ClaimLab) -> str:
    """Profiling ResNet18 on one GPU takes 8 points instead of 24."""
    cpus, _, rate = measured_rates("ResNet18")
    curve = np.interp(CORES, cpus, rate[:, -1])
    table, found = estimated(CORES, curve.tolist().__getitem__, np.full(1, np.inf))
    lab.add(len(found) == 8)
    lab.within("at most 8 points").add(len(found) <= 8)
    error = float(relative_error(table[:, 0], curve).max())
    lab.numbers = {"points": len(found), "largest_error": error}
    return f"{len(found)} of {CORES.size} points; rates interpolated between them are within {error:.1%}"


@claim(
    "synergy.fig5.errors",
    "section 3.1, Fig. 5(a)",
    scope="rates that follow the pipeline, which the estimates assume",
    how="a gang of ResNet18 on 8 GPUs, by the pipeline that the catalogue fits to the paper",
)
def fig5_errors(lab: ClaimLab) -> str:
    """Estimates for ResNet18 on 8 GPUs at any amount of memory are within 3 % of the measured rates."""
    model = MODELS["Synergy ResNet18"]
    rates, given = {"V100": model.pipeline.compute * model.rates["V100"]}, model.pipeline.of_gang(8).model_dump()
    found = profiling(view(instance([job(model.name, 8, rates=rates, sensitivity=given)], [servers(1)])))
    lab.numbers = {"largest_error": float(found.error.max())}
    lab.add(lab.numbers["largest_error"] <= 0.03)
    return f"largest error {found.error.max():.2%} over {found.error.shape[2]} amounts of memory"


@claim("synergy.fig5.minutes", "sections 1 and 3.1", how="recomputed from the printed numbers")
def fig5_minutes(lab: ClaimLab) -> str:
    """All CPUs and memory take 240 minutes, with estimates 24, with 8 points 8, which is up to 30 times less."""
    return recomputed(
        lab,
        Printed("minutes for 24 CPUs and 10 amounts of memory", 240, 24 * 500 / 50, 0.5),
        Printed("times less with estimates", 10, 240 / 24, 0.5),
        Printed("times less with 8 points", 30, 240 / 8, 0.5),
    )
