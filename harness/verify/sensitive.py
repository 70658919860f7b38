r"""How fast gangs run with given CPUs and memory, from the instance alone: the checkers' own arithmetic.

It shares no code with :mod:`schedgap.instances.sensitivity`: levels are those of the checker of certificates.

The progress of a round is bounded from above by weak duality, in one matrix product, wherever prices come from: for any
prices :math:`\lambda \ge 0` of the CPUs, memory and GPUs of each GPU type, no round in which every picked job
runs, each at its fair progress at least, makes more progress than

.. math:: \lambda \cdot \text{capacity} + \sum_j \max_{i, [c, m] : W_j[c,m] \ge W_j[C_g, M_g]}
          \left(w_j W_j[c,m] - \lambda_i \cdot (g_j, c, m)\right)

which at the best prices is at most Synergy's LP1 (eq. 1-5): LP1 asks for the fair progress of a mix of configurations,
this for that of each one. The terms belong to classes of equal jobs and do not depend on the round, so that prices
found for some rounds bound all. For rounds in which picked jobs wait, or run below their fair progress (greedy, DRF,
Tetris), the bound is a comparison with what LP1 would do, not a certificate.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from schedgap.harness.verify.proofs.synergy import grid
from schedgap.harness.verify.rules import Groups, Rows
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.schema import Instance
from schedgap.instances.workload import Servers, Workload

SLACK = 1e-9
"""Relative CPUs or memory that may be missing at a level."""


def gangs(held: Rows) -> Groups:
    """Return a row per job and round with what the job holds in it.

    A row of `held` is of a job, round (`row`) and server: its `gpu_type`, and the `gpus` (more than 0), `cpus` and
    `memory_gb`. Of these there are totals, the GPU type of the first server, and whether there are others (`mixed`);
    `enough`, ``(g, 2)`` CPUs and gigabytes that count, those of the GPU that has least times its GPUs; and `uneven`,
    the largest relative distance of any server's CPUs and memory from proportion to the GPUs there.
    """
    found = held.by("job", "row")
    found.gpus, found.cpus, found.memory_gb = (found.total(x) for x in (held.gpus, held.cpus, held.memory_gb))
    found.gpu_type = found.head(held.gpu_type)
    found.mixed = found.least(held.gpu_type) != found.most(held.gpu_type)
    each = np.column_stack((held.cpus, held.memory_gb)) / held.gpus[:, None]
    mean = found.spread(np.column_stack((found.cpus, found.memory_gb)) / found.gpus[:, None])
    found.uneven = found.most((np.abs(each - mean) / np.maximum(mean, 1e-300)).max(axis=1, initial=0.0))
    found.enough = found.least(each) * found.gpus[:, None]
    return found


def overfull(held: Rows, machines: Array, at: str) -> list[str]:
    """Return a line for each resource of which some server has too little in some round.

    `held` is as in :func:`gangs`, `machines` ``(h, 3)`` GPUs, CPUs and gigabytes of the servers, or ``(h, 1)`` GPUs
    only, and `at` the template of how to name a round.
    """
    cells, lines = held.by("row", "server"), []
    amounts = (held.gpus, "GPUs"), (held.cpus, "CPUs"), (held.memory_gb, "GB")
    for capacity, (amount, unit) in zip(machines.T, amounts, strict=False):
        given, there = cells.total(amount), capacity[cells.server]
        text = f"{at}: {{given:.9g}} {unit} of {{server}} given out, {{there:g}} available"
        lines += cells.broken(given > there * (1 + SLACK), text, given=given, there=there)
    return lines


def offered(offers: Rows, gangs: Ints, total: float, at: str) -> list[str]:
    """Return a line for a pair of round (`row`) and picked job that occurs twice, and for more GPUs than there are."""
    pairs, rounds = offers.by("row", "job"), offers.by("row")
    wanted = rounds.total(gangs[offers.job])
    told = f"{at}: jobs of {{wanted:g}} GPUs are offered, there are {total:g}"
    return [
        *pairs.broken(pairs.count > 1, "offered: a pair of round and job occurs once"),
        *rounds.broken(wanted > total, told, wanted=wanted),
    ]


class Classes(NamedTuple):
    """Jobs of equal gangs, rates and sensitivities: a representative of each class ``(K,)``, and ``(n,)`` classes."""

    first: Ints
    of: Ints


class Speeds:
    """Rates of the jobs of an instance, also given as arrays with its servers, by GPU type, CPUs and memory."""

    def __init__(self, instance: Instance, work: Workload, cluster: Servers) -> None:
        self.work, self.cluster = work, cluster
        self.given = [job.sensitivity for job in instance.jobs]
        hosts = cluster.gpus > 0
        self._largest = [float(held[hosts].max()) for held in (cluster.gpus, cluster.cpus, cluster.memory_gb)]
        self._grids: dict[tuple[int, int], tuple[Array, Array, Array]] = {}

    @cached_property
    def pooled(self) -> Pooled:
        """Servers by GPU type."""
        return Pooled(self)

    @cached_property
    def configurations(self) -> list[list[tuple[Array, Array]]]:
        """What gangs of each class may hold on each GPU type that there is, see :func:`_undominated`."""
        types = np.flatnonzero(self.pooled.gpus > 0).tolist()
        return [[_undominated(self, job, i) for i in types] for job in self.classes.first.tolist()]

    @cached_property
    def classes(self) -> Classes:
        """Jobs by class, in the order in which classes occur first."""
        keys = zip(self.given, self.work.gpus.tolist(), map(tuple, self.work.rates.tolist()), strict=True)
        seen: dict[object, int] = {}
        of = np.array([seen.setdefault(key, len(seen)) for key in keys], np.int64)
        return Classes(np.unique(of, return_index=True)[1], of)

    def grid(self, job: int, gpu_type: int) -> tuple[Array, Array, Array]:
        """Return ascending totals of CPUs and of memory of a gang, and ``(c, m)`` iterations per second with them."""
        key = int(self.classes.of[job]), gpu_type
        if key not in self._grids:
            given, rate = self.given[job], float(self.work.rates[job, gpu_type])
            empty = np.zeros(0), np.zeros(0), np.zeros((0, 0))
            gang = int(self.work.gpus[job])
            self._grids[key] = grid(given.model_dump(), gang, rate, self._largest) if given else empty
        return self._grids[key]

    def rate(self, job: Ints, gpu_type: Ints, cpus: Array, memory_gb: Array) -> Array:
        """Return ``(x,)`` iterations per second of gangs that hold so much in total on GPUs of one type; 0 if none.

        Amounts count as much as the highest level at or below them.
        """
        out = np.zeros(len(job))
        kind = self.classes.of[job] * len(self.work.gpu_types) + gpu_type
        order = np.argsort(kind, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1) if len(job) else ():
            *levels, rates = self.grid(int(job[part[0]]), int(gpu_type[part[0]]))
            amounts = (amount[part] * (1 + SLACK) for amount in (cpus, memory_gb))
            c, m = (np.searchsorted(axis, amount, "right") for axis, amount in zip(levels, amounts, strict=True))
            out[part] = np.pad(rates, ((1, 0), (1, 0)))[c, m]
        return out


_kept: list[Speeds] = []


def speeds_of(instance: Instance, work: Workload, cluster: Servers) -> Speeds:
    """Return the rates of the jobs of an instance; the last ones are kept.

    A run that solves each of its rounds has every round checked, all with the same jobs and servers: making their rates
    anew was a fifth of Synergy-Opt's time.
    """
    if not _kept or _kept[0].work is not work or _kept[0].cluster is not cluster:
        _kept[:] = [Speeds(instance, work, cluster)]
    return _kept[0]


class Pooled:
    """Servers by GPU type, and what jobs are due there; arrays are made anew from the servers.

    Attributes
    ----------
    gpus, total
        ``(k,)`` GPUs, and ``(k, 3)`` GPUs, CPUs and gigabytes.
    limit, share
        ``(n, k, 2)`` the most CPUs and gigabytes of a gang, and what is proportional to its GPUs, where servers of a
        type differ by the least per GPU.
    fair
        ``(n, k)`` iterations per second with the share.
    able
        ``(n, k)`` whether the gang fits there and advances with its share.
    weight
        ``(n,)`` factor from iterations per second to parts of the fair progress on the best GPU type.
    """

    def __init__(self, speeds: Speeds) -> None:
        work, cluster = speeds.work, speeds.cluster
        types = len(work.gpu_types)
        held = np.column_stack((cluster.gpus, cluster.cpus, cluster.memory_gb)).astype(float)
        self.total, least, largest = np.zeros((types, 3)), np.zeros((types, 2)), np.ones((types, 3))
        for i in range(types):
            here = held[(cluster.gpu_type == i) & (cluster.gpus > 0)]
            if len(here):
                self.total[i], largest[i] = here.sum(axis=0), here.max(axis=0)
                least[i] = (here[:, 1:] / here[:, :1]).min(axis=0)
        self.gpus = self.total[:, 0]
        gang = work.gpus[:, None]
        self.share = gang[:, :, None] * least
        self.limit = np.ceil(gang / largest[:, 0])[:, :, None] * largest[:, 1:]
        first, of = speeds.classes.first, speeds.classes.of
        job, kind = np.repeat(first, types), np.tile(np.arange(types), len(first))
        fair = speeds.rate(job, kind, *self.share[job, kind].T).reshape(-1, types)
        self.fair = np.where(gang <= self.gpus, fair[of], 0.0)
        self.able = self.fair > 0
        best = self.fair.max(axis=1)
        self.weight: Array = np.divide(1.0, best, out=np.zeros(work.size), where=best > 0)


# ---------------------------------------------------------------- the most that rounds can achieve

MOST_SEARCHES = 32
"""So many rounds, at equal distances, are searched for prices of their own."""

Menu = tuple[Ints, Array, Array]
"""What classes of jobs may hold, configuration by configuration in the order of classes: ``(C,)`` class, ``(C,)``
progress in units of the objective, and ``(C, d)`` parts of the GPUs, CPUs and memory of each GPU type."""


def menu(speeds: Speeds, weight: Array) -> Menu:
    """Return the configurations at fair progress or more that no other one dominates.

    `weight` is ``(n,)`` the factor from iterations per second to the objective.
    """
    total = speeds.pooled.total[speeds.pooled.gpus > 0]
    of, values, parts = [], [], []
    for k, (job, kept) in enumerate(zip(speeds.classes.first.tolist(), speeds.configurations, strict=True)):
        # A job that can run nowhere makes no progress and holds nothing.
        nothing = [(np.zeros(1), np.zeros((1, 3)))]
        for i, (rate, held) in enumerate(kept if any(rate.size for rate, _ in kept) else nothing):
            part = np.zeros((rate.size, *total.shape))
            part[:, i] = held / total[i]
            of.append(np.full(rate.size, k))
            values.append(weight[job] * rate)
            parts.append(part.reshape(rate.size, total.size))
    return np.concatenate(of), np.concatenate(values), np.concatenate(parts)


def _undominated(speeds: Speeds, job: int, i: int) -> tuple[Array, Array]:
    """Return rates, and GPUs, CPUs and gigabytes, of one gang's undominated configurations on one GPU type."""
    pooled = speeds.pooled
    if not pooled.able[job, i]:
        return np.zeros(0), np.zeros((0, 3))
    *levels, rates = speeds.grid(job, i)
    fits = [axis <= most * (1 + SLACK) for axis, most in zip(levels, pooled.limit[job, i], strict=True)]
    rate = rates[np.ix_(*fits)]
    inside = (axis[fit] for axis, fit in zip(levels, fits, strict=True))
    c, m = (axis.ravel() for axis in np.meshgrid(*inside, indexing="ij"))
    best = np.pad(np.maximum.accumulate(np.maximum.accumulate(rate, axis=0), axis=1), ((1, 0), (1, 0)))
    below = np.maximum(best[:-1, 1:], best[1:, :-1])
    keep = ((rate > below) & (rate >= pooled.fair[job, i] * (1 - SLACK))).ravel()
    gpus = np.full(int(keep.sum()), speeds.work.gpus[job])
    return rate.ravel()[keep], np.column_stack((gpus, c[keep], m[keep]))


