"""Checker for Synergy's rounds and runs: capacity in three dimensions, whole gangs, fair progress, and objectives.

Rates, shares, pools, rounds and the jobs of a single round are read from the instance
(:mod:`schedgap.certificates.reading.synergy`). A policy may ask for a round of other jobs (`runnable`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from schedgap.certificates.reading.synergy import RawRounds, rounds_of
from schedgap.harness.check.registry import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.check.rules import EXCESS, LARGEST, SHORTFALL, Range, Rows, refuse, refusing, well_formed
from schedgap.harness.check.sensitive import beyond, gangs, most_progress, offered, overfull
from schedgap.instances.arrays import Array
from schedgap.instances.views.synergy import SynergySchedule

EVEN = 1e-6
"""Relative tolerance for a server's CPUs and memory to be in proportion to its GPUs."""

SUPER = frozenset({"synergy.queue", "synergy.free", "synergy.ideal", "synergy.oracle"})
"""Problems in which all servers of a GPU type are one machine."""

RUNS = frozenset({"synergy.run", "synergy.p99", "synergy.makespan"})
"""Problems of whole runs."""

QUEUED = frozenset({"synergy.queue", "synergy.round"})
"""Problems in which any jobs of the queue may run."""

PLACEMENT, ORACLE = "synergy.placement", "synergy.oracle"

FLOORED = frozenset({"synergy.ideal", "synergy.fair", PLACEMENT})
"""Problems in which no job runs below its fair progress."""

EVERYBODY = FLOORED | {ORACLE}
"""Problems in which all jobs of the round run."""

AT = "{job} in round {row}: "


class RoundTables:
    """A well-formed schedule as tables, with quantities that follow from the instance.

    `machines` has the ``(h, 3)`` GPUs, CPUs and gigabytes of the servers that the schedule refers to. `held` has one
    row per job, round and server. `there` are the jobs that may run in a single round. `gangs` has one row per job and
    round (:func:`~schedgap.harness.check.sensitive.gangs`) with the size of its `gang` and its `rate` in iterations per
    second. A row of `offers` is a round and a picked job.
    """

    def __init__(self, facts: RawRounds, decision: SynergySchedule, problem: str) -> None:
        work, hosts, pools = facts.jobs, facts.read.servers, problem in SUPER
        there = len(work.gpu_types) if pools else hosts.size
        entries: dict[str, Range] = {"round": (0, LARGEST), "job": work.size, "server": there}
        amounts: dict[str, Range] = dict.fromkeys(("gpus", "cpus", "memory_gb"))
        offers: dict[str, Range] = {"offered_round": (0, LARGEST), "offered_job": work.size}
        entered, picked = well_formed(decision, entries | amounts, offers)
        names = {"job": work.ids.__getitem__, "server": (work.gpu_types if pools else hosts.names).__getitem__}
        order = np.lexsort((entered["server"], entered["round"], entered["job"]))
        held = Rows(names, row=entered.pop("round")[order], **{name: column[order] for name, column in entered.items()})
        held.gpu_type = held.server if pools else hosts.gpu_type[held.server]
        refuse(held.broken(held.gpus <= 0, "gpus: an entry has more than 0 GPUs"))
        fractional = (held.gpus != np.rint(held.gpus)) & (problem != PLACEMENT)
        refuse(held.broken(fractional, "gpus {gpus:.12g}: GPUs are whole"))
        self.facts, self.problem, self.held = facts, problem, held
        self.jobs, self.pooled, self.gangs = work, facts.read.pooled, gangs(held)
        pooled, runs = self.pooled, self.gangs
        runs.gang = work.gpus[runs.job]
        # Amounts count per GPU of the gang; placements may hold more GPUs than the gang has.
        enough = runs.enough * np.minimum(runs.gang / runs.gpus, 1.0)[:, None]
        runs.rate = facts.read.rate(runs.job, runs.gpu_type, *enough.T)
        self.machines = pooled.total if pools else hosts.amounts
        self.offers = Rows(names, row=picked["offered_round"], job=picked["offered_job"])
        self.there = facts.queue if problem in QUEUED else facts.runnable


