"""Checker for simulated histories: from the instance and the records alone, with none of the engine's code.

Rates, overheads, progress and completion times are computed again from who held which GPUs in which round, all jobs at
once, with numpy; the records must say the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.verify import TOLERANCE, Verdict
from heuristics.simulator.trace import Trace
from instances.schema import Instance
from instances.workload import Servers, Workload, servers, workload

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SLIVER = 1e-9
"""Relative work or time that may be missing."""


@dataclass(frozen=True, eq=False)
class Runs:
    """The ``g`` pairs of a job and a round in which it runs, by job, then round.

    `first` is where the entries of each begin in the table sorted by job, round and server.
    """

    first: Ints
    row: Ints
    job: Ints
    width: Ints
    rate: Array


@dataclass(frozen=True, eq=False)
class Done:
    """What the runs amount to: iterations and computing seconds of each, completion and first start of each job."""

    iterations: Array
    busy_s: Array
    completion_s: Array
    first_start_s: Array


def check(instance: Instance, trace: Trace) -> Verdict:
    """Re-check a history against its instance.

    Parameters
    ----------
    instance
        Jobs and servers.
    trace
        Records and rules of a simulation. A policy may declare that a job runs slower than its GPUs would let it
        (:attr:`Assignment.speed`), never faster.

    Returns
    -------
    Verdict
        Its objective is the total utility of the completed jobs at the recomputed completion times.
    """
    work, cluster = workload(instance), servers(instance)
    if malformed := _malformed(trace, work, cluster):
        return Verdict(None, (malformed,))
    table = trace.allocation[np.lexsort((trace.allocation[:, 2], trace.allocation[:, 0], trace.allocation[:, 1]))]
    runs = _runs(trace, work, cluster, table)
    lines = [*_times(trace), *_entries(trace, cluster, table), *_presence(trace, work, runs)]
    lines += [*_widths(trace, work, table, runs)]
    if lines or (runs.rate.size and runs.rate.min() <= 0):
        return Verdict(None, tuple(lines) or (f"{_at(trace, runs, runs.rate <= 0)}: holds GPUs that it cannot run on",))
    order = np.lexsort((trace.progress[:, 0], trace.progress[:, 1]))
    if not np.array_equal(trace.progress[order], np.column_stack((runs.row, runs.job, runs.width))):
        return Verdict(None, ("progress: not the jobs that hold GPUs, by round",))
    speed = trace.speed[order]
    if not np.all((speed > 0) & (speed <= 1 + SLIVER)):
        return Verdict(None, ("a declared factor on a rate is more than 0 and at most 1",))
    runs = replace(runs, rate=runs.rate * speed)
    done = _done(trace, work, table, runs)
    jobs = np.flatnonzero(np.isfinite(done.completion_s))
    worth = work.utilities.value(jobs, done.completion_s[jobs] - work.arrival_s[jobs])
    return Verdict(float(worth.sum()), tuple(_differences(trace, work, order, runs, done)))


def _malformed(trace: Trace, work: Workload, cluster: Servers) -> str | None:
    """Say what is wrong with the shapes and index ranges of the records, if anything is."""
    shapes = {
        "allocation": (trace.allocation, 4),
        "progress": (trace.progress, 3),
    }
    for name, (table, columns) in shapes.items():
        if table.ndim != 2 or table.shape[1] != columns or table.dtype.kind not in "iu":
            return f"{name}: a table of {columns} columns of whole numbers, not {table.dtype} of shape {table.shape}"
    parts = [len(part) for part in (trace.progress, trace.iterations, trace.busy_s, trace.speed)]
    if len(set(parts)) > 1:
        return f"progress, iterations, computing seconds and speeds: {parts} rows"
    if not work.size == len(trace.completion_s) == len(trace.first_start_s) == len(trace.unfinished):
        return f"the instance has {work.size} jobs, the history {len(trace.completion_s)}"
    named = (trace.allocation[:, 0], trace.allocation[:, 1], trace.allocation[:, 2], trace.progress[:, 0])
    sizes = (("round", trace.rounds), ("job", work.size), ("server", cluster.size), ("round", trace.rounds))
    for column, (what, size) in zip(named, sizes, strict=True):
        if column.size and not 0 <= column.min() <= column.max() < size:
            return f"{what}s are numbered from 0 to {size - 1}"
    return None


def _runs(trace: Trace, work: Workload, cluster: Servers, table: Ints) -> Runs:
    """Gather the entries of each job in each round, with the rate at which they make it run."""
    row, job, server, gpus = table.T
    first = np.flatnonzero((np.diff(job, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0))
    if not first.size:
        return Runs(first, first, first, first, np.zeros(0))
    one = work.rates[job, cluster.gpu_type[server]]
    width = np.add.reduceat(gpus, first)
    if trace.rules.forks:
        rate = np.add.reduceat(gpus * one, first)
    else:
        hosts = np.diff(first, append=len(table))
        rate = np.minimum.reduceat(one, first) * width * np.where(hosts > 1, trace.rules.spread_factor, 1.0)
    return Runs(first, row[first], job[first], width, rate)


def _times(trace: Trace) -> Iterator[str]:
    """Yield a line where rounds do not begin at multiples of the round length, in order, before the horizon."""
    number = trace.start_s / trace.rules.round_s
    if np.any(np.abs(number - np.rint(number)) > TOLERANCE) or np.any(np.diff(np.rint(number)) < 1):
        yield f"rounds begin at multiples of {trace.rules.round_s:g} s, one after another"
    if trace.start_s.size and trace.start_s[-1] >= trace.rules.until_s:
        yield f"a round begins at {trace.start_s[-1]:g} s, the simulation ends at {trace.rules.until_s:g} s"


def _entries(trace: Trace, cluster: Servers, table: Ints) -> Iterator[str]:
    """Yield a line for an entry without GPUs, one that occurs twice, and a server beyond its GPUs."""
    row, _, server, gpus = table.T
    if gpus.size and gpus.min() < 1:
        yield "an entry has at least one GPU"
    if np.any((table[1:, :3] == table[:-1, :3]).all(axis=1)):
        yield "a triple of round, job and server occurs once"
    used = np.bincount(row * cluster.size + server, gpus, trace.rounds * cluster.size)
    over = np.flatnonzero(used > np.tile(cluster.gpus, trace.rounds))
    if over.size:
        t, h = divmod(int(over[0]), cluster.size)
        held = f"{used[over[0]]:g} GPUs of server {cluster.names[h]}"
        yield f"round at {trace.start_s[t]:g} s: {held}, it has {cluster.gpus[h]}"


def _presence(trace: Trace, work: Workload, runs: Runs) -> Iterator[str]:
    """Yield a line where a job runs before its arrival, after its completion, or after its tenant has left."""
    start_s = trace.start_s[runs.row]
    wrong = {
        "before its arrival": start_s < work.arrival_s[runs.job] * (1 - SLIVER),
        "after its completion": start_s >= trace.completion_s[runs.job],
        "after its tenant has left": start_s >= work.leave_s[runs.job],
    }
    for when, where in wrong.items():
        if where.any():
            yield f"{_at(trace, runs, where)}: runs {when}"


def _widths(trace: Trace, work: Workload, table: Ints, runs: Runs) -> Iterator[str]:
    """Yield a line where a gang is not whole, or a copy has more GPUs than the gang."""
    if trace.rules.forks:
        large = np.flatnonzero(table[:, 3] > work.gpus[table[:, 1]])
        if large.size:
            yield f"a copy of {work.ids[table[large[0], 1]]} has {table[large[0], 3]} GPUs, more than its gang"
        return
    where = runs.width != work.gpus[runs.job]
    if where.any():
        first = int(np.flatnonzero(where)[0])
        wanted = work.gpus[runs.job[first]]
        yield f"{_at(trace, runs, where)}: {runs.width[first]} GPUs, its gang is all {wanted} or none"


def _stayed(table: Ints, runs: Runs) -> Bools:
    """Return ``(g,)`` which runs hold exactly the GPUs that the job held in the round before."""
    count = np.diff(runs.first, append=len(table))
    follows = (np.diff(runs.job, prepend=-1) == 0) & (np.diff(runs.row, prepend=-2) == 1)
    follows &= count == np.concatenate([[0], count[:-1]])
    run = np.repeat(np.arange(len(count)), count)
    # The entry of the same rank in the run before; where none follows, itself.
    before = np.arange(len(table)) - np.where(follows, count, 0)[run]
    same = (table[:, 2:] == table[before, 2:]).all(axis=1)
    return np.asarray(follows & np.logical_and.reduceat(same, runs.first))


def _done(trace: Trace, work: Workload, table: Ints, runs: Runs) -> Done:
    """Compute what every run achieves. Progress counts in parts of a job's work, so that sums stay exact."""
    completion_s, first_start_s = np.full(work.size, math.nan), np.full(work.size, math.nan)
    if not runs.job.size:
        return Done(np.zeros(0), np.zeros(0), completion_s, first_start_s)
    start_s = trace.start_s[runs.row]
    begins = np.diff(runs.job, prepend=-1) != 0
    overhead_s = np.where(begins | _stayed(table, runs), 0.0, trace.rules.restart_s)
    end_s = np.minimum(start_s + trace.rules.round_s, work.leave_s[runs.job])
    useful_s = np.maximum(end_s - start_s - overhead_s, 0.0)
    part = runs.rate * useful_s / work.work[runs.job]
    total = np.cumsum(part)
    offset = np.repeat((total - part)[begins], np.diff(np.flatnonzero(begins), append=begins.size))
    left = 1.0 - (total - part - offset)
    ends = np.append(begins[1:], True)
    finishes = ends & (part >= left - SLIVER)
    busy_s = np.where(finishes, left * work.work[runs.job] / runs.rate, useful_s)
    completion_s[runs.job[finishes]] = (start_s + overhead_s + busy_s)[finishes]
    first_start_s[runs.job[begins]] = start_s[begins]
    return Done(busy_s * runs.rate, busy_s, completion_s, first_start_s)


