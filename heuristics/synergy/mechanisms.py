"""Mechanisms, which give the jobs of a round servers, CPUs and memory (Synergy, sections 3.3, 4.1, 4.2).

The *demand* of a job is the fewest CPUs and the least memory at which it is fastest. Its *base* is the smaller of
demand and share, for CPUs and for memory. Synergy-Tune has nothing between the two: a job that misses one CPU falls
back all the way, which accounts for most of Tune's distance to the optimum (compare ``refill``). A gang that fits on no
server is spread over the fewest servers, and each GPU keeps its part of the CPUs and memory. Greedy does this too,
although §3.3 lets it skip the gang, which changes little.

In the paper's text, Synergy-Tune sorts jobs "by their GPU demands, followed by CPU, and memory demand". Its artefact
places jobs in the policy's order (under LAS by descending GPUs, then in that order), and the paper's numbers come from
the artefact. Neither order is always better; the default is by demand, as printed. The paper does not print the
direction. Here the largest go first, because with the smallest first Tune gains next to nothing.

The paper's curves for Opt count the progress of ILP1 and place nothing. On one server with all GPUs there is nothing to
place: ``gen/synergy-128?servers=1&gpus_per_server=128`` has the same jobs, demands and shares, and Opt makes all of
ILP1's progress there. ``docs/experiments.md`` has the numbers.

Falling back never fails: jobs that all hold at most their shares fit on their server. For this, CPUs and memory must be
clamped together: a job that is switched to its share, as the paper prints it, may hold more memory than before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from schedgap.heuristics.registry import Oracle
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.views.synergy import SynergySchedule, SynergyView

PLACEMENT = "synergy.lp2.vertex"
"""The model whose optimal decision Synergy-Opt rounds to whole GPUs."""

IDEAL, IDEAL_OF_TYPES = "synergy.ilp1", "synergy.hetero.ilp1"
"""The models whose optimum Synergy-Opt places where LP2 has no decision, for one GPU type and for several."""

WHOLE = 1e-6
"""A number of GPUs that is at most this far from an integer counts as that integer."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the jobs of a round run, and what they hold there: GPUs, CPUs and gigabytes, ``(entries,)`` each."""

    job: Ints
    server: Ints
    gpus: Ints
    cpus: Array
    memory_gb: Array


@dataclass(frozen=True, eq=False)
class Request:
    """The jobs of a round, which a policy asks a mechanism to place.

    `queue` ``(a,)`` are the jobs that may run, in the policy's order, and `left_s` ``(a,)`` the seconds that they still
    need with their shares; `jobs` ``(m,)`` are the picked jobs, whose gangs fit the cluster together, and `types`
    ``(m,)`` their GPU types.
    """

    queue: Ints
    jobs: Ints
    types: Ints
    left_s: Array


Mechanism = Callable[[Request], Placement]


