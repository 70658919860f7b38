"""Certified lower bounds on the times that simulations measure.

The main process asks for a bound on a metric. Workers import the models and find those that bound this metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.certificates import REFUSED
from schedgap.harness.check import TOLERANCE
from schedgap.harness.engine.certificates import certificate
from schedgap.harness.engine.result import grouped
from schedgap.harness.engine.task import InstanceTask
from schedgap.harness.show.measures import SIMULATE
from schedgap.harness.studies.published import with_published
from schedgap.harness.studies.simulate.row import BOUNDED, Bound, SimulationRow
from schedgap.heuristics.simulator import POLICIES, PolicySpec, Rules, servers, workload
from schedgap.heuristics.simulator.metrics import ALL, Window
from schedgap.instances import clock, plugins
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.schema import Horizon, Instance

if TYPE_CHECKING:
    from schedgap.models.provers import Content
    from schedgap.models.simulated import SimulationBound

ENDLESS = 2**31
"""Number of slots in a horizon so long that no simulation reaches its end."""

KILLED_S = 120.0
"""Wall-clock limit of a bound in seconds. Most take a few seconds, and more on a loaded machine."""


@dataclass(frozen=True)
class BoundTask(InstanceTask[Bound]):
    """A task that computes a lower bound on one metric, over all schedules that policies of one kind can make.

    The kind is that of :class:`schedgap.heuristics.simulator.PolicySpec`: policies that give out CPUs and memory
    (`sensitive`), policies that run jobs as copies (`forks`), and all others. With a `window`, jobs outside it are left
    out of the instance: they could only delay the jobs in it.
    """

    round_s: float
    metric: str
    sensitive: bool = False
    forks: bool = False
    window: Window = ALL

    @property
    def hard_limit_s(self) -> float:
        """Wall-clock seconds after which the worker that runs this task is killed."""
        return KILLED_S

    def identity(self) -> Mapping[str, Any]:
        """Return the fields that identify this task: instance, round length, metric, kind of policies and window."""
        kind = [name for name in ("sensitive", "forks") if getattr(self, name)]
        return {"of": [self.fingerprint, repr(self.round_s), self.metric, *kind, *filter(None, [self.window.told])]}

    def failed(self, status: str, reason: str) -> Bound:
        return self._bound(reason=f"{status}: {reason}")

    def _bound(self, **fields: Any) -> Bound:
        about = self.fingerprint, self.metric, self.sensitive, self.forks
        return Bound(*about, key=self.key, round_s=self.round_s, window=self.window.told, **fields)

    def attempt(self) -> Bound:
        from schedgap.models.simulated import SIMULATED

        instance, began = self.instance, clock.now()
        if self.window != ALL:  # certificates number the jobs of a window by arrival, otherwise as in the instance
            counted = self.window.jobs(workload(instance).arrival_s).tolist()
            instance = instance.model_copy(update={"jobs": tuple(instance.jobs[j] for j in counted)})
        kind = self.metric, self.sensitive, self.forks
        models = [model for model in SIMULATED.values() if (model.metric, model.sensitive, model.forks) == kind]
        bounds = [self._of(model, instance) for model in models]
        if not bounds:
            raise NotApplicableError("no model bounds this metric for these policies")
        best = max(bounds, key=lambda bound: -1.0 if bound.seconds is None else bound.seconds)
        return replace(best, took_s=clock.now() - began)

    def _of(self, model: SimulationBound, instance: Instance) -> Bound:
        """Return the bound that `model` gives, or the reason why this model does not apply."""
        from schedgap.models import MODELS

        bound = self._bound(model=model.model, problem=MODELS.get(model.model).problem)
        try:
            multipliers = evidence(model, instance, self.round_s)
            proof = certificate(bound.about, multipliers, self.instance.plain)
        except NotApplicableError as reason:
            return replace(self.failed("skipped", str(reason)), model=model.model)
        except REFUSED as reason:
            return replace(self.failed("error", f"its certificate is refused: {reason}"), model=model.model)
        seconds = model.counted(proof["bound"], workload(instance).arrival_s)
        return replace(bound, seconds=seconds, proved=proof["bound"], certificate=proof)


def wanted(policies: Iterable[PolicySpec], window: Window) -> list[tuple[str, bool, bool, Window]]:
    """Return the bounds that apply to some policy, as tuples of metric, `sensitive`, `forks` and window.

    Bounds on the TTD count all jobs, even if there is a window. They come first because they import Pyomo. Bounds on
    the percentile come last because they are fast: a worker that has only simulated so far must import the models
    before it computes one.
    """
    kinds = sorted({(policy.sensitive, policy.forks) for policy in policies})
    return [(metric, *kind, ALL if metric == TTD else window) for kind, metric in product(kinds, BOUNDED)]


def evidence(bound: SimulationBound, instance: Instance, round_s: float) -> Content:
    """Return multipliers that prove a lower bound on a metric.

    Raise `NotApplicableError` if the model cannot run on the instance, or finds no multipliers.
    """
    from schedgap.models import MODELS
    from schedgap.models.engine.solve import SolveOptions
    from schedgap.models.provers import prove

    spec = MODELS.get(bound.model)
    endless = instance.model_copy(update={"horizon": Horizon(slot_s=round_s, slots=ENDLESS)})
    view = spec.view(endless)
    if reason := spec.skip(view):
        raise NotApplicableError(reason)
    options = SolveOptions()  # models limit their work by counts, so that every machine finds the same bound
    outcome = spec.run(view, options)
    found = None if outcome.solution.bound is None else prove(spec.problem, view, outcome, options)
    if found is None:
        raise NotApplicableError(f"{bound.model} found no bound that can be certified")
    return found


TTD = "ttd_s"
"""The metric that counts all jobs, even if only the completion times of a window's jobs count."""


