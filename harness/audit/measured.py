"""Measured ratios beside guarantees: methods against proved optima of small instances, and of the worst ones known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from schedgap.harness.audit.lab import certified
from schedgap.harness.audit.registry import Count, Evidence, Witness
from schedgap.harness.verify import TOLERANCE
from schedgap.instances import load
from schedgap.instances.catalogue import references
from schedgap.instances.schema import Instance

if TYPE_CHECKING:
    from schedgap.harness.rows import Row

WORST = "worst/"
"""Family of the catalogue that keeps the worst instances ever found."""


def worst_known() -> Iterator[Instance]:
    """Yield the catalogue's worst instances."""
    for ref in references():
        if ref.startswith(WORST):
            yield load(ref)


def proved_ratio(row: Row) -> float | None:
    """Return the ratio of a verified row to the optimum, infinite for nothing against something.

    ``None`` where the optimum is not proved or is 0, or where the method did not run.
    """
    if not row.verified or row.ratio_is_upper is not False or row.objective is None or not row.best_bound:
        return None
    if row.ratio is None:
        return math.inf if row.sense == "max" and row.best_bound > 0 else None
    return row.ratio


def always(instance: Instance) -> bool:
    """Say that every instance is within the scope."""
    return True


def measured(
    drawn: Iterable[Instance],
    method: str,
    exact: tuple[str, ...],
    what: str,
    inside: Callable[[Instance], bool] = always,
) -> Evidence:
    """Return how often the guarantee of a method was exceeded, and its largest proved ratio.

    Parameters
    ----------
    drawn
        Random instances; the worst ones of the catalogue are tried besides.
    method
        Method with a guarantee on every instance.
    exact
        Models that prove the optimum.
    what
        Which instances are drawn, for the text.
    inside
        Whether what the theorem assumes holds on an instance; others are measured, and do not count.
    """
    count, outside = Count(), Count("beyond the assumptions")
    most: tuple[float, float, Witness | None] = (0.0, math.inf, None)
    for instance in (*drawn, *worst_known()):
        row = certified(instance, [method, *exact])[method]
        ratio, promised = proved_ratio(row), row.guarantee_factor
        if ratio is None or promised is None:
            continue
        shown = f"{method} is {ratio:.4g} from the proved optimum {row.best_bound:.6g}; guarantee here: {row.guarantee}"
        within = count if inside(instance) else outside
        within.add(ratio <= promised * (1 + TOLERANCE), instance, [method, *exact], shown)
        if ratio > most[0]:
            most = ratio, promised, Witness(instance, (method, *exact), shown)
    ratio, promised, witness = most
    if witness is None:
        return count.evidence(f"no optimum could be proved among {what}")
    text = (
        f"{'not exceeded' if not count.failed else f'exceeded {count.failed} times'} on {count.tested} instances with "
        f"proved optimum ({what}); largest proved ratio {ratio:.4g}, where {promised:.4g} is promised"
    )
    if outside.tested:
        text += f"; exceeded {outside.failed} times on {outside.tested} more that violate an assumption"
    numbers = {"largest_ratio": ratio, "guarantee_there": promised, "instances": count.tested}
    return count.evidence(text, numbers=numbers, also=() if count.failed else [witness])
