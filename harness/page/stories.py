"""What a paper's page tells beside its rows: a sentence that answers, and tables; each paper may register its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.table import Table
from schedgap.instances.registry import Registry


@dataclass(frozen=True)
class Story:
    """``answer(run, rows)`` and ``tables(run, rows)`` of the paper `id`; ``""`` and nothing where there is none."""

    id: str
    answer: Callable[[Comparison, Sequence[Row]], str]
    tables: Callable[[Comparison, Sequence[Row]], list[Table]]


STORIES: Registry[Story] = Registry("story")
