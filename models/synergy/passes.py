"""Repeated passes of the heterogeneous ILP over unassigned GPUs (A.2, "Improving utilization").

The paper solves (22)–(26), in which every job runs or there is no solution, and speaks of jobs it finds none for. Here
each pass may leave jobs out, and the next jobs of the queue get the GPUs, CPUs and memory that are left. The result
runs jobs beyond :attr:`View.runnable <instances.views.synergy.View.runnable>`, so that it is a decision of none of the
problems of a round, and no registered method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.views.synergy import Schedule, View
from schedgap.models.registry import solve_built
from schedgap.models.solve import SolveOptions
from schedgap.models.synergy.throughput import Rule, build_round, decode_round, equal_split


def passes(
    view: View, queue: Sequence[int] | None = None, *, fair: Callable[[View], Array] = equal_split
) -> list[Schedule]:
    """Return the decisions of all passes, on super-machines: `server` is the GPU type.

    Jobs wait in the order of `queue`, by default all that can run, by arrival. ``fair(view)`` returns ``(m,)`` W^Fair
    of the runnable jobs of a pass; the view's pools are what is left.
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
        view = replace(view, runnable=jobs)
        done.append(solve_built(partial(build_round, rule=rule), decode_round, view, SolveOptions()).decision)
        tried = set(jobs.tolist())
        waiting = [j for j in waiting if j not in tried]
        taken, pools = done[-1], view.pools
        left = {
            name: np.maximum(getattr(pools, name) - np.bincount(taken.server, getattr(taken, name), view.types), 0.0)
            for name in ("gpus", "cpus", "memory_gb")
        }
        view = replace(view, pools=replace(pools, **left | {"gpus": np.rint(left["gpus"]).astype(np.int64)}))
    return done
