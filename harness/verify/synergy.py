"""Checker for Synergy's rounds and runs: capacity in three dimensions, whole gangs, fair progress; what they achieve.

Rates, shares, pools and weights are computed again from the instance (:mod:`schedgap.harness.verify.sensitive`). Which
jobs a round has (:attr:`View.runnable`), the length of rounds and the arrivals are the view's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.verify import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.verify.rounds_bound import most_progress
from schedgap.harness.verify.sensitive import SLACK, Gangs, Pooled, Speeds, beyond, gangs
from schedgap.instances.views.synergy import FAIR, FREE, IDEAL, ORACLE, PLACEMENT, RUN, Schedule, View

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

EVEN = 1e-6
"""Relative distance of a server's CPUs and memory from proportion to the GPUs there."""

SLIVER = 1e-9
"""Relative work, or fair progress, that may be missing."""

SUPER = frozenset({FREE.id, IDEAL.id, ORACLE.id})
"""Problems in which all servers of a GPU type are one machine."""

EVERYBODY = frozenset({IDEAL.id, FAIR.id, PLACEMENT.id, ORACLE.id})
"""Problems in which all jobs of the round run."""

FLOORED = frozenset({IDEAL.id, FAIR.id, PLACEMENT.id})
"""Problems in which no job runs below its fair progress."""

LAST = 2**40
"""Rounds are numbered below that."""

WHOLE, AMOUNTS, OFFERS = (
    ("round", "job", "server"),
    ("gpus", "cpus", "memory_gb"),
    ("offered_round", "offered_job"),
)


@dataclass(frozen=True, eq=False)
class Facts:
    """What the instance says, and what a well-formed schedule makes of it.

    Attributes
    ----------
    view, speeds, pooled, weight
        The view; rates, pools and weights, computed again.
    table, held
        ``(entries, 3)`` round, job and server, and GPUs, CPUs and gigabytes, by job, round and server.
    machines
        ``(h, 3)`` GPUs, CPUs and gigabytes of what the schedule calls servers.
    gangs, rate
        What each job holds in each round, and its iterations per second.
    offers
        ``(offers, 2)`` round and job.
    """

    view: View
    speeds: Speeds
    pooled: Pooled
    weight: Array
    table: Ints
    held: Array
    machines: Array
    gangs: Gangs
    rate: Array
    offers: Ints

    def at(self, g: int) -> str:
        """Name a job and a round."""
        return f"{self.view.workload.ids[self.gangs.job[g]]} in round {self.gangs.row[g]}"


