"""Checker for OEF allocations: capacity, whole devices per round, and the fairness claims of each method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from schedgap.certificates.fairness import TOLERANCE as UNMET
from schedgap.certificates.fairness import (
    PropertyCheck,
    blocks,
    efficiency,
    envy_free,
    equal_efficiency,
    equal_split,
    sharing_incentive,
)
from schedgap.certificates.reading.oef import RawTenants, shares_of
from schedgap.harness.check.registry import TOLERANCE, VERIFIERS, Verdict, VerifierSpec
from schedgap.harness.check.rules import refuse, refusing
from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import Allocation

JUDGES: tuple[Callable[[RawTenants, Array], PropertyCheck[Any]], ...] = (envy_free, sharing_incentive, equal_efficiency)
"""Checkers of the claims of methods; a claim is the name of its checker."""

RULES = {f"oef.{rule}": rule for rule in ("equal_efficiency", "sharing_incentive", "envy_free")}
"""The property that a problem requires of every allocation, whatever its method claims."""


@refusing
def check(facts: RawTenants, decision: Allocation, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check an allocation; in all problems the objective is the total efficiency at reported speedups.

    ``gain_max`` is the largest gain of a tenant over an equal split (Fig. 5); ``preference_max`` is the largest factor
    by which a tenant prefers its own allocation to that of another, scaled to the same weight (Fig. 6). ``missed`` is
    the largest relative amount by which the allocation misses a rule or exceeds the devices of a type, also if that is
    within the tolerance.
    """
    x = np.asarray(decision.devices, float)
    if x.shape != facts.speedups.shape or not np.isfinite(x).all():
        what = f"one of shape {x.shape}" if x.shape != facts.speedups.shape else "one with infinite numbers or NaN"
        refuse([f"devices: a finite array of shape {facts.speedups.shape}, not {what}"])
    own, true = efficiency(facts.speedups, x), efficiency(facts.true_speedups, x)
    findings = {judge.__name__: judge(facts, x) for judge in JUDGES}
    equal = efficiency(facts.speedups, equal_split(facts))
    required = dict.fromkeys([*claims, *([RULES[problem]] if problem in RULES else [])])
    preferred = max(
        float((own[rows, None] / np.maximum(scaled(facts, x, rows), TOLERANCE)).max()) for rows in blocks(len(own))
    )
    metrics: dict[str, float | int | bool] = {
        "envy_free": bool(findings["envy_free"]),
        "sharing_incentive": bool(findings["sharing_incentive"]),
        "gain_max": float((own / equal).max()),
        "preference_max": preferred,
        "support_size": int((x > TOLERANCE * facts.capacity).sum()),
        "true_total": float(true.sum()),
        "missed": max(0.0, float((x.sum(axis=0) / facts.capacity).max()) - 1, *(findings[n].missed for n in required)),
    }
    unmet = [findings[name].text for name in required if not findings[name]]
    return Verdict(
        objective=float(own.sum()),
        violations=(*_capacity(facts, x), *_rounds(facts, decision), *unmet),
        metrics=metrics,
        quantities={"devices": x, "efficiency": own, "true_efficiency": true, "true_total": float(true.sum())},
    )


def scaled(facts: RawTenants, devices: Array, rows: slice) -> Array:
    """Return what the devices of all tenants are worth to those of some rows, scaled to their weights."""
    return np.asarray(facts.speedups[rows] @ devices.T * np.divide.outer(facts.weight[rows], facts.weight))


def _capacity(facts: RawTenants, x: Array) -> Iterator[str]:
    """Yield a line for negative shares and for each type that exceeds its capacity."""
    if x.min() < 0:
        l, j = map(int, np.unravel_index(x.argmin(), x.shape))
        yield f"{facts.labels[l]} has {x[l, j]:g} devices of {facts.gpu_types[j]}: shares are 0 or more"
    for j, (used, available) in enumerate(zip(x.sum(axis=0), facts.capacity, strict=True)):
        if used > available * (1 + UNMET):
            yield f"{used:.12g} devices of {facts.gpu_types[j]} given out, {available:.12g} available"


def _rounds(facts: RawTenants, decision: Allocation) -> Iterator[str]:
    """Check that rounds are integer, within capacity, and average to the shares."""
    if decision.rounds is None:
        return
    rounds = np.asarray(decision.rounds)
    if rounds.ndim != 3 or rounds.shape[1:] != facts.speedups.shape or not len(rounds):
        yield f"rounds: a (rounds, tenants, types) array, not {rounds.shape}"
        return
    if not np.issubdtype(rounds.dtype, np.integer) or rounds.min() < 0:
        yield "rounds: devices of a round are whole and 0 or more"
    over = rounds.sum(axis=1) > facts.capacity
    if over.any():
        t, j = np.argwhere(over)[0]
        yield f"round {t}: {rounds[t, :, j].sum()} devices of {facts.gpu_types[j]}, {facts.capacity[j]:g} available"
    if np.abs(rounds.mean(axis=0) - decision.devices).max() > TOLERANCE:
        yield "devices: not the average of the rounds"


QUANTITIES = (
    *("envy_free", "sharing_incentive", "gain_max", "preference_max", "support_size", "true_total", "missed"),
    *("devices", "efficiency", "true_efficiency"),
)

VERIFIERS.register(VerifierSpec("oef", shares_of, check, lambda problem: QUANTITIES))
