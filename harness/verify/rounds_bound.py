r"""An upper bound on the progress of every round of a history, by weak duality: no solver, one matrix product.

For any prices :math:`\lambda \ge 0` of the CPUs, memory and GPUs of each GPU type, no round in which every picked job
runs, each at its fair progress at least, makes more progress than

.. math:: \lambda \cdot \text{capacity} + \sum_j \max_{i, [c, m] : W_j[c,m] \ge W_j[C_g, M_g]}
          \left(w_j W_j[c,m] - \lambda_i \cdot (g_j, c, m)\right)

which at the best prices is at most Synergy's LP1 (eq. 1-5): LP1 asks for the fair progress of a mix of configurations,
this for that of each one. The terms belong to classes of equal jobs and do not depend on the round, so that prices
found for some rounds bound all. For rounds in which picked jobs wait, or run below their fair progress (greedy, DRF,
Tetris), the bound is a comparison with what LP1 would do, not a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedgap.harness.verify.sensitive import SLACK, Speeds
from schedgap.instances.arrays import Array, Ints

MOST_SEARCHES = 32
"""So many rounds, at equal distances, are searched for prices of their own."""

BATCH = 8
"""Rounds that are searched together: those near one another have the same classes of jobs."""

STEPS = np.geomspace(0.3, 5e-4, 24)
"""Temperature of each Newton step, in mean values of a job."""


LEAST_PRICE, MOST_PRICE = 1e-9, 10.0
"""Prices of all of a resource, in mean values of a job, and of a job of the round: best ones are within."""


@dataclass(frozen=True, eq=False)
class Menu:
    """What ``K`` classes of jobs may hold: up to ``C`` configurations, ``d`` = three resources of each GPU type.

    Attributes
    ----------
    value
        ``(K, C)`` progress in units of the objective; ``-inf`` where a class has fewer configurations.
    part
        ``(K, C, d)`` parts of the GPUs, CPUs and memory of each type.
    """

    value: Array
    part: Array


def menu(speeds: Speeds, weight: Array) -> Menu:
    """Return the configurations at fair progress or more that no other one dominates.

    `weight` is ``(n,)`` the factor from iterations per second to the objective.
    """
    pooled = speeds.pooled
    types = np.flatnonzero(pooled.gpus > 0).tolist()
    rows: list[tuple[Array, Array]] = []
    for job in speeds.classes.first.tolist():
        kept = [_kept(speeds, job, i) for i in types]
        value = np.concatenate([weight[job] * rate for rate, _ in kept])
        part = np.zeros((value.size, len(types), 3))
        column = np.repeat(np.arange(len(types)), [rate.size for rate, _ in kept])
        part[np.arange(value.size), column] = np.concatenate([held for _, held in kept]) / pooled.total[types][column]
        # A job that can run nowhere makes no progress and holds nothing.
        rows.append((value, part) if value.size else (np.zeros(1), np.zeros((1, len(types), 3))))
    most = max(len(value) for value, _ in rows)
    values, parts = np.full((len(rows), most), -np.inf), np.zeros((len(rows), most, len(types), 3))
    for k, (value, part) in enumerate(rows):
        values[k, : len(value)], parts[k, : len(value)] = value, part
    return Menu(values, parts.reshape(len(rows), most, -1))


def _kept(speeds: Speeds, job: int, i: int) -> tuple[Array, Array]:
    """Return rates, and GPUs, CPUs and gigabytes, of one gang's undominated configurations on one GPU type."""
    pooled = speeds.pooled
    if not pooled.able[job, i]:
        return np.zeros(0), np.zeros((0, 3))
    cpus, memory_gb = (
        axis[axis <= most * (1 + SLACK)] for axis, most in zip(speeds.levels(job), pooled.limit[job, i], strict=True)
    )
    c, m = (grid.ravel() for grid in np.meshgrid(cpus, memory_gb, indexing="ij"))
    where = np.full(c.size, job), np.full(c.size, i)
    rate = speeds.rate(*where, c, m).reshape(cpus.size, memory_gb.size)
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
    different, which = np.unique(count, axis=0, return_inverse=True)
    first = np.full(len(different), len(count))
    np.minimum.at(first, which.ravel(), np.arange(len(count)))
    in_time = different[np.argsort(first, kind="stable")]
    chosen = np.unique(np.linspace(0, len(in_time) - 1, min(len(in_time), MOST_SEARCHES)).round().astype(np.int64))
    batches = np.array_split(in_time[chosen], -(-len(chosen) // BATCH)) if len(chosen) else []
    prices = np.concatenate([np.zeros((1, options.part.shape[2])), *(_prices(options, batch) for batch in batches)])
    # the most that a job of each class is worth beyond what it holds, at each of the prices
    profit = np.stack([(options.value - options.part @ price).max(axis=1) for price in prices])
    return np.asarray((prices.sum(axis=1)[:, None] + profit @ different.T).min(axis=0)[which.ravel()])


def _prices(options: Menu, count: Array) -> Array:
    """Return ``(R, d)`` good prices for rounds.

    The best of what Newton's method comes by: the maxima are smoothed (``log Σ exp``), prices are kept positive by a
    logarithmic barrier, and both get sharper from step to step.
    """
    here = count.any(axis=0)
    if not here.any():
        return np.zeros((len(count), options.part.shape[2]))
    n, part = count[:, here].astype(float), options.part[here]
    scale = float((n @ options.value[here].max(axis=1)).sum() / n.sum()) or 1.0
    value = options.value[here] / scale
    jobs = n.sum(axis=1, keepdims=True)
    price = np.repeat(np.maximum(jobs, 1.0) / (2.0 * part.shape[2]), part.shape[2], axis=1)
    best, kept = np.full(len(n), np.inf), price
    for temperature in STEPS:
        worth = value - np.einsum("rd,kcd->rkc", price, part, optimize=True)
        bound = price.sum(axis=1) + (n * worth.max(axis=2)).sum(axis=1)
        kept = np.where((bound < best)[:, None], price, kept)
        best = np.minimum(best, bound)
        price = _stepped(price, n, worth, part, float(temperature))
    return kept * scale


def _stepped(price: Array, n: Array, worth: Array, part: Array, temperature: float) -> Array:
    """Return the prices after a Newton step on the smoothed bound; none changes more than threefold."""
    rounds, size = price.shape
    chance = np.exp((worth - worth.max(axis=2, keepdims=True)) / temperature)
    chance /= chance.sum(axis=2, keepdims=True)
    flat = part.reshape(-1, size)
    weighted = (n[:, :, None] * chance).reshape(rounds, -1)
    mean = np.einsum("rkc,kcd->rkd", chance, part, optimize=True)
    second = (weighted @ (flat[:, :, None] * flat[:, None, :]).reshape(len(flat), -1)).reshape(rounds, size, size)
    curvature = (second - np.einsum("rk,rkd,rke->rde", n, mean, mean, optimize=True)) / temperature
    # In relative changes of the prices: the barrier is the temperature then, so that no matrix is singular. It holds
    # prices down as well: where all GPUs are held, those of all types could rise together.
    usual = np.maximum(n.sum(axis=1, keepdims=True), 1.0) / size
    curvature *= price[:, :, None] * price[:, None, :]
    curvature[:, np.arange(size), np.arange(size)] += temperature
    slope = price * (1.0 - weighted @ flat) + temperature * (price / usual - 1.0)
    change = np.linalg.solve(curvature, -slope[:, :, None])[:, :, 0]
    new = price * np.clip(1.0 + change, 1 / 3.0, 3.0)
    return np.asarray(np.clip(new, LEAST_PRICE, MOST_PRICE * size * usual))
