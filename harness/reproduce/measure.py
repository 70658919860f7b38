"""From results to rows: which cases something printed is about, means with intervals, bounds, and what follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from schedgap.harness.published import LESS_IS_BETTER, agrees, measured_as, split, value_of
from schedgap.harness.reproduce.row import Case, Evidence, ReproducedRow, decide
from schedgap.harness.reproduce.setting import Alternative, Item, Number, Order, Setting, Trend
from schedgap.harness.text import number, numbers, some
from schedgap.harness.verify import TOLERANCE

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "largest": max, "smallest": min}

RESAMPLES = 2000
"""Bootstrap samples of an interval."""

WIDE = 0.5
"""An interval wider than this part of the printed value decides nothing: the mean does."""

NOT_RUN = "Nothing of this run is about it; --quick leaves out what takes longest."
"""What is said of something that could be measured, but was not."""

TRACE = 0.002
"""Values that differ by a smaller part are no ordering, and ratios nearer to one point nowhere."""


@dataclass(frozen=True)
class Found:
    """A statistic over cases with its 95 % interval, the bound on it with its sign and model, and failed runs."""

    value: float
    low: float
    high: float
    cases: int
    bound: float | None = None
    sign: str = ""
    model: str = ""

    def __str__(self) -> str:
        interval = f" [{number(self.low, 3)}, {number(self.high, 3)}]" if self.low < self.high else ""
        return f"{number(self.value)}{interval}"


def rows(setting: Setting, cases: Sequence[Case]) -> Iterator[ReproducedRow]:
    """Yield a row for everything that is compared in a setting; for one that cannot be tested, a row that says so."""
    for text in setting.printed or (("",) if not setting.runs else ()):
        what, _, printed = text.rpartition(": ")
        yield ReproducedRow(setting.id, setting.place, what or setting.title, published=printed or None)
    for item in setting.items:
        yield _row(setting, item, cases)


def _row(setting: Setting, item: Number | Order | Trend, cases: Sequence[Case]) -> ReproducedRow:
    stated, told = _judged(setting, item, cases)
    others = {}
    elsewhere = []
    for other in item.only_if:
        if (changed := _instead(item, other)) == item:
            continue
        found, more = _judged(setting, changed, cases)
        others[other.setting] = found
        if found.agrees is not None:
            elsewhere.append(f"{other.setting}: {more.get('text', numbers(more.get('measured')))}")
    methods = item.order if isinstance(item, Order) else (item.method, split(item.quantity)[1])
    about = [case for case in cases if case.run == setting.run_of(item.run).name and case.trouble]
    trouble = some([case.trouble for case in about if case.method in methods], 2)
    fields = {name: value for name, value in told.items() if name != "text"}
    return ReproducedRow(
        figure=setting.id,
        place=item.place or setting.place,
        verdict=decide(stated, others),
        elsewhere=tuple(elsewhere),
        note=item.note if stated.agrees is not None or trouble or setting.needs else f"{item.note} {NOT_RUN}".strip(),
        trouble=trouble,
        **fields,
    )


def _instead(item: Any, other: Alternative) -> Any:
    """Return what is compared, in another setting: other run, points, or methods."""
    changes: dict[str, Any] = {"run": other.run or item.run, "at": {**item.at, **other.at}}

    def named(method: str) -> str:
        return other.instead.get(method, method)

    if isinstance(item, Order):
        changes["order"] = tuple(named(method) for method in item.order)
    else:
        name, reference = split(item.quantity)
        changes["method"] = named(item.method)
        changes["quantity"] = f"{name}:{named(reference)}" if reference else name
    return item.model_copy(update=changes)


Judged = tuple[Evidence, dict[str, Any]]


def _judged(setting: Setting, item: Number | Order | Trend, cases: Sequence[Case]) -> Judged:
    """Return what was measured about something printed, and the fields of its row."""
    here = [case for case in cases if case.run == setting.run_of(item.run).name and fits(case, item)]
    if isinstance(item, Order):
        return _order(item, here)
    return _trend(item, here) if isinstance(item, Trend) else _number(item, here)


def fits(case: Case, item: Item) -> bool:
    """Return whether a case is one of those that something is about."""
    return all(_is(case.at.get(name), wanted) for name, wanted in item.at.items())


def _is(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return any(_is(value, one) for one in wanted)
    same = plain_number(value) is not None and plain_number(value) == plain_number(wanted)
    return same or str(value) == str(wanted)


def plain_number(value: Any) -> float | None:
    """Return the number that a value or text is, ``None`` where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def values(method: str, quantity: str, cases: Sequence[Case]) -> dict[tuple[str, ...], Any]:
    """Return a quantity of a method by case; results that are not confirmed have none."""
    peers: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for case in cases:
        if not case.trouble:
            peers.setdefault(case.key, {})[case.method] = case.measured
    found = ((key, value_of(quantity, method, beside)) for key, beside in peers.items())
    return {key: value for key, value in found if value is not None}


