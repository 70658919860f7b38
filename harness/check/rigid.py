"""Checker for gangs of fixed duration: a sweep over the events of each pool, in integer ticks, without tolerance."""

from __future__ import annotations

from fractions import Fraction
from operator import mul

import numpy as np

from schedgap.certificates.reading.rigid import SHORT_S, FixedGangs, fixed_gangs_of
from schedgap.harness.check.registry import VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.check.rules import LARGEST, Groups, Range, Rows, overlaps, refuse, refusing, well_formed
from schedgap.instances.arrays import Ints
from schedgap.instances.rigid import RigidSchedule

HORIZON = 2**61
"""Ticks stay below this value, so that sums of two fit in 64 bits."""


OBJECTIVES = ("flow", "slowdown", "weighted", "makespan", "idle")


def metric(objective: str) -> str:
    """Return the metric name of an objective."""
    return {"slowdown": "slowdown", "idle": "idle_gpu_h"}.get(objective, f"{objective}_h")


@refusing
def check(facts: FixedGangs, decision: RigidSchedule, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check the intervals in which jobs hold their gangs, and measure all objectives.

    Each job runs for its duration in a single pool that can run it, not before its release, never twice at once, and
    without interruption unless the problem allows it. No pool exceeds its GPUs, nor does any server that is named.
    """
    fields: dict[str, Range] = {"job": facts.size, "start": (0, HORIZON), "end": (0, HORIZON), "pool": len(facts.pools)}
    tick = "" if facts.tick_s == 1 else f" (in ticks of {facts.tick_s:g} s)"
    times = dict.fromkeys(("start", "end", "at"), lambda t: f"{t}{tick}")
    names = times | {"job": facts.ids.__getitem__, "pool": facts.pools.__getitem__}
    runs = Rows(names, **well_formed(decision, fields)[0])
    lines = runs.broken(runs.end < runs.start, "job {job} ends at {end}, before it starts at {start}{more}")
    jobs, everybody = runs.by("job"), Rows(runs.names, job=np.arange(facts.size))
    refuse([*lines, *everybody.broken(~np.isin(everybody.job, jobs.job), "job {job} does not run{more}")])
    lines = runs.broken(
        runs.start < facts.release[runs.job],
        "job {job} starts at {start}, before its release at {release}{more}",
        release=facts.release[runs.job],
    )
    pool, ran = jobs.head(runs.pool), jobs.total(runs.end - runs.start)
    due = facts.lasts[jobs.job, pool]
    lines += jobs.broken(jobs.least(runs.pool) != jobs.most(runs.pool), "job {job} runs in several pools{more}")
    lines += jobs.broken(due < 0, "job {job} runs in pool {pool}, where it cannot{more}", pool=pool)
    short = (due >= 0) & (ran != due)
    lines += jobs.broken(short, "job {job} runs for {ran} ticks instead of {due}{more}", ran=ran, due=due)
    if not problem.endswith(".preemptive"):
        lines += jobs.broken(jobs.count > 1, "job {job} is interrupted: it runs {count} times{more}", count=jobs.count)
    lines += overlaps(runs, "job {job} runs twice at {start}{more}")
    lines += _on_servers(facts, runs, decision)
    overfull, idle = _in_pools(facts, runs, jobs, pool)
    measured = objectives(facts, jobs.most(runs.end), idle)
    waited, hours = (jobs.most(runs.end) - facts.release - ran).astype(float), facts.hour
    metrics = {
        "wait_h": float(waited.mean()) / hours,
        "longest_wait_h": float(waited.max()) / hours,
        "start_delay_h": float((jobs.least(runs.start) - facts.release).astype(float).mean()) / hours,
        **{metric(name): value for name, value in measured.items()},
    }
    return Verdict(measured[problem.split(".")[1]], (*lines, *overfull), metrics, measured)


def _in_pools(facts: FixedGangs, runs: Rows, jobs: Groups, pool: Ints) -> tuple[list[str], int]:
    """Report pools with too many GPUs in use, and count the GPU-ticks that idle while a job of the same pool waits.

    At the same moment, ends precede starts. A job waits whenever it does not run between its release and its last end.
    """
    gpus, run, job = facts.gpus[runs.job], np.ones(runs.job.size, np.int64), np.ones(facts.size, np.int64)
    at = np.concatenate([runs.end, runs.start, facts.release, jobs.most(runs.end)])
    events = Rows(runs.names, pool=np.concatenate([runs.pool, runs.pool, pool, pool]), at=at)
    held, waits = np.concatenate([-gpus, gpus, 0 * job, 0 * job]), np.concatenate([run, -run, job, -job])
    moments, (used, waiting) = events.sums("pool", "at", held, waits)
    room = facts.capacity[moments.pool]
    text = "pool {pool}: {used} GPUs in use at {at}, it has {room}{more}"
    free = np.maximum(room - used, 0)[:-1] * (waiting[:-1] > 0)
    idle = sum(map(mul, free.tolist(), np.diff(moments.at).tolist()))
    return moments.broken(used > room, text, used=used, room=room), idle


def _on_servers(facts: FixedGangs, runs: Rows, decision: RigidSchedule) -> list[str]:
    """Report servers of the wrong pool or with too many GPUs in use, if the decision names servers."""
    if not np.size(decision.run):
        return []
    hosts = facts.servers
    names = runs.names | {"server": hosts.names.__getitem__}
    (entries,) = well_formed(decision, {"run": runs.job.size, "server": hosts.size, "gpus": (1, LARGEST)})
    held = Rows(names, **entries)
    held.job, held.pool = runs.job[held.run], runs.pool[held.run]
    odd = hosts.gpu_type[held.server] != held.pool
    lines = held.broken(odd, "job {job}: server {server} is not in pool {pool}{more}")
    each = held.by("run")
    gpus, job = each.total(held.gpus), runs.job[each.run]
    text = "job {job} holds {gpus} GPUs of servers, its gang has {gang}{more}"
    lines += each.broken(gpus > facts.gpus[job], text, job=job, gpus=gpus, gang=facts.gpus[job])
    at = np.concatenate([runs.end[held.run], runs.start[held.run]])
    events = Rows(names, server=np.tile(held.server, 2), at=at)
    moments, (used,) = events.sums("server", "at", np.concatenate([-held.gpus, held.gpus]))
    room = hosts.gpus[moments.server]
    text = "server {server}: {used} GPUs in use at {at}, it has {room}{more}"
    return [*lines, *moments.broken(used > room, text, used=used, room=room)]


def objectives(facts: FixedGangs, completion: Ints, idle: int) -> dict[str, float]:
    """Return all objectives, by exact sums, in the problems' units; slowdowns are relative to the fastest run."""
    hour = Fraction(facts.hour)
    flow = completion - facts.release
    short = SHORT_S * facts.hour // 3600
    least = np.maximum(facts.lasts.min(axis=1, initial=HORIZON, where=facts.lasts >= 0), short)
    slow = float(np.cumsum(np.maximum(flow / least, 1.0))[-1])
    flow, (weights, kind, count) = flow.tolist(), np.unique(facts.weight, return_inverse=True, return_counts=True)
    of_weight = [0] * len(weights)  # jobs of equal weight are added up as whole numbers
    for at, time in zip(kind.tolist(), flow, strict=True):
        of_weight[at] += time
    weight = [Fraction(w) for w in weights.tolist()]
    weighted = sum((w * time for w, time in zip(weight, of_weight, strict=True)), Fraction(0))
    heavy = sum((w * many for w, many in zip(weight, count.tolist(), strict=True)), Fraction(0))
    return {
        "flow": float(sum(flow) / hour / facts.size),
        "slowdown": slow / facts.size,
        "weighted": float(weighted / hour / heavy) if heavy else 0.0,
        "makespan": float((int(completion.max()) - int(facts.release.min())) / hour),
        "idle": float(idle / hour),
    }


VERIFIERS.register(VerifierSpec("rigid", fixed_gangs_of, check, lambda problem: ("wait_h", *map(metric, OBJECTIVES))))
