"""Test the papers' claims and collect the findings."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Unpack

from schedgap.harness.engine.study import Finished, Running, Study, command_line, execute, several
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.page.audit import blocks
from schedgap.harness.show.table import to_json, to_markdown
from schedgap.harness.studies.audit.row import CLAIMS, Audit, Claim, Finding
from schedgap.harness.studies.audit.task import ClaimTask
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.ranges import LARGEST_SEED
from schedgap.instances.registry import PAPERS, unknown

MOST_EFFORT = 1000.0
"""Largest effort: about a day."""

LIMIT_S = 900.0
"""Time limit of a claim in seconds at effort 1; the slowest claim takes about twenty."""

LAST = ("slip", "printed", "measured", "property")
"""Names of claims that are listed after a paper's theorems, in this order."""


def audit(
    papers: str | Iterable[str] = (),
    claims: str | Iterable[str] = (),
    *,
    effort: float = 1.0,
    seed: int = 0,
    time_limit_s: float | None = None,
    memory_mb: int = Limits.memory_mb,
    **running: Unpack[Running],
) -> Audit:
    """Test claims of the papers; Ctrl-C stops early and keeps the findings so far.

    Parameters
    ----------
    papers, claims
        Papers (default: all), and ids or shell patterns of claims (default: all that papers state).
    effort, seed
        Factor on the number of random cases, and their seed. The same values give the same findings.
    time_limit_s, memory_mb
        Time limit of a claim, by default :data:`LIMIT_S` times the effort if that is above 1; memory of its process.
    **running
        Workers, results folder and callbacks (:class:`schedgap.harness.engine.study.Running`).

    Raises
    ------
    UsageError
        If a paper, claim or option is wrong; nothing has run in that case.
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
        "claim": patterns,
        "effort": None if effort == 1 else effort,
        "seed": seed or None,
        **limits.given(usual),
    }
    meta = {"command": command_line(options, "audit"), "claims": chosen, "effort": effort, "seed": seed}
    tasks = [ClaimTask(claim, seed, effort, limits=limits) for claim in chosen]
    return execute(STUDY, [lambda done: tasks], meta, **running)


def _collected(finished: Finished) -> Audit:
    rows = [replace(finding, folder=finished.folder) for finding in finished.results]
    return Audit(finished.meta, rows, folder=finished.folder)


def _tables(audit: Audit) -> Mapping[str, bytes]:
    # Commands name the files of witnesses from within the folder, wherever it is.
    audit = replace(audit, rows=[replace(finding, folder=None) for finding in audit.rows])
    records = (finding.as_dict() for finding in audit.rows)
    return {"audit.json": to_json(records).encode(), "audit.md": to_markdown(blocks(audit)).encode()}


STUDY = Study("audit", (Finding,), _collected, _tables)


def select(papers: Iterable[str], patterns: Iterable[str]) -> list[Claim]:
    """Return the claims of some or all papers that match a pattern, or without one those that papers state.

    It raises `UnknownNameError` for a pattern without matches.
    """
    order = list(PAPERS.ids())
    wanted = {PAPERS.get(paper).id for paper in papers} or set(order)

    def place(claim: Claim) -> tuple[int, int]:
        name = claim.id.split(".")[1]
        return order.index(claim.paper), LAST.index(name) if name in LAST else -1

    among = sorted((claim for claim in CLAIMS if claim.paper in wanted), key=place)
    if not patterns:
        return [claim for claim in among if claim.stated]
    ids, chosen = [claim.id for claim in among], set[str]()
    for pattern in patterns:
        if not (found := fnmatch.filter(ids, pattern)):
            raise UnknownNameError(unknown("claim", pattern, ids))
        chosen.update(found)
    return [claim for claim in among if claim.id in chosen]
