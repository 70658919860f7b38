"""Model time: a policy is simulated in the slots of Hadar's view without overheads, which gives a schedule of P1.

A round is a slot and restarts are free, so the simulated schedule is feasible in P1: a job runs in whole slots from its
arrival slot on, and its last slot is the one in which its work is done. Jobs that are unfinished at the horizon count
as rejected, and their GPUs are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np

from schedgap.heuristics.duals import PriceRun
from schedgap.heuristics.registry import Context, Guarantee, heuristic
from schedgap.heuristics.simulator.engine import in_slots
from schedgap.heuristics.simulator.gangs import built
from schedgap.heuristics.simulator.policies import policy
from schedgap.heuristics.simulator.state import Policy
from schedgap.instances.parameters import passing
from schedgap.instances.views.hadar import UTILITY, HadarSchedule, HadarView

Build = TypeVar("Build", bound=Callable[..., Policy])


def schedule(view: HadarView, policy: Policy, forks: bool = False) -> HadarSchedule:
    """Simulate a fresh policy in the slots of `view`; return the schedule of the jobs that complete.

    Raises `NotApplicableError` if a slot is too short or too long for a round.
    """
    end_s = view.slots * view.slot_s
    trace, slot = in_slots(view.workload, view.servers, policy, view.slot_s, until_s=end_s, forks=forks)
    row, job, server, gpus = trace.allocation.T
    completed = np.isfinite(trace.completion_s)[job]
    return HadarSchedule(job[completed], slot[row[completed]], server[completed], gpus[completed])


def simulated(
    id: str,
    *,
    forks: bool = False,
    problem: str = UTILITY.id,
    kind: Literal["online", "baseline"] = "baseline",
    guarantee: Callable[..., Guarantee | None] = lambda view: None,
    shown: Callable[..., Guarantee | None] | None = None,
    steps: Callable[..., PriceRun] | None = None,
    **fields: Any,
) -> Callable[[Build], Build]:
    """Register the decorated ``build(instance, oracle)`` twice under one id: as a policy and as a heuristic.

    The heuristic runs the policy in model time. `fields` are shared by both; settings are passed to `build`.
    """

    def register(build: Build) -> Build:
        def run(view: HadarView, context: Context, **settings: Any) -> HadarSchedule:
            return schedule(view, build(view.instance, context.oracle, **settings), forks)

        policy(id, forks=forks, **fields)(build)
        own: dict[str, Any] = {"guarantee": guarantee, "shown": shown, "steps": steps}
        heuristic(id, problem=problem, kind=kind, **own, **fields)(passing(run, build))
        return build

    return register


def baseline(id: str, source: str, fixed: dict[str, Any] | None = None, **fields: Any) -> Callable[[Build], Build]:
    """Register the decorated ``policy(workload, servers, **settings)`` as a baseline that Hadar is compared with.

    `fixed` are settings that users cannot change; `fields` are those of :func:`simulated`.
    """

    def register(decorated: Build) -> Build:
        simulated(id, source=source, **fields)(built(decorated, **fixed or {}))
        return decorated

    return register
