"""Zhou et al.: *Online Scheduling Algorithm for Heterogeneous Distributed Machine Learning Jobs*.

For each job, a schedule chooses a worker type, a parameter-server (PS) type, a number of workers and a start; jobs run
without interruption, with parameter servers (``ps``) or as rings (``ra``). As in the paper, slots are numbered from 1,
slot t begins at time t, and a job in slots ``t⁻ … t⁻ + d − 1`` completes at ``c = t⁻ + d``. Hence no job completes
before time 2, which Lemma 1 needs.

``T`` is the paper's timespan, in which jobs arrive and on which its prices depend; schedules may continue after it.
A slot is an hour, unless the instance's slots are longer or its horizon is shorter than :data:`SHORT_S` seconds.
Rounding: arrivals up to the next slot, work in full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from schedgap.instances.arrays import ROUNDING, SLACK, Array, Bools, Ints, nothing
from schedgap.instances.errors import InstanceError, NotApplicableError
from schedgap.instances.moldable import (
    Ledger,
    Machines,
    Moldable,
    RunOptions,
    Runs,
    machines_of,
    options_of,
    printed_rings,
)
from schedgap.instances.moldable.machines import able, fitting, takes
from schedgap.instances.moldable.options import rates
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted
from schedgap.instances.workload import MAX_SERVERS, slots_from

HOUR_S = 3600.0
SHORT_S = 24 * HOUR_S

RESOURCES = ("GPU", "CPU", "memory", "bandwidth")
ARCHITECTURES = {"ps": "parameter servers", "ra": "Ring-AllReduce"}

RESTARTS = {f"restarts_take_{slots}_slots": slots for slots in range(1, 25)}
"""Claims of preemptive methods: after an interruption, a job's next run begins with slots that do no work."""

