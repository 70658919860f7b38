"""Statistics of many results: intervals, paired differences, what explains gaps, and how solve times grow.

Comparisons and simulations have them alike: both give their rows as :class:`Observation`. Every number is about
instances, each of which has one value, the mean over its solver seeds: medians, means, wins and regressions. Intervals
and tests allow for the dependence of instances that share random numbers
(:func:`schedgap.harness.studies.resampling.units_of`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.harness.engine.result import Found, Observation, grouped
from schedgap.harness.show.measures import EFFECTS, GROWTH, INTERVALS, PAIRS, MeasureTable, kinds
from schedgap.harness.show.table import to_parquet
from schedgap.harness.studies.resampling import FEWEST, averaged, by_unit, interval, units_of
from schedgap.instances.catalogue import settings, usual
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema.summary import load

if TYPE_CHECKING:
    import pandas as pd

    from schedgap.instances.schema import Instance
    from schedgap.instances.schema.job import Job

REFERENCE = ("online", "baseline")
"""Kinds of which the first method is the one that others are compared with, unless the user names one."""


@dataclass(frozen=True)
class GapInterval:
    """Median and mean of a method's gaps on instances with intervals, over all or at a value of a parameter."""

    method: str
    problem: str
    limits: str
    factor: str
    value: str
    results: int
    cases: int
    units: int
    failed: int
    upper: float
    median: float
    median_low: float
    median_high: float
    mean: float
    mean_low: float
    mean_high: float


@dataclass(frozen=True)
class PairedDifference:
    """A method against the reference on the same cases: wins, mean ratio with interval, and a test."""

    method: str
    reference: str
    problem: str
    limits: str
    cases: int
    units: int
    wins: int
    ties: int
    losses: int
    ratio: float
    ratio_low: float
    ratio_high: float
    p: float | None
    p_holm: float | None


@dataclass(frozen=True)
class GapEffect:
    """How a method's gap changes with a feature of the instance, all other features equal."""

    method: str
    problem: str
    limits: str
    feature: str
    slope: float
    slope_low: float
    slope_high: float
    spread: float
    units: int
    explained: float


@dataclass(frozen=True)
class TimeGrowth:
    """The exponent with which a method's solve time grows with the number of jobs or tenants."""

    method: str
    limits: str
    results: int
    censored: int
    smallest: int
    largest: int
    exponent: float
    exponent_low: float
    exponent_high: float


TABLES: Mapping[str, MeasureTable] = {"intervals": INTERVALS, "pairs": PAIRS, "effects": EFFECTS, "growth": GROWTH}
"""Measures of each table of :class:`Statistics`."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of a run: intervals of gaps, paired differences, effects of features, and growth of solve times."""

    intervals: Sequence[GapInterval] = ()
    pairs: Sequence[PairedDifference] = ()
    effects: Sequence[GapEffect] = ()
    growth: Sequence[TimeGrowth] = ()

    def of(self, methods: Set[str]) -> Statistics:
        """Return the rows about some methods, such as those of one paper."""
        return Statistics(*([one for one in getattr(self, name) if one.method in methods] for name in TABLES))

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in TABLES)

    @property
    def records(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of each table as plain data; numbers have nine digits, which all machines agree on."""
        return {name: [_rounded(asdict(row)) for row in getattr(self, name)] for name in TABLES}

    def frame(self, name: str) -> pd.DataFrame:
        """Return a table, such as ``pairs``, as a data frame."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in getattr(self, name)], columns=list(TABLES[name]))


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.9g}") if isinstance(value, float) else value for name, value in row.items()}


def statistics(run: Found[Any], reference: str = "") -> Statistics:
    """Return the statistics of a run; a method, or a value of a parameter, with fewer than three units has no interval.

    What is shown of a run is ``run.once(statistics)``, so that it is computed once.

    Parameters
    ----------
    run
        Results of ``sg.compare``, ``sg.simulate`` or ``sg.sweep``. In simulations, methods are policies, and problems
        are metrics.
    reference
        Method that others are compared with on its problem; by default the one that the run names, the paper's own, or
        else a baseline.

    Raises
    ------
    UsageError
        If no row has the reference as its method.
    """
    seen = run.observations()
    reference = reference or run.meta.get("reference", "")
    if reference and reference not in (methods := list(dict.fromkeys(one.method for one in seen))):
        raise UsageError(unknown("method of this run", reference, methods))
    units = units_of({one.fingerprint: one.instance for one in seen})
    growth = list(_growth(seen, run.instances))
    if len(set(units.values())) < FEWEST:
        return Statistics(growth=growth)
    return Statistics(
        list(_intervals(seen, units)),
        list(_paired(seen, units, reference)),
        list(_effects(seen, units, run.instances)),
        growth,
    )


