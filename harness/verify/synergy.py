"""Checker for Synergy's rounds and runs: capacity in three dimensions, whole gangs, fair progress, and objectives.

Rates, shares, pools and weights are recomputed from the instance (:mod:`schedgap.harness.verify.sensitive`). The jobs
of a round (:attr:`View.runnable`), the length of rounds and the arrivals are taken from the view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from schedgap.certificates.basics import Data
from schedgap.harness.verify import VERIFIERS, Verdict, VerifierSpec, slotted
from schedgap.harness.verify.rules import EXCESS, LARGEST, Range, Rows, refuse, refusing, well_formed
from schedgap.harness.verify.sensitive import beyond, gangs, most_progress, offered, overfull, speeds_of
from schedgap.instances.arrays import Array
from schedgap.instances.canonical import validate
from schedgap.instances.views.synergy import (
    FAIR,
    FREE,
    IDEAL,
    MAKESPAN,
    ORACLE,
    P99,
    PLACEMENT,
    RUN,
    Schedule,
    View,
    view,
)

EVEN = 1e-6
"""Relative tolerance for a server's CPUs and memory to be in proportion to its GPUs."""

SLIVER = 1e-9
"""Relative tolerance for missing work or fair progress."""

SUPER = frozenset({FREE.id, IDEAL.id, ORACLE.id})
"""Problems in which all servers of a GPU type are one machine."""

RUNS = frozenset({RUN.id, P99.id, MAKESPAN.id})
"""Problems of whole runs."""

EVERYBODY = frozenset({IDEAL.id, FAIR.id, PLACEMENT.id, ORACLE.id})
"""Problems in which all jobs of the round run."""

FLOORED = frozenset({IDEAL.id, FAIR.id, PLACEMENT.id})
"""Problems in which no job runs below its fair progress."""

AT = "{job} in round {row}: "


class Facts:
    """A well-formed schedule as tables, with quantities recomputed from the instance.

    `machines` has the ``(h, 3)`` GPUs, CPUs and gigabytes of the servers that the schedule refers to. `held` has one
    row per job, round and server. `gangs` has one row per job and round
    (:func:`~schedgap.harness.verify.sensitive.gangs`) with the size of its `gang` and its `rate` in iterations per
    second. A row of `offers` is a round and a picked job.
    """

    def __init__(self, view: View, decision: Schedule, problem: str) -> None:
        work, hosts, pools = view.workload, view.servers, problem in SUPER
        there = view.types if pools else hosts.size
        entries: dict[str, Range] = {"round": (0, LARGEST), "job": view.size, "server": there}
        amounts: dict[str, Range] = dict.fromkeys(("gpus", "cpus", "memory_gb"))
        offers: dict[str, Range] = {"offered_round": (0, LARGEST), "offered_job": view.size}
        entered, picked = well_formed(decision, entries | amounts, offers)
        names = {"job": work.ids.__getitem__, "server": (work.gpu_types if pools else hosts.names).__getitem__}
        order = np.lexsort((entered["server"], entered["round"], entered["job"]))
        held = Rows(names, row=entered.pop("round")[order], **{name: column[order] for name, column in entered.items()})
        held.gpu_type = held.server if pools else hosts.gpu_type[held.server]
        refuse(held.broken(held.gpus <= 0, "gpus: an entry has more than 0 GPUs"))
        fractional = (held.gpus != np.rint(held.gpus)) & (problem != PLACEMENT.id)
        refuse(held.broken(fractional, "gpus {gpus:g}: GPUs are whole"))
        self.view, self.problem, self.held = view, problem, held
        self.speeds, self.gangs = speeds_of(view.instance, work, hosts), gangs(held)
        pooled, runs = self.speeds.pooled, self.gangs
        runs.gang = work.gpus[runs.job]
        # Amounts count per GPU of the gang; placements may hold more GPUs than the gang has.
        enough = runs.enough * np.minimum(runs.gang / runs.gpus, 1.0)[:, None]
        runs.rate = self.speeds.rate(runs.job, runs.gpu_type, *enough.T)
        self.weight = np.ones(view.size) if np.all(view.weight == 1.0) else pooled.weight
        machines = np.column_stack((hosts.gpus, hosts.cpus, hosts.memory_gb)).astype(float)
        self.machines = pooled.total if pools else machines
        self.offers = Rows(names, row=picked["offered_round"], job=picked["offered_job"])


