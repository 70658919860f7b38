"""Hadar (Sultana et al.: *Resource Heterogeneity-Aware and Utilization-Enhanced Scheduling for DL Clusters*).

Gangs run in slots of ``L`` seconds on GPUs of several types; a gang advances at the rate of the slowest type it holds.
A job's utility is ``U_j`` of the time from the start of its arrival slot to the end of its last slot. Slots are
numbered from 0 here: a job that arrives in slot ``a`` and whose last slot is ``f`` takes ``f − a + 1`` slots.

Rounding: arrivals up to the next slot, work in full; a deadline is met by a slot that ends at or before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from schedgap.instances.arrays import ROUNDING, Array, Decision, Ints, members
from schedgap.instances.errors import InstanceError, NotApplicableError
from schedgap.instances.parameters import Parameter, shown
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted
from schedgap.instances.utility import Utilities, utilities
from schedgap.instances.workload import GangView, Workload, hopeless_note, servers, slots_from, workload

SLOT_LENGTHS_S = (360.0, 900.0, 1800.0, 3600.0, 4 * 3600.0, 24 * 3600.0)
"""Slot lengths for an instance without horizon; the first that needs at most :data:`SLOTS` slots is used."""

SLOTS = 2000


@dataclass(frozen=True, eq=False, kw_only=True)
class HadarView(GangView):
    """Slots, jobs and GPUs. ``n`` jobs, ``k`` GPU types, ``T`` slots.

    Attributes
    ----------
    utilities
        Utility functions, by seconds since the start of the arrival slot.
    capacity
        ``(k,)`` GPUs of each type.
    """

    slots: int
    utilities: Utilities
    capacity: Ints

    @property
    def gpus(self) -> str:
        """GPUs of each type in words."""
        return ", ".join(f"{c} {name}" for name, c in zip(self.workload.gpu_types, self.capacity, strict=True))

    @cached_property
    def progress(self) -> Array:
        """``(n, k)`` iterations of the whole gang in one slot, by its slowest type."""
        return np.asarray(self.workload.gpus[:, None] * self.workload.rates * self.slot_s)

    def rounds(self, jobs: Ints, remaining: Array) -> Array:
        """Return ``(len(jobs), k)`` slots that gangs need for remaining work, by slowest type; ``inf`` for never."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.maximum(np.ceil(remaining[:, None] / self.progress[jobs] * (1 - ROUNDING)), 1.0))

    def utility(self, job: int) -> Array:
        """Return ``(T,)`` utilities of `job` by its last slot; 0 before its arrival."""
        ends = np.arange(1, self.slots - self.arrival[job] + 1)
        worth = np.zeros(self.slots)
        worth[self.arrival[job] :] = self.utilities.value(job, ends * self.slot_s)
        return worth


@dataclass(frozen=True, eq=False, repr=False)
class HadarSchedule(Decision):
    """Allocation of GPUs on servers to jobs by slot: four arrays of equal length, in any order.

    A job that appears completes: its last slot is its finish slot. A rejected job does not appear.

    Attributes
    ----------
    job, slot, server, gpus
        ``(entries,)`` indices and GPUs (at least 1); each triple of job, slot and server occurs at most once.
    """

    job: Ints
    slot: Ints
    server: Ints
    gpus: Ints

    @staticmethod
    def of(entries: Ints) -> HadarSchedule:
        """Return the schedule of an ``(entries, 4)`` table of job, slot, server, GPUs."""
        table = np.asarray(entries, np.int64).reshape(-1, 4)
        return HadarSchedule(table[:, 0], table[:, 1], table[:, 2], table[:, 3])


def placed(view: HadarView, job: Ints, slot: Ints, gpu_type: Ints, gpus: Ints) -> HadarSchedule:
    """Return a schedule with the given GPUs by type placed on servers, which are filled in order.

    If spreading costs nothing, as in P1, capacity by type suffices for a placement. Within a slot and type, entries are
    laid one after another on the line of that type's GPUs, which is cut at the ends of servers.

    Parameters
    ----------
    view
        Jobs and servers.
    job, slot, gpu_type, gpus
        ``(entries,)``; at most ``capacity`` GPUs of a type in a slot, each triple at most once.

    Raises
    ------
    ValueError
        If a slot uses more GPUs of a type than there are.
    """
    order = np.lexsort((job, gpu_type, slot))
    job, slot, gpu_type, gpus = job[order], slot[order], gpu_type[order], gpus[order]
    total = np.cumsum(gpus)
    cell = slot * len(view.capacity) + gpu_type
    new = np.flatnonzero(np.diff(cell, prepend=-1))
    before = np.repeat(total[new] - gpus[new], np.diff(new, append=len(cell)))
    first, last = total - gpus - before, total - before
    if np.any(last > view.capacity[gpu_type]):
        raise ValueError("more GPUs of a type in a slot than there are")
    rows = [np.zeros((0, 4), np.int64)]
    for r, hosts in enumerate(view.servers.with_gpus(len(view.capacity))):
        ends = np.cumsum(view.servers.gpus[hosts])
        mine = gpu_type == r
        a, b = first[mine], last[mine]
        lo, hi = np.searchsorted(ends, a, "right"), np.searchsorted(ends, b, "left")
        which, piece = members(hi - lo + 1)
        host = lo[which] + piece
        begin = np.maximum(a[which], ends[host] - view.servers.gpus[hosts[host]])
        count = np.minimum(b[which], ends[host]) - begin
        rows.append(np.column_stack((job[mine][which], slot[mine][which], hosts[host], count)))
    return HadarSchedule.of(np.concatenate(rows))


