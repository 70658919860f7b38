"""Report of a search for worst cases: the worst ratio of each heuristic, and how to replay it."""

from __future__ import annotations

import shlex

from schedgap.harness.show.page.columns import ADVERSARY
from schedgap.harness.show.page.frame import Group, Page, noted
from schedgap.harness.show.table import USUALLY, Block, Line, Note, Selection, listed, table
from schedgap.harness.show.text import number
from schedgap.harness.studies.adversary.row import Adversary
from schedgap.instances.plugins import options


def replays(found: Adversary) -> list[tuple[str, str]]:
    """Return ``(heuristic, command)`` pairs; the command compares the heuristic with a model on its worst instance."""
    commands = []
    for row in found.rows:
        if row.found:
            file = f"{found.folder}/worst/{row.heuristic}.json"
            words = ["--instance", file, "--method", row.heuristic, "--method", row.found.model, *options()]
            commands.append((row.heuristic, shlex.join(["harness", "compare", *words])))
    return commands


def blocks(found: Adversary, view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that the command prints."""
    answer = Line(headline(found), "bold" if found.ok else "bold red")
    shown = listed("largest ratios to a verified decision", ADVERSARY, found.rows, view=view)
    return [answer, *shown, *(Note("replay", how, command=True) for _, how in replays(found))]


def page(found: Adversary) -> Page:
    """Return the page of a search."""
    return Page(
        question="How bad can it get?",
        title="Worst instances found",
        headline=headline(found),
        groups=[
            Group("results-worst", "worst", "", [table("largest ratios to a verified decision", ADVERSARY, found.rows)])
        ],
        legend=[],
        last=noted("replay", "Replay", replays(found)),
    )


def headline(found: Adversary) -> str:
    """Return a sentence with the largest ratio, and the guarantees that do not hold, if any."""
    ratios = [(row.found.ratio, row.heuristic) for row in found.rows if row.found]
    if not ratios:
        return "No ratio was found."
    ratio, name = max(ratios)
    exceeded = [row.heuristic for row in found.rows if row.exceeded]
    beyond = f" REFUTED guarantees: {', '.join(exceeded)}." if exceeded else ""
    return f"{name} is furthest from optimal, by a factor of at least {number(ratio, side='at least')}.{beyond}"
