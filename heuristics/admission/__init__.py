"""The primal–dual admission algorithm of the walk-through: utilities, deadlines, co-location.

``admission.online`` admits a job when its best schedule is worth more than what its workers and parameter servers cost
at the prices of its arrival (:mod:`schedgap.heuristics.admission.online`). The text proves no ratio, so none is
printed.
"""

from __future__ import annotations

from schedgap.heuristics.admission.online import Candidate, Desk, Step, steps
from schedgap.heuristics.registry import HEURISTICS, Context, HeuristicSpec
from schedgap.instances.elastic import Runs, runs_of
from schedgap.instances.views.admission import UTILITY, View

__all__ = ["Candidate", "Desk", "Step", "online", "steps"]


LARGEST = 50_000_000
"""Servers times types times slots up to which it runs unasked: half a gigabyte."""


def online(view: View, context: Context) -> Runs:
    """Return the admitted jobs."""
    return runs_of([(step.job, step.chosen.run) for step in steps(view) if step.chosen], 0)


def _too_large(view: View) -> str | None:
    size = view.machines.capacity.size * view.slots
    return None if size <= LARGEST else f"servers x types x slots = {size:,}, more than {LARGEST:,}"


HEURISTICS.register(
    HeuristicSpec(
        id="admission.online",
        paper="admission",
        problem=UTILITY.id,
        kind="online",
        run=online,
        source="walk-through, parts 1 to 3: COST_C, COST_D, prices η",
        too_large=_too_large,
    )
)
