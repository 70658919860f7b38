"""What rows of a simulation say beside each other: ratios to a reference, certified bounds, published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedgap.harness.published import Measured, evaluated
from schedgap.harness.simulation.bounds import BOUNDS, JCT, Bound
from schedgap.harness.simulation.rows import SimulationRow
from schedgap.harness.verify import TOLERANCE
from schedgap.heuristics.simulator import POLICIES
from schedgap.instances.schema import Instance, Published

PREFIX = {"ttd_s": ("ttd", "TTD"), "jct_mean_s": ("jct", "mean completion time")}
"""Metric with a bound → how its fields begin, and its name."""

Bounds = Mapping[tuple[str, str], Bound]
"""By fingerprint and model."""


def compared(rows: Sequence[SimulationRow], instances: Sequence[Instance], bounds: Bounds) -> list[SimulationRow]:
    """Return the rows with ratios, bounds and published numbers filled in; order is kept."""
    printed = {one.fingerprint: one.published for one in instances}
    out = []
    for row in rows:
        beside = {other.policy: other for other in rows if other.fingerprint == row.fingerprint}
        bounded = _with_ratios(row, beside)
        for model in BOUNDS:
            bounded = _with_bound(bounded, bounds.get((row.fingerprint, model)))
        out.append(bounded)
    measured: dict[str, dict[str, Measured]] = {}
    for row in out:
        measured.setdefault(row.fingerprint, {})[row.policy] = row.measured
    return [_with_published(row, printed[row.fingerprint], measured[row.fingerprint]) for row in out]


def _with_published(
    row: SimulationRow, printed: Sequence[Published], measured: Mapping[str, Measured]
) -> SimulationRow:
    """Add what was published about the policy, and the reference's TTD ratio to it as it was printed."""
    about_reference = evaluated(printed, row.reference or "", measured)
    ratios = [entry["value"] for entry in about_reference if entry["quantity"] == f"ttd_ratio:{row.policy}"]
    return row.replace(published=evaluated(printed, row.policy, measured), ttd_printed=next(iter(ratios), None))


def _with_ratios(row: SimulationRow, beside: Mapping[str, SimulationRow]) -> SimulationRow:
    spec = POLICIES.get(row.policy)
    reference = beside.get(spec.reference or f"{spec.paper}.online") or next(iter(beside.values()))
    return row.replace(
        reference=reference.policy,
        ttd_ratio=_ratio(row.ttd_s, reference.ttd_s),
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
