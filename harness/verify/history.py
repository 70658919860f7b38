"""Checker for simulated histories: from the instance and the records alone, with none of the engine's code.

Rates, overheads, progress and completion times are computed again from who held which GPUs in which round, all jobs at
once, with numpy; the records must say the same. Where rates are sensitive, they follow from who held which CPUs and
memory (:mod:`schedgap.harness.verify.sensitive`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.verify import TOLERANCE, Verdict
from schedgap.harness.verify.sensitive import Pooled, Speeds, beyond, gangs
from schedgap.heuristics.simulator.trace import HORIZON, IMPOSSIBLE, LEFT, STALLED, Rules, Trace
from schedgap.instances.schema import Instance
from schedgap.instances.workload import Servers, Workload, servers, workload

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SLIVER = 1e-9
"""Relative work or time that may be missing. A job whose last run misses its end by no more may be done or not."""

ROUNDING = 1e-12
"""Relative time by which a job may arrive after the start of a round and still be there."""


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
    """What the runs amount to: iterations and computing seconds of each, completion and first start of each job.

    `possible` ``(n,)`` says which jobs could complete at all.
    """

    iterations: Array
    busy_s: Array
    completion_s: Array
    first_start_s: Array
    possible: Bools


def check(instance: Instance, trace: Trace, rules: Rules) -> Verdict:
    """Re-check a history against its instance.

    Parameters
    ----------
    instance
        Jobs and servers.
    trace
        Records of a simulation. A policy may declare that a job runs slower than its GPUs would let it
        (:attr:`Assignment.speed`), never faster; where the rules are sensitive, CPUs and memory alone say how fast.
    rules
        What was asked for.

    Returns
    -------
    Verdict
        Its objective is the total utility of the completed jobs at the recomputed completion times.
    """
    work, cluster = workload(instance), servers(instance)
    foreign = {"workload": (trace.workload, work), "servers": (trace.servers, cluster), "rules": (trace.rules, rules)}
    if others := [name for name, (claimed, given) in foreign.items() if not _equal(claimed, given)]:
        return Verdict(None, tuple(f"{name}: not those that were to be simulated" for name in others))
    if malformed := _malformed(trace, work, cluster):
        return Verdict(None, (malformed,))
    by_job = np.lexsort((trace.allocation[:, 2], trace.allocation[:, 0], trace.allocation[:, 1]))
    table = trace.allocation[by_job]
    runs = _runs(trace, work, cluster, table)
    lines = [*_times(trace), *_entries(trace, cluster, table), *_presence(trace, work, runs)]
    lines += [*_widths(trace, work, table, runs), *_offers(trace, work, cluster)]
    if lines or (runs.rate.size and runs.rate.min() <= 0):
        return Verdict(None, tuple(lines) or (f"{_at(trace, runs, runs.rate <= 0)}: holds GPUs that it cannot run on",))
    order = np.lexsort((trace.progress[:, 0], trace.progress[:, 1]))
    if not np.array_equal(trace.progress[order], np.column_stack((runs.row, runs.job, runs.width))):
        return Verdict(None, ("progress: not the jobs that hold GPUs, by round",))
    speed = trace.speed[order]
    speeds = Speeds(instance, work, cluster) if rules.sensitive else None
    if wrong := [*_speeds(speeds, trace, work, cluster, by_job, runs, speed)]:
        return Verdict(None, tuple(wrong))
    runs = replace(runs, rate=runs.rate * speed)
    done = _done(trace, work, table, runs, _possible(speeds, trace, work, cluster))
    jobs = np.flatnonzero(np.isfinite(done.completion_s))
    worth = work.utilities.value(jobs, done.completion_s[jobs] - work.arrival_s[jobs])
    lines = [*_differences(trace, work, order, runs, done), *_ending(trace, work, cluster, runs, done)]
    return Verdict(float(worth.sum()), (*lines, *_counts(trace, work, cluster, table, runs, done)))


def _equal(one: Any, other: Any) -> bool:
    """Return whether two records of arrays, strings and numbers say the same."""
    if is_dataclass(one):
        return type(one) is type(other) and all(
            _equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)
        )
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def _malformed(trace: Trace, work: Workload, cluster: Servers) -> str | None:
    """Say what is wrong with the shapes and index ranges of the records, if anything is."""
    shapes = {
        "allocation": (trace.allocation, 4),
        "progress": (trace.progress, 3),
        "offered": (trace.offered, 2),
    }
    for name, (table, columns) in shapes.items():
        if table.ndim != 2 or table.shape[1] != columns or table.dtype.kind not in "iu":
            return f"{name}: a table of {columns} columns of whole numbers, not {table.dtype} of shape {table.shape}"
    if len(trace.unfinished) != work.size:
        return f"the instance has {work.size} jobs, the history {len(trace.unfinished)}"
    runs, rounds = len(trace.progress), trace.start_s.size
    if len(trace.offered) and not trace.rules.sensitive:
        return "offered: jobs are offered only where rates depend on CPUs and memory"
    lengths = {
        **dict.fromkeys(("cpus", "memory_gb"), len(trace.allocation) if trace.rules.sensitive else 0),
        "iterations": runs,
        "busy_s": runs,
        "speed": runs,
        **dict.fromkeys(("completion_s", "first_start_s"), work.size),
        **dict.fromkeys(("start_s", "decision_s", "stragglers", "restarts", "waiting"), rounds),
    }
    for name, length in lengths.items():
        part = getattr(trace, name)
        if part.shape != (length,) or part.dtype.kind not in "iuf":
            return f"{name}: {length} numbers, not {part.dtype} of shape {part.shape}"
    row, job, server = ("round", trace.rounds), ("job", work.size), ("server", cluster.size)
    named = (*trace.allocation.T[:3], trace.progress[:, 0], *trace.offered.T)
    for column, (what, size) in zip(named, (row, job, server, row, row, job), strict=True):
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
    if not np.all(np.abs(number - np.rint(number)) <= TOLERANCE) or np.any(np.diff(np.rint(number), prepend=-1) < 1):
        yield f"rounds begin at multiples of {trace.rules.round_s:g} s, one after another"
    if trace.start_s.size and trace.start_s[-1] >= trace.rules.until_s:
        yield f"a round begins at {trace.start_s[-1]:g} s, the simulation ends at {trace.rules.until_s:g} s"
    if not np.all((trace.decision_s >= 0) & np.isfinite(trace.decision_s)):
        yield "a decision takes 0 s or more"


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
    """Yield a line where a job runs before it is there, after its completion, or after its tenant has left."""
    for when, where in _absent(trace, work, runs.row, runs.job).items():
        if where.any():
            yield f"{_at(trace, runs, where)}: runs {when}"


def _absent(trace: Trace, work: Workload, row: Ints, job: Ints) -> dict[str, Bools]:
    """Return when jobs are not there, and for which of these pairs of a round and a job that is so."""
    start_s, profiling_s = trace.start_s[row], trace.rules.profiling_s
    come = "before its arrival" if not profiling_s else f"before its arrival and {profiling_s:g} s of profiling"
    return {
        come: start_s < (work.arrival_s + profiling_s)[job] * (1 - SLIVER),
        "after its completion": start_s >= trace.completion_s[job],
        "after its tenant has left": start_s >= work.leave_s[job],
    }


def _offers(trace: Trace, work: Workload, cluster: Servers) -> Iterator[str]:
    """Yield a line where a policy picks a job twice or that is not there, or more GPUs than there are."""
    row, job = trace.offered.T
    if len(np.unique(row * work.size + job)) < len(job):
        yield "offered: a pair of round and job occurs once"
    for when, where in _absent(trace, work, row, job).items():
        if where.any():
            i = int(where.argmax())
            yield f"{work.ids[job[i]]} in the round at {trace.start_s[row[i]]:g} s: offered {when}"
    wanted = np.bincount(row, work.gpus[job], trace.rounds)
    over = np.flatnonzero(wanted > cluster.gpus.sum())
    if over.size:
        at = f"round at {trace.start_s[over[0]]:g} s"
        yield f"{at}: jobs of {wanted[over[0]]:g} GPUs are offered, there are {cluster.gpus.sum()}"


def _speeds(
    speeds: Speeds | None, trace: Trace, work: Workload, cluster: Servers, by_job: Ints, runs: Runs, speed: Array
) -> Iterator[str]:
    """Yield a line where a factor on a rate is none, or is not what the job's CPUs and memory make it."""
    if speeds is None:
        if not np.all((speed > 0) & (speed <= 1 + SLIVER)):
            yield "a declared factor on a rate is more than 0 and at most 1"
        return
    row, job, server, gpus = trace.allocation[by_job].T
    held = np.column_stack((gpus, trace.cpus[by_job], trace.memory_gb[by_job]))
    if not np.all(np.isfinite(held) & (held >= 0)):
        yield "CPUs and memory are 0 or more"
        return
    for amount, capacity, what in ((held[:, 1], cluster.cpus, "CPUs"), (held[:, 2], cluster.memory_gb, "GB")):
        if over := beyond(row * cluster.size + server, amount, capacity):
            t, h = divmod(over[0], cluster.size)
            shares = f"{over[1]:g} {what} of server {cluster.names[h]}"
            yield f"round at {trace.start_s[t]:g} s: {shares}, it has {capacity[h]:g}"
    found = gangs(job, row, cluster.gpu_type[server], held)
    if found.mixed.any():
        yield f"{_at(trace, runs, found.mixed)}: holds GPUs of several types"
    rate = speeds.rate(found.job, found.gpu_type, *found.least.T)
    made = rate / (found.gpus * work.rates[found.job, found.gpu_type])
    wrong = ~(np.isclose(speed, made, rtol=SLIVER, atol=0.0) & (speed > 0))
    if wrong.any():
        i = int(wrong.argmax())
        yield f"{_at(trace, runs, wrong)}: speed {speed[i]:.9g}, its CPUs and memory make it {made[i]:.9g}"


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


