"""Shared rules for moldable jobs: well-formed runs, servers, rates, capacity over time, bandwidth of PSs.

Jobs and servers are read from the instance (:mod:`schedgap.certificates.reading.moldable`). Capacity is checked where
runs begin and end, not slot by slot, so runs may be arbitrarily late and long.
"""

from __future__ import annotations

import numpy as np

from schedgap.certificates.reading.moldable import Layout, RawMoldable
from schedgap.harness.check.rules import EXCESS, LARGEST, SHORTFALL, Range, Rows, refuse, well_formed
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.moldable import Runs

AT = "{job} from slot {start}: "


class PlannedRuns:
    """The runs of a decision on the servers, with derived quantities; malformed decisions are refused.

    Slots count from `first`. Every run of a job except its first begins with `restart` slots without work.

    `runs` has one row per run, which occupies slots ``start … end − 1``. Besides the decision's fields, it has the
    numbers of workers (`total`), PSs (`servers`) and servers in use (`hosts`), the most workers the job may have
    (`chunks`), the slots a worker takes for a mini-batch (`per_batch`, infinite where it cannot run), the number of
    slots `lost` after an interruption, and the mini-batches done in the other slots (`work`). `entries` has one row per
    run and server: the run's job, types, `start` and `end`, and the ``(e, R)`` resources it `takes`. `jobs` has one row
    per job: the number of its `runs`, and its mini-batches `done` and to do (`work`).
    """

    def __init__(self, decision: Runs, read: RawMoldable, first: int, restart: int = 0) -> None:
        self.read, hardware = read, read.hardware
        of_runs: dict[str, Range] = {
            "job": read.size,
            "start": (first, LARGEST),
            "slots": (1, LARGEST),
            "worker_type": len(hardware.workers),
            "ps_type": (-1, 0) if read.ring else len(hardware.ps),
        }
        of_entries: dict[str, Range] = {
            "run": np.size(decision.job),
            "server": len(read.names),
            "workers": (0, LARGEST),
            "ps": (0, 1) if read.ring else (0, LARGEST),
        }
        runs, entries = (Rows({}, **table) for table in well_formed(decision, of_runs, of_entries))
        twice = entries.by("run", "server")
        refuse(twice.broken(twice.count > 1, "run {run}: server {server} occurs twice"))
        empty = "run {run}: nothing on server {server}; an entry has workers or parameter servers"
        refuse(entries.broken((entries.workers == 0) & (entries.ps == 0), empty))
        runs.names = entries.names = {
            "job": read.ids.__getitem__,
            "server": read.names.__getitem__,
            "worker_type": lambda m: hardware.workers[m]["name"],
        }
        self.runs, self.entries = runs, entries
        self._work(restart)
        self.jobs = Rows(
            runs.names,
            job=np.arange(read.size),
            runs=np.bincount(runs.job, minlength=read.size),
            done=np.bincount(runs.job, runs.work, read.size),
            work=read.work,
        )

    def _work(self, restart: int) -> None:
        """Add the derived columns of runs and entries."""
        runs, entries, read, count = self.runs, self.entries, self.read, self.runs.job.size
        runs.end = runs.start + runs.slots
        runs.total = np.bincount(entries.run, entries.workers, count).astype(np.int64)
        runs.servers = np.bincount(entries.run, entries.ps, count)
        runs.hosts = np.bincount(entries.run, minlength=count)
        runs.chunks = read.chunks[runs.job]
        runs.per_batch = _per_batch(read, runs)
        rate = np.divide(1.0, runs.per_batch, out=np.zeros(count), where=runs.per_batch > 0)
        order = np.lexsort((runs.start, runs.job))
        runs.lost = np.zeros(count, np.int64)
        runs.lost[order[1:]] = restart * (np.diff(runs.job[order]) == 0)
        runs.work = np.maximum(runs.slots - runs.lost, 0) * runs.total * rate
        for name in ("job", "start", "end", "total", "worker_type", "ps_type"):
            setattr(entries, name, getattr(runs, name)[entries.run])
        worker, ps = read.hardware.takes
        worker, ps = worker[entries.worker_type], np.vstack((ps, 0.0 * worker[:1]))[entries.ps_type]  # rings: the last
        entries.takes = entries.workers[:, None] * worker + entries.ps[:, None] * ps