def _differences(trace: Trace, work: Workload, order: Ints, runs: Runs, done: Done) -> Iterator[str]:
    """Yield a line where the records differ from what was computed, and where a job vanishes without a reason."""
    ids, sliver = work.ids, SLIVER * work.work[runs.job]
    everybody, second = np.arange(work.size), np.full(work.size, TOLERANCE)
    pairs = {
        "iterations": (trace.iterations[order], done.iterations, runs.job, sliver),
        "computing seconds": (trace.busy_s[order], done.busy_s, runs.job, sliver / runs.rate),
        "completion": (trace.completion_s, done.completion_s, everybody, second),
        "first start": (trace.first_start_s, done.first_start_s, everybody, second),
    }
    for what, (claimed, found, job, least) in pairs.items():
        wrong = np.flatnonzero(~np.isclose(claimed, found, rtol=TOLERANCE, atol=least, equal_nan=True))
        if wrong.size:
            i = int(wrong[0])
            more = f" ({wrong.size} differ)" if wrong.size > 1 else ""
            yield f"{ids[job[i]]}: {what} {claimed[i]:.9g}, its GPUs make it {found[i]:.9g}{more}"
    explained = np.array([reason is not None for reason in trace.unfinished], bool)
    wrong = np.flatnonzero(explained == np.isfinite(done.completion_s))
    if wrong.size:
        yield f"{ids[wrong[0]]}: a job either completes or has a reason why not"


def _at(trace: Trace, runs: Runs, where: Bools) -> str:
    """Name the first job and round of a mask."""
    i = int(np.flatnonzero(where)[0])
    return f"{trace.workload.ids[runs.job[i]]} in the round at {trace.start_s[runs.row[i]]:g} s"
