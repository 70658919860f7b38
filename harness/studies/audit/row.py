"""An audit as plain data: the papers' claims, the cases tried, and the verdicts that follow from their counts.

A claim's verdict is computed on every run, never stored. Its check tries cases and counts those in which it fails,
within the scope that the paper states and within any narrower scopes; :func:`decide` derives the verdict from these.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from schedgap.harness.engine.result import DataRow, Found, Result, Stored, typed
from schedgap.harness.engine.sealed import inside
from schedgap.harness.show.measures import AUDIT, MeasureTable
from schedgap.harness.show.text import plain
from schedgap.instances.canonical import read, to_json
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.plugins import options
from schedgap.instances.registry import Registry, unknown
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted

CONFIRMED, REFUTED, NOT_TESTABLE, ONLY = "confirmed", "refuted", "not testable", "only for"


@dataclass(frozen=True)
class Witness:
    """The smallest instance found that shows an effect, the methods whose rows show it, and the effect in words."""

    instance: Instance
    methods: tuple[str, ...]
    shows: str


@dataclass
class Count:
    """Number of cases tried within a scope, and number of cases in which the claim failed.

    The `scope` is worded to follow "only for …". `witness` is the smallest instance on which the claim failed.
    """

    scope: str = "as stated"
    tested: int = 0
    failed: int = 0
    witness: Witness | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.failed} of {self.tested}"

    def add(self, holds: bool, instance: Instance | None = None, methods: Sequence[str] = (), shows: str = "") -> bool:
        """Count a case; if the claim fails in it, `instance` is a candidate for the witness. Return `holds`."""
        self.tested += 1
        self.failed += not holds
        if not holds and instance is not None:
            witnesses = [w for w in (self.witness, Witness(instance, tuple(methods), shows)) if w]
            self.witness = min(witnesses, key=lambda w: (len(text := to_json(w.instance)), text))
        return holds

    def as_dict(self) -> dict[str, Any]:
        """Return the counts by name."""
        return {"scope": self.scope, "tested": self.tested, "failed": self.failed}


def decide(stated: Count, narrower: Sequence[Count] = ()) -> str:
    """Return the verdict that follows from the counts.

    ``not testable`` if no case could be tried; ``confirmed`` if none failed, which is no proof beyond the cases tried;
    ``only for …`` if some failed, but none within a narrower scope that was tried; else ``refuted``.
    """
    if stated.tested == 0:
        return NOT_TESTABLE
    if stated.failed == 0:
        return CONFIRMED
    scopes = [count.scope for count in narrower if decide(count) == CONFIRMED]
    return f"{ONLY} {' and '.join(scopes)}" if scopes else REFUTED


@dataclass(frozen=True)
class Claim:
    """A statement of a paper with its location and scope; `how` describes the test.

    It is `stated` by the paper, or a question of our own about its methods, which runs only if it is named.

    ``check(lab)`` tries and counts cases (:class:`~schedgap.harness.studies.audit.lab.ClaimLab`) and describes them.
    The id is ``<paper>.<name>``.
    """

    id: str
    paper: str
    location: str
    claim: str
    scope: str
    how: str
    check: Callable[[Any], str]
    stated: bool = True


CLAIMS: Registry[Claim] = Registry("claim")

T = TypeVar("T", bound=Callable[..., str])


def claim(
    id: str, location: str, *, how: str, scope: str = "as stated", text: str = "", **given: Any
) -> Callable[[T], T]:
    """Register the decorated function as the check of a claim, which is its docstring unless `text` is given.

    The id begins with that of the paper; `given` has further arguments for a function that checks several claims.
    """

    def register(check: T) -> T:
        statement = text or " ".join((check.__doc__ or "").split())
        CLAIMS.register(Claim(id, id.partition(".")[0], location, statement, scope, how, partial(check, **given)))
        return check

    return register


FAILED = "failed"
"""Status of a claim whose check crashed or was killed."""


@dataclass(frozen=True)
class Finding(DataRow, Result):
    """The verdict on a claim, or the `reason` for which its check failed.

    `counts` has the cases within the scope that the paper states, then those within narrower scopes; it is empty if the
    check failed. `description` says which cases were tried, and `numbers` has the key figures. `witnesses` begin with
    the smallest counterexample; `folder` is the results folder that holds them, if they were saved. `refuted` names a
    guarantee that a row of the check states and a verified decision exceeds; it is empty if there is none.
    """

    measures: ClassVar[MeasureTable] = AUDIT

    id: str
    counts: Sequence[Count] = ()
    description: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    witnesses: Sequence[Witness] = ()
    refuted: str = ""
    reason: str | None = None
    seconds: float = 0.0
    folder: Path | None = None
    key: str = ""

    record: ClassVar[str] = "finding"

    @property
    def claim(self) -> Claim:
        """The registered claim of this finding."""
        return CLAIMS.get(self.id)

    @property
    def label(self) -> str:
        return f"{self.id}: {self.status}"

    @property
    def finished(self) -> bool:
        """True if the check completed."""
        return bool(self.counts)

    @property
    def ok(self) -> bool:
        """True if the check completed and no row stated a false guarantee; a refuted claim is a valid result."""
        return self.finished and not self.refuted

    @property
    def stated(self) -> Count:
        """The count within the scope that the paper states."""
        return self.counts[0] if self.counts else Count("")

    @property
    def verdict(self) -> str | None:
        """``confirmed``, ``refuted``, ``only for …`` or ``not testable``; ``None`` if the check failed."""
        return decide(self.stated, self.counts[1:]) if self.finished else None

    @property
    def status(self) -> str:
        """The verdict, or ``failed``."""
        return self.verdict or FAILED

    @property
    def text(self) -> str:
        """The description of the cases, or the reason for the failure."""
        return self.description if self.finished else f"failed: {self.reason}"

    def content(self) -> dict[str, Any]:
        data: dict[str, Any] = plain(replace(self, folder=None).as_dict())
        return data

    def names(self) -> list[str]:
        return [str(self.file(i)) for i in range(len(self.witnesses))]

    def holds(self) -> str:
        if any(not 0 <= count.failed <= count.tested for count in self.counts):
            raise ValueError("it failed in more cases than it was tried in")
        if self.finished == bool(self.reason):
            raise ValueError("it needs either counts or a reason why it failed")
        return f"{self.verdict} follows from its counts, which are the run's word" if self.finished else ""

    def files(self) -> Mapping[str, bytes]:
        """Return the witnesses as files."""
        return dict(zip(self.names(), (to_json(w.instance).encode() for w in self.witnesses), strict=True))

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Finding:
        """Return the finding of a journal entry; its verdict is computed again from the counts."""
        if content["id"] not in CLAIMS:
            raise ValueError(f"claim {content['id']!r} is not known here")
        fields = {name: content[name] for name in ("id", "reason", "seconds", "key")} | {"folder": stored.path}
        fields["refuted"] = content.get("refuted", "")
        if content["status"] == "done":
            stated = {name: content[name] for name in ("scope", "tested", "failed")}
            fields |= {
                "counts": (stated, *content["narrower"]),
                "description": content["found"],
                "numbers": content["numbers"],
                "witnesses": [
                    {"instance": read(inside(stored.path, w["file"])), "methods": w["methods"], "shows": w["shows"]}
                    for w in content["witnesses"]
                ],
            }
        return typed(cls, fields)

    def file(self, number: int) -> Path:
        """Return the file of a witness, relative to the results folder."""
        suffix = f"-{number + 1}" if number else ""
        return Path("witnesses") / f"{self.id}{suffix}.json"

    def replay(self, number: int) -> str:
        """Return the command that shows a witness."""
        path = str(self.folder / self.file(number) if self.folder else self.file(number))
        methods = [word for method in self.witnesses[number].methods for word in ("--method", method)]
        return shlex.join(["harness", "compare", "--instance", path, *methods, *options()])

    def as_dict(self) -> dict[str, Any]:
        """Return the columns by name."""
        return {
            **{name: getattr(self.claim, name) for name in ("id", "paper", "location", "claim", "scope", "how")},
            "status": "done" if self.finished else FAILED,
            "verdict": self.verdict,
            "tested": self.stated.tested,
            "failed": self.stated.failed,
            "narrower": [count.as_dict() for count in self.counts[1:]],
            "found": self.text,
            "numbers": dict(self.numbers),
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
            "refuted": self.refuted,
            "reason": self.reason,
            "seconds": self.seconds,
        }


def kind(finding: Finding) -> str:
    """Return the kind of verdict: the status without the scope of "only for …"."""
    return "only for a narrower scope" if finding.status.startswith(ONLY) else finding.status


@dataclass(repr=False)
class Audit(Found[Finding]):
    """Findings, one per claim, in the order of the papers."""

    kind = "audit"
    fields = tuple(AUDIT)

    @property
    def headline(self) -> str:
        """The number of claims and of verdicts of each kind, in one sentence."""
        if not self.rows:
            return "No claim was tried."
        kinds = Counter(kind(finding) for finding in self.rows)
        papers = len({finding.claim.paper for finding in self.rows})
        of = counted(len(self.rows), "claim") + (f" of {papers} papers" if papers > 1 else "")
        return f"{of}: {', '.join(f'{count} {name}' for name, count in kinds.items())}."

    def finding(self, claim: str) -> Finding:
        """Return the finding about a claim; raise `UnknownNameError` if the claim was not tried."""
        findings = {finding.id: finding for finding in self.rows}
        if claim not in findings:
            raise UnknownNameError(unknown("claim", claim, list(findings)))
        return findings[claim]
