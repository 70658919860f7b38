"""What the checkers of elastic jobs share: well-formed runs, servers, rates, capacity over time, bandwidth of PSs.

Everything is computed again from the instance, in units of its own: seconds per mini-batch, Gbit/s, parts of servers.
Runs may be as late and long as they like: capacity is checked where runs begin and end, never slot by slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from schedgap.harness.verify.proofs.basics import times
from schedgap.harness.verify.rules import LARGEST, SHORTFALL, Range, Rows, refuse, well_formed
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Runs
from schedgap.instances.schema import Instance, PSType, WorkerType

AT = "{job} from slot {start}: "


@dataclass(frozen=True, eq=False)
class Hardware:
    """The ``h`` servers of an instance with ``R`` resources, and what workers and parameter servers (PSs) take of them.

    Parameters
    ----------
    instance, resources
        Where the servers are; names.
    workers, ps, ring
        The types that the indices of a decision mean; whether workers form rings, without PSs and their types.
    room, worker_takes, ps_takes
        ``(groups, R)`` what a server of each group has; ``(M, R)`` and ``(P, R)`` what one of each type takes.
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
        """``(h, R)``."""
        return np.repeat(np.array(self.room, float), [g.count for g in self.instance.cluster.servers], axis=0)


class Plan:
    """Well-formed runs on some hardware, and what follows from them; wrong types, lengths and ranges are refused.

    The first slot is `first`, and `restart` is how many slots without work every run begins with but a job's first.

    A row of `runs` holds slots ``start … end − 1``: beside the fields of a decision, its `total` of workers and of PSs
    (`servers`), the servers that it is on (`hosts`), the `most` workers its job may have, `seconds` that one of them
    takes for a mini-batch (infinite where it cannot run), and mini-batches done (`work`) in all slots but those `lost`
    after an interruption. `entries` has a row per run and server, with job, types, first slot and `end` of the run, and
    ``(e, R)`` what it `takes`; `jobs` one per job: number of its `runs`, mini-batches `done` and `asked`.
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
        told = "run {run}: nothing on server {server}; an entry has workers or parameter servers"
        refuse(entries.broken((entries.workers == 0) & (entries.ps == 0), told))
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
            asked=np.array([job.iterations for job in jobs], float),
        )

    def _work(self, slot_s: float, restart: int) -> None:
        """Find what runs and entries have, take and do."""
        runs, entries, machines, count = self.runs, self.entries, self.hardware, self.runs.job.size
        runs.end = runs.start + runs.slots
        runs.total = np.bincount(entries.run, entries.workers, count).astype(np.int64)
        runs.servers = np.bincount(entries.run, entries.ps, count)
        runs.hosts = np.bincount(entries.run, minlength=count)
        runs.most = np.array([job.chunks for job in machines.instance.jobs])[runs.job]
        runs.seconds = _seconds(machines, runs)
        rate = np.divide(slot_s, runs.seconds, out=np.zeros(count), where=runs.seconds > 0)
        order = np.lexsort((runs.start, runs.job))
        runs.lost = np.zeros(count, np.int64)
        runs.lost[order[1:]] = restart * (np.diff(runs.job[order]) == 0)
        runs.work = np.maximum(runs.slots - runs.lost, 0) * runs.total * rate
        for name in ("job", "start", "end", "total", "worker_type", "ps_type"):
            setattr(entries, name, getattr(runs, name)[entries.run])
        none = np.zeros((1, len(machines.resources)))  # the last row, that of a ring's PS type −1
        ps = np.vstack((np.reshape(machines.ps_takes, (-1, none.size)), none))[entries.ps_type]
        worker = np.array(machines.worker_takes, float)[entries.worker_type]
        entries.takes = entries.workers[:, None] * worker + entries.ps[:, None] * ps


def _seconds(machines: Hardware, runs: Rows) -> Array:
    """Return ``(a,)`` seconds per mini-batch of a worker, (1); rings of N share all but training, (N − 1)/N, (14)."""
    kinds = np.stack((runs.job, runs.worker_type, runs.ps_type), axis=1)
    unique, where = np.unique(kinds, axis=0, return_inverse=True)
    workers, servers = ([kind.model_dump() for kind in kinds] for kinds in (machines.workers, machines.ps))
    told = {"rates", "distributed"}
    jobs = {j: machines.instance.jobs[j].model_dump(include=told) for j in set(unique[:, 0].tolist())}
    parts = [times(jobs[j], workers[m], None if machines.ring else servers[p]) for j, m, p in unique.tolist()]
    compute, update, transfer = np.array(parts, float).reshape(-1, 3)[where.ravel()].T
    share = (runs.total - 1) / np.maximum(runs.total, 1) if machines.ring else 1.0
    return np.asarray(compute + share * (update + np.where(runs.hosts == 1, 0.0, transfer)))


# ---------------------------------------------------------------- rules of all problems


def placements(plan: Plan) -> list[str]:
    """Return what is wrong with workers and PSs of runs; Zhou's (2b) and (2c) hold by the form of a decision."""
    machines, runs, entries = plan.hardware, plan.runs, plan.entries
    groups = machines.instance.cluster.servers
    wanted = np.array([w.gpu_type or "" for w in machines.workers])[entries.worker_type]
    there = np.repeat([g.gpu_type for g in groups], [g.count for g in groups])[entries.server]
    speed = np.array([w.bandwidth_gbps for w in machines.workers])[entries.worker_type]
    sent = (entries.total - entries.workers) * speed
    carried = entries.ps * np.array([*(p.bandwidth_gbps for p in machines.ps), 0.0])[entries.ps_type]
    starved = (entries.ps > 0) & (sent > carried * (1 + SHORTFALL))
    other = (entries.workers > 0) & (wanted != "") & (wanted != there)
    told = "{ps} parameter servers on {server} carry {carried:.9g} Gbit/s, workers elsewhere send {sent:.9g} (2i)"
    return [
        *runs.broken(runs.total < 1, AT + "no workers"),
        *runs.broken(runs.total > runs.most, AT + "{total} workers, at most {most} (one per chunk)"),  # (2g)
        *runs.broken(~np.isfinite(runs.seconds), AT + "its workers of type {worker_type} cannot train it"),
        *runs.broken((runs.servers < 1) & (not machines.ring), AT + "no parameter server"),  # (2e)
        *entries.broken(other, AT + "workers of type {worker_type} on {server}, of another kind"),
        *entries.broken(starved, AT + told, carried=carried, sent=sent),
    ]


