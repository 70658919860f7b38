"""Families on which OEF's rounding is far from the largest efficiency: envy-freeness has a price."""

from __future__ import annotations

import numpy as np

from schedgap.instances.families.registry import HardSpec, hard
from schedgap.instances.random_instances.oef import of_matrix
from schedgap.instances.schema import Instance, rule
from schedgap.instances.views.oef import Allocation


class OneFast(HardSpec):
    """Tenants, of which one is faster on the second type by the square of their number; the rest are not.

    There is one device of the first type, and `fast` of the second.
    """

    tenants: int = rule("a whole number of tenants, 2 to 200", ge=2, le=200, default=10)
    fast: int = rule("a whole number of fast devices, 1 to 10^6", ge=1, le=10**6, default=1)


def fast_to_fast(given: Instance, problem: str) -> Allocation:
    """Return the allocation in which the first tenant has the fast devices and the second one the slow ones."""
    devices = np.zeros((len(given.tenants), 2))
    devices[1, 0], devices[0, 1] = given.cluster.gpus_by_type.values()
    return Allocation(devices)


@hard(
    "oef-one-fast",
    OneFast,
    methods=("oef.rounding", "oef.rounding_tijdeman"),
    parameter="tenants",
    values=(2, 4, 8, 16, 32),
    answer=fast_to_fast,
    growth="tends to n/2: the price of envy-freeness, not a loss of rounding",
    exponent=1.0,
)
def one_fast(spec: OneFast) -> Instance:
    """Return n tenants and a device of each of two types; the first tenant is n² times as fast on the second type.

    Everybody else is equally fast on both types, so that a bundle is worth its number of devices to them. Nobody may
    hold more of it than they do: the first tenant gets 2/n of a device, although nearly all efficiency is in giving it
    the fast one. No rounding can undo this; it is what envy-freeness costs.

    With F fast devices and a first tenant that is R times as fast there, it gets (F + 1)/n of them. The largest total
    is then n(RF + 1)/((F + 1)(R + n − 1)) times the envy-free one, which tends to nR/(R + n − 1) as F grows. That is
    the most for any n tenants whose speedups on a type are within a factor R: the equal split is envy-free, and on each
    type it reaches at least (1 + (n − 1)/R)/n of the best.
    """
    speedups = np.ones((spec.tenants, 2))
    speedups[0, 1] = float(spec.tenants**2)
    return of_matrix(speedups, (1, spec.fast))


class Heavy(HardSpec):
    """A tenant that is `times` as fast on the second type, and one that weighs `times` as much as it."""

    times: int = rule("a whole number, 2 to 10^6", ge=2, le=10**6, default=1000)


@hard(
    "oef-heavy",
    Heavy,
    methods=("oef.rounding", "oef.rounding_tijdeman"),
    parameter="times",
    values=(10, 30, 100, 1000, 10_000),
    answer=fast_to_fast,
    growth="tends to N/4 with two tenants: the price of weighted envy-freeness",
    exponent=1.0,
)
def heavy(spec: Heavy) -> Instance:
    """Return a light tenant that is fast on the fast type, and a heavy one that is equally fast on both types.

    A tenant of N times the weight must hold N times as many devices, in its own eyes. It gains nothing from the fast
    device, but the light tenant may have only 2/(N + 1) of it.
    """
    made = of_matrix([[1.0, float(spec.times)], [1.0, 1.0]], (1, 1))
    light, weighty = made.tenants
    return made.model_copy(update={"tenants": (light, weighty.model_copy(update={"weight": float(spec.times)}))})


class LostRound(HardSpec):
    """A tenant that is `times` as fast on the second type, and one of `weight` that is a tenth faster there."""

    times: int = rule("a whole number, 2 to 10^6", ge=2, le=10**6, default=1000)
    weight: float = rule("1 to 10^6", ge=1, le=1e6, default=1e5)
    fast: int = rule("fast devices, 1 to 100", ge=1, le=100, default=10)


@hard(
    "oef-lost-round",
    LostRound,
    methods=("oef.rounding",),
    parameter="times",
    values=(10, 30, 100, 1000, 10_000),
    answer=fast_to_fast,
    growth="N·m/(1 + 1.1m) for m fast devices: a share of half a round in a day is rounded to none",
    exponent=1.0,
)
def lost_round(spec: LostRound) -> Instance:
    """Return a light tenant that is far faster on the m fast devices, and a heavy one that is a tenth faster there.

    Without envy, the light tenant may have a share of (1 + 1.1m)/(1.1·100,001) of a fast device, with m = 10 less than
    half a round of a day. Rounding gives it none, and the heavy tenant has all m + 1 devices. The loss is the
    rounding's. It grows with the speedup, at weights of some thousand too, and one slow device more or less matters
    less with many fast ones.
    """
    made = of_matrix([[1.0, float(spec.times)], [1.0, 1.1]], (1, spec.fast))
    light, weighty = made.tenants
    return made.model_copy(update={"tenants": (light, weighty.model_copy(update={"weight": spec.weight}))})
