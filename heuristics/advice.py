r"""Predicted prices for online primal–dual algorithms: follow them while they pay, fall back to the algorithm's own.

An algorithm's own price goes from ``low`` to ``high`` as the share x of a capacity in use goes from 0 to 1, as
:math:`k(x) = low \cdot (high/low)^x`. With a prediction :math:`\hat p`, the optimum's price of the cell, and *trust*
:math:`1 - a`, the price is

.. math:: p(x) = \min\{\max\{\hat p, k(1 - (1 - x)/a)\}, k(x/a)\}, \quad k \text{ cut off to } [low, high].

So it rises a times sooner than k would until it reaches the prediction, stays there while most of the capacity is sold,
and rises to ``high`` over the last part a of it. Threshold functions with such a plateau are Pareto-optimal for one-way
trading with a prediction (Sun, Lee, Hajiesmaili, Wierman, Tsang, NeurIPS 2021), and similar for knapsacks
(Daneshvaramoli et al., arXiv:2406.18752). The primal–dual method with predictions is that of Bamas, Maggiori and
Svensson (NeurIPS 2020), for covering; Thang and Dürr (arXiv:2110.00391) have it for packing. Grigorescu, Lin and Song
(arXiv:2406.03574) switch between advice and algorithm instead, which for jobs that hold GPUs already comes too late.

**What holds.** For any prediction, p(0) = low, p(1) = high, p never falls, and :math:`p'(x) \le (\ln(high/low)/a)
\cdot p(x)` wherever it has a derivative: k(x/a) and k(1 − (1 − x)/a) have this slope, and the plateau has none. So the
prices meet Definition 2 of Hadar, the differential one, with :math:`\alpha / a` in place of α. *Where steps are
infinitely small, and each job takes at its arrival the best of all its schedules at the prices of their slots, and
keeps it, the proof of Theorem 2 holds, and the ratio is* :math:`2 \alpha / a`, *whatever the prediction is*
(robustness). No ratio is known for perfect predictions (consistency). Both are measured.

*What does not follow.* Steps are integers. And small steps are not enough: ``hadar.advised`` plans all jobs anew in
each round, knows only schedules that start now, and charges the price of the round for all rounds. Without preemption,
that alone refutes the ratio (:mod:`schedgap.heuristics.hadar.duality`). Prices of Zhou and of the admission example
begin at 0, and their :math:`p + 1` has the slope above. Zhou assumes that each unit consumed is worth at least 1, and
that jobs are small. If they take at most :math:`a / \log \lambda` of a server, each step raises D by at most
:math:`2 \log \lambda / a` times the job's weight. But Theorem 3 itself may fail, so rows state this ratio only where
the dual solution of the run shows it. The admission example assumes neither; its first job pays nothing, and no ratio
holds. Rows of ``hadar.advised`` and ``admission.advised`` state none.

For an integer step, what matters is the price *before* it, and a job that fills an idle server would never see the
prediction. So ``before`` and ``after`` are told apart: the prediction may apply as soon as the *next* unit would reach
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.heuristics.registry import Context
from schedgap.instances.arrays import Array
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.parameters import Parameter, base_id, pairs, stated

GARBAGE = "garbage"

PARAMETERS = (
    Parameter("trust", "share of a capacity that is sold at predicted prices; 0 ignores them", least=0, most=1),
    Parameter(
        "noise",
        "error of the prediction: standard deviation of the logarithm of a factor, for each cell; garbage: prices "
        "drawn between the lowest and the highest one, independently of the instance",
        choices=(GARBAGE,),
        least=0,
        most=20,
    ),
    Parameter(
        "of",
        "whose prices are predicted: the optimum's of this instance, or of another draw of the same generator",
        choices=("same", "other"),
    ),
)
"""Parameters of algorithms with advice."""

OTHER = 1000
"""Added to the seed of a generated instance, for another draw."""


@dataclass(frozen=True, eq=False)
class Advice:
    """Predicted prices, in the shape of the algorithm's cells, and the trust in them."""

    predicted: Array
    trust: float

    def price(self, before: Array, after: Array, low: Array, high: Array) -> Array:
        """Return the prices at the shares `before` of the capacities in use; the next unit makes them `after`.

        All arguments, and the predicted prices, broadcast.
        """
        return plateau(self.predicted, self.trust, before, after, low, high)


def plateau(predicted: Array, trust: float, before: Array, after: Array, low: Array, high: Array) -> Array:
    """Return the price function of the module."""
    reserved = max(1.0 - trust, 1e-9)
    log = np.log(low), np.log(high) - np.log(low)
    sooner = log[0] + log[1] * np.clip((before if trust == 0 else after) / reserved, 0.0, 1.0)
    later = log[0] + log[1] * np.clip(1.0 - (1.0 - before) / reserved, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        wanted = np.log(predicted)
    return np.asarray(np.exp(np.minimum(np.maximum(wanted, later), sooner)))


def predicted(view: Any, context: Context, model: str, of: str, paper: Any) -> Array:
    """Return the prices behind a model's bound, on the view's instance or on another draw of its generator.

    It raises `NotApplicableError` if the instance is not generated, so that there is no other draw, or the model finds
    no prices.
    """
    if of == "other":
        from schedgap.instances import load

        name = view.instance.name
        if not name.startswith("gen/"):
            raise NotApplicableError(f"{name} is not generated: there is no other draw")
        settings: dict[str, Any] = pairs(name.partition("?")[2], name, name) if "?" in name else {}
        other = {**settings, "seed": int(settings.get("seed", 0)) + OTHER}
        view = paper.view(load(f"{base_id(name)}?{stated(other)}"))
    return np.asarray(context.prices(model, view))


def blurred(prices: Array, noise: float | str, context: Context, low: Array, high: Array) -> Array:
    """Return prices with an error: a factor for each cell or, for :data:`GARBAGE`, others between `low` and `high`."""
    draw = context.rng.standard_normal(prices.shape), context.rng.random(prices.shape)
    if noise == GARBAGE:
        return np.asarray(np.exp(np.log(low) + draw[1] * (np.log(high) - np.log(low))))
    return np.asarray(prices * np.exp(float(noise) * draw[0]))
