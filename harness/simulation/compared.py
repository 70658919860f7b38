"""What rows of a simulation say beside each other: ratios to Hadar, certified bounds, published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.simulation.rows import SimulationRow
from harness.simulation.task import TTD_BOUND, TtdBound
from harness.verify import TOLERANCE
from heuristics.simulator import POLICIES
from instances.schema import Instance
from instances.schema.instance import Published

REFERENCE = "hadar.online"
"""Policy whose TTD the others are divided by, where it is there; otherwise the first one."""

UNITS = {"ttd_h": ("ttd_s", 3600.0), "ttd_s": ("ttd_s", 1.0)}
"""Published quantity → field and the unit in its own."""

RATIOS = {
    "ttd_ratio": ("ttd_s", True),
    "jct_mean_ratio": ("jct_mean_s", True),
    "jct_median_ratio": ("jct_median_s", True),
    "cru_ratio": ("cru", False),
    "gru_ratio": ("gru", False),
}
"""Published quantity ``<name>:<other policy>``, how many times better than the other → field, and whether less of it is
better."""


def compared(
    rows: Sequence[SimulationRow], instances: Sequence[Instance], bounds: Mapping[str, TtdBound]
) -> list[SimulationRow]:
    """Return the rows with ratios, bounds and published numbers filled in; order is kept."""
    by_instance = {one.fingerprint: one for one in instances}
    out = []
    for row in rows:
        beside = {other.policy: other for other in rows if other.fingerprint == row.fingerprint}
        printed = by_instance[row.fingerprint].published
        bounded = _with_bound(_with_ratio(row, beside, printed), bounds.get(row.fingerprint))
        out.append(bounded.replace(published=tuple(_published(row, beside, printed))))
    return out


def _with_ratio(row: SimulationRow, beside: Mapping[str, SimulationRow], printed: Sequence[Published]) -> SimulationRow:
    reference = beside.get(REFERENCE) or next(iter(beside.values()))
    wanted = (reference.policy, f"ttd_ratio:{row.policy}")
    numbers = [_number(entry) for entry in printed if (entry.method, entry.quantity) == wanted]
    ratio = row.ttd_s / reference.ttd_s if row.ttd_s is not None and reference.ttd_s else None
    return row.replace(reference=reference.policy, ttd_ratio=ratio, ttd_printed=next(iter(numbers), None))


def _with_bound(row: SimulationRow, bound: TtdBound | None) -> SimulationRow:
    """Add the bound to a policy of gangs; a verified TTD below it contradicts one of the two."""
    ttd_s, least_s = row.ttd_s, bound.seconds if bound else None
    if least_s is None or ttd_s is None or POLICIES.get(row.policy).forks:
        return row
    row = row.replace(ttd_bound_s=least_s, ttd_bound_from=TTD_BOUND)
    if ttd_s < least_s * (1 - TOLERANCE):
        line = f"TTD {ttd_s:.9g} s is below the lower bound {least_s:.9g} s of {TTD_BOUND}"
        return row.replace(verified=False, violations=(*row.violations, line))
    return row.replace(ttd_bound_ratio=max(ttd_s / least_s, 1.0) if least_s > 0 else None)


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
