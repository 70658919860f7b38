"""Fitting the laws of generated instances to the jobs of another instance, such as an imported trace.

Each marginal is fitted by itself, and the distance of Kolmogorov and Smirnov between it and its law is reported:

- **durations** (`duration_s` as recorded): a mixture of log-normals by expectation and maximisation, with as many
  parts, up to :data:`PARTS`, as the criterion of Schwarz (BIC) asks for;
- **gangs**: the share of each size; the correlation of the copula is the one under which Spearman's rank correlation of
  gangs and durations is that of the jobs;
- **hours of the day**: a von Mises law by maximum likelihood, if it is more than chance: bursts fall on some hour or
  other, so that each day is turned by a random number of hours, :data:`TURNS` times, and in at most 5 % of them may
  hours be as unequal;
- **weekends**: the ratio of their days to others, if two whole weeks or more are there, and the dates are known;
- **gaps between arrivals**: a two-state Markov-modulated Poisson process by maximum likelihood (Rydén, Computational
  Statistics & Data Analysis 21, 1996), on the clock of the hours and weekends.

Jobs that arrive in the same second are spread over it. A part of a trace may lack the jobs of most days; days with
fewer than `least_day` of all jobs count as not observed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import InstanceError
from schedgap.instances.generate import Streams, laws
from schedgap.instances.generate.laws import HOUR_S, LawsSpec
from schedgap.instances.model_catalogue import significant
from schedgap.instances.schema import Instance

PARTS = 3
"""Most parts of a mixture of log-normals."""

TURNS = 999
"""Random turns of days with which the hours of arrivals are compared."""

DAY_S = 86_400.0
FEWEST = 50
"""Fewest jobs that laws are fitted to."""

WINDOWS_H = (1 / 12, 1.0, 6.0, 24.0)
"""Hours over which counts of arrivals are compared."""


@dataclass(frozen=True)
class Fit:
    """Laws fitted to the jobs of an instance.

    Attributes
    ----------
    name
        Name of the instance.
    parameters
        Parameters of generated instances by name, as in a spec.
    distances
        Distance of Kolmogorov and Smirnov by marginal: ``durations``, ``gangs``, ``hours of the day``, ``gaps``.
    rank_correlation
        Spearman's rank correlation of gangs and durations.
    dispersion
        By window in hours: variance over mean of the counts of arrivals, as observed and under the fitted law.
    jobs, days, per_day
        Number of jobs, of days on which arrivals count as observed, and of jobs that arrive on one of them on average.
    """

    name: str
    parameters: Mapping[str, Any]
    distances: Mapping[str, float]
    rank_correlation: float
    dispersion: Mapping[float, tuple[float, float]]
    jobs: int
    days: int
    per_day: float

    @property
    def spec(self) -> str:
        """The laws as a spec file, whose other parameters are those of ``gen/200jobs`` (TOML).

        Servers are as many as the largest gang needs on a single GPU type, and after the last arrival jobs have four
        times as long as the longest takes.
        """
        longest_h = math.exp(float(_law_of(self.parameters).x[-1])) / HOUR_S
        parameters = {
            "jobs_per_day": 0.0,
            "tail_h": float(math.ceil(4 * longest_h)),
            "servers_per_type": math.ceil(max(self.parameters["gangs"]) / 4),
            **self.parameters,
        }
        lines = [
            f"# Laws of {self.jobs} jobs; {self.per_day:.4g} arrivals a day on {self.days} days.",
            f"# Rank correlation of gangs and durations: {self.rank_correlation:.3f}.",
            "# Distances of Kolmogorov and Smirnov: "
            + ", ".join(f"{name} {value:.3f}" for name, value in self.distances.items())
            + ".",
            "# Variance over mean of arrivals, by hours of the window (and under the law): "
            + ", ".join(f"{hours:.3g} h {seen:.1f} ({law:.1f})" for hours, (seen, law) in self.dispersion.items())
            + ".",
            'base = "gen/200jobs"',
            f"title = {json.dumps(f'200 jobs with laws fitted to {self.name}', ensure_ascii=False)}",
            "",
            "[generator]",
            *(f"{name} = {json.dumps(value)}" for name, value in parameters.items()),
        ]
        return "\n".join(lines) + "\n"


def fit(instance: Instance, *, least_day: float = 0.0) -> Fit:
    """Fit the laws of generated instances to the jobs of an instance; the module's docstring says how.

    Parameters
    ----------
    instance
        For example a trace, imported by ``harness import``. Jobs without a recorded duration take that on their
        fastest GPUs.
    least_day
        Share of all jobs that must arrive on a day for its arrivals to count as observed.

    Raises
    ------
    InstanceError
        If there are fewer than :data:`FEWEST` jobs, or all have the same duration.
    """
    jobs = [(job, _seconds(job)) for job in instance.jobs]
    jobs = [(job, seconds) for job, seconds in jobs if seconds > 0]
    if len(jobs) < FEWEST:
        raise InstanceError(f"{instance.name}: {len(jobs)} jobs with a duration; {FEWEST} or more can be fitted")
    seconds = np.array([one for _, one in jobs])
    if seconds.max() == seconds.min():
        raise InstanceError(f"{instance.name}: all jobs take {seconds.max():g} s; nothing to fit")
    gangs = np.array([job.gpus for job, _ in jobs])
    parameters, of_durations = _durations(seconds)
    sizes, counts = np.unique(gangs, return_counts=True)
    shares = [round(float(one), 6) for one in counts / counts.sum()]
    parameters |= {"gangs": sizes.tolist(), "gang_probabilities": shares}
    ranks = _rank_correlation(gangs, seconds)
    parameters["gang_correlation"] = _correlation(shares, ranks)
    of_gangs = float(np.abs(np.cumsum(shares) - np.cumsum(counts / counts.sum())).max())
    began = instance.began_s
    times = np.sort([job.submit_s for job, _ in jobs]) + (began % (7 * DAY_S) - 4 * DAY_S if began else 0.0)
    arriving, distances, dispersion, days, per_day = _arrivals(times, began is not None, least_day)
    return Fit(
        name=instance.name,
        parameters={**arriving, **parameters},
        distances={"durations": of_durations, "gangs": of_gangs, **distances},
        rank_correlation=ranks,
        dispersion=dispersion,
        jobs=len(jobs),
        days=days,
        per_day=per_day,
    )


def samples(instance: Instance, found: Fit) -> dict[str, tuple[Array, Array]]:
    """Return durations and gaps between arrivals in seconds: those of the jobs, and as many of the fitted laws.

    Gaps are those by the clock on the wall, and the laws draw them with seed 0.
    """
    seconds = np.array([one for job in instance.jobs if (one := _seconds(job)) > 0])
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.parameters.items()
    }
    spec = LawsSpec(family="fit", **{name: value for name, value in given.items() if name in LawsSpec.model_fields})
    u = (np.arange(seconds.size) + 0.5) / seconds.size
    both = {"durations": (seconds, laws.durations(spec, u, found.parameters["mean_h"] * HOUR_S))}
    if spec.arrivals != "start":
        times = _apart(np.sort([job.submit_s for job in instance.jobs]))
        drawn = laws.arrival_times(spec, times.size, found.per_day / DAY_S, Streams(0))
        both["gaps"] = np.diff(times), np.diff(drawn)
    return both


def _seconds(job: Any) -> float:
    """Return the recorded duration of a job, or that on its fastest GPUs."""
    if job.duration_s is not None:
        return float(job.duration_s)
    fastest = max(job.rates.values(), default=0.0)
    return float(job.iterations / (job.gpus * fastest)) if fastest else 0.0


def distance(values: Array, cdf: Callable[[Array], Array]) -> float:
    """Return the largest distance between the distribution functions of values and of a continuous law."""
    from scipy.stats import ks_1samp

    return float(ks_1samp(values, cdf).statistic)  # type: ignore[arg-type]


# durations ----------------------------------------------------------------------------------------


def _durations(seconds: Array) -> tuple[dict[str, Any], float]:
    """Return the parameters of the mixture, and its distance from the durations."""
    logs = np.log(seconds)
    fits = [mixture(logs, parts) for parts in range(1, PARTS + 1)]
    best = min(fits, key=lambda own: _schwarz(logs, *own))
    parameters, law = _law(*best, logs.min(), logs.max())
    return parameters, distance(logs, lambda x: np.interp(x, law.x, law.below))


def _law_of(parameters: Mapping[str, Any]) -> laws.Mixture:
    """Return the law of durations in seconds."""
    return laws.Mixture(*(parameters[name] for name in ("size_spread", "shares", "medians", "sigmas")))


def _law(weight: Array, mean: Array, width: Array, least: float, most: float) -> tuple[dict[str, Any], laws.Mixture]:
    """Return the parameters of a mixture of normal laws of logarithms that go from `least` to `most`, and the law."""
    order = np.argsort(mean)
    shares, medians, sigmas = (
        [significant(float(one), 4) for one in values[order]] for values in (weight, np.exp(mean), width)
    )
    middle = float(np.array(shares) @ np.log(medians) / sum(shares))
    spread = significant(min(1e6, math.exp(2 * max(most - middle, middle - least))), 4)
    parameters: dict[str, Any] = {"durations": "mixture", "size_spread": spread}
    parameters |= {"shares": shares, "medians": medians, "sigmas": sigmas}
    law = _law_of(parameters)
    return {**parameters, "mean_h": significant(law.mean / HOUR_S, 4)}, law


def fit_curve(seconds: Sequence[float], below: Sequence[float], parts: int = PARTS) -> tuple[dict[str, Any], float]:
    """Fit a mixture of log-normals to a published distribution function of durations, by least squares.

    Parameters
    ----------
    seconds, below
        Points of the distribution function: durations, ascending, and the shares of jobs that take at most as long.
    parts
        Number of log-normals.

    Returns
    -------
    tuple
        Parameters of generated instances, and the largest distance at these points.
    """
    from scipy.optimize import least_squares
    from scipy.special import softmax
    from scipy.stats import norm

    x, y = np.log(seconds), np.asarray(below, float)

    def read(p: Array) -> tuple[Array, Array, Array]:
        weight, mean, width = p.reshape(3, parts)
        return softmax(weight), mean, np.exp(np.clip(width, -3.0, 3.0))

    def off(p: Array) -> Array:
        weight, mean, width = read(p)
        return np.asarray(norm.cdf(x[:, None], mean, width) @ weight - y, float)

    start = np.concatenate([np.zeros(parts), np.interp((np.arange(parts) + 0.5) / parts, y, x), np.zeros(parts)])
    parameters, law = _law(*read(least_squares(off, start).x), float(x[0]), float(x[-1]))
    return parameters, float(np.abs(np.interp(x, law.x, law.below) - y).max())


def mixture(x: Array, parts: int, rounds: int = 500) -> tuple[Array, Array, Array]:
    """Return weights, means and standard deviations of a mixture of normal laws, by expectation and maximisation."""
    values, times = np.unique(x, return_counts=True)  # traces count whole seconds, so that many jobs take as long
    weight = np.full(parts, 1 / parts)
    mean, width = np.quantile(x, (np.arange(parts) + 0.5) / parts), np.full(parts, x.std() / parts)
    for _ in range(rounds):
        log = np.log(weight / width)[:, None] - ((values - mean[:, None]) / width[:, None]) ** 2 / 2
        belongs = np.exp(log - log.max(axis=0))
        belongs *= times / belongs.sum(axis=0)
        count = belongs.sum(axis=1)
        weight, mean = count / x.size, belongs @ values / count
        width = np.sqrt((belongs * (values - mean[:, None]) ** 2).sum(axis=1) / count)
        width = np.maximum(width, 0.01)  # a part for equal values would have an infinite likelihood
    return weight, mean, width


def _schwarz(x: Array, weight: Array, mean: Array, width: Array) -> float:
    """Return the criterion of Schwarz of a mixture; the smaller, the better."""
    from scipy.special import logsumexp
    from scipy.stats import norm

    likelihood = logsumexp(np.log(weight) + norm.logpdf(x[:, None], mean, width), axis=1).sum()
    return float((3 * weight.size - 1) * math.log(x.size) - 2 * likelihood)


# gangs --------------------------------------------------------------------------------------------


def _rank_correlation(gangs: Ints, seconds: Array) -> float:
    """Return Spearman's rank correlation, 0 if all gangs are of one size."""
    from scipy.stats import spearmanr

    return float(spearmanr(gangs, seconds).statistic) if np.ptp(gangs) else 0.0