def check(view: View, decision: Schedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Re-check a schedule against a view.

    Parameters
    ----------
    view, decision
        What was to be decided, and the decision.
    problem
        One of the problems of :mod:`schedgap.instances.views.synergy`. ``synergy.placement`` does not say that CPUs and
        memory are those of an optimal ILP1, only that every job is at its fair progress with them.
    claims
        ``proportional`` (whoever runs has its fair progress at least), ``no_idle_gpu`` (no GPU idles while a picked
        job that it would complete a gang for waits), ``all_offered`` (in every round the picked jobs run, and no
        others), ``three_per_server`` (at most three jobs per server are fragmented, Theorem A.2).
    """
    size = view.types if problem in SUPER else view.servers.size
    if malformed := _malformed(view, decision, problem, size):
        return Verdict(None, (malformed,))
    facts = _facts(view, decision, problem)
    lines = [*_capacity(facts), *_gangs(facts, problem), *_offers(facts, problem)]
    if problem in FLOORED or "proportional" in claims:
        lines += _below(facts, facts.pooled.fair[facts.gangs.job, facts.gangs.gpu_type], "fair progress")
    if problem == ORACLE.id:
        lines += _below(facts, _equal_split(facts)[facts.gangs.job], "fair progress by 1/n of every GPU type")
    if "no_idle_gpu" in claims:
        lines += _idle(facts, problem)
    if "all_offered" in claims:
        lines += _others(facts)
    fragments = int((facts.gangs.hosts > 1).sum())
    most = 3 * int((view.servers.gpus > 0).sum())
    if "three_per_server" in claims and fragments > most:
        lines.append(f"{fragments} jobs are fragmented, at most three per server, {most}, should be")
    if problem == RUN.id:
        completion_s, found = _completions(facts)
        lines += found
        return _judged_run(facts, completion_s, lines)
    lines += _round(facts, problem)
    return _judged_round(facts, problem, fragments, lines)


def _malformed(view: View, decision: Schedule, problem: str, servers: int) -> str | None:
    """Say what is wrong with types, lengths and ranges, if anything is."""
    sizes = {"round": LAST, "job": view.size, "server": servers, "offered_round": LAST, "offered_job": view.size}
    for names in ((*WHOLE, *AMOUNTS), OFFERS):
        length = len(np.atleast_1d(getattr(decision, names[0])))
        for name in names:
            if wrong := _malformed_column(name, np.asarray(getattr(decision, name)), length, sizes.get(name)):
                return wrong
    gpus = np.asarray(decision.gpus, float)
    if not np.all(gpus > 0):
        return "gpus: an entry has some GPUs"
    parts = gpus != np.rint(gpus)
    return f"gpus {gpus[parts][0]:g}: GPUs are whole" if problem != PLACEMENT.id and parts.any() else None


def _malformed_column(name: str, column: NDArray[Any], length: int, size: int | None) -> str | None:
    """Say what is wrong with one array: indices below `size`, or amounts where there is no size."""
    kinds, what = ("iu", "whole numbers") if size else ("iuf", "numbers")
    if column.ndim != 1 or column.dtype.kind not in kinds:
        return f"{name}: a list of {what}, not {column.dtype} of shape {column.shape}"
    if len(column) != length:
        return f"{name}: {len(column)} entries, the first array has {length}"
    if size and length and not 0 <= column.min() <= column.max() < size:
        return f"{name} {column[(column < 0) | (column >= size)][0]}: they are numbered from 0 to {size - 1}"
    if not size and not np.all(np.isfinite(column) & (column >= 0)):
        return f"{name}: numbers of 0 or more"
    return None


def _facts(view: View, decision: Schedule, problem: str) -> Facts:
    table = np.column_stack([np.asarray(getattr(decision, name)).astype(np.int64) for name in WHOLE])
    held = np.column_stack([np.asarray(getattr(decision, name), float) for name in AMOUNTS])
    order = np.lexsort((table[:, 2], table[:, 0], table[:, 1]))
    table, held = table[order], held[order]
    speeds = Speeds(view.instance, view.workload, view.servers)
    pooled = Pooled(speeds)
    hosts = view.servers
    machines = (
        pooled.total if problem in SUPER else np.column_stack((hosts.gpus, hosts.cpus, hosts.memory_gb)).astype(float)
    )
    gpu_type = table[:, 2] if problem in SUPER else hosts.gpu_type[table[:, 2]]
    found = gangs(table[:, 1], table[:, 0], gpu_type, held)
    gang = view.workload.gpus[found.job]
    # What counts is per GPU of the gang, of which placements may hold more than the whole.
    least = found.least * (gang / np.where(found.gpus > 0, found.gpus, 1.0))[:, None]
    raw = bool(np.all(view.weight == 1.0))
    return Facts(
        view=view,
        speeds=speeds,
        pooled=pooled,
        weight=np.ones(view.size) if raw else pooled.weight,
        table=table,
        held=held,
        machines=machines,
        gangs=found,
        rate=speeds.rate(found.job, found.gpu_type, *least.T),
        offers=np.column_stack((decision.offered_round, decision.offered_job)).astype(np.int64).reshape(-1, 2),
    )


# ---------------------------------------------------------------- what holds in every problem


def _capacity(facts: Facts) -> Iterator[str]:
    """Yield a line for a repeated entry, and for machines beyond their GPUs, CPUs and memory."""
    table, size = facts.table, len(facts.machines)
    again = np.flatnonzero((table[1:] == table[:-1]).all(axis=1))
    if again.size:
        t, j, _ = table[again[0]].tolist()
        yield f"{facts.view.workload.ids[j]} in round {t}: a server occurs twice"
    names = facts.view.workload.gpu_types if size == facts.view.types != facts.view.servers.size else None
    for amount, capacity, what in zip(facts.held.T, facts.machines.T, ("GPUs", "CPUs", "GB"), strict=True):
        if over := beyond(table[:, 0] * size + table[:, 2], amount, capacity):
            t, h = divmod(over[0], size)
            name = names[h] if names else facts.view.servers.names[h] if size == facts.view.servers.size else str(h)
            yield f"round {t}: {over[1]:.9g} {what} of {name} given out, {capacity[h]:g} available"


def _gangs(facts: Facts, problem: str) -> Iterator[str]:
    """Yield a line for half a gang, several GPU types, uneven shares, too large shares, and no progress."""
    found, work = facts.gangs, facts.view.workload
    gang = work.gpus[found.job]
    whole = found.gpus >= gang * (1 - SLACK) if problem == PLACEMENT.id else found.gpus == gang
    limit = facts.pooled.limit[found.job, found.gpu_type]
    rules: list[tuple[Bools, str]] = [
        (~whole, "{gpus:g} GPUs, its gang is all {gang} or none"),
        (found.mixed, "holds GPUs of several types"),
        (found.uneven > EVEN, "its CPUs and memory are not in proportion to its GPUs over servers"),
        (found.cpus > limit[:, 0] * (1 + SLACK), "{cpus:g} CPUs, more than as many servers have as its GPUs need"),
        (found.memory_gb > limit[:, 1] * (1 + SLACK), "{gb:g} GB, more than as many servers have as its GPUs need"),
        (facts.rate <= 0, "makes no progress with what it holds"),
    ]
    if problem == PLACEMENT.id:
        # Where the gang holds more than its GPUs, it holds more of everything.
        extra = found.gpus / gang
        rules[3] = (found.cpus > limit[:, 0] * extra * (1 + SLACK), rules[3][1])
        rules[4] = (found.memory_gb > limit[:, 1] * extra * (1 + SLACK), rules[4][1])
    for broken, text in rules:
        if broken.any():
            g = int(broken.argmax())
            told = text.format(gpus=found.gpus[g], gang=gang[g], cpus=found.cpus[g], gb=found.memory_gb[g])
            more = f" ({int(broken.sum())} of this kind)" if broken.sum() > 1 else ""
            yield f"{facts.at(g)}: {told}{more}"


def _below(facts: Facts, least: Array, what: str) -> Iterator[str]:
    """Yield a line where jobs make less progress than ``(g,)`` they are due."""
    short = facts.rate < least * (1 - SLIVER)
    if short.any():
        g = int(short.argmax())
        more = f" ({int(short.sum())} fall short)" if short.sum() > 1 else ""
        yield f"{facts.at(g)}: {facts.rate[g]:.9g} iterations/s, its {what} is {least[g]:.9g}{more}"


def _equal_split(facts: Facts) -> Array:
    """Return ``(n,)`` progress with 1/n of every GPU type, n jobs in the round, and at most a whole gang (A.2.2)."""
    jobs, gang = max(facts.view.runnable.size, 1), facts.view.workload.gpus[:, None]
    part = facts.pooled.gpus / (jobs * gang)
    whole = np.maximum(part.sum(axis=1), 1.0)
    return np.asarray((part * facts.pooled.fair).sum(axis=1) / whole)


def _offers(facts: Facts, problem: str) -> Iterator[str]:
    """Yield a line where a picked job occurs twice or is not there, and for missing and too large sets of them.

    A schedule may say nothing about picked jobs, or whom the policy picked in every round in which a job runs.
    """
    row, job = facts.offers.T
    view = facts.view
    if len(np.unique(row * view.size + job)) < len(job):
        yield "offered: a pair of round and job occurs once"
    absent = np.isin(job, np.flatnonzero(~facts.pooled.able.any(axis=1)))
    absent |= row < view.arrival[job] if problem == RUN.id else ~np.isin(job, view.runnable) | (row != 0)
    if problem == RUN.id:
        last = np.full(view.size, -1, np.int64)
        np.maximum.at(last, facts.gangs.job, facts.gangs.row)
        absent |= row > last[job]
    if absent.any():
        i = int(absent.argmax())
        yield f"{view.workload.ids[job[i]]} in round {row[i]}: is offered, but not there"
    rows, where = np.unique(row, return_inverse=True)
    silent = np.setdiff1d(facts.gangs.row, rows)
    if len(rows) and silent.size:
        yield f"round {silent[0]}: jobs run, but none is offered, as in other rounds"
    wanted = np.bincount(where, view.workload.gpus[job], len(rows))
    over = np.flatnonzero(wanted > facts.pooled.gpus.sum())
    if over.size:
        there = facts.pooled.gpus.sum()
        yield f"round {rows[over[0]]}: jobs of {wanted[over[0]]:g} GPUs are offered, there are {there:g}"


def _others(facts: Facts) -> Iterator[str]:
    """Yield a line where others run than those that were picked for the round."""
    size = facts.view.size
    run, offered = facts.gangs.row * size + facts.gangs.job, facts.offers[:, 0] * size + facts.offers[:, 1]
    other = np.setxor1d(run, offered)
    if other.size:
        row, job = divmod(int(other[0]), size)
        yield f"round {row}: {facts.view.workload.ids[job]} {'runs' if other[0] in run else 'waits'}, unlike its offer"


def _idle(facts: Facts, problem: str) -> Iterator[str]:
    """Yield a line where a picked job waits and enough GPUs of a type on which it can run are free."""
    view, found = facts.view, facts.gangs
    offers = facts.offers
    if not len(offers) and problem != RUN.id:
        offers = np.column_stack((np.zeros_like(view.runnable), view.runnable))
    if not len(offers):
        return
    rows = np.unique(offers[:, 0])
    used = np.zeros((len(rows), view.types))
    known = np.isin(found.row, rows)
    np.add.at(used, (np.searchsorted(rows, found.row[known]), found.gpu_type[known]), found.gpus[known])
    free = facts.pooled.gpus - used
    waits = ~np.isin(offers[:, 0] * view.size + offers[:, 1], found.row * view.size + found.job)
    row, job = offers[waits].T
    fits = facts.pooled.able[job] & (view.workload.gpus[job][:, None] <= free[np.searchsorted(rows, row)])
    if fits.any():
        i = int(fits.any(axis=1).argmax())
        gpus, name = view.workload.gpus[job[i]], view.workload.ids[job[i]]
        yield f"round {row[i]}: GPUs are idle, {name} with its {gpus} waits"


# ---------------------------------------------------------------- one round


def _round(facts: Facts, problem: str) -> Iterator[str]:
    """Yield a line for another round than 0, for a job that is not in the round, and for one that is left out."""
    view, found = facts.view, facts.gangs
    if found.row.size and found.row.max() > 0:
        yield f"round {found.row.max()}: there is one round, 0"
    others = ~np.isin(found.job, view.runnable)
    if others.any():
        yield f"{view.workload.ids[found.job[int(others.argmax())]]} is not among the jobs of the round"
    left = view.runnable[~np.isin(view.runnable, found.job)]
    if problem in EVERYBODY and left.size:
        more = f" (and {left.size - 1} more)" if left.size > 1 else ""
        yield f"{view.workload.ids[left[0]]} does not run{more}, but every job of the round does here"


def _judged_round(facts: Facts, problem: str, fragments: int, lines: list[str]) -> Verdict:
    found, view = facts.gangs, facts.view
    worth = facts.weight[found.job] * facts.rate
    throughput = float(worth.sum())
    totals = np.zeros((view.size, 3))
    np.add.at(totals, found.job, np.column_stack((found.gpus, found.cpus, found.memory_gb)))
    metrics: dict[str, float | int | bool] = {
        "running": len(np.unique(found.job)),
        "gpus_used": float(found.gpus.sum() / facts.pooled.total[:, 0].sum()),
        "cpus_used": float(found.cpus.sum() / facts.pooled.total[:, 1].sum()),
        "memory_used": float(found.memory_gb.sum() / facts.pooled.total[:, 2].sum()),
    }
    if problem not in SUPER:
        metrics["fragments"] = fragments
    quantities: dict[str, Any] = {
        "cpus": totals[:, 1],
        "memory_gb": totals[:, 2],
        "throughput": throughput,
        "fragments": fragments,
    }
    if found.job.size and facts.rate.min() > 0:
        work = view.workload.work[found.job]
        fair = facts.pooled.fair[found.job].max(axis=1)
        if fair.min() > 0:
            quantities["mean_jct_speedup"] = float((work / fair).mean() / (work / facts.rate).mean())
    return Verdict(float(fragments) if problem == PLACEMENT.id else throughput, tuple(lines), metrics, quantities)


# ---------------------------------------------------------------- the run


def _completions(facts: Facts) -> tuple[Array, list[str]]:
    """Return ``(n,)`` seconds at which jobs complete, NaN for those that do not, and what is wrong with them."""
    view, found = facts.view, facts.gangs
    work, lines = view.workload, []
    early = found.row < view.arrival[found.job]
    if early.any():
        g = int(early.argmax())
        lines.append(f"{facts.at(g)}: runs before its arrival in round {view.arrival[found.job[g]]}")
    completion_s = np.full(work.size, np.nan)
    part = facts.rate * view.slot_s / work.work[found.job]
    begins = np.flatnonzero(np.diff(found.job, prepend=-1))
    for first, after in pairwise([*begins.tolist(), len(part)]):
        j = int(found.job[first])
        before = float(part[first : after - 1].sum())
        last = float(part[after - 1])
        # A round that begins a hair before the end of the work is no round after it: sums round.
        if before > 1 + SLIVER:
            lines.append(f"{facts.at(after - 1)}: runs after its completion")
        elif before + last < 1 - SLIVER:
            asked = work.work[j]
            lines.append(f"{work.ids[j]} does {(before + last) * asked:.9g} of its {asked:.9g} iterations")
        elif last > 0:
            spent = min(max(1.0 - before, 0.0) / last, 1.0)
            completion_s[j] = (found.row[after - 1] + spent) * view.slot_s
    absent = np.flatnonzero(facts.pooled.able.any(axis=1) & ~np.isin(np.arange(work.size), found.job))
    if absent.size:
        more = f" (and {absent.size - 1} more)" if absent.size > 1 else ""
        lines.append(f"{work.ids[absent[0]]} never runs{more}, but every possible job completes here")
    return completion_s, lines


def _judged_run(facts: Facts, completion_s: Array, lines: list[str]) -> Verdict:
    view = facts.view
    done = np.isfinite(completion_s)
    if lines or not done.any():
        return Verdict(None, (*lines,) or ("nothing completes",))
    jct_s = (completion_s - view.workload.arrival_s)[done]
    mean_s, end_s = float(jct_s.mean()), float(completion_s[done].max())
    metrics: dict[str, float | int | bool] = {
        "jct_median_s": float(np.median(jct_s)),
        "jct_p99_s": float(np.percentile(jct_s, 99)),
        "makespan_s": end_s - float(view.workload.arrival_s[done].min()),
        **_shares(facts),
    }
    return Verdict(mean_s, (), metrics, {"jct_mean_s": mean_s, "completion_s": completion_s})


def _shares(facts: Facts) -> dict[str, float]:
    """Return the mean and the least share of what LP1 allows for the picked jobs that the rounds achieve.

    A job that completes within a round counts as if it ran to the end. Where a mechanism runs jobs that were not
    picked, or leaves picked ones out, the share is a comparison and no certificate.
    """
    if not len(facts.offers):
        return {}
    rows, where = np.unique(facts.offers[:, 0], return_inverse=True)
    most = most_progress(facts.speeds, facts.pooled, where, facts.offers[:, 1], len(rows), facts.weight)
    known = np.isin(facts.gangs.row, rows)
    worth = (facts.weight[facts.gangs.job] * facts.rate)[known]
    share = np.bincount(np.searchsorted(rows, facts.gangs.row[known]), worth, len(rows)) / np.maximum(most, 1e-300)
    return {"lp1_share": float(share.mean()), "lp1_worst": float(share.min())}


ROUND_QUANTITIES = (
    *("running", "gpus_used", "cpus_used", "memory_used", "fragments"),
    *("cpus", "memory_gb", "throughput", "mean_jct_speedup"),
)
RUN_QUANTITIES = (
    *("jct_mean_s", "jct_median_s", "jct_p99_s", "makespan_s", "lp1_share", "lp1_worst"),
    "completion_s",
)


def _quantities(problem: str) -> tuple[str, ...]:
    return RUN_QUANTITIES if problem == RUN.id else ROUND_QUANTITIES


VERIFIERS.register(VerifierSpec("synergy", check, _quantities))
