"""Bootstrap intervals of statistics whose observations come in independent groups, called units.

Results on the same random numbers are not independent. ``gen/20jobs?load=1&seed=3`` and ``gen/20jobs?load=2&seed=3``
have the same jobs, and the jobs of ``gen/philly?seed=3`` are made from the same numbers by other laws
(:class:`schedgap.instances.generate.core.Streams`). So a unit is a seed, whatever is generated from it. An instance
that is not generated is a unit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from schedgap.instances.catalogue import settings, usual

Array = NDArray[np.float64]

RESAMPLES = 2000
"""Bootstrap samples per interval."""

FEWEST = 3
"""Fewest units for which results show intervals."""

OF: Mapping[str, Callable[..., Any]] = {"mean": np.nanmean, "median": np.nanmedian}


def interval(groups: Sequence[Sequence[float]], of: Literal["mean", "median"] = "mean") -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean or median of all observations.

    Whole groups are drawn with replacement, since the observations of a group depend on each other: those of the same
    random day at several loads, for example. Groups of one observation each give the usual bootstrap. If there is only
    one group, or all observations are equal, the interval is a point. The random numbers are always the same.
    """
    return _interval(tuple(map(tuple, groups)), of)


@lru_cache(maxsize=1000)
def _interval(groups: tuple[tuple[float, ...], ...], of: Literal["mean", "median"]) -> tuple[float, float]:
    sample = np.concatenate([np.asarray(group, float) for group in groups])
    if len(groups) < 2 or np.all(sample == sample[0]):
        value = float(OF[of](sample))
        return value, value
    longest = max(map(len, groups))
    padded = np.array([[*group, *[np.nan] * (longest - len(group))] for group in groups], float)

    def statistic(drawn: NDArray[np.int_], axis: int = -1) -> Any:
        return OF[of](padded[drawn].reshape(*drawn.shape[:-1], -1), axis=-1)

    return _resampled(len(groups), statistic)


def interval_of_sums(sums: Sequence[float], counts: Sequence[int]) -> tuple[float, float]:
    """Return the interval of the mean of all observations as :func:`interval` does, from each group's sum and count.

    Groups may be as large as they like: a week of a log has thousands of jobs.
    """
    total, number = np.asarray(sums, float), np.asarray(counts, float)
    if total.size < 2 or np.all(total * number[0] == total[0] * number):  # all groups have the same mean
        value = float(total.sum() / number.sum())
        return value, value
    return _resampled(total.size, lambda drawn, axis=-1: total[drawn].sum(-1) / number[drawn].sum(-1))


def _resampled(groups: int, statistic: Callable[..., Any]) -> tuple[float, float]:
    """Return the interval of a statistic of the indices of groups that are drawn."""
    from scipy.stats import bootstrap

    given: dict[str, Any] = {"n_resamples": RESAMPLES, "method": "percentile", "vectorized": True}
    found = bootstrap((np.arange(groups),), statistic, rng=np.random.default_rng(0), **given)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def units_of(names: Mapping[str, str]) -> dict[str, str]:
    """Return the unit of each instance: the seed that it is generated from, or else its fingerprint.

    `names` maps fingerprints of instances to their names.
    """
    seeds = {mark: settings(name).get("seed", usual(name, "seed")) for mark, name in names.items()}
    return {mark: mark if seed is None else f"seed {seed}" for mark, seed in seeds.items()}


Seen = TypeVar("Seen")


def averaged(seen: Iterable[Seen], value: Callable[[Seen], float | None]) -> dict[str, float]:
    """Return the mean of a value by the fingerprint of an instance, over solver seeds; absent values are left out."""
    found: dict[str, list[float]] = {}
    for one in seen:
        if (number := value(one)) is not None:
            found.setdefault(one.fingerprint, []).append(number)  # type: ignore[attr-defined]
    return {mark: fmean(several) for mark, several in found.items()}


def by_unit(values: Mapping[str, float], units: Mapping[str, str]) -> list[list[float]]:
    """Return the values of instances, by fingerprint, grouped by unit."""
    groups: dict[str, list[float]] = {}
    for name, value in values.items():
        groups.setdefault(units[name], []).append(value)
    return list(groups.values())