def _correlation(shares: Sequence[float], ranks: float) -> float:
    """Return the correlation of the copula whose rank correlation of gangs and durations is `ranks`."""
    from scipy.optimize import brentq

    if len(shares) < 2:
        return 0.0
    u, weight = laws.QUANTILES, np.array(shares) / sum(shares)
    middle = np.cumsum(weight) - weight / 2  # mean rank of the jobs of a size
    scale = math.sqrt(float(weight @ (middle - 0.5) ** 2) / 12)

    def beyond(correlation: float) -> float:
        mean = laws.gang_chances(shares, u, correlation) @ middle
        return float(((u - 0.5) * (mean - 0.5)).mean()) / scale - ranks

    if beyond(0.99) <= 0:
        return 0.99
    return -0.99 if beyond(-0.99) >= 0 else round(float(brentq(beyond, -0.99, 0.99)), 3)


# arrivals -----------------------------------------------------------------------------------------


def _arrivals(
    times: Array, dated: bool, least_day: float
) -> tuple[dict[str, Any], dict[str, float], dict[float, tuple[float, float]], int, float]:
    """Return parameters, distances, dispersion of counts, the number of observed days, and the arrivals on one.

    Times are ascending.
    """
    if times[-1] - times[0] < 1:
        return {"arrivals": "start"}, {}, {}, 1, float(times.size)
    times = _apart(times)
    day = np.floor(times / DAY_S).astype(np.int64)
    numbers, counts = np.unique(day, return_counts=True)
    observed = numbers[counts >= max(1.0, least_day * times.size)] if least_day else np.arange(day[0], day[-1] + 1)
    times = times[np.isin(day, observed)]
    if times.size < FEWEST:
        raise InstanceError(
            f"{times.size} jobs arrive on days with {least_day:g} of all jobs; {FEWEST} or more are needed"
        )
    parameters: dict[str, Any] = {"arrivals": "bursty"}
    distances = {}
    hours = times % DAY_S / HOUR_S
    ratio, peak, found = _day(hours, np.floor(times / DAY_S).astype(np.int64))
    distances["hours of the day"] = found
    if ratio > 1:
        parameters |= {"arrivals": "diurnal-bursty", "peak_ratio": ratio, "peak_h": peak}
    if dated and observed.size >= 14 and (weekend := _weekend(times, observed)):
        parameters |= {"arrivals": "weekly-bursty", "weekend": weekend}
        parameters |= {} if ratio > 1 else {"peak_ratio": 1.0}
    clock = LawsSpec(family="fit", **parameters)
    runs = _runs(times, observed, clock)
    process = _bursts([np.diff(run) for run in runs])
    parameters |= process.parameters
    gaps = np.concatenate([np.diff(run) for run in runs])
    distances["gaps"] = distance(gaps, process.gap_cdf)
    seconds = observed.size * DAY_S if least_day else times[-1] - times[0]
    per_day, dispersion = DAY_S * times.size / seconds, {}
    for window in WINDOWS_H:
        counts = _counts(times, observed, window * HOUR_S)
        fitted = _counts_of(LawsSpec(family="fit", **parameters), per_day, window * HOUR_S)
        dispersion[window] = (_over(counts), _over(fitted))
    return parameters, distances, dispersion, int(observed.size), per_day