@refusing
def check(view: View, decision: Schedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check the schedule of a round or of a whole run.

    ``synergy.placement`` requires fair progress of every job, but not the CPUs and memory of an optimal ILP1.
    """
    facts = Facts(view, decision, problem)
    entries = facts.held.by("row", "job", "server")
    lines = entries.broken(entries.count > 1, AT + "a server occurs twice")
    lines += [*overfull(facts.held, facts.machines, "round {row}"), *_gangs(facts), *_offers(facts)]  # (2), (3)
    if problem == ORACLE.id:  # (26): each of n jobs gets 1/n of every type, but at most a whole gang (A.2.2)
        part = facts.speeds.pooled.gpus / (max(view.runnable.size, 1) * view.workload.gpus[:, None])
        split = (part * facts.speeds.pooled.fair).sum(axis=1) / np.maximum(part.sum(axis=1), 1.0)
        lines += _below(facts, split[facts.gangs.job], "fair progress by 1/n of every GPU type")
    promised = {*claims, *(("proportional",) if problem in FLOORED else ())}
    lines += [line for name, rule in CLAIMS.items() if name in promised for line in rule(facts)]
    return _judged_run(facts, lines) if problem in RUNS else _judged_round(facts, [*lines, *_round(facts)])


# ---------------------------------------------------------------- rules of all problems


def _gangs(facts: Facts) -> list[str]:
    """Report incomplete gangs, several GPU types, uneven shares, too large shares, and gangs without progress."""
    runs = facts.gangs
    # A placed gang that holds more GPUs than it has may hold more of everything.
    extra = runs.gpus / runs.gang
    limit = facts.speeds.pooled.limit[runs.job, runs.gpu_type] * extra[:, None]
    least = runs.gang * (1 - EXCESS)
    half = runs.gpus < least if facts.problem == PLACEMENT.id else runs.gpus != runs.gang
    rules = [
        (half, "{gpus:g} GPUs, its gang needs all {gang} or none"),
        (runs.mixed, "holds GPUs of several types"),
        (runs.uneven > EVEN, "its CPUs and memory are not in proportion to its GPUs over servers"),
        *beyond(runs, limit),
        (runs.rate <= 0, "makes no progress with what it holds"),
    ]
    return [line for odd, text in rules for line in runs.broken(odd, f"{AT}{text}{{more}}", " ({count} of this kind)")]


def _below(facts: Facts, least: Array, what: str) -> list[str]:
    """Report gangs that make less progress than `least`, ``(g,)``."""
    text = f"{AT}{{rate:.9g}} iterations/s, its {what} is {{least:.9g}}{{more}}"
    short = facts.gangs.rate < least * (1 - SLIVER)
    return facts.gangs.broken(short, text, " ({count} fall short)", least=least)


def _offers(facts: Facts) -> list[str]:
    """Report picked jobs that occur twice or are absent, and rounds that pick nothing or too much.

    A schedule lists the picked jobs either nowhere or in every round in which a job runs.
    """
    view, offers, runs = facts.view, facts.offers, facts.gangs
    absent = np.asarray(~facts.speeds.pooled.able.any(axis=1))[offers.job]
    if facts.problem in RUNS:
        last = np.full(view.size, -1, np.int64)
        np.maximum.at(last, runs.job, runs.row)
        absent |= (offers.row < view.arrival[offers.job]) | (offers.row > last[offers.job])
    else:
        absent |= ~np.isin(offers.job, view.runnable) | (offers.row != 0)
    silent = ~np.isin(runs.row, offers.row) & (offers.row.size > 0)
    return [
        *offered(offers, view.workload.gpus, facts.speeds.pooled.gpus.sum(), "round {row}"),
        *offers.broken(absent, AT + "is offered, but absent"),
        *runs.broken(silent, "round {row}: jobs run, but none is offered, unlike in other rounds"),
    ]


# ---------------------------------------------------------------- claims of methods


def _all_offered(facts: Facts) -> list[str]:
    """Report jobs that run without being picked for the round, and picked jobs that wait."""
    runs, offers = facts.gangs, facts.offers
    run, offered = (rows.row * facts.view.size + rows.job for rows in (runs, offers))
    return [
        *runs.broken(~np.isin(run, offered), "round {row}: {job} runs without an offer"),
        *offers.broken(~np.isin(offered, run), "round {row}: {job} waits despite its offer"),
    ]


def _no_idle_gpu(facts: Facts) -> list[str]:
    """Report a picked job that waits although enough GPUs of a type on which it can run are free."""
    view, runs, offers = facts.view, facts.gangs, facts.offers
    if not offers.row.size and facts.problem not in RUNS:
        offers = Rows(offers.names, row=np.zeros_like(view.runnable), job=view.runnable)
    rounds = offers.by("row")
    used = np.zeros((rounds.row.size, view.types))
    inside = np.isin(runs.row, rounds.row)
    np.add.at(used, (np.searchsorted(rounds.row, runs.row[inside]), runs.gpu_type[inside]), runs.gpus[inside])
    free = rounds.spread(facts.speeds.pooled.gpus - used)
    gang = view.workload.gpus[offers.job]
    waits = ~np.isin(offers.row * view.size + offers.job, runs.row * view.size + runs.job)
    fits = (facts.speeds.pooled.able[offers.job] & (gang[:, None] <= free)).any(axis=1)
    return offers.broken(waits & fits, "round {row}: GPUs are idle, {job} with its {gang} waits", gang=gang)


def _fragments(facts: Facts) -> int:
    return int((facts.gangs.count > 1).sum())


def _three_per_server(facts: Facts) -> list[str]:
    """Report more than three fragmented jobs per server (Theorem A.2)."""
    fragments, most = _fragments(facts), 3 * int((facts.view.servers.gpus > 0).sum())
    text = f"{fragments} jobs are fragmented, more than three per server ({most})"
    return [text] if fragments > most else []


CLAIMS: dict[str, Callable[[Facts], list[str]]] = {
    "proportional": lambda facts: _below(  # (5)
        facts, facts.speeds.pooled.fair[facts.gangs.job, facts.gangs.gpu_type], "fair progress"
    ),
    "no_idle_gpu": _no_idle_gpu,
    "all_offered": _all_offered,
    "three_per_server": _three_per_server,
}
"""Claims of methods: every running job makes at least its fair progress; no picked job waits while enough GPUs for its
gang idle; in every round exactly the picked jobs run; at most three jobs per server are fragmented."""


# ---------------------------------------------------------------- one round


def _round(facts: Facts) -> list[str]:
    """Report rounds other than 0, jobs that do not belong to the round, and jobs that are left out, (4)."""
    view, runs = facts.view, facts.gangs
    jobs = Rows(runs.names, job=view.runnable)
    return [
        *runs.broken(runs.row > 0, "round {row}: the only round is 0"),
        *runs.broken(~np.isin(runs.job, view.runnable), "{job} is not among the jobs of the round"),
        *jobs.broken(
            ~np.isin(view.runnable, runs.job) & (facts.problem in EVERYBODY),
            "{job} does not run{more}, but every job of the round does here",
        ),
    ]


def _judged_round(facts: Facts, lines: list[str]) -> Verdict:
    """Return the verdict on one round: the objective is its throughput, or the fragments of a placement."""
    runs, view, total = facts.gangs, facts.view, facts.speeds.pooled.total
    throughput, fragments = float((facts.weight[runs.job] * runs.rate).sum()), _fragments(facts)
    used = np.array([runs.gpus.sum(), runs.cpus.sum(), runs.memory_gb.sum()]) / total.sum(axis=0)
    metrics: dict[str, float | int | bool] = {"running": len(np.unique(runs.job))}
    metrics |= zip(("gpus_used", "cpus_used", "memory_used"), used.tolist(), strict=True)
    if facts.problem not in SUPER:
        metrics["fragments"] = fragments
    quantities: dict[str, Any] = {
        "cpus": np.bincount(runs.job, runs.cpus, view.size).astype(float),
        "memory_gb": np.bincount(runs.job, runs.memory_gb, view.size).astype(float),
        "throughput": throughput,
        "fragments": fragments,
    }
    work, fair = view.workload.work[runs.job], facts.speeds.pooled.fair[runs.job].max(axis=1)
    if runs.job.size and min(runs.rate.min(), fair.min()) > 0:
        quantities["mean_jct_speedup"] = float((work / fair).mean() / (work / runs.rate).mean())
    objective = float(fragments) if facts.problem == PLACEMENT.id else throughput
    return Verdict(objective, tuple(lines), metrics, quantities)


# ---------------------------------------------------------------- the run


def _judged_run(facts: Facts, lines: list[str]) -> Verdict:
    """Return the verdict on a run, in which every possible job completes; the objective is a JCT or the makespan."""
    view, runs = facts.view, facts.gangs
    jobs = runs.by("job")
    last = jobs.first + jobs.count - 1
    part = runs.rate * view.slot_s / view.workload.work[runs.job]
    jobs.row, jobs.work, final = runs.row[last], view.workload.work[jobs.job], part[last]
    jobs.before = np.array([part[a:b].sum() for a, b in zip(jobs.first, last, strict=True)], float)
    arrival, done = view.arrival[runs.job], jobs.before + final
    others = Rows(runs.names, job=np.arange(view.size))
    never = facts.speeds.pooled.able.any(axis=1) & ~np.isin(others.job, runs.job)
    unfinished = "{job} does {done:.9g} of its {work:.9g} iterations"
    refuse(
        [
            *lines,
            *runs.broken(runs.row < arrival, AT + "runs before its arrival in round {arrival}", arrival=arrival),
            *jobs.broken(jobs.before > 1 + SLIVER, AT + "runs after its completion"),
            *jobs.broken(done < 1 - SLIVER, unfinished, done=done * jobs.work),
            *others.broken(never, "{job} never runs{more}, but every possible job completes here"),
        ]
    )
    # Sums are rounded, so the last round may begin when the work is done already: nothing is left then.
    left, unknown = np.maximum(1.0 - jobs.before, 0.0), np.full(last.size, np.nan)
    spent = np.divide(left, final, out=unknown, where=final > 0)
    completion_s = np.full(view.size, np.nan)
    completion_s[jobs.job] = (jobs.row + np.minimum(spent, 1.0)) * view.slot_s
    done = np.isfinite(completion_s)
    refuse([] if done.any() else ["nothing completes"])
    jct_s = (completion_s - view.workload.arrival_s)[done]
    metrics: dict[str, float | int | bool] = {
        "jct_median_s": float(np.median(jct_s)),
        "jct_p99_s": float(np.percentile(jct_s, 99)),
        "makespan_s": float(completion_s[done].max()) - float(view.workload.arrival_s[done].min()),
        **_shares(facts),
    }
    mean_s = float(jct_s.mean())
    objective = {RUN.id: mean_s, P99.id: metrics["jct_p99_s"], MAKESPAN.id: float(completion_s[done].max())}
    quantities = {"jct_mean_s": mean_s, "completion_s": completion_s}
    return Verdict(objective[facts.problem], (), metrics, quantities)


def _shares(facts: Facts) -> dict[str, float]:
    """Return the mean and the smallest ratio of a round's progress to LP1's bound for its picked jobs.

    A job that completes within a round counts as if it ran to the end. If a mechanism runs jobs that were not picked,
    or leaves picked jobs out, the ratio is a comparison, not a certificate.
    """
    offers, runs = facts.offers, facts.gangs
    if not offers.row.size:
        return {}
    rows, where = np.unique(offers.row, return_inverse=True)
    most = most_progress(facts.speeds, where, offers.job, len(rows), facts.weight)
    inside = np.isin(runs.row, rows)
    progress = (facts.weight[runs.job] * runs.rate)[inside]
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


def posed(view: View, problem: str) -> dict[str, Any]:
    """Return what certificates must state about a problem: the length of rounds, and the jobs of a single round."""
    jobs = {} if problem in RUNS else {"round": sorted(view.workload.ids[j] for j in view.runnable)}
    return slotted(view, problem) | jobs


def read(data: Data) -> View:
    """Return the view of an instance."""
    return view(validate(data, "the instance"))


VERIFIERS.register(VerifierSpec("synergy", read, check, lambda problem: QUANTITIES[problem in RUNS], posed))
