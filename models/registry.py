"""What a model declares about itself (:class:`ModelSpec`), and the registry of all models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from schedgap.instances import clock
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.parameters import Parameter, Value
from schedgap.instances.registry import PAPERS, MethodSpec, Registry
from schedgap.instances.registry import no_reason as no_reason  # noqa: PLC0414 -- specs of models import it from here
from schedgap.instances.schema import Instance
from schedgap.models.engine.solve import SOLVERS, Solution, SolveOptions, Times, build, solve
from schedgap.models.engine.solve.options import HIGHS, SolverName

Kind = Literal["exact", "matheuristic", "relaxation", "bound", "baseline"]

SEEDED = Parameter(
    "seeded", "start from the decisions of all heuristics of the problem; false to measure the benefit of doing so"
)

SOLVER = SolverName("solver", "solver to use, for a model that is solved as one linear program", choices=SOLVERS)
"""The parameter that every model has: the solver to use."""


APART = 0.75
"""Fraction of a time limit for the stretches of a long log; what is put together of them is improved in the rest."""

Start = Mapping[str, Mapping[Any, float]]
"""Values of integer variables other than 0, by the name of the component and by index."""


def no_decision(view: object, model: object, solution: Solution) -> None:
    """Return ``None``: the decoder of models that only give a bound, or whose procedure returns the decision."""


@dataclass(frozen=True)
class Outcome:
    """A solved model: the solver's answer, and the paper's decision decoded from the incumbent, if there is one.

    `prices` are the resource prices that prove the bound, in the shape that the paper's figures expect; `tree` is the
    branch-and-bound tree (:class:`schedgap.models.engine.columns.Branch`). `evidence` is whatever else proves the
    bound: prices over intervals (:class:`schedgap.models.engine.fluid.intervals.Tightest`), pricing by period
    (:class:`schedgap.models.engine.gangs.periods.ByPeriod`), or a single machine
    (:class:`schedgap.models.engine.fluid.single_machine.MachineBound`).
    """

    solution: Solution
    decision: Any
    prices: NDArray[np.float64] | None = None
    tree: Any = None
    evidence: Any = None


@dataclass(frozen=True)
class ModelSpec(MethodSpec):
    """An optimization model of a paper.

    Its parameters are keywords of `build` or `procedure`, except `solver` (:data:`SOLVER`), which all models have.

    Parameters
    ----------
    kind
        ``"exact"``: its optimum is the problem's optimum, and it runs until it is found or a limit is reached;
        ``"matheuristic"``: a heuristic built around a mathematical program, which certifies a bound and finds a
        decision near it, but cannot always branch to the end, so a gap may remain however long it runs;
        ``"relaxation"`` or ``"bound"``: it bounds the problem's optimum;
        ``"baseline"``: it optimises another objective, so its bound says nothing about the problem.
    build
        ``build(view)`` returns a Pyomo model.
    decode
        ``decode(view, model, solution)`` returns the paper's decision; the default, :func:`no_decision`, is for models
        that answer with a bound only or whose procedure returns the decision.
    method
        LP algorithm that the model needs (``"simplex"`` where the vertex matters).
    procedure
        ``procedure(view, options)`` replaces ``solve(build(view))`` (lazy rows, column generation) and returns an
        :class:`Outcome`.
    start
        ``start(view, model, decision)`` returns the values of a known decision, from which the solver then starts, or
        ``None`` if the model does not list this decision; for a model without a procedure.
    example
        Small instance on which ``harness explain`` counts rows and columns.
    implied
        For models that generate columns: ``implied(view)`` returns the base-10 logarithm of the number of columns of
        the full model, and whether that is only a lower bound.
    stretches, part
        For models that are solved in stretches of time: ``stretches(jobs)`` returns the number of stretches of an
        instance with so many jobs, and ``part(view, options, at)`` solves one of them, and returns arrays by name. The
        procedure gets them in ``options.parts``.
    """

    kind: Kind
    build: Callable[[Any], Any]
    decode: Callable[[Any, Any, Solution], Any] = no_decision
    method: Literal["choose", "simplex", "ipm"] = "choose"
    procedure: Callable[[Any, SolveOptions], Outcome] | None = None
    start: Callable[[Any, Any, Any], Start | None] | None = None
    example: str = "gen/20jobs"
    implied: Callable[[Any], tuple[float, bool]] | None = None
    stretches: Callable[..., int] | None = None
    part: Callable[..., Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        """Check the kind, and add the `solver` parameter, which all models have."""
        if self.kind not in get_args(Kind):
            raise UsageError(f"{self.id}: kind = {self.kind!r}: must be one of {', '.join(get_args(Kind))}")
        if SOLVER not in self.parameters:
            object.__setattr__(self, "parameters", (*self.parameters, SOLVER))

    def default(self, parameter: Parameter) -> Value:
        """Return the default value of one of the model's parameters."""
        return SolveOptions.solver if parameter is SOLVER else super().default(parameter)

    @property
    def sense(self) -> str:
        """Whether larger (``max``) or smaller (``min``) is better."""
        return PAPERS.get(self.paper).problem(self.problem).sense

    def run(self, view: Any, options: SolveOptions | None = None) -> Outcome:
        """Build the model on a view, solve it and decode the decision; the spec's LP method is the default.

        It raises `NotApplicableError` if the solver is not installed, does not accept this model, or is never called,
        as in procedures that add columns to HiGHS.
        """
        options = options or SolveOptions()
        options = replace(options, solver=str(self.settings.get("solver", options.solver)))
        if options.method == "choose":
            options = replace(options, method=self.method)
        solved = self.procedure or partial(solve_built, self.build, self.decode, start=self._known(view, options))
        outcome = solved(view, options)
        if outcome.solution.solver != options.solver:
            raise NotApplicableError(f"it is not solved as one program, and never calls {options.solver}")
        return replace(outcome, solution=outcome.solution.as_shown())

    def _known(self, view: Any, options: SolveOptions) -> Callable[[Any], Start | None] | None:
        """Return the function that gives a built model the values of the best known decision, if there is one."""
        if (start := self.start) is None or not options.seeds or options.program not in HIGHS:
            return None
        best = (max if self.sense == "max" else min)(options.seeds, key=lambda seed: seed.objective)
        return lambda model: start(view, model, best.decision)

    def solve(self, instance: Instance, **options: Any) -> Solution:
        """Solve on an instance (for notebooks; the harness also verifies the decision).

        The keyword arguments are fields of :class:`~schedgap.models.engine.solve.SolveOptions`. It raises
        `NotApplicableError` if the model cannot run on the instance.
        """
        view = self.view(instance)
        if reason := self.skip(view):
            raise NotApplicableError(f"{self.id} on {instance.name}: {reason}")
        return self.run(view, SolveOptions(**options)).solution


