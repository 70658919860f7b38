"""Tasks of reproductions, which are those of comparisons and of simulations; workers import both."""

from schedgap.harness.studies.compare.task import MethodResult, MethodTask, PartResult
from schedgap.harness.studies.simulate.bounds import BoundTask
from schedgap.harness.studies.simulate.task import SimulationResult, SimulationTask

__all__ = ["BoundTask", "MethodResult", "MethodTask", "PartResult", "SimulationResult", "SimulationTask"]
