"""Gandiva_fair (Chaudhary et al., EuroSys 2020) as the OEF paper describes it: trading from the equal split.

Every tenant starts with its weight's part of every type. For a pair of types, slow ``a`` and fast ``b``, the
ratio ``w[l, b] / w[l, a]`` says how many slow devices one fast device is worth to tenant ``l``. The *buyer*
is the highest ratio that still holds slow devices, the *seller* the lowest ratio that still holds fast ones;
the buyer pays `price` slow devices for one fast device, as many as either of the two has. The price is a
second price: the highest ratio among the other holders of slow devices that is not below the seller's, and
the mean of buyer's and seller's ratios where there is no such rival. It lies between the two ratios, so no
trade makes anybody worse off (at reported speedups), and the result keeps the sharing incentive of the equal
split.

Neither paper says how several pairs of types are ordered. Here the pair with the greatest gap between the
highest and the lowest ratio is traded to the end first ("always trades between shares with the greatest
speedup gap", §6.1.3), then the next; devices gained in a later pair can reopen an earlier one, so rounds over
all pairs are repeated until nothing moves. Ties go to the tenant, and to the pair, of lower index.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from schedgap.heuristics.registry import HEURISTICS, Context, HeuristicSpec
from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import Allocation, View

NOTHING = 1e-12
"""Part of a type's devices below which a trade is rounding noise."""


@dataclass(frozen=True)
class Trade:
    """`fast` devices of `fast_type` go from `seller` to `buyer`, `fast · price` of `slow_type` back."""

    slow_type: int
    fast_type: int
    buyer: int
    seller: int
    price: float
    fast: float


def trade(speedups: Array, start: Array) -> tuple[Array, list[Trade]]:
    """Trade until nothing moves.

    Parameters
    ----------
    speedups
        ``(v, k)`` reported speedups, all positive.
    start
        ``(v, k)`` devices before trading.

    Returns
    -------
    tuple
        ``(v, k)`` devices after trading, and the trades in their order.
    """
    devices = np.array(start, float)
    trades: list[Trade] = []
    while moved := [t for pair in pairs(speedups) for t in _trade_pair(speedups, devices, *pair)]:
        trades += moved
    return devices, trades


def pairs(speedups: Array) -> list[tuple[int, int]]:
    """Return the (slow, fast) pairs of types, the greatest gap between two tenants' ratios first."""

    def gap(pair: tuple[int, int]) -> float:
        ratio = speedups[:, pair[1]] / speedups[:, pair[0]]
        return float(ratio.max() - ratio.min())

    return sorted(combinations(range(speedups.shape[1]), 2), key=gap, reverse=True)


def second_price(ratio: Array, bidders: list[int], seller: int) -> float:
    """Return how many slow devices the first of `bidders` pays `seller` for one fast device.

    Parameters
    ----------
    ratio
        ``(v,)`` slow devices that one fast device is worth to each tenant.
    bidders
        Holders of slow devices, highest ratio first.
    seller
        Holder of fast devices with the lowest ratio.
    """
    rival = next((bidder for bidder in bidders[1:3] if bidder != seller), None)
    if rival is not None and ratio[rival] >= ratio[seller]:
        return float(ratio[rival])
    return float(ratio[bidders[0]] + ratio[seller]) / 2


def _trade_pair(speedups: Array, devices: Array, a: int, b: int) -> list[Trade]:
    """Trade one pair of types to the end; changes `devices` in place.

    One pass from both ends is enough: who has sold is at or below the seller's ratio and never buys, and who
    has bought is at or above the buyer's and never sells.
    """
    ratio = speedups[:, b] / speedups[:, a]
    least = NOTHING * devices.sum(axis=0)
    buyers = _holders(-ratio, devices[:, a] > least[a])
    sellers = _holders(ratio, devices[:, b] > least[b])
    trades: list[Trade] = []
    while buyers and sellers and ratio[buyers[0]] > ratio[sellers[0]]:
        buyer, seller = buyers[0], sellers[0]
        price = second_price(ratio, buyers, seller)
        fast = float(min(devices[buyer, a] / price, devices[seller, b]))
        devices[buyer, [a, b]] += (-fast * price, fast)
        devices[seller, [a, b]] += (fast * price, -fast)
        trades.append(Trade(a, b, buyer, seller, price, fast))
        if devices[buyer, a] <= least[a]:
            devices[buyer, a] = 0.0
            buyers.pop(0)
        if devices[seller, b] <= least[b]:
            devices[seller, b] = 0.0
            sellers.pop(0)
    return trades


def _holders(key: Array, holds: NDArray[np.bool_]) -> list[int]:
    """Return the tenants that hold something, by ascending key, then by index."""
    order = np.argsort(key, kind="stable")
    return [int(tenant) for tenant in order[holds[order]]]


def shares(view: View) -> Array:
    """Return ``(v, k)`` devices after trading from the weight-proportional split."""
    return trade(view.speedups, view.equal_split)[0]


def gandiva_fair(view: View, context: Context) -> Allocation:
    """Return the allocation after trading."""
    return Allocation(shares(view))


HEURISTICS.register(
    HeuristicSpec(
        id="oef.gandiva_fair",
        paper="oef",
        problem="oef.sharing_incentive",
        kind="baseline",
        run=gandiva_fair,
        source="Gandiva_fair (Chaudhary et al., EuroSys 2020), as described in OEF §2.4 and §6.1.3",
        claims=("sharing_incentive",),
    )
)
