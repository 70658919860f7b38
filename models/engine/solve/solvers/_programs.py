"""Program that runs SCIP, CP-SAT or MPAX on a model file; it imports nothing from this package.

The libraries of CP-SAT and highspy contain two versions of HiGHS under one name: whichever is loaded second picks up
the other's functions and fails, so they cannot share a process. JAX, on which MPAX runs, takes most of a card's memory
until its process ends. The program prints one JSON object per line; numbers refer to the model in the file, which is
minimised. Without a file, it lists the solver's parameters.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

WATCHED = ("BESTSOLFOUND", "DUALBOUNDIMPROVED")


def begun() -> Callable[..., None]:
    """Start the clock; return a function that prints a record with the seconds since the start."""
    began = time.perf_counter()

    def tell(**record: Any) -> None:
        print(json.dumps({"at": time.perf_counter() - began, **record}), flush=True)

    tell(built=True)
    return tell


def scip_options() -> list[tuple[str, Any, list[str]]]:
    """Return the name and default of each parameter of SCIP, with an empty list of words that it accepts."""
    import pyscipopt

    return [(name, default, []) for name, default in pyscipopt.Model().getParams().items()]


def cp_sat_options() -> list[tuple[str, Any, list[str]]]:
    """Return name, default and accepted words of those parameters of CP-SAT that are numbers, flags or words."""
    from ortools.sat.python import cp_model

    parameters = cp_model.CpSolver().parameters
    values = {name: getattr(parameters, name) for name in dir(parameters) if name.islower()}
    words = {name: [*type(value).__members__] for name, value in values.items() if hasattr(type(value), "__members__")}
    numbers: list[tuple[str, Any, list[str]]] = [
        (name, value, []) for name, value in values.items() if isinstance(value, bool | int | float)
    ]
    return [*numbers, *((name, values[name].name, listed) for name, listed in words.items())]


def mpax_options() -> list[tuple[str, Any, list[str]]]:
    """Return name and default of each number or flag among the parameters of MPAX's method for linear programs."""
    import dataclasses

    import mpax

    fields = [(each.name, each.default) for each in dataclasses.fields(mpax.r2HPDHG)]
    return [(name, value, []) for name, value in fields if type(value) in (bool, int, float)]


def _apply(put: Callable[[str, Any], None], settings: dict[str, Any]) -> None:
    """Set the solver's parameters; if it refuses one, end the program with a line that names this parameter."""
    for name, value in settings.items():
        try:
            put(name, value)
        except Exception as error:
            sys.exit(f"{name} = {value}: {type(error).__name__}: {str(error).splitlines()[0]}")


def scip(path: str, settings: dict[str, Any]) -> None:
    """Solve the model in an MPS file; print improved incumbents and bounds, and finally the values."""
    import pyscipopt

    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(path)
    _apply(scip.setParam, settings)

    class ScipWatch(pyscipopt.Eventhdlr):  # type: ignore[misc]
        """Prints improved incumbents and bounds."""

        def eventinit(self) -> None:
            for kind in WATCHED:
                self.model.catchEvent(getattr(pyscipopt.SCIP_EVENTTYPE, kind), self)

        def eventexit(self) -> None:
            for kind in WATCHED:
                self.model.dropEvent(getattr(pyscipopt.SCIP_EVENTTYPE, kind), self)

        def eventexec(self, event: Any) -> None:
            tell(incumbent=self.model.getPrimalbound(), bound=self.model.getDualbound())

    scip.includeEventhdlr(ScipWatch(), "watch", "prints improved incumbents and bounds")
    tell = begun()
    scip.optimize()
    status, feasible = scip.getStatus(), scip.getNSols() > 0
    if status == "inforunbd":
        scip.freeTransform()
        scip.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
        scip.optimize()
        status = scip.getStatus()
    answer = {"status": status, "bound": scip.getDualbound(), "nodes": int(scip.getNTotalNodes())}
    if feasible:
        best = scip.getBestSol()
        values = {column.name: scip.getSolVal(best, column) for column in scip.getVars()}
        answer |= {"objective": scip.getObjVal(), "values": values}
    tell(**answer)


def cp_sat(path: str, settings: dict[str, Any]) -> None:
    """Solve the model in an ``.npz`` file; print improved incumbents and bounds, and finally the values."""
    import numpy as np
    from ortools.sat.python import cp_model

    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    with np.load(path) as loaded:
        arrays = {name: loaded[name].tolist() for name in loaded.files}
    # Fill CP-SAT's protocol buffer directly; its modelling functions take three times as long.
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

    def put(name: str, value: Any) -> None:
        kind = type(getattr(solver.parameters, name))
        setattr(solver.parameters, name, kind.__members__[value] if isinstance(value, str) else value)

    _apply(put, settings)

    class CpSatWatch(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        """Prints improved incumbents."""

        def on_solution_callback(self) -> None:
            tell(incumbent=self.objective_value, bound=self.best_objective_bound)

    solver.best_bound_callback = lambda bound: tell(bound=bound)
    tell: Callable[..., None] = begun()
    status = solver.solve(model, CpSatWatch())
    answer = {"status": solver.status_name(status), "nodes": int(solver.num_branches)}
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):  # without a solution, its bound may be an uninitialised 0
        answer |= {"values": list(solver.response_proto.solution), "bound": solver.best_objective_bound}
    tell(**answer)


