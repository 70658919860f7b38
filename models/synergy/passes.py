"""Repeated passes of the heterogeneous ILP over unassigned GPUs (A.2, "Improving utilization").

The paper solves (22)–(26), in which every job runs or there is no solution, and speaks of jobs it finds none for. Here
each pass may leave jobs out, and the next jobs of the queue get the GPUs, CPUs and memory that are left. The result
runs jobs beyond :attr:`View.runnable <instances.views.synergy.View.runnable>`, so that it is a decision of none of the
problems of a round, and no registered method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.views.synergy import Schedule, View, replace_round
from schedgap.models.registry import solve_built
from schedgap.models.solve import SolveOptions
from schedgap.models.synergy.throughput import Rule, build_round, decode_round, equal_split


def passes(
    view: View,
    queue: Sequence[int] | None = None,
    *,
    fair: Callable[[View], Array] = equal_split,
    options: SolveOptions | None = None,
) -> list[Schedule]:
    """Return the decisions of all passes, on super-machines: `server` is the GPU type.

    Parameters
    ----------
    view
        Cluster and jobs.
    queue
        Jobs in the order in which they wait; by default all that can run, by arrival.
    fair
        ``fair(view)`` returns ``(m,)`` W^Fair of the runnable jobs of a pass; the view's pools are what is left.
    options
        Limits and tolerances of each solve.

    Raises
    ------
    RuntimeError
        If a pass ends without a solution (a time limit).
    """
    possible = view.possible
    arrived = possible[np.argsort(view.workload.arrival_s[possible], kind="stable")]
    waiting = [int(j) for j in (arrived if queue is None else queue)]
    rule = Rule(lambda v: np.repeat(fair(v)[:, None], v.types, axis=1), integer=True, everybody=False)
    done: list[Schedule] = []
    while waiting and view.pools.gpus.any():
        jobs, _ = view.pick(waiting)
        if not jobs.size:
            break
        view = replace_round(view, jobs)
        found = _solved(view, rule, options or SolveOptions())
        done.append(found)
        tried = set(jobs.tolist())
        waiting = [j for j in waiting if j not in tried]
        view = _without(view, found)
    return done


def _solved(view: View, rule: Rule, options: SolveOptions) -> Schedule:
    outcome = solve_built(lambda v: build_round(v, rule), decode_round, view, options)
    if outcome.decision is None:
        raise RuntimeError(f"{view.instance.name}: a pass ended without a solution ({outcome.solution.status})")
    found: Schedule = outcome.decision
    return found


def _without(view: View, taken: Schedule) -> View:
    """Return the view of what is left."""
    pools = view.pools
    gpus, cpus, memory_gb = (
        total - np.bincount(taken.server, amount, view.types)
        for total, amount in (
            (pools.gpus, taken.gpus),
            (pools.cpus, taken.cpus),
            (pools.memory_gb, taken.memory_gb),
        )
    )
    left = replace(
        pools,
        gpus=np.rint(gpus).astype(np.int64),
        cpus=np.maximum(cpus, 0.0),
        memory_gb=np.maximum(memory_gb, 0.0),
    )
    return replace(view, pools=left)
