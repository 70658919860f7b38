"""Model time: policies in the slots of a paper's view, where a round is a slot; registered as heuristics, too."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Literal

import numpy as np

from schedgap.heuristics.registry import HEURISTICS, Guarantee, HeuristicSpec
from schedgap.heuristics.simulator.engine import simulate
from schedgap.heuristics.simulator.policies import POLICIES, PolicySpec
from schedgap.heuristics.simulator.state import Policy
from schedgap.heuristics.simulator.trace import LEAST_ROUND_S, MOST_ROUND_S, Trace
from schedgap.instances.arrays import Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.workload import Servers, Workload


def in_slots(work: Workload, cluster: Servers, policy: Policy, slot_s: float, **rules: Any) -> tuple[Trace, Ints]:
    """Simulate a policy with rounds as long as slots; return the history and ``(R,)`` slots of its rounds, from 0.

    Parameters
    ----------
    work, cluster, policy
        As in :func:`schedgap.heuristics.simulator.simulate`; `policy` is a fresh one.
    slot_s
        Seconds of a slot.
    **rules
        The other arguments of :func:`schedgap.heuristics.simulator.simulate`.

    Raises
    ------
    NotApplicableError
        If a slot is too short or too long for a round.
    """
    if not LEAST_ROUND_S <= slot_s <= MOST_ROUND_S:
        wanted = f"simulated rounds take {LEAST_ROUND_S:g} to {MOST_ROUND_S:g} s"
        raise NotApplicableError(f"horizon.slot_s = {slot_s:g}: {wanted}")
    trace = simulate(work, cluster, policy, round_s=slot_s, **rules)
    return trace, np.rint(trace.start_s / slot_s).astype(np.int64)


def register(
    spec: PolicySpec,
    problem: str,
    kind: Literal["online", "baseline"],
    run: Callable[..., Any],
    guarantee: Callable[..., Guarantee | None] = lambda view: None,
    claims: tuple[str, ...] = (),
    too_large: Callable[[Any], str | None] = lambda view: None,
) -> PolicySpec:
    """Register a policy, and the heuristic of the same id, with those of its parameters that `run` takes.

    Parameters
    ----------
    spec
        The policy.
    problem, kind, run, guarantee, claims, too_large
        Fields of the heuristic; `run` is the policy in model time. Variants need all parameters.
    """
    taken = tuple(p for p in spec.parameters if p.name in signature(run).parameters)
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
            parameters=taken,
            variants=spec.variants if taken == spec.parameters else (),
        )
    )
    return POLICIES.register(spec)