class Mechanisms:
    """The mechanisms as methods, for the servers of one view; each takes a :class:`Round` and returns its placement.

    `order` (``demand`` or ``policy``) is the order in which `tune` and `refill` place jobs, `fit` (``best`` or
    ``first``) says which server they choose; `opt` needs the oracle.
    """

    def __init__(self, view: SynergyView, oracle: Oracle, *, order: str = "demand", fit: str = "best") -> None:
        from schedgap.heuristics.synergy import _kernels

        self.kernels, self.view, self.oracle = _kernels, view, oracle
        self.by_demand, self.tight = order == "demand", fit == "best"
        self.kind, self.gpus, servers = view.profiles.kind, view.workload.gpus, view.servers
        capacity = np.ascontiguousarray(servers.amounts[:, 1:])
        self.hosts = _kernels.SynergyHosts(servers.gpu_type, servers.gpus, capacity, capacity)
        # GPU types of each kind by preference, padded with −1.
        self.options: Ints = np.full((view.profiles.kinds, view.types), -1, np.int64)
        for kind, types in enumerate(view.preference):
            self.options[kind, : len(types)] = types
        # Demands ``(K, k, 2)``, or bases if a demand fits on no empty servers (a gang of 5 on servers of 4).
        self.static: Array = view.needs.demand.copy()
        for kind, i in np.argwhere(view.needs.able).tolist():
            gpus, demand = view.profiles.gpus[[kind]], self.static[kind, i].reshape(1, 1, 2)
            if not len(_kernels.pack(gpus, np.full((1, 1), i), demand, demand, False, False, self.hosts)[0]):
                self.static[kind, i] = view.needs.base[kind, i]
        self._last: dict[str, tuple[bytes, Placement]] = {}

    def _options(self, request: Request) -> tuple[Ints, Array]:
        """Return the ``(a, k)`` GPU types of queued jobs by preference, and their ``(a, k, 2)`` demands on these types.

        A type that the policy has chosen for a job comes first.
        """
        kind = self.kind[request.queue]
        options = self.options[kind]
        if self.view.mixed:
            chosen = np.full(self.view.size, -1, np.int64)
            chosen[request.jobs] = request.types
            first = chosen[request.queue][:, None]
            order = np.argsort((options != first) | (first < 0), axis=1, kind="stable")
            options = np.take_along_axis(options, order, axis=1)
        return options, self.static[kind[:, None], options]

    def _placement(self, jobs: Ints, entries: Ints, amount: Array) -> Placement:
        row, server, gpus = entries.T
        job = jobs[row]
        held = amount[row] * (gpus / self.gpus[job])[:, None]
        return Placement(job, server, gpus, held[:, 0], held[:, 1])

    def _cached(self, mechanism: str, jobs: Ints, types: Ints, place: Callable[[], Placement]) -> Placement:
        """Return the mechanism's last placement if it had the same jobs on the same types, otherwise a new one."""
        key = np.concatenate((jobs, types)).tobytes()
        if mechanism not in self._last or self._last[mechanism][0] != key:
            self._last[mechanism] = key, place()
        return self._last[mechanism][1]

    def proportional(self, request: Request) -> Placement:
        """Give every picked job its GPU-proportional share of CPUs and memory (§2)."""
        order = np.argsort(request.jobs)
        jobs, types = request.jobs[order], request.types[order]
        share = self.view.needs.share[self.kind[jobs], types]
        return self._cached("proportional", jobs, types, lambda: self._packed(jobs, types, share, share))

    def tune(self, request: Request) -> Placement:
        """Give every picked job its demand or, if that does not fit, its base (Synergy-Tune, §4.2).

        Jobs are placed by descending GPUs, CPUs and memory, each on the fullest server that holds its demand; with
        ``order=policy``, in the policy's order; with ``fit=first``, on the first such server. A job that fits nowhere
        falls back to its base, the elementwise minimum of demand and share. If that does not fit, jobs above their
        shares on its server fall back, those furthest above first.
        """
        # By demand, the order of the queue has no effect.
        order = np.argsort(request.jobs) if self.by_demand else np.arange(request.jobs.size)
        jobs, types = request.jobs[order], request.types[order]
        return self._cached("tune", jobs, types, lambda: self._tuned(jobs, types))

    def refill(self, request: Request) -> Placement:
        """Place jobs as `tune`, then give CPUs and memory that are left to jobs that fell back (not in the paper).

        Jobs take leftovers in the policy's order.
        """
        return self._tuned(request.jobs, request.types, refill=True)

    def _tuned(self, jobs: Ints, types: Ints, *, refill: bool = False) -> Placement:
        cell, needs = (self.kind[jobs], types), self.view.needs
        return self._packed(jobs, types, needs.demand[cell], needs.base[cell], self.by_demand, self.tight, refill)

    def _packed(
        self,
        jobs: Ints,
        types: Ints,
        wanted: Array,
        least: Array,
        by_demand: bool = True,
        tight: bool = True,
        refill: bool = False,
    ) -> Placement:
        """Place jobs with the amounts `wanted` ``(m, 2)``, or at worst `least` ``(m, 2)``.

        With `by_demand` the largest amounts come first, otherwise jobs keep their order. With `tight` each job goes to
        the fullest server that fits, otherwise to the first. With `refill` leftovers go to the jobs in their order.
        """
        gpus = self.gpus[jobs]
        order = np.lexsort((jobs, -wanted[:, 1], -wanted[:, 0], -gpus)) if by_demand else np.arange(jobs.size)
        table = (types[order][:, None], wanted[order][:, None], least[order][:, None])
        entries, held = self.kernels.pack(gpus[order], *table, tight, True, self.hosts)
        entries[:, 0] = order[entries[:, 0]]
        amount = np.empty_like(held)
        amount[order] = held
        return self._placement(jobs, entries, self._refilled(jobs, types, entries, amount) if refill else amount)

    def _refilled(self, jobs: Ints, types: Ints, entries: Ints, amount: Array) -> Array:
        """Give leftovers to placed jobs, one after another; return the ``(m, 2)`` CPUs and gigabytes that they hold."""
        kind, view = self.kind[jobs], self.view
        want = view.needs.demand[kind, types]
        return self.kernels.refill(entries, self.gpus[jobs], amount, want, self.hosts, kind, types, view.profiles)

    def greedy(self, request: Request) -> Placement:
        """Give jobs their whole demands, in the queue's order, each on the first server on which it fits (§3.3).

        A job that fits nowhere is skipped for this round, and the next one of the queue is checked.
        """
        options, want = self._options(request)
        packed = self.kernels.pack(self.gpus[request.queue], options, want, want, False, False, self.hosts)
        return self._placement(request.queue, *packed)

    def tetris(self, request: Request) -> Placement:
        """Give jobs their whole demands by the scores of Tetris (Grandl et al., SIGCOMM 2014), the largest score first.

        The score of a job on a server is their alignment minus a penalty for the remaining work.
        """
        options, want = self._options(request)
        penalty = penalties(self.view, request.queue, request.left_s)
        group = self.kind[request.queue] * self.view.types + options[:, 0]
        order = np.lexsort((penalty, group))
        jobs, group = request.queue[order], group[order]
        first = np.append(np.flatnonzero(np.diff(group, prepend=-1)), group.size)
        table = (self.gpus[jobs], options[order], want[order], penalty[order])
        return self._placement(jobs, *self.kernels.align(*table, first, self.hosts))

    def opt(self, request: Request) -> Placement:
        """Give picked jobs the CPUs and memory of ILP1, placed by the vertex of LP2 (Synergy-Opt, §4.1).

        The vertex may give a job fractions of GPUs, which are rounded by largest remainder. Jobs on overfull servers
        fall back, and leftovers are given out. Best fit replaces the vertex if jobs make more progress with it.
        """
        jobs = np.sort(request.jobs)
        return self._cached("opt", jobs, jobs, lambda: self._rounded(jobs))

    def _rounded(self, jobs: Ints) -> Placement:
        """Place the optimal CPUs and memory by the vertex and by best fit; return the placement with more progress."""
        view = replace(self.view, runnable=jobs)
        try:
            optimum = self.oracle(PLACEMENT, view)
        except NotApplicableError:
            # If servers of a GPU type differ, LP2 can be infeasible: a job's amounts in the ILP may fit on no server.
            ideal = self.oracle(IDEAL_OF_TYPES if self.view.mixed else IDEAL, view)
            return self._fitted(jobs, ideal, ideal.server)
        options = (self._whole(jobs, optimum), self._fitted(jobs, optimum, self.hosts.types[optimum.server]))
        return max(options, key=self._progress)

    def _whole(self, jobs: Ints, optimum: SynergySchedule) -> Placement:
        """Place jobs as in the optimum of LP2, with its fractional GPUs rounded to whole ones."""
        table = whole_gangs(optimum, self.gpus, self.hosts.free, self.hosts.types)
        table[:, 0] = np.searchsorted(jobs, table[:, 0])
        types = np.zeros(jobs.size, np.int64)
        types[table[:, 0]] = self.hosts.types[table[:, 1]]
        base = self.view.needs.base[self.kind[jobs], types]
        held = self.kernels.settle(table, self.gpus[jobs], _totals(jobs, optimum), base, self.hosts)
        return self._placement(jobs, table, self._refilled(jobs, types, table, held))

    def _fitted(self, jobs: Ints, optimum: SynergySchedule, gpu_type: Ints) -> Placement:
        """Place the CPUs and memory that an optimum gives to jobs, on its GPU types, as Synergy-Tune places demands."""
        wanted, types = _totals(jobs, optimum), np.zeros(jobs.size, np.int64)
        types[np.searchsorted(jobs, optimum.job)] = gpu_type
        kind, base = self.kind[jobs], self.view.needs.base[self.kind[jobs], types]
        least, rate = np.minimum(base, wanted), self.view.profiles.rate_of
        # An optimum may make a job's fair progress with more memory and fewer CPUs than its base, and not with both.
        slow = rate(kind, types, *least.T) < rate(kind, types, *base.T)
        least[slow] = base[slow]
        return self._packed(jobs, types, wanted, least, refill=True)

    def _progress(self, placed: Placement) -> float:
        jobs, first = np.unique(placed.job, return_index=True)
        types = self.hosts.types[placed.server[first]]
        rate = self.view.profiles.rate_of(self.kind[jobs], types, *_totals(jobs, placed).T)
        return float(self.view.weight[jobs] @ rate)


