"""Compute rows from results: select the cases of an item, take means with intervals and bounds, and judge."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from schedgap.harness.check import TOLERANCE
from schedgap.harness.show.measures import KNOWN, smaller_is_better
from schedgap.harness.show.text import Side, limit, number, numbers
from schedgap.harness.studies.published import agrees, measured_as, split, value_of
from schedgap.harness.studies.reproduce.row import AUDITED, NOT_TESTABLE, Case, Evidence, ReproducedRow, decide
from schedgap.harness.studies.reproduce.setting import (
    SIMILAR,
    Alternative,
    Compared,
    Item,
    Measured,
    Number,
    Order,
    Setting,
    Trend,
    Unmeasured,
)
from schedgap.harness.studies.resampling import interval, units_of
from schedgap.instances.text import some

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "largest": max, "smallest": min}

OF_MEANS: Mapping[str, Callable[..., Statistic | None]] = {"smallest mean": min, "largest mean": max}
"""Statistics of a map with several draws at each point: the smallest or largest, over points, of means over draws."""

WIDE = 0.5
"""An interval wider than this fraction of the printed value is too wide to judge by; the mean is used instead."""

NOT_RUN = "Nothing of this run is about it; --quick leaves out what takes longest."
"""Note on an item that could be measured, but was not."""

TIED = "All policies give the same value: nothing queues, so that these runs do not tell them apart."
"""Note on an item about policies that do not differ in what was run."""

TRACE = 0.002
"""Values that differ relatively by less than this have no order, and ratios this close to 1 have no direction."""


@dataclass(frozen=True)
class Statistic:
    """A statistic over cases with its 95 % interval, and the bound on it with its side and model."""

    value: float
    low: float
    high: float
    cases: int
    bound: float | None = None
    side: Side = "exactly"
    model: str = ""

    def __str__(self) -> str:
        interval = f" [{number(self.low, 3)}, {number(self.high, 3)}]" if self.low < self.high else ""
        return f"{number(self.value)}{interval}"


def rows(setting: Setting, cases: Sequence[Case]) -> Iterator[ReproducedRow]:
    """Yield a row for every compared item of a setting, and a row for everything printed that is not run."""
    for one in setting.printed or ([Unmeasured(what=setting.title)] if not setting.runs else ()):
        verdict = f"{AUDITED}: {one.claim}" if one.claim else NOT_TESTABLE
        yield ReproducedRow(setting.id, setting.place, one.what, published=one.value or None, verdict=verdict)
    for item in setting.items:
        yield _row(setting, item, cases)


def _row(setting: Setting, item: Compared, cases: Sequence[Case]) -> ReproducedRow:
    stated, fields = _judged(setting, item, cases)
    fields.pop("text", None)
    others: list[tuple[Alternative, Evidence]] = []
    elsewhere = []
    for other in item.only_if:
        if (changed := _instead(item, other)) == item:
            continue
        judged, measured = _judged(setting, changed, cases)
        others.append((other, judged))
        if judged.agrees is not None:
            elsewhere.append(f"{other.setting}: {measured.get('text', numbers(measured.get('measured')))}")
    methods = item.order if isinstance(item, Order) else (item.method, split(item.quantity)[1])
    failed = [case for case in cases if case.run == setting.run_of(item.run).name and case.trouble]
    trouble = some([case.trouble for case in failed if case.method in methods], 2)
    known = stated.agrees is not None or stated.measured
    unseen = "" if known or trouble or setting.needs else TIED if stated.tied else NOT_RUN
    return ReproducedRow(
        figure=setting.id,
        place=item.place or setting.place,
        verdict=decide(stated, {one.setting: evidence for one, evidence in others}, setting.complete),
        elsewhere=tuple(elsewhere),
        flips=tuple(_flips(stated, others)),
        note=f"{item.note} {unseen}".strip(),
        trouble=trouble,
        **fields,
    )


def _flips(stated: Evidence, others: Sequence[tuple[Alternative, Evidence]]) -> Iterator[str]:
    """Yield the alternatives under which the verdict is another, with the assumption that they change."""
    for other, evidence in others:
        if evidence.agrees is not None and (verdict := decide(evidence)) != decide(stated):
            yield f"{other.assumption}, {other.setting}: {verdict}".removeprefix(", ")


def _instead(item: Any, other: Alternative) -> Any:
    """Return an item in an alternative setting: with another run, points or methods."""
    changes: dict[str, Any] = {"run": other.run or item.run, "at": {**item.at, **other.at}}

    def replaced(method: str) -> str:
        return other.instead.get(method, method)

    if isinstance(item, Order):
        changes["order"] = tuple(map(replaced, item.order))
    else:
        name, reference = split(item.quantity)
        changes["method"] = replaced(item.method)
        changes["quantity"] = f"{name}:{replaced(reference)}" if reference else name
    return item.model_copy(update=changes)


Judged = tuple[Evidence, dict[str, Any]]


def _judged(setting: Setting, item: Compared, cases: Sequence[Case]) -> Judged:
    """Return the evidence about an item, and the fields of its row with ``text``, its measurement in words."""
    run = setting.run_of(item.run)
    here = [case for case in cases if case.run == run.name and fits(case, item)]
    judging: Mapping[type[Item], Callable[..., Judged]] = {Order: _order, Trend: _trend, Measured: _measured}
    judged, fields = judging.get(type(item), _number)(item, here)
    if run.policies and tied(item.quantity, here):
        judged = Evidence(None, tied=True)
    return replace(judged, reduced=run.reduced), fields


def tied(quantity: str, cases: Sequence[Case]) -> bool:
    """Return whether several policies ran in every case, and all have the same value of a quantity."""
    name, _ = split(quantity)
    by_case: dict[tuple[str, ...], list[Any]] = {}
    for method in dict.fromkeys(case.method for case in cases):
        for key, value in values(method, name, cases).items():
            by_case.setdefault(key, []).append(value)
    return bool(by_case) and all(len(several) > 1 and _equal(several) for several in by_case.values())


def _equal(several: Sequence[Any]) -> bool:
    """Return whether values, or lists of equal length, differ by a trace at most."""
    arrays = [np.asarray(one, float) for one in several]
    return all(one.shape == arrays[0].shape and np.allclose(one, arrays[0], rtol=TRACE, atol=0) for one in arrays)


def fits(case: Case, item: Item) -> bool:
    """Return whether a case has the parameters that an item is about (its `at`)."""
    return all(_is(case.at.get(name), wanted) for name, wanted in item.at.items())


def _is(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return any(_is(value, one) for one in wanted)
    same = plain_number(value) is not None and plain_number(value) == plain_number(wanted)
    return same or str(value) == str(wanted)


def plain_number(value: Any) -> float | None:
    """Convert a value or text to a number; return ``None`` if it is not one."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def values(method: str, quantity: str, cases: Sequence[Case]) -> dict[tuple[str, ...], Any]:
    """Return a quantity of a method by case; failed and WRONG results are left out."""
    peers: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for case in cases:
        if not case.trouble:
            peers.setdefault(case.key, {})[case.method] = case.measured
    by_case = ((key, value_of(quantity, method, measured)) for key, measured in peers.items())
    return {key: value for key, value in by_case if value is not None}