def view(instance: Instance) -> HadarView:
    """Return Hadar's view of `instance`.

    An instance without horizon gets a slot length of :data:`SLOT_LENGTHS_S` and a horizon that suffices for first come,
    first served. It raises `NotApplicableError` if there are no jobs, or jobs without rates.
    """
    try:
        jobs, hosts = workload(instance), servers(instance)
    except InstanceError as error:
        raise NotApplicableError(f"Hadar: {error}") from error
    capacity = np.bincount(hosts.gpu_type, hosts.gpus, len(jobs.gpu_types)).astype(np.int64)
    with np.errstate(over="ignore", divide="ignore"):  # infinity is after any horizon, too
        if instance.horizon:
            slot_s, slots = instance.horizon.slot_s, instance.horizon.slots
        else:  # long enough for first come, first served
            speed = np.array([_best_rate(*row, capacity) for row in zip(jobs.gpus, jobs.rates, strict=True)])
            alone_s = np.divide(jobs.work, speed, out=np.zeros(jobs.size), where=speed > 0)
            # Side by side, gangs can leave up to half of the GPUs idle; the longest job may start last.
            busy_s = 2 * float((alone_s * jobs.gpus).sum()) / float(capacity.sum()) + float(alone_s.max(initial=0.0))
            end_s = float(jobs.arrival_s.max()) + busy_s
            fitting = (length for length in SLOT_LENGTHS_S if end_s / length <= SLOTS)
            slot_s = next(fitting, SLOT_LENGTHS_S[-1])
            # Rounding: gangs that never fit side by side run one after another, each in whole slots.
            slots = math.ceil(min(end_s / slot_s, 1e9)) + int(math.sqrt(jobs.size)) + 2
        arrival = slots_from(jobs.arrival_s, slot_s)
        return HadarView(
            instance=instance,
            workload=jobs,
            servers=hosts,
            slot_s=slot_s,
            slots=slots,
            arrival=arrival,
            utilities=utilities(instance.jobs, np.asarray(arrival * slot_s, float), jobs.rates.max(axis=1)),
            capacity=capacity,
            hopeless=tuple(_hopeless(jobs, capacity, slot_s, slots - arrival)),
        )


def _best_rate(gpus: int, rates: Array, capacity: Ints) -> float:
    """Return the iterations per second of a gang alone on the cluster, on its fastest GPUs; 0 if it does not fit."""
    order = np.argsort(-rates, kind="stable")
    enough = np.cumsum(np.where(rates[order] > 0, capacity[order], 0)) >= gpus
    return float(gpus * rates[order[enough.argmax()]]) if enough.any() else 0.0


def _hopeless(jobs: Workload, capacity: Ints, slot_s: float, left: Ints) -> Iterator[str | None]:
    """Yield the reason why a job can complete in no schedule, or ``None``, for each job.

    `left` has the number of slots from the arrival of each job to the horizon.
    """
    for name, gpus, rates, work, slots in zip(jobs.ids, jobs.gpus, jobs.rates, jobs.work, left, strict=True):
        rate = _best_rate(gpus, rates, capacity)
        if rate <= 0:
            yield f"{name}: its gang of {gpus} does not fit on the GPUs with a positive rate"
        elif work > rate * slot_s * max(slots, 0) * (1 + ROUNDING):
            alone = f"{name}: needs {math.ceil(min(work / (rate * slot_s), 1e15))} slots alone"
            yield f"{alone}, but only {max(slots, 0)} are left from its arrival to the horizon"
        else:
            yield None


def describe(v: HadarView) -> str:
    """Return the caption of a comparison: slots, GPUs, and the jobs that can never complete."""
    derived = "" if v.instance.horizon else " (derived)"
    slots = f"{v.slots} slots of {v.slot_s:g} s{derived}{hopeless_note(v.hopeless, 'complete')}"
    return f"{counted(v.size, 'job')} on {v.gpus}, {slots}; objective: total utility of completed jobs"


BETA = Parameter(
    "beta",
    "utility that a gang pays per slot for each server beyond its first: communication, which line 29 leaves open",
    least=0,
    changes=lambda beta: {"problem": f"hadar.utility?beta={shown(beta)}"},
)
"""Cost of communication, in utility per slot."""


def communication(problem: str) -> float:
    """Return the cost of communication in a problem's id, 0 if it has none."""
    return float(problem.partition("?beta=")[2] or 0)


_largest = partial(Problem, sense="max", unit="utility")
FORKED = _largest(
    "hadar.forked", "largest total utility with jobs as several copies at once", allows="jobs may run as several copies"
)
UTILITY = _largest(
    "hadar.utility",
    "largest total utility, jobs may be rejected",
    restricts=FORKED.id,
    cost=BETA,
    requires="one copy per job",
    allows="jobs may be rejected",
)
COMPLETE = _largest(
    "hadar.complete",
    "largest total utility with every job completed",
    restricts=UTILITY.id,
    requires="completing every job",
)

PAPERS.register(
    PaperSpec(
        id="hadar",
        title="Sultana et al.: Resource Heterogeneity-Aware and Utilization-Enhanced Scheduling for DL Clusters",
        view=view,
        problems=(FORKED, UTILITY, COMPLETE),
        decision=HadarSchedule,
        describe=describe,
        mixed=True,
    )
)