def _done(trace: Trace, work: Workload, table: Ints, runs: Runs, possible: Bools) -> Done:
    """Compute what every run achieves.

    Progress counts in parts of a job's work, and adds up job by job and only over earlier runs, so that no large part
    takes digits from others. Where the last run ends within :data:`SLIVER` of the work, the claim decides.
    """
    completion_s, first_start_s = np.full(work.size, math.nan), np.full(work.size, math.nan)
    if not runs.job.size:
        return Done(np.zeros(0), np.zeros(0), completion_s, first_start_s, possible)
    start_s = trace.start_s[runs.row]
    begins = np.diff(runs.job, prepend=-1) != 0
    overhead_s = np.where(begins | _stayed(table, runs), 0.0, trace.rules.restart_s)
    end_s = np.minimum(start_s + trace.rules.round_s, work.leave_s[runs.job])
    useful_s = np.maximum(end_s - start_s - overhead_s, 0.0)
    part = runs.rate * useful_s / work.work[runs.job]
    left = np.ones(part.size)
    for first, after in pairwise([*np.flatnonzero(begins).tolist(), part.size]):
        left[first + 1 : after] -= np.cumsum(part[first : after - 1])
    claimed = np.isfinite(trace.completion_s)[runs.job]
    finishes = np.append(begins[1:], True) & (part >= np.where(claimed, left - SLIVER, left + SLIVER))
    busy_s = np.where(finishes, left * work.work[runs.job] / runs.rate, useful_s)
    completion_s[runs.job[finishes]] = (start_s + overhead_s + busy_s)[finishes]
    first_start_s[runs.job[begins]] = start_s[begins]
    return Done(busy_s * runs.rate, busy_s, completion_s, first_start_s, possible)


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


