"""A HiGHS session: pass arrays once, solve, add rows or columns, and solve again from the last basis."""

from __future__ import annotations

import resource
import signal
import threading
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.registry import Status
from schedgap.models.engine.solve import logs
from schedgap.models.engine.solve.form import StandardForm
from schedgap.models.engine.solve.refinement import matrix_of, refined
from schedgap.models.engine.solve.scaling import NotCertifiableError
from schedgap.models.engine.solve.solution import Size, Solution, SolveOptions, Times, TracePoint

AGREES = 1e-6
"""Largest relative difference allowed between an LP's objective and the bound proved by its duals."""

DUAL_SIMPLEX = 1
PRIMAL_SIMPLEX = 4

PRICE = 1e-11
"""Fraction of the largest cost up to which reduced costs and prices of a refined optimum count as 0."""

WORSE = 1e-9
"""Largest relative loss of the objective at which an optimum of the secondary objective is accepted."""

TIGHT, LOOSE = 1e-9, 1e-7
"""Feasibility tolerances of a MIP: for its first answer, and for the second answer that confirms it.

HiGHS applies a tenth of the tolerance to reduced costs. At its default of 1e-6, it ignores columns of small value, and
its bound can be below the optimum. At 1e-9, rounding lets it cut off an optimum from time to time.
"""

SMALL = 10_000
"""LPs with at most this many nonzeros are solved in the calling thread: they mostly take milliseconds."""

_M: Any = highspy.HighsModelStatus
_STATUS: dict[Any, Status] = {
    _M.kOptimal: "optimal",
    _M.kModelEmpty: "optimal",
    _M.kInfeasible: "infeasible",
    _M.kUnbounded: "unbounded",
    _M.kInterrupt: "interrupted",
    _M.kHighsInterrupt: "interrupted",
}
_scheduler = {"threads": 0}


