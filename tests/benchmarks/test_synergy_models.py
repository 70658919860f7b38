"""Synergy's ILP1 and LP2 against their statements as printed, the part of Pyomo in the time, and growth with jobs."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from synergy_rounds import best_on_servers

from schedgap import instances, models
from schedgap.harness.check.registry import judge_asked
from schedgap.instances.random_instances.synergy import draw, mix, pipelines, servers
from schedgap.instances.schema import Instance
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import SynergyView
from schedgap.models.engine.solve import SolveOptions, Times

Make = Callable[..., Instance]
COUNT = int(os.environ.get("BENCH_INSTANCES", "1000"))
FAMILIES = [pytest.param(mix, id="catalogue"), pytest.param(pipelines, id="pipelines")]


def full(make: Make, jobs: int) -> SynergyView:
    """Return a view of Synergy's servers, filled by single-GPU jobs."""
    return synergy.view(make(jobs, [servers(jobs // 8)], gangs=(1,)))


def shares(times: Times) -> str:
    parts = (("build", times.build_s), ("transfer", times.transfer_s), ("HiGHS", times.solve_s))
    return ", ".join(f"{name} {1000 * seconds:.3g} ms" for name, seconds in parts)


@pytest.mark.parametrize("make", FAMILIES)
@pytest.mark.parametrize("jobs", [200, 512])
def test_ilp1_against_the_letter(bench, make: Make, jobs: int) -> None:  # type: ignore[no-untyped-def]
    view = full(make, jobs)
    ours, letter = models.get("synergy.ilp1"), models.get("synergy.ilp1.unpruned")
    found, other = [], []
    seconds = bench.time(lambda: found.append(ours.run(view).solution))
    limit = SolveOptions(time_limit_s=20)
    reference = bench.reference(lambda: other.append(letter.run(view, limit).solution), rounds=1)
    columns = f"{found[-1].size.columns} columns instead of {other[-1].size.columns}"
    note = f"{columns}; {shares(found[-1].times)}; optima {found[-1].objective:.6f}, {other[-1].objective:.6f}"
    capped = other[-1].status != "optimal"
    name = f"ILP1, {jobs} jobs, {make.__name__}, against un-pruned"
    bench.line(name, seconds, reference, "≥ 5×, ≤ 0.2 s", note, most=0.2, least=5.0, capped=capped)


@pytest.mark.parametrize("make", FAMILIES)
@pytest.mark.parametrize(("jobs", "count", "target"), [(60, 15, 25), (128, 16, 60), (512, 64, None)])
def test_ilp1_and_lp2_in_a_round(bench, make: Make, jobs: int, count: int, target: int | None) -> None:  # type: ignore[no-untyped-def]
    gangs = (1,) if jobs > 8 * count / 2 else (1, 1, 1, 2, 4)
    view = synergy.view(make(jobs, [servers(count)], gangs=gangs))
    spec = models.get("synergy.lp2.vertex")
    found = []
    seconds = bench.time(lambda: found.append(spec.run(view).solution), rounds=9)
    name = f"ILP1 + LP2, {jobs} jobs, {count} servers, {make.__name__}"
    most = None if target is None else target / 1000
    bench.line(name, seconds, None, f"≤ {target} ms" if target else "–", shares(found[-1].times), most=most)


def test_fewest_fragments(bench) -> None:  # type: ignore[no-untyped-def]
    view = full(mix, 128)
    spec = models.get("synergy.lp2.min_fragments")
    found = []
    seconds = bench.time(lambda: found.append(spec.run(view, SolveOptions(time_limit_s=20)).solution), rounds=1)
    solution = found[-1]
    note = f"{solution.status}: {solution.objective} fragmented, bound {solution.bound}"
    bench.line("fewest fragments, 128 jobs, 16 servers", seconds, None, "–", note)


SIZES = (64, 128, 256, 512)


@pytest.mark.parametrize("method", ["synergy.lp1", "synergy.ilp1", "synergy.lp2.vertex"])
@pytest.mark.parametrize("make", FAMILIES)
def test_growth_of_a_round(bench, make: Make, method: str) -> None:  # type: ignore[no-untyped-def]
    spec, views = models.get(method), [full(make, jobs) for jobs in SIZES]
    seconds = [bench.reference(lambda v=v: spec.run(v)) for v in views[:-1]]
    seconds.append(bench.time(lambda: spec.run(views[-1])))
    bench.growth(f"{method} over jobs, {make.__name__}", SIZES, seconds)


def test_growth_of_the_bound_on_the_run(bench) -> None:  # type: ignore[no-untyped-def]
    sizes = (1000, 2000, 4000, 8000)
    spec = models.get("synergy.jct")
    views = [synergy.view(instances.load(f"gen/2000jobs?jobs={n}")) for n in sizes]
    seconds = [bench.reference(lambda v=v: spec.run(v)) for v in views[:-1]]
    seconds.append(bench.time(lambda: spec.run(views[-1])))
    bench.growth("bound on the mean completion time over jobs", sizes, seconds)


@pytest.mark.parametrize("name", ["servers", "servers.queue"])
def test_rounds_on_servers_against_brute_force(bench, name: str) -> None:  # type: ignore[no-untyped-def]
    """On 1,000 random instances, no round is better than the bound, and how many optima and tight bounds there are."""
    spec, rng, fair = models.get(f"synergy.{name}"), np.random.default_rng(11), name == "servers"
    tried, found, tight, wrong = 0, 0, 0, []

    def run() -> None:
        nonlocal tried, found, tight
        for number in range(COUNT):
            view = synergy.view(draw(rng, jobs=3, chips=("V100", "K80")[: 1 + number % 2]))
            outcome = spec.run(view)
            best = best_on_servers(view, view.runnable if fair else view.queue, fair)
            value, bound = outcome.solution.objective, outcome.solution.bound
            verdict = judge_asked(view, outcome.decision, spec.problem, ())
            tried += 1
            found += value >= best * (1 - 1e-6)
            tight += bound <= best * (1 + 1e-6)
            if verdict.violations or not value * (1 - 1e-6) <= best <= bound * (1 + 1e-6):
                wrong.append(f"number {number}: {value}, {best}, {bound}, {verdict.violations[:1]}")

    seconds = bench.time(run, rounds=1)
    note = f"{found} of {tried} optima found, {tight} bounds tight" + "".join(f"; {said}" for said in wrong[:5])
    bench.line(f"synergy.{name}: rounds on servers against brute force", seconds, None, "all", note)
    assert not wrong