def _totals(jobs: Ints, placed: SynergySchedule | Placement) -> Array:
    """Return the ``(m, 2)`` CPUs and gigabytes that each job holds on all its servers together."""
    amount = np.zeros((jobs.size, 2))
    np.add.at(amount, np.searchsorted(jobs, placed.job), np.column_stack((placed.cpus, placed.memory_gb)))
    return amount


def demands(view: SynergyView, jobs: Ints) -> tuple[Array, Ints]:
    """Return the ``(a, 3)`` GPUs, CPUs and memory that jobs demand on their best GPU type, and that type ``(a,)``."""
    kind = view.profiles.kind[jobs]
    first = view.preferred[kind]
    return np.column_stack((view.workload.gpus[jobs], view.needs.demand[kind, first])), first


def dominant(view: SynergyView, jobs: Ints) -> Array:
    """Return the ``(a, 3)`` fractions of the cluster's GPUs, CPUs and memory that jobs demand.

    The largest of a job's three fractions is its dominant share.
    """
    pools = view.pools
    total = np.array([pools.gpus.sum(), pools.cpus.sum(), pools.memory_gb.sum()])
    return np.asarray(demands(view, jobs)[0] / total)


def alignments(view: SynergyView, jobs: Ints) -> Array:
    """Return the ``(a,)`` Tetris alignments of jobs with an empty server of their best GPU type.

    This is the sum of the fractions of the server's GPUs, CPUs and memory that a job demands.
    """
    demand, first = demands(view, jobs)
    return np.asarray((demand / view.pools.largest[first]).sum(axis=1))


