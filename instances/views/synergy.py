r"""Synergy (Mohan et al.: *Resource Sensitive DNN Scheduling in Multi-Tenant Clusters*).

In a round, gangs with fixed GPUs get CPUs and memory that need not be proportional to these GPUs. A job's progress is
:math:`W_j[c,m]` (:mod:`schedgap.instances.sensitivity`). Its *share* is the CPUs and memory proportional to its GPUs,
floored to its levels, and its *fair* progress is its progress with the share.

The servers with GPUs of one type form a *pool*. A gang runs on GPUs of one type only (Synergy, A.2.2), so that a
cluster with one GPU type is Synergy's homogeneous one. If servers of a type differ, shares are based on the least CPUs
and memory per GPU among them. A gang gets at most the CPUs and memory of the servers that its GPUs need (section 6).

The view serves two kinds of problems. *One round*, as if all jobs were queued: either of the jobs
:attr:`SynergyView.runnable`, which fill the GPUs in the order of arrival, or (``synergy.queue``, ``synergy.round``) of
any jobs of the whole :attr:`SynergyView.queue`. *The whole run*: all jobs from their arrivals, in rounds of
:attr:`SynergyView.slot_s`; they stay until they complete, even if their tenants leave earlier.

Objectives: for a round, the progress of its jobs in units of each job's fair progress on its best GPU type, since rates
of different models do not add (with ``raw=True``, iterations per second); for the run, the mean completion time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from schedgap.instances.arrays import ROUNDING, Array, Bools, Decision, Ints
from schedgap.instances.errors import InstanceError, NotApplicableError
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Instance
from schedgap.instances.sensitivity import Profiles, least_per_gpu, profiles
from schedgap.instances.text import counted
from schedgap.instances.workload import GangView, Servers, Workload, hopeless_note, servers, slots_from, workload

ROUNDS_S = (300.0, 900.0, 1800.0, 3600.0, 4 * 3600.0, 24 * 3600.0)
"""Lengths of a round for an instance without horizon: 5 minutes (Synergy, section 1), or the first with which the run
has at most :data:`ROUNDS` rounds."""

ROUNDS = 5000
"""Number of rounds of a run up to which a round length is preferred."""


@dataclass(frozen=True, eq=False)
class TypePools:
    """Servers by GPU type, as totals ``(k,)`` of ``k`` types; servers without GPUs are ignored.

    Attributes
    ----------
    cpus_per_gpu, memory_gb_per_gpu
        ``(k,)`` minimum over the servers of the type; 0 for a type without servers.
    largest
        ``(k, 3)`` maximum GPUs, CPUs and gigabytes of a server.
    """

    gpus: Ints
    cpus: Array
    memory_gb: Array
    cpus_per_gpu: Array
    memory_gb_per_gpu: Array
    largest: Array

    @staticmethod
    def of(cluster: Servers, types: int) -> TypePools:
        """Return the pools of a cluster."""
        hosts, amounts = cluster.with_gpus(types), cluster.amounts
        total = np.array([amounts[h].sum(axis=0) for h in hosts])
        least = least_per_gpu(cluster, types)
        return TypePools(
            total[:, 0].astype(np.int64), total[:, 1], total[:, 2], least[:, 0], least[:, 1], cluster.largest(types)
        )


@dataclass(frozen=True, eq=False)
class Needs:
    """Characteristic CPUs and memory of each of ``K`` kinds of jobs on each of ``k`` GPU types.

    Attributes
    ----------
    able
        ``(K, k)`` whether a gang of the kind fits there and advances with its share.
    limit
        ``(K, k, 2)`` maximum CPUs and gigabytes of a gang.
    share
        ``(K, k, 2)`` proportional CPUs and gigabytes, floored to levels.
    fair
        ``(K, k)`` iterations per second with the share.
    demand
        ``(K, k, 2)`` the fewest CPUs, and with these the least memory, at which the gang is fastest within its limit
        (or `saturation` below that, see :func:`view`).
    best
        ``(K, k)`` iterations per second with the demand.
    base
        ``(K, k, 2)`` fallback of a gang: the demand clamped elementwise to the share. If that is slower than fair
        (which cannot happen with a pipeline), demand and base are the share, so that falling back never needs more.
    """

    able: Bools
    limit: Array
    share: Array
    fair: Array
    demand: Array
    best: Array
    base: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class SynergyView(GangView):
    """Jobs, servers, rate tables and derived arrays. ``n`` jobs, ``k`` GPU types, ``K`` kinds. A slot is a round.

    ``replace(view, runnable=jobs)`` is the view of the same cluster in a round with other jobs.

    Attributes
    ----------
    rounds
        Estimated number of rounds of the whole run.
    fair
        ``(n,)`` each job's fair progress on its best GPU type, in iterations per second; 0 if it can never run.
    weight
        ``(n,)`` factor from iterations per second to the round's objective.
    runnable
        ``(m,)`` jobs of the round, in the order in which they were picked.
    """

    profiles: Profiles
    rounds: int
    pools: TypePools
    needs: Needs
    fair: Array
    weight: Array
    runnable: Ints

    @property
    def types(self) -> int:
        """Number of GPU types."""
        return len(self.workload.gpu_types)

    @property
    def asked(self) -> Mapping[str, Any]:
        """Facts that replace those of the instance in a check: the jobs of the round."""
        return {"runnable": self.runnable}

    @cached_property
    def mixed(self) -> bool:
        """True if servers have GPUs of more than one type."""
        return int((self.pools.gpus > 0).sum()) > 1

    @cached_property
    def queue(self) -> Ints:
        """``(q,)`` jobs that can ever run, in the order of arrival."""
        return np.asarray(self.possible[np.argsort(self.workload.arrival_s[self.possible], kind="stable")])

    @cached_property
    def preference(self) -> tuple[tuple[int, ...], ...]:
        """``(K,)`` GPU types on which each kind can run, by descending fair progress."""
        order = np.argsort(-self.needs.fair, axis=1, kind="stable")
        return tuple(
            tuple(i for i in row if able[i]) for row, able in zip(order.tolist(), self.needs.able.tolist(), strict=True)
        )

    @cached_property
    def preferred(self) -> Ints:
        """``(K,)`` GPU type on which each kind has the most fair progress; 0 for kinds that can run on none."""
        return np.array([types[0] if types else 0 for types in self.preference])

    def pick(self, order: Iterable[int]) -> tuple[Ints, Ints]:
        """Return the jobs that run in a round if they are served in `order`, and their GPU types.

        A job takes the GPU type on which it is fastest with its share among those with enough free GPUs. It is skipped
        if there is none (Synergy, section 4.2: no job is skipped unless its GPU demand cannot be met).
        """
        free = self.pools.gpus.tolist()
        left = sum(free)
        preference, (kind, gpus) = self.preference, self._plain
        jobs, types = [], []
        for j in order:
            if left == 0:
                break
            needed = gpus[j]
            for i in preference[kind[j]]:  # a generator would take most of the time of long simulations
                if free[i] >= needed:
                    free[i] -= needed
                    left -= needed
                    jobs.append(j)
                    types.append(i)
                    break
        return np.array(jobs, np.int64), np.array(types, np.int64)

    @cached_property
    def _plain(self) -> tuple[list[int], list[int]]:
        return self.profiles.kind.tolist(), self.workload.gpus.tolist()


@dataclass(frozen=True, eq=False, repr=False)
class SynergySchedule(Decision):
    """Allocations by round (six arrays of equal length, in any order), and the jobs that the policy picked.

    In problems of one round, the round is 0. In ``synergy.queue``, ``synergy.free``, ``synergy.ideal`` and
    ``synergy.oracle``, where all servers of a GPU type are one machine, `server` is the index of the GPU type.

    Attributes
    ----------
    round, job, server
        ``(entries,)`` indices; each triple occurs at most once.
    gpus, cpus, memory_gb
        ``(entries,)`` resources that the job holds there; GPUs are integral except in ``synergy.placement``.
    offered_round, offered_job
        ``(offers,)`` the runnable set of each round: jobs that the policy picked so that their GPUs fit, whether or not
        the mechanism then ran them.
    """

    round: Ints
    job: Ints
    server: Ints
    gpus: Array
    cpus: Array
    memory_gb: Array
    offered_round: Ints
    offered_job: Ints


def view(
    instance: Instance, *, raw: bool = False, tables: Profiles | None = None, saturation: float = 0.0
) -> SynergyView:
    """Return Synergy's view of `instance`.

    Parameters
    ----------
    raw
        Whether the objective of a round adds iterations per second, as the paper prints it, instead of multiples of
        each job's fair progress.
    tables
        Rates to decide by, such as profiled ones; the true ones by default.
    saturation
        Fraction by which the rate at a gang's demand may be below its fastest rate. If tables have errors, which of
        many nearly equal rates is fastest is a matter of chance.

    Raises
    ------
    NotApplicableError
        If there are no jobs, a job has no rates or no sensitivity, servers have no CPUs or memory, or no job can ever
        run.
    """
    try:
        jobs, hosts = workload(instance), servers(instance)
        jobs = replace(jobs, leave_s=np.full(jobs.size, np.inf))
        tables = tables or profiles(instance, jobs, hosts)
    except (InstanceError, NotApplicableError) as error:
        raise NotApplicableError(f"Synergy: {error}") from error
    pools = TypePools.of(hosts, len(jobs.gpu_types))
    needs = _needs(tables, pools, max(saturation, ROUNDING))
    reasons = tuple(_hopeless(jobs, tables, pools, needs))
    if all(reasons):
        raise NotApplicableError(f"Synergy: no job can ever run: {reasons[0]}")
    fair = np.where(needs.able, needs.fair, 0.0).max(axis=1)[tables.kind]
    # Estimate the seconds for which GPUs are busy with jobs at their fair progress (0 means that a job never runs).
    able = fair > 0
    alone_s = jobs.work[able] / fair[able]
    last_s = float((jobs.arrival_s[able] + alone_s).max() - jobs.arrival_s[able].min())
    used_s = float((alone_s * jobs.gpus[able]).sum()) / int(pools.gpus.sum())
    run_s = min(max(used_s, last_s), float(alone_s.sum()))
    fitting = (length for length in ROUNDS_S if run_s <= ROUNDS * length)
    slot_s = instance.horizon.slot_s if instance.horizon else next(fitting, ROUNDS_S[-1])
    result = SynergyView(
        instance=instance,
        workload=jobs,
        servers=hosts,
        profiles=tables,
        slot_s=slot_s,
        rounds=int(min(run_s / slot_s, 1e15)) + 1,
        arrival=slots_from(jobs.arrival_s, slot_s),
        pools=pools,
        needs=needs,
        fair=fair,
        weight=np.ones(jobs.size) if raw else np.divide(1.0, fair, out=np.zeros(jobs.size), where=fair > 0),
        hopeless=reasons,
        runnable=np.zeros(0, np.int64),
    )
    return replace(result, runnable=result.pick(result.queue.tolist())[0])


def _needs(tables: Profiles, pools: TypePools, saturation: float) -> Needs:
    shape = (tables.kinds, len(pools.gpus))
    pairs = {name: np.zeros((*shape, 2)) for name in ("limit", "share", "demand", "base")}
    needs = Needs(able=np.zeros(shape, bool), fair=np.zeros(shape), best=np.zeros(shape), **pairs)
    for kind, i in np.argwhere(tables.gpus[:, None] <= pools.gpus).tolist():
        gpus, rate = int(tables.gpus[kind]), tables.rate[kind, i]
        levels = (tables.cpus[kind], tables.memory_gb[kind])
        limit = math.ceil(gpus / pools.largest[i, 0]) * pools.largest[i, 1:]
        share = gpus * np.array([pools.cpus_per_gpu[i], pools.memory_gb_per_gpu[i]])
        top = [int((axis <= most * (1 + ROUNDING)).sum()) for axis, most in zip(levels, limit, strict=True)]
        at = [int((axis <= most * (1 + ROUNDING)).sum()) - 1 for axis, most in zip(levels, share, strict=True)]
        needs.limit[kind, i] = limit
        if min(at) < 0 or rate[at[0], at[1]] <= 0:
            continue
        within = rate[: top[0], : top[1]]
        a, b = np.argwhere(within >= within.max() * (1 - saturation))[0]
        low = (min(a, at[0]), min(b, at[1]))
        fair = rate[at[0], at[1]]
        if rate[low] < fair * (1 - ROUNDING):
            a, b = low = at[0], at[1]
        needs.able[kind, i], needs.fair[kind, i], needs.best[kind, i] = True, fair, rate[a, b]
        for name, (x, y) in {"share": at, "demand": (a, b), "base": low}.items():
            getattr(needs, name)[kind, i] = levels[0][x], levels[1][y]
    return needs


def _hopeless(jobs: Workload, tables: Profiles, pools: TypePools, needs: Needs) -> Iterable[str | None]:
    """Yield the reason why a job can never run, or ``None``, for each job."""
    for name, kind, gpus, rates in zip(jobs.ids, tables.kind, jobs.gpus, jobs.rates, strict=True):
        if needs.able[kind].any():
            yield None
        elif not np.any((gpus <= pools.gpus) & (rates > 0)):
            yield f"{name}: its gang of {gpus} fits on no GPU type with a positive rate"
        else:
            yield f"{name}: makes no progress with CPUs and memory in proportion to its GPUs"


def describe(v: SynergyView) -> str:
    """Return the caption of a comparison: GPUs, CPUs, memory, the round, and the jobs that can never run."""
    pools = v.pools
    amounts = zip(v.workload.gpu_types, pools.gpus, pools.cpus, pools.memory_gb, strict=True)
    cluster = ", ".join(f"{g} {name} with {c:g} CPUs and {m:g} GB" for name, g, c, m in amounts if g)
    return (
        f"{counted(v.size, 'job')} on {cluster}{hopeless_note(v.hopeless, 'run')}; one round: the first "
        f"{v.runnable.size} jobs by arrival, which fill the GPUs, or any jobs of the queue, progress in units of each "
        f"job's proportional share; the run: rounds of {v.slot_s:g} s, mean completion time"
    )


_most = partial(Problem, sense="max", unit="fair shares")
MACHINE = "most progress of a round, one machine per GPU type"
QUEUE = _most("synergy.queue", f"{MACHINE}, any jobs of the queue", allows="any jobs of the queue may run")
FREE = _most(
    "synergy.free",
    f"{MACHINE}, jobs may be left out",
    restricts=QUEUE.id,
    requires="serving the first jobs of the queue",
    allows="jobs may be left out",
)
IDEAL = _most(
    "synergy.ideal",
    f"{MACHINE}, every job at least at its fair progress there",
    restricts=FREE.id,
    requires="fair progress",
    allows="servers of a GPU type count as one machine",
)
ORACLE = _most(
    "synergy.oracle",
    f"{MACHINE}, every job at least at the oracle's fair progress",
    restricts=FREE.id,
    requires="the oracle's fair progress",
)
SERVERS = "most progress of a round on servers"
FAIR = _most(
    "synergy.fair",
    f"{SERVERS}, every job at least at its fair progress",
    restricts=IDEAL.id,
    requires="placing a fair round on servers",
)
ROUND = _most(
    "synergy.round",
    f"{SERVERS}, any jobs of the queue",
    restricts=QUEUE.id,
    requires="placing a round on servers",
    allows="any jobs of the queue may run",
)
PLACEMENT = Problem(
    "synergy.placement", "fewest jobs over several servers, at the CPUs and memory of Synergy-Opt", "min", "jobs"
)
RUN = Problem("synergy.run", "least mean completion time of all jobs", "min", "s")
P99 = Problem("synergy.p99", "least 99th percentile of completion times of all jobs", "min", "s")
MAKESPAN = Problem("synergy.makespan", "earliest end of the last job of the whole run", "min", "s")

PAPERS.register(
    PaperSpec(
        id="synergy",
        title="Mohan et al.: Synergy: Resource Sensitive DNN Scheduling in Multi-Tenant Clusters",
        view=view,
        problems=(QUEUE, FREE, IDEAL, FAIR, ROUND, ORACLE, PLACEMENT, RUN, P99, MAKESPAN),
        decision=SynergySchedule,
        describe=describe,
    )
)