def parquet(run: Found[Any]) -> dict[str, bytes]:
    """Return the tables of a run's statistics that have rows as Parquet files, by name of the file."""
    records = run.once(statistics).records
    return {f"{name}.parquet": to_parquet(kinds(TABLES[name]), lines) for name, lines in records.items() if lines}


# ---------------------------------------------------------------- gaps


def _gap(one: Observation) -> float | None:
    return one.gap


def factors(names: Collection[str]) -> dict[str, dict[str, Collection[str]]]:
    """Return the names at each value of each parameter that varies, without the seed; `""` has all of them."""
    stated = {name: settings(name) for name in names}
    found: dict[str, dict[str, Collection[str]]] = {"": {"": names}}
    bases = {name: name.partition("?")[0] for name in names}
    keys = dict.fromkeys(key for one in stated.values() for key in one if key != "seed")
    values: dict[str, Callable[[str], Any]] = {"instance": lambda name: bases[name]}
    values |= {key: lambda name, key=key: stated[name].get(key, usual(name, key)) for key in keys}  # type: ignore[misc]
    for factor, value_of in values.items():
        by_value: dict[str, list[str]] = {}
        for name in names:
            by_value.setdefault(str(value_of(name)), []).append(name)
        if 1 < len(by_value) < len(names):
            found[factor] = {**by_value}
    return found


def _intervals(seen: Sequence[Observation], units: Mapping[str, str]) -> Iterator[GapInterval]:
    """Yield the gaps of each method, over all instances and at each value of each parameter."""
    cells = factors(list(dict.fromkeys(one.instance for one in seen)))
    for group in grouped(seen, "method", "problem", "limits"):
        for factor, by_value in cells.items():
            for value, names in by_value.items():
                inside = [one for one in group if one.instance in names]
                gaps = averaged(inside, _gap)
                if not gaps:
                    continue
                several, sample = by_unit(gaps, units), list(gaps.values())
                if len(several) < FEWEST:
                    continue
                certified = [one for one in inside if one.gap is not None]
                of_median, of_mean = interval(several, "median"), interval(several)
                yield GapInterval(
                    **{name: getattr(group[0], name) for name in ("method", "problem", "limits")},
                    factor=factor,
                    value=value,
                    results=len(inside),
                    cases=len(gaps),
                    units=len(several),
                    failed=sum(one.failed for one in inside),
                    upper=fmean(one.upper for one in certified),
                    median=median(sample),
                    mean=fmean(sample),
                    median_low=of_median[0],
                    median_high=of_median[1],
                    mean_low=of_mean[0],
                    mean_high=of_mean[1],
                )


# ---------------------------------------------------------------- paired differences


def _objective(one: Observation) -> float | None:
    return one.objective


def _paired(seen: Sequence[Observation], units: Mapping[str, str], reference: str) -> Iterator[PairedDifference]:
    """Yield each method's differences to the reference of its problem; p-values are adjusted over its methods."""
    for group in grouped((one for one in seen if one.objective is not None), "problem", "limits"):
        by_method = {several[0].method: several for several in grouped(group, "method")}
        first = next((name for kind in REFERENCE for name, some in by_method.items() if some[0].kind == kind), "")
        base = reference if reference in by_method else first
        if not base:
            continue
        sign = 1.0 if group[0].sense == "max" else -1.0
        theirs = averaged(by_method[base], _objective)
        found = []
        for name, several in by_method.items():
            ours = averaged(several, _objective)
            logs = {at: sign * math.log(value / theirs[at]) for at, value in ours.items() if at in theirs}
            if name != base and len({units[at] for at in logs}) >= FEWEST:
                found.append((name, logs))
        pairs = [_pair(by_method[name][0], base, logs, units) for name, logs in found]
        yield from _adjusted(pairs)


EQUAL = 1e-9
"""Logarithms of ratios up to this are ties."""