def shared(methods: Sequence[str], quantity: str, cases: Sequence[Case]) -> list[Case]:
    """Return the cases in which every method has a value, so that all means are over the same cases.

    Methods without a value in any case do not count.
    """
    by_method = [keys for method in methods if (keys := values(method, quantity, cases).keys())]
    return [case for case in cases if all(case.key in keys for keys in by_method)]


DRAWN = ("instance", "seed", "solver_seed")
"""Coordinates of a case that say which draw it is; the others say what is drawn."""


def statistic(method: str, quantity: str, cases: Sequence[Case], of: str = "mean") -> Statistic | None:
    """Return the mean (largest, smallest) value of a quantity over cases, jobs and tenants, its interval and bound.

    The smallest mean is that of the draws of one point: a map's smallest value, where a point has several draws; so is
    the largest mean. Its bound is over all points, since at another one than the best here more may be possible.
    """
    if of in OF_MEANS:
        points: dict[tuple[str, ...], list[Case]] = {}
        for case in cases:
            what = (f"{name}={value}" for name, value in case.at.items() if name not in DRAWN)
            points.setdefault(tuple(what), []).append(case)
        means = [one for here in points.values() if (one := statistic(method, quantity, here))]
        return _extreme(OF_MEANS[of], means) if means else None
    by_case = values(method, quantity, cases)
    sample = [float(one) for value in by_case.values() for one in np.ravel(value)]
    if not sample or not all(math.isfinite(value) for value in sample):
        return None
    value = STATISTICS[of](sample)
    low, high = interval(_draws(by_case, cases)) if of == "mean" else (value, value)
    bounds = [_bound(quantity, case, cases) for case in cases if case.method == method and case.key in by_case]
    certified = [bound for bound in bounds if bound is not None]
    if len(certified) < len(sample) or len({side for _, side, _ in certified}) != 1:
        return Statistic(value, low, high, len(sample))
    extreme = STATISTICS[of]([bound for bound, _, _ in certified])
    return Statistic(value, low, high, len(sample), extreme, certified[0][1], certified[0][2])


