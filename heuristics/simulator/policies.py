"""The registry of policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from schedgap.heuristics.simulator.state import Policy
from schedgap.heuristics.simulator.trace import Rules, Trace
from schedgap.instances.parameters import Parametrised
from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance


@dataclass(frozen=True)
class PolicySpec(Parametrised):
    """A simulated scheduler. Its parameters are keyword arguments of `build`.

    Parameters
    ----------
    build
        ``build(instance, oracle)`` returns a fresh policy for one simulation.
    forks
        Whether its jobs may run as several copies at once (see :mod:`schedgap.heuristics.simulator`).
    sensitive
        Whether it gives out CPUs and memory, on which rates then depend.
    profiled
        Whether it must know a job's sensitivity before it can schedule it.
    reference
        Id of the policy that its times are divided by; empty for its paper's own algorithm, ``<paper>.online``.
    measures
        ``measures(instance, policy, trace)`` returns the paper's own measures, by field of the result row, in addition
        to the metrics of all policies.
    """

    build: Callable[..., Policy]
    forks: bool = False
    sensitive: bool = False
    profiled: bool = False
    reference: str = ""
    measures: Callable[[Instance, Policy, Trace], Mapping[str, float]] = lambda instance, policy, trace: {}

    def rules(self, general: Rules) -> Rules:
        """Return the rules of a simulation, adapted to this policy."""
        profiling_s = general.profiling_s if self.profiled else 0.0
        return replace(general, forks=self.forks, sensitive=self.sensitive, profiling_s=profiling_s)


POLICIES: Registry[PolicySpec] = Registry("policy")

policy = POLICIES.decorator(PolicySpec, "build")
"""Register the decorated ``build(instance, oracle)`` under an id: ``@policy("hadar.mine")``."""
