"""Model time: a policy of the simulator in the slots of Hadar's view, without overheads, as a schedule.

A round is a slot and nothing is lost by moving, so what the simulator does is feasible in P1: a job runs whole slots
from its arrival slot on, and its last slot is the one in which its work is done. Jobs that the horizon cuts off count
as rejected, so their GPUs do not appear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np

from schedgap.heuristics.registry import Context, Guarantee, heuristic
from schedgap.heuristics.simulator.engine import in_slots
from schedgap.heuristics.simulator.gangs import built
from schedgap.heuristics.simulator.policies import policy
from schedgap.heuristics.simulator.state import Policy
from schedgap.instances.parameters import passing
from schedgap.instances.views.hadar import UTILITY, Schedule, View

Build = TypeVar("Build", bound=Callable[..., Policy])


def schedule(view: View, policy: Policy, forks: bool = False) -> Schedule:
    """Return the schedule that a fresh policy makes in the slots of `view`.

    It raises `NotApplicableError` if a slot is too short or too long for a round.
    """
    end_s = view.slots * view.slot_s
    trace, slot = in_slots(view.workload, view.servers, policy, view.slot_s, until_s=end_s, forks=forks)
    row, job, server, gpus = trace.allocation.T
    completed = np.isfinite(trace.completion_s)[job]
    return Schedule(job[completed], slot[row[completed]], server[completed], gpus[completed])


def simulated(
    id: str,
    *,
    forks: bool = False,
    problem: str = UTILITY.id,
    kind: Literal["online", "baseline"] = "baseline",
    guarantee: Callable[..., Guarantee | None] = lambda view: None,
    **both: Any,
) -> Callable[[Build], Build]:
    """Register the decorated ``build(instance, oracle)`` as a policy, and in model time as a heuristic of the same id.

    `both` are fields that their specs share; settings go to `build`.
    """

    def register(build: Build) -> Build:
        def run(view: View, context: Context, **settings: Any) -> Schedule:
            return schedule(view, build(view.instance, context.oracle, **settings), forks)

        policy(id, forks=forks, **both)(build)
        heuristic(id, problem=problem, kind=kind, guarantee=guarantee, **both)(passing(run, build))
        return build

    return register


def baseline(id: str, source: str, fixed: dict[str, Any] | None = None, **fields: Any) -> Callable[[Build], Build]:
    """Register the decorated ``policy(workload, servers, **settings)``, which Hadar is compared with.

    Some settings can be `fixed`; `fields` are those of :func:`simulated`.
    """

    def register(decorated: Build) -> Build:
        simulated(id, source=source, **fields)(built(decorated, **fixed or {}))
        return decorated

    return register
