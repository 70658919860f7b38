"""Checker for simulated histories: it uses only the instance and the records, and none of the simulator's code.

From the GPUs that each job held in each round, it recomputes rates, overheads, progress and completion times with
numpy, all jobs at once, and compares them with the records. Sensitive rates follow from the CPUs and memory that jobs
held (:mod:`schedgap.harness.check.sensitive`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from schedgap.certificates.reading.jobs import Jobs
from schedgap.certificates.reading.servers import RawServers
from schedgap.certificates.reading.simulated import Simulated, simulated_of
from schedgap.harness.check.registry import TOLERANCE, Verdict, facts_of
from schedgap.harness.check.rules import Rows, refuse, refusing, well_formed
from schedgap.harness.check.sensitive import beyond, gangs, offered, overfull
from schedgap.heuristics.simulator.trace import HORIZON, IMPOSSIBLE, LEFT, STALLED, Rules, Trace
from schedgap.instances.arrays import Array
from schedgap.instances.schema import Instance

SLIVER = 1e-9
"""Relative tolerance of work and times: a job whose last run ends this close to its completion may be done or not."""

ROUNDING = 1e-12
"""Relative time by which a job may arrive after the start of a round and still be present in it."""

OF_JOBS = ("ids", "gpu_types", "arrival_s", "leave_s", "gpus", "work", "weight", "rates", "exchange_s")
OF_SERVERS = ("names", "gpu_type", "gpus", "cpus", "memory_gb", "machine")
"""Fields of jobs and servers that a history repeats; they must equal those of the instance."""

AT = "{job} in the round at {row}: "


class HistoryTables:
    """The records of a history as tables, with quantities derived from the instance.

    `sensitive` has rates by CPUs and memory if the rules are sensitive. `held` has one row per job, round (`row`) and
    server, in this order: `gpus`, `cpus`, `memory_gb`. `runs` has one row per job and round in which it runs: its GPUs
    (`width`), `rate` and start, and later its progress. `rounds` has one row per round with its `number`, and `jobs`
    one row per job with whether it could complete at all (`possible`).
    """

    def __init__(self, trace: Trace, facts: Simulated) -> None:
        work, cluster, sensitive = facts.jobs, facts.servers, facts.read if trace.rules.sensitive else None
        names: dict[str, Callable[[Any], str]] = {
            "job": work.ids.__getitem__,
            "server": cluster.names.__getitem__,
            "row": lambda row: f"{trace.start_s[row]:g} s",
        }
        order = np.lexsort((trace.allocation[:, 2], trace.allocation[:, 0], trace.allocation[:, 1]))
        row, job, server, gpus = trace.allocation[order].T
        held = Rows(names, row=row, job=job, server=server, gpus=gpus, gpu_type=cluster.gpu_type[server])
        nothing = np.zeros(gpus.size)
        held.cpus, held.memory_gb = (x[order] if sensitive else nothing for x in (trace.cpus, trace.memory_gb))
        runs, rates = held.by("job", "row"), work.rates[job, held.gpu_type]
        runs.width, runs.gang, runs.start_s = runs.total(gpus), work.gpus[runs.job], trace.start_s[runs.row]
        if trace.rules.forks:
            runs.rate = runs.total(gpus * rates)
        else:
            runs.rate = runs.least(rates)
            waits_s = work.exchange_s[runs.job] if trace.rules.network else 0.0
            slower = trace.rules.spread_factor / (1 + waits_s * runs.rate)
            runs.rate = runs.rate * runs.width * np.where(runs.count > 1, slower, 1.0)
        number = np.rint(trace.start_s / trace.rules.round_s)
        self.rounds = Rows(names, row=np.arange(trace.rounds), number=number)
        if sensitive is not None:  # with its proportional share, the job advances on some GPU type
            possible = sensitive.pooled.able.any(axis=1)
        else:  # the job fits on an empty cluster; jobs that fork need only one GPU
            usable = (work.rates > 0) @ cluster.capacity
            possible = usable >= (1 if trace.rules.forks else work.gpus)
        names["reason"] = lambda claimed: "no reason" if claimed is None else f"the reason {str(claimed)!r}"
        names["follows"] = lambda made: made or "it completes"
        self.jobs = Rows(names, job=np.arange(work.size), possible=np.asarray(possible))
        self.trace, self.work, self.cluster, self.sensitive = trace, work, cluster, sensitive
        self.held, self.runs = held, runs


@refusing
def check(instance: Instance, trace: Trace, rules: Rules) -> Verdict:
    """Check a history; the objective is the total utility of the jobs at the recomputed completion times.

    A policy may declare that a job runs slower than its GPUs allow (:attr:`Assignment.speed`), but never faster; if the
    rules are sensitive, CPUs and memory alone determine the speed.
    """
    facts: Simulated = facts_of(instance, simulated_of)
    work, cluster = facts.jobs, facts.servers
    foreign = {
        "workload": not _equal(trace.workload, work, OF_JOBS),
        "servers": not _equal(trace.servers, cluster, OF_SERVERS),
        "rules": trace.rules != rules,
    }
    refuse(f"{name}: differs from what was to be simulated" for name, other in foreign.items() if other)
    _readable(trace, work, cluster)
    tables = HistoryTables(trace, facts)
    runs, jobs = tables.runs, tables.jobs
    held, gang = tables.held, work.gpus[tables.held.job]
    if rules.forks:
        lines = held.broken(held.gpus > gang, AT + "a copy of {gpus} GPUs, its gang has {gang}", gang=gang)
    else:
        lines = runs.broken(runs.width != runs.gang, AT + "{width} GPUs, its gang needs all {gang} or none")
    offers = Rows(held.names, row=trace.offered[:, 0], job=trace.offered[:, 1])
    lines += offered(offers, work.gpus, cluster.gpus.sum(), "round at {row}")
    absent = [*_absent(tables, runs, "runs"), *_absent(tables, offers, "offered")]
    refuse([*_times(tables), *_entries(tables), *absent, *lines])
    refuse(runs.broken(runs.rate <= 0, AT + "holds GPUs that it cannot run on"))
    order = np.lexsort((trace.progress[:, 0], trace.progress[:, 1]))
    same = np.array_equal(trace.progress[order], np.column_stack((runs.row, runs.job, runs.width)))
    refuse([] if same else ["progress: its rows are not the jobs that hold GPUs, by round"])
    runs.speed, runs.claimed, runs.claimed_s = (x[order] for x in (trace.speed, trace.iterations, trace.busy_s))
    refuse(_speeds(tables))
    runs.rate = runs.rate * runs.speed
    _run(tables)
    sliver, lines = SLIVER * work.work[runs.job], []
    for what, rows, claimed, made, least in (
        ("iterations", runs, runs.claimed, runs.iterations, sliver),
        ("computing seconds", runs, runs.claimed_s, runs.busy_s, sliver / runs.rate),
        ("completion", jobs, trace.completion_s, jobs.completion_s, TOLERANCE),
        ("first start", jobs, trace.first_start_s, jobs.first_start_s, TOLERANCE),
    ):
        differ = ~np.isclose(claimed, made, rtol=TOLERANCE, atol=least, equal_nan=True)
        text = f"{{job}}: {what} {{claimed:.9g}}, recomputed {{made:.9g}}{{more}}"
        lines += rows.broken(differ, text, " ({count} differ)", claimed=claimed, made=made)
    done = np.flatnonzero(np.isfinite(jobs.completion_s))
    worth = facts.utilities.value(done, jobs.completion_s[done] - work.arrival_s[done])
    return Verdict(float(worth.sum()), (*lines, *_ending(tables), *_counts(tables)))


def _equal(claimed: Any, read: Any, names: tuple[str, ...]) -> bool:
    """Return whether the history's jobs (or servers) equal those read from the instance, in the fields `names`."""
    pairs = ((np.asarray(getattr(claimed, name)), np.asarray(getattr(read, name))) for name in names)
    return all(np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f") for one, other in pairs)


def _readable(trace: Trace, work: Jobs, cluster: RawServers) -> None:
    """Refuse records of wrong shapes, and indices out of range."""
    for name, columns in {"allocation": 4, "progress": 3, "offered": 2}.items():
        table = getattr(trace, name)
        if table.ndim != 2 or table.shape[1] != columns or table.dtype.kind not in "iu":
            expected = f"{name}: a table of {columns} columns of whole numbers"
            refuse([f"{expected}, not {table.dtype} of shape {table.shape}"])
    if len(trace.unfinished) != work.size:
        refuse([f"the instance has {work.size} jobs, the history {len(trace.unfinished)}"])
    if len(trace.offered) and not trace.rules.sensitive:
        refuse(["offered: jobs are offered only where rates depend on CPUs and memory"])
    lengths = {
        **dict.fromkeys(("cpus", "memory_gb"), len(trace.allocation) if trace.rules.sensitive else 0),
        **dict.fromkeys(("iterations", "busy_s", "speed"), len(trace.progress)),
        **dict.fromkeys(("completion_s", "first_start_s"), work.size),
        **dict.fromkeys(("start_s", "decision_s", "stragglers", "restarts", "waiting"), trace.start_s.size),
    }
    for name, length in lengths.items():
        column = getattr(trace, name)
        if column.shape != (length,) or column.dtype.kind not in "iuf":
            refuse([f"{name}: {length} numbers, not {column.dtype} of shape {column.shape}"])
    for table in (trace.allocation[:, :3], trace.progress[:, :1], trace.offered):
        sizes = {"round": trace.rounds, "job": work.size, "server": cluster.size}
        indices = dict(zip(sizes, table.T, strict=False))
        well_formed(SimpleNamespace(**indices), {name: sizes[name] for name in indices})
    total = int(cluster.gpus.sum())
    for name, gpus in {"allocation": trace.allocation[:, 3], "progress": trace.progress[:, 2]}.items():
        if ((gpus < 0) | (gpus > total)).any():  # sums of larger numbers may overflow
            refuse([f"{name}: numbers of GPUs are from 0 to {total}, those of the cluster"])


# ---------------------------------------------------------------- allocations


def _times(tables: HistoryTables) -> list[str]:
    """Check that rounds begin at multiples of the round length, in order, before the horizon."""
    start_s, rules, decision_s = tables.trace.start_s, tables.trace.rules, tables.trace.decision_s
    number, rounds = start_s / rules.round_s, tables.rounds
    off = ~np.isclose(number, rounds.number, ROUNDING, ROUNDING) | (np.diff(rounds.number, prepend=-1) < 1)
    until = f"the simulation ends at {rules.until_s:g} s"
    return [
        *rounds.broken(off, f"round at {{row}}: rounds begin at multiples of {rules.round_s:g} s, one after another"),
        *rounds.broken(start_s >= rules.until_s, f"a round begins at {{row}}, {until}"),
        *rounds.broken(~((decision_s >= 0) & np.isfinite(decision_s)), "round at {row}: a decision takes 0 s or more"),
    ]


def _entries(tables: HistoryTables) -> list[str]:
    """Report entries without GPUs, duplicate entries, and servers beyond their capacity."""
    held, cluster = tables.held, tables.cluster
    odd = ~np.isfinite(held.cpus + held.memory_gb) | (held.cpus < 0) | (held.memory_gb < 0)
    refuse(held.broken(odd, AT + "CPUs and memory are 0 or more"))
    entries = held.by("row", "job", "server")
    machines = cluster.amounts
    return [
        *held.broken(held.gpus < 1, AT + "an entry has at least one GPU"),
        *entries.broken(entries.count > 1, AT + "server {server} occurs twice"),
        *overfull(held, machines if tables.sensitive else machines[:, :1], "round at {row}"),
    ]


def _absent(tables: HistoryTables, rows: Rows, does: str) -> list[str]:
    """Report jobs that are absent: before their arrival, after their completion, or after their tenant has left."""
    trace, work = tables.trace, tables.work
    start_s, profiling_s = trace.start_s[rows.row], trace.rules.profiling_s
    early = "before its arrival" + (f" and {profiling_s:g} s of profiling" if profiling_s else "")
    return [
        *rows.broken(start_s * (1 + ROUNDING) < (work.arrival_s + profiling_s)[rows.job], f"{AT}{does} {early}"),
        *rows.broken(start_s >= trace.completion_s[rows.job], f"{AT}{does} after its completion"),
        *rows.broken(start_s >= work.leave_s[rows.job], f"{AT}{does} after its tenant has left"),
    ]


def _speeds(tables: HistoryTables) -> list[str]:
    """Check each run's factor on its rate: it is in (0, 1], or follows from the job's CPUs and memory."""
    runs = tables.runs
    if tables.sensitive is None:
        wrong = ~((runs.speed > 0) & (runs.speed <= 1 + SLIVER))
        return runs.broken(wrong, "a declared factor on a rate is more than 0 and at most 1")
    held = gangs(tables.held)
    rate = tables.sensitive.rate(held.job, held.gpu_type, *held.enough.T)
    made = rate / (held.gpus * tables.work.rates[held.job, held.gpu_type])
    wrong = ~(np.isclose(runs.speed, made, rtol=SLIVER, atol=0.0) & (runs.speed > 0))
    rules = beyond(held, tables.sensitive.pooled.limit[held.job, held.gpu_type])
    return [
        *held.broken(held.mixed, AT + "holds GPUs of several types"),
        *(line for odd, text in rules for line in held.broken(odd, AT + text)),
        *runs.broken(wrong, AT + "speed {speed:.9g}, but its CPUs and memory give {made:.9g}", made=made),
    ]


# ---------------------------------------------------------------- progress


def _run(tables: HistoryTables) -> None:
    """Compute iterations and computing seconds of each run, and first start and completion of each job.

    Progress is a fraction of the job's work, summed separately for each job over its earlier runs, so that large jobs
    take no digits from small ones. If a run ends within :data:`SLIVER` of the job's work, rounding decides whether the
    job is done, and the record is believed.
    """
    trace, work, runs, held, jobs = tables.trace, tables.work, tables.runs, tables.held, tables.jobs
    jobs.completion_s, jobs.first_start_s = np.full(work.size, math.nan), np.full(work.size, math.nan)
    begins = np.diff(runs.job, prepend=-1) != 0
    follows = ~begins & (np.diff(runs.row, prepend=-2) == 1) & (runs.count == np.append(0, runs.count)[:-1])
    # The entry of the same rank in the previous run, or the entry itself where the run follows none.
    before = np.arange(held.job.size) - runs.spread(np.where(follows, runs.count, 0))
    same = (held.server == held.server[before]) & (held.gpus == held.gpus[before])
    runs.changed = ~begins & ~(follows & runs.least(same))
    overhead_s = np.where(runs.changed, trace.rules.restart_s, 0.0)
    end_s = np.minimum(runs.start_s + trace.rules.round_s, work.leave_s[runs.job])
    useful_s = np.maximum(end_s - runs.start_s - overhead_s, 0.0)
    part = runs.rate * useful_s / work.work[runs.job]
    left = np.ones(part.size)
    for first, after in pairwise([*np.flatnonzero(begins).tolist(), part.size]):
        left[first + 1 : after] -= np.cumsum(part[first : after - 1])
    claimed = np.isfinite(trace.completion_s)[runs.job]
    ends = np.append(begins, True)[1:] & (part >= np.where(claimed, left - SLIVER, left + SLIVER))
    runs.busy_s = np.where(ends, left * work.work[runs.job] / runs.rate, useful_s)
    runs.iterations = runs.busy_s * runs.rate
    jobs.completion_s[runs.job[ends]] = (runs.start_s + overhead_s + runs.busy_s)[ends]
    jobs.first_start_s[runs.job[begins]] = runs.start_s[begins]


# ---------------------------------------------------------------- rounds and the end


def _first_round(at_s: Array, round_s: float) -> Array:
    """Return the number of the first round that begins at or after each time."""
    number = np.ceil(at_s / round_s)
    number = np.where((number - 1) * round_s >= at_s, number - 1, number)
    return np.asarray(np.where(number * round_s < at_s, number + 1, number))


def _stays(tables: HistoryTables) -> tuple[Array, Array]:
    """Return the number of each job's first round, and of the first round after it left; equal if it never came."""
    rules, work, runs, jobs = tables.trace.rules, tables.work, tables.runs, tables.jobs
    comes = _first_round((work.arrival_s + rules.profiling_s) / (1 + ROUNDING), rules.round_s)
    gone = np.maximum(_first_round(work.leave_s, rules.round_s), comes)
    last = np.zeros(work.size, np.int64)
    last[runs.job] = runs.row  # runs are in order, so each job keeps its last one
    completed = np.isfinite(jobs.completion_s)
    gone[completed] = tables.rounds.number[last[completed]] + 1
    return comes, np.where(jobs.possible, gone, comes)


def _counts(tables: HistoryTables) -> list[str]:
    """Report missing and empty rounds, and rounds whose recorded counts are wrong."""
    trace, runs, rounds, size = tables.trace, tables.runs, tables.rounds, tables.trace.rounds
    comes, gone = _stays(tables)
    come, go = np.sort(comes[gone > comes]), np.sort(gone[gone > comes])
    present = np.searchsorted(come, rounds.number, "right") - np.searchsorted(go, rounds.number, "right")
    due = np.append(0.0, rounds.number + 1)[:-1]
    skipped = (due < rounds.number) & (np.searchsorted(come, rounds.number, "left") > np.searchsorted(go, due, "right"))
    text, due_s = "a job is present from about {due:g} s, but no round begins", due * trace.rules.round_s
    lines = rounds.broken(present < 1, "round at {row}: no job is present") + rounds.broken(skipped, text, due=due_s)
    mixed = (runs.least(tables.held.gpu_type) != runs.most(tables.held.gpu_type)) & (not trace.rules.forks)
    counted = {
        "waiting": (trace.waiting, present - np.bincount(runs.row, minlength=size)),
        "restarts": (trace.restarts, np.bincount(runs.row, runs.changed, size)),
        "stragglers": (trace.stragglers, np.bincount(runs.row, runs.width * mixed, size)),
    }
    for what, (claimed, made) in counted.items():
        text = f"round at {{row}}: {what} {{claimed:.12g}}, recomputed {{made:.12g}}"
        lines += rounds.broken(claimed != made, text, claimed=claimed, made=made)
    return lines


def _ending(tables: HistoryTables) -> list[str]:
    """Report a simulation that ends too early, and jobs whose recorded reason for not completing is wrong."""
    trace, rules, work, jobs, number = tables.trace, tables.trace.rules, tables.work, tables.jobs, tables.rounds.number
    comes, gone = _stays(tables)
    following = number[-1] + 1 if number.size else 0.0
    stalled = trace.rounds - 1 - int(tables.runs.row.max(initial=-1)) >= rules.stall_rounds
    soonest = np.maximum(comes, following)
    pending = gone > soonest
    end_s = (following if stalled else float(soonest[pending].min(initial=math.inf))) * rules.round_s
    early = pending & (not stalled and end_s < rules.until_s)
    left = np.where(work.leave_s <= end_s, LEFT, STALLED if stalled else HORIZON)
    made = np.where(jobs.possible, left, IMPOSSIBLE).astype(object)
    made[np.isfinite(jobs.completion_s)] = None
    claimed, text = trace.unfinished, "{job}: {reason} for not completing; its rates and times imply: {follows}"
    return [
        *jobs.broken(early, f"the simulation ends before the round at {end_s:g} s, {{job}} is not done"),
        *jobs.broken(np.array(claimed, object) != made, text, reason=claimed, follows=made),
    ]
