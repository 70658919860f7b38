"""Try the papers' claims, and collect what was found."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Unpack

from schedgap.harness.audit.row import CLAIMS, Audit, Claim, Finding
from schedgap.harness.audit.task import ClaimTask
from schedgap.harness.engine.study import Finished, Running, Study, command_line, execute, several
from schedgap.harness.engine.task import Limits
from schedgap.harness.page.audit import blocks
from schedgap.harness.table import to_json, to_markdown
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.ranges import LARGEST_SEED
from schedgap.instances.registry import PAPERS, unknown

MOST_EFFORT = 1000.0
"""Largest effort: about a day."""

LIMIT_S = 900.0
"""Seconds that a claim may take at effort 1; the slowest takes about twenty."""

LAST = ("slip", "printed", "measured")
"""Names of claims that follow a paper's theorems, in this order."""


def audit(
    papers: str | Iterable[str] = (),
    claims: str | Iterable[str] = "*",
    *,
    effort: float = 1.0,
    seed: int = 0,
    time_limit_s: float | None = None,
    memory_mb: int = Limits.memory_mb,
    **running: Unpack[Running],
) -> Audit:
    """Try claims of the papers; Ctrl-C ends it early, findings so far stay.

    Parameters
    ----------
    papers, claims
        Papers (all where none is named), and ids or shell patterns of claims.
    effort, seed
        Factor on how many random cases are tried; seed of the cases. The same numbers give the same findings.
    time_limit_s, memory_mb
        Wall-clock seconds that a claim may take, by default :data:`LIMIT_S` times the effort; memory of its process.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If a paper, claim or option is wrong; nothing has run then.
    """
    papers, patterns = several(papers), several(claims)
    if not 0 < effort <= MOST_EFFORT or math.isnan(effort):
        raise UsageError(f"effort = {effort:g}: more than 0, at most {MOST_EFFORT:g}")
    if not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"seed = {seed}: 0 to {LARGEST_SEED}")
    chosen = [claim.id for claim in select(papers, patterns)]
    usual = Limits(time_limit_s=LIMIT_S * max(1.0, effort))
    limits = Limits(usual.seconds if time_limit_s is None else time_limit_s, memory_mb=memory_mb)
    options = {
        "paper": papers,
        "claim": [pattern for pattern in patterns if pattern != "*"],
        "effort": None if effort == 1 else effort,
        "seed": seed or None,
        **limits.given(usual),
    }
    meta = {"command": command_line(options, "audit"), "claims": chosen, "effort": effort, "seed": seed}
    return execute(STUDY, [ClaimTask(claim, seed, effort, limits=limits) for claim in chosen], meta, **running)


def _collected(found: Finished) -> Audit:
    rows = [replace(finding, folder=found.folder) for finding in found.results]
    return Audit(found.meta, rows, folder=found.folder)


def _tables(audit: Audit) -> Mapping[str, bytes]:
    records = (finding.as_dict() for finding in audit.rows)
    return {"audit.json": to_json(records).encode(), "audit.md": to_markdown(blocks(audit)).encode()}


STUDY = Study("audit", (Finding,), _collected, _tables)


def select(papers: Iterable[str], patterns: Iterable[str]) -> list[Claim]:
    """Return the claims of the papers, or of all, that match; raise `UnknownNameError` where nothing does."""
    order = list(PAPERS.ids())
    wanted = {PAPERS.get(paper).id for paper in papers} or set(order)

    def place(claim: Claim) -> tuple[int, int]:
        name = claim.id.split(".")[1]
        return order.index(claim.paper), LAST.index(name) if name in LAST else -1

    among = sorted((claim for claim in CLAIMS if claim.paper in wanted), key=place)
    ids, chosen = [claim.id for claim in among], set[str]()
    for pattern in patterns:
        if not (found := fnmatch.filter(ids, pattern)):
            raise UnknownNameError(unknown("claim", pattern, ids))
        chosen.update(found)
    return [claim for claim in among if claim.id in chosen]