def shared(methods: Sequence[str], quantity: str, cases: Sequence[Case]) -> list[Case]:
    """Return the cases in which each of these methods has a value that has one in any: all means are over the same."""
    found = [known for method in methods if (known := values(method, quantity, cases).keys())]
    return [case for case in cases if all(case.key in known for known in found)]


def statistic(method: str, quantity: str, cases: Sequence[Case], of: str = "mean") -> Found | None:
    """Return the mean (largest, smallest) value of a quantity over cases, jobs and tenants, its interval and bound."""
    found = values(method, quantity, cases)
    known = [float(one) for value in found.values() for one in np.ravel(value)]
    if not known or not all(math.isfinite(value) for value in known):
        return None
    value = STATISTICS[of](known)
    low, high = interval(known) if of == "mean" else (value, value)
    bounds = [_bound(quantity, case, cases) for case in cases if case.method == method and case.key in found]
    sure = [bound for bound in bounds if bound is not None]
    if len(sure) < len(known) or len({sign for _, sign, _ in sure}) != 1:
        return Found(value, low, high, len(known))
    limit = STATISTICS[of]([bound for bound, _, _ in sure])
    return Found(value, low, high, len(known), limit, sure[0][1], sure[0][2])


def _bound(quantity: str, case: Case, cases: Sequence[Case]) -> tuple[float, str, str] | None:
    """Return the certified bound on a quantity in a case, its sign, and the model.

    Of a ratio it is the most that the method can reach with the other method's result as it is.
    """
    name, other = split(quantity)
    base, unit = measured_as(name, case.measured) or ("", 1.0)
    if base not in case.bounds:
        return None
    bound, model = case.bounds[base]
    less = base != "objective" or case.measured.get("sense") == "min"
    if not other:
        return bound / unit, "≥" if less else "≤", model
    theirs = [one.measured[base] for one in cases if (one.key, one.method) == (case.key, other)]
    best, reference = (bound, theirs[0]) if less else (theirs[0], bound)
    return (reference / best, "≤", model) if best > 0 else None


