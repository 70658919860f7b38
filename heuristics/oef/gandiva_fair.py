"""Gandiva_fair (Chaudhary et al., EuroSys 2020) as the OEF paper describes it: tenants trade devices of equal shares.

Every tenant starts with a share of every type in proportion to its weight. For a pair of types, slow ``a`` and fast
``b``, the ratio ``w[l, b] / w[l, a]`` is the value of a fast device to tenant ``l``, in slow devices. The *buyer* is
the tenant of highest ratio that still holds slow devices, the *seller* the one of lowest ratio that still holds fast
ones. The buyer pays `price` slow devices per fast device, until one of the two runs out. The price is a second price:
the highest ratio among the other holders of slow devices that is not below the seller's or, without such a rival, the
mean of the buyer's and the seller's ratios. It lies between the two ratios, so no trade makes a tenant worse off (at
reported speedups), and the result keeps the sharing incentive of the equal split.

Neither paper gives an order of several pairs of types. Here the pair with the greatest gap between the highest and the
lowest ratio is traded to the end first ("always trades between shares with the greatest speedup gap", §6.1.3), then the
next. Devices gained in a later pair can reopen an earlier one, so passes over all pairs are repeated until nothing
moves. Ties go to the tenant, and to the pair, of lower index.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from schedgap.heuristics.registry import Context, heuristic
from schedgap.instances.arrays import Array, Bools
from schedgap.instances.views.oef import Allocation, OefView

NOTHING = 1e-12
"""A tenant that holds at most this fraction of a type's devices counts as holding none (rounding noise)."""


@dataclass(frozen=True)
class Trade:
    """A trade: `seller` gives `fast` devices of `fast_type` to `buyer` for `fast · price` devices of `slow_type`."""

    slow_type: int
    fast_type: int
    buyer: int
    seller: int
    price: float
    fast: float


def trade(speedups: Array, start: Array) -> tuple[Array, list[Trade]]:
    """Let tenants trade until no trade is left; return the ``(v, k)`` devices after trading, and the trades in order.

    `speedups` ``(v, k)`` are the reported ones, all positive; `start` ``(v, k)`` are the devices before trading.
    """
    devices = np.array(start, float)
    trades: list[Trade] = []
    while moved := [t for pair in pairs(speedups) for t in _trade_pair(speedups, devices, *pair)]:
        trades += moved
    return devices, trades


def pairs(speedups: Array) -> list[tuple[int, int]]:
    """Return the (slow, fast) pairs of types by descending gap between the tenants' ratios."""

    def gap(pair: tuple[int, int]) -> float:
        ratio = speedups[:, pair[1]] / speedups[:, pair[0]]
        return float(ratio.max() - ratio.min())

    return sorted(combinations(range(speedups.shape[1]), 2), key=gap, reverse=True)


def second_price(ratio: Array, bidders: list[int], seller: int) -> float:
    """Return the price of one fast device, in slow devices, that the first of `bidders` pays `seller`.

    `ratio` ``(v,)`` is the value of a fast device to each tenant, in slow devices. The bidders hold slow devices,
    highest ratio first; the seller is the holder of fast devices with the lowest ratio.
    """
    rival = next((bidder for bidder in bidders[1:3] if bidder != seller), None)
    if rival is not None and ratio[rival] >= ratio[seller]:
        return float(ratio[rival])
    return float(ratio[bidders[0]] + ratio[seller]) / 2


def _trade_pair(speedups: Array, devices: Array, a: int, b: int) -> list[Trade]:
    """Trade devices of the types `a` (slow) and `b` (fast) until no buyer or seller is left; return the trades.

    `devices` is changed in place. One pass is enough, with buyers by descending and sellers by ascending ratio: a
    tenant that has sold has at most the current seller's ratio and never buys; one that has bought never sells.
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


def _holders(key: Array, holds: Bools) -> list[int]:
    """Return the tenants that hold devices (mask `holds`), by ascending `key`, then by index."""
    order = np.argsort(key, kind="stable")
    return [int(tenant) for tenant in order[holds[order]]]


def shares(view: OefView) -> Array:
    """Return the ``(v, k)`` devices of tenants that start with shares in proportion to their weights and then trade."""
    return trade(view.speedups, view.equal_split)[0]


@heuristic(
    "oef.gandiva_fair",
    problem="oef.sharing_incentive",
    source="Gandiva_fair (Chaudhary et al., EuroSys 2020), as described in OEF §2.4 and §6.1.3",
    claims=("sharing_incentive",),
)
def gandiva_fair(view: OefView, context: Context) -> Allocation:
    """Let tenants trade devices, starting with shares in proportion to their weights; return the allocation."""
    return Allocation(shares(view))
