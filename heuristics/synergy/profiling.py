"""Optimistic profiling: estimate a job's whole table from a few measurements with all memory (Synergy, section 3.1).

A measurement takes one minute. The *CPU axis* is measured with all the memory that a gang may have, at both ends and at
the midpoints of a binary search. The search continues in the lower half of its interval if the upper half gains nothing
or "less than a fixed threshold (say 10%)", and otherwise in the upper half. Rates between measured levels are
interpolated. The *memory axis* is not measured: an application-level cache (MinIO) has the same hits in every epoch, so
the rate with less memory is the minimum of the rate with all memory and the rate at which storage serves the misses.

The storage rate follows from the job's own pipeline. If the job has a measured matrix instead, it follows from the
fitted pipeline of the catalogue model of that matrix; for an unknown matrix, memory is assumed not to matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.model_catalogue import MODELS
from schedgap.instances.schema import MatrixSensitivity
from schedgap.instances.sensitivity import Profiles, pipeline_rate
from schedgap.instances.views.synergy import SynergyView

THRESHOLD = 0.1
"""The search skips an upper half of its interval that gains less than this fraction of the rate (section 3.1)."""

POINT_S = 60.0
"""Seconds per measurement (section 3.1)."""

MAX_LISTED = 12
"""Most models that :func:`describe` lists one by one; it only counts the others."""


@dataclass(frozen=True, eq=False)
class Profiling:
    """The tables that profiling estimates for ``K`` kinds of jobs on ``k`` GPU types, their errors, and the cost.

    Attributes
    ----------
    profiles
        The estimated tables, in the shape of the true ones. Beyond the most CPUs and memory that a gang may have, they
        repeat the last rate.
    points, levels
        ``(K, k)`` number of CPU levels that were measured, and of all that a gang may have; 0 if the gang cannot run.
    most
        ``(K, k)`` index of the memory level at which rates were measured: all memory that a gang may have.
    error
        ``(K, k, B)`` largest relative error at each memory level, compared with the true table; 0 at levels that a gang
        cannot have, ``inf`` if a rate was estimated for a gang that does not run.
    """

    profiles: Profiles
    points: Ints
    levels: Ints
    most: Ints
    error: Array

    @property
    def full_memory_error(self) -> Array:
        """``(K, k)`` largest relative error with all memory, where rates are interpolated between CPU levels only."""
        return np.take_along_axis(self.error, self.most[:, :, None], axis=2)[:, :, 0]

    @property
    def seconds(self) -> Array:
        """``(K, k)`` seconds that profiling one kind of job on one GPU type takes."""
        return np.asarray(POINT_S * self.points)


def profiling(view: SynergyView, threshold: float = THRESHOLD) -> Profiling:
    """Profile all kinds of jobs of a view, up to the CPUs and memory that a gang may have (:attr:`Needs.limit`)."""
    return profiled(view.profiles, fetching(view), view.needs.limit, threshold)


def believed(view: SynergyView, source: str = "true", noise: float = 0.0, seed: int = 0) -> Profiles:
    """Return the tables by which a scheduler decides that does not know the true ones.

    Small random errors cost Synergy-Tune much, because chance then decides which of many equal rates is the fastest,
    and with it the job's demand. They cost nothing if the rate at the demand may be some way below the fastest
    (``saturation=0.1``); ``docs/experiments.md`` has the numbers.

    Where a gang does not run at all, in its true table or in the estimate, the table has the true rate: starting the
    gang shows whether it runs, and no job waits forever because it was estimated not to run.

    Every rate is multiplied by a factor drawn uniformly between 1 − noise and 1 + noise.
    """
    true = view.profiles.rate
    rate = true if source == "true" else profiling(view).profiles.rate
    rate = rate * (1.0 + noise * np.random.default_rng(seed).uniform(-1.0, 1.0, rate.shape))
    return view.profiles._replace(rate=np.where((rate > 0) & (true > 0), rate, true))


def profiled(tables: Profiles, fetched: Array, limit: Array, threshold: float = THRESHOLD) -> Profiling:
    """Profile all kinds of jobs; the search skips an upper half of its interval that gains less than `threshold`.

    `fetched` ``(K, k, B)`` is the result of :func:`fetching`, `limit` ``(K, k, 2)`` the most CPUs and gigabytes of a
    gang.
    """
    rate = np.zeros_like(tables.rate)
    points, levels, top = np.zeros((3, *rate.shape[:2]), np.int64)
    error = np.zeros((*rate.shape[:2], rate.shape[3]))
    for kind, i in np.ndindex(*rate.shape[:2]):
        axes = (tables.cpus[kind], tables.memory_gb[kind])
        a, b = (int((x <= most * (1 + ROUNDING)).sum()) for x, most in zip(axes, limit[kind, i], strict=True))
        if min(a, b) == 0:
            continue
        true = tables.rate[kind, i, :a, :b]
        estimate, measured = estimated(axes[0][:a], true[:, -1].tolist().__getitem__, fetched[kind, i, :b], threshold)
        # Amounts above the limit are never given out; the table still has a rate there.
        rate[kind, i] = np.pad(estimate, [(0, rate.shape[2] - a), (0, rate.shape[3] - b)], mode="edge")
        points[kind, i], levels[kind, i], top[kind, i] = len(measured), a, b - 1
        error[kind, i, :b] = relative_error(estimate, true).max(axis=0)
    return Profiling(tables._replace(rate=rate), points, levels, top, error)


def estimated(
    cpus: Array, measure: Callable[[int], float], fetched: Array, threshold: float = THRESHOLD
) -> tuple[Array, dict[int, float]]:
    """Profile one job: return its estimated table ``(a, b)`` of iterations per second, and the rates measured for it.

    The measured rates are by index of the CPU level. `measure` returns the rate with all memory at one of the ``(a,)``
    ascending CPU levels, given by index. Storage delivers `fetched` ``(b,)`` iterations per second at the memory
    levels, the last of which is all memory. With all memory, the table has the measured rates, regardless of storage.
    """
    measured = search(measure, len(cpus), threshold)
    levels = sorted(measured)
    curve = np.interp(cpus, cpus[levels], [measured[x] for x in levels])
    rate = np.minimum(curve[:, None], fetched[None, :])
    rate[:, -1] = curve
    return rate, measured


def search(measure: Callable[[int], float], levels: int, threshold: float = THRESHOLD) -> dict[int, float]:
    """Measure rates at the CPU levels that a binary search visits; return them by index of the level.

    Both ends are measured first. If the rate falls with more CPUs, the upper half gains nothing, so the search goes
    down.
    """
    low, high = 0, levels - 1
    measured = {x: measure(x) for x in dict.fromkeys((high, low))}
    while high - low > 1:
        middle = (low + high) // 2
        measured[middle] = measure(middle)
        gain = measured[high] - measured[middle]
        if gain <= 0 or gain < threshold * measured[middle] * (1 - ROUNDING):
            high = middle
        else:
            low = middle
    return measured


def relative_error(estimate: Array, true: Array) -> Array:
    """Return ``|estimate − true| / true`` of each rate: 0 where both are 0, ``inf`` where only the true rate is 0."""
    difference = np.abs(estimate - true)
    error = np.where(difference > 0, np.inf, 0.0)
    return np.divide(difference, true, out=error, where=true > 0)


def fetching(view: SynergyView) -> Array:
    """Return how fast storage can feed each kind of job: ``(K, k, B)`` iterations per second at its memory levels.

    This is ``inf`` where nothing has to be fetched, and 0 where the process does not fit into its memory.
    """
    tables, jobs = view.profiles, view.workload
    fetched = np.empty((tables.kinds, view.types, tables.memory_gb.shape[1]))
    unlimited = np.array(np.inf)
    for kind, j in enumerate(np.unique(tables.kind, return_index=True)[1].tolist()):
        sensitivity, gpus = view.instance.jobs[j].sensitivity, int(tables.gpus[kind])
        memory_gb = tables.memory_gb[kind]
        if isinstance(sensitivity, MatrixSensitivity):
            models = [m for m in MODELS.values() if m.suite == "synergy" and m.sensitivity == sensitivity]
            fetched[kind] = np.inf
            if models:
                # The cells of a matrix are per GPU, as if each GPU of a gang had its own cache and data set.
                per_gpu = pipeline_rate(models[0].pipeline.sensitivity, unlimited, unlimited, memory_gb / gpus)
                fetched[kind] = gpus * jobs.rates[j][:, None] * (per_gpu / models[0].rates["V100"])
        elif sensitivity is not None:
            fetched[kind] = pipeline_rate(sensitivity, unlimited, unlimited, memory_gb)
    return fetched


def describe(view: SynergyView) -> list[str]:
    """Return in words what profiling costs and how wrong it is: a line for all jobs, and one per listed model."""
    result, tables = profiling(view), view.profiles
    kinds: dict[str, list[int]] = {}
    for kind, j in enumerate(np.unique(tables.kind, return_index=True)[1].tolist()):
        kinds.setdefault(view.instance.jobs[j].model or "no model", []).append(kind)
    able = result.levels > 0
    minutes = result.seconds[able] / 60
    rest = len(kinds) - MAX_LISTED
    spent = f"{minutes.max():g}" if minutes.min() == minutes.max() else f"{minutes.min():g} to {minutes.max():g}"
    lines = [
        f"{tables.kinds} kinds of jobs, models: {len(kinds)}; {result.points.sum()} of {result.levels.sum()} levels of "
        f"CPUs measured, in {spent} minutes per kind and GPU type"
    ]
    for name, chosen in list(kinds.items())[:MAX_LISTED]:
        full, error, less = result.full_memory_error[chosen].max(), result.error[chosen].max(axis=1), " and with less"
        if error.max() > full:
            at, level = np.unravel_index(error.argmax(), error.shape)
            gb_per_gpu = tables.memory_gb[chosen][at, level] / tables.gpus[chosen[at]]
            less = f", {error.max():.1%} with {gb_per_gpu:g} GB per GPU"
        lines.append(f"{name}: estimates within {full:.1%} with all memory{less}")
    return lines + [f"and {rest} more models"] * (rest > 0)
