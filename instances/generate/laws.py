"""The laws that draw when jobs arrive, how long they take, how gangs go with durations, failures, and types of GPUs.

Every family of jobs has these parameters; at their defaults it draws what its paper says, or what it always drew.

**Arrivals.** ``start``, ``poisson``, or ``bursty``: a Markov-modulated Poisson process of two states, quiet and burst,
whose stays are exponential (Fischer, Meier-Hellstern, Performance Evaluation 18, 1993). In a burst the rate is
`burst_rate` times that of quiet times; bursts take the share `burst_share` of the time, and `burst_jobs` jobs arrive in
one on average. So gaps vary as much at every rate, and on small clusters as on large ones.
``diurnal`` and ``weekly`` change the speed of the clock: the rate at hour `h` is in proportion to
``exp(ln(peak_ratio)/2 · cos(2π(h − peak_h)/24))``, a von Mises density, and times `weekend` on days 6 and 7 of a week
that begins at 0 s. Both go together: ``diurnal-bursty`` and ``weekly-bursty``. The mean rate is that of the family.

**Durations** have the mean that the family sets, and no largest one is more than `size_spread` times the smallest.
``log-uniform``, ``log-normal`` (with the standard deviation `sigma` of the logarithm), ``pareto`` (the exponent `alpha`
of the tail), ``mixture`` (log-normals with `shares`, `medians` and `sigmas`; medians relative to one another), and
``philly``, ``helios`` and ``itp``: the mixtures that the packaged instances of these names hold. ``paper`` is the
family's own law.

**Gangs** go with durations by a Gaussian copula of correlation `gang_correlation`.

**Failures** strike each GPU of a running gang `failures` times a day (a Poisson process), and throw the job back to its
last checkpoint; those are `checkpoint_min` apart, so that a failure costs a uniform part of that. What is done again is
added to the job's work: schedulers see failures as work, and bounds know it. The load includes it.

**Types of GPUs** differ by ``r(type) = m · (rate/m)^heterogeneity``, where `ln m` is the mean of the logarithms of a
job's rates. With 0 all types are alike, with 1 they are as measured. ``types = aligned`` gives each job's fastest rate
to the type that is fastest by the mean of the logarithms over the models, and so on, so that all jobs rank types alike;
``shuffled`` gives them to types at random.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.generate import draws
from schedgap.instances.generate.core import GeneratorSpec, Streams
from schedgap.instances.model_catalogue import significant
from schedgap.instances.schema import Record, rule, violation

HOUR_S = 3600.0
DAY_H = 24
WEEK_D = 7

Arrivals = Literal["start", "poisson", "bursty", "diurnal", "weekly", "diurnal-bursty", "weekly-bursty"]
"""When jobs arrive; a family may have another word for what its paper says."""

Durations = Literal["paper", "log-uniform", "log-normal", "pareto", "mixture", "philly", "helios", "itp"]
Types = Literal["measured", "aligned", "shuffled"]

Positive = Annotated[float, Field(gt=0, le=1e9)]


class LawsSpec(GeneratorSpec):
    """Laws of arrivals, durations and failures; the module's docstring defines them."""

    arrivals: Literal[Arrivals, "uniform"] = "poisson"
    burst_rate: float = rule("the rate in a burst, 1 to 1e6 times that of quiet times", ge=1, le=1e6, default=20.0)
    burst_share: float = rule("the share of time in bursts, from 0 to 1, both excluded", gt=0, lt=1, default=0.1)
    burst_jobs: float = rule("mean jobs that arrive in a burst, 0.1 to 1e6", ge=0.1, le=1e6, default=10.0)
    peak_ratio: float = rule("the busiest hour over the quietest, 1 to 1000", ge=1, le=1000, default=4.0)
    peak_h: float = rule("the busiest hour of a day, 0 to 24", ge=0, le=24, default=15.0)
    weekend: float = rule("the rate on a weekend over that on other days, 0.001 to 1000", ge=1e-3, le=1e3, default=0.5)
    durations: Durations = "paper"
    size_spread: float = rule(
        "the largest job is more than 1 and at most 1e6 times the smallest", gt=1, le=1e6, default=48.0
    )
    sigma: float = rule("the standard deviation of the logarithm of durations, 0.01 to 10", ge=0.01, le=10, default=1.0)
    alpha: float = rule("the exponent of a Pareto tail, 0.01 to 100", ge=0.01, le=100, default=1.1)
    shares: tuple[Positive, ...] = rule("weights of a mixture, positive", max_length=100, default=(1.0,))
    medians: tuple[Positive, ...] = rule("medians of a mixture, positive", max_length=100, default=(1.0,))
    sigmas: tuple[Positive, ...] = rule("standard deviations of logarithms, positive", max_length=100, default=(1.0,))
    failures: float = rule("failures per day and GPU, 0 to 100", ge=0, le=100, default=0.0)
    checkpoint_min: float = rule("minutes between checkpoints, 0 to 10,000", ge=0, le=10_000, default=60.0)

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        for name in ("medians", "sigmas"):
            if len(getattr(self, name)) != len(self.shares) or not self.shares:
                raise violation(name, getattr(self, name), "as many as shares, one or more")
        return self