class Session:
    """A standard form in HiGHS, with checked options; rows and columns may be added later."""

    def __init__(self, form: StandardForm, options: SolveOptions) -> None:
        if options.program != "highs":
            reason = f"it adds rows or columns to its model as it goes, for which it needs highs, not {options.program}"
            raise NotApplicableError(reason)
        began = clock.now()
        self.form = form
        self.options = options
        self.is_mip = bool(form.integer.any())
        self.sign = 1.0 if form.maximise else -1.0
        self._interrupted = False
        self._claimed: Any = None
        self._trace: list[TracePoint] = []
        self._began = began
        self.highs = highspy.Highs()
        self._set_options()
        if self.highs.passModel(_highs_lp(form)) != highspy.HighsStatus.kOk:
            # A warning means that HiGHS dropped or changed coefficients, and would solve a different model.
            raise NotCertifiableError("coefficients below 1e-9 or above 1e15: a solver would change or drop them")
        if options.basis is not None:
            self.start_at(options.basis)
        if options.mip_start:
            where = {v.name: i for i, v in enumerate(form.columns)}
            missing = [name for name in options.mip_start if name not in where]
            if missing:
                raise UsageError(f"MIP start names {missing[0]!r}: no such variable in the model")
            indices = np.array([where[name] for name in options.mip_start])
            self._start_from(indices, np.array(list(options.mip_start.values()), float))
        self.highs.HandleUserInterrupt = True
        if self.is_mip:
            self.highs.cbMipLogging.subscribe(lambda event: self._record(event, finite(event.data_out.mip_dual_bound)))
            # At an improving solution HiGHS 1.15 reports the incumbent as bound (3 if the optimum is 4): keep ours.
            self.highs.cbMipImprovingSolution.subscribe(
                lambda event: self._record(event, self._trace[-1].bound if self._trace else None)
            )
        self.transfer_s = clock.now() - began

    def set_option(self, name: str, value: object) -> None:
        """Set a HiGHS option; unlike HiGHS itself, raise an error for an unknown name or value."""
        if self.highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS refuses option {name} = {value!r}")

    def prefer(self, name: str, value: object) -> None:
        """Set a HiGHS option, such as one that is faster here, unless the user has set it."""
        if name not in self.options.own:
            self.set_option(name, value)

    def _set_options(self) -> None:
        options = self.options
        # HiGHS keeps one global thread pool; a changed thread count needs a new one.
        if _scheduler["threads"] not in (0, options.threads):
            highspy.Highs.resetGlobalScheduler(True)
        _scheduler["threads"] = options.threads
        self.set_option("output_flag", False)
        self.set_option("threads", options.threads)
        self.set_option("random_seed", options.seed)
        self.set_option("mip_rel_gap", options.rel_gap)
        self.set_option("mip_abs_gap", 0.0 if options.rel_gap == 0 else 1e-9)
        algorithm, name = options.method, "solver"  # for linear programs, including a MIP's nodes that have a basis
        if self.is_mip and algorithm in ("ipm", "hipo", "pdlp"):
            name = "mip_lp_solver"
            if algorithm == "pdlp":
                raise NotApplicableError("highs:pdlp takes models without integer columns only")
        if algorithm == "hipo" and self.highs.setOptionValue(name, algorithm) != highspy.HighsStatus.kOk:
            raise NotApplicableError("highs:hipo is not installed: pip install 'schedgap[solvers]'")
        # HiGHS's "ipm" is HiPO where that is installed; the name shall mean the same everywhere.
        self.set_option(name, "ipx" if algorithm == "ipm" else algorithm)
        self.set_option("mip_feasibility_tolerance", TIGHT)
        if options.nodes is not None:
            self.set_option("mip_max_nodes", options.nodes)
        for name, value in {**options.own, **logs.settings(options.logs)}.items():
            self.set_option(name, value)

    def _record(self, event: Any, bound: float | None) -> None:
        incumbent = finite(event.data_out.mip_primal_bound)
        if not self._trace or self._trace[-1][1:] != (incumbent, bound):
            self._trace.append(TracePoint(clock.now() - self._began, incumbent, bound))

    def add_rows(self, lower: Array, upper: Array, matrix: sp.csr_array) -> None:
        """Append rows ``lower ≤ matrix x ≤ upper``; the basis stays dual feasible, so dual simplex continues."""
        _must(self.highs.addRows(len(lower), lower, upper, *_entries(sp.csr_array(matrix))), "add rows")
        self.prefer("simplex_strategy", DUAL_SIMPLEX)

    def add_columns(self, cost: Array, lower: Array, upper: Array, matrix: sp.csc_array) -> None:
        """Append columns; the basis stays primal feasible, so primal simplex continues (twice as fast as dual)."""
        _must(self.highs.addCols(len(cost), cost, lower, upper, *_entries(sp.csc_array(matrix))), "add columns")
        self.prefer("simplex_strategy", PRIMAL_SIMPLEX)

    def delete_columns(self, which: NDArray[np.int64]) -> None:
        """Remove columns by index; the basis stays valid if they are nonbasic."""
        _must(self.highs.deleteCols(len(which), which.astype(np.int32)), "delete columns")

    def delete_rows(self, which: NDArray[np.int64], basis: Any) -> None:
        """Remove rows by index, and keep the present `basis` otherwise, which stays one if their slacks are basic."""
        status, gone = basis.row_status, set(which.tolist())  # reading an attribute copies it
        basis.row_status = [one for row, one in enumerate(status) if row not in gone]
        _must(self.highs.deleteRows(len(which), which.astype(np.int32)), "delete rows")
        self.start_at(basis)

    def start_at(self, basis: Any) -> None:
        """Let the next run start from a basis of the present rows and columns."""
        _must(self.highs.setBasis(basis), "take the starting basis (is it of this model's shape?)")

    def run(self, time_limit_s: float | None = None) -> Solution:
        """Solve, starting from where the last run ended, within the given time limit or that of the options."""
        limit_s = self.options.time_limit_s if time_limit_s is None else time_limit_s
        # HiGHS compares an LP's limit with the total time of the object, and a MIP's with the time of this run.
        if limit_s is not None:
            self.set_option("time_limit", limit_s if self.is_mip else self.highs.getRunTime() + limit_s)
        began = self._began = clock.now()
        self._interrupted, self._claimed = False, None
        self._run_interruptibly()
        if self.highs.getModelStatus() == _M.kNotset and not self.is_mip:  # its simplex gives up at some bases
            self.highs.clearSolver()
            self._run_interruptibly()
        if self.highs.getModelStatus() in (_M.kUnboundedOrInfeasible, _M.kInfeasible):
            self._run_without_presolve(limit_s)
        ended = clock.now()
        solution = self._read()
        times = Times(transfer_s=self.transfer_s + clock.now() - ended, solve_s=ended - began)
        self.transfer_s = 0.0
        return replace(solution, times=times)

    def _run_without_presolve(self, limit_s: float | None) -> None:
        """Solve again without presolve, to check HiGHS's claim that there is no solution.

        Its presolve also claims that of programs whose rows can only just be met. The claim stands if the search finds
        no solution before its limit.
        """
        self._claimed = self.highs.getModelStatus()
        if limit_s is not None and self.is_mip:
            self.set_option("time_limit", max(limit_s - (clock.now() - self._began), 1e-3))
        before = self.highs.getOptionValue("presolve")[1]
        self.set_option("presolve", "off")
        self._run_interruptibly()
        self.set_option("presolve", before)

    def confirmed(self, solution: Solution) -> Solution:
        """Ask HiGHS a second time about a MIP if it claims an optimum; return the answer that counts.

        The second solve starts from the incumbent, with another seed and the :data:`LOOSE` tolerance. If it finds a
        better optimum, HiGHS is asked a third time, from there and with the first tolerance. The third answer counts if
        it is better than the first; otherwise the claim is withdrawn, and a gap is left. Each solve has the whole time
        limit, and a claim that could not be tried within it stands. The second solve does not count as solving time.
        """
        if not self.is_mip or solution.status != "optimal" or solution.column_values is None:
            return solution
        second = self._again(solution, self.options.seed ^ 1, LOOSE)
        if not self._better(second, solution):
            return solution
        third = self._again(second, self.options.seed, TIGHT)
        if self._better(third, solution):
            return third
        words = f"{solution.termination}, but {second.objective:.9g} asked again"
        return replace(solution, status="gap left", termination=words, bound=second.bound)

    def _better(self, one: Solution, other: Solution) -> bool:
        """Return whether an incumbent is better than another by more than a solver may err."""
        if one.objective is None or other.objective is None:
            return False
        gain = self.sign * (one.objective - other.objective)
        return gain > AGREES * max(abs(one.objective), abs(other.objective))

    def _again(self, start: Solution, seed: int, tolerance: float) -> Solution:
        """Solve a MIP anew from the integer columns of a solution."""
        assert start.column_values is not None
        self.highs.clearSolver()
        self._trace = []
        self.set_option("random_seed", seed)
        self.set_option("mip_feasibility_tolerance", tolerance)
        self._start_from(np.flatnonzero(self.form.integer), np.rint(start.column_values[self.form.integer]))
        return self.run()

    def _start_from(self, columns: NDArray[np.int64], values: Array) -> None:
        """Give HiGHS the values of some columns of a MIP to start from; it completes them."""
        _must(self.highs.setSolution(len(columns), columns.astype(np.int32), values), "take the MIP start")

    def keep_optima(self, optimum: Solution) -> None:
        """Restrict an LP to its optimal face, and set the form's secondary objective.

        By complementary slackness, the optimal face consists of the feasible points at which every column with a
        nonzero reduced cost and every row with a nonzero price have the same value as in the given optimum.
        """
        values = optimum.column_values
        assert values is not None
        rows = matrix_of(self.highs.getLp()) @ values
        assert self.form.ties is not None
        least = PRICE * float(np.abs(self.form.cost).max(initial=0.0))
        settled = np.flatnonzero(np.abs(optimum.column_duals) > least).astype(np.int32)  # type: ignore[arg-type]
        tight = np.flatnonzero(np.abs(optimum.row_duals) > least).astype(np.int32)  # type: ignore[arg-type]
        _must(self.highs.changeColsBounds(len(settled), settled, values[settled], values[settled]), "fix columns")
        _must(self.highs.changeRowsBounds(len(tight), tight, rows[tight], rows[tight]), "fix rows")
        columns = np.arange(len(self.form.ties), dtype=np.int32)
        unit = float(np.abs(self.form.ties).max(initial=0.0)) or 1.0
        ties = self.sign * self.form.ties / unit
        _must(self.highs.changeColsCost(len(columns), columns, ties), "change the objective")
        self.prefer("simplex_strategy", PRIMAL_SIMPLEX)

    def preferred(self, optimum: Solution) -> Solution:
        """Return the optimum of an LP that is best in the secondary objective, if there is time to find it."""
        limit_s = self.options.time_limit_s
        self.keep_optima(optimum)
        chosen, exact = self.refined(self.run(None if limit_s is None else max(limit_s - optimum.times.solve_s, 1e-3)))
        chosen = self.at(chosen, optimum)
        least = WORSE * abs(optimum.objective or 0.0)
        kept = self.sign * ((optimum.objective or 0.0) - (chosen.objective or 0.0)) <= least
        return chosen if exact and kept else replace(optimum, times=chosen.times)

    def refined(self, solution: Solution) -> tuple[Solution, bool]:
        """Return the optimum of the LP without the errors that a solver's tolerances allow, and whether none is left.

        See Also
        --------
        schedgap.models.engine.solve.refinement : which errors these are.
        """
        values, duals, limit_s = solution.column_values, solution.row_duals, self.options.time_limit_s
        if solution.status != "optimal" or values is None or duals is None or solution.basis is None:
            return solution, False
        began = clock.now()
        left_s = None if limit_s is None else max(limit_s - solution.times.solve_s, 1e-3)
        better, prices, exact = refined(self.highs, values, duals, left_s)
        if better is values:
            return solution, exact
        objective = float(self.form.cost @ better) + self.form.offset
        times = replace(solution.times, solve_s=solution.times.solve_s + clock.now() - began)
        refinement = replace(
            solution,
            times=times,
            objective=objective,
            bound=self._bound(_M.kOptimal, objective, prices),
            column_values=better,
            column_duals=self.form.cost - matrix_of(self.highs.getLp()).T @ prices,
            row_duals=prices,
        )
        return refinement, exact

    def at(self, chosen: Solution, optimum: Solution) -> Solution:
        """Return `optimum` with the variables' values replaced by those of `chosen`, another optimal solution.

        `chosen` was found after :meth:`keep_optima`. If it has no values, those of `optimum` stay.
        """
        times = replace(optimum.times, solve_s=optimum.times.solve_s + chosen.times.solve_s)
        if chosen.status != "optimal" or chosen.column_values is None:
            return replace(optimum, times=times)
        objective = float(self.form.cost @ chosen.column_values) + self.form.offset
        return replace(optimum, times=times, objective=objective, column_values=chosen.column_values)

    def _run_interruptibly(self) -> None:
        """Run HiGHS so that Ctrl-C, which only the main thread receives, becomes an orderly interruption.

        Python handles Ctrl-C only between its own bytecodes, so MIPs and larger LPs run in a second thread. Starting a
        thread takes a third of the time of a small LP. Workers ignore Ctrl-C and need no thread.
        """
        main = threading.current_thread() is threading.main_thread()
        if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            self.highs.run()
            return
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            if self.is_mip or self.highs.getNumNz() > SMALL:
                self._run_beside()
            else:
                self.highs.run()
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, number: int, frame: Any) -> None:
        self._interrupted = True

    def _run_beside(self) -> None:
        self.highs.startSolve()
        while not self.highs.wait(0.1)[0]:
            if self._interrupted:
                self.highs.cancelSolve()

    def _read(self) -> Solution:
        highs, info = self.highs, self.highs.getInfo()
        model_status = _M.kInterrupt if self._interrupted else highs.getModelStatus()
        if model_status == _M.kTimeLimit and self._claimed == _M.kInfeasible:
            model_status = self._claimed
        feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        # At an optimum of an LP, HiGHS may find its own point a little outside: such errors are refined.
        feasible |= model_status == _M.kModelEmpty or (model_status == _M.kOptimal and not self.is_mip)
        feasible &= model_status != _M.kUnbounded
        objective = finite(info.objective_function_value) if feasible else None
        point = highs.getSolution()
        with_duals = bool(point.dual_valid) and not self.is_mip
        row_duals = np.array(point.row_dual) if with_duals else None
        bound = self._bound(model_status, objective, row_duals)
        return Solution(
            status=_status(model_status, feasible),
            termination=highs.modelStatusToString(model_status),
            solution_status=highs.solutionStatusToString(info.primal_solution_status),
            objective=objective,
            bound=bound,
            size=Size(highs.getNumRow(), highs.getNumCol(), highs.getNumNz(), int(self.form.integer.sum())),
            nodes=int(info.mip_node_count) if self.is_mip else None,
            iterations=max(0, int(info.simplex_iteration_count)) + max(0, int(info.ipm_iteration_count)),
            solver=self.options.solver,
            trace=(*self._trace, TracePoint(clock.now() - self._began, objective, bound)) if self.is_mip else (),
            peak_mb=peak_mb(),
            basis=highs.getBasis() if info.basis_validity == highspy.kBasisValidityValid else None,
            scale=float(np.abs(self.form.cost).max(initial=0.0)),
            model=self.form.model,
            columns=self.form.columns,
            rows=self.form.rows,
            column_values=np.array(point.col_value) if objective is not None else None,
            column_duals=np.array(point.col_dual) if with_duals else None,
            row_duals=row_duals,
        )

    def _bound(self, status: Any, objective: float | None, row_duals: Array | None) -> float | None:
        if self.is_mip:
            return finite(self.highs.getInfo().mip_dual_bound)
        same_shape = row_duals is not None and len(row_duals) == len(self.form.row_lower)
        optimal = status in (_M.kOptimal, _M.kModelEmpty)
        return proved(self.form, objective if optimal else None, row_duals if same_shape else None)


