"""What rows of a simulation say beside each other: ratios to a reference, certified bounds, published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.simulation.bounds import BOUNDS, JCT, Bound
from harness.simulation.rows import SimulationRow
from harness.verify import TOLERANCE
from heuristics.simulator import POLICIES
from instances.schema import Instance
from instances.schema.instance import Published

UNITS = {
    "ttd_h": ("ttd_s", 3600.0),
    "ttd_s": ("ttd_s", 1.0),
    "makespan_h": ("ttd_s", 3600.0),
    "jct_mean_h": ("jct_mean_s", 3600.0),
    "jct_median_h": ("jct_median_s", 3600.0),
    "jct_p99_h": ("jct_p99_s", 3600.0),
    "lp1_share": ("lp1_share", 1.0),
}
"""Published quantity → field and the unit in its own."""

RATIOS = {
    "ttd_ratio": ("ttd_s", True),
    "jct_mean_ratio": ("jct_mean_s", True),
    "jct_median_ratio": ("jct_median_s", True),
    "jct_p99_ratio": ("jct_p99_s", True),
    "jct_short_ratio": ("jct_short_s", True),
    "jct_long_ratio": ("jct_long_s", True),
    "makespan_ratio": ("ttd_s", True),
    "cru_ratio": ("cru", False),
    "gru_ratio": ("gru", False),
    "estimated_ratio": ("estimated_throughput", False),
    "actual_ratio": ("actual_throughput", False),
    "stragglers_ratio": ("stragglers", True),
}
"""Published quantity ``<name>:<other policy>``, how many times better than the other → field, and whether less of it is
better."""


PREFIX = {"ttd_s": ("ttd", "TTD"), "jct_mean_s": ("jct", "mean completion time")}
"""Metric with a bound → how its fields begin, and its name."""

Bounds = Mapping[tuple[str, str], Bound]
"""By fingerprint and model."""


def compared(rows: Sequence[SimulationRow], instances: Sequence[Instance], bounds: Bounds) -> list[SimulationRow]:
    """Return the rows with ratios, bounds and published numbers filled in; order is kept."""
    by_instance = {one.fingerprint: one for one in instances}
    out = []
    for row in rows:
        beside = {other.policy: other for other in rows if other.fingerprint == row.fingerprint}
        printed = by_instance[row.fingerprint].published
        bounded = _with_ratios(row, beside, printed)
        for model in BOUNDS:
            bounded = _with_bound(bounded, bounds.get((row.fingerprint, model)))
        out.append(bounded.replace(published=tuple(_published(row, beside, printed))))
    return out


def _with_ratios(
    row: SimulationRow, beside: Mapping[str, SimulationRow], printed: Sequence[Published]
) -> SimulationRow:
    spec = POLICIES.get(row.policy)
    reference = beside.get(spec.reference or f"{spec.paper}.online") or next(iter(beside.values()))
    wanted = (reference.policy, f"ttd_ratio:{row.policy}")
    numbers = [_number(entry) for entry in printed if (entry.method, entry.quantity) == wanted]
    return row.replace(
        reference=reference.policy,
        ttd_ratio=_ratio(row.ttd_s, reference.ttd_s),
        ttd_printed=next(iter(numbers), None),
        jct_ratio=_ratio(row.jct_mean_s, reference.jct_mean_s),
    )


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def _with_bound(row: SimulationRow, bound: Bound | None) -> SimulationRow:
    """Add a bound to a policy to which it applies; a verified time below it contradicts one of the two.

    Bounds are about all jobs: where some are left, or completion times are those of a window, there is nothing to
    compare.
    """
    if bound is None or bound.seconds is None or not BOUNDS[bound.model].applies(POLICIES.get(row.policy)):
        return row
    spec, least_s, model = BOUNDS[bound.model], bound.seconds, bound.model
    time_s = getattr(row, spec.metric)
    if time_s is None or row.unfinished or (row.window and spec is JCT):
        return row
    prefix, name = PREFIX[spec.metric]
    row = row.replace(**{f"{prefix}_bound_s": least_s, f"{prefix}_bound_from": model})
    if time_s < least_s * (1 - TOLERANCE):
        line = f"{name} {time_s:.9g} s is below the lower bound {least_s:.9g} s of {model}"
        return row.replace(verified=False, violations=(*row.violations, line))
    return row.replace(**{f"{prefix}_bound_ratio": max(time_s / least_s, 1.0) if least_s > 0 else None})


def _published(
    row: SimulationRow, beside: Mapping[str, SimulationRow], printed: Sequence[Published]
) -> Iterator[dict[str, Any]]:
    """Yield what was printed about this policy and can be measured here."""
    for entry in printed:
        value, measured = _number(entry), _measured(row, beside, entry.quantity)
        if entry.method == row.policy and value is not None and measured is not None:
            yield {
                "quantity": entry.quantity,
                "value": value,
                "measured": measured,
                "agrees": abs(measured - value) <= entry.tolerance * (1 + 1e-9),
                "unit": entry.unit,
                "where": entry.where,
                "note": entry.note,
            }


def _number(entry: Published) -> float | None:
    """Return a published number; vectors and matrices are not about simulations."""
    return float(entry.value) if isinstance(entry.value, int | float) else None


def _measured(row: SimulationRow, beside: Mapping[str, SimulationRow], quantity: str) -> float | None:
    """Return our number for a published quantity, where there is one."""
    name, _, other = quantity.partition(":")
    if quantity in UNITS:
        key, unit = UNITS[quantity]
        value = getattr(row, key)
        return None if value is None else value / unit
    if quantity == "ttd_rounds":
        return None if row.ttd_s is None else float(math.ceil(row.ttd_s / row.round_s * (1 - 1e-9)))
    if name in RATIOS and other in beside:
        key, less = RATIOS[name]
        ours, theirs = getattr(row, key), getattr(beside[other], key)
        if ours and theirs:
            return float(theirs / ours if less else ours / theirs)
    return None
