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
    sharing_incentive,
    split_efficiency,
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

NASH = "oef.nash_welfare"

FAIR = "oef.fair"
"""The problem that is as strict as it is asked to be."""

WHOLE = {NASH, "oef.least_gain"}
"""Problems whose tenants count as a whole: objective, metrics and claims are about tenants, not about job types."""


@refusing
def check(facts: RawTenants, decision: Allocation, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check an allocation; the objective is the total efficiency at reported speedups, or Nash welfare.

    In ``oef.least_gain`` it is the least efficiency of a tenant over that of an equal split; in
    ``oef.nash_welfare`` it is the Nash welfare, the product by weight of the tenants' efficiencies over those of an
    equal split. Tenants then count as a whole: on any bundle, a tenant runs the fastest of its job types on each type.

    ``market_error`` is the ε of the equilibrium: at prices in parts of all budgets that add up to 1 + ε, every tenant
    has at least what its budget, its part of all weights, can buy; all of them spend at most ε too much together.
    ``gain_max`` is the largest gain of a tenant over an equal split (Fig. 5); ``preference_max`` is the largest factor
    by which a tenant prefers its own allocation to that of another, scaled to the same weight (Fig. 6). ``missed`` is
    the largest relative amount by which the allocation misses a rule or exceeds the devices of a type, also if that is
    within the tolerance. How strict ``oef.fair`` is, ε and σ, is asked for: ``judge(…, epsilon=0.1, sigma=0.5)``.
    """
    x = np.asarray(decision.devices, float)
    if x.shape != facts.speedups.shape or not np.isfinite(x).all():
        what = f"one of shape {x.shape}" if x.shape != facts.speedups.shape else "one with infinite numbers or NaN"
        refuse([f"devices: a finite array of shape {facts.speedups.shape}, not {what}"])
    own, true = efficiency(facts.speedups, x), efficiency(facts.true_speedups, x)
    rows, reached = (facts, x), own
    if problem in WHOLE:
        rows, reached = (facts.whole, facts.of_tenants(x)), facts.of_tenants(own)
    findings = {judge.__name__: judge(*rows) for judge in JUDGES}
    gains = reached / split_efficiency(rows[0])
    if "leximin" in claims:
        findings["leximin"] = leximin(rows[0], gains)
    required = dict.fromkeys([*claims, *([RULES[problem]] if problem in RULES else [])])
    if problem == FAIR:
        findings |= {"envy": envy_free(facts, x, facts.epsilon), "share": sharing_incentive(facts, x, facts.sigma)}
        required |= dict.fromkeys(("envy", "share"))
    preferred = max(
        float((reached[part, None] / np.maximum(scaled(*rows, part), TOLERANCE)).max()) for part in blocks(len(reached))
    )
    metrics: dict[str, float | int | bool] = {
        "envy_free": bool(findings["envy_free"]),
        "sharing_incentive": bool(findings["sharing_incentive"]),
        "gain_max": float(gains.max()),
        "preference_max": preferred,
        "support_size": int((x > TOLERANCE * facts.capacity).sum()),
        "true_total": float(true.sum()),
        "missed": max(0.0, float((x.sum(axis=0) / facts.capacity).max()) - 1, *(findings[n].missed for n in required)),
    }
    objective = float(own.sum())
    if problem in WHOLE:
        objective = mean_gain(rows[0].weight, gains) if problem == NASH else float(gains.min())
    if problem == NASH and reached.min() > 0:
        metrics["market_error"] = market_error(rows[0], reached)
    unmet = [findings[name].text for name in required if not findings[name]]
    return Verdict(
        objective=objective,
        violations=(*_capacity(facts, x), *_rounds(facts, decision), *unmet),
        metrics=metrics,
        quantities={"devices": x, "efficiency": own, "true_efficiency": true, "true_total": float(true.sum())},
    )


def mean_gain(weight: Array, gains: Array) -> float:
    """Return the Nash welfare: the product by `weight` of the `gains` over an equal split, both ``(t,)``."""
    return float(np.exp(weight @ np.log(gains) / weight.sum())) if gains.min() > 0 else 0.0


def leximin(facts: RawTenants, gains: Array) -> PropertyCheck[Array]:
    """Check that all `gains` ``(t,)`` over an equal split are equal, and the largest, by a linear program.

    Speedups are above 0. So the least gain is largest only if no gain is above it: who had more could give a part of
    its devices to all others. Witness: the gains. Margin: minus the larger of what the least gain lacks, as a part of
    it, of the largest gain and of the program's.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack, vstack

    value = facts.speedups * facts.capacity / split_efficiency(facts)[:, None]
    n, k = value.shape
    cells = np.arange(n * k)
    within = coo_array((np.ones(n * k), (cells % k, cells)), shape=(k, n * k + 1))
    own = coo_array((-value.ravel(), (cells // k, cells)), shape=(n, n * k))
    rows: Any = vstack([within, hstack([own, coo_array(np.ones((n, 1)))])])
    cost = np.append(np.zeros(n * k), -1.0)
    found: Any = linprog(cost, A_ub=rows, b_ub=np.append(np.ones(k), np.zeros(n)), method="highs")
    least, most = (facts.labels[int(t)] for t in (gains.argmin(), gains.argmax()))
    reached = max(float(gains.min()), 1e-300)
    missed = {
        f"{least} has {reached:.6g} equal splits, and all can have {-found.fun:.6g}": -found.fun / reached - 1,
        f"{most} has {gains.max():.6g} equal splits, and can give some to {least}, which has {reached:.6g}": (
            float(gains.max()) / reached - 1
        ),
    }
    text, lacks = max(missed.items(), key=lambda one: one[1])
    return PropertyCheck("leximin", lacks <= 10 * TOLERANCE, gains, -lacks, text, max(lacks, 0.0))


def market_error(facts: RawTenants, own: Array) -> float:
    """Return ε of the equilibrium with efficiencies `own` ``(t,)``, all above 0.

    The price of a device is the most that a tenant may pay for it without gaining by buying more of it: its budget
    times its speedup, over its efficiency.
    """
    price = (facts.speedups * (facts.weight / facts.weight.sum() / own)[:, None]).max(axis=0)
    return float(price @ facts.capacity) - 1


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
"""What verdicts contain; those of Nash welfare have ``market_error``, too."""

VERIFIERS.register(
    VerifierSpec("oef", shares_of, check, lambda problem: QUANTITIES + ("market_error",) * (problem == NASH))
)
