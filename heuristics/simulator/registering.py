"""Registering a policy twice: for the simulator, and as a heuristic that runs it in model time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from heuristics.registry import HEURISTICS, Context, Guarantee, HeuristicSpec
from heuristics.simulator.state import POLICIES, PolicySpec


def register(
    spec: PolicySpec,
    problem: str,
    kind: Literal["online", "baseline"],
    run: Callable[[Any, Context], Any],
    guarantee: Callable[[Any], Guarantee | None] = lambda view: None,
    claims: tuple[str, ...] = (),
    too_large: Callable[[Any], str | None] = lambda view: None,
) -> PolicySpec:
    """Register a policy, and the heuristic of the same id.

    Parameters
    ----------
    spec
        The policy.
    problem, kind, run, guarantee, claims, too_large
        Fields of the heuristic; `run` is the policy in model time.
    """
    HEURISTICS.register(
        HeuristicSpec(
            id=spec.id,
            paper=spec.paper,
            problem=problem,
            kind=kind,
            run=run,
            source=spec.source,
            guarantee=guarantee,
            claims=claims,
            too_large=too_large,
        )
    )
    return POLICIES.register(spec)
