"""What the checkers of elastic jobs share: well-formed runs, servers, rates, capacity over time, bandwidth of PSs.

Everything is computed again from the instance, in units of its own: seconds per mini-batch, Gbit/s, parts of servers.
Runs may be as late and long as they like: capacity is checked where runs begin and end, never slot by slot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.instances.elastic import Runs
from schedgap.instances.schema import DistributedProfile, Instance, Job, PSType, WorkerType

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SHORTFALL = 1e-8
"""Relative work that may be missing, capacity or bandwidth that may be exceeded: ten times what views round."""

LARGEST = 2**40
"""Slots and numbers of workers are below that, so that sums of them stay exact."""

RUN_FIELDS = ("job", "start", "slots", "worker_type", "ps_type")
ENTRY_FIELDS = ("run", "server", "workers", "ps")


@dataclass(frozen=True, eq=False)
class Hardware:
    """``h`` servers with ``R`` resources, and what workers and parameter servers (PSs) take of them.

    Attributes
    ----------
    servers, resources
        Names.
    capacity
        ``(h, R)``.
    workers, ps
        The types that the indices of a decision mean; no PS types in a ring.
    worker_takes, ps_takes
        ``(M, R)`` and ``(P, R)``.
    able
        ``(M, h)`` whether workers of a type can run on a server (its GPU type).
    ring
        Whether workers form rings, without parameter servers.
    """

    servers: Sequence[str]
    resources: Sequence[str]
    capacity: Array
    workers: Sequence[WorkerType]
    ps: Sequence[PSType]
    worker_takes: Array
    ps_takes: Array
    able: Bools
    ring: bool


def expanded(instance: Instance) -> tuple[list[str], list[int]]:
    """Return the names of the servers, and the index of each one's group."""
    names, group = [], []
    for g, servers in enumerate(instance.cluster.servers):
        for i in range(servers.count):
            names.append(servers.name if servers.count == 1 else f"{servers.name}.{i}")
            group.append(g)
    return names, group


def suits(instance: Instance, workers: Sequence[WorkerType], group: Sequence[int]) -> Bools:
    """Return ``(M, h)`` which workers can run on servers of these groups."""
    types = [servers.gpu_type for servers in instance.cluster.servers]
    fits = [[not worker.gpu_type or worker.gpu_type == types[g] for g in group] for worker in workers]
    return np.array(fits, bool).reshape(len(workers), len(group))


@dataclass(frozen=True, eq=False)
class Plan:
    """Well-formed runs (``a``), where they are (``e`` entries, by run), and what follows.

    Attributes
    ----------
    job, start, end, worker_type, ps_type
        ``(a,)``; a run holds slots ``start … end − 1``.
    run, server, workers, ps
        ``(e,)``.
    total, hosts
        ``(a,)`` workers of a run, and servers that it is on.
    seconds
        ``(a,)`` that one worker takes for a mini-batch, infinite where it cannot run.
    work
        ``(a,)`` mini-batches that a run does.
    """

    job: Ints
    start: Ints
    end: Ints
    worker_type: Ints
    ps_type: Ints
    run: Ints
    server: Ints
    workers: Ints
    ps: Ints
    total: Ints
    hosts: Ints
    seconds: Array
    work: Array

    @property
    def slots(self) -> Ints:
        """``(a,)`` number of slots."""
        return self.end - self.start


# ---------------------------------------------------------------- what is malformed


