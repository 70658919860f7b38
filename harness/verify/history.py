"""Checker for simulated histories: from the instance and the records alone, with none of the engine's code.

Rates, overheads, progress and completion times are computed again from who held which GPUs in which round, all jobs at
once, with numpy; the records must say the same. Where rates are sensitive, they follow from who held which CPUs and
memory (:mod:`schedgap.harness.verify.sensitive`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from schedgap.harness.verify import TOLERANCE, Verdict
from schedgap.harness.verify.rules import Rows, refuse, refusing, well_formed
from schedgap.harness.verify.sensitive import Speeds, gangs, offered, overfull
from schedgap.heuristics.simulator.trace import HORIZON, IMPOSSIBLE, LEFT, STALLED, Rules, Trace
from schedgap.instances.arrays import Array
from schedgap.instances.schema import Instance
from schedgap.instances.workload import Servers, Workload, servers, workload

SLIVER = 1e-9
"""Relative work or time that may be missing. A job whose last run misses its end by no more may be done or not."""

ROUNDING = 1e-12
"""Relative time by which a job may arrive after the start of a round and still be there."""

AT = "{job} in the round at {row}: "


class Facts:
    """The records of a history as tables, with what follows from the instance.

    There are `speeds`, rates by CPUs and memory, where the rules are sensitive. `held` has a row per round (`row`), job
    and server, by job, then round: `gpus`, `cpus`, `memory_gb`. `runs` has one per job and round in which it runs: its
    GPUs (`width`), `rate` and start, and later what it achieves; `rounds` one per round with its `number`, and `jobs`
    one per job, with whether it could complete at all (`possible`).
    """

    def __init__(self, trace: Trace, work: Workload, cluster: Servers, speeds: Speeds | None) -> None:
        names: dict[str, Callable[[Any], str]] = {
            "job": work.ids.__getitem__,
            "server": cluster.names.__getitem__,
            "row": lambda row: f"{trace.start_s[row]:g} s",
        }
        order = np.lexsort((trace.allocation[:, 2], trace.allocation[:, 0], trace.allocation[:, 1]))
        row, job, server, gpus = trace.allocation[order].T
        held = Rows(names, row=row, job=job, server=server, gpus=gpus, gpu_type=cluster.gpu_type[server])
        nothing = np.zeros(gpus.size)
        held.cpus, held.memory_gb = (x[order] if speeds else nothing for x in (trace.cpus, trace.memory_gb))
        runs, one = held.by("job", "row"), work.rates[job, held.gpu_type]
        runs.width, runs.gang, runs.start_s = runs.total(gpus), work.gpus[runs.job], trace.start_s[runs.row]
        if trace.rules.forks:
            runs.rate = runs.total(gpus * one)
        else:
            runs.rate = runs.least(one) * runs.width * np.where(runs.count > 1, trace.rules.spread_factor, 1.0)
        number = np.rint(trace.start_s / trace.rules.round_s)
        self.rounds = Rows(names, row=np.arange(trace.rounds), number=number)
        if speeds is not None:  # jobs advance on one GPU type with their proportional share
            possible = speeds.pooled.able.any(axis=1)
        else:  # on an empty cluster, where one GPU is enough for jobs that fork
            usable = (work.rates > 0) @ np.bincount(cluster.gpu_type, cluster.gpus, len(work.gpu_types))
            possible = usable >= (1 if trace.rules.forks else work.gpus)
        names["reason"] = lambda claimed: "no reason" if claimed is None else f"the reason {str(claimed)!r}"
        names["follows"] = lambda made: made or "it completes"
        self.jobs = Rows(names, job=np.arange(work.size), possible=np.asarray(possible))
        self.trace, self.work, self.cluster, self.speeds = trace, work, cluster, speeds
        self.held, self.runs = held, runs


@refusing
def check(instance: Instance, trace: Trace, rules: Rules) -> Verdict:
    """Return the verdict on a history; its objective is the total utility of jobs at the recomputed completion times.

    A policy may declare that a job runs slower than its GPUs would let it (:attr:`Assignment.speed`), never faster;
    where the rules are sensitive, CPUs and memory alone say how fast.
    """
    work, cluster = workload(instance), servers(instance)
    foreign = {"workload": (trace.workload, work), "servers": (trace.servers, cluster), "rules": (trace.rules, rules)}
    others = [name for name, (claimed, given) in foreign.items() if not _equal(claimed, given)]
    refuse(f"{name}: not those that were to be simulated" for name in others)
    _readable(trace, work, cluster)
    facts = Facts(trace, work, cluster, Speeds(instance, work, cluster) if rules.sensitive else None)
    runs, jobs = facts.runs, facts.jobs
    held, gang = facts.held, work.gpus[facts.held.job]
    if rules.forks:
        lines = held.broken(held.gpus > gang, AT + "a copy of {gpus} GPUs, its gang has {gang}", gang=gang)
    else:
        lines = runs.broken(runs.width != runs.gang, AT + "{width} GPUs, its gang is all {gang} or none")
    offers = Rows(held.names, row=trace.offered[:, 0], job=trace.offered[:, 1])
    lines += offered(offers, work.gpus, cluster.gpus.sum(), "round at {row}")
    there = [*_there(facts, runs, "runs"), *_there(facts, offers, "offered")]
    refuse([*_times(facts), *_entries(facts), *there, *lines])
    refuse(runs.broken(runs.rate <= 0, AT + "holds GPUs that it cannot run on"))
    order = np.lexsort((trace.progress[:, 0], trace.progress[:, 1]))
    same = np.array_equal(trace.progress[order], np.column_stack((runs.row, runs.job, runs.width)))
    refuse([] if same else ["progress: not the jobs that hold GPUs, by round"])
    runs.speed, runs.claimed, runs.claimed_s = (x[order] for x in (trace.speed, trace.iterations, trace.busy_s))
    refuse(_speeds(facts))
    runs.rate = runs.rate * runs.speed
    _run(facts)
    sliver, lines = SLIVER * work.work[runs.job], []
    for what, rows, claimed, made, least in (
        ("iterations", runs, runs.claimed, runs.iterations, sliver),
        ("computing seconds", runs, runs.claimed_s, runs.busy_s, sliver / runs.rate),
        ("completion", jobs, trace.completion_s, jobs.completion_s, TOLERANCE),
        ("first start", jobs, trace.first_start_s, jobs.first_start_s, TOLERANCE),
    ):
        differ = ~np.isclose(claimed, made, rtol=TOLERANCE, atol=least, equal_nan=True)
        told = f"{{job}}: {what} {{claimed:.9g}}, its GPUs make it {{made:.9g}}{{more}}"
        lines += rows.broken(differ, told, " ({count} differ)", claimed=claimed, made=made)
    done = np.flatnonzero(np.isfinite(jobs.completion_s))
    worth = work.utilities.value(done, jobs.completion_s[done] - work.arrival_s[done])
    return Verdict(float(worth.sum()), (*lines, *_ending(facts), *_counts(facts)))


def _equal(one: Any, other: Any) -> bool:
    """Return whether two records of arrays, strings and numbers say the same."""
    names = [f.name for f in fields(one)] if is_dataclass(one) else getattr(one, "_fields", ())
    if names:
        return type(one) is type(other) and all(_equal(getattr(one, name), getattr(other, name)) for name in names)
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def _readable(trace: Trace, work: Workload, cluster: Servers) -> None:
    """Refuse records of wrong shapes, and indices out of range."""
    for name, columns in {"allocation": 4, "progress": 3, "offered": 2}.items():
        table = getattr(trace, name)
        if table.ndim != 2 or table.shape[1] != columns or table.dtype.kind not in "iu":
            told = f"{name}: a table of {columns} columns of whole numbers, not {table.dtype} of shape {table.shape}"
            refuse([told])
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
        part = getattr(trace, name)
        if part.shape != (length,) or part.dtype.kind not in "iuf":
            refuse([f"{name}: {length} numbers, not {part.dtype} of shape {part.shape}"])
    for table in (trace.allocation[:, :3], trace.progress[:, :1], trace.offered):
        sizes = {"round": trace.rounds, "job": work.size, "server": cluster.size}
        indices = dict(zip(sizes, table.T, strict=False))
        well_formed(SimpleNamespace(**indices), {name: sizes[name] for name in indices})


# ---------------------------------------------------------------- who holds what when


def _times(facts: Facts) -> list[str]:
    """Return a line where rounds do not begin at multiples of the round length, in order, before the horizon."""
    start_s, rules, decision_s = facts.trace.start_s, facts.trace.rules, facts.trace.decision_s
    number, rounds = start_s / rules.round_s, facts.rounds
    off = ~(np.abs(number - rounds.number) <= TOLERANCE) | (np.diff(rounds.number, prepend=-1) < 1)
    until = f"the simulation ends at {rules.until_s:g} s"
    return [
        *rounds.broken(off, f"round at {{row}}: rounds begin at multiples of {rules.round_s:g} s, one after another"),
        *rounds.broken(start_s >= rules.until_s, f"a round begins at {{row}}, {until}"),
        *rounds.broken(~((decision_s >= 0) & np.isfinite(decision_s)), "round at {row}: a decision takes 0 s or more"),
    ]


def _entries(facts: Facts) -> list[str]:
    """Return a line for an entry without GPUs, one that occurs twice, and a server beyond what it has."""
    held, cluster = facts.held, facts.cluster
    odd = ~np.isfinite(held.cpus + held.memory_gb) | (held.cpus < 0) | (held.memory_gb < 0)
    refuse(held.broken(odd, AT + "CPUs and memory are 0 or more"))
    entries = held.by("row", "job", "server")
    machines = np.column_stack((cluster.gpus, cluster.cpus, cluster.memory_gb)).astype(float)
    return [
        *held.broken(held.gpus < 1, AT + "an entry has at least one GPU"),
        *entries.broken(entries.count > 1, AT + "server {server} occurs twice"),
        *overfull(held, machines if facts.speeds else machines[:, :1], "round at {row}"),
    ]


def _there(facts: Facts, rows: Rows, does: str) -> list[str]:
    """Return a line where jobs are not there: before their arrival, after completion, or when their tenant has left."""
    trace, work = facts.trace, facts.work
    start_s, profiling_s = trace.start_s[rows.row], trace.rules.profiling_s
    come = "before its arrival" + (f" and {profiling_s:g} s of profiling" if profiling_s else "")
    return [
        *rows.broken(start_s < (work.arrival_s + profiling_s)[rows.job] * (1 - SLIVER), f"{AT}{does} {come}"),
        *rows.broken(start_s >= trace.completion_s[rows.job], f"{AT}{does} after its completion"),
        *rows.broken(start_s >= work.leave_s[rows.job], f"{AT}{does} after its tenant has left"),
    ]


def _speeds(facts: Facts) -> list[str]:
    """Return a line where a factor on a rate is none, or is not what the job's CPUs and memory make it."""
    runs = facts.runs
    if facts.speeds is None:
        wrong = ~((runs.speed > 0) & (runs.speed <= 1 + SLIVER))
        return runs.broken(wrong, "a declared factor on a rate is more than 0 and at most 1")
    found = gangs(facts.held)
    rate = facts.speeds.rate(found.job, found.gpu_type, *found.enough.T)
    made = rate / (found.gpus * facts.work.rates[found.job, found.gpu_type])
    wrong = ~(np.isclose(runs.speed, made, rtol=SLIVER, atol=0.0) & (runs.speed > 0))
    return [
        *found.broken(found.mixed, AT + "holds GPUs of several types"),
        *runs.broken(wrong, AT + "speed {speed:.9g}, its CPUs and memory make it {made:.9g}", made=made),
    ]


