"""Schedules for jobs that may be interrupted: the best one without interruptions, against the fluid over intervals.

Every schedule without interruptions solves the problem with them. What interruptions can gain at most is the gap.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from schedgap.instances import clock
from schedgap.instances.views.zhou import ARCHITECTURES, ZhouView
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.registry import Outcome, model
from schedgap.models.zhou import columns
from schedgap.models.zhou.common import skip
from schedgap.models.zhou.fluid import build_by_intervals, by_intervals

BOUNDING = 0.3
"""Fraction of the time limit for the bound; the rest is for the schedule."""


def interrupted(view: ZhouView, options: SolveOptions, arch: str) -> Outcome:
    """Bound the problem by the fluid over intervals, and search for a schedule without interruptions.

    The search is that of ``zhou.<arch>.columns``; a known decision that is better is the answer instead.
    """
    began = clock.now()
    part = None if options.time_limit_s is None else BOUNDING * options.time_limit_s
    bounded = by_intervals(view, replace(options, time_limit_s=part, seeds=()), arch)
    searched = columns.columns(view, replace(options.since(began), seeds=()), arch)
    found, decision = searched.solution.objective, searched.decision
    known = min(options.seeds, key=lambda seed: seed.objective, default=None)
    if known is not None and (found is None or known.objective < found):
        found, decision = known.objective, known.decision
    bound = bounded.solution.bound
    closed = found is not None and bound is not None and found - bound <= options.rel_gap * abs(found)
    solution = replace(
        searched.solution,
        status="optimal" if closed else "gap left",
        termination=f"fluid over intervals; {searched.solution.termination}",
        objective=found,
        bound=bound,
        trace=(),
        times=searched.solution.times.since(began),
    )
    return Outcome(solution, decision, evidence=bounded.evidence)


for _arch in ARCHITECTURES:
    model(
        f"zhou.{_arch}.interrupted",
        problem=f"zhou.{_arch}.preemptive",
        kind="matheuristic",
        source="Fluid relaxation over intervals, and the schedules of Zhou et al.'s (8) and (17)",
        procedure=partial(interrupted, arch=_arch),
        skip=skip(_arch),
        too_large=partial(columns.beyond, arch=_arch),
        # The search is that of the columns, which would take its share of a comparison's time a second time.
        by_name=True,
    )(partial(build_by_intervals, name=_arch))
