"""Bounds on percentiles of completion times: against brute force, the MILP, and schedules."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hadar_reference import fifo, instances_of, linear, with_long_horizon
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import models
from schedgap.certificates.fluid import most_in_time
from schedgap.heuristics.hadar import slotted
from schedgap.instances.arrays import Array
from schedgap.instances.schema import Instance
from schedgap.instances.views import gavel
from schedgap.models.engine.fluid.percentile import PERCENTILE, in_time, longest, ranks, tail
from schedgap.models.engine.fluid.single_machine import FluidJobs, Ways
from schedgap.models.engine.solve import build, solve
from schedgap.models.gavel.fluid import build_p99

JOBS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(1, 6)), min_size=1, max_size=7)
"""Jobs as tuples: arrival, delay before a job may start, and volume."""


def laid_out(jobs: list[tuple[int, int, int]]) -> tuple[Array, Array, Array]:
    """Return arrivals, starts rounded up to slots of 4, and volumes, sorted by arrival."""
    since, _, volume = (np.array(x, float) for x in zip(*sorted(jobs), strict=True))
    return since, np.ceil(since / 4) * 4, volume


def most(start: Array, due: Array, volume: Array) -> int:
    """Return how many jobs can be in time on a machine that may interrupt them, by trying all sets of jobs.

    A set can be in time if no period has more work than time.
    """

    def feasible(some: tuple[int, ...]) -> bool:
        return all(
            sum(volume[j] for j in some if start[j] >= a and due[j] <= b) <= max(b - a, 0)
            for a in start[list(some)]
            for b in due[list(some)]
        )

    sizes = range(len(start), 0, -1)
    return next((k for k in sizes if any(map(feasible, combinations(range(len(start)), k)))), 0)


@given(JOBS, st.integers(0, 20))
@settings(max_examples=150)
def test_most_jobs_in_time_by_exhaustive_search(jobs: list[tuple[int, int, int]], time: int) -> None:
    since, start, volume = laid_out(jobs)
    due = since + time
    best = most(start, due, volume)
    assert [in_time(start, due, volume, k) for k in range(1, len(jobs) + 2)] == [
        k <= best for k in range(1, len(jobs) + 2)
    ]
    whole = sorted(zip(start.astype(int).tolist(), due.astype(int).tolist(), volume.astype(int).tolist(), strict=True))
    assert most_in_time(whole) == best


@dataclass(frozen=True, eq=False)
class Plain(FluidJobs):
    """Fluid jobs on a single resource."""

    size: Array

    @property
    def ways(self) -> Ways:
        n = len(self.size)
        return Ways(np.arange(n), self.size, np.arange(n), np.ones(n))

    def cost(self, weights: Array) -> Array:
        return self.size * weights[0]

    def takes(self, weights: Array, which: Array) -> Array:
        return self.size[which, None]


def plain(start: Array, volume: Array) -> Plain:
    one, zero = np.ones(1), np.zeros(1, np.int64)
    return Plain(start, volume, start + volume, np.ones(len(start)), zero, one, volume)


@given(JOBS)
@settings(max_examples=60)
def test_times_are_the_longest_for_which_too_few_are_in_time(jobs: list[tuple[int, int, int]]) -> None:
    since, start, volume = laid_out(jobs)
    for k in range(1, len(jobs) + 1):
        found = longest(plain(start, volume), since, k, volume)
        # All data are whole numbers, and so is the k-th smallest time.
        assert most(start, since + np.floor(found), volume) < k
        assert most(start, since + np.ceil(found * (1 + 2e-6)), volume) >= k


@pytest.mark.parametrize("n", [1, 2, 3, 50, 100, 101, 102, 480])
def test_the_percentile_is_between_two_ranks(n: int) -> None:
    values = np.sort(np.random.default_rng(n).random(n))
    assert sum(values[k - 1] * part for k, part in ranks(n).items()) == pytest.approx(np.percentile(values, PERCENTILE))


@given(instances_of(jobs=3))
@settings(max_examples=10)
def test_no_schedule_is_below_the_bound_and_the_milp_is_the_same(instance: Instance) -> None:
    view = gavel.view(with_long_horizon(instance))
    schedule, last = slotted.schedule(view, fifo), np.zeros(view.size)
    np.maximum.at(last, schedule.job, (schedule.slot + 1) * view.slot_s)
    worst = np.percentile(last - view.workload.arrival_s, PERCENTILE)
    gangs, copies = (models.get(id).run(view).solution.bound for id in ("gavel.jct_p99", "gavel.jct_p99_copies"))
    assert copies <= gangs * (1 + 1e-5)
    assert gangs <= worst * (1 + 1e-9)
    assert solve(build(build_p99, view)).objective == pytest.approx(gangs, rel=1e-5)


def test_on_one_gpu_the_longest_jobs_are_given_up() -> None:
    """The bound on the 99th percentile ignores the longest of 102 jobs on one GPU.

    All but this job take a second, so the last but one of them ends after 101 s.
    """
    jobs = [{"gpus": 1, "epochs": length, "rates": {"a": 1.0}} for length in (*[1] * 101, 50)]
    view = gavel.view(linear(jobs, {"a": 1}, slots=200))
    found = models.get("gavel.jct_p99").run(view).solution.bound
    # Rank 100 counts 0.01, rank 101 counts 0.99.
    assert found == pytest.approx(0.01 * 100 + 0.99 * 101, rel=1e-5)


def test_a_job_that_is_long_alone_counts() -> None:
    since, volume = np.zeros(3), np.array([1.0, 1.0, 9.0])
    run = plain(since, volume)
    long = Plain(since, volume * 3, volume * 3, np.ones(3), run.group, run.speed, volume)
    # Rank 2 has weight 0.02: the two short jobs need 2 of the machine, but each takes 3 alone. The third takes 27.
    assert tail(long, since).value == pytest.approx(0.02 * 3 + 0.98 * 27, rel=1e-5)
