"""OEF over time (§3.2, §6): evaluator → placer → round-robin within tenants → placement, in 5-minute rounds.

The *evaluator* returns fractional shares of the tenants that have jobs at the moment; it is asked again
whenever that set changes. A tenant's weight is divided among the job types it has jobs of (§4.2.4). The
placer rounds the shares (:mod:`schedgap.heuristics.oef.rounding`), jobs take turns within a tenant, and
:mod:`schedgap.heuristics.oef.placement` finds the hosts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from schedgap.heuristics import simulator
from schedgap.heuristics.oef import gandiva_fair
from schedgap.heuristics.oef.placement import by_type, on_hosts, round_robin
from schedgap.heuristics.oef.rounding import Placer, Rule
from schedgap.heuristics.registry import Oracle
from schedgap.heuristics.simulator import Assignment, State, Trace, Workload, servers, workload
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import View, efficiency

Evaluator = Callable[[View], Array]
"""``evaluator(view)`` returns fractional shares ``(v, k)``."""

OEF_EVALUATORS = ("cooperative", "noncooperative")
EVALUATORS = (*OEF_EVALUATORS, "gavel", "maxmin", "gandiva_fair")


def evaluator(name: str, oracle: Oracle | None = None) -> Evaluator:
    """Return the evaluator of that name, one of :data:`EVALUATORS`.

    Parameters
    ----------
    name
        ``gandiva_fair`` and ``maxmin`` are computed here, the others are the optimum of ``oef.<name>``, which may
        have settings (``gavel?row_cap=true``).
    oracle
        ``models.oracle``, for those.

    Raises
    ------
    UnknownNameError
        If there is none; the message names the nearest known ones.
    UsageError
        If it needs the oracle and there is none.
    """
    if base_id(name) not in EVALUATORS:
        raise UnknownNameError(unknown("evaluator", name, EVALUATORS))
    if name == "gandiva_fair":
        return gandiva_fair.shares
    if name == "maxmin":
        return lambda view: view.equal_split
    if oracle is None:
        raise UsageError(f"evaluator {name!r} is the optimum of oef.{name}: pass oracle=models.oracle")
    return lambda view: np.asarray(oracle(f"oef.{name}", view).devices)


def restricted(view: View, active: Bools) -> View:
    """Return the view of the virtual tenants of the mask `active` ``(v,)``.

    Each real tenant's weight is divided equally among its active virtual tenants.
    """
    whole = np.bincount(view.owner, view.weight, len(view.tenants))
    parts = np.bincount(view.owner[active], minlength=len(view.tenants))
    owner = view.owner[active]
    return replace(
        view,
        labels=tuple(label for label, here in zip(view.labels, active, strict=True) if here),
        owner=owner,
        weight=whole[owner] / parts[owner],
        speedups=view.speedups[active],
        true_speedups=view.true_speedups[active],
        min_demand=view.min_demand[active],
    )


class FairShares:
    """A simulation policy that gives tenants their evaluator's shares.

    Parameters
    ----------
    instance
        Tenants with jobs that have a rate on every GPU type.
    evaluate
        Fractional shares of the active tenants.
    rule
        Rounding rule; see :mod:`schedgap.heuristics.oef.rounding`.
    packed
        OEF's placement; see :mod:`schedgap.heuristics.oef.placement`.
    demand_aware
        Whether a tenant gets no devices of a type rather than fewer than its smallest job needs (§4.3).

    Raises
    ------
    NotApplicableError
        If a job has no rate on some GPU type, or is larger than every type.
    """

    def __init__(
        self,
        instance: Instance,
        evaluate: Evaluator,
        rule: Rule = "tijdeman",
        packed: bool = True,
        demand_aware: bool = True,
    ) -> None:
        self.view: View = PAPERS.get("oef").view(instance)
        self.work, self.cluster = workload(instance), servers(instance)
        self.row = _rows(instance, self.view, self.work)
        self.estimates: list[Array] = []
        self.granted: list[Ints] = []
        self._evaluate, self._packed, self._demand_aware = evaluate, packed, demand_aware
        self._placer = Placer(self.view.size, self.view.capacity, rule)
        self._active: Bools = np.zeros(self.view.size, bool)
        self._shares: dict[bytes, Array] = {}
        position = {name: j for j, name in enumerate(self.view.gpu_types)}
        self._host_type = np.array([position.get(self.work.gpu_types[r], -1) for r in self.cluster.gpu_type])

    def __call__(self, state: State) -> Assignment:
        """Return the gangs that run this round."""
        row, gpus = self.row[state.jobs], state.gpus
        active = np.zeros(self.view.size, bool)
        active[row] = True
        self._placer.forget(self._active & ~active)
        self._active = active
        ideal = self.shares(active)
        smallest = np.ones(self.view.size, np.int64)
        if self._demand_aware:
            smallest[:] = np.iinfo(np.int64).max
            np.minimum.at(smallest, row, gpus)
        devices = self._placer.place(ideal, smallest)
        self.estimates.append(efficiency(self.view.speedups, ideal))
        self.granted.append(devices)
        chosen = round_robin(row, gpus, state.starved, state.arrival_s, devices.sum(axis=1))
        requests = by_type(chosen, row, gpus, devices, self._packed)
        named = [(int(state.jobs[job]), kind, count) for job, kind, count in requests]
        return Assignment.of(on_hosts(named, self.cluster.gpus, self._host_type, self._packed))

    def shares(self, active: Bools) -> Array:
        """Return ``(v, k)`` fractional shares while the tenants of the mask `active` are there."""
        key = active.tobytes()
        if key not in self._shares:
            ideal = np.zeros_like(self.view.speedups)
            ideal[active] = self._evaluate(restricted(self.view, active))
            self._shares[key] = ideal
        return self._shares[key]


def _rows(instance: Instance, view: View, work: Workload) -> Ints:
    """Return the virtual tenant of every job: its tenant's, of the same model and the nearest speedups."""
    rates = work.rates[:, [work.gpu_types.index(name) for name in view.gpu_types]]
    rows_of: dict[str, list[int]] = {}
    for row, owner in enumerate(view.owner.tolist()):
        rows_of.setdefault(view.tenants[owner], []).append(row)
    chosen = np.zeros(work.size, np.int64)
    for i, job in enumerate(instance.jobs):
        own = rows_of.get(work.tenants[work.tenant[i]], [])
        problem = _obstacle(bool(own), rates[i], job.gpus, float(view.capacity.max()))
        if problem:
            raise NotApplicableError(f"OEF's simulation: job {job.id} {problem}")
        named = [row for row in own if view.labels[row].endswith(f"/{job.model or 'job'}")] or own
        distance = np.abs(np.log(view.true_speedups[named] / (rates[i] / rates[i, 0]))).sum(axis=1)
        chosen[i] = named[int(np.argmin(distance))]
    return chosen


