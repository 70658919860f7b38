"""The registry of heuristics, and the specs with which modules register them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.registry import MethodSpec, Registry
from schedgap.instances.schema import Instance

Oracle = Callable[[str, Any], Any]
"""``oracle(model_id, view)`` returns that model's optimal decision, for heuristics that round an optimum."""


@dataclass(frozen=True)
class Guarantee:
    """A proved worst-case ratio on one instance: the text that tables print (``2α = 7.1``), and the ratio if finite."""

    text: str
    factor: float | None = None


@dataclass(frozen=True)
class Context:
    """The only source of randomness of a run, and an :data:`Oracle`."""

    rng: np.random.Generator
    oracle: Oracle


@dataclass(frozen=True)
class HeuristicSpec(MethodSpec):
    """An online algorithm or a baseline. Its parameters are keywords of `run`, and of `guarantee` where that uses them.

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
    """

    kind: Literal["online", "baseline"]
    run: Callable[..., Any]
    guarantee: Callable[..., Guarantee | None] = lambda view: None
    shown: Callable[[Any, Any], Guarantee | None] | None = None

    def decide(self, instance: Instance, seed: int = 0, oracle: Oracle | None = None) -> Any:
        """Return the decision on an instance (for notebooks; the harness also verifies and measures it).

        Heuristics that round a model's optimum need ``models.oracle``. Raises `NotApplicableError` if the method does
        not apply.
        """
        view = self.view(instance)
        if reason := self.skip(view):
            raise NotApplicableError(reason)
        return self.run(view, Context(np.random.default_rng(seed), oracle or _no_oracle))


def _no_oracle(model: str, view: object) -> Any:
    raise UsageError(f"this heuristic needs the optimum of {model}; pass oracle=models.oracle")


HEURISTICS: Registry[HeuristicSpec] = Registry("heuristic")

heuristic = HEURISTICS.decorator(HeuristicSpec, "run", kind="baseline")
"""Register the decorated ``run(view, context)`` under an id: ``@heuristic("oef.mine", problem="oef.allocation")``."""