def proved(form: StandardForm, optimum: float | None, row_duals: Array | None) -> float | None:
    """Return the bound of an LP: the optimum that a solver claims, if there is one and its prices do not contradict it.

    Otherwise only the bound that the prices prove is certain; ``None`` if there is none.
    """
    bound = None if row_duals is None else dual_bound(form, row_duals)
    if optimum is None or bound is None:
        return bound if optimum is None else optimum
    return optimum if abs(bound - optimum) <= AGREES * max(abs(bound), abs(optimum)) else bound


def dual_bound(form: StandardForm, row_duals: Array) -> float | None:
    """Return the Lagrangian bound of an LP at any row prices, or ``None`` if it is infinite.

    For ``min c·x`` the bound is ``Σ_i min(y_i·row) + Σ_j min(d_j·x_j)`` over the rows' and the columns' intervals, with
    ``d = c − Aᵀy``. It is valid for any `row_duals`, so an LP stopped early still certifies something.
    """
    sign = -1.0 if form.maximise else 1.0
    prices = sign * row_duals
    # A price whose sign, due to rounding, points to the infinite side of its row proves nothing; use 0 instead.
    prices = np.where((prices > 0) & np.isinf(form.row_lower), 0.0, prices)
    prices = np.where((prices < 0) & np.isinf(form.row_upper), 0.0, prices)
    reduced = sign * form.cost - form.matrix.T @ prices
    value = _least(prices, form.row_lower, form.row_upper) + _least(reduced, form.lower, form.upper)
    return sign * value + form.offset if np.isfinite(value) else None


