"""Shared rules for elastic jobs: well-formed runs, servers, rates, capacity over time, bandwidth of PSs.

Everything is recomputed from the instance, in the instance's units: seconds per mini-batch, Gbit/s, fractions of
servers. Capacity is checked where runs begin and end, not slot by slot, so runs may be arbitrarily late and long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from schedgap.certificates.basics import times
from schedgap.harness.verify.rules import EXCESS, LARGEST, SHORTFALL, Range, Rows, refuse, well_formed
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Runs
from schedgap.instances.schema import Instance, PSType, WorkerType

AT = "{job} from slot {start}: "


@dataclass(frozen=True, eq=False)
class Hardware:
    """The ``h`` servers of an instance with ``R`` resources, and the needs of workers and parameter servers (PSs).

    Parameters
    ----------
    instance, resources
        The instance that has the servers; names of the resources.
    workers, ps, ring
        The types that a decision's indices refer to; whether workers form rings, without PSs.
    room, worker_takes, ps_takes
        ``(groups, R)`` capacity of a server of each group; ``(M, R)`` and ``(P, R)`` needs of each worker and PS type.
    """

    instance: Instance
    resources: Sequence[str]
    workers: Sequence[WorkerType]
    ps: Sequence[PSType]
    room: ArrayLike
    worker_takes: ArrayLike
    ps_takes: ArrayLike
    ring: bool = False

    @cached_property
    def servers(self) -> list[str]:
        """Names of the servers."""
        groups = self.instance.cluster.servers
        return [f"{g.name}.{i}" if g.count > 1 else g.name for g in groups for i in range(g.count)]

    @cached_property
    def capacity(self) -> Array:
        """``(h, R)`` capacity of each server."""
        return np.repeat(np.array(self.room, float), [g.count for g in self.instance.cluster.servers], axis=0)


class Plan:
    """The runs of a decision on some hardware, with derived quantities; malformed decisions are refused.

    Slots count from `first`. Every run of a job except its first begins with `restart` slots without work.

    `runs` has one row per run, which occupies slots ``start … end − 1``. Besides the decision's fields, it has the
    numbers of workers (`total`), PSs (`servers`) and servers in use (`hosts`), the most workers the job may have
    (`chunks`), the `seconds` a worker takes for a mini-batch (infinite where it cannot run), the number of slots `lost`
    after an interruption, and the mini-batches done in the other slots (`work`). `entries` has one row per run and
    server: the run's job, types, `start` and `end`, and the ``(e, R)`` resources it `takes`. `jobs` has one row per
    job: the number of its `runs`, and its mini-batches `done` and to do (`work`).
    """

    def __init__(self, decision: Runs, machines: Hardware, slot_s: float, first: int, restart: int = 0) -> None:
        jobs, self.hardware = machines.instance.jobs, machines
        of_runs: dict[str, Range] = {
            "job": len(jobs),
            "start": (first, LARGEST),
            "slots": (1, LARGEST),
            "worker_type": len(machines.workers),
            "ps_type": (-1, 0) if machines.ring else len(machines.ps),
        }
        of_entries: dict[str, Range] = {
            "run": np.size(decision.job),
            "server": len(machines.servers),
            "workers": (0, LARGEST),
            "ps": (0, 1) if machines.ring else (0, LARGEST),
        }
        runs, entries = (Rows({}, **table) for table in well_formed(decision, of_runs, of_entries))
        twice = entries.by("run", "server")
        refuse(twice.broken(twice.count > 1, "run {run}: server {server} occurs twice"))
        empty = "run {run}: nothing on server {server}; an entry has workers or parameter servers"
        refuse(entries.broken((entries.workers == 0) & (entries.ps == 0), empty))
        runs.names = entries.names = {
            "job": lambda j: jobs[j].id,
            "server": machines.servers.__getitem__,
            "worker_type": lambda m: machines.workers[m].name,
        }
        self.runs, self.entries = runs, entries
        self._work(slot_s, restart)
        self.jobs = Rows(
            runs.names,
            job=np.arange(len(jobs)),
            runs=np.bincount(runs.job, minlength=len(jobs)),
            done=np.bincount(runs.job, runs.work, len(jobs)),
            work=np.array([job.iterations for job in jobs], float),
        )

    def _work(self, slot_s: float, restart: int) -> None:
        """Add the derived columns of runs and entries."""
        runs, entries, machines, count = self.runs, self.entries, self.hardware, self.runs.job.size
        runs.end = runs.start + runs.slots
        runs.total = np.bincount(entries.run, entries.workers, count).astype(np.int64)
        runs.servers = np.bincount(entries.run, entries.ps, count)
        runs.hosts = np.bincount(entries.run, minlength=count)
        runs.chunks = np.array([job.chunks for job in machines.instance.jobs])[runs.job]
        runs.seconds = _seconds(machines, runs)
        rate = np.divide(slot_s, runs.seconds, out=np.zeros(count), where=runs.seconds > 0)
        order = np.lexsort((runs.start, runs.job))
        runs.lost = np.zeros(count, np.int64)
        runs.lost[order[1:]] = restart * (np.diff(runs.job[order]) == 0)
        runs.work = np.maximum(runs.slots - runs.lost, 0) * runs.total * rate
        for name in ("job", "start", "end", "total", "worker_type", "ps_type"):
            setattr(entries, name, getattr(runs, name)[entries.run])
        none = np.zeros((1, len(machines.resources)))  # rings have PS type −1, the last row
        ps = np.vstack((np.reshape(machines.ps_takes, (-1, none.size)), none))[entries.ps_type]
        worker = np.array(machines.worker_takes, float)[entries.worker_type]
        entries.takes = entries.workers[:, None] * worker + entries.ps[:, None] * ps


def _seconds(machines: Hardware, runs: Rows) -> Array:
    """Return each run's ``(a,)`` seconds per mini-batch of a worker, (1).

    In a ring of N workers, all but the training time is multiplied by (N − 1)/N, (14).
    """
    kinds = np.stack((runs.job, runs.worker_type, runs.ps_type), axis=1)
    unique, where = np.unique(kinds, axis=0, return_inverse=True)
    workers, servers = ([kind.model_dump() for kind in kinds] for kinds in (machines.workers, machines.ps))
    fields = {"rates", "distributed"}
    jobs = {j: machines.instance.jobs[j].model_dump(include=fields) for j in set(unique[:, 0].tolist())}
    parts = [times(jobs[j], workers[m], None if machines.ring else servers[p]) for j, m, p in unique.tolist()]
    compute, update, transfer = np.array(parts, float).reshape(-1, 3)[where.ravel()].T
    share = (runs.total - 1) / np.maximum(runs.total, 1) if machines.ring else 1.0
    return np.asarray(compute + share * (update + np.where(runs.hosts == 1, 0.0, transfer)))


# ---------------------------------------------------------------- rules of all problems


def placements(plan: Plan) -> list[str]:
    """Check the workers and PSs of each run; Zhou's (2b) and (2c) hold by the form of a decision."""
    machines, runs, entries = plan.hardware, plan.runs, plan.entries
    groups = machines.instance.cluster.servers
    wanted = np.array([w.gpu_type or "" for w in machines.workers])[entries.worker_type]
    there = np.repeat([g.gpu_type for g in groups], [g.count for g in groups])[entries.server]
    speed = np.array([w.bandwidth_gbps for w in machines.workers])[entries.worker_type]
    sent = (entries.total - entries.workers) * speed
    carried = entries.ps * np.array([*(p.bandwidth_gbps for p in machines.ps), 0.0])[entries.ps_type]
    starved = (entries.ps > 0) & (sent > carried * (1 + EXCESS))
    other = (entries.workers > 0) & (wanted != "") & (wanted != there)
    overload = "{ps} parameter servers on {server} carry {carried:.9g} Gbit/s, workers elsewhere send {sent:.9g} (2i)"
    return [
        *runs.broken(runs.total < 1, AT + "no workers"),
        *runs.broken(runs.total > runs.chunks, AT + "{total} workers, at most {chunks} (one per chunk)"),  # (2g)
        *runs.broken(~np.isfinite(runs.seconds), AT + "its workers of type {worker_type} cannot train it"),
        *runs.broken((runs.servers < 1) & (not machines.ring), AT + "no parameter server"),  # (2e)
        *entries.broken(other, AT + "workers of type {worker_type} on {server}, of another GPU type"),
        *entries.broken(starved, AT + overload, carried=carried, sent=sent),
    ]


