"""Models of elastic jobs, for Zhou and the admission example: column generation, all placements of tiny instances."""

from schedgap.models.elastic.generation import (
    CELLS,
    ElasticJobs,
    Grid,
    Insertion,
    Pricing,
    bound,
    coarse,
    runs,
    solve,
)
from schedgap.models.elastic.placements import TooManyError, schedules, starts

__all__ = [
    "CELLS",
    "ElasticJobs",
    "Grid",
    "Insertion",
    "Pricing",
    "TooManyError",
    "bound",
    "coarse",
    "runs",
    "schedules",
    "solve",
    "starts",
]
