"""Instances for tests of Zhou et al.: those of :mod:`schedgap.instances.small.zhou`, and drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from schedgap.instances.schema import Instance
from schedgap.instances.small import Choose, picker
from schedgap.instances.small.zhou import (
    ARRIVALS,
    MB_PER_S,
    MS_PER_S,
    ONE_GPU,
    Part,
    instance,
    job,
    ps,
    servers,
    small_one,
    tiny_one,
    worker,
)

__all__ = [
    "ARRIVALS",
    "MB_PER_S",
    "MS_PER_S",
    "ONE_GPU",
    "Choose",
    "Part",
    "instance",
    "job",
    "picker",
    "ps",
    "servers",
    "small",
    "small_one",
    "tiny",
    "tiny_one",
    "worker",
]


@st.composite
def tiny(draw: st.DrawFn, arrivals: Sequence[float] = ARRIVALS) -> Instance:
    """Draw a tiny instance, see :func:`tiny_one`."""
    return tiny_one(lambda among: draw(st.sampled_from(among)), arrivals=arrivals)


@st.composite
def small(draw: st.DrawFn, jobs: int = 12) -> Instance:
    """Draw a small instance, see :func:`small_one`."""
    return small_one(lambda among: draw(st.sampled_from(among)), jobs=jobs)