FRACTIONS = 11
"""Denominator of the loads of servers in ``zhou.*.cost`` (see :attr:`Architecture.loads`)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Architecture(Moldable):
    """The jobs and machines under one architecture, parameter servers or rings. For rings, machines have no PS types.

    Attributes
    ----------
    id
        ``"ps"`` or ``"ra"``.
    weight
        ``(n,)``.
    given_worth
        F, if the instance states it.
    given_deadline
        τ, if the instance states it.
    """

    id: str
    weight: Array
    given_worth: float | None
    given_deadline: int | None

    @cached_property
    def looped_options(self) -> RunOptions:
        """Options in the order of the loops of Algorithms 3 to 7, without those that an earlier option dominates."""
        return options_of(self.machines, self.work, self.most, self.rates, loops=True)

    @cached_property
    def printed_options(self) -> RunOptions:
        """Options for Algorithms 4 to 7 as printed; with PSs, those that are undominated with the exact placement.

        Algorithm 4 as printed tries all types and durations, up to hundreds of times as many. Its placement depends on
        the order of the servers' costs in a window, so that a longer run with as many workers may be cheaper. Such runs
        are missed here, which is rare.
        """
        rings = self.id == "ra"
        return printed_rings(self.options, self.work, self.most, self.rates) if rings else self.options

    @cached_property
    def printed_looped_options(self) -> RunOptions:
        """Options of Algorithms 4 to 7 as printed, in the order of the loops."""
        options = self.looped_options
        return printed_rings(options, self.work, self.most, self.rates, loops=True) if self.id == "ra" else options

    @property
    def reason(self) -> str | None:
        """Reason why some job cannot run, or ``None``; in the paper's problems, every job must complete."""
        if self.id == "ps" and not self.machines.ps_types:
            return "the instance has no PS types, which parameter servers need"
        stuck = np.flatnonzero(np.diff(self.options.first) == 0)
        if not stuck.size:
            return None
        more = f" (and {len(stuck) - 1} more)" if len(stuck) > 1 else ""
        what = "worker with a parameter server" if self.id == "ps" else "worker"
        return f"{self.ids[stuck[0]]}{more} cannot run: no server has room for a {what} that it can use"

    def consumption(self, price: Array) -> Array:
        """Return ``(n,)`` least cost of a schedule of each job at prices that are constant over time.

        Parameters
        ----------
        price
            ``(classes, R)`` per unit and slot.
        """
        o = self.options
        one_slot = RunOptions(o.first, np.ones_like(o.slots), o.worker_type, o.ps_type, o.together, o.workers)
        ledger = Ledger(self.classes, one_slot, 1, constant=True)
        ledger.post(price[:, :, None])
        least = np.full(self.size, np.inf)
        starts = np.flatnonzero((np.diff(o.job, prepend=-1) != 0) | (np.diff(o.slots, prepend=-1) != 0))
        for a, b in zip(starts.tolist(), [*starts[1:].tolist(), len(o.slots)], strict=True):
            job = int(o.job[a])
            if run := ledger.find(job, 0, limit=least[job] / o.slots[a], among=slice(a, b)):
                least[job] = run.cost * o.slots[a]
        return least

    @cached_property
    def relative_consumption(self) -> Array:
        """``(n,)`` least consumption of each job, in units of a server's whole capacity of a resource."""
        capacity = self.classes.capacity
        return self.consumption(np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0))

    @cached_property
    def least_consumption(self) -> Array:
        """``(n,)`` least Σ_t Σ_h Σ_r f of each job's schedules, in GPUs, CPUs, gigabytes and Gbit/s times slots."""
        return self.consumption(np.ones_like(self.classes.capacity))

    @cached_property
    def unit_worth(self) -> float:
        """The constant F of (11): the instance's or, by default, the largest ratio of a weight to what a job consumes.

        Of all schedules of a job, the one that consumes least counts.
        """
        if self.given_worth is not None:
            return self.given_worth
        return max(float((self.weight / self.least_consumption).max()), 1e-12)

    @cached_property
    def price_base(self) -> float:
        """λ = 2·T·H·R·F + 1 of the prices (11)."""
        return 2.0 * self.slots * self.machines.size * len(self.machines.resources) * self.unit_worth + 1.0

    def believed(self, f: float) -> Architecture:
        """Return the architecture of somebody who takes F for this multiple of what it is, and λ − 1 with it."""
        return self if f == 1.0 else replace(self, given_worth=f * self.unit_worth)

    @property
    def gamma(self) -> float:
        """2 log λ, Theorem 3's ratio of A_maxweight; logarithms are to base 2."""
        return 2 * math.log2(self.price_base)

    @property
    def alpha(self) -> int:
        """α of Theorem 5, from all weights in advance."""
        return self.alpha_of(np.arange(self.size))

    def alpha_of(self, jobs: Ints, gamma: float | None = None) -> int:
        """Return α by inequality (6) for these jobs, with ``w_min`` over all jobs; weights of 0 are ignored.

        γ is that of Theorem 3 by default.
        """
        positive = self.weight > 0
        if not positive[jobs].any():
            return 1
        doublings = math.log2(float(self.weight[jobs].sum()) / float(self.weight[positive].min()))
        # log γ − log(γ − 1), which vanishes for large γ; γ ≤ 1 needs one window (λ ≤ √2).
        gamma = self.gamma if gamma is None else gamma
        step = math.log2(gamma / (gamma - 1)) if gamma > 1 else math.inf
        return math.floor(doublings / step) + 1

    @cached_property
    def assumption_1(self) -> Array:
        """``(n,)`` whether each job's weight is at least the consumption of its thriftiest schedule.

        The paper assumes it for all schedules of a job: see :attr:`meets_assumptions`.
        """
        return np.asarray(self.weight >= self.least_consumption)

    @cached_property
    def assumption_2(self) -> Array:
        """``(n,)`` whether some schedule of each job takes at most 1/log λ of every server (one worker each).

        The paper assumes it for all schedules of a job: see :attr:`meets_assumptions`.
        """
        share = 1 / max(math.log2(self.price_base), 1e-12)
        m, o = self.classes, self.options
        room = share * m.capacity * (1 + SLACK)
        worker = (m.able & np.all(m.worker[:, None, :] <= room, axis=2)).any(axis=1)
        server = np.all(m.ps[:, None, :] <= room, axis=2).any(axis=1)
        small = worker[o.worker_type] & np.append(server, True)[o.ps_type]
        return np.asarray(np.bincount(o.job, small, self.size) > 0)

    @cached_property
    def meets_assumptions(self) -> Array:
        """``(n,)`` whether both assumptions hold for all schedules and placements among which A_maxweight chooses.

        This treats all workers of an option, and PSs for all of them, as if they were on one server, the smallest that
        has room for one. A job that weighs more than F times what it consumes, where the instance states F, does not
        meet them.
        """
        m, o = self.classes, self.options
        taken = o.workers * m.worker.sum(axis=1)[o.worker_type]
        part = o.workers[:, None] * _largest_part(m.worker, m.capacity, m.room > 0)[o.worker_type]
        if self.id == "ps":
            ratio = m.worker_bandwidth[o.worker_type] / m.ps_bandwidth[o.ps_type] * (1 - SLACK)
            servers = np.where(o.together, 1, np.maximum(np.ceil(o.workers * ratio), 1))
            hosts = np.array([fitting(m.capacity, need) > 0 for need in m.ps])
            taken = taken + servers * m.ps.sum(axis=1)[o.ps_type]
            part = part + servers[:, None] * _largest_part(m.ps, m.capacity, hosts)[o.ps_type]
        light = o.slots * taken > self.weight[o.job] * (1 + ROUNDING)
        large = part.max(axis=1) * math.log2(self.price_base) > 1 + ROUNDING
        dear = self.weight > self.unit_worth * self.least_consumption * (1 + ROUNDING)
        return np.asarray((np.bincount(o.job, light | large, self.size) == 0) & ~dear)

    @cached_property
    def least_slots(self) -> Array:
        """``(n, R)`` least use of each resource by each job, in slots for which it would fill the whole cluster."""
        o, total = self.options, self.machines.total
        taken = o.workers[:, None] * self.machines.worker[o.worker_type]
        if self.id == "ps":
            taken = taken + self.machines.ps[o.ps_type]
        part = np.divide(taken, total, out=np.zeros_like(taken), where=total > 0) * o.slots[:, None]
        return np.asarray(np.minimum.reduceat(part, o.first[:-1], axis=0))

    @cached_property
    def fluid_slots(self) -> float:
        """Number of slots for which all jobs together, each with its least use, would fill the scarcest resource."""
        return float(self.least_slots.sum(axis=0).max())

    @cached_property
    def deadline(self) -> int:
        """τ of the weight problem: the instance's, or a power of two by which about half of the work can be done.

        This is the largest power of two up to :attr:`fluid_slots`, but late enough for the shortest job. Raise
        `NotApplicableError` if no job can complete before the instance's τ.
        """
        shortest = int(self.options.shortest.min())
        if self.given_deadline is not None:
            if self.given_deadline <= shortest:
                late = f"no job can complete before slot {self.given_deadline} (due_slot)"
                raise NotApplicableError(f"{late}: the shortest takes {shortest} slots")
            return self.given_deadline
        tau: int = 2 ** max(0, math.floor(math.log2(max(self.fluid_slots, 1.0))))
        while tau < 1 + shortest:
            tau *= 2
        return tau

    @cached_property
    def loads(self) -> Array:
        """``(h, R, τ − 1)`` resources in use in slots 1 … τ − 1 of ``zhou.*.cost``.

        They follow an arithmetic pattern of elevenths of each capacity, at most five of them (GPUs integral), so that
        prices differ among servers and slots and yet something fits.
        """
        h, resources = self.machines.capacity.shape
        server, resource, slot = np.ogrid[:h, :resources, : self.deadline - 1]
        part = (3 * server + 7 * resource + 5 * slot) % FRACTIONS // 2
        used = self.machines.capacity[:, :, None] * part / FRACTIONS
        used[:, 0] = np.floor(used[:, 0])
        return np.asarray(used)

    def prices(self, used: Array, servers: Ints | slice = slice(None)) -> Array:
        """Return the prices (11) per unit and slot of these servers, with `used` ``(servers, R, …)`` in use.

        A unit is a GPU, a CPU, a gigabyte or a Gbit/s, here and in F, so that costs depend on these units: the paper
        adds up all resources without scaling. A resource of which a server has none is free.
        """
        capacity = self.machines.capacity[servers]
        capacity = capacity.reshape(*capacity.shape, *([1] * (used.ndim - 2)))
        return self.price(used, capacity)

    def price(self, used: Array, capacity: Array) -> Array:
        """Return the prices (11) where `used` units of a `capacity` are in use; a capacity of 0 is free."""
        part = np.divide(used, capacity, out=np.zeros_like(used), where=capacity > 0)
        return np.asarray(np.expm1(np.clip(part, 0.0, 1.0) * math.log(self.price_base)))

    @cached_property
    def priced_job(self) -> int:
        """The job of ``zhou.*.cost``: the one of largest weight."""
        return int(self.weight.argmax())


