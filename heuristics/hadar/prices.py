"""Prices of Hadar's GPUs, equations (5) to (7), and the guarantee of Theorem 2.

=========  ============================================================================================
(5)        ``k_h^r(γ) = U_min^r · (U_max^r / U_min^r)^(γ / c_h^r)``, with γ GPUs of server h in use
(6)        ``U_max^r = max_j U_j(t_j^min) / W_j``
(7)        ``U_min^r = 1/(4η) · min_j U_j(T − a_j) / (t_j^max · W_j)``, ``1/η = min_j t_j^max W_j / (T ΣC)``
Thm. 2     ``2α``-competitive, ``α = max_r max(1, ln(U_max^r / U_min^r))``
=========  ============================================================================================

Departures from the text, which is not usable as printed:

``t^min`` and ``t^max`` are durations, in whole slots, of the gang ``W_j`` on its fastest and slowest type; the text
divides by an undefined ``M_j`` and subtracts ``a_j`` from a duration. ``W_j`` also replaces ``w_j^r`` and
``Σ_r w_j^r``, which are undefined without a server and a slot. ``1/η`` includes the factor ``1/T`` that (9) loses:
without it, the prices ``D_0`` of an empty cluster alone can exceed half of the optimum. ``1/η`` is at most 1, so a job
alone on an empty cluster pays at most a quarter of its utility. For each type, `j` ranges over the jobs that can use it
and complete before the horizon.

As printed, ``t^min`` and ``t^max`` are maxima and minima over all types that a job can use, also those with fewer GPUs
than its gang needs. ``U_max`` is then a utility that the job cannot reach: prices are too high by as much, and 2α is
larger (``family/hadar-phantom``). The dual of the proof stays feasible, so we keep what is printed.

A utility of 0 at the horizon (a missed deadline, an underflow) would make all prices 0 and α infinite. In that case
:data:`FLOOR` times the job's best utility replaces ``U_j(T − a_j)``, and Theorem 2 says nothing.

(6) and (7) take ``U_max`` and ``U_min`` over all jobs, including future ones. Like the framework it builds on (Bao et
al., INFOCOM 2018), the paper's algorithm knows these two numbers of its workload in advance, and nothing else. Theorem
2 is about these prices. An online scheduler could compute them only from the active jobs or from those it has seen;
:mod:`schedgap.heuristics.hadar.online` offers both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from schedgap.heuristics.advice import Advice
from schedgap.heuristics.registry import Guarantee
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.hadar import HadarView

FLOOR = 1e-9
"""A smaller utility ``U_j(T − a_j)`` is replaced by this fraction of the job's best utility ``U_j(t_j^min)``."""


@dataclass(frozen=True, eq=False)
class ExtremePrices:
    """The prices of a GPU for one slot, by type ``(k,)``, on an idle and on a full server.

    `low` is ``U_min^r``, the price on an idle server; `high` is ``U_max^r``, the price on a full server. `floored` says
    whether a job's utility was replaced (:data:`FLOOR`).
    """

    low: Array
    high: Array
    floored: bool = False

    @property
    def alpha(self) -> float:
        """``α`` of Theorem 2."""
        return float(np.maximum(1.0, np.log(self.high) - np.log(self.low)).max())

    def believed(self, u_min: float, u_max: float) -> ExtremePrices:
        """Return the prices of somebody who takes ``U_min`` and ``U_max`` for these multiples of what they are."""
        if u_min == u_max == 1.0:
            return self
        low = self.low * u_min
        return replace(self, low=low, high=np.maximum(self.high * u_max, low))

    def price(self, gpu_type: Ints | int, used: Ints, gpus: Ints | int) -> Array:
        """Return the price (5) of a GPU on servers with `gpus` GPUs of which `used` are taken; arguments broadcast."""
        share = used / gpus
        low, high = np.log(self.low)[gpu_type], np.log(self.high)[gpu_type]
        return np.asarray(np.exp(low + (high - low) * share))


