"""The tasks of a frontier: a curve of the program of constraints, and a mechanism with its degree of fairness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from schedgap.certificates.fairness import efficiency, least_envy, least_share
from schedgap.certificates.reading.oef import shares_of
from schedgap.harness.check import differ, judge
from schedgap.harness.check.registry import facts_of
from schedgap.harness.engine import certificates
from schedgap.harness.engine.result import Later, Result, Stored, decode, opened, typed
from schedgap.harness.engine.sealed import KeptFile
from schedgap.harness.engine.task import InstanceTask
from schedgap.harness.studies.compare.task import MethodResult, MethodTask
from schedgap.instances.arrays import Array
from schedgap.instances.registry import PAPERS, Status
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import FAIR, Allocation
from schedgap.models.oef.fair import curve
from schedgap.models.oef.printed import Constraints

PROGRAM = FAIR.id
"""What certificates of points name as their method."""


@dataclass(frozen=True)
class CurvePoint:
    """A point: what it requires, how the solve ended, the verified total, the certified bound, and what is violated."""

    epsilon: float
    sigma: float
    status: Status
    total: float | None
    bound: float
    violations: tuple[str, ...] = ()

    @property
    def required(self) -> dict[str, Any]:
        """The degree of fairness, by name."""
        return {"epsilon": self.epsilon, "sigma": self.sigma}


@dataclass(frozen=True, eq=False)
class Allocations:
    """Devices ``(points, v, k)`` of every virtual tenant at each point of a curve."""

    devices: Array


@dataclass(frozen=True)
class CurveTask(InstanceTask["CurveResult"]):
    """A task that solves the program at several degrees of fairness, ``(ε, σ)``, one after another."""

    kind: str
    points: tuple[tuple[float, float], ...]

    def identity(self) -> Mapping[str, Any]:
        return {"fingerprint": self.fingerprint, "kind": self.kind, "points": [list(one) for one in self.points]}

    @property
    def hard_limit_s(self) -> float:
        """Seconds after which the worker is killed: the limit of each point, and time for all else."""
        return 2 * self.limits.seconds * len(self.points) + 30.0

    def attempt(self) -> CurveResult:
        instance, required = self.instance, [Constraints(*point) for point in self.points]
        view = PAPERS.get("oef").view(instance)
        points, devices, proofs = [], [], []
        for one in curve(view, required, replace(self.limits.options(0), method="simplex")):
            proof = certificates.certificate(self._named(), one.proof, instance.plain)
            degree: dict[str, Any] = {"epsilon": one.required.epsilon, "sigma": one.required.sigma}
            verdict = judge(instance, one.allocation, FAIR.id, **degree)
            told = {"status": one.status, "total": verdict.objective, "bound": proof["bound"]}
            points.append(CurvePoint(**degree, **told, violations=verdict.violations))
            devices.append(one.allocation.devices)
            proofs.append(proof)
        return self._result(points=tuple(points), allocations=Allocations(np.array(devices)), proofs=tuple(proofs))

    def failed(self, status: Status, reason: str) -> CurveResult:
        return self._result(status=status, reason=reason)

    def _named(self) -> dict[str, str]:
        return {"instance": self.fingerprint, "method": PROGRAM}

    def _result(self, **found: Any) -> CurveResult:
        return CurveResult(self.key, self.fingerprint, self.kind, instance=self.instance, **found)


@dataclass(frozen=True)
class CurveResult(Result):
    """A finished curve: its points, allocations, and certificates, or the `reason` for which there are none."""

    key: str
    fingerprint: str
    kind: str
    points: tuple[CurvePoint, ...] = ()
    allocations: Any = None
    proofs: Sequence[Any] = ()
    status: Status = "optimal"
    reason: str | None = None
    instance: Instance | None = field(default=None, repr=False)

    record: ClassVar[str] = "curve"

    @property
    def label(self) -> str:
        return f"curve {self.kind}: {self.status}"

    @property
    def finished(self) -> bool:
        return bool(self.points) and not any(point.violations for point in self.points)

    def file(self, folder: str, number: int | None = None) -> str:
        """Return the path of a file in the results folder: that of the allocations, or of a point's certificate."""
        place = "" if number is None else f"-{number + 1}"
        return f"{folder}/{PROGRAM}-{self.kind}-{self.fingerprint[:12]}-{self.key[:8]}{place}.json.gz"

    def content(self) -> dict[str, Any]:
        about = {"fingerprint": self.fingerprint, "kind": self.kind, "status": self.status, "reason": self.reason}
        return about | {"points": [asdict(point) for point in self.points]}

    def parts(self) -> Mapping[str, Any]:
        if not self.points:
            return {}
        proofs = {self.file(certificates.FOLDER, i): proof for i, proof in enumerate(self.proofs)}
        return {self.file("schedules"): self.allocations, **proofs}

    def holds(self) -> str:
        if self.instance is None or not self.points:
            return ""
        devices = opened(self.allocations).devices
        if len(devices) != len(self.points):
            raise ValueError("it has another number of allocations than of points")
        for point, given, proof in zip(self.points, devices, self.proofs, strict=True):
            where = f"at ε = {point.epsilon:g}, σ = {point.sigma:g}"
            verdict = judge(self.instance, Allocation(given), FAIR.id, **point.required)
            if verdict.violations:
                raise ValueError(f"WRONG {where}: {verdict.violations[0]}")
            if verdict.objective is None or point.total is None or differ(verdict.objective, point.total):
                raise ValueError(f"{where} the allocation does not reach the total of its point")
            certificates.checked(opened(proof), self.instance)
            if point.bound < point.total * (1 - 1e-9):
                raise ValueError(f"{where} the bound is below the total of a verified allocation")
        return f"{len(self.points)} allocations re-checked, {len(self.points)} bounds hold"

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> CurveResult:
        """Return the result stored in a journal line; allocations and certificates are read on access."""
        fields = {name: content[name] for name in ("key", "fingerprint", "kind", "points", "status", "reason")}
        found = typed(cls, fields)
        instance = stored.instance(found.fingerprint)
        if not found.points:
            return replace(found, instance=instance)
        about = {"instance": found.fingerprint, "method": PROGRAM, "problem": FAIR.id}
        proofs = tuple(
            Later(
                partial(
                    certificates.read,
                    stored.file(found.key, found.file(certificates.FOLDER, i)),
                    about | point.required,
                    point.bound,
                )
            )
            for i, point in enumerate(found.points)
        )
        given = Later(partial(_allocations, stored.file(found.key, found.file("schedules"))))
        return replace(found, instance=instance, allocations=given, proofs=proofs)