def malformed(decision: Runs, hardware: Hardware, jobs: int, first: int) -> str | None:
    """Say what is wrong with types, lengths, ranges and entries, if anything is.

    Parameters
    ----------
    decision
        Runs of jobs, and where they are.
    hardware
        Servers and types.
    jobs
        Number of jobs.
    first
        The first slot.
    """
    columns = {name: np.asarray(getattr(decision, name)) for name in (*RUN_FIELDS, *ENTRY_FIELDS)}
    for names in (RUN_FIELDS, ENTRY_FIELDS):
        if wrong := whole_numbers({name: columns[name] for name in names}):
            return wrong
    ranges = {
        "job": (0, jobs),
        "start": (first, LARGEST),
        "slots": (1, LARGEST),
        "worker_type": (0, len(hardware.workers)),
        "ps_type": (-1, 0) if hardware.ring else (0, len(hardware.ps)),
        "run": (0, columns["job"].size),
        "server": (0, len(hardware.servers)),
        "workers": (0, LARGEST),
        "ps": (0, 1) if hardware.ring else (0, LARGEST),
    }
    for name, (least, beyond) in ranges.items():
        if wrong := outside(name, columns[name], least, beyond):
            return wrong
    return _odd_entry(*(columns[name].astype(np.int64) for name in ENTRY_FIELDS))


def whole_numbers(columns: dict[str, NDArray[Any]]) -> str | None:
    """Say which array is no list of whole numbers, or not as long as the first."""
    first, length = next((name, column.size) for name, column in columns.items())
    for name, column in columns.items():
        if column.ndim != 1 or column.dtype.kind not in "iu":
            return f"{name}: a list of whole numbers, not {column.dtype} of shape {column.shape}"
        if column.size != length:
            return f"{name}: {column.size} entries, {first} has {length}"
    return None


def outside(name: str, column: NDArray[Any], least: int, beyond: int) -> str | None:
    """Say which number is not one of ``least … beyond − 1``."""
    if not column.size or least <= int(column.min()) <= int(column.max()) < beyond:
        return None
    lowest, highest = int(column.min()), int(column.max())
    number = lowest if lowest < least else highest
    if beyond <= least:
        return f"{name} {number}: there are none"
    right = f"it is {least}" if beyond == least + 1 else f"they go from {least} to {beyond - 1}"
    return f"{name} {number}: {right}"


def _odd_entry(run: Ints, server: Ints, workers: Ints, ps: Ints) -> str | None:
    order = np.lexsort((server, run))
    again = np.flatnonzero((np.diff(run[order]) == 0) & (np.diff(server[order]) == 0))
    if again.size:
        i = int(order[again[0]])
        return f"run {run[i]}: server {server[i]} occurs twice"
    empty = np.flatnonzero((workers == 0) & (ps == 0))
    if empty.size:
        i = int(empty[0])
        return f"run {run[i]}: nothing on server {server[i]}; an entry has workers or parameter servers"
    return None


# ---------------------------------------------------------------- reading


def read(decision: Runs, hardware: Hardware, instance: Instance, slot_s: float) -> Plan:
    """Return well-formed runs with their rates."""
    of_runs = [np.asarray(getattr(decision, name)).astype(np.int64) for name in RUN_FIELDS]
    entries = [np.asarray(getattr(decision, name)).astype(np.int64) for name in ENTRY_FIELDS]
    order = np.lexsort((entries[1], entries[0]))
    run, server, workers, ps = (column[order] for column in entries)
    job, start, slots, worker_type, ps_type = of_runs
    total = np.zeros(job.size, np.int64)
    np.add.at(total, run, workers)
    hosts = np.bincount(run, minlength=job.size)
    seconds = _seconds(instance, hardware, (job, worker_type, ps_type), total, hosts == 1)
    rate = np.divide(slot_s, seconds, out=np.zeros(job.size), where=seconds > 0)
    work = np.asarray(slots * total * rate, float)
    return Plan(job, start, start + slots, worker_type, ps_type, run, server, workers, ps, total, hosts, seconds, work)


def _seconds(
    instance: Instance, hardware: Hardware, kinds: tuple[Ints, Ints, Ints], total: Ints, together: Bools
) -> Array:
    """Return ``(a,)`` seconds per mini-batch of a worker, (1); rings of N share all but training, (N − 1)/N, (14)."""
    rows = np.stack(kinds, axis=1)
    unique, where = np.unique(rows, axis=0, return_inverse=True)
    parts = [
        times(instance.jobs[j], hardware.workers[m], None if hardware.ring else hardware.ps[p])
        for j, m, p in unique.tolist()
    ]
    compute, update, transfer = np.array(parts, float).reshape(-1, 3)[where.ravel()].T
    share = (total - 1) / np.maximum(total, 1) if hardware.ring else 1.0
    return np.asarray(compute + share * (update + np.where(together, 0.0, transfer)))