def interval(known: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean; of equal numbers, or one, it is a point."""
    if len(set(known)) == 1:
        return known[0], known[0]
    from scipy.stats import bootstrap

    seed = np.random.default_rng(0)
    found = bootstrap((sorted(known),), np.mean, n_resamples=RESAMPLES, method="percentile", rng=seed)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


# ---------------------------------------------------------------- what follows


def _number(item: Number, cases: Sequence[Case]) -> Judged:
    told: dict[str, Any] = {
        "what": item.quantity + _points(item),
        "method": item.method,
        "published": _plain(item.value),
        **{name: getattr(item, name) for name in ("relation", "tolerance", "unit")},
    }
    found = Evidence(None)
    if isinstance(item.value, tuple | list):  # a vector or matrix is about one case
        known = list(values(item.method, item.quantity, cases).values())
        if len(known) == 1:
            found = Evidence(_same(known[0], item.value, item.tolerance, item.relation))
            told |= {"measured": np.asarray(known[0]).tolist(), "cases": 1}
    elif one := statistic(item.method, item.quantity, cases, item.statistic):
        found = evidence(item, one)
        told |= {"measured": one.value, "low": one.low, "high": one.high, "cases": one.cases, "text": str(one)}
        told |= {} if one.bound is None else {"certified": f"{one.sign} {number(one.bound)} ({one.model})"}
    if found.agrees is False and item.exact is not None and _same(told["measured"], item.exact, TOLERANCE):
        return replace(found, excluded=True), told | {"certified": f"= {numbers(item.exact)} (exact)"}
    return found, told


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else float(value)


def _same(found: Any, wanted: Any, tolerance: float, relation: str = "equal") -> bool:
    return bool(agrees(np.asarray(found, float), np.asarray(wanted, float), tolerance, relation))


def evidence(item: Number, found: Found) -> Evidence:
    """Return what a statistic says about a printed number."""
    value, slack = float(np.asarray(item.value)), item.tolerance * (1 + 1e-9)
    narrow = found.high - found.low <= WIDE * abs(value)
    low, high = (found.low, found.high) if narrow else (found.value, found.value)
    same = {
        "equal": low - slack <= value <= high + slack,
        "at least": found.value >= value - slack,
        "at most": found.value <= value + slack,
    }[item.relation]
    above = found.sign == "≤" and item.relation != "at most" and value - slack > (found.bound or 0.0)
    below = found.sign == "≥" and item.relation != "at least" and value + slack < (found.bound or 0.0)
    # A ratio points the same way that is on the printed side of one, with all of its interval and more than a trace.
    alike = found.low > 1 + TRACE if value > 1 else found.high < 1 - TRACE and value < 1
    return Evidence(same, alike and bool(split(item.quantity)[1]), bool(above or below))


def _order(item: Order, cases: Sequence[Case]) -> Judged:
    """Compare an ordering: in the mean over all cases, or at every value of a parameter."""
    told: dict[str, Any] = {"what": f"{item.quantity}: ordering{_points(item)}"}
    told["published"] = " before ".join(item.order)
    divided = {at: shared(item.order, item.quantity, here) for at, here in groups(item.along, cases).items()}
    known = {at: [statistic(method, item.quantity, here) for method in item.order] for at, here in divided.items()}
    known = {at: found for at, found in known.items() if all(found)}
    if not known:
        return Evidence(None), told
    less = item.quantity.endswith((*LESS_IS_BETTER, "_h"))
    less = cases[0].measured.get("sense") == "min" if item.quantity == "objective" else less
    means = {at: [one.value if less else -one.value for one in found if one] for at, found in known.items()}
    held = [at for at, row in means.items() if all(b - a > TRACE * abs(a) for a, b in pairwise(row))]
    if item.along:
        missed = [str(at) for at in known if at not in held]
        text = f"at {len(held)} of {len(known)} values of {item.along}"
        text += f"; not at {some(missed, 4)}" if missed else ""
    else:
        sign = (" < " if less else " > ") if held else " against "
        text = sign.join(str(one) for found in known.values() for one in found)
    counted = min(one.cases for found in known.values() for one in found if one)
    told |= {"measured": text, "cases": counted, "text": text}
    return Evidence(len(held) == len(known), 2 * len(held) > len(known)), told


def groups(along: str, cases: Sequence[Case]) -> dict[Any, list[Case]]:
    """Return cases by the value of a parameter, in the order of numbers; in one group where none is named."""
    found: dict[Any, list[Case]] = {}
    for case in cases:
        value = case.at.get(along) if along else ""
        if value is not None:
            found.setdefault(value, []).append(case)
    ordered = sorted(found, key=lambda value: (plain_number(value) is None, plain_number(value) or 0.0))
    return {value: found[value] for value in ordered}


def curve(method: str, quantity: str, along: str, cases: Sequence[Case]) -> dict[Any, Found]:
    """Return a quantity by the value of a parameter, with intervals."""
    found = {at: statistic(method, quantity, here) for at, here in groups(along, cases).items()}
    return {at: one for at, one in found.items() if one is not None}


def _trend(item: Trend, cases: Sequence[Case]) -> Judged:
    """Compare what a curve does along a parameter."""
    peak = f" at {item.along} = {some([str(one) for one in item.peak])}" if item.peak else f" with {item.along}"
    told: dict[str, Any] = {
        "what": f"{item.quantity}: trend{_points(item)}",
        "method": item.method,
        "published": f"{item.shape}{peak}",
    }
    found = curve(item.method, item.quantity, item.along, cases)
    if len(found) < 2:
        return Evidence(None), told
    means = [one.value for one in found.values()]
    places = {at: at if (x := plain_number(at)) is None else number(x, 3) for at in found}
    text = ", ".join(f"{places[at]}: {one}" for at, one in found.items())
    told |= {"measured": text, "cases": min(one.cases for one in found.values()), "text": text}
    if item.peak:
        best = (max if item.shape == "peaks" else min)(found, key=lambda at: found[at].value)
        return Evidence(any(_is(best, one) for one in item.peak)), told
    sign = 1 if item.shape == "rises" else -1
    steps = [sign * (b - a) for a, b in pairwise(means)]
    return Evidence(all(step > 0 for step in steps), sum(steps) > 0), told


def _points(item: Item) -> str:
    """Return which points something is about, in words."""
    asked = {name: value if isinstance(value, tuple) else (value,) for name, value in item.at.items()}
    said = [f"{name} = {some(list(map(str, several)))}" for name, several in asked.items()]
    told = [*([item.run] if item.run else []), *said]
    return f" ({', '.join(told)})" if told else ""