def _largest_part(needs: Array, capacity: Array, fits: Bools) -> Array:
    """Return ``(k, R)`` largest fraction that each of `needs` takes of a server's capacity ``(h, R)`` where it fits."""
    parts = np.divide(needs[:, None], capacity, out=np.zeros((len(needs), *capacity.shape)), where=capacity > 0)
    return np.asarray(np.where(fits[:, :, None], parts, 0.0).max(axis=1))


@dataclass(frozen=True, eq=False)
class ZhouView:
    """Jobs and slots, and both architectures, ``ps`` and ``ra``; slots count from 1."""

    instance: Instance
    slot_s: float
    slots: int
    ids: tuple[str, ...]
    arrival: Ints
    weight: Array
    work: Array
    most: Ints
    architectures: Mapping[str, Architecture]

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.ids)

    def of(self, problem: str) -> Architecture:
        """Return the architecture of a problem or method (``zhou.ps.completion``)."""
        return self.architectures[problem.split(".")[1]]


@dataclass(frozen=True, eq=False, repr=False)
class ZhouSchedule(Runs):
    """Runs of jobs in slots numbered from 1; for A_online, also the windows in which they were planned.

    Attributes
    ----------
    window_start, window_slots
        ``(w,)`` first slot and length (``α_i·τ_i``) of the window of each batch.
    window_rounds
        ``(w,)`` number of rounds of A_maxweight that scheduled jobs in it: the realised ``α_i``.
    window_tau
        ``(w,)`` slots of a round: ``τ_i``, by which the jobs of the batch had arrived.
    """

    window_start: Ints = field(default_factory=nothing)
    window_slots: Ints = field(default_factory=nothing)
    window_rounds: Ints = field(default_factory=nothing)
    window_tau: Ints = field(default_factory=nothing)