def times(job: Job, worker: WorkerType, server: PSType | None) -> tuple[float, float, float]:
    """Return the seconds of a mini-batch, an update, and a transfer of gradients both ways; no PS type in a ring."""
    profile = job.distributed or DistributedProfile()
    if profile.colocated_rate_per_s:
        alone = 1 / profile.colocated_rate_per_s
        spread = alone if profile.spread_rate_per_s is None else 1 / profile.spread_rate_per_s
        return alone, 0.0, max(spread - alone, 0.0)
    gigabits = 8 * profile.gradient_mb / 1000
    transfer = 2 * gigabits / worker.bandwidth_gbps
    if server is not None:
        update = profile.update_ms.get(server.name, 0.0)
    elif profile.ring_update_ms is not None:
        update = profile.ring_update_ms
    else:
        update = min(profile.update_ms.values(), default=0.0)
    if worker.name in profile.minibatch_ms:
        return profile.minibatch_ms[worker.name] / 1000, update / 1000, transfer
    rate = worker.gpus * job.rates.get(worker.gpu_type, 0.0) if worker.gpu_type else 0.0
    return 1 / rate if rate > 0 else math.inf, update / 1000, transfer


# ---------------------------------------------------------------- rules of all problems


def placements(plan: Plan, hardware: Hardware, instance: Instance) -> Iterator[str]:
    """Yield a line for runs without workers or PSs, with too many workers, where they cannot be, or short of bandwidth.

    Zhou's (2b) and (2c) hold by the form of a decision, (2e), (2g) and (2i) are checked here.
    """
    jobs = instance.jobs
    most = np.array([job.chunks for job in jobs])[plan.job]
    servers = np.zeros(plan.job.size, np.int64)
    np.add.at(servers, plan.run, plan.ps)
    rules = [
        (plan.total < 1, "no workers"),
        (plan.total > most, "{workers} workers, at most {most} (one per chunk)"),
        (~np.isfinite(plan.seconds), "its workers of type {type} cannot train it"),
    ]
    if not hardware.ring:
        rules.append((servers < 1, "no parameter server"))
    for broken, text in rules:
        if broken.any():
            i = int(broken.argmax())
            name = hardware.workers[plan.worker_type[i]].name
            yield f"{at(plan, i, instance)}: {text.format(workers=plan.total[i], most=most[i], type=name)}"
    unable = (plan.workers > 0) & ~hardware.able[plan.worker_type[plan.run], plan.server]
    if unable.any():
        e = int(unable.argmax())
        i = int(plan.run[e])
        name = hardware.workers[plan.worker_type[i]].name
        yield f"{at(plan, i, instance)}: workers of type {name} on {hardware.servers[plan.server[e]]}, of another kind"
    if not hardware.ring:
        yield from _bandwidth(plan, hardware, instance)


def _bandwidth(plan: Plan, hardware: Hardware, instance: Instance) -> Iterator[str]:
    """Yield a line where PSs of a server have less bandwidth than the run's workers on other servers, (2i)."""
    worker = np.array([w.bandwidth_gbps for w in hardware.workers])[plan.worker_type[plan.run]]
    server = np.array([p.bandwidth_gbps for p in hardware.ps])[plan.ps_type[plan.run]]
    asked = (plan.total[plan.run] - plan.workers) * worker
    short = (plan.ps > 0) & (asked > plan.ps * server * (1 + SHORTFALL))
    if short.any():
        e = int(short.argmax())
        yield (
            f"{at(plan, int(plan.run[e]), instance)}: {plan.ps[e]} parameter servers on"
            f" {hardware.servers[plan.server[e]]} carry {plan.ps[e] * server[e]:.9g} Gbit/s,"
            f" workers elsewhere send {asked[e]:.9g} (2i)"
        )


