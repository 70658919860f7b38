"""Tasks of reproductions, which are those of comparisons and of simulations; workers import both."""

from schedgap.harness.compare.task import MethodResult, MethodTask
from schedgap.harness.simulate.bounds import BoundTask
from schedgap.harness.simulate.task import SimulationResult, SimulationTask

__all__ = ["BoundTask", "MethodResult", "MethodTask", "SimulationResult", "SimulationTask"]
