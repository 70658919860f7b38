"""What papers printed about an instance, beside what the rows of a study measure.

A published number names a quantity of a method. Rows say what they measure (:attr:`schedgap.harness.rows.Row.measured`,
:attr:`schedgap.harness.simulation.rows.SimulationRow.measured`); from that follow hours (``ttd_h`` from ``ttd_s``) and,
of two rows, how many times better one is (``objective_ratio:zhou.ps.fifo``). Which study measures what of which method
is in :mod:`schedgap.harness.studies`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgap.harness.rows import Row
from schedgap.harness.verify import TOLERANCE
from schedgap.instances.schema import Instance, Published

Entry = dict[str, Any]
Measured = Mapping[str, Any]
"""What a row measures, by quantity."""

LESS_IS_BETTER = ("_s", "_slots", "_rounds", "stragglers")
"""How names of times, and of what else is better where there is less of it, end."""


def with_published(rows: Sequence[Row], instances: Mapping[str, Instance]) -> list[Row]:
    """Return the rows with what was published about their methods, beside what they measure.

    Parameters
    ----------
    rows
        Certified rows. Ratios are between rows of the same seed and limits.
    instances
        Instances by fingerprint.
    """
    peers: dict[tuple[str, int, str], dict[str, Measured]] = {}
    for row in rows:
        peers.setdefault((row.fingerprint, row.seed, row.limits), {})[row.method] = row.measured
    return [
        row.replace(
            published=evaluated(
                instances[row.fingerprint].published, row.method, peers[row.fingerprint, row.seed, row.limits]
            )
        )
        for row in rows
    ]


def evaluated(entries: Iterable[Published], method: str, measured: Mapping[str, Measured]) -> tuple[Entry, ...]:
    """Return what was published about a method, beside what is measured; what is not measured is left out.

    Parameters
    ----------
    entries
        What was published about the instance. Numbers with a scope, which are not about it alone, are left out.
    method
        Id of the method.
    measured
        What is measured of each method on the instance.
    """
    mine = (entry for entry in entries if entry.method == method and not entry.scope)
    found = ((entry, _value(entry.quantity, method, measured)) for entry in mine)
    return tuple(_beside(entry, value) for entry, value in found if value is not None)


def split(quantity: str) -> tuple[str, str]:
    """Return a quantity without the method to which it is a ratio, and that method: ``("ttd_ratio", "hadar.gavel")``.

    The method is empty where the quantity is one of a single row.
    """
    name, _, other = quantity.partition(":")
    return name, other


def measured_as(name: str, names: Container[str]) -> tuple[str, float] | None:
    """Return the measured quantity from which a published one follows, and how many of its units make one.

    Parameters
    ----------
    name
        Published quantity, without the method to which it may be a ratio.
    names
        What is measured.
    """
    stem = name.removesuffix("_ratio")
    wanted = [(name, 1.0), (f"{name[:-2]}_s", 3600.0)] if name.endswith("_h") else [(name, 1.0)]
    wanted = [(stem, 1.0), (f"{stem}_s", 1.0)] if stem != name else wanted
    return next((one for one in wanted if one[0] in names), None)


def _value(quantity: str, method: str, measured: Mapping[str, Measured]) -> Any:
    """Return our value of a published quantity, ``None`` where there is none."""
    name, other = split(quantity)
    ours = measured.get(method, {})
    found = measured_as(name, ours)
    if found is None or bool(other) != name.endswith("_ratio"):
        return None
    base, unit = found
    if not other:
        return ours[base] if unit == 1.0 else ours[base] / unit
    return _times_better(base, ours, measured.get(other, {}))


def _times_better(base: str, ours: Measured, theirs: Measured) -> float | None:
    """Return how many times better our value is than theirs, ``None`` where one is not positive or missing."""
    mine, other = ours[base], theirs.get(base)
    if not other or mine <= 0 or other < 0:
        return None
    less = ours.get("sense") == "min" if base == "objective" else base.endswith(LESS_IS_BETTER)
    return float(other / mine if less else mine / other)


def _beside(entry: Published, value: Any) -> Entry:
    found = np.asarray(value, float)
    return {
        "quantity": entry.quantity,
        "value": _listed(entry.value),
        "relation": entry.relation,
        "exact": _listed(entry.exact),
        "measured": found.tolist(),
        "agrees": _agrees(found, entry.value, entry.tolerance, entry.relation),
        "exact_agrees": _agrees(found, entry.exact, TOLERANCE),
        "unit": entry.unit,
        "where": entry.where,
        "note": entry.note,
    }


def _listed(value: Any) -> Any:
    return None if value is None else np.asarray(value, float).tolist()


def _agrees(found: Any, wanted: Any, tolerance: float, relation: str = "equal") -> bool | None:
    if wanted is None:
        return None
    if np.shape(wanted) != found.shape:
        return False
    above = found - np.asarray(wanted, float)
    off = {"equal": np.abs(above), "at least": -above, "at most": above}[relation]
    return bool(np.all(off <= tolerance * (1 + 1e-9)))
