"""What figures of reproductions are drawn from: records of curves, bars, maps and distributions, without a chart.

One function serves all figures of a kind; what is on the axes stands in the setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from schedgap.harness.published import split
from schedgap.harness.reproduce.measure import Found, curve, fits, groups, plain_number, shared, statistic
from schedgap.harness.reproduce.row import Case
from schedgap.harness.reproduce.setting import Drawing, Item, Number, Setting

Record = dict[str, Any]

STEPS = 400
"""Most steps of a distribution that are drawn."""


def records(setting: Setting, drawing: Drawing, cases: Sequence[Case]) -> list[Record]:
    """Return what is drawn, one record per mark: ``x``, ``series``, ``value``; if known ``low``, ``high``, ``bound``.

    Methods are compared at a point on those cases only in which all of them have a result. Records with ``published``
    are marks of printed values. A map has ``y`` in place of the series, a distribution shares of jobs by hours, or of
    rounds by the part of the GPUs that works.
    """
    about = Item(at=drawing.at)
    here = [case for case in cases if case.run == setting.run_of(drawing.run).name and fits(case, about)]
    here = [case for case in here if not case.trouble]
    methods = drawing.methods or tuple(dict.fromkeys(case.method for case in here))
    if drawing.kind == "cdf":
        return [record for method in methods for record in _distribution(method, drawing.quantity, here)]
    if drawing.kind == "map":
        return list(_map(drawing, methods, here))
    return [*_curves(drawing, methods, here), *_printed(setting, drawing, methods)]


def _curves(drawing: Drawing, methods: Sequence[str], cases: Sequence[Case]) -> Iterator[Record]:
    """Yield means with intervals along a parameter, for each method and value of another parameter."""
    for other, among in groups(drawing.across, cases).items():
        alike = [
            one for here in groups(drawing.along, among).values() for one in shared(methods, drawing.quantity, here)
        ]
        for method in methods:
            name = f"{method}, {drawing.across} = {other}" if drawing.across else method
            for at, found in curve(method, drawing.quantity, drawing.along, alike).items():
                yield {"x": at, "series": name, **_mean(found)}


def _mean(found: Found) -> Record:
    told = {"value": found.value, "low": found.low, "high": found.high, "cases": found.cases}
    return told if found.bound is None else {**told, "bound": found.bound, "model": found.model}


def _map(drawing: Drawing, methods: Sequence[str], cases: Sequence[Case]) -> Iterator[Record]:
    """Yield the mean at each pair of two parameters; the second may be the method."""
    of_methods = drawing.across == "method"
    for method in methods:
        for other, among in groups("" if of_methods else drawing.across, cases).items():
            for at, here in groups(drawing.along, among).items():
                if (found := statistic(method, drawing.quantity, here)) and method != split(drawing.quantity)[1]:
                    yield {"x": at, "y": method if of_methods else other, "series": method, **_mean(found)}


def _distribution(method: str, quantity: str, cases: Sequence[Case]) -> Iterator[Record]:
    """Yield the part of all jobs completed by a time, or of all rounds up to a use of GPUs, in the first case."""
    case = next((one for one in cases if one.method == method and one.trace), None)
    if case is None or (trace := case.trace.value if case.trace else None) is None:
        return
    every = trace.utilisation if quantity == "gru" else trace.jct_s / 3600.0
    known = np.sort(every[np.isfinite(every)])
    for i in np.unique(np.linspace(0, known.size - 1, min(STEPS, known.size)).astype(int)).tolist():
        yield {"x": float(known[i]), "series": method, "value": (i + 1) / every.size}


def _printed(setting: Setting, drawing: Drawing, methods: Sequence[str]) -> Iterator[Record]:
    """Yield the printed values of the quantity that belong to one point of a curve."""
    for item in setting.items:
        same = isinstance(item, Number) and item.quantity == drawing.quantity and item.method in methods
        same = same and setting.run_of(item.run) == setting.run_of(drawing.run)
        if same and isinstance(item, Number) and isinstance(item.value, float) and drawing.along in item.at:
            yield {"x": item.at[drawing.along], "series": item.method, "published": item.value}


def is_numeric(drawn: Sequence[Record]) -> bool:
    """Return whether all values on the horizontal axis are numbers."""
    return all(plain_number(record["x"]) is not None for record in drawn)
