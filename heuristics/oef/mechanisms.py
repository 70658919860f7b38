"""Mechanisms that divide devices among whole tenants without a linear program: dictatorship, DRF, partial allocation.

A tenant with several job types counts as one, and runs the fastest of them on each type
(:func:`schedgap.instances.views.oef.whole`).
"""

from __future__ import annotations

import numpy as np

from schedgap.heuristics.registry import Context, heuristic
from schedgap.instances.arrays import Array
from schedgap.instances.parameters import Parameter
from schedgap.instances.views.oef import (
    Allocation,
    OefView,
    efficiency,
    kinds,
    matrix_view,
    on_fastest,
    unmerged,
    whole,
)

NOTHING = 1e-12
"""Less than this part of a type counts as nothing left."""

QUOTA = Parameter(
    "quota",
    "what a tenant may take: its part of the number of all devices, or all of them, as a dictator",
    choices=("share", "all"),
)

LEFTOVER = Parameter(
    "leftover",
    "what happens to devices that pay for the truth: they stay idle, or are divided equally, after which lies may pay",
    choices=("idle", "divided"),
)


def of_tenants(view: OefView, devices: Array) -> Allocation:
    """Return the allocation in which each tenant's devices ``(tenants, k)`` run its fastest job type on each type."""
    return Allocation(on_fastest(whole(view)[1], view.size, devices))


MANY = 200
"""Tenants up to which the equilibria without one of them take seconds."""


def _many_equilibria(view: OefView) -> str | None:
    if len(view.tenants) <= MANY:
        return None
    return f"an equilibrium without each of {len(view.tenants)} tenants, more than {MANY}"


@heuristic(
    "oef.dictator",
    problem="oef.allocation",
    source="Serial dictatorship (Satterthwaite and Sonnenschein 1981)",
    parameters=(QUOTA,),
)
def dictator(view: OefView, context: Context, *, quota: str = "share") -> Allocation:
    """Let tenants choose in turn, in the order of the instance, the fastest devices that are left.

    What a tenant says decides about its own devices only, and it gets what it likes best, so that no lie pays. Tenants
    who come late envy the first, and may have less than with an equal split.

    *Assumption.* A tenant may take as many devices, of whatever types, as its part of all weights is of all devices.
    Utilities are linear, so that without this quota (``quota=all``) the first tenant takes everything.
    """
    seen, _ = whole(view)
    left, devices = view.capacity.copy(), np.zeros_like(seen.speedups)
    most = seen.weight / seen.weight.sum() * view.capacity.sum()
    for t in range(seen.size):
        may = float(most[t]) if quota == "share" else float(left.sum())
        for j in np.argsort(-seen.speedups[t], kind="stable").tolist():
            devices[t, j] = min(may, left[j])
            may -= devices[t, j]
            left[j] -= devices[t, j]
    return of_tenants(view, devices)


@heuristic(
    "oef.drf",
    problem="oef.allocation",
    source="DRF (Ghodsi et al., NSDI 2011), for types that replace one another by an assumption of ours",
)
def drf(view: OefView, context: Context) -> Allocation:
    """Fill by dominant shares: whoever has the smallest, per weight, takes of the fastest type that is left.

    A tenant's dominant share is the largest part that it has of any type. The filling is continuous; of several tenants
    with the smallest share, those first take whose share does not grow by it, all at a speed in proportion to their
    weight.

    *Assumption.* DRF knows demands in fixed proportions. GPU types replace one another, which is why OEF calls DRF
    unfit for them (§2.3.3). Here a tenant demands only its fastest type; once this is used up, the next one. If all
    tenants rank the types alike, the result is the equal split.
    """
    seen, _ = whole(view)
    return of_tenants(view, filled(seen.speedups, seen.weight / seen.weight.sum()) * view.capacity)


def filled(speedups: Array, share: Array) -> Array:
    """Return the parts ``(n, k)`` of each type that tenants have after filling by dominant shares."""
    part, left = np.zeros_like(speedups), np.ones(speedups.shape[1])
    level, rows = 0.0, np.arange(len(speedups))
    while (open_ := left > NOTHING).any():
        wanted = np.where(open_, speedups, -1.0).argmax(axis=1)
        room = level - part[rows, wanted] / share
        eats = room > NOTHING if (room > NOTHING).any() else np.ones(len(share), bool)
        speed = np.bincount(wanted[eats], share[eats], len(left))
        step = float((left[speed > 0] / speed[speed > 0]).min())
        if (room > NOTHING).any():
            step = min(step, float(room[eats].min()))
        else:
            level += step
        part[rows[eats], wanted[eats]] += step * share[eats]
        left = np.where(left - step * speed > NOTHING, left - step * speed, 0.0)
    return part


@heuristic(
    "oef.partial_allocation",
    problem="oef.nash_welfare",
    source="Partial allocation (Cole, Gkatzelis and Goel, EC 2013), the auction of Themis (Mahajan et al., NSDI 2020)",
    parameters=(LEFTOVER,),
    too_large=_many_equilibria,
)
def partial_allocation(view: OefView, context: Context, *, leftover: str = "idle") -> Allocation:
    r"""Give each tenant a fraction of its bundle in the equilibrium: what its presence leaves to the others.

    With efficiencies :math:`U_i` in the equilibrium from equal incomes (``oef.nash``), :math:`U_i^{-t}` in that without
    tenant t, and weights :math:`\pi`, tenant t gets the fraction

    .. math:: f_t = \left(\prod_{i \ne t} \left(\frac{U_i}{U_i^{-t}}\right)^{\pi_i}\right)^{1 / \pi_t}

    of its bundle. The devices withheld take the place of payments: no tenant gains by a lie, and each has at least
    :math:`1/e` of its efficiency in the equilibrium (Cole et al., for equal weights and any utilities that grow in
    proportion with bundles).

    *Themis.* Of its text, only the abstract was at hand: tenants bid for devices on offer in an auction by a central
    arbiter, which trades efficiency for fairness in the short term. That the auction is partial allocation, and that
    what is withheld is leased to others at random, is taken from talks about it, not checked. Assumptions: one auction
    of all devices among all tenants, bids are speedups, and there is no random lease: devices stay idle (``leftover``).
    Finish-time fairness is then the gain over an equal split, since a tenant with a constant share finishes earlier by
    the factor of its gain.
    """
    kind = kinds(view)
    speedups, weight, group = kind.view.speedups, kind.view.weight, kind.group

    def bought(of_kinds: Array) -> tuple[Array, Array]:
        there = of_kinds > 0
        market = matrix_view(speedups[there], view.capacity, of_kinds[there])
        devices = np.zeros_like(speedups)
        devices[there] = context.oracle("oef.nash", market).devices
        return devices, efficiency(speedups, devices)

    devices, own = bought(weight)
    of_tenant, found = kind.tenants.weight, unmerged(kind.tenants, group, devices)
    alone = np.bincount(group) == 1
    for t, k in enumerate(group.tolist()):
        others = weight.copy()
        others[k] = 0.0 if alone[k] else weight[k] - of_tenant[t]
        there = others > 0
        if there.any():
            _, without = bought(others)
            logs = np.log(own[there] / weight[there]) - np.log(without[there] / others[there])
            found[t] *= np.exp(min(0.0, float(others[there] @ logs / of_tenant[t])))
    if leftover == "divided":
        found += np.outer(of_tenant / of_tenant.sum(), view.capacity - found.sum(axis=0))
    return of_tenants(view, found)