def _obstacle(known: bool, rates: Array, gpus: int, largest: float) -> str | None:
    """Return why OEF cannot place a job, if it cannot."""
    if not known:
        return "has a tenant without job types, where others declare theirs"
    if rates.min() <= 0:
        return "needs a positive rate on every GPU type"
    if gpus > largest:
        return f"needs {gpus} GPUs, more than the {largest:g} of the largest type"
    return None


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Shares promised to ``t`` tenants, and devices that they got, over ``R`` simulated rounds.

    Attributes
    ----------
    view
        All tenants that ever come, with their job types.
    trace
        The simulation: completions, allocations, stragglers, decision times.
    estimated
        ``(R, t)`` efficiency that the evaluator's fractional shares promise at reported speedups.
    actual
        ``(R, t)`` work done, in slowest-GPU equivalents: iterations per second over those of one slowest GPU.
    devices
        ``(R, v, k)`` whole devices of the virtual tenants.
    """

    view: View
    trace: Trace
    estimated: Array
    actual: Array
    devices: Ints

    def summary(self) -> dict[str, float]:
        """Return means over the rounds, and over the jobs that finished."""
        jct = self.trace.jct_s[np.isfinite(self.trace.jct_s)]
        return {
            "estimated_throughput": float(self.estimated.sum(axis=1).mean()),
            "actual_throughput": float(self.actual.sum(axis=1).mean()),
            "mean_jct_s": float(jct.mean()) if jct.size else math.nan,
            "finished_jobs": float(jct.size),
            "stragglers": float(self.trace.stragglers.sum()),
            "straggler_share": self.trace.straggler_share,
            "decision_s": float(self.trace.decision_s.mean()),
        }


def simulate(
    instance: Instance,
    evaluate: str | Evaluator,
    oracle: Oracle | None = None,
    *,
    rule: Rule = "tijdeman",
    packed: bool | None = None,
    round_s: float = 300.0,
    restart_s: float = 0.0,
    spread_factor: float = 1.0,
    until_s: float = math.inf,
) -> Dynamics:
    """Simulate an instance under one evaluator.

    Parameters
    ----------
    instance
        Tenants and jobs; tenants come and go at ``arrive_s`` and ``leave_s``.
    evaluate
        One of :data:`EVALUATORS`, or a function from view to shares.
    oracle
        ``models.oracle``, for the evaluators that are models.
    rule, packed
        Rounding rule, and whether to use OEF's placement; by default OEF's own evaluators do, the others
        place jobs in the order in which they come, as the paper compares them (§6.3).
    round_s, restart_s, spread_factor, until_s
        See :func:`schedgap.heuristics.simulator.simulate`.

    Raises
    ------
    UsageError
        If an option, the evaluator or the instance does not fit.
    """
    if packed is None:
        packed = not isinstance(evaluate, str) or evaluate in OEF_EVALUATORS
    shares = evaluator(evaluate, oracle) if isinstance(evaluate, str) else evaluate
    policy = FairShares(instance, shares, rule, packed)
    trace = simulator.simulate(
        policy.work,
        policy.cluster,
        policy,
        round_s=round_s,
        restart_s=restart_s,
        spread_factor=spread_factor,
        until_s=until_s,
    )
    return _dynamics(policy, trace)


def throughput(instance: Instance, policy: object, trace: Trace) -> dict[str, float]:
    """Return the paper's own measures of policies (§6.1.4), beside the metrics of all policies.

    ``estimated_throughput`` is what fractional shares promise, ``actual_throughput`` what was done, both of all tenants
    together and on average over the rounds, in devices of the slowest type; the former is there for policies that have
    such shares.
    """
    view: View = PAPERS.get("oef").view(instance)
    numbers = {"actual_throughput": float(_actual(view, trace).sum(axis=1).mean()) if trace.rounds else math.nan}
    if isinstance(policy, FairShares) and trace.rounds:
        numbers["estimated_throughput"] = float(np.sum(policy.estimates, axis=1).mean())
    return numbers


def _actual(view: View, trace: Trace) -> Array:
    """Return the work done in each round, ``(R, t)``, in iterations per second over those of one slowest GPU."""
    work = trace.workload
    slowest = work.rates[:, work.gpu_types.index(view.gpu_types[0])]
    return trace.throughput(1 / slowest)[:, [work.tenants.index(name) for name in view.tenants]]


def _dynamics(policy: FairShares, trace: Trace) -> Dynamics:
    view = policy.view
    estimated = np.zeros((trace.rounds, len(view.tenants)))
    np.add.at(estimated.T, view.owner, np.reshape(policy.estimates, (-1, view.size)).T)
    return Dynamics(
        view=view,
        trace=trace,
        estimated=estimated,
        actual=_actual(view, trace),
        devices=np.reshape(policy.granted, (-1, *view.speedups.shape)),
    )


@dataclass(frozen=True)
class ProfilingError:
    """Losses by wrong profiles, as parts of total efficiency.

    Attributes
    ----------
    deviation
        ``|promised − reached| / promised``: promised at profiled, reached at true speedups. These are the
        paper's words (§6.4.2); a maximum over noisy numbers promises too much, so it exceeds the loss.
    loss
        ``1 − reached / reachable``, with what the evaluator reaches on true profiles.
    """

    deviation: float
    loss: float


def profiling_error(view: View, evaluate: Evaluator, error: float, rng: np.random.Generator) -> ProfilingError:
    """Return the losses by errors of profiling (Fig. 10b).

    The rate of each tenant on each type is profiled with a relative error uniform in ``±error``; the
    evaluator sees the speedups of these profiles.

    Parameters
    ----------
    view
        Its true speedups are the truth.
    evaluate
        Fractional shares.
    error
        Largest relative error, in [0, 1).
    rng
        Source of the errors.

    Raises
    ------
    UsageError
        If `error` is out of range.
    """
    if not 0 <= error < 1:
        raise UsageError(f"error = {error:g}: a relative error of profiling is within [0, 1)")
    truth = view.true_speedups
    measured = truth * rng.uniform(1 - error, 1 + error, truth.shape)
    profiled = measured / measured[:, :1]
    devices = evaluate(replace(view, speedups=profiled))
    reachable = float(efficiency(truth, evaluate(replace(view, speedups=truth))).sum())
    promised, reached = (float(efficiency(speedups, devices).sum()) for speedups in (profiled, truth))
    return ProfilingError(abs(promised - reached) / promised, 1 - reached / reachable)