def penalties(view: SynergyView, jobs: Ints, left_s: Array) -> Array:
    """Return the ``(a,)`` penalties for remaining work that Tetris subtracts from the alignments of jobs.

    The remaining work of a job is its demand, summed over resources, times its remaining time. It is multiplied by
    ``ε = ā / p̄``, with the mean alignment ``ā`` of the jobs with an empty server and their mean remaining work ``p̄``
    (Grandl et al., section 3.3).
    """
    work = dominant(view, jobs).sum(axis=1) * left_s
    total = work.sum()
    return np.asarray(work * (alignments(view, jobs).sum() / total if total > 0 else 0.0))


def whole_gangs(optimum: SynergySchedule, gangs: Ints, server_gpus: Ints, server_type: Ints) -> Ints:
    """Round the fractional GPUs of gangs by largest remainder; return ``(entries, 3)`` job, server and GPUs.

    Every gang stays whole and on its GPU type. The fractional GPUs of each gang must sum to its size, and the GPUs on
    each server must fit.
    """
    down = np.floor(optimum.gpus + WHOLE).astype(np.int64)
    free = server_gpus - np.bincount(optimum.server, down, server_gpus.size).astype(np.int64)
    total = np.bincount(optimum.job, down, gangs.size).astype(np.int64)
    table = np.zeros((gangs.size, server_gpus.size), np.int64)
    table[optimum.job, optimum.server] = down
    rest = optimum.gpus - down
    for e in np.lexsort((optimum.server, optimum.job, -rest)).tolist():
        j, h = int(optimum.job[e]), int(optimum.server[e])
        if rest[e] > WHOLE and total[j] < gangs[j] and free[h] > 0:
            table[j, h] += 1
            total[j] += 1
            free[h] -= 1
    home = dict(zip(optimum.job.tolist(), server_type[optimum.server].tolist(), strict=True))
    for j, kind in home.items():
        while total[j] < gangs[j]:
            h = int(np.argmax(np.where(server_type == kind, free, -1)))
            part = int(min(free[h], gangs[j] - total[j]))
            table[j, h] += part
            total[j] += part
            free[h] -= part
    return np.column_stack((*np.nonzero(table), table[table > 0]))
