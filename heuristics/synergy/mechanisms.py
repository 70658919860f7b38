"""Mechanisms: on which servers the jobs of a round run, with which CPUs and memory (Synergy, sections 3.3, 4.1, 4.2).

A *demand* is the fewest CPUs and the least memory at which a job is fastest; its *base* is the demand clamped
elementwise to its share. Between the two, Synergy-Tune knows nothing: a job that misses one CPU falls back all the way,
which costs it most of its distance to the optimum (compare ``refill``). A gang that no server holds is spread over the
fewest, each GPU with its part of CPUs and memory, also by Greedy, which §3.3 lets skip it. Skipping gangs of up to
eight GPUs changes little: 39.11 h instead of 39.15 h for jobs 1000 to 2000 of ``gen/synergy-128-gangs`` at 5.5 jobs per
hour and the split (50, 0, 50).

The paper's text has Synergy-Tune sort jobs "by their GPU demands, followed by CPU, and memory demand", its artefact
places jobs in the policy's order (under LAS by descending GPUs, then in that order), and the paper's numbers are the
artefact's. With its trace rebuilt (FIFO, 128 GPUs, 9 single-GPU jobs per hour, split (20, 70, 10), mean completion time
of jobs 4000 to 5000), proportional allocation takes 80.65 h; Tune takes 35.73 h by demand, 21.59 h in the policy's
order, and 21.53 h with first fit as well; the paper prints 81 and 22 h. It cuts both ways: for jobs 1000 to 2000 of
``gen/synergy-128`` it is 23.1 h against 20.9 h, of the split (33, 33, 33) 14.4 h against 15.2 h, and of (60, 30, 10)
18.2 h against 19.8 h. By demand is the default, because it is what is printed. The direction is not: the largest go
first here, because with the smallest first Tune gains next to nothing (76.4 h on the rebuilt trace, 32.9 h for those
jobs of ``gen/synergy-128``).

The paper's lines for Opt count ILP1's progress and place nothing. On one server of all GPUs there is nothing to place:
``gen/synergy-128?servers=1&gpus_per_server=128`` has the same jobs, demands and shares, and Opt makes all of ILP1's
progress there. Its jobs 1000 to 2000 take 18.54 h by Opt, and by Tune as well: of Tune's 23.1 h on 16 servers,
placement costs 4.6 h.

Falling back never fails: if all jobs of a server hold at most their shares, they fit on it. That needs clamping of both
at once: a job that is switched to its share, as the paper prints it, may hold more memory than before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from schedgap.heuristics.registry import Oracle
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.views.synergy import Schedule, View

PLACEMENT = "synergy.lp2.vertex"
"""Model whose decision Synergy-Opt rounds."""

IDEAL, IDEAL_OF_TYPES = "synergy.ilp1", "synergy.hetero.ilp1"
"""Models whose optimum it places where there is no such decision, on one GPU type and on several."""

WHOLE = 1e-6
"""Distance from a whole number of GPUs that counts as whole."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Who runs where: job, server and GPUs, CPUs, gigabytes of ``entries``."""

    job: Ints
    server: Ints
    gpus: Ints
    cpus: Array
    memory_gb: Array


@dataclass(frozen=True, eq=False)
class Round:
    """A request to a mechanism: the jobs of a round.

    `queue` ``(a,)`` may run, in the policy's order, with `left_s` ``(a,)`` remaining seconds with the share; `jobs` and
    `types` ``(m,)`` are those picked, whose GPU demands fit, and their GPU types.
    """

    queue: Ints
    jobs: Ints
    types: Ints
    left_s: Array


Mechanism = Callable[[Round], Placement]


