"""Checker for OEF allocations: capacity, whole devices per round, and the fairness claims of each method."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.verify import TOLERANCE, VERIFIERS, Verdict, VerifierSpec
from schedgap.instances.views.oef import Allocation, View

Array = NDArray[np.float64]


def check(view: View, decision: Allocation, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Re-check an allocation against a view.

    Parameters
    ----------
    view, decision
        What was to be decided, and the decision.
    problem
        All OEF problems have the same objective, total efficiency at reported speedups.
    claims
        ``envy_free``, ``sharing_incentive``, ``equal_efficiency``.
    """
    x = np.asarray(decision.devices, float)
    if x.shape != view.speedups.shape or not np.isfinite(x).all():
        return Verdict(None, (f"devices: a finite {view.speedups.shape} array, not {x.shape}",))
    own = (view.speedups * x).sum(axis=1)
    true = (view.true_speedups * x).sum(axis=1)
    violations = [*_capacity(view, x), *_rounds(view, decision)]
    violations += [line for claim in claims if (line := CLAIMS[claim](view, x, own))]
    return Verdict(
        objective=float(own.sum()),
        violations=tuple(violations),
        metrics={
            "envy_free": envy_free(view, x, own) is None,
            "sharing_incentive": sharing_incentive(view, x, own) is None,
            "support_size": int((x > TOLERANCE * view.capacity).sum()),
            "true_total": float(true.sum()),
        },
        quantities={
            "devices": x,
            "efficiency": own,
            "true_efficiency": true,
            "true_total": float(true.sum()),
        },
    )


def _capacity(view: View, x: Array) -> Iterator[str]:
    """Yield a line for negative shares and for each type given out beyond its devices."""
    if x.min() < 0:
        l, j = map(int, np.unravel_index(x.argmin(), x.shape))
        yield f"{view.labels[l]} has {x[l, j]:g} devices of {view.gpu_types[j]}: shares are 0 or more"
    for j, (used, available) in enumerate(zip(x.sum(axis=0), view.capacity, strict=True)):
        if used > available * (1 + TOLERANCE):
            yield f"{used:g} devices of {view.gpu_types[j]} given out, {available:g} available"


def _rounds(view: View, decision: Allocation) -> Iterator[str]:
    """Yield a line where rounds are not whole, exceed capacity, or do not average to the shares."""
    if decision.rounds is None:
        return
    rounds = np.asarray(decision.rounds)
    if rounds.ndim != 3 or rounds.shape[1:] != view.speedups.shape or not len(rounds):
        yield f"rounds: a (rounds, tenants, types) array, not {rounds.shape}"
        return
    if not np.issubdtype(rounds.dtype, np.integer) or rounds.min() < 0:
        yield "rounds: devices of a round are whole and 0 or more"
    over = rounds.sum(axis=1) > view.capacity
    if over.any():
        t, j = np.argwhere(over)[0]
        yield f"round {t}: {rounds[t, :, j].sum()} devices of {view.gpu_types[j]}, {view.capacity[j]:g} available"
    if np.abs(rounds.mean(axis=0) - decision.devices).max() > TOLERANCE:
        yield "devices: not the average of the rounds"


def _alone(view: View) -> Array:
    """Return what each tenant has from an equal split, the unit of its tolerance (not taken from the models' side)."""
    return np.asarray((view.speedups * view.equal_split).sum(axis=1))


def envy_free(view: View, x: Array, own: Array) -> str | None:
    """Return who envies whom most, or ``None``: ``w_l·x_l/π_l ≥ w_l·x_i/π_i`` for all pairs.

    Envy is judged in units of what the tenant would have from an equal split, so that nobody's scale hides another's.
    """
    value = view.speedups @ (x / view.weight[:, None]).T
    envy = (value - (own / view.weight)[:, None]) / (_alone(view) / view.weight)[:, None]
    l, i = map(int, np.unravel_index(envy.argmax(), envy.shape))
    if envy[l, i] <= TOLERANCE:
        return None
    return f"{view.labels[l]} envies {view.labels[i]}: {value[l, i]:.6g} is more than its {value[l, l]:.6g}"


def sharing_incentive(view: View, x: Array, own: Array) -> str | None:
    """Return who would be better off with its share of every type, or ``None``."""
    alone = _alone(view)
    short = 1 - own / alone
    l = int(short.argmax())
    if short[l] <= TOLERANCE:
        return None
    return f"{view.labels[l]} gets {own[l]:.6g}, less than the {alone[l]:.6g} of an equal split"


def equal_efficiency(view: View, x: Array, own: Array) -> str | None:
    """Return who has least and most efficiency per weight where they differ, or ``None``."""
    level = own / view.weight
    low, high = int(level.argmin()), int(level.argmax())
    if level[high] - level[low] <= TOLERANCE * level[high]:
        return None
    return f"{view.labels[low]} has {level[low]:.6g} per weight, {view.labels[high]} has {level[high]:.6g}"


CLAIMS: dict[str, Callable[[View, Array, Array], str | None]] = {
    "envy_free": envy_free,
    "sharing_incentive": sharing_incentive,
    "equal_efficiency": equal_efficiency,
}

QUANTITIES = (
    *("envy_free", "sharing_incentive", "support_size", "true_total"),
    *("devices", "efficiency", "true_efficiency"),
)

VERIFIERS.register(VerifierSpec("oef", check, lambda problem: QUANTITIES))
