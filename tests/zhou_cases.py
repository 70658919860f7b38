"""Small instances for tests of Zhou et al., built from parts or drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

from drawing import Shrinking
from hypothesis import strategies as st

from schedgap.instances.random_instances import zhou
from schedgap.instances.random_instances.zhou import (
    ARRIVALS,
    MB_PER_S,
    MS_PER_S,
    Part,
    instance,
    job,
    ps,
    servers,
    worker,
)
from schedgap.instances.schema import Instance

__all__ = [
    "ARRIVALS",
    "MB_PER_S",
    "MS_PER_S",
    "ONE_GPU",
    "Part",
    "instance",
    "job",
    "ps",
    "servers",
    "small",
    "tiny",
    "worker",
]

ONE_GPU = servers(gpus=1)
"""A server with one GPU, on which one worker runs at a time."""


@st.composite
def tiny(draw: st.DrawFn, arrivals: Sequence[float] = ARRIVALS) -> Instance:
    """Draw a tiny instance, see :func:`schedgap.instances.random_instances.zhou.draw`."""
    return zhou.draw(Shrinking(draw), arrivals=arrivals)


@st.composite
def small(draw: st.DrawFn, jobs: int = 12) -> Instance:
    """Draw a small instance, see :func:`schedgap.instances.random_instances.zhou.draw_many`."""
    return zhou.draw_many(Shrinking(draw), jobs=jobs)