@dataclass(frozen=True, eq=False)
class AdvisedPrices(ExtremePrices):
    """Prices that follow a prediction for each type ``(k,)``, as :mod:`schedgap.heuristics.advice` says."""

    advice: Advice = field(kw_only=True)

    def price(self, gpu_type: Ints | int, used: Ints, gpus: Ints | int) -> Array:
        """Return the price of a GPU on servers with `gpus` GPUs of which `used` are taken; arguments broadcast."""
        of_type = replace(self.advice, predicted=self.advice.predicted[gpu_type])
        after = np.minimum(used + 1, gpus) / gpus
        return of_type.price(used / gpus, after, self.low[gpu_type], self.high[gpu_type])


def ahead_mean(predicted: Array, view: HadarView) -> Array:
    """Return ``(k, T)`` means of predicted prices over the rounds to come that the mean job takes at its fastest."""
    jobs = view.possible
    shortest = view.rounds(jobs, view.workload.work[jobs]).min(axis=1, initial=np.inf)
    rounds = int(np.clip(np.rint(shortest[np.isfinite(shortest)].mean()), 1, view.slots)) if jobs.size else 1
    total = np.cumsum(
        np.pad(predicted[:, : view.slots], ((0, 0), (1, max(view.slots - predicted.shape[1], 0)))), axis=1
    )
    ends = np.minimum(np.arange(view.slots) + rounds, view.slots)
    return np.asarray((total[:, ends] - total[:, :-1]) / (ends - np.arange(view.slots)))


def prices(view: HadarView, counted: Ints | None = None) -> ExtremePrices:
    """Compute the prices (6) and (7) from a view's jobs; they are positive and finite for any utilities.

    The smallest and largest utilities are taken over the jobs `counted`, by default all.
    """
    jobs, gangs = np.arange(view.workload.size), view.workload.gpus
    rounds = view.rounds(jobs, view.workload.work)
    exists = np.bincount(view.servers.gpu_type, view.servers.gpus, rounds.shape[1]) > 0
    rounds[:, ~exists] = np.inf
    shortest, left = rounds.min(axis=1), view.slots - view.arrival
    best = _value(view, shortest)
    able = (shortest <= left) & (best > 0)
    if counted is not None:
        able &= np.isin(jobs, counted)
    if not able.any():
        least = np.full(exists.size, np.finfo(float).tiny)  # nobody pays for what nobody can use
        return ExtremePrices(least, least)
    last = _value(view, np.maximum(left, shortest))
    floored = able & (last < FLOOR * best)
    last = np.where(floored, FLOOR * best, last)
    longest = np.where(np.isfinite(rounds), rounds, 0.0).max(axis=1)
    demand = longest * gangs
    one_by_eta = min(1.0, float(demand[able].min()) / (view.slots * float(view.servers.gpus.sum())))
    uses = able[:, None] & np.isfinite(rounds)
    uses |= able[:, None] & ~uses.any(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(uses, (best / gangs)[:, None], -np.inf).max(axis=0)
        low = np.where(uses, (last / demand)[:, None], np.inf).min(axis=0) * one_by_eta / 4
    return ExtremePrices(np.maximum(low, np.finfo(float).tiny), high, bool(floored.any()))


def _value(view: HadarView, slots: Array) -> Array:
    """Return the ``(n,)`` utilities of jobs that complete after these numbers of slots (``inf`` for never)."""
    possible = np.isfinite(slots)
    value = view.utilities.value(np.arange(slots.size), np.where(possible, slots, 1.0) * view.slot_s)
    return np.where(possible, value, 0.0)


def guarantee(view: HadarView) -> Guarantee:
    """Return the competitive ratio ``2α`` that Theorem 2 gives for this instance."""
    extremes = prices(view)
    if extremes.floored:
        return Guarantee("2α = ∞ (a utility is 0 at the horizon)")
    return Guarantee(f"2α = {2 * extremes.alpha:.1f}", 2 * extremes.alpha)
