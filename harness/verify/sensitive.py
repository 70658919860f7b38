r"""Speeds of gangs with given CPUs and memory, recomputed by the checkers from the instance alone.

It shares no code with :mod:`schedgap.instances.sensitivity`; levels come from the checker of certificates.

The progress of a round is bounded from above by weak duality, in one matrix product, whatever the prices: for any
prices :math:`\lambda \ge 0` of the CPUs, memory and GPUs of each GPU type, no round in which every picked job
runs, each at its fair progress at least, makes more progress than

.. math:: \lambda \cdot \text{capacity} + \sum_j \max_{i, [c, m] : W_j[c,m] \ge W_j[C_g, M_g]}
          \left(w_j W_j[c,m] - \lambda_i \cdot (g_j, c, m)\right)

which at the best prices is at most Synergy's LP1 (eq. 1-5): LP1 requires fair progress only of a mix of configurations,
this bound requires it of each one. The terms belong to classes of equal jobs and do not depend on the round, so prices
computed for some rounds bound all of them. For rounds in which picked jobs wait, or run below their fair progress
(greedy, DRF, Tetris), the bound is a comparison with LP1, not a certificate.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from schedgap.certificates.basics import LESS, MORE, STRETCH
from schedgap.certificates.synergy import grid
from schedgap.harness.verify.rules import EXCESS, Groups, Rows
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.schema import Instance
from schedgap.instances.workload import Servers, Workload


def gangs(held: Rows) -> Groups:
    """Return one row per job and round with the job's resources in that round.

    `held` has one row per job, round (`row`) and server: its `gpu_type`, and the `gpus` (more than 0), `cpus` and
    `memory_gb` held there. The result has their totals, the GPU type of the first server, and whether there are others
    (`mixed`). `enough` has the ``(g, 2)`` effective CPUs and gigabytes: those per GPU on the server with the fewest,
    times the GPUs. `uneven` is a server's largest relative deviation of CPUs or memory from proportion to its GPUs.
    """
    gang = held.by("job", "row")
    gang.gpus, gang.cpus, gang.memory_gb = (gang.total(x) for x in (held.gpus, held.cpus, held.memory_gb))
    gang.gpu_type = gang.head(held.gpu_type)
    gang.mixed = gang.least(held.gpu_type) != gang.most(held.gpu_type)
    each = np.column_stack((held.cpus, held.memory_gb)) / held.gpus[:, None]
    mean = gang.spread(np.column_stack((gang.cpus, gang.memory_gb)) / gang.gpus[:, None])
    gang.uneven = gang.most((np.abs(each - mean) / np.maximum(mean, 1e-300)).max(axis=1, initial=0.0))
    gang.enough = gang.least(each) * gang.gpus[:, None]
    return gang


def beyond(gang: Groups, limit: Array) -> list[tuple[Bools, str]]:
    """Return the rules on the most CPUs and gigabytes `limit` ``(g, 2)`` of :func:`gangs`: who breaks each, and how.

    Bounds and profiles end there. Without this limit, a gang on more servers than it needs could be faster than both.
    """
    most, rest = limit * (1 + EXCESS), "more than the servers that its GPUs need can have"
    return [
        (gang.cpus > most[:, 0], f"{{cpus:g}} CPUs, {rest}"),
        (gang.memory_gb > most[:, 1], f"{{memory_gb:g}} GB, {rest}"),
    ]


def overfull(held: Rows, machines: Array, at: str) -> list[str]:
    """Report each resource that some server lacks in some round.

    `held` is as in :func:`gangs`, `machines` has the ``(h, 3)`` GPUs, CPUs and gigabytes of the servers, or ``(h, 1)``
    GPUs only, and `at` is the message template that names a round.
    """
    cells, lines = held.by("row", "server"), []
    amounts = (held.gpus, "GPUs"), (held.cpus, "CPUs"), (held.memory_gb, "GB")
    for capacity, (amount, unit) in zip(machines.T, amounts, strict=False):
        used, there = cells.total(amount), capacity[cells.server]
        text = f"{at}: {{used:.12g}} {unit} of {{server}} given out, {{there:g}} available"
        lines += cells.broken(used > there * (1 + EXCESS), text, used=used, there=there)
    return lines


def offered(offers: Rows, gangs: Ints, total: float, at: str) -> list[str]:
    """Report duplicate pairs of round (`row`) and picked job, and rounds whose picked jobs need more than all GPUs."""
    pairs, rounds = offers.by("row", "job"), offers.by("row")
    wanted = rounds.total(gangs[offers.job])
    text = f"{at}: jobs of {{wanted:g}} GPUs are offered, there are {total:g}"
    return [
        *pairs.broken(pairs.count > 1, "offered: a pair of round and job occurs once"),
        *rounds.broken(wanted > total, text, wanted=wanted),
    ]


class Classes(NamedTuple):
    """Classes of jobs with equal gangs, rates and sensitivities: ``(K,)`` one job of each, ``(n,)`` job classes."""

    first: Ints
    of: Ints


class Speeds:
    """Rates of an instance's jobs by GPU type, CPUs and memory; `work` and `cluster` are its jobs and servers."""

    def __init__(self, instance: Instance, work: Workload, cluster: Servers) -> None:
        self.work, self.cluster = work, cluster
        self._sensitivities = [job.sensitivity for job in instance.jobs]
        hosts = cluster.gpus > 0
        self._largest = [float(held[hosts].max()) for held in (cluster.gpus, cluster.cpus, cluster.memory_gb)]
        self._grids: dict[tuple[int, int], tuple[Array, Array, Array]] = {}

    @cached_property
    def pooled(self) -> Pooled:
        """Servers by GPU type."""
        return Pooled(self)

    @cached_property
    def configurations(self) -> list[list[tuple[Array, Array]]]:
        """Undominated configurations of each class on each GPU type that has GPUs, see :func:`_undominated`."""
        types = np.flatnonzero(self.pooled.gpus > 0).tolist()
        return [[_undominated(self, job, i) for i in types] for job in self.classes.first.tolist()]

    @cached_property
    def classes(self) -> Classes:
        """Classes of jobs, in order of first appearance."""
        keys = zip(self._sensitivities, self.work.gpus.tolist(), map(tuple, self.work.rates.tolist()), strict=True)
        seen: dict[object, int] = {}
        of = np.array([seen.setdefault(key, len(seen)) for key in keys], np.int64)
        return Classes(np.unique(of, return_index=True)[1], of)

    def grid(self, job: int, gpu_type: int) -> tuple[Array, Array, Array]:
        """Return a gang's levels of CPUs and of memory, ascending, and ``(c, m)`` iterations per second with them."""
        key = int(self.classes.of[job]), gpu_type
        if key not in self._grids:
            curve, rate = self._sensitivities[job], float(self.work.rates[job, gpu_type])
            empty = np.zeros(0), np.zeros(0), np.zeros((0, 0))
            gang = int(self.work.gpus[job])
            self._grids[key] = grid(curve.model_dump(), gang, rate, self._largest) if curve else empty
        return self._grids[key]

    def rate(self, job: Ints, gpu_type: Ints, cpus: Array, memory_gb: Array) -> Array:
        """Return ``(x,)`` iterations per second of gangs with these total CPUs and memory on GPUs of one type.

        Amounts are rounded down to the next level; below the lowest level, the rate is 0.
        """
        out = np.zeros(len(job))
        kind = self.classes.of[job] * len(self.work.gpu_types) + gpu_type
        order = np.argsort(kind, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1) if len(job) else ():
            *levels, rates = self.grid(int(job[part[0]]), int(gpu_type[part[0]]))
            amounts = (amount[part] * MORE for amount in (cpus, memory_gb))
            c, m = (np.searchsorted(axis, amount, "right") for axis, amount in zip(levels, amounts, strict=True))
            out[part] = np.pad(rates, ((1, 0), (1, 0)))[c, m]
        return out


