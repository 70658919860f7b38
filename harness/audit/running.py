"""Try the papers' claims, and collect what was found."""

from __future__ import annotations

import fnmatch
import math
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import environment
from harness.audit.finding import Finding, headline
from harness.audit.registry import CLAIMS, Claim
from harness.audit.saving import Folder
from harness.audit.task import ClaimTask
from harness.pool import run_all
from harness.simulation.caps import Caps
from harness.store import AUDIT, SCHEMA_VERSION, new_folder
from instances.errors import UnknownNameError, UsageError
from instances.ranges import LARGEST_SEED
from instances.registry import PAPERS, unknown

if TYPE_CHECKING:
    import pandas as pd

MOST_EFFORT = 1000.0
"""Largest effort: about a day."""

LIMIT_S = 900.0
"""Seconds that a claim may take at effort 1; the slowest takes about twenty."""


@dataclass
class Audit:
    """What :func:`run` returns.

    Attributes
    ----------
    findings
        One per claim, in the order of the papers.
    meta
        Content of ``run.json``.
    folder
        Results folder, where the audit was saved.
    """

    findings: list[Finding]
    meta: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether every claim was computed."""
        return all(finding.ok for finding in self.findings)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it before all claims had been tried."""
        return bool(self.meta.get("interrupted"))

    @property
    def headline(self) -> str:
        """How many claims were tried, and what came of it."""
        return headline(self.findings)

    @property
    def table(self) -> pd.DataFrame:
        """One line per finding, columns as in :data:`harness.audit.finding.FIELDS`."""
        import pandas as pd

        return pd.DataFrame([finding.as_dict() for finding in self.findings])

    def finding(self, claim: str) -> Finding:
        """Return the finding about a claim.

        Raises
        ------
        UnknownNameError
            If that claim was not tried.
        """
        for finding in self.findings:
            if finding.id == claim:
                return finding
        raise UnknownNameError(unknown("claim", claim, [f.id for f in self.findings]))

    def to_html(self) -> str:
        """Return the self-contained report page."""
        from harness.audit.page import page

        return page(self)

    def _repr_html_(self) -> str:
        from harness.audit.page import fragment

        return fragment(self.findings)


def run(
    papers: Iterable[str] = (),
    claims: Iterable[str] = ("*",),
    *,
    effort: float = 1.0,
    seed: int = 0,
    jobs: int = 0,
    results: Path | None = None,
    command: str | None = None,
    on_start: Callable[[int], None] = lambda count: None,
    on_result: Callable[[Finding], None] = lambda finding: None,
) -> Audit:
    """Try claims of the papers; Ctrl-C ends it early, findings so far stay.

    Parameters
    ----------
    papers, claims
        Papers (all where none is named), and ids or shell patterns of claims.
    effort, seed
        Factor on how many random cases are tried; seed of the cases. The same numbers give the same findings.
    jobs
        Worker processes; 0: as many as there are cores.
    results, command
        Folder in which a new results folder is made, if any; how to reproduce the run, if not by these arguments.
    on_start, on_result
        Called with the number of claims, and with each finding.

    Raises
    ------
    UsageError
        If a paper, claim or option is wrong; nothing has run then.
    """
    papers, patterns = list(papers), list(claims)
    if not 0 < effort <= MOST_EFFORT or math.isnan(effort):
        raise UsageError(f"effort = {effort:g}: more than 0, at most {MOST_EFFORT:g}")
    if not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"seed = {seed}: 0 to {LARGEST_SEED}")
    chosen = select(papers, patterns)
    caps = Caps(LIMIT_S * max(1.0, effort))
    tasks = [ClaimTask(claim.id, seed, effort, caps) for claim in chosen]
    meta = _meta(command or _reproduction(papers, patterns, effort, seed), chosen, effort, seed)
    folder = Folder(new_folder(results, meta, "-audit"), meta) if results else None
    on_start(len(tasks))
    began = time.perf_counter()
    done, interrupted = _run(tasks, jobs, folder, on_result)
    meta |= {"duration_s": time.perf_counter() - began, "interrupted": interrupted}
    audit = Audit(done, meta, folder.path if folder else None)
    if folder:
        folder.finish(meta, audit.findings)
    return audit


def _run(
    tasks: Sequence[ClaimTask], jobs: int, folder: Folder | None, on_result: Callable[[Finding], None]
) -> tuple[list[Finding], bool]:
    """Run the tasks; return what was found, in the order of the tasks, and whether Ctrl-C ended it early."""
    done: dict[str, Finding] = {}
    interrupted = False

    def ordered() -> list[Finding]:
        return [done[task.claim] for task in tasks if task.claim in done]

    try:
        for finding in run_all(tasks, jobs):
            done[finding.id] = replace(finding, folder=folder.path if folder else None)
            if folder:
                folder.add(done[finding.id], ordered())
            on_result(finding)
    except KeyboardInterrupt:
        interrupted = True
    return ordered(), interrupted


def select(papers: Iterable[str], patterns: Iterable[str]) -> list[Claim]:
    """Return the claims that match a pattern and are of one of the papers (any, where none is named).

    Raises
    ------
    UnknownNameError
        If a pattern or paper matches nothing.
    """
    known = list(dict.fromkeys(claim.paper for claim in CLAIMS))
    order = [paper for paper in PAPERS.ids() if paper in known]
    wanted = {PAPERS.get(paper).id for paper in papers} or set(known)
    among = sorted((claim for claim in CLAIMS if claim.paper in wanted), key=lambda c: (order.index(c.paper), _last(c)))
    chosen: set[str] = set()
    for pattern in patterns:
        found = [claim.id for claim in among if fnmatch.fnmatchcase(claim.id, pattern)]
        if not found:
            raise UnknownNameError(unknown("claim", pattern, [claim.id for claim in among]))
        chosen.update(found)
    return [claim for claim in among if claim.id in chosen]


def _last(claim: Claim) -> int:
    """Return where a claim stands among those of its paper: theorems, slips, printed numbers, measured ones."""
    kinds = ("slip", "printed", "measured")
    name = claim.id.split(".")[1]
    return 1 + kinds.index(name) if name in kinds else 0


def _meta(command: str, chosen: Sequence[Claim], effort: float, seed: int) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": AUDIT,
        "command": command,
        "started_utc": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "claims": [claim.id for claim in chosen],
        "effort": effort,
        "seed": seed,
        "versions": environment.versions(),
        "machine": environment.machine(),
        "git_commit": environment.git_commit(),
        "code": environment.code_digest(),
        "interrupted": True,
    }


def _reproduction(papers: Sequence[str], patterns: Sequence[str], effort: float, seed: int) -> str:
    """Return the command line that runs the same audit."""
    words = ["harness", "audit"]
    words += [word for paper in papers for word in ("--paper", paper)]
    words += [word for pattern in patterns if pattern != "*" for word in ("--claim", pattern)]
    words += ["--effort", repr(effort)] if effort != 1 else []
    words += ["--seed", str(seed)] if seed else []
    return shlex.join(words)
