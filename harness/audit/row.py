"""An audit as plain data: what was found about each claim, and in short about all."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from schedgap.harness.audit.registry import CLAIMS, ONLY, Claim, Evidence, Tally, Witness, decide
from schedgap.harness.engine.result import DataRow, Found, Result, Stored
from schedgap.harness.text import plain
from schedgap.instances.canonical import to_json
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.plugins import options
from schedgap.instances.registry import unknown

FAILED = "failed"
"""Status of a claim whose check did not end in order."""

FIELDS = (
    *("id", "paper", "location", "claim", "scope", "how", "status", "verdict", "tested", "failed", "narrower"),
    *("found", "numbers", "witnesses", "reason", "seconds"),
)
"""Fields of a finding in tables and files."""


@dataclass(frozen=True)
class Finding(DataRow, Result):
    """A claim with its verdict.

    Attributes
    ----------
    id
        Id of the claim.
    evidence
        What was found; ``None`` where the check failed.
    reason
        Why it failed.
    seconds
        How long it took.
    folder
        Results folder that holds the witnesses, if they were saved.
    key
        Key of its task.
    """

    id: str
    evidence: Evidence | None = None
    reason: str | None = None
    seconds: float = 0.0
    folder: Path | None = None
    key: str = ""

    record: ClassVar[str] = "finding"

    @property
    def claim(self) -> Claim:
        """The claim."""
        return CLAIMS.get(self.id)

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"{self.id}: {self.status}"

    @property
    def finished(self) -> bool:
        """Whether it need not be tried again."""
        return self.ok

    def content(self) -> dict[str, Any]:
        """Return what the journal keeps."""
        found: dict[str, Any] = plain(self.as_dict())
        return found

    def files(self) -> Mapping[str, bytes]:
        """Return the witnesses as files."""
        return {str(self.file(i)): to_json(w.instance).encode() for i, w in enumerate(self.witnesses)}

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Finding:
        """Return the finding that a journal kept; its verdict is computed again from the counts."""
        name, key = content["id"], content["key"]
        if name not in CLAIMS:
            raise ValueError(f"claim {name!r} is not known here")
        if content["status"] != "done":
            return cls(name, None, content["reason"], content["seconds"], stored.path, key)
        evidence = Evidence(
            Tally(content["scope"], content["tested"], content["failed"]),
            content["found"],
            tuple(Tally(**tally) for tally in content["narrower"]),
            content["numbers"],
            tuple(Witness(stored.instance(w["file"]), tuple(w["methods"]), w["shows"]) for w in content["witnesses"]),
        )
        return cls(name, evidence, None, content["seconds"], stored.path, key)

    @property
    def ok(self) -> bool:
        """Whether the claim was computed; that it is refuted is a fine answer."""
        return self.evidence is not None

    @property
    def verdict(self) -> str | None:
        """``confirmed``, ``refuted``, ``only for …`` or ``not testable``, from the counts; ``None`` where it failed."""
        return decide(self.evidence.stated, self.evidence.narrower) if self.evidence else None

    @property
    def status(self) -> str:
        """The verdict, or that it failed."""
        return self.verdict or FAILED

    @property
    def tally(self) -> Tally:
        """Cases in the scope that the paper states."""
        return self.evidence.stated if self.evidence else Tally("", 0, 0)

    @property
    def text(self) -> str:
        """What was found, or why nothing was."""
        return self.evidence.text if self.evidence else f"failed: {self.reason}"

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Instances that show it."""
        return self.evidence.witnesses if self.evidence else ()

    def file(self, number: int) -> Path:
        """Return the file of a witness, inside the results folder."""
        suffix = f"-{number + 1}" if number else ""
        return Path("witnesses") / f"{self.id}{suffix}.json"

    def replay(self, number: int) -> str:
        """Return the command that shows a witness."""
        witness, path = self.witnesses[number], self.file(number)
        words = ["harness", "compare", "--instance", str(self.folder / path if self.folder else path)]
        words += [word for method in witness.methods for word in ("--method", method)]
        return shlex.join([*words, *options()])

    def as_dict(self) -> dict[str, Any]:
        """Return :data:`FIELDS` by name."""
        narrower = self.evidence.narrower if self.evidence else ()
        about = {name: getattr(self.claim, name) for name in ("id", "paper", "location", "claim", "scope", "how")}
        return {
            **about,
            "status": "done" if self.ok else FAILED,
            "verdict": self.verdict,
            "tested": self.tally.tested,
            "failed": self.tally.failed,
            "narrower": [vars(tally) for tally in narrower],
            "found": self.text,
            "numbers": dict(self.evidence.numbers) if self.evidence else {},
            "witnesses": [
                {
                    "file": self.file(i).as_posix(),
                    "fingerprint": witness.instance.fingerprint,
                    "methods": list(witness.methods),
                    "shows": witness.shows,
                    "replay": self.replay(i),
                }
                for i, witness in enumerate(self.witnesses)
            ],
            "reason": self.reason,
            "seconds": self.seconds,
        }


def headline(findings: Sequence[Finding]) -> str:
    """Return in one sentence how many claims were tried, and what came of it."""
    kinds = Counter(kind(finding) for finding in findings)
    several = f"{len(findings)} claims" if len(findings) != 1 else "1 claim"
    papers = len({finding.claim.paper for finding in findings})
    of = f"{several} of {papers} papers" if papers > 1 else several
    return f"{of}: {', '.join(f'{count} {name}' for name, count in kinds.items())}."


def kind(finding: Finding) -> str:
    """Return the verdict without the scope that "only for" names."""
    return "hold in a narrower scope only" if finding.status.startswith(ONLY) else finding.status


@dataclass
class Audit(Found[Finding]):
    """Findings, one per claim, in the order of the papers."""

    kind = "audit"
    fields = FIELDS

    @property
    def headline(self) -> str:
        """How many claims were tried, and what came of it."""
        return headline(self.rows)

    def finding(self, claim: str) -> Finding:
        """Return the finding about a claim.

        Raises
        ------
        UnknownNameError
            If that claim was not tried.
        """
        for finding in self.rows:
            if finding.id == claim:
                return finding
        raise UnknownNameError(unknown("claim", claim, [f.id for f in self.rows]))