def _allocations(file: KeptFile) -> Allocations:
    """Read the allocations of a curve."""
    return decode(Allocations, file.unpacked())


@dataclass(frozen=True)
class DotTask(MethodTask):
    """A task that runs one mechanism, and measures how fair its allocation is."""

    def attempt(self) -> DotResult:
        return _placed(super().attempt(), self.instance)

    def failed(self, status: Status, reason: str) -> DotResult:
        return _placed(super().failed(status, reason), self.instance)


@dataclass(frozen=True)
class DotResult(MethodResult):
    """A finished task: what a comparison keeps of it, its total efficiency, and how fair its allocation is.

    The total may be another number than the objective of its problem. `epsilon` is the least part that tenants may lack
    of what another's devices are worth to them, and `sigma` the least share of an equal split that a tenant has; both
    at reported speedups.
    """

    total: float | None = None
    epsilon: float | None = None
    sigma: float | None = None

    record: ClassVar[str] = "dot"

    def content(self) -> dict[str, Any]:
        return super().content() | {name: getattr(self, name) for name in PLACE}

    def holds(self) -> str:
        text = super().holds()
        if self.instance is not None and place(self, self.instance) != {name: getattr(self, name) for name in PLACE}:
            raise ValueError("its allocation is fair to another degree")
        return text

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> DotResult:
        """Return the result stored in a journal line."""
        found = super().restored(content, stored)
        return cls(**{**vars(found), **{name: content[name] for name in PLACE}})


def _placed(result: MethodResult, instance: Instance) -> DotResult:
    """Return a result with the degree of fairness of its allocation."""
    if isinstance(result, DotResult):
        return result
    return DotResult(**vars(result), **place(result, instance))


PLACE = ("total", "epsilon", "sigma")
"""Fields of the place of a mechanism: its total efficiency, and how fair it is."""


def place(result: MethodResult, instance: Instance) -> dict[str, Any]:
    """Return the total, the least ε and the largest σ of a verified allocation, by name; else nothing is known."""
    if result.row.objective is None or not result.row.verified:
        return dict.fromkeys(PLACE)
    facts, devices = facts_of(instance, shares_of), np.asarray(opened(result.decision).devices, float)
    total = float(efficiency(facts.speedups, devices).sum())
    return {"total": total, "epsilon": least_envy(facts, devices), "sigma": least_share(facts, devices)}
