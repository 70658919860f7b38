"""Rounds per second of simulations, against a program over single jobs that is solved anew each round; growth."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, vstack

from schedgap import instances
from schedgap.heuristics.hadar.allox import AlloX
from schedgap.heuristics.hadar.baselines import Tiresias, YarnCS
from schedgap.heuristics.hadar.gavel import Gavel
from schedgap.heuristics.simulator import NOTHING, Assignment, Policy, State, Trace, servers, simulate, workload
from schedgap.instances.workload import Servers, Workload

GAVEL_S = 4.6
GAVEL = "Gavel's own simulator was measured at 7–10 ms per round, 4.6–7.6 s in all"


def case(jobs: int) -> tuple[Workload, Servers]:
    instance = instances.load(f"gen/hadar-480?jobs={jobs}")
    return workload(instance), servers(instance)


def run(policy: Policy, work: Workload, cluster: Servers, hours: float = float("inf")) -> Trace:
    return simulate(work, cluster, policy, round_s=360.0, restart_s=10.0, until_s=hours * 3600)


class Straightforward(Gavel):
    """Gavel's max-min fairness that also solves a linear program over single jobs from scratch in every round."""

    def __call__(self, state: State) -> Assignment:
        solve(self.gangs, state)
        return super().__call__(state)


def solve(gangs: Any, state: State) -> None:
    """Solve the max-min program of :mod:`schedgap.heuristics.hadar.gavel` with one variable per job and option."""
    rates = gangs.rates[state.jobs]
    row, option = np.nonzero(rates)
    equal = state.rates @ gangs.capacity / gangs.capacity.sum()
    worth = (rates * (state.gpus / equal)[:, None])[row, option]
    pairs, jobs = row.size, state.jobs.size
    column = np.arange(pairs)
    time_of = coo_array((np.ones(pairs), (row, column)), (jobs, pairs + 1))
    gpus = csr_array(np.column_stack((gangs.usage[state.jobs[row], option].T, np.zeros(gangs.capacity.size))))
    least = coo_array(
        (np.append(-worth, np.ones(jobs)), (np.append(row, np.arange(jobs)), np.append(column, np.full(jobs, pairs)))),
        (jobs, pairs + 1),
    )
    limits = np.concatenate([np.ones(jobs), gangs.capacity, np.zeros(jobs)])
    linprog(np.append(np.zeros(pairs), -1.0), vstack([time_of, gpus, least]), limits)


def test_max_min_480(bench) -> None:  # type: ignore[no-untyped-def]
    """Time a whole simulation of 480 jobs; the reference runs 50 rounds and is scaled to all of them."""
    work, cluster = case(480)
    traces: list[Trace] = []
    ours = bench.time(lambda: traces.append(run(Gavel(work, cluster), work, cluster)), rounds=3)
    rounds = traces[-1].rounds
    reference = bench.reference(lambda: run(Straightforward(work, cluster), work, cluster, hours=5), rounds=1)
    note = f"{rounds} rounds, {ours / rounds * 1e3:.3f} ms each; {GAVEL}"
    name = "480 jobs, 60 GPUs, max-min, whole simulation"
    bench.line(f"{name}, against a program per round", ours, reference * rounds / 50, "≥ 10×", note, least=10.0)
    bench.line(f"{name}, against Gavel's simulator", ours, GAVEL_S, "≥ 10×", note, least=10.0, recorded=True)


def test_a_round_of_the_engine(bench) -> None:  # type: ignore[no-untyped-def]
    """Time the simulator alone: sixty jobs run for ever on 60 GPUs under a policy that repeats its answer."""
    work, cluster = case(480)
    policy = YarnCS(work, cluster)
    kept: list[Assignment] = []

    def first(state: State) -> Assignment:
        kept.append(policy(state))
        return NOTHING

    run(first, work, cluster, hours=0.1)
    endless = Workload(**{**vars(work), "work": work.work * 1e9})
    rounds = 5000
    seconds = bench.time(lambda: run(lambda state: kept[0], endless, cluster, hours=rounds / 10), rounds=3)
    name = "engine, one round of 480 jobs"
    bench.line(name, seconds / rounds, None, "≤ 0.1 ms", f"{rounds} rounds", most=1e-4)


@pytest.mark.parametrize("policy", [Gavel, Tiresias, YarnCS, AlloX])
def test_growth_with_jobs(bench, policy: Any) -> None:  # type: ignore[no-untyped-def]
    """Measure seconds per round in the first 40 hours, from 120 to 1920 jobs on the same GPUs."""
    sizes = (120, 480, 960, 1920)
    per_round = []
    for jobs in sizes:
        work, cluster = case(jobs)
        began = time.perf_counter()
        if jobs < sizes[-1]:
            rounds = run(policy(work, cluster), work, cluster, hours=40).rounds
            per_round.append((time.perf_counter() - began) / rounds)
    traces: list[Trace] = []
    seconds = bench.time(lambda: traces.append(run(policy(work, cluster), work, cluster, hours=40)), rounds=1)
    per_round.append(seconds / traces[-1].rounds)
    bench.growth(f"{policy.__name__}, seconds per round over jobs", sizes, per_round)
