"""Optimistic profiling: a job's whole table from a few measurements with all memory (Synergy, section 3.1).

Measuring takes a minute per point. The *CPU axis* is measured with all the memory a gang may have, at both ends of the
axis and wherever a binary search goes: into the lower half of its interval where the upper one gains "less than a fixed
threshold (say 10%)", or nothing, and otherwise into the upper one. Between measured levels the rate is interpolated.
The *memory axis* is not measured: an application-level cache (MinIO) has the same hits in every epoch, so that the rate
with less memory is the least of the rate with all memory and of what storage delivers for the misses.

What storage delivers is known from the job's own pipeline; where a job has a measured matrix instead, from the fitted
pipeline of the catalogue model that the matrix belongs to, and with an unknown matrix memory counts as unimportant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.model_catalogue import MODELS
from schedgap.instances.schema import MatrixSensitivity
from schedgap.instances.sensitivity import ROUNDING, Profiles, pipeline_rate
from schedgap.instances.views.synergy import View

THRESHOLD = 0.1
"""An upper half that gains less than this is not looked into (section 3.1)."""

POINT_S = 60.0
"""Seconds of a measurement (section 3.1)."""

MAX_LISTED = 12
"""So many models are described; the rest is counted."""


@dataclass(frozen=True, eq=False)
class Profiling:
    """Tables that profiling found for ``K`` kinds of jobs on ``k`` GPU types, and its costs.

    Attributes
    ----------
    profiles
        The estimated tables, of the shape of the true ones. CPUs and memory beyond what a gang may have count as the
        most that it may.
    points, levels
        ``(K, k)`` measured CPU levels, and all that a gang may have; 0 where it cannot run.
    most
        ``(K, k)`` number of the memory level at which was measured: all memory that a gang may have.
    error
        ``(K, k, B)`` largest relative error against the true table at each memory level; 0 at levels that a gang cannot
        have, ``inf`` where a rate was estimated for a gang that does not run.
    """

    profiles: Profiles
    points: Ints
    levels: Ints
    most: Ints
    error: Array

    @property
    def full_memory_error(self) -> Array:
        """``(K, k)`` largest relative error with all memory, where only levels of CPUs are interpolated."""
        return np.take_along_axis(self.error, self.most[:, :, None], axis=2)[:, :, 0]

    @property
    def seconds(self) -> Array:
        """``(K, k)`` how long profiling takes."""
        return np.asarray(POINT_S * self.points)


def profiling(seen: View, threshold: float = THRESHOLD) -> Profiling:
    """Profile all kinds of jobs of a view, within what their gangs may have (:attr:`Needs.limit`)."""
    return profiled(seen.profiles, fetching(seen), seen.needs.limit, threshold)


def believed(seen: View, source: str = "true", noise: float = 0.0, seed: int = 0) -> Profiles:
    """Return the tables that a scheduler decides by where it does not know the true ones.

    What that costs, as mean completion time of jobs 1000 to 2000 of ``gen/synergy-128``: ``synergy.tune.srtf`` takes
    15.0 h by the true tables, 15.5 h by measured ones, ``synergy.tune.fifo`` 23.1 h and 26.6 h. With rates that are off
    by up to 3 % they take 16.7 h and 36.4 h, because the fastest of many equal rates, and with it a job's demand, is
    then a matter of chance. Where a demand may be 10 % below the fastest rate (``saturation=0.1``), 3 % cost nothing
    (14.9 h and 22.7 h), and measured tables take 15.0 h and 23.8 h.

    Where a gang does not run at all, by its true table or by the estimate, the table has the true rate: starting it
    shows whether it runs, and nobody waits forever for a job that was estimated not to run.

    Every rate is multiplied by a factor between 1 − noise and 1 + noise, drawn uniformly.
    """
    true = seen.profiles.rate
    rate = true if source == "true" else profiling(seen).profiles.rate
    rate = rate * (1.0 + noise * np.random.default_rng(seed).uniform(-1.0, 1.0, rate.shape))
    return seen.profiles._replace(rate=np.where((rate > 0) & (true > 0), rate, true))


def profiled(tables: Profiles, fetched: Array, limit: Array, threshold: float = THRESHOLD) -> Profiling:
    """Profile all kinds of jobs; a half in which the gain is below `threshold` is skipped.

    `fetched` ``(K, k, B)`` is what :func:`fetching` returns, `limit` ``(K, k, 2)`` the most CPUs and gigabytes of a
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
        found, measured = estimated(axes[0][:a], true[:, -1].tolist().__getitem__, fetched[kind, i, :b], threshold)
        # Amounts above the limit are never given out; the table still has a rate there.
        rate[kind, i] = np.pad(found, [(0, rate.shape[2] - a), (0, rate.shape[3] - b)], mode="edge")
        points[kind, i], levels[kind, i], top[kind, i] = len(measured), a, b - 1
        error[kind, i, :b] = relative_error(found, true).max(axis=0)
    return Profiling(tables._replace(rate=rate), points, levels, top, error)