def view(instance: Instance) -> ZhouView:
    """Return Zhou's view of `instance`.

    It raises `NotApplicableError` if there are no jobs or worker types, if jobs lack rates, or if there are too many
    servers.
    """
    if not instance.jobs or not instance.worker_types:
        missing = "jobs" if not instance.jobs else "worker types"
        raise NotApplicableError(f"Zhou: {instance.name} has no {missing}")
    count = [group.count for group in instance.cluster.servers]
    if sum(count) > MAX_SERVERS:
        raise NotApplicableError(f"Zhou: {sum(count)} servers are more than the limit of {MAX_SERVERS}")
    horizon = instance.horizon
    slot_s = horizon.slot_s if horizon and (horizon.slot_s >= HOUR_S or horizon.end_s < SHORT_S) else HOUR_S
    try:
        both = rates(instance.jobs, instance.worker_types, instance.ps_types, slot_s)
    except InstanceError as error:
        raise NotApplicableError(f"Zhou: {error}") from error
    jobs = instance.jobs
    arrival = 1 + slots_from(np.array([job.submit_s for job in jobs]), slot_s)
    end = math.ceil(horizon.end_s / slot_s * (1 - ROUNDING)) if horizon else 0
    fields = {
        "ids": tuple(job.id for job in jobs),
        "arrival": arrival,
        "weight": np.array([job.weight for job in jobs]),
        "work": np.array([job.iterations for job in jobs], float),
        "most": np.array([job.chunks for job in jobs]),
        "slots": max(end, int(arrival.max())),
    }
    architectures = {
        name: Architecture(
            id=name,
            machines=_machines(instance, ring=name == "ra"),
            rates=own,
            given_worth=instance.unit_worth,
            given_deadline=instance.due_slot,
            **fields,  # type: ignore[arg-type]
        )
        for name, own in zip(ARCHITECTURES, both, strict=True)
    }
    return ZhouView(instance=instance, slot_s=slot_s, architectures=architectures, **fields)  # type: ignore[arg-type]


def _machines(instance: Instance, ring: bool) -> Machines:
    groups = instance.cluster.servers
    workers, servers = instance.worker_types, () if ring else instance.ps_types
    runs_on = able(workers, [group.gpu_type for group in groups])
    needs = takes(workers), takes(servers)
    return machines_of(instance, workers, servers, RESOURCES, takes(groups), needs, runs_on)


def describe(v: ZhouView) -> str:
    """Return the caption of a comparison: sizes and slots.

    Assumptions and promises of theorems are left to the methods' guarantees, since they take all options of all jobs.
    """
    machines = v.architectures["ra"].machines
    different = len(set(machines.kind.tolist()))
    return (
        f"{counted(v.size, 'job')}, {counted(machines.size, 'server')} ({different} different), "
        f"T = {v.slots} slots of {v.slot_s:g} s;"
        " objective: Σ w·c, c counted in slots from 1"
    )


def _problems(name: str, title: str) -> tuple[Problem, ...]:
    least = partial(Problem, sense="min", unit="weight × slots")
    time = f"least total weighted completion time with {title}"
    interrupted = least(f"zhou.{name}.preemptive", f"{time}, jobs may be interrupted", allows="jobs may be interrupted")
    return (
        interrupted,
        least(f"zhou.{name}.completion", time, restricts=interrupted.id, requires="no preemption"),
        Problem(f"zhou.{name}.weight", f"largest weight completed by τ with {title}, all jobs there", "max", "weight"),
        Problem(f"zhou.{name}.cost", f"least cost of the heaviest job at given prices with {title}", "min", "cost"),
    )


PAPERS.register(
    PaperSpec(
        id="zhou",
        title="Zhou et al.: Online Scheduling Algorithm for Heterogeneous Distributed Machine Learning Jobs",
        view=view,
        problems=tuple(p for name, title in ARCHITECTURES.items() for p in _problems(name, title)),
        decision=ZhouSchedule,
        describe=describe,
    )
)