def _pair(one: Observation, reference: str, logs: Mapping[str, float], units: Mapping[str, str]) -> PairedDifference:
    """Return the paired difference of a method; logarithms of its ratios are positive where it is better."""
    from scipy.stats import wilcoxon

    several = by_unit(logs, units)
    means = [mean if abs(mean := fmean(group)) > EQUAL else 0.0 for group in several]
    low, high = interval(several)
    return PairedDifference(
        method=one.method,
        reference=reference,
        problem=one.problem,
        limits=one.limits,
        cases=len(logs),
        units=len(several),
        wins=sum(value > EQUAL for value in logs.values()),
        ties=sum(abs(value) <= EQUAL for value in logs.values()),
        losses=sum(value < -EQUAL for value in logs.values()),
        ratio=math.exp(fmean(logs.values())),
        ratio_low=math.exp(low),
        ratio_high=math.exp(high),
        p=float(wilcoxon(means).pvalue) if any(means) else None,
        p_holm=None,
    )


def _adjusted(pairs: Sequence[PairedDifference]) -> Iterator[PairedDifference]:
    """Yield the pairs with p-values adjusted by Holm's method for the number of pairs that are tested."""
    from statsmodels.stats.multitest import multipletests

    known = [one.p for one in pairs if one.p is not None]
    adjusted = iter(multipletests(known, method="holm")[1].tolist() if known else ())
    for one in pairs:
        yield one if one.p is None else replace(one, p_holm=next(adjusted))


# ---------------------------------------------------------------- features