def uses(plan: Plan, hardware: Hardware) -> Array:
    """Return ``(e, R)`` what each entry takes of its server."""
    taken = plan.workers[:, None] * hardware.worker_takes[plan.worker_type[plan.run]]
    if not hardware.ring:
        taken = taken + plan.ps[:, None] * hardware.ps_takes[plan.ps_type[plan.run]]
    return np.asarray(taken)


def capacity(plan: Plan, hardware: Hardware) -> Iterator[str]:
    """Yield a line for each resource of which some server has too little in some slot, (2h)."""
    taken = uses(plan, hardware)
    server = np.concatenate([plan.server, plan.server])
    slot = np.concatenate([plan.start[plan.run], plan.end[plan.run]])
    change = np.concatenate([taken, -taken])
    order = np.lexsort((slot, server))
    server, slot, change = server[order], slot[order], change[order]
    first = np.flatnonzero((np.diff(server, prepend=-1) != 0) | (np.diff(slot, prepend=-1) != 0))
    if not first.size:
        return
    server, slot, change = server[first], slot[first], np.add.reduceat(change, first)
    used = np.cumsum(change, axis=0)
    begins = np.flatnonzero(np.diff(server, prepend=-1) != 0)
    before = np.concatenate([np.zeros((1, used.shape[1])), used])[begins]
    used -= np.repeat(before, np.diff(begins, append=server.size), axis=0)
    over = used > hardware.capacity[server] * (1 + SHORTFALL)
    for r in np.flatnonzero(over.any(axis=0)).tolist():
        i = int(over[:, r].argmax())
        h = int(server[i])
        yield (
            f"slot {slot[i]}: {used[i, r]:.9g} {hardware.resources[r]} of {hardware.servers[h]} given out,"
            f" {hardware.capacity[h, r]:g} available"
        )


def early(plan: Plan, first: Ints, instance: Instance) -> Iterator[str]:
    """Yield a line where a job runs before ``(n,)`` slots `first`."""
    late = first[plan.job] > plan.start
    if late.any():
        i = int(late.argmax())
        yield f"{at(plan, i, instance)}: starts before it may, in slot {first[plan.job[i]]}"


def several(plan: Plan, instance: Instance) -> Iterator[str]:
    """Yield a line where a job has more than one run."""
    runs = np.bincount(plan.job, minlength=len(instance.jobs))
    if runs.max(initial=0) > 1:
        j = int(runs.argmax())
        yield f"{instance.jobs[j].id}: {runs[j]} runs; a job runs once, without interruption"


def absent(plan: Plan, instance: Instance) -> Iterator[str]:
    """Yield a line where jobs do not run."""
    left = np.setdiff1d(np.arange(len(instance.jobs)), plan.job)
    if left.size:
        more = f" (and {left.size - 1} more)" if left.size > 1 else ""
        yield f"{instance.jobs[int(left[0])].id} does not run{more}, but every job completes here"


def unfinished(plan: Plan, instance: Instance) -> Iterator[str]:
    """Yield a line where the runs of a job do less than its work, (2f)."""
    size = len(instance.jobs)
    asked = np.array([job.iterations for job in instance.jobs], float)
    done = np.bincount(plan.job, plan.work, size)
    there = np.bincount(plan.job, minlength=size) > 0
    short = np.flatnonzero(there & (done < asked * (1 - SHORTFALL)))
    if short.size:
        j = int(short[0])
        more = f" ({short.size} jobs fall short)" if short.size > 1 else ""
        yield f"{instance.jobs[j].id} does {done[j]:.9g} of its {asked[j]:.9g} mini-batches{more}"


def at(plan: Plan, i: int, instance: Instance) -> str:
    """Name a run."""
    return f"{instance.jobs[int(plan.job[i])].id} from slot {plan.start[i]}"
