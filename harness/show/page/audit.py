"""Report of an audit: a table of claims for each paper, and the witnesses against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from schedgap.harness.engine.result import grouped
from schedgap.harness.show.page import frame
from schedgap.harness.show.page.columns import AUDIT, LONGEST
from schedgap.harness.show.page.frame import Group, Page
from schedgap.harness.show.table import USUALLY, Block, Line, Note, Selection, explained, listed, table
from schedgap.harness.show.text import clean
from schedgap.harness.studies.audit.row import Audit, Finding, kind

CONFIRMED_IS = (
    "confirmed: no counterexample among the cases tried, which is no proof beyond them; failed: cases in which the "
    "claim does not hold, out of those tried within the scope that the paper states"
)


def replays(findings: Sequence[Finding]) -> list[tuple[str, str, str]]:
    """Return, for each witness, the claim's id, what the witness shows, and the command that replays it."""
    return [
        (finding.id, clean(witness.shows, LONGEST), clean(finding.replay(i)))
        for finding in findings
        for i, witness in enumerate(finding.witnesses)
    ]


def blocks(audit: Audit, view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that the command prints: the headline, a table per paper, and the witnesses with commands."""
    shown: list[Block] = [Line(audit.headline, "bold"), Line(CONFIRMED_IS, "dim")]
    for findings in grouped(audit.rows, "claim.paper"):
        shown += [Line(""), Line(clean(findings[0].claim.paper), "bold"), *listed("", AUDIT, findings, view=view)]
    witnesses = replays(audit.rows)
    shown += [Line(""), Line("witnesses", "bold")] if witnesses else []
    for id, shows, command in witnesses:
        shown += [Note(id, shows), Note("replay", command, command=True)]
    return shown


def groups(findings: Sequence[Finding]) -> list[Group]:
    """Return one group per paper, with a table of its claims."""
    tables = {mine[0].claim.paper: table(CONFIRMED_IS, AUDIT, mine) for mine in grouped(findings, "claim.paper")}
    return [Group(f"audit-{frame.slug(id)}", id, frame.title_of(id), [content]) for id, content in tables.items()]


def page(audit: Audit) -> Page:
    """Return the page of an audit; it has no figures."""
    counts = Counter(kind(finding) for finding in audit.rows)
    listed = [(id, f"{shows}: {command}") for id, shows, command in replays(audit.rows)]
    return Page(
        question="Does the theory hold?",
        title="Audit of the papers' claims",
        headline=audit.headline,
        groups=groups(audit.rows),
        legend=explained(AUDIT, [audit.rows]),
        notes=[(finding.id, finding.refuted or finding.text) for finding in audit.rows if not finding.ok],
        counts=[(str(count), name) for name, count in counts.items()],
        last=frame.noted("witnesses", "Witnesses", listed),
    )