def _first_round(at_s: Array, round_s: float) -> Array:
    """Return the number of the first round that begins at or after each time."""
    number = np.ceil(at_s / round_s)
    number = np.where((number - 1) * round_s >= at_s, number - 1, number)
    return np.asarray(np.where(number * round_s < at_s, number + 1, number))


def _stays(trace: Trace, work: Workload, cluster: Servers, runs: Runs, done: Done) -> tuple[Array, Array]:
    """Return the number of the round in which each job comes, and of the first one without it; equal if never there."""
    comes = _first_round((work.arrival_s + trace.rules.profiling_s) / (1 + ROUNDING), trace.rules.round_s)
    gone = np.maximum(_first_round(work.leave_s, trace.rules.round_s), comes)
    last = np.zeros(work.size, np.int64)
    last[runs.job] = runs.row  # runs are in order, so the last one of a job stays
    completed = np.isfinite(done.completion_s)
    gone[completed] = _numbers(trace)[last[completed]] + 1
    return comes, np.where(done.possible, gone, comes)


def _numbers(trace: Trace) -> Array:
    """Return ``(R,)`` numbers of the rounds."""
    return np.asarray(np.rint(trace.start_s / trace.rules.round_s))


def _possible(speeds: Speeds | None, trace: Trace, work: Workload, cluster: Servers) -> Bools:
    """Return ``(n,)`` which jobs could run on an empty cluster; where they fork, one GPU is enough.

    Where rates are sensitive, they advance on one GPU type with their proportional share.
    """
    if speeds is not None:
        return np.asarray(Pooled(speeds).able.any(axis=1))
    usable = (work.rates > 0) @ np.bincount(cluster.gpu_type, cluster.gpus, len(work.gpu_types))
    return np.asarray(usable >= (1 if trace.rules.forks else work.gpus))


