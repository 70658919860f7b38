"""Checkers for schedules of gangs: copies, capacity, arrivals, work; Hadar's utility, makespans and JCTs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedgap.certificates.reading.gangs import Gangs, gangs_of
from schedgap.harness.check.registry import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.check.rules import SHORTFALL, WHOLE, Range, Rows, refuse, refusing, well_formed
from schedgap.instances.arrays import Ints
from schedgap.instances.views.hadar import HadarSchedule

AT = "{job} in slot {slot}: "

FORKED, COMPLETE = "hadar.forked", "hadar.complete"


@refusing
def check(facts: Gangs, decision: HadarSchedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check a schedule of gangs.

    In ``hadar.forked`` copies may run separately; in the other problems gangs run whole, and in ``hadar.complete``
    every job completes. In ``hadar.utility?beta=0.5``, a gang pays 0.5 per slot for every server beyond its first.
    """
    work, hosts = facts.jobs, facts.servers
    sizes: dict[str, Range] = {"job": work.size, "slot": facts.slots, "server": hosts.size, "gpus": WHOLE}
    names = {"job": work.ids.__getitem__, "server": hosts.names.__getitem__}
    held = Rows(names, **well_formed(decision, sizes)[0])
    held.rate, held.gang = work.rates[held.job, hosts.gpu_type[held.server]], work.gpus[held.job]
    held.arrival, held.there = facts.arrival[held.job], hosts.gpus[held.server]
    odd = (held.gpus < 1) | (held.gpus > held.there)
    refuse(held.broken(odd, AT + "{gpus} GPUs of server {server}, an entry has 1 to {there}"))
    if problem == FORKED:
        runs, odd, text = held, held.gpus > held.gang, "a copy of {gpus} GPUs, its gang has {gang}"
    else:
        runs = held.by("job", "slot")
        runs.gpus, runs.rate, runs.gang = runs.total(held.gpus), runs.least(held.rate), work.gpus[runs.job]
        odd, text = runs.gpus != runs.gang, "{gpus} GPUs, its gang needs all {gang} or none"
    jobs, entries, cells = _jobs(facts, runs), held.by("job", "slot", "server"), held.by("slot", "server")
    used, there = cells.total(held.gpus), hosts.gpus[cells.server]
    full = "slot {slot}: {used} GPUs of server {server} given out, {there} available"
    lines = [
        *entries.broken(entries.count > 1, AT + "server {server} occurs twice"),
        *cells.broken(used > there, full, used=used, there=there),  # (1d)
        *held.broken(held.slot < held.arrival, AT + "runs before its arrival in slot {arrival}"),
        *runs.broken(odd, AT + text),  # (1e)
        *runs.broken(runs.rate <= 0, AT + "holds GPUs that it cannot run on"),
        *jobs.broken(  # (1a)
            jobs.appears & (jobs.done < jobs.work * (1 - SHORTFALL)),
            "{job} does {done:.9g} of its {work:.9g} iterations; a job that appears completes{more}",
            " ({count} jobs fall short)",
        ),
        *jobs.broken(~jobs.appears & (problem == COMPLETE), "{job} is rejected{more}, but every job completes here"),
    ]
    beta, gangs = float(problem.partition("?beta=")[2] or 0), held.by("job", "slot").count.size
    apart = _machines(facts, held, held.job * facts.slots + held.slot) - gangs if beta else 0
    return _measured(facts, held, jobs, lines, beta * apart)


def _machines(facts: Gangs, held: Rows, cell: Ints) -> int:
    """Return the number of servers in use, summed over cells; one server may have GPUs of several types."""
    return int(np.unique(cell * facts.servers.machines + facts.servers.machine[held.server]).size)


def _jobs(facts: Gangs, runs: Rows) -> Rows:
    """Return one row per job: its last slot (−1 if it does not appear), its iterations, and its utility."""
    last, worth = np.full(facts.jobs.size, -1), np.zeros(facts.jobs.size)
    np.maximum.at(last, runs.job, runs.slot)
    appears, took = last >= 0, last - facts.arrival + 1
    worth[appears] = facts.utilities.value(np.flatnonzero(appears), np.maximum(took[appears], 1) * facts.slot_s)
    return Rows(
        runs.names,
        job=np.arange(facts.jobs.size),
        last=last,
        appears=appears,
        took=np.where(appears, took, 0),
        work=facts.jobs.work,
        done=np.bincount(runs.job, runs.gpus * runs.rate * facts.slot_s, facts.jobs.size),
        worth=worth,
    )


def _measured(facts: Gangs, held: Rows, jobs: Rows, lines: list[str], cost: float) -> Verdict:
    """Return the verdict with metrics and quantities; `cost` is the total cost of communication.

    The CRU of Figure 1 counts GPUs (its 87 % are 26 of 30 GPU rounds, its 78 % are 28 of 36), so we call it the GRU;
    HadarE's CRU is the share of busy servers.
    """
    completed, objective = int(jobs.appears.sum()), float(jobs.worth.sum()) - cost
    ttd = max(int(jobs.last.max()) + 1 - int(facts.arrival.min()), 0)
    metrics: dict[str, float] = {"completed": completed, "rejected": facts.jobs.size - completed, "ttd_rounds": ttd}
    if completed and ttd:
        metrics["mean_completion_slots"] = float(jobs.took[jobs.appears].mean())
        metrics["gru"] = float(held.gpus.sum() / (facts.servers.gpus.sum() * ttd))
        metrics["busy_servers"] = _machines(facts, held, held.slot) / (facts.servers.machines * ttd)
    quantities = {"ttd_rounds": ttd, "completion_slots": jobs.took, "objective": objective}
    return Verdict(objective, tuple(lines), metrics, quantities)


QUANTITIES = ("completed", "rejected", "ttd_rounds", "mean_completion_slots", "gru", "busy_servers", "completion_slots")

VERIFIERS.register(VerifierSpec("hadar", gangs_of, check, lambda problem: QUANTITIES))


TIMES = dict.fromkeys(("gavel.makespan", "gavel.makespan_copies"), "makespan_s")
TIMES |= dict.fromkeys(("gavel.mean", "gavel.mean_copies"), "jct_mean_s")
TIMES |= dict.fromkeys(("gavel.p99", "gavel.p99_copies"), "jct_p99_s")
"""The objective of each problem in which every job completes."""


def check_times(facts: Gangs, decision: HadarSchedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check a schedule that completes every job; the objective is the problem's time, see :data:`TIMES`.

    A job completes at the end of its last slot; its JCT counts from its arrival, in seconds.
    """
    verdict = check(facts, decision, COMPLETE, claims)
    if verdict.objective is None:
        return verdict
    end_s = np.zeros(facts.jobs.size)
    np.maximum.at(end_s, decision.job, (np.asarray(decision.slot, np.int64) + 1) * facts.slot_s)
    jct_s = end_s - facts.jobs.arrival_s
    times = {"makespan_s": end_s.max(), "jct_mean_s": jct_s.mean(), "jct_p99_s": np.percentile(jct_s, 99)}
    seconds = {name: float(time) for name, time in times.items()}
    objective = seconds[TIMES[problem]]
    return replace(verdict, objective=objective, quantities={**verdict.quantities, **seconds, "objective": objective})


TIMED = *QUANTITIES, *dict.fromkeys(TIMES.values())

VERIFIERS.register(VerifierSpec("gavel", gangs_of, check_times, lambda problem: TIMED))