class TypesSpec(Record):
    """How much types of GPUs or workers differ, and whether jobs rank them alike."""

    heterogeneity: float = rule("0 (all types alike) to 10; 1 is as measured", ge=0, le=10, default=1.0)
    types: Types = "measured"


# arrivals -----------------------------------------------------------------------------------------


def arrival_times(spec: LawsSpec, jobs: int, rate: float, streams: Streams, unit_s: float = 1.0) -> Array:
    """Return the times at which jobs arrive, ascending, in units of `unit_s` seconds, at `rate` jobs per unit.

    All are 0 if `rate` is 0 or the law is ``start``.
    """
    if rate == 0 or spec.arrivals == "start":
        return np.zeros(jobs)
    times = draws.poisson_arrivals(streams.uniform("arrivals", jobs), rate)
    if spec.arrivals.endswith("bursty"):
        times = _with_bursts(spec, times, rate, streams)
    if profile := _profile(spec, HOUR_S / unit_s):
        times = _periodic(times, *reversed(profile))
    return times


def clock_of(spec: LawsSpec, times: Array) -> Array:
    """Return the times in seconds, 0 or more, on the clock of the profile of a spec, which runs at its rates."""
    profile = _profile(spec, HOUR_S)
    return _periodic(times, *profile) if profile else times


def _with_bursts(spec: LawsSpec, times: Array, rate: float, streams: Streams) -> Array:
    """Return the times at which a two-state process has done the work that a constant rate does at `times`.

    The work of a state is its length times its rate, relative to the mean rate; so the arrivals of a Poisson process
    become those of the Markov-modulated one.
    """
    share = spec.burst_share
    slow = 1 / (1 - share + share * spec.burst_rate)
    burst = spec.burst_jobs / (rate * slow * spec.burst_rate)
    quiet = burst * (1 - share) / share
    first = int(streams.uniform("burst at the start", 1)[0] < share)
    count = 64
    while True:
        stays = -np.log1p(-streams.uniform("bursts", count))
        bursting = (np.arange(count) + first) % 2 == 0
        stays = stays * np.where(bursting, quiet, burst)
        work = stays * np.where(bursting, slow, slow * spec.burst_rate)
        if work.sum() >= times[-1]:
            break
        count *= 2
    return np.asarray(np.interp(times, np.append(0.0, np.cumsum(work)), np.append(0.0, np.cumsum(stays))), float)


STEPS = 12
"""Steps of an hour in which the rates of profiles are constant."""


def _hours(spec: LawsSpec, days: Sequence[float]) -> Array:
    """Return the rates of all steps of a period of these days, relative to their mean."""
    hour = (np.arange(DAY_H * STEPS) + 0.5) / STEPS
    day = np.exp(0.5 * math.log(spec.peak_ratio) * np.cos(2 * np.pi * (hour - spec.peak_h) / DAY_H))
    rates = np.concatenate([day * factor for factor in days])
    return np.asarray(rates / rates.mean(), float)


PROFILES: Mapping[str, Callable[[LawsSpec], Array]] = {
    "diurnal": lambda spec: _hours(spec, [1.0]),
    "weekly": lambda spec: _hours(spec, [1.0] * (WEEK_D - 2) + [spec.weekend] * 2),
}
"""Rates over a period by the name of the clock, relative to their mean, in steps of 1/:data:`STEPS` hours."""


def _profile(spec: LawsSpec, hour: float) -> tuple[Array, Array] | None:
    """Return times over a period and what the clock of a spec shows then, or ``None`` if it runs at a constant rate."""
    rates_of = PROFILES.get(spec.arrivals.removesuffix("-bursty"))
    if rates_of is None:
        return None
    rates = rates_of(spec)
    return np.arange(rates.size + 1) * hour / STEPS, np.append(0.0, np.cumsum(rates)) * hour / STEPS