def _extreme(choose: Callable[..., Any], means: Sequence[Statistic]) -> Statistic:
    """Return the smallest or largest of several means; the bound on it is the smallest or largest of their bounds."""
    best: Statistic = choose(means, key=lambda one: one.value)
    if any(one.bound is None for one in means) or len({one.side for one in means}) > 1:
        return replace(best, bound=None)
    widest = choose(means, key=lambda one: one.bound)
    return replace(best, bound=widest.bound, model=widest.model)


def _draws(by_case: Mapping[tuple[str, ...], Any], cases: Sequence[Case]) -> list[list[float]]:
    """Return the values of cases by draw: the same seed at several sizes is one draw, not several.

    If there is only one draw, every value stands for itself.
    """
    names = {"\n".join(case.key): str(case.at.get("instance", "")) for case in cases if case.key in by_case}
    units = units_of(names)
    by_draw: dict[str, list[float]] = {}
    for key, value in by_case.items():
        by_draw.setdefault(units["\n".join(key)], []).extend(float(one) for one in np.ravel(value))
    groups = list(by_draw.values())
    return sorted(map(sorted, groups)) if len(groups) > 1 else [[one] for one in sorted(groups[0])]


def _bound(quantity: str, case: Case, cases: Sequence[Case]) -> tuple[float, Side, str] | None:
    """Return the certified bound on a quantity in a case, its side, and the model.

    The bound on a ratio is the largest value that the method can reach while the other method's result stays the same.
    """
    name, other = split(quantity)
    base, unit = measured_as(name, case.measured) or ("", 1.0)
    if base not in case.bounds:
        return None
    bound, model = case.bounds[base]
    less = smaller_is_better(base, case.measured)
    if not other:
        return bound / unit, "at least" if less else "at most", model
    theirs = [one.measured[base] for one in cases if (one.key, one.method) == (case.key, other)]
    best, reference = (bound, theirs[0]) if less else (theirs[0], bound)
    return (reference / best, "at most", model) if best > 0 else None


# ---------------------------------------------------------------- judging items


def _number(item: Number, cases: Sequence[Case]) -> Judged:
    """Compare a number with a statistic over the cases."""
    fields: dict[str, Any] = {
        "what": item.quantity + _points(item),
        "method": item.method,
        "published": _plain(item.value),
        **{name: getattr(item, name) for name in ("relation", "tolerance", "unit")},
    }
    judged = Evidence(None)
    if isinstance(item.value, tuple | list):  # a vector or matrix is about one case
        by_case = list(values(item.method, item.quantity, cases).values())
        if len(by_case) == 1:
            judged = Evidence(_same(by_case[0], item.value, item.tolerance, item.relation))
            fields |= {"measured": np.asarray(by_case[0]).tolist(), "cases": 1}
    elif one := statistic(item.method, item.quantity, cases, item.statistic):
        judged = evidence(item, one)
        fields |= _of(one)
    if judged.agrees is False and item.exact is not None and _same(fields["measured"], item.exact, TOLERANCE):
        return replace(judged, excluded=True), fields | {"certified": f"= {numbers(item.exact)} (exact)"}
    return judged, fields


