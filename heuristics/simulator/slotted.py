"""Model time: a policy of the simulator in the slots of Hadar's view, without overheads, as a schedule.

A round is a slot and nothing is lost by moving, so what the simulator does is feasible in P1: a job runs whole slots
from its arrival slot on, and its last slot is the one in which its work is done. Jobs that the horizon cuts off count
as rejected, so their GPUs do not appear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from schedgap.heuristics.registry import Context
from schedgap.heuristics.simulator.model_time import in_slots, register
from schedgap.heuristics.simulator.policies import PolicySpec
from schedgap.heuristics.simulator.state import Policy
from schedgap.instances.parameters import passing
from schedgap.instances.views.hadar import UTILITY, Schedule, View


def schedule(view: View, policy: Policy, forks: bool = False) -> Schedule:
    """Return the schedule that a fresh policy makes in the slots of `view`.

    Raises
    ------
    NotApplicableError
        If a slot is too short or too long for a round.
    """
    end_s = view.slots * view.slot_s
    trace, slot = in_slots(view.workload, view.servers, policy, view.slot_s, until_s=end_s, forks=forks)
    row, job, server, gpus = trace.allocation.T
    completed = np.isfinite(trace.completion_s)[job]
    return Schedule(job[completed], slot[row[completed]], server[completed], gpus[completed])


def in_model_time(spec: PolicySpec) -> Callable[..., Schedule]:
    """Return the heuristic that runs a policy in model time; it takes the policy's settings."""

    def run(view: View, context: Context, **settings: Any) -> Schedule:
        return schedule(view, spec.build(view.instance, context.oracle, **settings), spec.forks)

    return passing(run, spec.build)


def register_baseline(spec: PolicySpec) -> PolicySpec:
    """Register a policy that Hadar is compared with, also as a heuristic in model time; returns `spec`."""
    return register(spec, UTILITY.id, "baseline", in_model_time(spec))