def most_progress(speeds: Speeds, row: Ints, job: Ints, rounds: int, weight: Array) -> Array:
    """Return ``(R,)`` upper bounds on the progress of `rounds` rounds in which jobs are picked; 0 where none is.

    `row` and `job` are ``(offers,)`` round, from 0, and picked job; `weight` is as in :func:`menu`.
    """
    classes = speeds.classes
    count = np.zeros((rounds, len(classes.first)))
    np.add.at(count, (row, classes.of[job]), 1)
    return bounds(menu(speeds, weight), count)


def bounds(options: Menu, count: Array) -> Array:
    """Return ``(R,)`` upper bounds on the progress of rounds with ``(R, K)`` jobs of each class on a menu."""
    from scipy.optimize import linprog  # only policies that give out CPUs and memory pay for importing it

    different, which = np.unique(count, axis=0, return_inverse=True)
    first = np.full(len(different), len(count))
    np.minimum.at(first, which.ravel(), np.arange(len(count)))
    in_time = different[np.argsort(first, kind="stable")]
    chosen = np.unique(np.linspace(0, len(in_time) - 1, min(len(in_time), MOST_SEARCHES)).round().astype(np.int64))
    of, value, part = options
    size = part.shape[1]
    best = [np.zeros(size)]
    for row in in_time[chosen][in_time[chosen].any(axis=1)]:  # the best for it: a linear program in prices and profits
        here = row > 0
        able = here[of]
        rows = np.hstack([part[able], np.eye(row.size)[of[able]][:, here]])
        cost, free = np.concatenate([np.ones(size), row[here]]), [(0, None)] * size + [(None, None)] * int(here.sum())
        found = linprog(cost, -rows, -value[able], bounds=free)
        best.append(np.zeros(size) if found.x is None else np.maximum(found.x[:size], 0.0))
    prices = np.stack(best)
    # the most that a job of each class is worth beyond what it holds, at each of the prices
    profit = np.maximum.reduceat(value - prices @ part.T, np.searchsorted(of, np.arange(count.shape[1])), axis=1)
    return np.asarray((prices.sum(axis=1)[:, None] + profit @ different.T).min(axis=0)[which.ravel()])