def _of(one: Statistic) -> dict[str, Any]:
    """Return the fields of a row with a statistic and its bound."""
    fields = {"measured": one.value, "low": one.low, "high": one.high, "cases": one.cases, "text": str(one)}
    return fields if one.bound is None else fields | {"certified": f"{limit(one.bound, one.side)} ({one.model})"}


def _measured(item: Measured, cases: Sequence[Case]) -> Judged:
    """Measure a quantity of which nothing is printed."""
    fields: dict[str, Any] = {"what": item.quantity + _points(item), "method": item.method, "unit": item.unit}
    one = statistic(item.method, item.quantity, cases, item.statistic)
    return Evidence(None, measured=one is not None), fields | (_of(one) if one else {})


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else float(value)


def _same(found: Any, wanted: Any, tolerance: float, relation: str = "equal") -> bool:
    return bool(agrees(np.asarray(found, float), np.asarray(wanted, float), tolerance, relation))


def evidence(item: Number, found: Statistic) -> Evidence:
    """Judge a printed number by a statistic, its interval and its bound."""
    value, slack = float(np.asarray(item.value)), item.tolerance * (1 + 1e-9)
    narrow = found.high - found.low <= WIDE * abs(value)
    low, high = (found.low, found.high) if narrow else (found.value, found.value)
    same = {
        "equal": low - slack <= value <= high + slack,
        "at least": found.value >= value - slack,
        "at most": found.value <= value + slack,
    }[item.relation]
    above = found.side == "at most" and item.relation != "at most" and value - slack > (found.bound or 0.0)
    below = found.side == "at least" and item.relation != "at least" and value + slack < (found.bound or 0.0)
    # A ratio points the same way if all of its interval is on the printed side of one, by more than a trace.
    alike = found.low > 1 + TRACE if value > 1 else found.high < 1 - TRACE and value < 1
    return Evidence(same, alike and bool(split(item.quantity)[1]), bool(above or below))


def _order(item: Order, cases: Sequence[Case]) -> Judged:
    """Compare an ordering: of means over all cases, or at every value of a parameter."""
    fields: dict[str, Any] = {"what": f"{item.quantity}: ordering{_points(item)}"}
    fields["published"] = (" at least as good as " if item.ties else " before ").join(item.order)
    by_value = {at: shared(item.order, item.quantity, here) for at, here in groups(item.along, cases).items()}
    stats = {at: [statistic(method, item.quantity, here) for method in item.order] for at, here in by_value.items()}
    stats = {at: row for at, row in stats.items() if all(row)}
    if not stats:
        return Evidence(None), fields
    less = _less(item.quantity, cases)
    least = -TRACE if item.ties else TRACE

    def ordered(several: Iterable[float]) -> bool:
        signed = several if less else (-value for value in several)
        return all(b - a > least * abs(a) for a, b in pairwise(signed))

    held = [at for at, row in stats.items() if ordered(one.value for one in row if one)]
    if item.along:
        missed = [str(at) for at in stats if at not in held]
        text = f"at {len(held)} of {len(stats)} values of {item.along}"
        text += f"; not at {some(missed, 4)}" if missed else ""
        single = [value for at in stats for value in _single(item, by_value[at])]
        text += f"; in {sum(map(ordered, single))} of {len(single)} cases" if len(single) > len(stats) else ""
    else:
        better = (" ≤ " if less else " ≥ ") if item.ties else (" < " if less else " > ")
        sign = better if held else " against "
        text = sign.join(str(one) for row in stats.values() for one in row)
    fewest = min(one.cases for row in stats.values() for one in row if one)
    fields |= {"measured": text, "cases": fewest, "text": text}
    unclear = all(overlap(a, b) for at in held for a, b in pairwise(stats[at]))
    return Evidence(len(held) == len(stats), 2 * len(held) > len(stats), unclear=unclear), fields


def _single(item: Order, cases: Sequence[Case]) -> Iterator[list[float]]:
    """Yield the values of the methods of an ordering in each case: its jobs are the same for all of them."""
    of_methods = [values(method, item.quantity, cases) for method in item.order]
    for key in of_methods[0]:
        if all(key in known for known in of_methods):
            yield [float(np.mean(known[key])) for known in of_methods]


