"""The list of models whose bounds apply to simulations; each model enters itself where it is defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from schedgap.instances.arrays import Array
from schedgap.models.registry import model as registered

Build = TypeVar("Build", bound=Callable[..., Any])


@dataclass(frozen=True)
class SimulationBound:
    """A model that bounds a simulated metric from below; `metric` is the name of the metric's field in a result row.

    The model's slots are as long as the rounds, so no simulated job could start earlier. A `sensitive` model bounds
    policies that allocate CPUs and memory, one with `forks` bounds policies that run jobs as copies, and any other
    model bounds the remaining policies. With `from_arrival`, the metric counts from the first arrival, whereas the
    model counts from 0.
    """

    model: str
    metric: str
    sensitive: bool = False
    forks: bool = False
    from_arrival: bool = False

    def counted(self, bound_s: float, arrival_s: Array) -> float:
        """Return the bound on the metric, in seconds, that follows from a bound on the model's objective."""
        return max(bound_s - float(arrival_s.min()), 0.0) if self.from_arrival else bound_s


SIMULATED: dict[str, SimulationBound] = {}
"""The bounds by model. If several models bound a metric of the same kind of policies, the largest bound counts."""


def bounds_simulations(model: str, metric: str, settings: dict[str, Any], **fields: Any) -> Callable[[Build], Build]:
    """Return a decorator that registers a builder as a model that bounds a simulated metric.

    `settings` are fields of :class:`SimulationBound`; the other keyword arguments are fields of the model's spec.
    """
    SIMULATED[model] = SimulationBound(model, metric, **settings)
    return registered(model, **fields)