def _apart(times: Array) -> Array:
    """Return times with those of the same second spread over it."""
    second, start, count = np.unique(np.floor(times), return_index=True, return_counts=True)
    place = np.arange(times.size) - np.repeat(start, count)
    several = np.repeat(count, count)
    return np.where(several > 1, np.repeat(second, count) + (place + 0.5) / several, times)


def _day(hours: Array, day: Ints) -> tuple[float, float, float]:
    """Return the ratio of the busiest hour to the quietest (1 if chance), the busiest hour, and the distance."""
    from scipy.stats import vonmises

    angle = (hours / 24 * 2 * np.pi + np.pi) % (2 * np.pi) - np.pi
    _, index = np.unique(day, return_inverse=True)
    by_day = np.bincount(index, np.cos(angle)) + 1j * np.bincount(index, np.sin(angle))
    turns = np.exp(2j * np.pi * np.random.default_rng(0).random((TURNS, by_day.size)))
    as_unequal = int((np.abs(turns @ by_day) >= abs(by_day.sum())).sum())
    chance = (as_unequal + 1) / (TURNS + 1) > 0.05
    kappa, peak, _ = vonmises.fit(angle, fscale=1)
    kappa = 0.0 if chance else float(kappa)
    ratio = significant(min(1000.0, math.exp(2 * kappa)), 4)
    turned = (angle - peak + np.pi) % (2 * np.pi) - np.pi
    even = distance(turned, lambda x: (x + np.pi) / (2 * np.pi))
    found = even if kappa == 0 else distance(turned, lambda x: vonmises.cdf(x, kappa))
    return ratio, significant(float(peak) / (2 * np.pi) * 24 % 24, 4), found