def compared(
    rows: Sequence[SimulationRow], instances: Mapping[str, Instance], bounds: Iterable[Bound]
) -> list[SimulationRow]:
    """Return the rows with ratios, bounds and published numbers filled in; order is kept."""
    known = {bound.place: bound for bound in bounds}
    cases = {case[0].case: {row.policy: row for row in case} for case in grouped(rows, "case")}
    out = []
    for row in rows:
        spec, beside = POLICIES.get(row.policy), cases[row.case]
        reference = beside.get(spec.reference or f"{spec.paper}.online") or next(iter(beside.values()))
        bounded = row.replace(reference=reference.policy).knowing(
            ttd_ratio=_ratio(row.ttd_s, reference.ttd_s), jct_ratio=_ratio(row.jct_mean_s, reference.jct_mean_s)
        )
        for metric in BOUNDED:
            kind = row.fingerprint, metric, spec.sensitive, spec.forks, None if metric == TTD else row.window
            bounded = _with_bound(bounded, known.get((*kind, row.round_s)))
        out.append(_with_utilisation(bounded, instances.get(row.fingerprint)))
    out = with_published(out, instances)
    entries = ((row, entry) for row in out for entry in reversed(row.published))
    printed = {(row.case, row.policy, entry["quantity"]): entry["value"] for row, entry in entries}
    keys = ((row.case, row.reference or "", f"ttd_ratio:{row.policy}") for row in out)
    return [row.knowing(ttd_printed=printed.get(key)) for row, key in zip(out, keys, strict=True)]


def _with_utilisation(row: SimulationRow, instance: Instance | None) -> SimulationRow:
    """Add upper bounds on utilisation to the row of a policy that completed all jobs; a row above one is WRONG."""
    if instance is None or row.ttd_s is None or row.unfinished:
        return row
    policy = POLICIES.get(row.policy)
    found = utilisation(instance, policy, row.rules)
    for (name, most), used in zip(found.items(), (row.gru, row.cru), strict=True):
        row = row.knowing(**{f"{name}_bound": most})
        if used is not None and used > most * (1 + TOLERANCE):
            line = f"{name.upper()} {used:.9g} is above the upper bound {most:.9g}"
            row = row.replace(verified=False, violations=(*row.violations, line))
    return row


def utilisation(instance: Instance, policy: PolicySpec, rules: Rules) -> dict[str, float]:
    r"""Return upper bounds on GRU and CRU, the shares of GPU time and of server time that are spent computing.

    Let U be the time in which there is a job. Job j keeps up to :math:`h_j` GPUs (servers) busy, for no longer than U,
    and for :math:`B_j` of their time at most, with all of its work on its slowest type. The share is
    :math:`\sum_j \min(h_j U, B_j) / (H U)` or less, which falls with U, and U is no less than the least duration of
    any job. The bound is 100 % if jobs could keep the cluster busy on slow GPUs. :math:`B_j` is infinite if jobs may be
    slower than their GPUs: under policies that give out CPUs and memory, under policies that split jobs into copies
    (which wait for each other, and for the overhead of a round), and under plug-ins, which may declare any speed.
    """
    work, hosts = workload(instance), servers(instance)
    some = hosts.gpus > 0
    nodes = np.unique(hosts.machine[some]).size
    there = np.bincount(hosts.gpu_type, hosts.gpus, work.rates.shape[1]) > 0
    rates = np.where(there, work.rates, 0.0)
    held = np.minimum(work.gpus[:, None], hosts.gpus[some]).astype(float)
    fastest = (held * rates[:, hosts.gpu_type[some]]).sum(axis=1) if policy.forks else work.gpus * rates.max(axis=1)
    network_s = work.exchange_s[:, None] if rules.network else 0.0
    slowest = np.where(rates > 0, rates * rules.spread_factor / (1 + rates * network_s), np.inf).min(axis=1)
    slowed = policy.sensitive or policy.forks or plugins.owners([policy.id])
    busy = np.full(len(rates), np.inf) if slowed else work.work / slowest
    least = float((work.work / fastest).max())
    most = {
        "gru": (held.sum(axis=1) if policy.forks else work.gpus, float(hosts.gpus.sum())),
        "cru": (nodes if policy.forks else np.minimum(work.gpus, nodes), float(nodes)),
    }
    return {name: min(1.0, float(np.minimum(own, busy / least).sum()) / total) for name, (own, total) in most.items()}


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def _with_bound(row: SimulationRow, bound: Bound | None) -> SimulationRow:
    """Add a lower bound to the row of a policy; a row whose time is below the bound is WRONG.

    A bound counts all jobs (of a window). A policy that left jobs unfinished is not compared with it.
    """
    if bound is None or bound.seconds is None:
        return row
    least_s, time_s = bound.seconds, getattr(row, bound.metric)
    if time_s is None or row.unfinished:
        return row
    prefix, name = BOUNDED[bound.metric], SIMULATE[bound.metric].called
    row = row.replace(models={**row.models, f"{prefix}_bound_from": bound.model}).knowing(
        **{f"{prefix}_bound_s": least_s}
    )
    if time_s < least_s * (1 - TOLERANCE):
        line = f"{name} {time_s:.9g} s is below the lower bound {least_s:.9g} s of {bound.model}"
        return row.replace(verified=False, violations=(*row.violations, line))
    return row.knowing(**{f"{prefix}_bound_ratio": max(time_s / least_s, 1.0) if least_s > 0 else None})
