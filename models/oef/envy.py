"""Rows of (10c) that are violated, without a matrix of all pairs; envy-free allocations near any allocation.

**Settling.** Tenants exchange bundles, and premiums in equal splits settle the rest.

A solver that runs out of time, or a first-order method, leaves an allocation with a little envy. If everybody simply
took the bundle that it likes best, some types would be in demand too much: at an optimum, nearly everybody is
indifferent among several bundles. Instead, **a bundle gets a premium, a multiple of the equal split**, which is worth
the same to every tenant, as a part of what all devices are worth to it. So premiums act like money, and a tenant that
envies another is content if its premium is large enough. Premiums exist unless tenants envy one another in a circle
(Rochet, A necessary and sufficient condition for rationalizability, 1987); in that case they exchange their bundles
along the circle, by which everybody gains and the devices in use stay the same. The smallest premiums are then found as
longest paths. At last all bundles are scaled until they fit, and devices left over are divided equally; both preserve
envy-freeness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.oef import OefView

NEAR = 2e-3
"""Bundles that a tenant likes up to this much less than its own, in equal splits, are considered from the start."""

MOST_WANTED = 24
"""Bundles that each tenant is newly offered at a time."""

WANTS = (1e-3, 1e-4, 1e-5, 1e-7, 1e-10)
"""Wants that are ignored, in equal splits, from the first stage to the last."""

SWEEPS = 2000
"""Most sweeps of a stage."""

STAGES = 40
"""Most times that new wants are looked for."""


class Envy(NamedTuple):
    """Multipliers of envy rows (10c): `pairs` ``(m, 2)`` of who envies whom, and a `multiplier` ``(m,)`` of 0 or more.

    The rows are in efficiency per weight, ``E_l/π_l − w_l·x_i/π_i ≥ 0``. If tenants also need a share of their equal
    split, `own` ``(n,)`` has the multipliers of these rows, per unit of efficiency.
    """

    pairs: Ints
    multiplier: Array
    own: Array | None = None


class Parts(NamedTuple):
    """An OEF view in units of equal splits and as parts of what all devices are worth.

    Attributes
    ----------
    worth
        ``(n, k)`` what all devices of a type are worth to a tenant; rows add up to 1.
    share
        ``(n,)`` weights of tenants as parts of all.
    gain
        ``(n,)`` what the equal split adds to the total efficiency, as a part of the total of the equal split.
    total
        Total efficiency of the equal split.
    """

    worth: Array
    share: Array
    gain: Array
    total: float


def parts(view: OefView) -> Parts:
    """Return the view in units of equal splits."""
    all_devices = view.speedups * view.capacity
    total = float(view.split_efficiency.sum())
    worth = np.ascontiguousarray(all_devices / all_devices.sum(axis=1)[:, None])
    return Parts(worth, view.weight / view.weight.sum(), view.split_efficiency / total, total)


def envied(worth: Array, bundle: Array, most: int, least: float, part: float = 1.0) -> tuple[Ints, Ints, float]:
    """Return pairs of tenants of whom the first envies the second by more than `least`, and the largest envy.

    Each tenant has at most `most` pairs, those of its largest envies. Pairs are looked for without a matrix of all.
    Envy is towards a `part` of the other's bundle.
    """
    from schedgap.models.oef import _kernels as kernels

    who, envy = np.empty((len(worth), most), np.int64), np.empty((len(worth), most))
    kernels.envied(worth, np.ascontiguousarray(bundle), part, least, who, envy)
    row, at = np.nonzero(who >= 0)
    return row, who[row, at], float(envy.max())


Looks = Callable[[Array, Array, int, float], tuple[Ints, Ints, float]]
"""``looks(worth, bundle, most, least)`` finds what :func:`envied` finds."""


def favourites(worth: Array, bundle: Array, premium: Array) -> Ints:
    """Return ``(n,)`` the bundle that each tenant likes best, with premiums ``(m,)``, in blocks of tenants."""
    blocks = np.array_split(worth, len(worth) // 500 + 1)
    return np.concatenate([(block @ bundle.T + premium).argmax(axis=1) for block in blocks])


def neighbours(view: OefView, nearest: int) -> Ints:
    """Return pairs of tenants with similar speedups, in both directions, as sorted numbers ``l·n + i``.

    With two types, these are the pairs of tenants that are next to each other in the order of their speedups, and if
    they do not envy each other, nobody envies anybody: a tenant of speedup s prefers the bundle (x, y) to (x', y'),
    with y' ≥ y, if and only if s is small enough, so that whoever does not envy its neighbour does not envy those
    beyond, as the neighbour does not. More types have no such order, and other rows may be violated, too.
    """
    from scipy.spatial import KDTree

    n, points = view.size, np.log(view.speedups)
    if points.shape[1] == 2:
        order = np.argsort(points[:, 1])
        l, i = order[:-1], order[1:]
    else:
        near = KDTree(points).query(points, k=min(nearest + 1, n))[1].reshape(n, -1)
        l, i = np.repeat(np.arange(n), near.shape[1]), near.ravel()
        l, i = l[l != i], i[l != i]
    return np.unique(np.concatenate([l * n + i, i * n + l]))


def settled(view: OefView, devices: Array, looks: Looks = envied) -> Array:
    """Return ``(v, k)`` an envy-free allocation near `devices`, which may violate capacity and envy rows.

    Envy is found by `looks`.
    """
    from schedgap.models.oef import _kernels as kernels

    worth, share, gain, _ = parts(view)
    n = view.size
    bundle = np.ascontiguousarray(np.maximum(devices, 0.0) / view.equal_split)
    own, premium = np.arange(n), np.zeros(n)
    pairs = own * n + own
    for stage in range(STAGES):
        least = WANTS[-1] if stage else -NEAR
        envious, other, _ = looks(worth, bundle[own] + premium[own, None], MOST_WANTED, least)
        if stage and not len(envious):
            break
        # A stable sort merges two sorted parts; finding the union takes as long as all looks at pairs.
        pairs = np.sort(np.concatenate((pairs, np.sort(envious * n + own[other]))), kind="stable")
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]
        first, wanted = np.searchsorted(pairs // n, np.arange(n + 1)), pairs % n
        for want in WANTS[2 * (stage > 0) :]:
            kernels.premiums(worth, view.weight, first, wanted, bundle, premium, own, want, SWEEPS)
    else:  # circles of tenants with different weights may end slowly: everybody then takes what it likes best
        own = favourites(worth, bundle, premium)
    chosen = bundle[own] + premium[own, None]
    chosen -= chosen.min()
    chosen /= max(1.0, (share @ chosen).max())
    chosen += np.maximum(1 - share @ chosen, 0.0)  # rounding would leave a little less than nothing of a type
    better = gain @ (worth * chosen).sum(axis=1) > 1
    return view.equal_split * chosen if better else view.equal_split