def solve_built(
    builder: Callable[[Any], Any],
    decode: Callable[[Any, Any, Solution], Any],
    view: Any,
    options: SolveOptions,
    start: Callable[[Any], Start | None] | None = None,
) -> Outcome:
    """Build a model from `view`, solve it, decode its incumbent, and record the building time.

    If ``start(model)`` returns values, the solver starts from them.
    """
    began = clock.now()
    model = build(builder, view)
    if values := start and start(model):
        options = replace(options, mip_start=_all_values(model, values))
    build_s = clock.now() - began
    solution = solve(model, options)
    solution = replace(solution, times=replace(solution.times, build_s=build_s))
    return Outcome(solution, decode(view, model, solution) if solution.has_incumbent else None)


def _all_values(model: Any, values: Start) -> dict[str, float]:
    """Return the values of all variables of the named components, by variable name; variables without a value get 0."""
    parts = [(model.component(name), given) for name, given in values.items()]
    return {variable.name: float(given.get(at, 0)) for part, given in parts for at, variable in part.items()}


def total(*times: Times) -> Times:
    """Add the times of several solves of one method."""
    return Times(*(sum(getattr(t, name) for t in times) for name in ("build_s", "transfer_s", "solve_s")))


def oracle(model: str, view: Any, options: SolveOptions | None = None) -> Any:
    """Return a model's optimal decision, for heuristics that round it; raise `NotApplicableError` if it has none."""
    spec = MODELS.get(model)
    outcome = spec.run(view, options)
    if outcome.solution.status != "optimal":
        raise NotApplicableError(f"{model} found no optimum to round: {outcome.solution.status}")
    return outcome.decision


def shadow_prices(model: str, view: Any, options: SolveOptions | None = None) -> NDArray[np.float64]:
    """Return the prices that prove a model's bound before it branches, in the shape of :attr:`Outcome.prices`.

    A search for better decisions would cost its whole limit, and change no price. Raise `NotApplicableError` if the
    model finds none.
    """
    prices = MODELS.get(model).run(view, replace(options or SolveOptions(), nodes=0)).prices
    if prices is None:
        raise NotApplicableError(f"{model} found no prices")
    return prices


MODELS: Registry[ModelSpec] = Registry("model")

model = MODELS.decorator(ModelSpec, "build", kind="exact")
"""Register the decorated ``build(view)`` under an id: ``@model("oef.mine", decode=decode)``."""
