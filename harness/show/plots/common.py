"""Figures for every paper: gaps, ratios, times, and bounds over time; performance profiles and scaling."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from schedgap.harness.engine.result import grouped
from schedgap.harness.show.figure import Drawn, figure
from schedgap.harness.show.looks import Look
from schedgap.harness.show.measures import COMPARE, TRACE
from schedgap.harness.show.plots import style
from schedgap.harness.show.plots.results import Compared, some
from schedgap.harness.show.text import SIGNS, Side, clean, estimate, number, percent, ratio, seconds
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.summary import Criterion, cases, profiles, proof
from schedgap.harness.studies.statistics import statistics
from schedgap.heuristics import HEURISTICS
from schedgap.instances.arrays import Array
from schedgap.instances.parameters import base_id, stated
from schedgap.instances.registry import PAPERS
from schedgap.instances.text import counted

SHORTEST_S = 1e-4
"""Shorter times are drawn at this value: a logarithmic axis has no zero, and clocks cannot resolve shorter times."""

STOPPED = "stopped by the time limit"

ENDS = {"finished": "circle", STOPPED: "triangle-right"}
"""How a run can end, with the shape of its mark."""

MAX_TRACES = 6

BOX_FROM = 4
"""Minimum number of results for which the middle half is marked."""

MOST_PANELS = 4
"""Maximum number of problems in a figure of profiles, those with the most results first."""


Record = dict[str, Any]
Shapes = Mapping[str, str]


# ---------------------------------------------------------------- a line per method


def by_method(
    data: Compared,
    points: Sequence[tuple[Row, Record]],
    what: str,
    shapes: Shapes,
    axis: alt.X,
    more: Sequence[Any] = (),
) -> Any:
    """Return a chart with a row of points per method, the smallest median on top, and a panel per problem.

    A point has a ``value``, a ``what`` that selects its shape, and a ``text`` that is written next to it if its method
    has only one point; further fields go into the tooltip. The layers `more` are drawn behind.
    """
    some(points[1:])  # a single point would only repeat the table
    single = len({(row.problem, row.method) for row, _ in points}) == len(points)
    records = [
        {
            "method": style.name(row.method),
            "panel": clean(row.problem.partition(".")[2] or row.problem, 60),
            "kind": row.kind,
            "instance": clean(row.instance, 60),
            **point,
            "beside": point["text"] if single else "",
        }
        for row, point in points
    ]
    table = pd.DataFrame(records)
    order = table.groupby("method")["value"].median().sort_values(kind="stable").index
    problems, kinds = list(dict.fromkeys(table["panel"])), set(table["what"])
    own = json.dumps(sorted(set(table.loc[table["kind"] == "online", "method"])))
    bold = {"condition": {"test": f"indexof({own}, datum.value) >= 0", "value": "bold"}, "value": "normal"}
    side = alt.Y("method:N", title=None, sort=list(order), axis=alt.Axis(grid=True, labelFontWeight=bold))
    base = alt.Chart(width=style.WIDTH - 160, height=alt.Step(style.ROW)).encode(side, axis)
    look = style.colour(data.looks, order, legend="")
    look["shape"] = style.keyed(alt.Shape, "what", {kind: shape for kind, shape in shapes.items() if kind in kinds})
    further = [key for key in points[0][1] if key not in ("value", "text", "what")]
    tips = style.tip("method", "kind", "instance", ("text", what), "what", *further)
    drawing = base.mark_point(filled=True, size=60, opacity=0.85).encode(tooltip=tips, **look)
    layers = [*(layer.encode(side) for layer in more), drawing]
    if single:
        words: dict[str, Any] = {"align": "left", "dx": 8}
        behind = base.mark_text(**words, stroke=style.PAPER, strokeWidth=4)  # no line of the grid strikes it through
        layers += [mark.encode(text="beside:N") for mark in (behind, base.mark_text(**words))]
    else:
        # The middle half and the median of the results, for methods with several of them.
        several = base.transform_joinaggregate(n="count()", groupby=["panel", "method"])
        several = several.transform_filter(alt.datum.n >= BOX_FROM)
        middle = several.mark_bar(color=style.FAINT, size=11).encode(x="q1(value):Q", x2="q3(value):Q")
        median = several.mark_tick(color=style.MUTED, thickness=2, size=13).encode(x="median(value):Q")
        layers = [middle, median, *layers]
    # Gaps to optima of different problems do not rank methods, so each problem has its own panel.
    return style.in_panels(alt.layer(*layers, data=style.rows(records)), problems, apart="y")


# ---------------------------------------------------------------- gap, ratio, time


def _gap(row: Row) -> Record:
    side = estimate(row.ratio_is_upper)
    return {
        "value": 100.0 * (row.gap or 0.0),
        "what": "optimum certified" if side == "exactly" else "upper estimate",
        "text": _signed(row.gap, side) + _loss(row),
        "objective": number(row.objective),
        "bound": number(row.best_bound),
    }


def _loss(row: Row) -> str:
    """Return the loss of a method made for a narrower problem; its gap is that loss plus a price."""
    if row.loss is None:
        return ""
    return f", loss {_signed(row.loss, estimate(row.loss_is_upper))}"


def _signed(share: float | None, side: Side) -> str:
    """Return a share in per cent, after ≤ or ≥ if it is an estimate; "< 0.01 %" has a sign already."""
    text = percent(share, side)
    return text if text.startswith("<") else SIGNS.get(side, "") + text


@figure("gap", "Gap by method")
def gap(data: Compared) -> Drawn:
    """Gap to the best certified bound, in per cent of the bound, by method; the paper's own algorithms are in bold.

    Discs: the optimum is certified. Triangles: it is not, so the true gap may be smaller.
    """
    drawn = some([row for row in data.rows if row.certified])
    points = [(row, _gap(row)) for row in drawn]
    largest = max(point["value"] for _, point in points)
    title = COMPARE["gap"].axis
    axis = style.x("value", title, domain=[0.0, 1.15 * largest or 1.0])
    if largest > 200.0:
        scale = alt.Scale(type="symlog", constant=10, domain=[0.0, 2 * largest], nice=False)
        decades = [0, *10.0 ** np.arange(1, np.log10(largest) + 1)]
        axis = alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(grid=False, values=decades, format=",.0f"))
    several = len({row.problem for row in drawn}) > 1
    warning = "Each problem has its own bound, so gaps of different problems are not comparable with one another. "
    lost = "A loss is the gap to the bound of the narrower problem that a method is made for. "
    told = warning * several + lost * any(row.loss is not None for row in drawn)
    shapes = {"optimum certified": "circle", "upper estimate": "triangle-left"}
    return by_method(data, points, "gap", shapes, axis), told + data.sample(drawn)


def _ratio(row: Row) -> Record:
    return {
        "value": row.ratio or 1.0,
        "what": "measured" if row.ratio_is_upper is False else "upper estimate",
        "text": ratio(row.ratio, row.ratio_is_upper),
        "guarantee": row.guarantee_factor or 1.0,
        "start": 1.0,
        "promise": "guarantee",
    }


@figure("ratio", "Ratio against guarantee")
def guarantees(data: Compared) -> Drawn:
    """Ratio to the optimum (1 is optimal) by method, compared with the paper's worst-case guarantee.

    Vertical bars: the guarantee on the same instance.
    """
    promised = [row for row in data.rows if row.certified and row.guarantee_factor is not None]
    drawn = some([row for row in promised if row.ratio is not None])
    points = [(row, _ratio(row)) for row in drawn]
    largest = max(max(point["guarantee"], point["value"]) for _, point in points)
    axis = style.x("value", COMPARE["ratio"].axis, log=largest > 8.0, domain=[1.0, 1.05 * largest])
    reach = alt.Chart().mark_bar(color=style.FAINT, opacity=0.5, size=9).encode(x=alt.X("start:Q"), x2="guarantee:Q")
    key = style.keyed(alt.Stroke, "promise", {"guarantee": style.INK})
    end = alt.Chart().mark_tick(thickness=2, size=13).encode(x=alt.X("guarantee:Q"), stroke=key)
    shapes = {"measured": "circle", "upper estimate": "triangle-left"}
    return by_method(data, points, "ratio", shapes, axis, [reach, end]), data.sample(drawn)


FEWEST = 3
"""Least number of values of a setting for which its effect is drawn."""


def by_setting(rows: Sequence[Row]) -> dict[tuple[str, str], dict[float, list[float]]]:
    """Return the ratios of methods that differ in one numeric setting, by the other settings and its name, by value.

    A method without the setting belongs to its default, if that is a number.
    """
    found: dict[tuple[str, str], dict[float, list[float]]] = {}
    measured = [row for row in rows if row.certified and row.ratio is not None and row.method in HEURISTICS]
    specs = {row.method: HEURISTICS.get(row.method) for row in measured}
    numeric: dict[str, dict[str, float]] = {}
    for method, spec in specs.items():
        values = {p.name: spec.settings.get(p.name, spec.default(p)) for p in spec.parameters}
        numeric[method] = {
            n: float(v) for n, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)
        }
    names = {name for method, values in numeric.items() for name in values if name in specs[method].settings}
    for row in measured:
        spec = specs[row.method]
        for name in sorted(names & numeric[row.method].keys()):
            rest = {key: value for key, value in spec.settings.items() if key != name}
            key = base_id(row.method) + (f"?{stated(rest)}" if rest else ""), name
            found.setdefault(key, {}).setdefault(numeric[row.method][name], []).append(float(row.ratio or 1.0))
    return {key: dict(sorted(values.items())) for key, values in found.items() if len(values) >= FEWEST}


@figure("setting", "Ratio by setting")
def settings(data: Compared) -> Drawn:
    """Mean ratio to the optimum or its bound (1 is optimal) by the value of a setting, and the median, as a point.

    A panel for each setting; bands are from the first to the third quartile.
    """
    found = some(by_setting(data.rows))
    records: list[Record] = [
        {
            "panel": name,
            "method": style.name(method),
            "value": value,
            "mean": float(np.mean(ratios)),
            "median": float(np.median(ratios)),
            "low": float(np.quantile(ratios, 0.25)),
            "high": float(np.quantile(ratios, 0.75)),
            "n": len(ratios),
        }
        for (method, name), values in found.items()
        for value, ratios in values.items()
    ]
    methods = list(dict.fromkeys(str(record["method"]) for record in records))
    log = all(float(record["value"]) > 0 for record in records)
    base = alt.Chart(style.rows(records), width=style.WIDTH, height=160)
    axis = style.x("value", "value of the setting", log=log)
    look = style.colour(style.looks(methods), methods)
    title, tips = COMPARE["ratio"].axis, style.tip("method", "value", "mean", "median", "n")
    band = base.mark_area(opacity=0.15).encode(axis, style.y("low", title).scale(zero=False), alt.Y2("high:Q"), **look)
    line = base.mark_line(point=False).encode(axis, style.y("mean", title), tooltip=tips, **look)
    middle = base.mark_point(filled=True, size=30).encode(axis, style.y("median", title), tooltip=tips, **look)
    panels = list(dict.fromkeys(str(record["panel"]) for record in records))
    return style.in_panels(alt.layer(band, line, middle), panels, apart="xy"), data.sample(data.rows)


def _time(row: Row) -> Record:
    return {
        "value": max(row.solve_s or 0.0, SHORTEST_S),
        "what": STOPPED if row.status.startswith("time limit") else "finished",
        "text": seconds(row.solve_s),
    }


def timed(row: Row) -> bool:
    """Return whether the row has a solve time worth showing: not skipped, failed or WRONG."""
    return row.solve_s is not None and row.status != "skipped" and not (row.wrong or row.failed)


@figure("time", "Solve time by method", minor=True)
def times(data: Compared) -> Drawn:
    """Time spent in the solver or the heuristic by method, in seconds, on a logarithmic axis."""
    drawn = some([row for row in data.rows if timed(row)])
    points = [(row, _time(row)) for row in drawn]
    values = [point["value"] for _, point in points]
    ends = [10.0 ** np.floor(np.log10(min(values))), 10.0 ** np.ceil(np.log10(max(values) * 1.6))]
    axis = style.x("value", COMPARE["solve_s"].axis, log=True, domain=ends)
    return by_method(data, points, "time", ENDS, axis), data.sample(drawn)


# ---------------------------------------------------------------- bound over time


@figure("traces", "Bound over time", of="instance", minor=True)
def traces(data: Compared) -> Drawn:
    """Best objective found (incumbent) and certified bound over time in seconds; the area between them is the gap."""
    names = {row.method: row.name for row in data.rows if not row.wrong}.values()
    keys = ("fingerprint", "method", "seed", "limits")
    points = pd.DataFrame(some([p for p in data.run.traces if tuple(p[key] for key in keys) in names]))
    solves = [(str(m), mine.sort_values("time_s", kind="stable")) for m, mine in points.groupby("method", sort=False)]
    recorded = some([(m, mine) for m, mine in solves if len(mine) > 1])
    shown = sorted(recorded, key=lambda item: -item[1]["time_s"].iloc[-1])[:MAX_TRACES]
    # Fill forwards, as a point records only the values that changed.
    columns = ["time_s", "incumbent", "bound"]
    records = [_trace(m, *mine.reindex(columns=columns).astype(float).ffill().to_numpy().T) for m, mine in shown]
    chart = style.between(records, style.x("second", TRACE["time_s"].axis), ("incumbent", "bound"), "objective", "end")
    count = len(recorded)
    chosen = f"The {MAX_TRACES} that took longest of n = {count}" if count > MAX_TRACES else f"n = {count}"
    return chart, f"{chosen} solve{'s' * (count != 1)} on {data.where}."


def _trace(method: str, time: Array, incumbent: Array, bound: Array) -> dict[str, Any]:
    last = abs(bound[-1] - incumbent[-1]) / abs(bound[-1]) if bound[-1] else np.nan
    finite = np.isfinite(last)
    end = f"gap {percent(float(last), 'at most')} after {seconds(float(time[-1]))}" if finite else "gap unknown"
    values = {"second": time, "incumbent": incumbent, "bound": bound}
    return {"method": style.name(method), "panel": f"{style.name(method)}: {end}", "end": end, **values}


# ---------------------------------------------------------------- performance profiles

Ratios = dict[str, Array]
"""Ratios to the best result, by method; ``inf`` for failures."""


@figure("profile", "Performance profiles of {}", each={"time": "time", "objective": "the objective"}, minor=True)
def performance(data: Compared, criterion: Criterion) -> Drawn:
    """Dolan and Moré's performance profiles of {}, by problem.

    Share of cases in which a method is within a factor of the best. A method whose line ends below 1 failed on the
    remaining cases. A case is an instance with a seed and limits.
    """
    skipped = {row.method for row in data.rows if row.status == "skipped"}
    # Bounds and relaxations have no decision and hence no objective to compare.
    decided = {row.method for row in data.rows if criterion == "time" or row.objective is not None}
    rows = [row for row in data.rows if row.method in decided - skipped]
    problems: dict[str, Ratios] = {}
    for mine in sorted(grouped(rows, "problem"), key=len, reverse=True):
        # Leave out methods with a single case or without success.
        comparable = {
            method: r for method, r in profiles(mine, criterion).items() if r.size > 1 and np.isfinite(r).any()
        }
        problems |= {mine[0].problem: comparable} if len(comparable) > 1 else {}
    problems = dict(some([*problems.items()])[:MOST_PANELS])
    sizes = [next(iter(ratios.values())).size for ratios in problems.values()]
    titled = {f"{clean(p, 34)}, n = {n}": ratios for n, (p, ratios) in zip(sizes, problems.items(), strict=True)}
    chart = _profiles(data.looks, titled, "time / fastest" if criterion == "time" else "ratio to the best objective")
    left = f"Left out because skipped in some case: {counted(len(skipped), 'method')}. " if skipped else ""
    methods = counted(len({*chain(*problems.values())}), "method")
    return chart, f"{left}n = {counted(max(sizes), 'case')}, {methods} on {data.where}."


@figure("profile-solvers", "Performance profile of solvers", minor=True)
def solver_profile(data: Compared) -> Drawn:
    """Dolan and Moré's performance profile of the time to a valid proof, by solver.

    Share of cases in which a solver is within a factor of the fastest. A case is a model on an instance, with a seed
    and limits, that no solver skipped.
    """
    rows = some(cases(data.rows))
    ran = {row.method for row in rows if row.status != "skipped"}
    ratios = profiles([proof(row) for row in rows if row.method in ran], "time")
    size = next(iter(ratios.values())).size
    solvers = {solver: values for solver, values in ratios.items() if size > 1 and np.isfinite(values).any()}
    chart = _profiles(style.looks(some(list(solvers))), {"models": solvers}, "time / fastest")
    return chart, f"n = {counted(size, 'case')}, {counted(len(solvers), 'solver')} on {data.where}."


def _profiles(looks: Mapping[str, Look], problems: Mapping[str, Ratios], xlabel: str) -> Any:
    """Return a chart of the share of cases in which each method is within a factor of the best, with titled panels."""
    lines, ends = [], []
    for title, ratios in problems.items():
        every = np.concatenate(list(ratios.values()))
        ends.append(max(float(every[np.isfinite(every)].max()) * 1.05, 1.01))
        for method, values in ratios.items():
            known, share = style.shares(values, 1.0)
            solved = f"{np.isfinite(values).sum()} of {values.size}"
            line = {"x": np.append(known, ends[-1]), "share": np.append(share, share[-1]), "within any factor": solved}
            lines.append({"method": style.name(method), "panel": title, **line})
    axis = style.x("x", xlabel, log=max(ends) > style.WIDE, domain=[1.0, max(ends)])
    return style.share_lines(lines, looks, axis, "share of cases", min(2, len(problems)))


# ---------------------------------------------------------------- scaling


@figure("scaling", "Solve time by size", minor=True)
def scaling(data: Compared) -> Drawn:
    """Solve time in seconds against the size of the instance, on logarithmic axes.

    Lines are a·n^b, and the label at the end of a line gives the exponent b: the least-squares fit, in which results
    that the time limit stopped (triangles) count as at least as long.
    """
    paper = PAPERS.get(data.rows[0].paper)
    size = {mark: float(paper.size(each)) for mark, each in data.run.instances.items()}
    timed_rows = [row for row in data.rows if timed(row) and size.get(row.fingerprint)]
    points = pd.DataFrame(
        [{"method": style.name(row.method), "size": size[row.fingerprint], **_time(row)} for row in timed_rows],
        columns=["method", "size", "value", "what"],
    ).rename(columns={"value": "second"})
    growth = data.run.once(statistics).of({row.method for row in timed_rows}).growth
    exponents = {style.name(one.method): one.exponent for one in growth}
    fitted = points[points["method"].isin(some(list(exponents)))]
    fits = []
    for method, exponent in exponents.items():
        mine = fitted[fitted["method"] == method]
        ended = mine[mine["what"] != STOPPED] if (mine["what"] != STOPPED).any() else mine
        height = np.exp((np.log(ended["second"]) - exponent * np.log(ended["size"])).mean())
        span = np.array([mine["size"].min(), mine["size"].max()])
        fits.append({"method": method, "size": span, "second": height * span**exponent, "fit": f"n^{exponent:.2f}"})
    labelled = apart({fit["method"]: float(np.log(fit["second"][-1])) for fit in fits}, np.log(fitted["second"]))
    fits = [fit | {"labelled": fit["method"] in labelled} for fit in fits]
    # Exponents stand to the right of the largest size.
    ends = [fitted["size"].min(), 1.5 * fitted["size"].max()]
    axes = (
        style.x("size", paper.counts, log=True, domain=ends).axis(values=np.unique(fitted["size"]).tolist()),
        style.y("second", COMPARE["solve_s"].axis, log=True),
    )
    tips = style.tip("method", "fit", "size", "second")
    look = {**style.colour(data.looks, [fit["method"] for fit in fits]), "tooltip": tips}
    lines = alt.Chart(style.rows(fits), width=style.WIDTH).transform_flatten(["size", "second"]).encode(*axes)
    shape = style.keyed(alt.Shape, "what", ENDS).legend(None)
    marks = alt.Chart(style.rows(fitted.to_dict("records"))).mark_point(filled=True)
    dots = marks.encode(*axes, color=look["color"], shape=shape)
    texts = (
        lines.transform_filter(alt.datum.labelled)
        .mark_text(align="left", dx=4)
        .encode(text=alt.Text("fit:N", aggregate="max"), y="max(second):Q", x="max(size):Q", detail="method:N")
    )
    n = f"n = {counted(len(fitted), 'result')} of {counted(len(fits), 'method')} on {data.where}."
    left = "Labels that would overlap are left out. " if len(labelled) < len(fits) else ""
    return alt.layer(lines.mark_line().encode(**look), dots, texts), f"Size is the number of {paper.counts}. {left}{n}"


LABELS = 14
"""Number of labels that stand one above the other along the height of a figure."""


def apart(heights: Mapping[str, float], values: Any) -> set[str]:
    """Return names whose labels do not overlap at their heights, on an axis over these values; the highest come first.

    >>> sorted(apart({"a": 1.0, "b": 0.99, "c": 0.5}, [0.0, 1.0]))
    ['a', 'c']
    """
    chosen, last = set[str](), math.inf
    least = (max(values) - min(values)) / LABELS
    for name, height in sorted(heights.items(), key=lambda item: -item[1]):
        if height <= last - least:
            chosen.add(name)
            last = height
    return chosen
