"""Run CP-SAT on a model in a folder, as a program: its library and highspy's hold two versions of HiGHS by one name.

Whichever is loaded second finds the other's functions and fails, so that both cannot be in one process. The program
imports nothing of this package. Every line that it prints is a JSON object; numbers are those of the scaled model,
which is minimised.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np


def main(path: str, settings: dict[str, Any]) -> None:
    """Solve the model in an ``.npz`` file, tell better incumbents and bounds, and at the end the values."""
    from ortools.sat.python import cp_model

    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    with np.load(path) as loaded:
        arrays = {name: loaded[name].tolist() for name in loaded.files}
    # Written into CP-SAT's model: its own functions for that take three times as long.
    proto, starts = model.proto, arrays["indptr"]
    for bounds in zip(arrays["lower"], arrays["upper"], strict=True):
        proto.variables.add().domain.extend(bounds)
    for i, sides in enumerate(zip(arrays["row_lower"], arrays["row_upper"], strict=True)):
        linear = proto.constraints.add().linear
        linear.vars.extend(arrays["indices"][starts[i] : starts[i + 1]])
        linear.coeffs.extend(arrays["data"][starts[i] : starts[i + 1]])
        linear.domain.extend(sides)
    proto.objective.vars.extend(arrays["cost_indices"])
    proto.objective.coeffs.extend(arrays["cost"])
    for name, value in settings.items():
        setattr(solver.parameters, name, value)

    def tell(**what: Any) -> None:
        sys.stdout.write(json.dumps({"at": time.perf_counter() - began, **what}) + "\n")
        sys.stdout.flush()

    class Watch(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        """Tells every better incumbent."""

        def on_solution_callback(self) -> None:
            tell(incumbent=self.objective_value, bound=self.best_objective_bound)

    solver.best_bound_callback = lambda bound: tell(bound=bound)
    began = time.perf_counter()
    tell(built=True)
    status = solver.solve(model, Watch())
    found = {"status": solver.status_name(status), "nodes": int(solver.num_branches)}
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):  # without a solution, its bound is 0 until it has another one
        found |= {"values": list(solver.response_proto.solution), "bound": solver.best_objective_bound}
    tell(**found)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