@refusing
def check(facts: RawRounds, decision: SynergySchedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check the schedule of a round or of a whole run.

    ``synergy.placement`` requires fair progress of every job, but not the CPUs and memory of an optimal ILP1.
    """
    tables = RoundTables(facts, decision, problem)
    entries = tables.held.by("row", "job", "server")
    lines = entries.broken(entries.count > 1, AT + "a server occurs twice")
    lines += [*overfull(tables.held, tables.machines, "round {row}"), *_gangs(tables), *_offers(tables)]  # (2), (3)
    if problem == ORACLE:  # (26): each of n jobs gets 1/n of every type, but at most a whole gang (A.2.2)
        part = tables.pooled.gpus / (max(tables.facts.runnable.size, 1) * tables.jobs.gpus[:, None])
        split = (part * tables.pooled.fair).sum(axis=1) / np.maximum(part.sum(axis=1), 1.0)
        lines += _below(tables, split[tables.gangs.job], "fair progress by 1/n of every GPU type")
    promised = {*claims, *(("proportional",) if problem in FLOORED else ())}
    lines += [line for name, rule in CLAIMS.items() if name in promised for line in rule(tables)]
    return _judged_run(tables, lines) if problem in RUNS else _judged_round(tables, [*lines, *_round(tables)])


# ---------------------------------------------------------------- rules of all problems


def _gangs(tables: RoundTables) -> list[str]:
    """Report incomplete gangs, several GPU types, uneven shares, too large shares, and gangs without progress."""
    runs = tables.gangs
    # A placed gang that holds more GPUs than it has may hold more of everything.
    extra = runs.gpus / runs.gang
    limit = tables.pooled.limit[runs.job, runs.gpu_type] * extra[:, None]
    least = runs.gang * (1 - EXCESS)
    half = runs.gpus < least if tables.problem == PLACEMENT else runs.gpus != runs.gang
    rules = [
        (half, "{gpus:.12g} GPUs, its gang needs all {gang} or none"),
        (runs.mixed, "holds GPUs of several types"),
        (runs.uneven > EVEN, "its CPUs and memory are not in proportion to its GPUs over servers"),
        *beyond(runs, limit),
        (runs.rate <= 0, "makes no progress with what it holds"),
    ]
    return [line for odd, text in rules for line in runs.broken(odd, f"{AT}{text}{{more}}", " ({count} of this kind)")]


def _below(tables: RoundTables, least: Array, what: str) -> list[str]:
    """Report gangs that make less progress than `least`, ``(g,)``."""
    text = f"{AT}{{rate:.9g}} iterations/s, its {what} is {{least:.9g}}{{more}}"
    short = tables.gangs.rate < least * (1 - SHORTFALL)
    return tables.gangs.broken(short, text, " ({count} fall short)", least=least)


def _offers(tables: RoundTables) -> list[str]:
    """Report picked jobs that occur twice or are absent, and rounds that pick nothing or too much.

    A schedule lists the picked jobs either nowhere or in every round in which a job runs.
    """
    offers, runs = tables.offers, tables.gangs
    absent = np.asarray(~tables.pooled.able.any(axis=1))[offers.job]
    if tables.problem in RUNS:
        last = np.full(tables.jobs.size, -1, np.int64)
        np.maximum.at(last, runs.job, runs.row)
        absent |= (offers.row < tables.facts.arrival[offers.job]) | (offers.row > last[offers.job])
    else:
        absent |= ~np.isin(offers.job, tables.there) | (offers.row != 0)
    silent = ~np.isin(runs.row, offers.row) & (offers.row.size > 0)
    return [
        *offered(offers, tables.jobs.gpus, tables.pooled.gpus.sum(), "round {row}"),
        *offers.broken(absent, AT + "is offered, but absent"),
        *runs.broken(silent, "round {row}: jobs run, but none is offered, unlike in other rounds"),
    ]


# ---------------------------------------------------------------- claims of methods


def _all_offered(tables: RoundTables) -> list[str]:
    """Report jobs that run without being picked for the round, and picked jobs that wait."""
    runs, offers = tables.gangs, tables.offers
    run, offered = (rows.row * tables.jobs.size + rows.job for rows in (runs, offers))
    return [
        *runs.broken(~np.isin(run, offered), "round {row}: {job} runs without an offer"),
        *offers.broken(~np.isin(offered, run), "round {row}: {job} waits despite its offer"),
    ]


def _no_idle_gpu(tables: RoundTables) -> list[str]:
    """Report a picked job that waits although enough GPUs of a type on which it can run are free."""
    runs, offers, there = tables.gangs, tables.offers, tables.facts.runnable
    if not offers.row.size and tables.problem not in RUNS:
        offers = Rows(offers.names, row=np.zeros_like(there), job=there)
    rounds = offers.by("row")
    used = np.zeros((rounds.row.size, len(tables.jobs.gpu_types)))
    inside = np.isin(runs.row, rounds.row)
    np.add.at(used, (np.searchsorted(rounds.row, runs.row[inside]), runs.gpu_type[inside]), runs.gpus[inside])
    free = rounds.spread(tables.pooled.gpus - used)
    gang = tables.jobs.gpus[offers.job]
    waits = ~np.isin(offers.row * tables.jobs.size + offers.job, runs.row * tables.jobs.size + runs.job)
    fits = (tables.pooled.able[offers.job] & (gang[:, None] <= free)).any(axis=1)
    return offers.broken(waits & fits, "round {row}: GPUs are idle, {job} with its {gang} waits", gang=gang)


def _fragments(tables: RoundTables) -> int:
    return int((tables.gangs.count > 1).sum())


def _three_per_server(tables: RoundTables) -> list[str]:
    """Report more than three fragmented jobs per server (Theorem A.2)."""
    fragments, most = _fragments(tables), 3 * int((tables.facts.read.servers.gpus > 0).sum())
    text = f"{fragments} jobs are fragmented, more than three per server ({most})"
    return [text] if fragments > most else []


CLAIMS: dict[str, Callable[[RoundTables], list[str]]] = {
    "proportional": lambda tables: _below(  # (5)
        tables, tables.pooled.fair[tables.gangs.job, tables.gangs.gpu_type], "fair progress"
    ),
    "no_idle_gpu": _no_idle_gpu,
    "all_offered": _all_offered,
    "three_per_server": _three_per_server,
}
"""Claims of methods: every running job makes at least its fair progress; no picked job waits while enough GPUs for its
gang idle; in every round exactly the picked jobs run; at most three jobs per server are fragmented."""


# ---------------------------------------------------------------- one round


def _round(tables: RoundTables) -> list[str]:
    """Report rounds other than 0, jobs that do not belong to the round, and jobs that are left out, (4)."""
    runs, there = tables.gangs, tables.there
    jobs, whose = Rows(runs.names, job=there), "queue" if tables.problem in QUEUED else "round"
    return [
        *runs.broken(runs.row > 0, "round {row}: the only round is 0"),
        *runs.broken(~np.isin(runs.job, there), f"{{job}} is not among the jobs of the {whose}"),
        *jobs.broken(
            ~np.isin(there, runs.job) & (tables.problem in EVERYBODY),
            "{job} does not run{more}, but every job of the round does here",
        ),
    ]


def _judged_round(tables: RoundTables, lines: list[str]) -> Verdict:
    """Return the verdict on one round: the objective is its throughput or, for a placement, the fragmented jobs."""
    runs, total = tables.gangs, tables.pooled.total
    throughput, fragments = float((tables.pooled.weight[runs.job] * runs.rate).sum()), _fragments(tables)
    used = np.array([runs.gpus.sum(), runs.cpus.sum(), runs.memory_gb.sum()]) / total.sum(axis=0)
    metrics: dict[str, float | int | bool] = {"running": len(np.unique(runs.job))}
    metrics |= zip(("gpus_used", "cpus_used", "memory_used"), used.tolist(), strict=True)
    if tables.problem not in SUPER:
        metrics["fragments"] = fragments
    quantities: dict[str, Any] = {
        "cpus": np.bincount(runs.job, runs.cpus, tables.jobs.size).astype(float),
        "memory_gb": np.bincount(runs.job, runs.memory_gb, tables.jobs.size).astype(float),
        "throughput": throughput,
        "fragments": fragments,
    }
    work, fair = tables.jobs.work[runs.job], tables.pooled.fair[runs.job].max(axis=1)
    if runs.job.size and min(runs.rate.min(), fair.min()) > 0:
        quantities["mean_jct_speedup"] = float((work / fair).mean() / (work / runs.rate).mean())
    objective = float(fragments) if tables.problem == PLACEMENT else throughput
    return Verdict(objective, tuple(lines), metrics, quantities)


# ---------------------------------------------------------------- the run


def _judged_run(tables: RoundTables, lines: list[str]) -> Verdict:
    """Return the verdict on a run, in which every possible job completes; the objective is a JCT or the makespan."""
    runs = tables.gangs
    jobs = runs.by("job")
    last = jobs.first + jobs.count - 1
    part = runs.rate * tables.facts.slot_s / tables.jobs.work[runs.job]
    jobs.row, jobs.work, final = runs.row[last], tables.jobs.work[jobs.job], part[last]
    jobs.before = np.array([part[a:b].sum() for a, b in zip(jobs.first, last, strict=True)], float)
    arrival, done = tables.facts.arrival[runs.job], jobs.before + final
    others = Rows(runs.names, job=np.arange(tables.jobs.size))
    never = tables.pooled.able.any(axis=1) & ~np.isin(others.job, runs.job)
    unfinished = "{job} does {done:.9g} of its {work:.9g} iterations"
    refuse(
        [
            *lines,
            *runs.broken(runs.row < arrival, AT + "runs before its arrival in round {arrival}", arrival=arrival),
            *jobs.broken(jobs.before > 1 + SHORTFALL, AT + "runs after its completion"),
            *jobs.broken(done < 1 - SHORTFALL, unfinished, done=done * jobs.work),
            *others.broken(never, "{job} never runs{more}, but every possible job completes here"),
        ]
    )
    # Sums are rounded, so the last round may begin when the work is done already: nothing is left then.
    left, unknown = np.maximum(1.0 - jobs.before, 0.0), np.full(last.size, np.nan)
    spent = np.divide(left, final, out=unknown, where=final > 0)
    completion_s = np.full(tables.jobs.size, np.nan)
    completion_s[jobs.job] = (jobs.row + np.minimum(spent, 1.0)) * tables.facts.slot_s
    done = np.isfinite(completion_s)
    refuse([] if done.any() else ["nothing completes"])
    jct_s = (completion_s - tables.jobs.arrival_s)[done]
    metrics: dict[str, float | int | bool] = {
        "jct_median_s": float(np.median(jct_s)),
        "jct_p99_s": float(np.percentile(jct_s, 99)),
        "makespan_s": float(completion_s[done].max()) - float(tables.jobs.arrival_s[done].min()),
        **_shares(tables),
    }
    mean_s = float(jct_s.mean())
    objective = {"run": mean_s, "p99": metrics["jct_p99_s"], "makespan": float(completion_s[done].max())}
    quantities = {"jct_mean_s": mean_s, "completion_s": completion_s}
    return Verdict(objective[tables.problem.split(".")[1]], (), metrics, quantities)


def _shares(tables: RoundTables) -> dict[str, float]:
    """Return the mean and the smallest ratio of a round's progress to LP1's bound for its picked jobs.

    A job that completes within a round counts as if it ran to the end. If a mechanism runs jobs that were not picked,
    or leaves picked jobs out, the ratio is a comparison, not a certificate.
    """
    offers, runs = tables.offers, tables.gangs
    if not offers.row.size:
        return {}
    rows, where = np.unique(offers.row, return_inverse=True)
    most = most_progress(tables.facts.read, where, offers.job, len(rows), tables.pooled.weight)
    inside = np.isin(runs.row, rows)
    progress = (tables.pooled.weight[runs.job] * runs.rate)[inside]
    share = np.bincount(np.searchsorted(rows, runs.row[inside]), progress, len(rows)) / np.maximum(most, 1e-300)
    return {"lp1_share": float(share.mean()), "lp1_worst": float(share.min())}


QUANTITIES = {
    True: ("jct_mean_s", "jct_median_s", "jct_p99_s", "makespan_s", "lp1_share", "lp1_worst", "completion_s"),
    False: (
        *("running", "gpus_used", "cpus_used", "memory_used", "fragments"),
        *("cpus", "memory_gb", "throughput", "mean_jct_speedup"),
    ),
}
"""Metrics and quantities of runs (``True``) and of single rounds (``False``)."""


VERIFIERS.register(VerifierSpec("synergy", rounds_of, check, lambda problem: QUANTITIES[problem in RUNS]))