_latest: list[Speeds] = []


def speeds_of(instance: Instance, work: Workload, cluster: Servers) -> Speeds:
    """Return the rates of an instance's jobs, cached for the latest jobs and servers.

    If a simulation solves a model in each round, every round is checked with the same jobs and servers: without the
    cache, recomputing their rates took a fifth of Synergy-Opt's time.
    """
    if not _latest or _latest[0].work is not work or _latest[0].cluster is not cluster:
        _latest[:] = [Speeds(instance, work, cluster)]
    return _latest[0]


class Pooled:
    """Servers pooled by GPU type, and the fair share of each job in each pool.

    Attributes
    ----------
    gpus, total
        ``(k,)`` GPUs, and ``(k, 3)`` GPUs, CPUs and gigabytes.
    limit, share
        ``(n, k, 2)`` a gang's largest, and its proportional, CPUs and gigabytes. If servers of a type differ, the
        smallest amount per GPU determines the share.
    fair
        ``(n, k)`` iterations per second with the share.
    able
        ``(n, k)`` whether the gang fits in the pool and advances with its share.
    weight
        ``(n,)`` factor from iterations per second to fractions of the fair progress on the best GPU type.
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


# ---------------------------------------------------------------- bounds on the progress of rounds

MOST_SEARCHES = 32
"""Largest number of rounds, equally spaced, for which prices are computed."""

Menu = tuple[Ints, Array, Array]
"""Configurations in the order of classes: ``(C,)`` class, ``(C,)`` progress in units of the objective, and ``(C, d)``
fractions of the GPUs, CPUs and memory of each GPU type."""


def menu(speeds: Speeds, weight: Array) -> Menu:
    """Return the undominated configurations with at least fair progress.

    `weight` has the ``(n,)`` factors from iterations per second to the objective.
    """
    total = speeds.pooled.total[speeds.pooled.gpus > 0]
    of, values, parts = [], [], []
    for k, (job, options) in enumerate(zip(speeds.classes.first.tolist(), speeds.configurations, strict=True)):
        # A job that can run nowhere makes no progress and holds nothing.
        nothing = [(np.zeros(1), np.zeros((1, 3)))]
        for i, (rate, held) in enumerate(options if any(rate.size for rate, _ in options) else nothing):
            part = np.zeros((rate.size, *total.shape))
            part[:, i] = held / total[i]
            of.append(np.full(rate.size, k))
            values.append(weight[job] * rate)
            parts.append(part.reshape(rate.size, total.size))
    return np.concatenate(of), np.concatenate(values), np.concatenate(parts)


def _undominated(speeds: Speeds, job: int, i: int) -> tuple[Array, Array]:
    """Return ``(q,)`` rates and ``(q, 3)`` GPUs, CPUs and gigabytes of a gang's undominated configurations."""
    pooled = speeds.pooled
    if not pooled.able[job, i]:
        return np.zeros(0), np.zeros((0, 3))
    *levels, rates = speeds.grid(job, i)
    fits = [axis <= most * STRETCH for axis, most in zip(levels, pooled.limit[job, i], strict=True)]
    rate = rates[np.ix_(*fits)]
    inside = (axis[fit] for axis, fit in zip(levels, fits, strict=True))
    c, m = (axis.ravel() for axis in np.meshgrid(*inside, indexing="ij"))
    best = np.pad(np.maximum.accumulate(np.maximum.accumulate(rate, axis=0), axis=1), ((1, 0), (1, 0)))
    below = np.maximum(best[:-1, 1:], best[1:, :-1])
    keep = ((rate > below) & (rate >= pooled.fair[job, i] * LESS)).ravel()
    gpus = np.full(int(keep.sum()), speeds.work.gpus[job])
    return rate.ravel()[keep], np.column_stack((gpus, c[keep], m[keep]))


