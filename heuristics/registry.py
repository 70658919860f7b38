"""Specs of heuristics, by which their files register them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import Parametrised
from schedgap.instances.registry import PAPERS, Registry
from schedgap.instances.schema import Instance

Oracle = Callable[[str, Any], Any]
"""``oracle(model_id, view)`` returns that model's optimal decision; how heuristics that round optima get them."""


@dataclass(frozen=True)
class Guarantee:
    """A proved worst-case ratio, evaluated on one instance.

    Parameters
    ----------
    text
        As printed in tables (``2α = 7.1``).
    factor
        Largest ratio to the optimum that the theorem allows on this instance; ``None`` where it is no ratio.
    """

    text: str
    factor: float | None = None


@dataclass(frozen=True)
class Context:
    """Things that a run may use besides the view.

    Parameters
    ----------
    rng
        The run's only source of randomness.
    oracle
        Optimal decisions of models (see :data:`Oracle`).
    """

    rng: np.random.Generator
    oracle: Oracle


@dataclass(frozen=True)
class HeuristicSpec(Parametrised):
    """An online algorithm or a baseline. Its parameters are keywords of `run`, and of `guarantee` where it has them.

    Parameters
    ----------
    id
        ``<paper>.<name>``.
    paper
        Id of the paper whose view it takes and whose decision it returns.
    problem
        Id of the problem its objective belongs to.
    kind
        ``"online"`` for a paper's own algorithm, ``"baseline"`` for what it is compared with.
    run
        ``run(view, context)`` returns a decision.
    source
        Paper, section or algorithm.
    guarantee
        ``guarantee(view)`` evaluates the paper's worst-case ratio, where there is one.
    shown
        ``shown(view, decision)`` evaluates a ratio whose conditions can be checked once a run is there; rows state it
        instead of `guarantee`.
    claims
        Properties that its decisions must have; the verifier checks each (``"sharing_incentive"``).
    skip
        ``skip(view)`` returns the reason why it cannot run, or ``None``.
    too_large
        ``too_large(view)`` returns the size above which it runs only on request (``--all``), or ``None``.
    """

    id: str
    paper: str
    problem: str
    kind: Literal["online", "baseline"]
    run: Callable[..., Any]
    source: str
    guarantee: Callable[..., Guarantee | None] = lambda view: None
    shown: Callable[[Any, Any], Guarantee | None] | None = None
    claims: tuple[str, ...] = ()
    skip: Callable[[Any], str | None] = lambda view: None
    too_large: Callable[[Any], str | None] = lambda view: None

    def decide(self, instance: Instance, seed: int = 0, oracle: Oracle | None = None) -> Any:
        """Run on an instance (for notebooks; the harness also verifies and measures).

        Parameters
        ----------
        instance
            Any instance that the paper has a view of.
        seed
            Seed of the run's random generator.
        oracle
            ``models.oracle`` for heuristics that round a model's optimum.
        """
        context = Context(np.random.default_rng(seed), oracle or _no_oracle)
        return self.run(PAPERS.get(self.paper).view(instance), context)


def _no_oracle(model: str, view: object) -> Any:
    raise UsageError(f"this heuristic needs the optimum of {model}: pass oracle=models.oracle")


HEURISTICS: Registry[HeuristicSpec] = Registry("heuristic")

heuristic = HEURISTICS.decorator(HeuristicSpec, "run", kind="baseline", source="not published")
"""Register the decorated ``run(view, context)`` under an id: ``@heuristic("oef.mine", problem="oef.allocation")``."""
