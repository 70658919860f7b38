"""Report of a search for worst cases: the worst ratio of each heuristic, and how to replay it."""

from __future__ import annotations

import shlex

from schedgap.harness.show.page.columns import ADVERSARY
from schedgap.harness.show.page.frame import Group, Page, noted
from schedgap.harness.show.table import USUALLY, Block, Line, Note, Selection, listed, table
from schedgap.harness.show.text import number
from schedgap.harness.studies.adversary.families import ANY
from schedgap.harness.studies.adversary.row import Adversary
from schedgap.instances.families import HARD
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


def remarks(found: Adversary) -> list[tuple[str, str]]:
    """Return ``(heuristic, sentence)`` pairs: who else fails, families that grow, what any algorithm must lose."""
    lines = []
    for row in found.rows:
        if row.found and row.found.also:
            others = ", ".join(f"{name} {number(ratio)}" for name, ratio in [*row.found.also.items()][:3])
            lines.append((row.heuristic, f"also bad there: {others}"))
        grown = (family for family in HARD if row.heuristic in family.methods)
        lines += [(row.heuristic, f"family/{family.id}: {family.growth}") for family in grown]
        if row.problem in ANY:
            bound, source = ANY[row.problem]
            lines.append((row.heuristic, f"any online algorithm: at least {bound} ({source})"))
    return lines


def blocks(found: Adversary, view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that the command prints."""
    answer = Line(headline(found), "bold" if found.ok else "bold red")
    shown = listed("largest ratios to a verified decision", ADVERSARY, found.rows, view=view)
    said = (Line(f"{name}: {text}") for name, text in remarks(found))
    return [answer, *shown, *said, *(Note("replay", how, command=True) for _, how in replays(found))]


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
        last=[*noted("around", "Around these ratios", remarks(found)), *noted("replay", "Replay", replays(found))],
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