def _weekend(times: Array, observed: Ints) -> float:
    """Return the mean count of weekend days over that of others; 0 if one of them is not observed."""
    counts = np.array([np.count_nonzero(times // DAY_S == one) for one in observed])
    weekend = observed % 7 >= 5
    if weekend.all() or not weekend.any() or not counts[weekend].any():
        return 0.0
    return significant(min(1e3, max(1e-3, float(counts[weekend].mean() / counts[~weekend].mean()))), 4)


def _runs(times: Array, observed: Ints, clock: LawsSpec) -> list[Array]:
    """Return arrivals on the clock of the profile, in the hours that it counts, for each run of observed days."""
    ends = np.flatnonzero(np.diff(observed) > 1)
    runs = np.split(np.asarray(observed, float), ends + 1)
    inside = [times[(times >= run[0] * DAY_S) & (times < (run[-1] + 1) * DAY_S)] for run in runs]
    week = 7 * DAY_S
    return [laws.clock_of(clock, one + week * math.ceil(max(0.0, -one[0]) / week)) for one in inside if one.size > 1]


@dataclass(frozen=True)
class TwoStates:
    """A two-state Markov-modulated Poisson process: rates of arrivals, and of leaving the states, per second."""

    quiet: float
    burst: float
    begins: float
    ends: float

    @property
    def share(self) -> float:
        """Share of time in bursts."""
        return self.begins / (self.begins + self.ends)

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters of a spec."""
        return {
            "burst_rate": significant(min(1e6, self.burst / self.quiet), 4),
            "burst_share": significant(self.share, 4),
            "burst_jobs": significant(max(0.1, self.burst / self.ends), 4),
        }

    def _exponential(self, t: Array) -> tuple[Array, Array]:
        """Return coefficients `a`, `b` with ``exp(M t) = a·I + b·M``, where M is the generator without arrivals."""
        first, second = -self.begins - self.quiet, -self.ends - self.burst
        middle = (first + second) / 2
        root = math.sqrt(((first - second) / 2) ** 2 + self.begins * self.ends)
        grown, fallen = np.exp((middle + root) * t), np.exp(-2 * root * t)
        part = grown * (1 - fallen) / (2 * root)
        return grown * (1 + fallen) / 2 - middle * part, part

    def log_likelihood(self, gaps: Array) -> float:
        """Return the logarithm of the density of successive gaps, from an arrival on."""
        a, b = self._exponential(gaps)
        steps = np.empty((gaps.size, 2, 2))
        steps[:, 0, 0], steps[:, 0, 1] = a - b * (self.begins + self.quiet), b * self.begins
        steps[:, 1, 0], steps[:, 1, 1] = b * self.ends, a - b * (self.ends + self.burst)
        steps *= [self.quiet, self.burst]
        total = 0.0
        while len(steps) > 1:  # the product of all, by pairs, and scaled so that it stays within range
            odd = steps[-1:] if len(steps) % 2 else steps[:0]
            steps = np.concatenate((steps[: len(steps) - len(odd) : 2] @ steps[1::2], odd))
            scale = steps.max(axis=(1, 2))
            if scale.min() <= 0:
                return -math.inf
            total += float(np.log(scale).sum())
            steps /= scale[:, None, None]
        return total + math.log(float((np.array(self._at_arrivals()) @ steps[0]).sum()))

    def _at_arrivals(self) -> tuple[float, float]:
        """Return the chances of both states right after an arrival."""
        quiet, burst = (1 - self.share) * self.quiet, self.share * self.burst
        return quiet / (quiet + burst), burst / (quiet + burst)

    def gap_cdf(self, t: Array) -> Array:
        """Return the distribution function of a gap."""
        a, b = self._exponential(np.asarray(t, float))
        quiet, burst = self._at_arrivals()
        return np.asarray(1 - (a - quiet * b * self.quiet - burst * b * self.burst), float)


def _bursts(runs: Sequence[Array]) -> TwoStates:
    """Return the two-state process of largest likelihood for the gaps of each run."""
    from scipy.optimize import minimize

    gaps = np.concatenate(runs)
    rate = 1 / gaps.mean()

    def process(x: Array) -> TwoStates:
        quiet, more, begins, ends = np.exp(np.clip(x, -40, 40))
        return TwoStates(quiet, quiet * (1 + more), begins, ends)

    def cost(x: Array) -> float:
        return -sum(process(x).log_likelihood(run) for run in runs)

    starts = [np.log([rate / 10, 100.0, rate / slow / 10, rate / slow]) for slow in (10.0, 100.0)]
    found = [
        minimize(cost, x, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-3, "maxfev": 1500}) for x in starts
    ]
    return process(min(found, key=lambda one: float(one.fun)).x)


def _counts(times: Array, observed: Ints, window: float) -> Ints:
    """Return the counts of arrivals in windows of observed days, from the first arrival to the last."""
    per_day = round(DAY_S / window)
    index = np.floor(times / window).astype(np.int64)
    at = np.searchsorted(observed, index // per_day) * per_day + index % per_day
    return np.bincount(at - at[0])


SIMULATED = 200_000
"""Arrivals that are drawn for the counts under a law."""


def _counts_of(spec: LawsSpec, per_day: float, window: float) -> Ints:
    """Return the counts of arrivals in windows under a law, in a fixed draw."""
    times = laws.arrival_times(spec, SIMULATED, per_day / DAY_S, Streams(0))
    return np.bincount((times / window).astype(np.int64))[:-1]


def _over(counts: Ints) -> float:
    """Return variance over mean."""
    return float(counts.var() / counts.mean()) if counts.size > 1 and counts.any() else math.nan