def capacity(plan: Plan) -> list[str]:
    """Return a line for each resource of which some server has too little in some slot, (2h)."""
    entries, machines = plan.entries, plan.hardware
    events = Rows(entries.names, server=np.tile(entries.server, 2), slot=np.concatenate((entries.start, entries.end)))
    changes, (given,) = events.sums("server", "slot", np.concatenate((entries.takes, -entries.takes)))
    there = machines.capacity[changes.server]
    changes.names = entries.names | {"resource": machines.resources.__getitem__}
    told, lines = "slot {slot}: {held:.9g} {resource} of {server} given out, {most:g} available", []
    for r, (held, most) in enumerate(zip(given.T, there.T, strict=True)):
        which = np.full(held.size, r)
        lines += changes.broken(held > most * (1 + SHORTFALL), told, held=held, most=most, resource=which)
    return lines


def early(plan: Plan, first: Ints) -> list[str]:
    """Return a line where a job runs before ``(n,)`` slots `first`."""
    runs, first = plan.runs, first[plan.runs.job]
    return runs.broken(runs.start < first, AT + "starts before it may, in slot {first}", first=first)


def several(plan: Plan) -> list[str]:
    """Return a line where a job has more than one run."""
    jobs = plan.jobs
    return jobs.broken(jobs.runs > 1, "{job}: {runs} runs; a job runs once, without interruption")


def unfinished(plan: Plan) -> list[str]:
    """Return a line where the runs of a job do less than its work, (2f)."""
    jobs = plan.jobs
    return jobs.broken(
        (jobs.runs > 0) & (jobs.done < jobs.asked * (1 - SHORTFALL)),
        "{job} does {done:.9g} of its {asked:.9g} mini-batches{more}",
        " ({count} jobs fall short)",
    )