def capacity(plan: Plan) -> list[str]:
    """Report each resource that some server lacks in some slot, (2h)."""
    entries, machines = plan.entries, plan.hardware
    events = Rows(entries.names, server=np.tile(entries.server, 2), slot=np.concatenate((entries.start, entries.end)))
    changes, (used,) = events.sums("server", "slot", np.concatenate((entries.takes, -entries.takes)))
    there = machines.capacity[changes.server]
    changes.names = entries.names | {"resource": machines.resources.__getitem__}
    text, lines = "slot {slot}: {held:.12g} {resource} of {server} given out, {most:g} available", []
    for r, (held, most) in enumerate(zip(used.T, there.T, strict=True)):
        which = np.full(held.size, r)
        lines += changes.broken(held > most * (1 + EXCESS), text, held=held, most=most, resource=which)
    return lines


def early(plan: Plan, first: Ints) -> list[str]:
    """Report a job that runs before its slot in `first`, ``(n,)``."""
    runs, first = plan.runs, first[plan.runs.job]
    return runs.broken(runs.start < first, AT + "starts too early, its first possible slot is {first}", first=first)


def several(plan: Plan) -> list[str]:
    """Report a job that has more than one run."""
    jobs = plan.jobs
    return jobs.broken(jobs.runs > 1, "{job}: {runs} runs; a job runs once, without interruption")


def unfinished(plan: Plan) -> list[str]:
    """Report a job whose runs do less than its work, (2f)."""
    jobs = plan.jobs
    return jobs.broken(
        (jobs.runs > 0) & (jobs.done < jobs.work * (1 - SHORTFALL)),
        "{job} does {done:.9g} of its {work:.9g} mini-batches{more}",
        " ({count} jobs fall short)",
    )
