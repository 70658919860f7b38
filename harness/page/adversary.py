"""What a search tells: the worst ratio of each heuristic, and how to replay it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schedgap.harness.adversary.row import Adversary, Worst
from schedgap.harness.table import Block, Column, Command, table
from schedgap.harness.text import ABSENT, clean, number


def _found(header: str, show: Callable[[Any], str]) -> Column[Worst]:
    """Return a column about the worst instance, where one was found."""
    return Column(header, header, "", lambda one: show(one.found) if one.found else ABSENT, align="right")


def _notes(one: Worst) -> str:
    notes = ["reaches nothing on another instance"] if one.nothing else []
    return "; ".join([*notes, *(["the guarantee does not hold here"] if one.exceeded else [])])


COLUMNS: tuple[Column[Worst], ...] = (
    Column("heuristic", "heuristic", "", lambda one: one.heuristic, css="method"),
    _found("worst ratio", lambda found: f"{found.ratio:.4g}"),
    _found("guarantee there", lambda found: clean(found.guarantee or ABSENT, 40)),
    _found("objective", lambda found: number(found.objective)),
    _found("optimum", lambda found: number(found.optimum)),
    _found("jobs", lambda found: str(found.size)),
    Column("tried", "tried", "", lambda one: str(one.tried), align="right"),
    Column("proved", "proved", "", lambda one: str(one.proved), align="right"),
    Column("note", "note", "", _notes, bad=lambda one: one.exceeded),
)


def blocks(found: Adversary) -> list[Block]:
    """Return what a command prints."""
    shown: list[Block] = [table("largest proved ratios", COLUMNS, found.rows)]
    for one in found.rows:
        if one.found:
            file = f"{found.folder}/worst/{one.heuristic}.json"
            how = f"harness compare --instance {file} --method {one.heuristic} --method {one.found.model}"
            shown.append(Command("replay", how))
    return shown
