"""A program that solves Zhou's (2) with interval variables in CP-SAT; OR-Tools cannot be loaded beside highspy.

Each job has an optional interval for every way to run it, and starts once. Servers are counted together: those of a
class for workers, and all of them for workers and one PS each. This is a relaxation: its bound is one for (2), but its
schedules need not fit onto servers. The program prints a line ``[seconds, incumbent, bound]`` as JSON whenever
incumbent or bound improves.
"""

from __future__ import annotations

import json
import math
import sys
import time

import numpy as np
from ortools.sat.python import cp_model


def main(path: str, limit_s: float, threads: int) -> None:
    """Solve the problem in an ``.npz`` file: options of jobs, slots, needs, arrivals, weights, capacities, an end."""
    with np.load(path) as arrays:
        a = {name: arrays[name].tolist() for name in arrays.files}
    m = cp_model.CpModel()
    start = [m.new_int_var(t, a["end"], "") for t in a["arrival"]]
    shortest = [math.inf] * len(start)
    for job, slots in zip(a["job"], a["slots"], strict=True):
        shortest[job] = min(shortest[job], slots)
    done = [m.new_int_var(t + least, a["end"], "") for t, least in zip(a["arrival"], shortest, strict=True)]
    ways: list[list[cp_model.IntVar]] = [[] for _ in start]
    intervals = []
    for job, slots in zip(a["job"], a["slots"], strict=True):
        taken = m.new_bool_var("")
        ways[job].append(taken)
        intervals.append(m.new_optional_interval_var(start[job], slots, done[job], taken, ""))
    for mine in ways:
        m.add_exactly_one(mine)
    for need, capacity in zip(a["need"], a["capacity"], strict=True):
        used = [i for i, amount in enumerate(need) if amount]
        m.add_cumulative([intervals[i] for i in used], [need[i] for i in used], capacity)
    m.minimize(sum(weight * end for weight, end in zip(a["weight"], done, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = limit_s, threads

    def tell(incumbent: float | None, bound: float) -> None:
        sys.stdout.write(json.dumps([time.perf_counter() - began, incumbent, bound]) + "\n")
        sys.stdout.flush()

    class Watch(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            tell(self.objective_value, self.best_objective_bound)

    solver.best_bound_callback = lambda bound: tell(None, bound)
    began = time.perf_counter()
    solver.solve(m, Watch())


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
