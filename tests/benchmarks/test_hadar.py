"""Hadar's P2 by column generation against the whole P1, with and without its accelerations, and growth with jobs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from promised import within_the_promised_gaps

from schedgap import instances, models
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.columns import GenerationOptions, Inserting, PackingOptions, generate
from schedgap.models.engine.gangs.pricing import GangPricing
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.engine.solve.session import peak_mb

P1_LIMIT_S = 20.0
"""Seconds that HiGHS gets for P1, without building it: more than the bound takes in all."""


MOVES = 5000
"""Number of moves of ruin and recreate that are timed; the first annealing of 200 jobs has 4000."""

WHOLE_S = 30.0
"""Seconds for the bound and schedule of 2000 jobs."""


def view_of(ref: str) -> HadarView:
    return PAPERS.get("hadar").view(instances.load(ref))


def bound(view: HadarView, **options: float) -> float:
    pricing = GangPricing(view)
    return generate(pricing.anything, pricing, GenerationOptions(**options)).bound  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile all kernels before anything is timed."""
    bound(view_of("paper/hadar-fig1"))


def test_bound_against_monolithic_p1(bench) -> None:  # type: ignore[no-untyped-def]
    view = view_of("gen/200jobs")
    found = []

    def run() -> None:
        pricing = GangPricing(view)
        found.append(generate(pricing.anything, pricing))

    ours = bench.time(run)
    began = time.perf_counter()
    p1 = models.get("hadar.p1").run(view, SolveOptions(time_limit_s=P1_LIMIT_S)).solution
    seconds = time.perf_counter() - began
    best = found[-1]
    off = (best.bound - best.value) / best.bound
    note = (
        f"within {off:.2g} of the master's optimum (discretisation {best.unpriced / best.bound:.1g}); P1 then: bound "
        f"{p1.bound}, incumbent {p1.objective}, {p1.status}; ours {best.bound:.2f}"
    )
    name = "P2 bound, gen/200jobs, against P1 in HiGHS"
    bench.line(name, ours, seconds, "within 0.1 % in ≤ 15 s", note, most=15.0 if off <= 1e-3 else 0.0, capped=True)


def test_schedule_near_the_bound(bench) -> None:  # type: ignore[no-untyped-def]
    view = view_of("gen/200jobs")
    pricing = GangPricing(view)
    generated = generate(pricing.anything, pricing)
    packed = []

    def run() -> None:
        packer = Inserting(pricing.packing, pricing.insert, generated.bound, generated.prices, PackingOptions())
        while packer.moves < MOVES:
            packer.anneal()
        packed.append(packer.packed)
        traces.append(packer.trace)

    traces: list[Any] = []
    ours = bench.time(run)
    gap = 1 - packed[-1].value / generated.bound
    first = next((p.time_s for p in traces[-1] if p.incumbent >= 0.98 * generated.bound), None)
    soon = "never" if first is None else f"after {first:.2g} s"
    note = f"{gap:.2%} below the bound; within 2 % {soon}; prototype: 6.7 % after 60 s"
    bench.line("P2 schedule, gen/200jobs", ours, None, "≤ 2 % in ≤ 30 s", note, most=0.0 if first is None else 30.0)


def test_promised_gaps(bench) -> None:  # type: ignore[no-untyped-def]
    """The bound and the schedule of 200 jobs have the gaps that tests ask of smaller instances."""
    ours = bench.time(lambda: within_the_promised_gaps("gen/200jobs"), rounds=1)
    bench.line("P2, gen/200jobs, within the promised gaps", ours, None, "≤ 60 s", most=60.0)


def test_smoothing(bench) -> None:  # type: ignore[no-untyped-def]
    view = view_of("gen/200jobs")
    ours = bench.time(lambda: bound(view))
    bare = bench.reference(lambda: bound(view, smoothing=0.0))
    bench.line("P2 bound, gen/200jobs, smoothing 0.6 against none", ours, bare, "> 1×", least=1.0)


def test_2000_jobs_and_growth(bench) -> None:  # type: ignore[no-untyped-def]
    """Measure 2000 jobs, and how time grows if jobs and GPUs grow together."""
    sizes = (50, 200, 1000, 2000)
    views = {n: view_of(f"gen/{n}jobs") for n in sizes}
    gaps = []

    def run() -> None:
        solution = models.get("hadar.p2.columns").run(views[2000], SolveOptions(time_limit_s=WHOLE_S)).solution
        gaps.append(1 - solution.objective / solution.bound)

    seconds = {n: bench.reference(lambda n=n: bound(views[n]), rounds=3 if n <= 200 else 1) for n in sizes[:-1]}
    seconds[2000] = bench.time(lambda: bound(views[2000]), rounds=1)
    memory, times = peak_mb(), seconds[2000] / seconds[200]
    note = f"{times:.1f}× the {seconds[200]:.2f} s of 200 jobs; peak {memory:.0f} MB"
    most = 12 * seconds[200] if memory < 4000 else 0.0
    bench.line("P2 bound, gen/2000jobs", seconds[2000], None, "≤ 12× of 200 jobs, < 4 GB", note, most=most)
    whole = bench.reference(run, rounds=1)
    note = f"{gaps[-1]:.2%} gap, peak {peak_mb():.0f} MB"
    bench.line(f"P2 bound and schedule, gen/2000jobs, in {WHOLE_S:.0f} s", whole, None, "–", note)
    bench.growth("P2 bound over jobs (and GPUs)", sizes, list(seconds.values()))


def test_growth_with_gpus(bench) -> None:  # type: ignore[no-untyped-def]
    """Measure how time grows with GPUs, for 200 jobs that get longer so that the load stays the same."""
    servers = (3, 5, 8, 12)
    views = [view_of(f"gen/200jobs?servers_per_type={n}") for n in servers]
    seconds = [bench.reference(lambda v=v: bound(v), rounds=1) for v in views[:-1]]
    seconds.append(bench.time(lambda: bound(views[-1]), rounds=1))
    bench.growth("P2 bound over GPUs, 200 jobs", [int(v.capacity.sum()) for v in views], seconds)


def test_growth_with_slots(bench) -> None:  # type: ignore[no-untyped-def]
    lengths = (1800, 900, 450, 225)
    views = [view_of(f"gen/200jobs?slot_s={length}") for length in lengths]
    seconds = [bench.reference(lambda v=v: bound(v), rounds=1) for v in views[:-1]]
    seconds.append(bench.time(lambda: bound(views[-1]), rounds=1))
    bench.growth("P2 bound over slots", [v.slots for v in views], seconds, most=1.3)