class Mechanisms:
    """The mechanisms on the servers of a view; each takes a :class:`Round` and returns a :class:`Placement`.

    `order` says whom `tune` and `refill` place first (``demand`` or ``policy``), `fit` where (``best`` or ``first``);
    `opt` needs the oracle.
    """

    def __init__(self, view: View, oracle: Oracle, *, order: str = "demand", fit: str = "best") -> None:
        from schedgap.heuristics.synergy import _kernels

        self.kernels, self.view, self.oracle = _kernels, view, oracle
        self.by_demand, self.tight = order == "demand", fit == "best"
        self.kind, self.gpus, servers = view.profiles.kind, view.workload.gpus, view.servers
        capacity = np.ascontiguousarray(servers.amounts[:, 1:])
        self.hosts = _kernels.Hosts(servers.gpu_type, servers.gpus, capacity, capacity)
        # By kind, the GPU types by preference; −1 fills up.
        self.options: Ints = np.full((view.profiles.kinds, view.types), -1, np.int64)
        for kind, types in enumerate(view.preference):
            self.options[kind, : len(types)] = types
        # Demands ``(K, k, 2)``, and bases where these fit on no empty servers (a gang of 5 on servers of 4).
        self.static: Array = view.needs.demand.copy()
        for kind, i in np.argwhere(view.needs.able).tolist():
            gpus, one = view.profiles.gpus[[kind]], self.static[kind, i].reshape(1, 1, 2)
            if not len(_kernels.pack(gpus, np.full((1, 1), i), one, one, False, False, self.hosts)[0]):
                self.static[kind, i] = view.needs.base[kind, i]
        self._last: dict[str, tuple[bytes, Placement]] = {}

    def _options(self, asked: Round) -> tuple[Ints, Array]:
        """Return ``(a, k)`` GPU types of the queue by preference, and demands there.

        Where the policy has chosen a type, it comes first.
        """
        kind = self.kind[asked.queue]
        options = self.options[kind]
        if self.view.mixed:
            chosen = np.full(self.view.size, -1, np.int64)
            chosen[asked.jobs] = asked.types
            first = chosen[asked.queue][:, None]
            order = np.argsort((options != first) | (first < 0), axis=1, kind="stable")
            options = np.take_along_axis(options, order, axis=1)
        return options, self.static[kind[:, None], options]

    def _placement(self, jobs: Ints, entries: Ints, amount: Array) -> Placement:
        place, server, gpus = entries.T
        job = jobs[place]
        held = amount[place] * (gpus / self.gpus[job])[:, None]
        return Placement(job, server, gpus, held[:, 0], held[:, 1])

    def _remembered(self, mechanism: str, jobs: Ints, types: Ints, place: Callable[[], Placement]) -> Placement:
        """Return the mechanism's previous placement where the same jobs run on the same types."""
        key = np.concatenate((jobs, types)).tobytes()
        if mechanism not in self._last or self._last[mechanism][0] != key:
            self._last[mechanism] = key, place()
        return self._last[mechanism][1]

    def proportional(self, asked: Round) -> Placement:
        """Give every picked job its GPU-proportional share of CPUs and memory (§2)."""
        order = np.argsort(asked.jobs)
        jobs, types = asked.jobs[order], asked.types[order]
        share = self.view.needs.share[self.kind[jobs], types]
        return self._remembered("proportional", jobs, types, lambda: self._packed(jobs, types, share, share))

    def tune(self, asked: Round) -> Placement:
        """Give every picked job its demand, or what is left of it (Synergy-Tune, §4.2).

        Jobs go by descending GPUs, CPUs and memory, each on the fullest server that holds its demand; with
        ``order=policy`` in the policy's order, with ``fit=first`` on the first such server. One that fits nowhere falls
        back to its base, the elementwise least of demand and share; if that does not fit, jobs above their shares on
        its server do, the most above first.
        """
        # By demand, who comes first in the queue changes nothing.
        order = np.argsort(asked.jobs) if self.by_demand else np.arange(asked.jobs.size)
        jobs, types = asked.jobs[order], asked.types[order]
        return self._remembered("tune", jobs, types, lambda: self._tuned(jobs, types))

    def refill(self, asked: Round) -> Placement:
        """Do as `tune`, then give what servers have left to jobs that fell back, in the policy's order; our own."""
        return self._tuned(asked.jobs, asked.types, refill=True)

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
        """Place jobs with what they want ``(m, 2)`` or the least of it; leftovers go to them in the order of `jobs`.

        The largest demands come first where it goes `by_demand`, otherwise the order of `jobs` counts; each goes to the
        server that it fills best where packing is to be `tight`, otherwise to the first with room.
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
        """Return what placed jobs hold in all when leftovers go to them, one after the other."""
        kind, seen = self.kind[jobs], self.view
        want = seen.needs.demand[kind, types]
        return self.kernels.refill(entries, self.gpus[jobs], amount, want, self.hosts, kind, types, seen.profiles)

    def greedy(self, asked: Round) -> Placement:
        """Give jobs in the queue's order their whole demands, on the first server that holds them (§3.3).

        One that fits nowhere is passed over.
        """
        options, want = self._options(asked)
        found = self.kernels.pack(self.gpus[asked.queue], options, want, want, False, False, self.hosts)
        return self._placement(asked.queue, *found)

    def tetris(self, asked: Round) -> Placement:
        """Give whole demands, always to the job and server of the largest alignment, less the remaining work.

        That is Tetris (Grandl et al., SIGCOMM 2014).
        """
        options, want = self._options(asked)
        penalty = penalties(self.view, asked.queue, asked.left_s)
        group = self.kind[asked.queue] * self.view.types + options[:, 0]
        order = np.lexsort((penalty, group))
        jobs, group = asked.queue[order], group[order]
        first = np.append(np.flatnonzero(np.diff(group, prepend=-1)), group.size)
        table = (self.gpus[jobs], options[order], want[order], penalty[order])
        return self._placement(jobs, *self.kernels.align(*table, first, self.hosts))

    def opt(self, asked: Round) -> Placement:
        """Give picked jobs the CPUs and memory of ILP1, placed by the vertex of LP2 (Synergy-Opt, §4.1).

        Fractions of GPUs are rounded by largest remainder; where servers are overfull then, jobs fall back, and
        leftovers are given out. Best fit instead of the vertex, where that makes more progress.
        """
        jobs = np.sort(asked.jobs)
        return self._remembered("opt", jobs, jobs, lambda: self._rounded(jobs))

    def _rounded(self, jobs: Ints) -> Placement:
        """Place what the optimum gives jobs, by the vertex and by best fit, and take what makes more progress."""
        asked = replace(self.view, runnable=jobs)
        try:
            found = self.oracle(PLACEMENT, asked)
        except NotApplicableError:
            # Where servers of a GPU type differ, LP2 can be infeasible: none holds what one job gets of the ILP.
            ideal = self.oracle(IDEAL_OF_TYPES if self.view.mixed else IDEAL, asked)
            return self._fitted(jobs, ideal, ideal.server)
        options = (self._whole(jobs, found), self._fitted(jobs, found, self.hosts.types[found.server]))
        return max(options, key=self._progress)

    def _whole(self, jobs: Ints, found: Schedule) -> Placement:
        """Place the optimum of LP2, with whole GPUs."""
        table = whole_gangs(found, self.gpus, self.hosts.free, self.hosts.types)
        table[:, 0] = np.searchsorted(jobs, table[:, 0])
        types = np.zeros(jobs.size, np.int64)
        types[table[:, 0]] = self.hosts.types[table[:, 1]]
        base = self.view.needs.base[self.kind[jobs], types]
        held = self.kernels.settle(table, self.gpus[jobs], _totals(jobs, found), base, self.hosts)
        return self._placement(jobs, table, self._refilled(jobs, types, table, held))

    def _fitted(self, jobs: Ints, found: Schedule, gpu_type: Ints) -> Placement:
        """Place the CPUs and memory that jobs hold on GPU types, as Synergy-Tune places demands."""
        wanted, types = _totals(jobs, found), np.zeros(jobs.size, np.int64)
        types[np.searchsorted(jobs, found.job)] = gpu_type
        least = np.minimum(self.view.needs.base[self.kind[jobs], types], wanted)
        return self._packed(jobs, types, wanted, least, refill=True)

    def _progress(self, placed: Placement) -> float:
        jobs, first = np.unique(placed.job, return_index=True)
        types = self.hosts.types[placed.server[first]]
        rate = self.view.profiles.rate_of(self.kind[jobs], types, *_totals(jobs, placed).T)
        return float(self.view.weight[jobs] @ rate)


def _totals(jobs: Ints, found: Schedule | Placement) -> Array:
    """Return ``(m, 2)`` CPUs and gigabytes that jobs hold over all entries."""
    amount = np.zeros((jobs.size, 2))
    np.add.at(amount, np.searchsorted(jobs, found.job), np.column_stack((found.cpus, found.memory_gb)))
    return amount


def demands(view: View, jobs: Ints) -> tuple[Array, Ints]:
    """Return ``(a, 3)`` GPUs, CPUs and memory that jobs demand on their best GPU type, and ``(a,)`` that type."""
    kind = view.profiles.kind[jobs]
    first = view.preferred[kind]
    return np.column_stack((view.workload.gpus[jobs], view.needs.demand[kind, first])), first


def dominant(view: View, jobs: Ints) -> Array:
    """Return ``(a, 3)`` GPUs, CPUs and memory that jobs demand, in parts of the whole cluster."""
    pools = view.pools
    whole = np.array([pools.gpus.sum(), pools.cpus.sum(), pools.memory_gb.sum()])
    return np.asarray(demands(view, jobs)[0] / whole)


def alignments(view: View, jobs: Ints) -> Array:
    """Return ``(a,)`` alignments of jobs with an empty server of their best GPU type: Σ of demands in parts of it."""
    demand, first = demands(view, jobs)
    return np.asarray((demand / view.pools.largest[first]).sum(axis=1))


def penalties(view: View, jobs: Ints, left_s: Array) -> Array:
    """Return ``(a,)`` penalties that Tetris subtracts from alignments: remaining work, scaled to the mean alignment.

    The remaining work of a job is its demand, summed over resources, times the time it is left; ``ε = ā / p̄`` with the
    mean alignment of the jobs with an empty server (Grandl et al., section 3.3).
    """
    work = dominant(view, jobs).sum(axis=1) * left_s
    total = work.sum()
    return np.asarray(work * (alignments(view, jobs).sum() / total if total > 0 else 0.0))


def whole_gangs(found: Schedule, gangs: Ints, server_gpus: Ints, server_type: Ints) -> Ints:
    """Return ``(entries, 3)`` job, server and GPUs: fractions of GPUs rounded by largest remainder.

    Every gang stays whole and on its GPU type; the fractions of each server and of each gang add up.
    """
    down = np.floor(found.gpus + WHOLE).astype(np.int64)
    free = server_gpus - np.bincount(found.server, down, server_gpus.size).astype(np.int64)
    got = np.bincount(found.job, down, gangs.size).astype(np.int64)
    given = np.zeros((gangs.size, server_gpus.size), np.int64)
    given[found.job, found.server] = down
    rest = found.gpus - down
    for e in np.lexsort((found.server, found.job, -rest)).tolist():
        j, h = int(found.job[e]), int(found.server[e])
        if rest[e] > WHOLE and got[j] < gangs[j] and free[h] > 0:
            given[j, h] += 1
            got[j] += 1
            free[h] -= 1
    home = dict(zip(found.job.tolist(), server_type[found.server].tolist(), strict=True))
    for j, kind in home.items():
        while got[j] < gangs[j]:
            h = int(np.argmax(np.where(server_type == kind, free, -1)))
            part = int(min(free[h], gangs[j] - got[j]))
            given[j, h] += part
            got[j] += part
            free[h] -= part
    return np.column_stack((*np.nonzero(given), given[given > 0]))