def _counts(trace: Trace, work: Workload, cluster: Servers, table: Ints, runs: Runs, done: Done) -> Iterator[str]:
    """Yield a line where rounds are missing or empty, or where what was counted in a round differs."""
    comes, gone = _stays(trace, work, cluster, runs, done)
    number = _numbers(trace)
    come, go = np.sort(comes[gone > comes]), np.sort(gone[gone > comes])
    present = np.searchsorted(come, number, "right") - np.searchsorted(go, number, "right")
    if np.any(present < 1):
        yield f"round at {trace.start_s[present < 1][0]:g} s: no job is there"
    due = np.concatenate([[0.0], number[:-1] + 1])[: number.size]
    skipped = (due < number) & (np.searchsorted(come, number, "left") > np.searchsorted(go, due, "right"))
    if skipped.any():
        at_s = due[skipped][0] * trace.rules.round_s
        yield f"a job is there at {at_s:g} s or soon after, but no round begins"
    for what, (claimed, found) in _counted(trace, cluster, table, runs, present).items():
        wrong = np.flatnonzero(claimed != found)
        if wrong.size:
            i = int(wrong[0])
            yield f"round at {trace.start_s[i]:g} s: {what} {claimed[i]:g}, its jobs and GPUs make it {found[i]:g}"


def _counted(
    trace: Trace, cluster: Servers, table: Ints, runs: Runs, present: Ints
) -> dict[str, tuple[Ints, NDArray[Any]]]:
    """Return the claimed and the found counts of each round, where so many jobs are present."""
    size, changed, mixed = trace.rounds, np.zeros(runs.job.size, bool), np.zeros(runs.job.size, bool)
    if runs.job.size:
        changed = (np.diff(runs.job, prepend=-1) == 0) & ~_stayed(table, runs)
    if runs.job.size and not trace.rules.forks:
        kind = cluster.gpu_type[table[:, 2]]
        mixed = np.minimum.reduceat(kind, runs.first) != np.maximum.reduceat(kind, runs.first)
    return {
        "waiting": (trace.waiting, present - np.bincount(runs.row, minlength=size)),
        "restarts": (trace.restarts, np.bincount(runs.row[changed], minlength=size)),
        "stragglers": (trace.stragglers, np.bincount(runs.row[mixed], runs.width[mixed], size)),
    }


def _ending(trace: Trace, work: Workload, cluster: Servers, runs: Runs, done: Done) -> Iterator[str]:
    """Yield a line where the simulation ends too early, and where a job's reason for not completing does not follow."""
    comes, gone = _stays(trace, work, cluster, runs, done)
    number, rules = _numbers(trace), trace.rules
    following = number[-1] + 1 if number.size else 0.0
    busy = int(runs.row.max(initial=-1))
    stalled = trace.rounds - 1 - busy >= rules.stall_rounds
    soonest = np.maximum(comes, following)
    pending = gone > soonest
    end_s = (following if stalled else float(soonest[pending].min(initial=math.inf))) * rules.round_s
    if not stalled and pending.any() and end_s < rules.until_s:
        yield f"the simulation ends before the round at {end_s:g} s, {work.ids[int(pending.argmax())]} is not done"
    completed, possible = np.isfinite(done.completion_s), done.possible
    for j, claimed in enumerate(trace.unfinished):
        left = LEFT if work.leave_s[j] <= end_s else STALLED if stalled else HORIZON
        found = None if completed[j] else left if possible[j] else IMPOSSIBLE
        if claimed != found:
            said = "no reason" if claimed is None else f"the reason {str(claimed)!r}"
            yield f"{work.ids[j]}: {said} for not completing, from its rates and times: {found or 'it completes'}"
            return


def _at(trace: Trace, runs: Runs, where: Bools) -> str:
    """Name the first job and round of a mask."""
    i = int(np.flatnonzero(where)[0])
    return f"{trace.workload.ids[runs.job[i]]} in the round at {trace.start_s[runs.row[i]]:g} s"
