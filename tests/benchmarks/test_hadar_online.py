"""Hadar online: the time of one round with up to 2048 queued jobs, compiled and in plain Python."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schedgap import instances
from schedgap.heuristics.hadar.hadare import HadarE
from schedgap.heuristics.hadar.online import Hadar
from schedgap.heuristics.hadar.planning import BEAM, EXACT_QUEUE, GangPlan, Planner, RoundToPlan
from schedgap.heuristics.hadar.prices import prices
from schedgap.heuristics.hadar.slotted import schedule
from schedgap.heuristics.simulator import simulate
from schedgap.instances.views.hadar import HadarView, view

sys.path.insert(0, str(Path(__file__).resolve().parent))

from plain import plain_python

PAPER = "paper: < 7 min"


def queued(jobs: int) -> HadarView:
    """Return a view with so many jobs of ``gen/200jobs`` and a cluster that grows with them, as in Fig. 5."""
    return view(instances.load(f"gen/200jobs?jobs={jobs}&servers_per_type={max(1, jobs // 40)}"))


def first_round(v: HadarView, jobs: int | None = None) -> RoundToPlan:
    """Return a round in which all jobs have just arrived and the cluster is empty."""
    rows = np.arange(v.size if jobs is None else jobs)
    nothing, held = np.zeros(v.servers.size, np.int64), np.zeros((0, 3), np.int64)
    return RoundToPlan(rows, v.workload.work[rows], 0, nothing, held)


def planner(v: HadarView, beam: int) -> Planner:
    here = replace(v, arrival=np.zeros(v.size, np.int64))
    return Planner(here, prices(here), beam=beam)


def planned(made: Planner, around: RoundToPlan, exact: int = EXACT_QUEUE) -> GangPlan:
    return made.dp_allocation(made.line_up(around), exact)


def interpreted(made: Planner, around: RoundToPlan) -> None:
    """Plan a greedy round with the kernels as plain Python."""
    from schedgap.heuristics.hadar import _beam, _kernels

    with plain_python(_kernels, _beam):
        planned(made, around)


@pytest.mark.parametrize(("beam", "target"), [(1, 1.0), (BEAM, 5.0)])
def test_round_of_2048_jobs(bench, beam: int, target: float) -> None:  # type: ignore[no-untyped-def]
    v = queued(2048)
    made, around = planner(v, beam), first_round(v)
    plan = planned(made, around)
    seconds = bench.time(lambda: planned(made, around))
    slow = bench.reference(lambda: interpreted(made, around), rounds=1) if beam == 1 else None
    note = f"{len(set(plan.entries[:, 0].tolist()))} placed on {v.servers.size} servers; {PAPER}"
    against = ", against plain Python" if beam == 1 else ""
    name = f"Hadar, a round of 2048 jobs, beam {beam}{against}"
    bench.line(name, seconds, slow, f"≤ {target:.0f} s", note, most=target)


@pytest.mark.parametrize("beam", [1, BEAM])
def test_growth_with_jobs(bench, beam: int) -> None:  # type: ignore[no-untyped-def]
    sizes = (32, 128, 512, 2048)
    seconds = []
    for jobs in sizes[:-1]:
        v = queued(jobs)
        made, around = planner(v, beam), first_round(v)
        planned(made, around)
        began = time.perf_counter()
        planned(made, around)
        seconds.append(time.perf_counter() - began)
    v = queued(sizes[-1])
    made, around = planner(v, beam), first_round(v)
    seconds.append(bench.time(lambda: planned(made, around)))
    bench.growth(f"Hadar, a round over jobs, beam {beam}", sizes, seconds)


def test_beam_against_exact(bench) -> None:  # type: ignore[no-untyped-def]
    v = queued(200)
    jobs = EXACT_QUEUE + 5
    made, around = planner(v, BEAM), first_round(v, jobs)
    beam = planned(made, around)
    seconds = bench.time(lambda: planned(made, around))
    exact = planned(made, around, exact=jobs)
    note = f"payoff {beam.payoff / exact.payoff:.4%} of the exact one; memo of {exact.states:,} entries"
    reference = bench.reference(lambda: planned(made, around, exact=jobs))
    bench.line(f"Hadar, a round of {jobs} jobs: beam against exact DP", seconds, reference, "≥ 1×", note, least=1.0)


def test_simulation_of_480_jobs(bench) -> None:  # type: ignore[no-untyped-def]
    example = instances.load("gen/hadar-480")
    v = view(example)

    hours = []

    def run() -> None:
        trace = simulate(v.workload, v.servers, Hadar(example), round_s=360.0, restart_s=10.0)
        hours.append(trace.makespan_s / 3600)

    seconds = bench.time(run, rounds=1)
    bench.line("Hadar, simulating gen/hadar-480", seconds, None, "–", f"TTD {hours[0]:.1f} h")


def test_forked_simulation_of_2000_jobs(bench) -> None:  # type: ignore[no-untyped-def]
    example = instances.load("gen/2000jobs")
    v = view(example)
    seconds = bench.time(lambda: schedule(v, HadarE(example), forks=True), rounds=1)
    note = f"{v.servers.size} servers"
    bench.line("HadarE, gen/2000jobs in model time", seconds, None, "≤ 60 s", note, most=60.0)
