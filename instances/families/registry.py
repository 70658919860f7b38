"""The registry of hard families, each of which is a generator family, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedgap.instances.generate.core import FAMILIES, Family, GeneratorSpec
from schedgap.instances.parameters import extended
from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance

PARTS = ("cluster", "horizon", "jobs", "tenants", "worker_types", "ps_types", "due_slot")
"""Fields of an instance that a family determines."""


class HardSpec(GeneratorSpec):
    """Parameters of a hard family; nothing is random."""


@dataclass(frozen=True)
class HardFamily:
    """A family of instances ``family/<id>`` on which methods get worse as a parameter grows.

    Attributes
    ----------
    methods
        The methods that get worse, each in its own problem.
    parameter, values
        The parameter that grows, and values for a curve; the first two are so small that exact models solve them.
    build
        ``build(spec)`` returns the instance; its docstring explains it.
    answer
        ``answer(instance, problem)`` returns a decision of somebody who knows the future.
    growth
        What is known of the ratio in words: its limit, or how it grows.
    limit
        The ratio that is never exceeded and approached as the parameter grows; ``None`` if it grows for ever.
    exponent
        The exponent of the growth, 0 if the ratio has a limit or grows as a logarithm.
    settings
        By method, other parameters that make its ratio largest, if they are not the usual ones: ``slots=5&rise=0.25``.
    """

    id: str
    methods: tuple[str, ...]
    parameter: str
    values: tuple[int, ...]
    build: Callable[[Any], Instance]
    answer: Callable[[Instance, str], Any]
    growth: str
    limit: float | None = None
    exponent: float = 0.0
    settings: Mapping[str, str] = field(default_factory=dict)

    def ref(self, value: int, settings: str = "") -> str:
        """Return the reference of the instance at a value of the parameter, and with settings of others."""
        return extended(f"family/{self.id}", f"{self.parameter}={value}", settings)

    def worst(self, method: str, value: int) -> str:
        """Return the reference of the instance at a value of the parameter that is worst for a method."""
        return self.ref(value, self.settings.get(method, ""))


HARD: Registry[HardFamily] = Registry("family of worst cases")


def hard(id: str, spec: type[HardSpec], **fields: Any) -> Callable[[Callable[[Any], Instance]], Any]:
    """Register the decorated ``build(spec)`` as a family and as a generator; `fields` are those of `HardFamily`."""

    def register(build: Callable[[Any], Instance]) -> Callable[[Any], Instance]:
        HARD.register(HardFamily(id, build=build, **fields))
        FAMILIES.register(Family(id, spec, lambda given, streams: _parts(build(given))))
        return build

    return register


def _parts(made: Instance) -> Mapping[str, Any]:
    return {name: getattr(made, name) for name in PARTS}