def features(instance: Instance) -> dict[str, float]:
    """Return features of an instance that may explain gaps; those that it does not have are absent.

    ``load`` is the work over what all GPUs can do until the last arrival; ``burstiness`` the coefficient of variation
    of the times between arrivals (1 for Poisson arrivals); ``heterogeneity`` the mean ratio of a job's rates on its
    best and its worst GPU type; ``gangs`` the share of jobs of several GPUs; ``spread of durations`` the standard
    deviation of the logarithm of the jobs' shortest durations; and ``tightness`` the mean share of the time until its
    deadline that a job needs.
    """
    jobs = instance.jobs
    rates = [[rate for rate in job.rates.values() if rate > 0] for job in jobs]
    times = sorted(job.submit_s for job in jobs)
    waits = [b - a for a, b in pairwise(times)]
    timed = [(job, _shortest(job, rate)) for job, rate in zip(jobs, rates, strict=True) if rate]
    tight = [time / (job.deadline_s - job.submit_s) for job, time in timed if job.deadline_s]
    found = {
        "load": load(instance) if jobs else None,
        "burstiness": stdev(waits) / fmean(waits) if len(waits) > 1 and any(waits) else None,
        "heterogeneity": fmean(max(one) / min(one) for one in rates if one) if any(rates) else None,
        "gangs": fmean(job.gpus > 1 for job in jobs) if jobs else None,
        "spread of durations": stdev(math.log(time) for _, time in timed) if len(timed) > 1 else None,
        "tightness": fmean(tight) if tight else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _shortest(job: Job, rates: Sequence[float]) -> float:
    """Return the seconds that a job takes on its fastest GPUs."""
    return job.iterations / (job.gpus * max(rates))


def _effects(
    seen: Sequence[Observation], units: Mapping[str, str], instances: Mapping[str, Instance]
) -> Iterator[GapEffect]:
    """Yield the slopes of a regression of each method's gap on the features that vary, with intervals.

    Features are in standard deviations. Intervals allow for the dependence of instances of a unit (clusters). Methods
    with fewer than :data:`PER_FEATURE` units for each feature are left out.
    """
    known = {mark: features(one) for mark, one in instances.items()}
    for group in grouped(seen, "method", "problem", "limits"):
        gaps = {name: value for name, value in averaged(group, _gap).items() if name in known}
        if len(set(gaps.values())) > 1:
            yield from _regression(group[0], gaps, known, units)


PER_FEATURE = 5
"""Fewest units for each feature of a regression."""


def _regression(
    of: Observation, gaps: Mapping[str, float], known: Mapping[str, Mapping[str, float]], units: Mapping[str, str]
) -> Iterator[GapEffect]:
    """Yield the effect of each feature on the gaps of one method."""
    shared = [f for f in known[next(iter(gaps))] if all(f in known[name] for name in gaps)]
    matrix = np.array([[known[name][f] for f in shared] for name in gaps])
    spread = matrix.std(axis=0, ddof=1)
    varies = spread > 1e-9 * np.maximum(np.abs(matrix).max(axis=0, initial=0.0), 1e-9)
    names = [f for f, one in zip(shared, varies, strict=True) if one]
    x = (matrix[:, varies] - matrix[:, varies].mean(axis=0)) / spread[varies]
    clusters = [units[name] for name in gaps]
    enough = len(set(clusters)) >= PER_FEATURE * len(names)
    if not names or not enough or np.linalg.matrix_rank(x) < len(names):
        return
    from statsmodels.regression.linear_model import OLS

    index = np.unique(clusters, return_inverse=True)[1]
    design = np.column_stack([np.ones(len(x)), x])
    fitted = OLS(np.array(list(gaps.values())), design).fit(cov_type="cluster", cov_kwds={"groups": index}, use_t=True)
    ends = fitted.conf_int()
    for i, name in enumerate(names, 1):
        yield GapEffect(
            **{key: getattr(of, key) for key in ("method", "problem", "limits")},
            feature=name,
            slope=float(fitted.params[i]),
            slope_low=float(ends[i][0]),
            slope_high=float(ends[i][1]),
            spread=float(spread[varies][i - 1]),
            units=len(set(clusters)),
            explained=float(fitted.rsquared),
        )


# ---------------------------------------------------------------- growth

SIZES = 4
"""Fewest different sizes at which a method ended by itself for an exponent of growth: with three, intervals are ±7."""

SPREAD = 1e-3, 1e3
"""Least and largest spread of the logarithm of a solve time; a fit without errors has no most likely spread."""

NEARLY = 0.95
"""A result that took this share of its time limit was ended by the limit."""


def _growth(seen: Sequence[Observation], instances: Mapping[str, Instance]) -> Iterator[TimeGrowth]:
    """Yield the exponent of the solve time of each method that ran on several sizes."""
    for group in grouped((one for one in seen if one.solve_s and _size(one, instances)), "method", "limits"):
        sizes = np.array([_size(one, instances) for one in group])
        seconds = np.array([one.solve_s or 0.0 for one in group])
        ended = [one.failed or (one.solve_s or 0.0) >= NEARLY * one.allowed_s for one in group]
        if len(set(sizes[~np.array(ended)].tolist())) < SIZES:
            continue
        slope = censored_slope(np.log(sizes), np.log(seconds), np.array(ended))
        if np.isfinite(slope).all():
            named = group[0].method, group[0].limits
            yield TimeGrowth(*named, len(group), sum(ended), int(sizes.min()), int(sizes.max()), *slope)


def _size(one: Observation, instances: Mapping[str, Instance]) -> int:
    """Return the number of jobs or tenants that an observation is about, 0 if it is not known."""
    paper = one.method.partition(".")[0]
    known = one.fingerprint in instances and paper in PAPERS
    return PAPERS.get(paper).size(instances[one.fingerprint]) if known else 0


def censored_slope(x: Any, y: Any, censored: Any) -> tuple[float, float, float]:
    """Return the slope of ``y`` on ``x`` with its 95 % interval, if some ``y`` are only lower bounds (`censored`).

    It is the maximum-likelihood estimate of a linear model with normal errors, in which a censored point contributes
    the probability of lying above (Tobin, Econometrica 26, 1958). Without censored points it is that of least squares.
    Numbers are NaN if the likelihood has no clear maximum.
    """
    from scipy.stats import norm
    from statsmodels.base.model import GenericLikelihoodModel
    from statsmodels.regression.linear_model import OLS

    design = np.column_stack([np.ones(len(x)), x])
    plain = OLS(y, design).fit()
    if not censored.any() or np.allclose(plain.resid, 0.0, atol=1e-9):
        low, high = plain.conf_int()[1]
        return float(plain.params[1]), float(low), float(high)

    class Censored(GenericLikelihoodModel):  # type: ignore[misc]
        """Linear model in which censored observations lie above their values."""

        def loglikeobs(self, params: Any) -> Any:
            mean, scale = self.exog @ params[:2], np.exp(np.clip(params[2], *np.log(SPREAD)))
            seen = norm.logpdf(self.endog, mean, scale)
            return np.where(censored, norm.logsf(self.endog, mean, scale), seen)

    start = np.append(plain.params, math.log(max(float(np.sqrt(plain.mse_resid)), SPREAD[0])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what has no maximum has no interval, and is NaN
        fitted = Censored(y, design, extra_params_names=["log_scale"]).fit(start_params=start, method="bfgs", disp=0)
        low, high = fitted.conf_int()[1]
    return float(fitted.params[1]), float(low), float(high)