def most_progress(speeds: Speeds, row: Ints, job: Ints, rounds: int, weight: Array) -> Array:
    """Return ``(R,)`` upper bounds on the progress of `rounds` rounds; 0 where no job is picked.

    `row` and `job` have the ``(offers,)`` rounds, from 0, and picked jobs; `weight` is as in :func:`menu`.
    """
    classes = speeds.classes
    count = np.zeros((rounds, len(classes.first)))
    np.add.at(count, (row, classes.of[job]), 1)
    return bounds(menu(speeds, weight), count)


def bounds(options: Menu, count: Array) -> Array:
    """Return ``(R,)`` upper bounds on the progress of rounds that have ``(R, K)`` jobs of each class."""
    from scipy.optimize import linprog  # imported here, so that only policies that allocate CPUs and memory pay for it

    different, which = np.unique(count, axis=0, return_inverse=True)
    first = np.full(len(different), len(count))
    np.minimum.at(first, which.ravel(), np.arange(len(count)))
    in_time = different[np.argsort(first, kind="stable")]
    chosen = np.unique(np.linspace(0, len(in_time) - 1, min(len(in_time), MOST_SEARCHES)).round().astype(np.int64))
    of, value, part = options
    size = part.shape[1]
    best = [np.zeros(size)]
    for row in in_time[chosen][in_time[chosen].any(axis=1)]:  # its best prices: a linear program in prices and profits
        here = row > 0
        able = here[of]
        rows = np.hstack([part[able], np.eye(row.size)[of[able]][:, here]])
        cost, free = np.concatenate([np.ones(size), row[here]]), [(0, None)] * size + [(None, None)] * int(here.sum())
        x = linprog(cost, -rows, -value[able], bounds=free).x
        best.append(np.zeros(size) if x is None else np.maximum(x[:size], 0.0))
    prices = np.stack(best)
    # the largest profit of a job of each class at each of the prices
    profit = np.maximum.reduceat(value - prices @ part.T, np.searchsorted(of, np.arange(count.shape[1])), axis=1)
    return np.asarray((STRETCH * prices.sum(axis=1)[:, None] + profit @ different.T).min(axis=0)[which.ravel()])
