"""Hadar's P2 by column generation: against the monolithic P1, with and without its levers, and growth with jobs."""

from __future__ import annotations

import time

import pytest

import instances
import models
from instances.registry import PAPERS
from instances.views.hadar import View
from models.columns import GenerationOptions, PackingOptions, generate, pack
from models.hadar.columns import packing
from models.hadar.pricing import Pricing
from models.solve import SolveOptions
from models.solve.session import peak_mb

P1_LIMIT_S = 60.0


def view_of(ref: str) -> View:
    return PAPERS.get("hadar").view(instances.load(ref))


def bound(view: View, **options: float) -> float:
    return generate(packing(view), Pricing(view), GenerationOptions(**options)).bound  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Kernels are compiled before anything is timed."""
    bound(view_of("paper/hadar-fig1"))


def test_bound_against_monolithic_p1(bench) -> None:  # type: ignore[no-untyped-def]
    view = view_of("gen/200jobs")
    found = []
    ours = bench.time(lambda: found.append(bound(view)))
    began = time.perf_counter()
    p1 = models.get("hadar.p1").run(view, SolveOptions(time_limit_s=P1_LIMIT_S)).solution
    seconds = time.perf_counter() - began
    reached = f"its bound {p1.bound}, incumbent {p1.objective}, status {p1.status}; ours {found[-1]:.2f}"
    bench.line("P2 bound, gen/200jobs, against P1 in HiGHS", ours, seconds, "≤ 15 s", reached)


def test_schedule_near_the_bound(bench) -> None:  # type: ignore[no-untyped-def]
    view = view_of("gen/200jobs")
    problem, oracle = packing(view), Pricing(view)
    generated = generate(problem, oracle)
    packed = []
    effort = PackingOptions()
    ours = bench.time(lambda: packed.append(pack(problem, oracle.insert, generated, effort)))
    first = next(p.time_s for p in packed[-1].trace if p.incumbent >= 0.98 * generated.bound)
    gap = 1 - packed[-1].value / generated.bound
    error = generated.unpriced / generated.bound
    note = f"{gap:.2%} below the bound; within 2 % after {first:.2g} s; discretisation error {error:.1g} of the bound"
    bench.line("P2 schedule, gen/200jobs", ours, None, "≤ 2 % in ≤ 30 s", note)


def test_smoothing(bench) -> None:  # type: ignore[no-untyped-def]
    view = view_of("gen/200jobs")
    ours = bench.time(lambda: bound(view))
    bare = bench.reference(lambda: bound(view, smoothing=0.0))
    bench.line("P2 bound, gen/200jobs, smoothing 0.6 against none", ours, bare, "> 1×")


def test_2000_jobs(bench) -> None:  # type: ignore[no-untyped-def]
    """The same day on 600 GPUs."""
    small, large = view_of("gen/200jobs"), view_of("gen/2000jobs")
    models_columns = models.get("hadar.p2.columns")
    before = peak_mb()
    gaps = []

    def run() -> None:
        solution = models_columns.run(large, SolveOptions(time_limit_s=600)).solution
        gaps.append(1 - solution.objective / solution.bound)

    seconds = bench.time(lambda: bound(large), rounds=1)
    reference = bench.reference(lambda: bound(small))
    note = (
        f"{seconds / reference:.1f}× the {reference:.2f} s of 200 jobs; peak {peak_mb():.0f} MB ({before:.0f} before)"
    )
    bench.line("P2 bound, gen/2000jobs", seconds, None, "≤ 12× of 200 jobs, < 4 GB", note)
    whole = bench.reference(run, rounds=1)
    bench.line(
        "P2 bound and schedule, gen/2000jobs", whole, None, "< 4 GB", f"{gaps[-1]:.2%} gap, peak {peak_mb():.0f} MB"
    )


def test_growth_with_jobs(bench) -> None:  # type: ignore[no-untyped-def]
    sizes = (50, 200, 1000, 2000)
    views = [view_of(f"gen/{n}jobs") for n in sizes]
    seconds = [bench.reference(lambda v=v: bound(v), rounds=1) for v in views[:-1]]
    seconds.append(bench.time(lambda: bound(views[-1]), rounds=1))
    bench.growth("P2 bound over jobs (and GPUs)", sizes, seconds)


def test_growth_with_slots(bench) -> None:  # type: ignore[no-untyped-def]
    lengths = (3600, 1800, 900, 450)
    views = [view_of(f"gen/200jobs?slot_s={length}") for length in lengths]
    seconds = [bench.reference(lambda v=v: bound(v), rounds=1) for v in views[:-1]]
    seconds.append(bench.time(lambda: bound(views[-1]), rounds=1))
    bench.growth("P2 bound over slots", [v.slots for v in views], seconds)