# ---------------------------------------------------------------- what they achieve


def _run(facts: Facts) -> None:
    """Compute what every run achieves: its iterations and computing seconds, first start and completion of each job.

    Progress counts in parts of a job's work, and adds up job by job and only over earlier runs, so that no large part
    takes digits from others. Where the last run ends within :data:`SLIVER` of the work, the claim decides.
    """
    trace, work, runs, held, jobs = facts.trace, facts.work, facts.runs, facts.held, facts.jobs
    jobs.completion_s, jobs.first_start_s = np.full(work.size, math.nan), np.full(work.size, math.nan)
    begins = np.diff(runs.job, prepend=-1) != 0
    follows = ~begins & (np.diff(runs.row, prepend=-2) == 1) & (runs.count == np.append(0, runs.count)[:-1])
    # The entry of the same rank in the run before; where none follows, itself.
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


def _stays(facts: Facts) -> tuple[Array, Array]:
    """Return the number of the round in which each job comes, and of the first one without it; equal if never there."""
    rules, work, runs, jobs = facts.trace.rules, facts.work, facts.runs, facts.jobs
    comes = _first_round((work.arrival_s + rules.profiling_s) / (1 + ROUNDING), rules.round_s)
    gone = np.maximum(_first_round(work.leave_s, rules.round_s), comes)
    last = np.zeros(work.size, np.int64)
    last[runs.job] = runs.row  # runs are in order, so the last one of a job stays
    completed = np.isfinite(jobs.completion_s)
    gone[completed] = facts.rounds.number[last[completed]] + 1
    return comes, np.where(jobs.possible, gone, comes)


