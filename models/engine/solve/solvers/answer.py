"""Common parts of the adapters: missing solvers, waiting for programs, the trace, and the solution."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import Status
from schedgap.models.engine.solve.form import StandardForm
from schedgap.models.engine.solve.session import finite, peak_mb
from schedgap.models.engine.solve.solution import Size, Solution, SolveOptions, Times, TracePoint

EXTRA = "pip install 'schedgap[solvers]'"


def absent(solver: str, how: str = EXTRA) -> NotApplicableError:
    """Return the error that says that a solver is not installed; `how` says how to install it."""
    return NotApplicableError(f"{solver} is not installed: {how}")


GRACE_S = 30.0
"""Seconds after its time limit before a program is killed; CBC checks its clock only between nodes."""


def wait(process: subprocess.Popen[bytes], options: SolveOptions) -> int:
    """Wait for a solver's program and return its exit code; kill the program if it does not end in time.

    Ctrl-C is passed on to the program, which then stops at its next node.
    """
    with process:
        try:
            return process.wait(None if options.time_limit_s is None else options.time_limit_s + GRACE_S)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                return process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            pass
        process.kill()
        return process.wait()


@dataclass
class SolverRun:
    """One run of a solver, created before the model is passed to it: it records times and trace for the solution."""

    form: StandardForm
    options: SolveOptions
    trace: list[TracePoint] = field(default_factory=list)
    made: float = field(default_factory=clock.now)
    began: float = 0.0

    def begin(self) -> None:
        """Record that the solver starts now."""
        self.began = clock.now()

    def program(
        self,
        model: Path,
        settings: Mapping[str, Any],
        incumbent: Callable[[float], float],
        bound: Callable[[float], float],
    ) -> tuple[dict[str, Any], float | None]:
        """Run the solver's program on a model, and record the incumbents and bounds that it prints.

        The functions `incumbent` and `bound` turn the program's numbers into values of the form's objective. Settings
        that are ``None`` are omitted. Return the program's last record and its last bound. If the program is killed or
        fails, the last record is ``{"failure": (status, reason)}``, and what it printed before is kept. Starting the
        program does not count as solving time.
        """
        program = Path(__file__).with_name("_programs.py")
        parameters = json.dumps({name: value for name, value in settings.items() if value is not None})
        command = [sys.executable, "-P", str(program), self.options.program, str(model), parameters]
        log, errors = model.with_name("log"), model.with_name("errors")
        with log.open("w") as out, errors.open("w") as err:
            self.begin()
            code = wait(subprocess.Popen(command, stdout=out, stderr=err), self.options)
        lines = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        last: dict[str, Any] = lines[-1] if lines else {}
        if "status" in last:
            self.began += max(clock.now() - self.began - last["at"], 0.0)
        elif code < 0:
            last = {"failure": ("interrupted", f"killed by signal {-code}")}
        else:
            why = errors.read_text().strip().splitlines()[-1:]
            last = {"failure": ("error", f"exited with status {code}: {''.join(why)[-200:]}")}
        best: float | None = None
        for line in lines:
            best = bound(line["bound"]) if "bound" in line else best
            self.reached(incumbent(line["incumbent"]) if "incumbent" in line else None, best, line["at"])
        return last, best

    def reached(self, incumbent: float | None, bound: float | None, at_s: float | None = None) -> None:
        """Record incumbent and bound, in the form's own sense and without its constant; ``None`` means unchanged."""
        last = self.trace[-1] if self.trace else TracePoint(0.0, None, None)
        values = self.value(incumbent), self.value(bound)
        point = tuple(old if new is None else new for new, old in zip(values, last[1:], strict=True))
        if last[1:] != point:
            self.trace.append(TracePoint(clock.now() - self.began if at_s is None else at_s, *point))

    def value(self, number: float | None) -> float | None:
        """Return a number from the solver with the form's constant added; ``None`` if it stands for infinity."""
        number = None if number is None or abs(number) >= 1e20 else finite(number)
        return None if number is None else number + self.form.offset

    @property
    def late(self) -> bool:
        """Whether at least 95 % of the time limit is used: solvers check their clocks only now and then."""
        limit_s = self.options.time_limit_s
        return limit_s is not None and clock.now() - self.began >= 0.95 * limit_s

    def stopped(self, feasible: bool) -> Status:
        """Return the status of a run that reached its time limit."""
        return "time limit with incumbent" if feasible else "time limit without incumbent"

    def ended(
        self,
        status: Status,
        termination: str,
        values: Array | None = None,
        objective: float | None = None,
        bound: float | None = None,
        nodes: int | None = None,
    ) -> Solution:
        """Return the solution; `objective` and `bound` are the solver's claims, as in :meth:`reached`."""
        form, ended = self.form, clock.now()
        is_mip = bool(form.integer.any())
        if is_mip:
            self.reached(objective, bound, ended - self.began)
        rows, columns = form.matrix.shape
        return Solution(
            status=status,
            termination=termination,
            solution_status="none" if values is None else "feasible",
            objective=None if values is None else self.value(objective),
            bound=self.value(bound),
            times=Times(transfer_s=self.began - self.made, solve_s=ended - self.began),
            size=Size(rows, columns, form.matrix.nnz, int(form.integer.sum())),
            nodes=nodes if is_mip else None,
            trace=tuple(self.trace),
            peak_mb=peak_mb(),
            solver=self.options.solver,
            scale=float(abs(form.cost).max(initial=0.0)),
            model=form.model,
            columns=form.columns,
            rows=form.rows,
            column_values=values,
        )
