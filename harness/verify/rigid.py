"""Checker for gangs of fixed duration: a sweep over the events of each pool, in whole ticks, without any tolerance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from schedgap.harness.verify import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.verify.rules import Rows, refuse, refusing, well_formed, whole
from schedgap.instances.arrays import Ints
from schedgap.instances.rigid import SHORT_S, Schedule, View

HORIZON = 2**61
"""Ticks end before that, so that sums of two stay whole numbers of 64 bits."""


UNITS = {"slowdown": "", "idle": "_gpu_h"}
"""How the names of objectives end as metrics, where they are no hours."""


@refusing
def check(view: View, decision: Schedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Return the verdict on intervals in which jobs hold their gangs.

    All jobs run for their durations, none before its release or twice at once, each without interruption unless the
    problem allows it, and no pool has more GPUs in use than it has. The verdict measures all objectives.
    """
    well_formed(decision, {"job": view.size, "start": (0, HORIZON), "end": (0, HORIZON)})
    runs = _rows(view, whole(decision, "job", "start", "end"))
    lines = runs.broken(runs.end < runs.start, "job {job} ends at {end}, before it starts at {start}{more}")
    jobs, everybody = runs.by("job"), Rows(runs.names, job=np.arange(view.size))
    refuse([*lines, *everybody.broken(~np.isin(everybody.job, jobs.job), "job {job} does not run{more}")])
    lines = runs.broken(
        runs.start < view.release[runs.job],
        "job {job} starts at {start}, before its release at {release}{more}",
        release=view.release[runs.job],
    )
    ran = jobs.total(runs.end - runs.start)
    lines += jobs.broken(
        ran != view.duration, "job {job} runs for {ran} ticks instead of {due}{more}", ran=ran, due=view.duration
    )
    if not problem.endswith(".preemptive"):
        lines += jobs.broken(jobs.count > 1, "job {job} is interrupted: it runs {count} times{more}", count=jobs.count)
    order = np.lexsort((runs.end, runs.start, runs.job))
    job, start, end = runs.job[order], runs.start[order], runs.end[order]
    twice = Rows(runs.names, job=job[1:], start=start[1:])
    lines += twice.broken((job[1:] == job[:-1]) & (start[1:] < end[:-1]), "job {job} runs twice at {start}{more}")
    idle = Fraction(0)
    for p in range(len(view.pools)):
        used_too_much, idle_ticks = _sweep(view, runs, p)
        lines += used_too_much
        idle += idle_ticks
    measured = objectives(view, jobs.most(runs.end), idle)
    return Verdict(measured[problem.split(".")[1]], tuple(lines), _metrics(view, runs, jobs, measured), measured)


def _rows(view: View, arrays: dict[str, Ints]) -> Rows:
    tick = "" if view.tick_s == 1 else f" (in ticks of {view.tick_s:g} s)"
    names = {"job": lambda j: view.instance.jobs[j].id, "start": lambda t: f"{t}{tick}", "end": lambda t: f"{t}{tick}"}
    return Rows(names, **arrays)


def _sweep(view: View, runs: Rows, pool: int) -> tuple[list[str], int]:
    """Return where a pool has too many GPUs in use, and GPU-ticks that are free while a job of it waits.

    Ends come before starts of the same moment. A job waits from its release to its last end whenever it does not run.
    """
    mine = view.pool[runs.job] == pool
    job, start, end = runs.job[mine], runs.start[mine], runs.end[mine]
    members = np.flatnonzero(view.pool == pool)
    last = np.zeros(view.size, np.int64)
    np.maximum.at(last, job, end)
    one = np.ones(job.size, np.int64)
    here = np.ones(members.size, np.int64)
    at = np.concatenate([end, start, view.release[members], last[members]])
    gpus = np.concatenate([-view.gpus[job], view.gpus[job], np.zeros(2 * members.size, np.int64)])
    waits = np.concatenate([one, -one, here, -here])
    order = np.argsort(at, kind="stable")
    times, first = np.unique(at[order], return_index=True)
    used = np.cumsum(np.add.reduceat(gpus[order], first)) if times.size else gpus
    waiting = np.cumsum(np.add.reduceat(waits[order], first)) if times.size else waits
    room = int(view.capacity[pool])
    moments = Rows({}, at=times, used=used)
    told = f"pool {view.pools[pool]}: {{used}} GPUs in use at {{at}}, it has {room}{{more}}"
    free = np.maximum(room - used, 0)[:-1] * (waiting[:-1] > 0)
    return moments.broken(used > room, told), sum((free.astype(object) * np.diff(times).astype(object)).tolist())


def objectives(view: View, completion: Ints, idle: Fraction) -> dict[str, float]:
    """Return the objectives, by exact sums, in the units of the problems."""
    hour = Fraction(3600) / (Fraction(1) if view.tick_s == 1 else Fraction(1, 1_000_000))
    flow = (completion - view.release).tolist()
    weight = [Fraction(w) for w in view.weight.tolist()]
    short = int(SHORT_S * hour / 3600)
    least = np.maximum(view.duration, short).tolist()
    slow = sum(max(1.0, f / p) for f, p in zip(flow, least, strict=True))
    weighted = sum((w * f for w, f in zip(weight, flow, strict=True)), Fraction(0))
    return {
        "flow": float(sum(flow) / hour / view.size),
        "slowdown": slow / view.size,
        "weighted": float(weighted / hour / sum(weight)) if any(weight) else 0.0,
        "makespan": float((int(completion.max()) - int(view.release.min())) / hour),
        "idle": float(idle / hour),
    }


def _metrics(view: View, runs: Rows, jobs: Rows, measured: dict[str, float]) -> dict[str, float]:
    first = jobs.least(runs.start)
    waited = (jobs.most(runs.end) - view.release - view.duration).astype(float)
    hours = view.ticks_of_hour
    return {
        "wait_h": float(waited.mean()) / hours,
        "longest_wait_h": float(waited.max()) / hours,
        "start_delay_h": float((first - view.release).astype(float).mean()) / hours,
        **{f"{name}{UNITS.get(name, '_h')}": value for name, value in measured.items()},
    }


VERIFIERS.register(
    VerifierSpec(
        "rigid",
        check,
        quantities=lambda problem: ("wait_h", "flow_h", "slowdown", "weighted_h", "makespan_h", "idle_gpu_h"),
    )
)
