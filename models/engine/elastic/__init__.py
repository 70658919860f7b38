"""Models of elastic jobs, for Zhou and the admission example: branch and price, and enumeration of tiny instances."""

from schedgap.models.engine.elastic.generation import ElasticPricing, too_large
from schedgap.models.engine.elastic.jobs import CapacityGrid, ElasticJobs, runs
from schedgap.models.engine.elastic.placements import TooManyError, schedules, starts
from schedgap.models.engine.elastic.solving import solve

__all__ = [
    "CapacityGrid", "ElasticJobs", "ElasticPricing", "TooManyError", "runs", "schedules", "solve", "starts",
    "too_large",
]  # fmt: skip