def overlap(a: Statistic | None, b: Statistic | None) -> bool:
    """Return whether the 95 % intervals of two means overlap; a single case has none, and says what it says."""
    return a is not None and b is not None and a.low < b.high and b.low < a.high


def _less(quantity: str, cases: Sequence[Case]) -> bool:
    """Return whether smaller values of a quantity are better; larger ratios to another method are."""
    name, other = split(quantity)
    base, _ = measured_as(name, KNOWN) or (name, 1.0)
    measured = next((case.measured for case in cases if base in case.measured), {})
    return not other and smaller_is_better(base, measured)


def groups(along: str, cases: Sequence[Case]) -> dict[Any, list[Case]]:
    """Group cases by the value of a parameter, numbers in ascending order; without a parameter, in one group."""
    by_value: dict[Any, list[Case]] = {}
    for case in cases:
        value = case.at.get(along) if along else ""
        if value is not None:
            by_value.setdefault(value, []).append(case)
    ordered = sorted(by_value, key=lambda value: (plain_number(value) is None, plain_number(value) or 0.0))
    return {value: by_value[value] for value in ordered}


def curve(method: str, quantity: str, along: str, cases: Sequence[Case]) -> dict[Any, Statistic]:
    """Return a quantity with its interval by the value of a parameter."""
    points = {at: statistic(method, quantity, here) for at, here in groups(along, cases).items()}
    return {at: one for at, one in points.items() if one is not None}


def _trend(item: Trend, cases: Sequence[Case]) -> Judged:
    """Compare the trend of a curve along a parameter."""
    peak = f" at {item.along} = {some([str(one) for one in item.peak])}" if item.peak else f" with {item.along}"
    fields: dict[str, Any] = {
        "what": f"{item.quantity}: trend{_points(item)}",
        "method": item.method,
        "published": f"{item.shape}{peak}",
    }
    points = curve(item.method, item.quantity, item.along, cases)
    if item.like:
        return _scaling(item, cases, fields | {"published": f"scales with {item.along} like {item.like}"})
    if len(points) < 2:
        return Evidence(None), fields
    means = [one.value for one in points.values()]
    places = {at: at if (x := plain_number(at)) is None else number(x, 3) for at in points}
    text = ", ".join(f"{places[at]}: {one}" for at, one in points.items())
    fields |= {"measured": text, "cases": min(one.cases for one in points.values()), "text": text}
    if item.peak:
        best = (max if item.shape == "peaks" else min)(points, key=lambda at: points[at].value)
        return Evidence(any(_is(best, one) for one in item.peak)), fields
    sign = 1 if item.shape == "rises" else -1
    steps = [sign * (b - a) for a, b in pairwise(means)]
    first, *_, last = points.values()
    return Evidence(all(step > 0 for step in steps), sum(steps) > 0, unclear=overlap(first, last)), fields


def _scaling(item: Trend, cases: Sequence[Case], fields: dict[str, Any]) -> Judged:
    """Compare how two curves grow: the exponents of power laws through their first and last points."""
    exponents = []
    for method in (item.method, item.like):
        points = curve(method, item.quantity, item.along, cases)
        ends = [(plain_number(at), one.value) for at, one in points.items()]
        if len(ends) < 2 or not all(x and x > 0 and value > 0 for x, value in ends):
            return Evidence(None), fields
        (first, low), (last, high) = ends[0], ends[-1]
        exponents.append(math.log(high / low) / math.log(float(last or 1) / float(first or 1)))
    own, other = exponents
    text = f"exponents {own:.2f} and {other:.2f}"
    return Evidence(abs(own - other) <= SIMILAR), fields | {"measured": text, "cases": len(ends), "text": text}


def _points(item: Item) -> str:
    """Return the run and points of an item in words, in parentheses; empty if it has neither."""
    wanted = {name: value if isinstance(value, tuple) else (value,) for name, value in item.at.items()}
    parts = [f"{name} = {some(list(map(str, several)))}" for name, several in wanted.items()]
    parts[:0] = [item.run] if item.run else []
    return f" ({', '.join(parts)})" if parts else ""