EXACT = 1e-9
"""Tolerance of MPAX: at its own, 1e-4, capacity is exceeded by more than checkers allow."""

PART, MOST = 4_000_000_000, 20_000
"""Multiplications of MPAX between looks at the clock, if there is a time limit, and the most steps in between."""


CODES = {1: "steps", 2: "optimal", 3: "infeasible", 4: "unbounded", 6: "steps"}
"""What MPAX's codes of termination mean; without one, its loop has taken all steps."""


def mpax(path: str, settings: dict[str, Any]) -> None:
    """Solve the linear program in an ``.npz`` file; print values and prices of rows, also without an optimum."""
    os.environ["JAX_TRACEBACK_FILTERING"] = "off"  # otherwise an error ends in a remark on JAX, not in its words
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental.sparse import BCOO
    from mpax import create_lp, r2HPDHG

    with np.load(path) as loaded:
        given = {name: loaded[name] for name in loaded.files}
    cost, lower, upper = given["cost"], given["lower"], given["upper"]
    column, data = given["indices"], given["data"]
    row = np.repeat(np.arange(len(given["indptr"]) - 1), np.diff(given["indptr"]))
    equal = given["row_lower"] == given["row_upper"]
    # Rows of MPAX are equations, or have a lower side: a row with two sides becomes two rows.
    parts = [
        (1.0, np.flatnonzero(equal), given["row_lower"]),
        (1.0, np.flatnonzero(~equal & np.isfinite(given["row_lower"])), given["row_lower"]),
        (-1.0, np.flatnonzero(~equal & np.isfinite(given["row_upper"])), -given["row_upper"]),
    ]

    def rows(*chosen: tuple[float, Any, Any]) -> tuple[Any, Any]:
        """Return the matrix and the right-hand sides of some rows."""
        numbers, places, before = [np.zeros(0)], [np.zeros((0, 2), np.int32)], 0
        for sign, which, _ in chosen:
            place = np.full(len(equal), -1)
            place[which] = before + np.arange(len(which))
            mine = place[row] >= 0
            numbers.append(sign * data[mine])
            places.append(np.column_stack((place[row[mine]], column[mine])).astype(np.int32))
            before += len(which)
        entries = jnp.asarray(np.concatenate(numbers)), jnp.asarray(np.concatenate(places))
        return BCOO(entries, shape=(before, len(cost))), jnp.asarray(np.concatenate([side[w] for _, w, side in chosen]))

    program = create_lp(jnp.asarray(cost), *rows(parts[0]), *rows(*parts[1:]), jnp.asarray(lower), jnp.asarray(upper))
    limit_s = settings.pop("time_limit", None)
    steps = {} if limit_s is None else {"iteration_limit": int(min(max(PART / (len(data) + len(cost)), 200), MOST))}
    solver = r2HPDHG(warm_start=True, **{"eps_abs": EXACT, "eps_rel": EXACT, **steps, **settings})
    tell, began = begun(), time.monotonic()
    solve = jax.jit(solver.optimize)
    x, y, count = jnp.clip(jnp.zeros(len(cost)), lower, upper), jnp.zeros(sum(len(which) for _, which, _ in parts)), 0
    while True:
        found = solve(program, x, y)
        x, y, count = found.primal_solution, found.dual_solution, count + int(found.iteration_count)
        status = CODES.get(int(found.termination_status), "error")
        late = limit_s is not None and time.monotonic() - began > limit_s
        if status != "steps" or late:
            break
    price, at = np.zeros(len(equal)), 0
    for sign, which, _ in parts:
        price[which] += sign * np.asarray(y)[at : at + len(which)]
        at += len(which)
    status = "late" if status == "steps" else status
    device = str(jax.devices()[0].device_kind)
    tell(status=status, steps=count, device=device, values=x.tolist(), prices=price.tolist())


if __name__ == "__main__":
    if len(sys.argv) == 2:
        listed = {"scip": scip_options, "cp-sat": cp_sat_options, "mpax": mpax_options}
        print(json.dumps(listed[sys.argv[1]]()))
    else:
        {"scip": scip, "cp-sat": cp_sat, "mpax": mpax}[sys.argv[1]](sys.argv[2], json.loads(sys.argv[3]))
