"""Report of an audit: a table of claims for each paper, and the witnesses against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from schedgap.harness.engine.result import grouped
from schedgap.harness.show.page import frame
from schedgap.harness.show.page.columns import AUDIT, LONGEST
from schedgap.harness.show.page.frame import Group, Page
from schedgap.harness.show.table import USUALLY, Block, Line, Note, Selection, Table, explained, listed, of_texts, table
from schedgap.harness.show.text import clean
from schedgap.harness.studies.audit.row import Audit, Finding, kind

CONFIRMED_IS = (
    "confirmed: no counterexample among the cases tried, which is no proof beyond them; failed: cases in which the "
    "claim does not hold, out of those tried within the scope that the paper states"
)


MARKS = (
    "mechanisms and properties: ✓ is proved; ✗ fails, and has a witness; ?40 is in doubt, as none of 40 situations "
    "refutes it; after 1: for tenants of one job type only; † is promised by OEF's Table 1"
)


def properties(findings: Sequence[Finding]) -> list[Table]:
    """Return the table of mechanisms and properties, if some findings are about them."""
    from schedgap.harness.ask.properties import PROPERTIES
    from schedgap.harness.studies.audit.claims.properties import table_of  # it imports all claims

    if not (marks := table_of(findings)):
        return []
    shown = [property for property in PROPERTIES.values() if any(property.id in row for row in marks.values())]
    rows = [[id, *(row[one.id].text if one.id in row else "" for one in shown)] for id, row in marks.items()]
    return [table(MARKS, of_texts(["mechanism", *(one.short for one in shown)]), rows)]


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
    shown += [block for found in properties(audit.rows) for block in (Line(""), found)]
    witnesses = replays(audit.rows)
    shown += [Line(""), Line("witnesses", "bold")] if witnesses else []
    for id, shows, command in witnesses:
        shown += [Note(id, shows), Note("replay", command, command=True)]
    return shown


def groups(findings: Sequence[Finding]) -> list[Group]:
    """Return the table of properties, then one group per paper, with a table of its claims."""
    tables = {mine[0].claim.paper: table(CONFIRMED_IS, AUDIT, mine) for mine in grouped(findings, "claim.paper")}
    found = [
        Group("properties", "properties", "Mechanisms and their properties", made)
        for made in [properties(findings)]
        if made
    ]
    return [
        *found, *(Group(f"audit-{frame.slug(id)}", id, frame.title_of(id), [content]) for id, content in tables.items())
    ]  # fmt: skip


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
