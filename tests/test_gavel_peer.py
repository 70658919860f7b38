"""Max-min fairness and FIFO on Gavel's own traces, against slow references that follow the definitions word by word.

The references share nothing with the policies: plain Python for FIFO; for max-min, a linear program over single jobs
(scipy) per set of jobs, and dictionaries for the rounds. :mod:`schedgap.heuristics.hadar.gavel` documents what must
agree: shares are averages over equal jobs, rounded to millionths; a round lasts 360 s; a job that completes within a
round frees its GPUs at its end; nothing is lost by moving; ties go by arrival, index, type.

Gavel's published simulator is not run here: it computes shares at most every 1920 s, counts received time from then on,
ends rounds early and rounds steps down (``scheduler/scheduler.py``), so its completion times differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from schedgap.heuristics.hadar._kernels import NEW
from schedgap.heuristics.hadar.baselines import Fifo
from schedgap.heuristics.hadar.gavel import GRID, TIES, Gavel
from schedgap.heuristics.simulator import simulate
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.schema import Instance
from schedgap.instances.workload import Servers, Workload, servers, workload

ROUND_S = 360.0
CLUSTER = {"V100": 4, "P100": 4, "K80": 4}

EXACT = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}

Choice = dict[int, int]
"""The GPU type on which each running job runs, by job."""


def trace(data_dir: Path, name: str, max_jobs: int | None = None, gpus: dict[str, int] | None = None) -> Instance:
    options = Options(
        max_jobs=max_jobs,
        gpus=gpus or CLUSTER,
        gpus_per_server=4,
        throughputs=data_dir / "gavel" / "simulation_throughputs.json",
    )
    return import_trace("gavel", data_dir / "gavel" / f"{name}.trace", options)


def rounds(work: Workload, decide: Callable[[list[int]], Choice]) -> list[float]:
    """Simulate rounds until all jobs are done; return their completion times in seconds."""
    left = {j: float(w) for j, w in enumerate(work.work)}
    completion = [math.nan] * work.size
    number = 0
    while left:
        start_s = number * ROUND_S
        here = sorted((j for j in left if work.arrival_s[j] <= start_s), key=lambda j: (work.arrival_s[j], j))
        if not here:
            number = math.ceil(min(work.arrival_s[j] for j in left) / ROUND_S)
            continue
        for j, kind in decide(here).items():
            rate = float(work.gpus[j] * work.rates[j, kind])
            if left[j] / rate <= ROUND_S * (1 + 1e-12):
                completion[j] = start_s + left.pop(j) / rate
            else:
                left[j] -= rate * ROUND_S
        number += 1
    return completion


def capacity(work: Workload, cluster: Servers) -> list[int]:
    return [int(cluster.gpus[cluster.gpu_type == r].sum()) for r in range(len(work.gpu_types))]


def fifo(work: Workload, cluster: Servers) -> list[float]:
    total = capacity(work, cluster)

    def decide(here: list[int]) -> Choice:
        free, chosen = list(total), {}
        for j in here:
            fitting = [r for r in range(len(free)) if work.rates[j, r] > 0 and free[r] >= work.gpus[j]]
            if not fitting:
                break
            chosen[j] = max(fitting, key=lambda r: (work.rates[j, r], -r))
            free[chosen[j]] -= int(work.gpus[j])
        return chosen

    return rounds(work, decide)


class MaxMin:
    """Max-min fairness as :mod:`schedgap.heuristics.hadar.gavel` defines it, computed job by job."""

    def __init__(self, work: Workload, cluster: Servers) -> None:
        self.work, self.total = work, capacity(work, cluster)
        self.types = range(len(self.total))
        self.value = {(j, r): self._value(j, r) for j in range(work.size) for r in self.types if self._able(j, r)}
        self.kind = {
            j: (
                int(work.gpus[j]),
                float(work.weight[j]),
                *(float(f"{self.value.get((j, r), 0):.9e}") for r in self.types),
            )
            for j in range(work.size)
        }
        order = sorted(set(self.kind.values()))
        pairs = [(k, r) for k in order for r in self.types if k[2 + r] > 0]
        self.tie = {pair: 1 + TIES * ((m + 1) ** 2 * 0.6180339887498949 % 1) for m, pair in enumerate(pairs)}
        self.known: dict[tuple[int, ...], dict[tuple[int, int], float]] = {}
        self.received: dict[tuple[int, int], int] = {}
        self.seen = dict.fromkeys(range(work.size), 0)

    def _able(self, j: int, r: int) -> bool:
        return bool(self.work.rates[j, r] > 0 and self.work.gpus[j] <= self.total[r])

    def _value(self, j: int, r: int) -> float:
        equal = sum(self.work.rates[j, q] * self.total[q] for q in self.types) / sum(self.total)
        return float(self.work.gpus[j] * self.work.rates[j, r] / equal)

    def shares(self, here: list[int]) -> dict[tuple[int, int], float]:
        """Compute shares by two linear programs over single jobs, and average them over equal jobs."""
        pairs = [(j, r) for j in here for r in self.types if (j, r) in self.value]
        scale = max(self.value.values())
        worth = np.array([self.value[pair] / scale for pair in pairs])
        a_ub, b_ub = [], []
        for j in here:
            a_ub.append([float(pair[0] == j) for pair in pairs] + [0.0])
            b_ub.append(1.0)
        for r in self.types:
            a_ub.append([float(self.work.gpus[pair[0]]) * (pair[1] == r) for pair in pairs] + [0.0])
            b_ub.append(float(self.total[r]))
        for j in here:
            row = [-w * (pair[0] == j) for pair, w in zip(pairs, worth, strict=True)]
            a_ub.append([*row, float(self.work.weight[j])])
            b_ub.append(0.0)
        bounds = [(0, None)] * (len(pairs) + 1)
        first = linprog([0.0] * len(pairs) + [-1.0], a_ub, b_ub, bounds=bounds, options=EXACT)
        least = float(first.x[-1])
        bounds[-1] = (least * (1 - 1e-9), least)
        reward = [-w * self.tie[self.kind[j], r] for (j, r), w in zip(pairs, worth, strict=True)]
        second = linprog([*reward, 0.0], a_ub, b_ub, bounds=bounds, options=EXACT)
        shares = dict(zip(pairs, second.x[:-1], strict=True))
        alike = {j: [i for i in here if self.kind[i] == self.kind[j]] for j in here}
        return {(j, r): round(sum(shares[i, r] for i in alike[j]) / len(alike[j]) / GRID) * GRID for j, r in pairs}

    def __call__(self, here: list[int]) -> Choice:
        key = tuple(sorted(here))
        if key not in self.known:
            self.known[key] = self.shares(here)
        shares = self.known[key]
        order: list[tuple[float, int, int, int]] = []
        for position, j in enumerate(here):
            for r in self.types:
                share, got = shares.get((j, r), 0.0), self.received.get((j, r), 0)
                if share > 0:
                    order.append((-share * (self.seen[j] / got if got else NEW), position, r, j))
        queue = [(j, r) for _, _, r, j in sorted(order)]
        for j in here:
            able = [r for r in self.types if (j, r) in self.value]
            queue += [(j, r) for r in sorted(able, key=lambda r: (-self.work.rates[j, r], r))]
        free, chosen = list(self.total), {}
        for j, r in queue:
            if j not in chosen and self.work.gpus[j] <= free[r]:
                chosen[j] = r
                free[r] -= int(self.work.gpus[j])
        for j in here:
            self.seen[j] += 1
        for j, r in chosen.items():
            self.received[j, r] = self.received.get((j, r), 0) + 1
        return chosen


TRACES = ["small_test", "artifact_evaluation", "minimize_makespan", "philly_vc_103959"]


@pytest.mark.real_data
@pytest.mark.parametrize("name", TRACES)
def test_fifo_gives_the_completion_times_of_its_definition(data_dir: Path, name: str) -> None:
    instance = trace(data_dir, name, max_jobs=300, gpus={"V100": 16, "P100": 16, "K80": 16})
    work, cluster = workload(instance), servers(instance)
    ours = simulate(work, cluster, Fifo(work, cluster), round_s=ROUND_S)
    assert ours.completion_s == pytest.approx(fifo(work, cluster), rel=1e-9)


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "max_jobs"), list(zip(TRACES, [None, None, None, 120], strict=True)))
def test_max_min_gives_the_completion_times_of_its_definition(data_dir: Path, name: str, max_jobs: int | None) -> None:
    instance = trace(data_dir, name, max_jobs)
    work, cluster = workload(instance), servers(instance)
    ours = simulate(work, cluster, Gavel(work, cluster), round_s=ROUND_S)
    assert ours.completion_s == pytest.approx(rounds(work, MaxMin(work, cluster)), rel=1e-9)