def estimated(
    cpus: Array, measure: Callable[[int], float], fetched: Array, threshold: float = THRESHOLD
) -> tuple[Array, dict[int, float]]:
    """Return an estimated table ``(a, b)`` of iterations per second, and the measured rates by number of the CPU level.

    `measure` returns the rate with one of the ``(a,)`` ascending CPU levels, given by number, and all memory; storage
    delivers `fetched` ``(b,)`` iterations per second at the memory levels, the last of which is all memory. With all
    memory the table has what was measured, whatever storage should deliver.
    """
    measured = search(measure, len(cpus), threshold)
    known = sorted(measured)
    curve = np.interp(cpus, cpus[known], [measured[x] for x in known])
    rate = np.minimum(curve[:, None], fetched[None, :])
    rate[:, -1] = curve
    return rate, measured


def search(measure: Callable[[int], float], levels: int, threshold: float = THRESHOLD) -> dict[int, float]:
    """Return the rates at the levels that the binary search measures, beginning with the highest one.

    A table that falls with more CPUs gains nothing in the upper half, so that the search goes down.
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


def relative_error(found: Array, true: Array) -> Array:
    """Return ``|found − true| / true`` by cell: 0 where both are 0, ``inf`` where only the true one is."""
    apart = np.abs(found - true)
    error = np.where(apart > 0, np.inf, 0.0)
    return np.divide(apart, true, out=error, where=true > 0)


def fetching(seen: View) -> Array:
    """Return ``(K, k, B)`` iterations per second that storage delivers to each kind at its memory levels.

    ``inf`` where nothing has to be fetched, 0 where the process does not fit into its memory.
    """
    tables, jobs = seen.profiles, seen.workload
    fetched = np.empty((tables.kinds, seen.types, tables.memory_gb.shape[1]))
    free = np.array(np.inf)
    for kind, j in enumerate(np.unique(tables.kind, return_index=True)[1].tolist()):
        given, gpus = seen.instance.jobs[j].sensitivity, int(tables.gpus[kind])
        memory_gb = tables.memory_gb[kind]
        if isinstance(given, MatrixSensitivity):
            known = [m for m in MODELS.values() if m.suite == "synergy" and m.sensitivity == given]
            fetched[kind] = np.inf
            if known:
                # The cells of a matrix are per GPU, as if each GPU of a gang had a cache and a data set of its own.
                each = pipeline_rate(known[0].pipeline.sensitivity, free, free, memory_gb / gpus)
                fetched[kind] = gpus * jobs.rates[j][:, None] * (each / known[0].rates["V100"])
        elif given is not None:
            fetched[kind] = pipeline_rate(given, free, free, memory_gb)
    return fetched


def describe(seen: View) -> list[str]:
    """Return the costs and errors of profiling in words: a line for all jobs, and one for each of the first models."""
    found, tables = profiling(seen), seen.profiles
    kinds: dict[str, list[int]] = {}
    for kind, j in enumerate(np.unique(tables.kind, return_index=True)[1].tolist()):
        kinds.setdefault(seen.instance.jobs[j].model or "no model", []).append(kind)
    able = found.levels > 0
    minutes = found.seconds[able] / 60
    rest = len(kinds) - MAX_LISTED
    spent = f"{minutes.max():g}" if minutes.min() == minutes.max() else f"{minutes.min():g} to {minutes.max():g}"
    lines = [
        f"{tables.kinds} kinds of jobs, models: {len(kinds)}; {found.points.sum()} of {found.levels.sum()} levels of "
        f"CPUs measured, in {spent} minutes per kind and GPU type"
    ]
    for name, chosen in list(kinds.items())[:MAX_LISTED]:
        full, error, less = found.full_memory_error[chosen].max(), found.error[chosen].max(axis=1), " and with less"
        if error.max() > full:
            at, level = np.unravel_index(error.argmax(), error.shape)
            each_gb = tables.memory_gb[chosen][at, level] / tables.gpus[chosen[at]]
            less = f", {error.max():.1%} with {each_gb:g} GB per GPU"
        lines.append(f"{name}: estimates within {full:.1%} with all memory{less}")
    return lines + [f"and {rest} more models"] * (rest > 0)