def _per_batch(read: RawMoldable, runs: Rows) -> Array:
    """Return each run's ``(a,)`` slots per mini-batch of a worker."""
    per_batch, alone = np.full(runs.job.size, np.inf), runs.hosts == 1
    for m, p, one in {*zip(runs.worker_type.tolist(), runs.ps_type.tolist(), alone.tolist(), strict=True)}:
        here = (runs.worker_type == m) & (runs.ps_type == p) & (alone == one)
        per_batch[here] = read.per_batch(runs.job[here], Layout(m, p, one), np.maximum(runs.total[here], 1))
    return per_batch


# ---------------------------------------------------------------- rules of all problems


def placements(plan: PlannedRuns) -> list[str]:
    """Check the workers and PSs of each run; Zhou's (2b) and (2c) hold by the form of a decision."""
    read, runs, entries = plan.read, plan.runs, plan.entries
    workers, ps = read.hardware.workers, read.hardware.ps
    wanted = np.array([w.get("gpu_type") or "" for w in workers])[entries.worker_type]
    there = read.gpu_types[entries.server]
    speed = np.array([w["bandwidth_gbps"] for w in workers])[entries.worker_type]
    sent = (entries.total - entries.workers) * speed
    carried = entries.ps * np.array([*(p["bandwidth_gbps"] for p in ps), 0.0])[entries.ps_type]
    starved = (entries.ps > 0) & (sent > carried * (1 + EXCESS))
    other = (entries.workers > 0) & (wanted != "") & (wanted != there)
    overload = "{ps} parameter servers on {server} carry {carried:.9g} Gbit/s, workers elsewhere send {sent:.9g} (2i)"
    return [
        *runs.broken(runs.total < 1, AT + "no workers"),
        *runs.broken(runs.total > runs.chunks, AT + "{total} workers, at most {chunks} (one per chunk)"),  # (2g)
        *runs.broken(~np.isfinite(runs.per_batch), AT + "its workers of type {worker_type} cannot train it"),
        *runs.broken((runs.servers < 1) & (not read.ring), AT + "no parameter server"),  # (2e)
        *entries.broken(other, AT + "workers of type {worker_type} on {server}, of another GPU type"),
        *entries.broken(starved, AT + overload, carried=carried, sent=sent),
    ]


def capacity(plan: PlannedRuns) -> list[str]:
    """Report each resource that some server lacks in some slot, (2h)."""
    entries, read = plan.entries, plan.read
    events = Rows(entries.names, server=np.tile(entries.server, 2), slot=np.concatenate((entries.start, entries.end)))
    changes, (used,) = events.sums("server", "slot", np.concatenate((entries.takes, -entries.takes)))
    there = read.capacity[changes.server]
    changes.names = entries.names | {"resource": read.hardware.resources.__getitem__}
    text, lines = "slot {slot}: {held:.12g} {resource} of {server} given out, {most:.12g} available", []
    for r, (held, most) in enumerate(zip(used.T, there.T, strict=True)):
        which = np.full(held.size, r)
        lines += changes.broken(held > most * (1 + EXCESS), text, held=held, most=most, resource=which)
    return lines


def early(plan: PlannedRuns, first: Ints) -> list[str]:
    """Report a job that runs before its slot in `first`, ``(n,)``."""
    runs, first = plan.runs, first[plan.runs.job]
    return runs.broken(runs.start < first, AT + "starts too early, its first possible slot is {first}", first=first)


def several(plan: PlannedRuns) -> list[str]:
    """Report a job that has more than one run."""
    jobs = plan.jobs
    return jobs.broken(jobs.runs > 1, "{job}: {runs} runs; a job runs once, without interruption")


def unfinished(plan: PlannedRuns) -> list[str]:
    """Report a job whose runs do less than its work, (2f)."""
    jobs = plan.jobs
    return jobs.broken(
        (jobs.runs > 0) & (jobs.done < jobs.work * (1 - SHORTFALL)),
        "{job} does {done:.9g} of its {work:.9g} mini-batches{more}",
        " ({count} jobs fall short)",
    )
