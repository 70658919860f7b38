"""Instances for tests of Synergy: those of :mod:`instances.small.synergy`, and drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from instances.schema import Instance
from instances.small.synergy import (
    SYNERGY,
    V100,
    JobLike,
    Server,
    instance,
    job,
    matrix,
    mix,
    pipeline,
    pipelines,
    servers,
    small_one,
)

__all__ = [
    "SYNERGY",
    "V100",
    "JobLike",
    "Server",
    "instance",
    "job",
    "matrix",
    "mix",
    "pipeline",
    "pipelines",
    "servers",
    "small",
]


@st.composite
def small(
    draw: st.DrawFn, *, jobs: int = 5, chips: Sequence[str] = ("V100",), arrivals: Sequence[float] = (0.0,)
) -> Instance:
    """Draw a small instance, see :func:`small_one`."""
    return small_one(lambda among: draw(st.sampled_from(among)), jobs=jobs, chips=chips, arrivals=arrivals)
