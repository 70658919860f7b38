"""Specs of heuristics, by which their files register them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.registry import PAPERS, MethodSpec, Registry
from schedgap.instances.schema import Instance

Oracle = Callable[[str, Any], Any]
"""``oracle(model_id, view)`` returns that model's optimal decision; how heuristics that round optima get them."""


@dataclass(frozen=True)
class Guarantee:
    """A proved worst-case ratio on one instance, as tables print it (``2α = 7.1``), and its value if it is a ratio."""

    text: str
    factor: float | None = None


@dataclass(frozen=True)
class Context:
    """The run's only source of randomness, and an :data:`Oracle`."""

    rng: np.random.Generator
    oracle: Oracle


@dataclass(frozen=True)
class HeuristicSpec(MethodSpec):
    """An online algorithm or a baseline. Its parameters are keywords of `run`, and of `guarantee` where it has them.

    Parameters
    ----------
    kind
        ``"online"`` for a paper's own algorithm, ``"baseline"`` for what it is compared with.
    run
        ``run(view, context)`` returns a decision.
    guarantee
        ``guarantee(view)`` evaluates the paper's worst-case ratio, where there is one.
    shown
        ``shown(view, decision)`` evaluates a ratio whose conditions can be checked once a run is there; rows state it
        instead of `guarantee`.
    """

    kind: Literal["online", "baseline"]
    run: Callable[..., Any]
    guarantee: Callable[..., Guarantee | None] = lambda view: None
    shown: Callable[[Any, Any], Guarantee | None] | None = None

    def decide(self, instance: Instance, seed: int = 0, oracle: Oracle | None = None) -> Any:
        """Run on an instance (for notebooks; the harness also verifies and measures).

        Heuristics that round a model's optimum need ``models.oracle``. It raises `NotApplicableError` where the method
        does not apply.
        """
        view = PAPERS.get(self.paper).view(instance)
        if reason := self.skip(view):
            raise NotApplicableError(reason)
        return self.run(view, Context(np.random.default_rng(seed), oracle or _no_oracle))


def _no_oracle(model: str, view: object) -> Any:
    raise UsageError(f"this heuristic needs the optimum of {model}: pass oracle=models.oracle")


HEURISTICS: Registry[HeuristicSpec] = Registry("heuristic")

heuristic = HEURISTICS.decorator(HeuristicSpec, "run", kind="baseline")
"""Register the decorated ``run(view, context)`` under an id: ``@heuristic("oef.mine", problem="oef.allocation")``."""
