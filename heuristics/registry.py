"""The registry of heuristics, and the specs with which modules register them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from schedgap.heuristics.duals import PriceRun
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.registry import MethodSpec, Registry
from schedgap.instances.schema import Instance

Oracle = Callable[[str, Any], Any]
"""A function ``oracle(model_id, view)`` that returns a model's optimal decision; some heuristics round an optimum."""


@dataclass(frozen=True)
class Guarantee:
    """A worst-case ratio that a theorem gives for one instance.

    `text` is what tables print (``2α = 7.1``), `factor` the ratio; it is ``None`` if the ratio is infinite or unknown.
    `measured` says that the paper reports it from experiments and has no theorem, so that it excludes no instance.
    """

    text: str
    factor: float | None = None
    measured: bool = False


def no_prices(model: str, view: object) -> Any:
    """Raise `UsageError`: the heuristic asks for prices, and there is nobody to ask."""
    raise UsageError(f"this heuristic needs the prices of {model}; pass prices=models.shadow_prices")


@dataclass(frozen=True)
class Context:
    """What a heuristic gets besides the view: a random generator, its only source of randomness, and oracles.

    ``oracle(model_id, view)`` returns a model's decision, ``prices(model_id, view)`` the prices that prove its bound.
    """

    rng: np.random.Generator
    oracle: Oracle
    prices: Oracle = no_prices


@dataclass(frozen=True)
class HeuristicSpec(MethodSpec):
    """Everything that is registered about a heuristic, which is an online algorithm of a paper or a baseline.

    Its parameters are keywords of `run`, and of `guarantee` where that uses them.

    Parameters
    ----------
    kind
        ``"online"`` for a paper's own algorithm, ``"baseline"`` for an algorithm it is compared with.
    run
        ``run(view, context)`` returns a decision.
    guarantee
        ``guarantee(view)`` evaluates the paper's worst-case ratio, if there is one.
    shown
        ``shown(view, decision)`` evaluates a ratio whose conditions can only be checked after a run; result rows state
        it instead of `guarantee`.
    steps
        ``steps(view, decision)`` replays a decision of a primal–dual algorithm, job by job, with the prices it posts.
    """

    kind: Literal["online", "baseline"]
    run: Callable[..., Any]
    guarantee: Callable[..., Guarantee | None] = lambda view: None
    shown: Callable[[Any, Any], Guarantee | None] | None = None
    steps: Callable[[Any, Any], PriceRun] | None = None

    def decide(
        self, instance: Instance, seed: int = 0, oracle: Oracle | None = None, prices: Oracle = no_prices
    ) -> Any:
        """Run the heuristic on an instance and return its decision (in notebooks; the harness also checks decisions).

        Heuristics that round a model's optimum need ``models.oracle``, and those that take its prices as advice need
        ``models.shadow_prices``. Raises `NotApplicableError` if the method does
        not apply.
        """
        view = self.view(instance)
        if reason := self.skip(view):
            raise NotApplicableError(reason)
        return self.run(view, Context(np.random.default_rng(seed), oracle or _no_oracle, prices))


def _no_oracle(model: str, view: object) -> Any:
    raise UsageError(f"this heuristic needs the optimum of {model}; pass oracle=models.oracle")


HEURISTICS: Registry[HeuristicSpec] = Registry("heuristic")

heuristic = HEURISTICS.decorator(HeuristicSpec, "run", kind="baseline")
"""Decorator that registers ``run(view, context)`` under an id: ``@heuristic("oef.mine", problem="oef.allocation")``."""
