r"""Rules of gangs with given CPUs and memory, and bounds on the progress of their rounds.

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

import numpy as np

from schedgap.certificates.basics import STRETCH
from schedgap.certificates.reading.sensitive import Sensitive
from schedgap.harness.check.rules import EXCESS, Groups, Rows
from schedgap.instances.arrays import Array, Bools, Ints


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
    """Return two rules, each as the gangs that break it and a message: no gang has more CPUs or memory than `limit`.

    `limit` has the ``(g, 2)`` most CPUs and gigabytes of :func:`gangs`. Profiles and bounds end there, so a gang that
    is spread over more servers than it needs could otherwise be faster than they allow.
    """
    most, rest = limit * (1 + EXCESS), "more than the servers that its GPUs need can have"
    return [
        (gang.cpus > most[:, 0], f"{{cpus:.12g}} CPUs, {rest}"),
        (gang.memory_gb > most[:, 1], f"{{memory_gb:.12g}} GB, {rest}"),
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
        text = f"{at}: {{used:.12g}} {unit} of {{server}} given out, {{there:.12g}} available"
        lines += cells.broken(used > there * (1 + EXCESS), text, used=used, there=there)
    return lines


def offered(offers: Rows, gangs: Ints, total: float, at: str) -> list[str]:
    """Report duplicate pairs of round (`row`) and picked job, and rounds whose picked jobs need more than all GPUs."""
    pairs, rounds = offers.by("row", "job"), offers.by("row")
    wanted = rounds.total(gangs[offers.job])
    text = f"{at}: jobs of {{wanted:.12g}} GPUs are offered, there are {total:.12g}"
    return [
        *pairs.broken(pairs.count > 1, "offered: a pair of round and job occurs once"),
        *rounds.broken(wanted > total, text, wanted=wanted),
    ]


# ---------------------------------------------------------------- bounds on the progress of rounds

MOST_SEARCHES = 32
"""Largest number of rounds, equally spaced, for which prices are computed."""

Menu = tuple[Ints, Array, Array]
"""Configurations in the order of classes: ``(C,)`` class, ``(C,)`` progress in units of the objective, and ``(C, d)``
fractions of the GPUs, CPUs and memory of each GPU type."""


def menu(read: Sensitive, weight: Array) -> Menu:
    """Return the configurations (GPU type, CPUs, memory) of each class of jobs that can be best.

    They give at least the fair progress, and none is worse than another in progress and in use.

    `weight` has the ``(n,)`` factors from iterations per second to the objective.
    """
    total = read.pooled.total[read.pooled.gpus > 0]
    of, values, parts = [], [], []
    for k, (job, options) in enumerate(zip(read.classes.first.tolist(), read.undominated, strict=True)):
        # A job that can run nowhere makes no progress and holds nothing.
        nothing = [(np.zeros(1), np.zeros((1, 3)))]
        for i, (rate, held) in enumerate(options if any(rate.size for rate, _ in options) else nothing):
            part = np.zeros((rate.size, *total.shape))
            part[:, i] = held / total[i]
            of.append(np.full(rate.size, k))
            values.append(weight[job] * rate)
            parts.append(part.reshape(rate.size, total.size))
    return np.concatenate(of), np.concatenate(values), np.concatenate(parts)


def most_progress(read: Sensitive, row: Ints, job: Ints, rounds: int, weight: Array) -> Array:
    """Return ``(R,)`` upper bounds on the progress of `rounds` rounds; 0 where no job is picked.

    `row` and `job` have the ``(offers,)`` rounds, from 0, and picked jobs; `weight` is as in :func:`menu`.
    """
    classes = read.classes
    count = np.zeros((rounds, len(classes.first)))
    np.add.at(count, (row, classes.of[job]), 1)
    return bounds(menu(read, weight), count)


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
