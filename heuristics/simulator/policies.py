"""The registry of policies, which are the schedulers that can be simulated."""

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
    """Everything that is registered about a policy: how to build it, and which rules its simulations need.

    The policy's parameters are keyword arguments of `build`.

    Parameters
    ----------
    build
        ``build(instance, oracle)`` returns a fresh policy for one simulation.
    forks
        Whether jobs may run as several copies at once (see :mod:`schedgap.heuristics.simulator`).
    sensitive
        Whether the policy gives out CPUs and memory, on which rates then depend.
    profiled
        Whether a job must be profiled before the policy can schedule it.
    reference
        Id of the policy with which tables compare this policy's times; empty for the paper's own, ``<paper>.online``.
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
"""Decorator that registers ``build(instance, oracle)`` as a policy under an id: ``@policy("hadar.mine")``."""