def _periodic(values: Array, x: Array, y: Array) -> Array:
    """Return the values of a periodic and piecewise linear function that goes through these points."""
    period = np.floor(values / x[-1])
    return np.asarray(period * y[-1] + np.interp(values - period * x[-1], x, y), float)


# durations ----------------------------------------------------------------------------------------


def durations(spec: LawsSpec, u: Array, mean: float) -> Array:
    """Return values of expectation `mean` at the quantiles `u` of the spec's law."""
    if spec.durations in ("paper", "log-uniform"):
        return draws.log_uniform(u, mean, spec.size_spread)
    return mean * LAWS[spec.durations](spec, u)


def _log_normal(spec: LawsSpec, u: Array) -> Array:
    """Return values of a log-normal law of mean 1, whose ends are equally far from the median."""
    return Mixture(spec.size_spread, [1.0], [1.0], [spec.sigma]).quantiles(u)


def _pareto(spec: LawsSpec, u: Array) -> Array:
    """Return values of a Pareto law of mean 1 that ends at `size_spread` times its smallest value."""
    from scipy.stats import truncpareto

    law = truncpareto(spec.alpha, spec.size_spread)
    return np.asarray(law.ppf(u) / law.mean(), float)


GRID = 8001
"""Points at which a mixture's distribution function is tabulated."""


class Mixture:
    """A mixture of log-normals by its tabulated distribution function.

    It ends at the same factor, the root of `spread`, above and below the mean of its logarithm.

    Attributes
    ----------
    x, below
        ``(g,)`` logarithms of values, and the distribution function there.
    mean
        Expectation, in the unit of the medians.
    """

    def __init__(
        self, spread: float, shares: Sequence[float], medians: Sequence[float], sigmas: Sequence[float]
    ) -> None:
        from scipy.stats import norm

        weight = np.array(shares) / sum(shares)
        centre = float(weight @ np.log(medians))
        self.x: Array = centre + math.log(spread) * np.linspace(-0.5, 0.5, GRID)
        below = norm.cdf(self.x[:, None], np.log(medians), sigmas) @ weight
        self.below: Array = np.asarray((below - below[0]) / (below[-1] - below[0]), float)
        self.mean = float(np.diff(self.below) @ (np.exp(self.x[1:]) + np.exp(self.x[:-1]))) / 2

    def quantiles(self, u: Array) -> Array:
        """Return the values at the quantiles `u`, over their mean."""
        rising = np.append(True, np.diff(self.below) > 0)  # the quantile of a flat piece is its lower end
        return np.asarray(np.exp(np.interp(u, self.below[rising], self.x[rising])) / self.mean, float)


@cache
def fitted(name: str) -> Mapping[str, Any]:
    """Return the table ``generator`` of the packaged instance that was fitted to a trace, such as ``philly``."""
    text = resources.files("schedgap.instances").joinpath("gen", f"{name}.toml").read_text("utf-8")
    table: Mapping[str, Any] = tomllib.loads(text)["generator"]
    return table


def _fitted(name: str) -> Callable[[LawsSpec, Array], Array]:
    """Return the law of durations that was fitted to a trace, within the bounds that the fit has."""

    def law(spec: LawsSpec, u: Array) -> Array:
        own = fitted(name)
        return Mixture(own["size_spread"], own["shares"], own["medians"], own["sigmas"]).quantiles(u)

    return law


LAWS: Mapping[str, Callable[[LawsSpec, Array], Array]] = {
    "log-normal": _log_normal,
    "pareto": _pareto,
    "mixture": lambda spec, u: Mixture(spec.size_spread, spec.shares, spec.medians, spec.sigmas).quantiles(u),
    **{name: _fitted(name) for name in ("philly", "helios", "itp")},
}
"""Laws of durations by name, as quantile functions of mean 1."""


# gangs and failures -------------------------------------------------------------------------------

QUANTILES = (np.arange(20_000) + 0.5) / 20_000
"""Quantiles of the duration at which expectations over gangs and durations are computed."""


