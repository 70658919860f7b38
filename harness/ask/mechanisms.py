"""What OEF's mechanisms, models and heuristics alike, give to tenants, in exact arithmetic.

A mechanism that is one linear program may take any of its optima; here it is the whole optimal face of the registered
program, so that what is shown holds whichever of them is taken. Speedups that are not fractions of small denominators
are the exception: then the program is solved in double precision. Other mechanisms are functions: their one allocation,
computed in double precision, stands for the allocation of small denominators next to it, or, if there is none that uses
the same devices, for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from schedgap import models
from schedgap.heuristics.registry import HEURISTICS, Context, HeuristicSpec
from schedgap.instances.arrays import Array
from schedgap.instances.views.oef import OefView
from schedgap.models.engine.solve import build, compile_model
from schedgap.models.engine.solve.exact import Exact, face, fraction, fractions
from schedgap.models.oef.printed import least_over_optima
from schedgap.models.registry import MODELS, ModelSpec

READINGS = ((2_000, 1e-8), (100_000, 1e-12))
"""Largest denominators of an allocation that numbers in double precision stand for, and how near they must be to it.

Numbers as near as this to such a fraction by chance are rare: one in a hundred or less, and all must be.
"""

SLACK = Fraction(1, 10**6)
"""By how much, relative to what is compared, an allocation in double precision must fail a property."""

THEN_TOTAL = ("oef.leximin", "oef.gavel", "oef.gavel?row_cap=true")
"""Models that take any optimum of the program that they state with the largest total efficiency.

Gavel's procedure asks for it; all optima of leximin have it, as all gains are equal in them.
"""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The allocations that a mechanism may choose on a view.

    Attributes
    ----------
    least
        ``least(worth)`` returns the least Σ worth·x over all of them; `worth` is ``(v, k)``.
    chosen
        Returns one of them, ``(v, k)``.
    slack
        0 if they are exact; otherwise the relative amount by which a comparison must differ.
    """

    least: Callable[[Exact], Fraction]
    chosen: Callable[[], Exact]
    slack: Fraction = Fraction(0)

    def most(self, worth: Exact) -> Fraction:
        """Return the largest Σ worth·x over all of them."""
        return -self.least(-worth)

    def span(self, worth: Exact) -> tuple[Fraction, Fraction]:
        """Return the least and the largest Σ worth·x over all of them."""
        return self.least(worth), self.most(worth)


Mechanism = Callable[[OefView], Outcomes]
"""Maps a view, with its reported speedups, to the allocations that may be chosen."""


def of_program(spec: ModelSpec, view: OefView) -> Outcomes:
    """Return all optima of a model that is a linear program in the shares ``x``, or two one after another.

    Raises
    ------
    ValueError
        If a number is not a fraction of small denominator, and the model is two programs one after another.
    """
    form = compile_model(build(spec.build, view))
    try:
        optima = face(form)
    except ValueError:
        if spec.id in THEN_TOTAL:
            raise
        return in_double_precision(spec, view)
    at = np.full(view.speedups.shape, -1)
    for column, variable in enumerate(form.columns):
        if variable.parent_component().local_name == "x":
            at[variable.index()] = column

    def over(worth: Exact) -> Exact:
        cost = np.full(len(form.columns), Fraction(0), object)
        cost[at] = worth
        return cost

    if spec.id in THEN_TOTAL:
        optima = optima.then(over(fractions(view.speedups)))
    return Outcomes(lambda worth: optima.least(over(worth)), lambda: np.asarray(optima.point[at]))


def in_double_precision(spec: ModelSpec, view: OefView) -> Outcomes:
    """Return all optima of a model that is one linear program, which a solver finds up to its tolerance."""

    def least(worth: Exact) -> Fraction:
        return Fraction(least_over_optima(spec.id, view, np.asarray(worth, float)))

    return Outcomes(least, lambda: in_fractions(models.oracle(spec.id, view).devices), SLACK)


def of_allocation(devices: Array, capacity: Array) -> Outcomes:
    """Return the one allocation ``(v, k)`` that numbers in double precision stand for."""
    read = (_read(devices, capacity, *reading) for reading in READINGS)
    exact = next((found for found in read if found is not None), None)
    slack = SLACK if exact is None else Fraction(0)
    given = np.frompyfunc(lambda number: Fraction(float(number)), 1, 1)(devices) if exact is None else exact
    return Outcomes(lambda worth: Fraction((worth * given).sum()), lambda: given, slack)


def in_fractions(numbers: Array) -> Exact:
    """Return the fractions of small denominator that numbers stand for; one that stands for none is itself."""

    def exact(number: float) -> Fraction:
        try:
            return fraction(number)
        except ValueError:
            return Fraction(number)

    return np.asarray(np.frompyfunc(lambda number: exact(float(number)), 1, 1)(numbers), object)


def _read(devices: Array, capacity: Array, denominator: int, near: float) -> Exact | None:
    """Return the fractions next to an allocation, if they are near, fit, and use up the types that it uses up."""
    exact = np.frompyfunc(lambda number: Fraction(float(number)).limit_denominator(denominator), 1, 1)(devices)
    if np.abs(np.asarray(exact, float) - devices).max() > near:
        return None
    for used, given, most in zip(exact.sum(axis=0), devices.sum(axis=0), fractions(capacity), strict=True):
        if used > most or (used != most and abs(given - float(most)) <= 1e-6):
            return None
    return np.asarray(exact, object)


def run(spec: ModelSpec | HeuristicSpec, view: OefView) -> Outcomes:
    """Return what a registered method may choose on a view (:data:`Mechanism`)."""
    if isinstance(spec, ModelSpec):
        if is_program(spec):
            return of_program(spec, view)
        return of_allocation(models.oracle(spec.id, view).devices, view.capacity)
    found = spec.run(view, Context(np.random.default_rng(0), models.oracle))
    return of_allocation(np.asarray(found.devices), view.capacity)


def is_program(model: ModelSpec) -> bool:
    """Return whether a model takes any optimum of the program that it states: it solves this one, and leaves ties open.

    Ties are open if nobody says how to break them: where that is a parameter, if it is not set; and if a model
    asks for no more than a large total (:data:`THEN_TOTAL`).
    """
    open_ = any(parameter.name == "ties" for parameter in model.parameters) and "ties" not in model.settings
    return model.procedure is None or open_ or model.id in THEN_TOTAL


def mechanisms() -> dict[str, ModelSpec | HeuristicSpec]:
    """Return the registered mechanisms by id: OEF's methods that divide devices, without placers and bounds.

    Models of the same program are one mechanism, the first of them.
    """
    found: dict[str, ModelSpec | HeuristicSpec] = {}
    built = set[tuple[object, str]]()
    for model in MODELS:
        same = (model.build, model.id.partition("?")[2])
        if model.paper == "oef" and model.kind in ("exact", "baseline") and same not in built:
            built.add(same)
            found[model.id] = model
    return found | {spec.id: spec for spec in HEURISTICS if spec.paper == "oef" and spec.kind == "baseline"}


def mechanism(id: str) -> Mechanism:
    """Return a registered mechanism by its id."""
    return partial(run, MODELS.get(id) if id in MODELS else HEURISTICS.get(id))
