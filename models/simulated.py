"""Which models bound what simulations measure: they say so where they are defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from schedgap.models.registry import model as registered

Build = TypeVar("Build", bound=Callable[..., Any])


@dataclass(frozen=True)
class SimulationBound:
    """A model that bounds a time of simulations, the row's field `metric`, from below.

    Its slots are as long as the rounds, so that no simulated job could start earlier. It bounds policies that give out
    CPUs and memory where it is `sensitive`, policies that run jobs as copies where it `forks` them, else the others.
    `from_arrival` says that the time counts from the first arrival, where the model counts it from 0; `limit_s` is how
    many seconds it may take.
    """

    model: str
    metric: str
    sensitive: bool = False
    forks: bool = False
    from_arrival: bool = False
    limit_s: float = 20.0


SIMULATED: dict[str, SimulationBound] = {}
"""By model. Of several that bound the same metric of the same kind of policies, the largest bound counts."""


def bounds_simulations(model: str, metric: str, settings: dict[str, Any], **fields: Any) -> Callable[[Build], Build]:
    """Register the decorated builder as a model of that id, with these fields of its spec.

    The settings are those of :class:`SimulationBound`.
    """
    SIMULATED[model] = SimulationBound(model, metric, **settings)
    return registered(model, **fields)