def gang_quantiles(u: Array, of_duration: Array, correlation: float) -> Array:
    """Return quantiles of gang sizes that are correlated with those of durations (a Gaussian copula).

    Both inputs are independent and uniform. With a correlation of 0 the result is `u` itself.
    """
    if correlation == 0:
        return u
    from scipy.special import ndtr, ndtri

    tiny = np.finfo(float).tiny  # a quantile of 0 would be minus infinity
    z = correlation * ndtri(np.maximum(of_duration, tiny)) + math.sqrt(1 - correlation**2) * ndtri(np.maximum(u, tiny))
    return np.asarray(ndtr(z), float)


def gang_chances(probabilities: Sequence[float], of_duration: Array, correlation: float) -> Array:
    """Return the ``(n, k)`` probabilities of the gang sizes of jobs whose durations have these quantiles ``(n,)``."""
    weight = np.array(probabilities, float) / sum(probabilities)
    if correlation == 0:
        return np.broadcast_to(weight, (of_duration.size, weight.size))
    from scipy.special import ndtr, ndtri

    edges = ndtri(np.clip(np.append(0.0, np.cumsum(weight)), 0.0, 1.0))
    edges[-1] = np.inf
    z = (edges - correlation * ndtri(of_duration)[:, None]) / math.sqrt(1 - correlation**2)
    return np.asarray(np.diff(ndtr(z), axis=1), float)


def gpu_time(
    spec: LawsSpec, gangs: Sequence[int], probabilities: Sequence[float], correlation: float, law: Array
) -> float:
    """Return the expected GPU time of a job, failures included, as a multiple of the mean duration.

    `law` holds the durations at :data:`QUANTILES`, in any unit.
    """
    sizes = np.array(gangs, float)
    again = spec.failures / DAY_H * spec.checkpoint_min / 60 / 2
    weight = gang_chances(probabilities, QUANTILES, correlation) @ (sizes * (1 + again * sizes))
    return float(law @ weight / law.sum())


def with_failures(spec: LawsSpec, seconds: Sequence[float], gpus: Sequence[int], streams: Streams) -> list[float]:
    """Return how long jobs run that take `seconds` without failures, on gangs of `gpus`."""
    if spec.failures == 0 or spec.checkpoint_min == 0:
        return list(seconds)
    time = np.array(seconds, float)
    # The k-th failure of all jobs is drawn at once, until none is left that fails so often.
    rate = spec.failures / (DAY_H * HOUR_S) * np.array(gpus, float)
    at, again, k = np.zeros(time.size), np.zeros(time.size), 0
    while True:
        at -= np.log1p(-streams.uniform(f"failures {k}", time.size)) / rate
        failed = at < time
        if not failed.any():
            return draws.rounded(time + again)
        again += failed * streams.uniform(f"done again {k}", time.size) * spec.checkpoint_min * 60
        k += 1


# types of GPUs ------------------------------------------------------------------------------------


def typed(
    spec: TypesSpec, rates: Mapping[str, float], order: Sequence[str], streams: Streams, key: str
) -> dict[str, float]:
    """Return a job's rates by type, made more or less different, and given to the types as the spec says.

    Parameters
    ----------
    spec, rates
        Parameters of the family; rate of the job by type.
    order
        All types, the slowest first, for ``types = aligned``.
    streams, key
        Random numbers, and the name of the stream for ``types = shuffled``: jobs of the same key get the same order.
    """
    own = dict(rates)
    if spec.heterogeneity != 1:
        differing = spread(np.array(list(own.values()), float), spec.heterogeneity)
        own = {name: significant(value) for name, value in zip(own, differing.tolist(), strict=True)}
    if spec.types == "aligned":
        by_type = dict(zip(order, sorted(own.values()), strict=True))
        return {name: by_type[name] for name in own}
    if spec.types == "shuffled":
        places: Ints = np.argsort(streams.uniform(f"types: {key}", len(own)), kind="stable")
        values = list(own.values())
        return {name: values[place] for name, place in zip(own, places.tolist(), strict=True)}
    return own


def spread(values: Array, power: float) -> Array:
    """Return positive values, along the last axis, with the differences of their logarithms times `power`."""
    logs = np.log(values)
    middle = logs.mean(axis=-1, keepdims=True)
    return np.asarray(np.exp(middle + power * (logs - middle)), float)


def slowest_first(rates: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the types of these models by the mean of the logarithms of their rates, ascending."""
    mean = {name: math.fsum(math.log(one[name]) for one in rates) for name in rates[0]}
    return sorted(mean, key=mean.__getitem__)
