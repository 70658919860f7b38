"""Our column generation beside HiGHS, SCIP and CP-SAT on whole models: bound and incumbent after some seconds.

``BENCH_SECONDS=10`` stops after 10 s; otherwise our numbers are those after 10 s and 60 s of one run. Building a model
and passing it to a solver is not counted, which favours the other solvers.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from schedgap import instances, models
from schedgap.harness.show.text import number, percent
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.zhou import Architecture
from schedgap.models.engine.solve import SolveOptions, TracePoint
from schedgap.models.zhou.common import horizon

MARKS = tuple(float(text) for text in os.environ.get("BENCH_SECONDS", "10,60").split(","))
SIZES = (20, 50, 200)
WHOLE = ("highs", "scip", "cp-sat")
METHODS = (
    "hadar.p2.columns",
    *(f"hadar.p1?solver={solver}" for solver in WHOLE),
    "zhou.ps.columns",
    *(f"zhou.ps.offline?solver={solver}" for solver in WHOLE),
)
ENDS = ("bound", "incumbent")
SCALE = 10
"""Amounts of resources are counted in tenths of a unit; those of ``gen/…jobs`` are then whole numbers."""


def after(seconds: float, trace: Sequence[TracePoint]) -> str:
    """Return bound, incumbent and gap of a trace after some seconds, as text."""
    seen = [point for point in trace if point.time_s <= seconds * 1.05]
    # A point of our trace may have only a bound or only an incumbent.
    last = (next((v for p in reversed(seen) if (v := getattr(p, name)) is not None), None) for name in ENDS)
    bound, found = last
    gap = percent(abs(bound - found) / abs(bound)) if bound and found is not None else "–"
    return f"{seconds:g} s: {number(bound)} / {number(found)} ({gap})"


@pytest.mark.parametrize("jobs", SIZES)
@pytest.mark.parametrize("method", METHODS)
def test_whole_models_and_columns(bench, method: str, jobs: int) -> None:  # type: ignore[no-untyped-def]
    spec = models.MODELS.get(method)
    view = PAPERS.get(spec.paper).view(instances.load(f"gen/{jobs}jobs"))
    name = f"{jobs} jobs, {method}: bound / incumbent (gap)"
    found = []
    try:
        options = SolveOptions(time_limit_s=max(MARKS))
        seconds = bench.time(lambda: found.append(spec.run(view, options).solution), rounds=1)
    except NotApplicableError as error:
        bench.absent(name, str(error))
    trace = [*found[0].trace, TracePoint(max(MARKS), found[0].objective, found[0].bound)]
    bench.line(name, seconds, None, "", "; ".join(after(mark, trace) for mark in MARKS))


@pytest.mark.parametrize("jobs", SIZES)
def test_zhou_with_intervals(bench, jobs: int, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """CP-SAT solves Zhou's (2) with interval variables; its incumbents ignore on which server a worker is."""
    pytest.importorskip("ortools")
    view = PAPERS.get("zhou").view(instances.load(f"gen/{jobs}jobs"))
    save(view.architectures["ps"], tmp_path / "model.npz")
    program = Path(__file__).with_name("intervals_cp.py")
    command = [sys.executable, str(program), str(tmp_path / "model.npz"), str(max(MARKS)), "1"]
    told: list[str] = []
    seconds = bench.time(
        lambda: told.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout), rounds=1
    )
    trace = traced([json.loads(line) for line in told[0].splitlines()])
    name = f"{jobs} jobs, Zhou's (2), CP-SAT with intervals, servers of a class together: bound / incumbent (gap)"
    bench.line(name, seconds, None, "", "; ".join(after(mark, trace) for mark in MARKS))


def traced(lines: list[tuple[float, float | None, float]]) -> list[TracePoint]:
    """Return trace points from a program's lines; a line without an incumbent repeats the last one."""
    found: list[TracePoint] = []
    for at, incumbent, bound in lines:
        last = found[-1].incumbent if found else None
        found.append(TracePoint(at, last if incumbent is None else incumbent, bound))
    return found


def save(a: Architecture, path: Path) -> None:
    """Write the problem to a file for :mod:`intervals_cp`; of options with equal needs, only the fastest is kept."""
    m, o = a.machines, a.options
    keys = np.stack((o.job, o.worker_type, o.ps_type, o.workers, o.slots), axis=1)
    keys = keys[np.lexsort(keys.T[::-1])]
    first = np.ones(len(keys), bool)
    first[1:] = (keys[1:, :4] != keys[:-1, :4]).any(axis=1)
    job, worker_type, ps_type, workers, slots = keys[first].T
    workers_need = workers[:, None] * m.worker[worker_type]
    need, capacity = [workers_need + m.ps[ps_type]], [m.total]
    for kind in np.unique(m.kind):
        mine = m.kind == kind
        here = m.able[:, mine].any(axis=1) & ~m.able[:, ~mine].any(axis=1)
        need.append(workers_need * here[worker_type][:, None])
        capacity.append(m.count[mine] @ m.capacity[mine])
    np.savez(
        path,
        job=job,
        slots=slots,
        need=np.floor(np.hstack(need).T * SCALE + 1e-6).astype(np.int64),
        capacity=np.ceil(np.concatenate(capacity) * SCALE - 1e-6).astype(np.int64),
        arrival=a.arrival,
        weight=a.weight.astype(np.int64),
        end=math.ceil(horizon(a)),
    )
