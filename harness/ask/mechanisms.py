"""What OEF's mechanisms, models and heuristics alike, give to tenants, in exact arithmetic.

A mechanism that is one linear program may take any of its optima; here it is the whole optimal face of the registered
program, so that what is shown holds whichever of them is taken. Other mechanisms are functions: their one allocation,
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
from schedgap.models.engine.solve.exact import Exact, face, fractions
from schedgap.models.registry import MODELS, ModelSpec

DENOMINATOR = 2_000
"""Largest denominator of an allocation that a number in double precision may stand for."""

NEAR = 1e-8
"""Largest difference between the two, in devices."""

SLACK = Fraction(1, 10**6)
"""By how much, relative to what is compared, an allocation in double precision must fail a property."""

Span = Callable[[Exact], tuple[Fraction, Fraction]]
"""Returns the least and the largest Σ worth·x over all allocations that may be chosen; `worth` is ``(v, k)``."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The allocations that a mechanism may choose on a view.

    Attributes
    ----------
    span
        What is least and most over all of them.
    devices
        ``(v, k)`` one of them.
    slack
        0 if they are exact; otherwise the relative amount by which a comparison must differ.
    """

    span: Span
    devices: Exact
    slack: Fraction = Fraction(0)


Mechanism = Callable[[OefView], Outcomes]
"""Maps a view, with its reported speedups, to the allocations that may be chosen."""


def of_program(spec: ModelSpec, view: OefView) -> Outcomes:
    """Return all optima of a model that is one linear program in the shares ``x``."""
    form = compile_model(build(spec.build, view))
    optima = face(form)
    at = np.full(view.speedups.shape, -1)
    for column, variable in enumerate(form.columns):
        if variable.parent_component().local_name == "x":
            at[variable.index()] = column

    def span(worth: Exact) -> tuple[Fraction, Fraction]:
        cost = np.full(len(form.columns), Fraction(0), object)
        cost[at] = worth
        return optima.span(cost)

    return Outcomes(span, optima.point[at])


def of_allocation(devices: Array, capacity: Array) -> Outcomes:
    """Return the one allocation ``(v, k)`` that numbers in double precision stand for."""
    exact = np.empty(devices.shape, object)
    for cell, number in np.ndenumerate(devices):
        exact[cell] = Fraction(float(number)).limit_denominator(DENOMINATOR)
    used, room = devices.sum(axis=0), exact.sum(axis=0)
    right = np.abs(np.asarray(exact, float) - devices).max() <= NEAR
    whole = all(
        u != r or room[j] == Fraction(r) for j, (u, r) in enumerate(zip(np.round(used, 6), capacity, strict=True))
    )
    fits = right and whole and all(r <= c for r, c in zip(room, fractions(capacity), strict=True))
    if not fits:
        exact = np.frompyfunc(lambda number: Fraction(float(number)), 1, 1)(devices)

    def span(worth: Exact) -> tuple[Fraction, Fraction]:
        value = Fraction((worth * exact).sum())
        return value, value

    return Outcomes(span, exact, Fraction(0) if fits else SLACK)


def run(spec: ModelSpec | HeuristicSpec, view: OefView) -> Outcomes:
    """Return what a registered method may choose on a view (:data:`Mechanism`)."""
    if isinstance(spec, ModelSpec):
        if spec.procedure is None:
            return of_program(spec, view)
        return of_allocation(models.oracle(spec.id, view).devices, view.capacity)
    found = spec.run(view, Context(np.random.default_rng(0), models.oracle))
    return of_allocation(np.asarray(found.devices), view.capacity)


def mechanisms() -> dict[str, ModelSpec | HeuristicSpec]:
    """Return the registered mechanisms by id: OEF's methods that divide devices, without placers and bounds.

    Models of the same program are one mechanism, which has the id of the first of them, and is the first that solves
    the program as it is stated, if there is one.
    """
    found: dict[str, ModelSpec | HeuristicSpec] = {}
    same: dict[tuple[object, str], str] = {}
    for model in MODELS:
        if model.paper == "oef" and model.kind in ("exact", "baseline"):
            id = same.setdefault((model.build, model.id.partition("?")[2]), model.id)
            known = found.setdefault(id, model)
            if isinstance(known, ModelSpec) and known.procedure is not None and model.procedure is None:
                found[id] = model
    return found | {spec.id: spec for spec in HEURISTICS if spec.paper == "oef" and spec.kind == "baseline"}


def mechanism(id: str) -> Mechanism:
    """Return a registered mechanism by its id."""
    known = mechanisms()
    return partial(run, known[id] if id in known else MODELS.get(id) if id in MODELS else HEURISTICS.get(id))