def _least(coefficients: Array, lower: Array, upper: Array) -> float:
    """Return the smallest value of ``coefficients · z`` over the box."""
    used = coefficients != 0
    at = np.where(coefficients > 0, lower, upper)
    return float(coefficients[used] @ at[used])


def peak_mb() -> float:
    """Return the peak resident memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _status(model_status: Any, feasible: bool) -> Status:
    if model_status == _M.kTimeLimit:
        return "time limit with incumbent" if feasible else "time limit without incumbent"
    if model_status == _M.kSolutionLimit:
        return "feasible" if feasible else "time limit without incumbent"
    return _STATUS.get(model_status, "error")


def _highs_lp(form: StandardForm) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = form.matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize if form.maximise else highspy.ObjSense.kMinimize
    lp.offset_ = form.offset
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = form.cost, form.lower, form.upper
    lp.row_lower_, lp.row_upper_ = form.row_lower, form.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = form.matrix.shape
    lp.a_matrix_.start_ = form.matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = form.matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = form.matrix.data
    if form.integer.any():
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        lp.integrality_ = [kinds[i] for i in form.integer.astype(int)]
    return lp


def interior_point(form: StandardForm) -> Array:
    """Return an interior point of the optimal face of an LP (no crossover), to test theorems about vertices."""
    highs = highspy.Highs()
    for name, value in (("output_flag", False), ("solver", "ipx"), ("run_crossover", "off"), ("presolve", "off")):
        highs.setOptionValue(name, value)
    highs.passModel(_highs_lp(form))
    highs.run()
    return np.array(highs.getSolution().col_value)


def _entries(matrix: Any) -> tuple[int, Any, Any, Array]:
    """Return the nonzeros of a compressed matrix in HiGHS's form: their number, starts, indices and values."""
    return matrix.nnz, matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32), matrix.data


def _must(status: Any, what: str) -> None:
    """Raise an error if HiGHS returned one; warnings (such as a dropped tiny coefficient) pass."""
    if status == highspy.HighsStatus.kError:
        raise ValueError(f"HiGHS could not {what}")


def finite(number: float) -> float | None:
    """Return a number from HiGHS, or ``None`` if it is infinite or NaN."""
    return float(number) if abs(number) < highspy.kHighsInf and np.isfinite(number) else None