def _counts(facts: Facts) -> list[str]:
    """Return a line where rounds are missing or empty, or where what was counted in a round differs."""
    trace, runs, rounds, size = facts.trace, facts.runs, facts.rounds, facts.trace.rounds
    comes, gone = _stays(facts)
    come, go = np.sort(comes[gone > comes]), np.sort(gone[gone > comes])
    present = np.searchsorted(come, rounds.number, "right") - np.searchsorted(go, rounds.number, "right")
    due = np.append(0.0, rounds.number + 1)[:-1]
    skipped = (due < rounds.number) & (np.searchsorted(come, rounds.number, "left") > np.searchsorted(go, due, "right"))
    told, due_s = "a job is there at {due:g} s or soon after, but no round begins", due * trace.rules.round_s
    lines = rounds.broken(present < 1, "round at {row}: no job is there") + rounds.broken(skipped, told, due=due_s)
    mixed = (runs.least(facts.held.gpu_type) != runs.most(facts.held.gpu_type)) & (not trace.rules.forks)
    counted = {
        "waiting": (trace.waiting, present - np.bincount(runs.row, minlength=size)),
        "restarts": (trace.restarts, np.bincount(runs.row, runs.changed, size)),
        "stragglers": (trace.stragglers, np.bincount(runs.row, runs.width * mixed, size)),
    }
    for what, (claimed, made) in counted.items():
        text = f"round at {{row}}: {what} {{claimed:g}}, its jobs and GPUs make it {{made:g}}"
        lines += rounds.broken(claimed != made, text, claimed=claimed, made=made)
    return lines


def _ending(facts: Facts) -> list[str]:
    """Return a line where the simulation ends too early, and where a job's reason not to complete does not follow."""
    trace, rules, work, jobs, number = facts.trace, facts.trace.rules, facts.work, facts.jobs, facts.rounds.number
    comes, gone = _stays(facts)
    following = number[-1] + 1 if number.size else 0.0
    stalled = trace.rounds - 1 - int(facts.runs.row.max(initial=-1)) >= rules.stall_rounds
    soonest = np.maximum(comes, following)
    pending = gone > soonest
    end_s = (following if stalled else float(soonest[pending].min(initial=math.inf))) * rules.round_s
    early = pending & (not stalled and end_s < rules.until_s)
    left = np.where(work.leave_s <= end_s, LEFT, STALLED if stalled else HORIZON)
    made = np.where(jobs.possible, left, IMPOSSIBLE).astype(object)
    made[np.isfinite(jobs.completion_s)] = None
    claimed, told = trace.unfinished, "{job}: {reason} for not completing, from its rates and times: {follows}"
    return [
        *jobs.broken(early, f"the simulation ends before the round at {end_s:g} s, {{job}} is not done"),
        *jobs.broken(np.array(claimed, object) != made, told, reason=claimed, follows=made),
    ]
