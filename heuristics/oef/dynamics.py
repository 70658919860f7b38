"""OEF over time (§3.2, §6): evaluator → placer → round-robin within tenants → placement, in 5-minute rounds.

The *evaluator* returns fractional shares of the tenants that have jobs at the moment; it is asked again
whenever that set changes. A tenant's weight is divided among the job types it has jobs of (§4.2.4). The placer rounds
the shares (:mod:`schedgap.heuristics.oef.rounding`) to a tenant's whole devices. These go to its jobs (§4.3, §4.4,
§6.1.3): which of them run (:func:`round_robin`), on which types (:func:`by_type`), on which servers (:func:`on_hosts`).
``packed`` is OEF's placement: large jobs first, on one type and on one host where possible. Without it jobs take
devices in the order in which they come, as the paper describes its baselines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from schedgap.heuristics.hadar.allox import AlloX
from schedgap.heuristics.oef import gandiva_fair
from schedgap.heuristics.oef.rounding import Placer, Rule
from schedgap.heuristics.registry import Oracle
from schedgap.heuristics.simulator import Assignment, State, Trace, Workload, servers, workload
from schedgap.heuristics.simulator.policies import policy
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.parameters import Parameter, base_id, passing
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import View, efficiency

Evaluator = Callable[[View], Array]
"""``evaluator(view)`` returns fractional shares ``(v, k)``."""

Request = tuple[int, int, int]
"""``(job, type, devices)``."""

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
    rounding
        Its rule; see :mod:`schedgap.heuristics.oef.rounding`.
    packed
        OEF's placement; see the module.
    demand_aware
        Whether a tenant gets no devices of a type rather than fewer than its smallest job needs (§4.3).
    noise, noise_seed
        Largest relative error of profiled rates, see :func:`profiled`; jobs advance by the true ones.

    Raises
    ------
    NotApplicableError
        If a job has no rate on some GPU type, or is larger than every type.
    """

    def __init__(
        self,
        instance: Instance,
        evaluate: Evaluator,
        rounding: Rule = "round",
        packed: bool = True,
        demand_aware: bool = True,
        noise: float = 0.0,
        noise_seed: int = 0,
    ) -> None:
        self.view: View = PAPERS.get("oef").view(instance)
        if noise:
            seen = profiled(self.view.speedups, noise, np.random.default_rng(noise_seed))
            self.view = replace(self.view, speedups=seen)
        self.work, self.cluster = workload(instance), servers(instance)
        self.row = _rows(instance, self.view, self.work)
        self.estimates: list[Array] = []
        self.granted: list[Ints] = []
        self._evaluate, self._packed, self._demand_aware = evaluate, packed, demand_aware
        self._placer = Placer(self.view.size, self.view.capacity, rounding)
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
        largest = view.capacity.max()
        for stuck, why in (
            (not own, "has a tenant without job types, where others declare theirs"),
            (rates[i].min() <= 0, "needs a positive rate on every GPU type"),
            (job.gpus > largest, f"needs {job.gpus} GPUs, more than the {largest:g} of the largest type"),
        ):
            if stuck:
                raise NotApplicableError(f"OEF's simulation: job {job.id} {why}")
        named = [row for row in own if view.labels[row].endswith(f"/{job.model or 'job'}")] or own
        distance = np.abs(np.log(view.true_speedups[named] / (rates[i] / rates[i, 0]))).sum(axis=1)
        chosen[i] = named[int(np.argmin(distance))]
    return chosen


def round_robin(row: Ints, gpus: Ints, starved: Ints, arrival_s: Array, devices: Ints) -> list[int]:
    """Return the jobs that run, longest starved first, then earliest arrival, then index.

    `row`, `gpus`, `starved` and `arrival_s` ``(a,)`` are each job's virtual tenant, gang, rounds of waiting and
    arrival; `devices` ``(v,)`` count all types together. A job that does not fit any more is passed over.
    """
    order = np.lexsort((arrival_s, -starved, row))
    left, rows, widths = devices.tolist(), row.tolist(), gpus.tolist()
    chosen = []
    for job in order.tolist():
        if widths[job] <= left[rows[job]]:
            left[rows[job]] -= widths[job]
            chosen.append(job)
    return chosen


def by_type(chosen: Sequence[int], row: Ints, gpus: Ints, devices: Ints, packed: bool) -> list[Request]:
    """Return how many devices of which type each chosen job takes from its tenant's ``(v, k)``.

    If `packed`, large jobs come first, each on the type whose devices it uses up best (the faster one where two are
    equal), and on several types only where no single one has enough. Otherwise slowest devices come first, in order of
    choice.
    """
    left = devices.tolist()
    rows, widths = row.tolist(), gpus.tolist()
    requests: list[Request] = []
    for job in sorted(chosen, key=lambda job: -widths[job]) if packed else chosen:
        have, wanted = left[rows[job]], widths[job]
        for kind in _types(have, wanted) if packed else range(len(have)):
            taken = min(have[kind], wanted)
            if taken:
                requests.append((job, kind, taken))
                have[kind] -= taken
                wanted -= taken
    return requests


def _types(have: list[int], wanted: int) -> list[int]:
    """Return the types to take `wanted` devices from: the tightest single one, or the fullest first."""
    enough = [kind for kind, devices in enumerate(have) if devices >= wanted]
    if enough:
        return [min(enough, key=lambda kind: (have[kind], -kind))]
    return sorted(range(len(have)), key=lambda kind: (-have[kind], -kind))


def on_hosts(requests: Sequence[Request], gpus: Ints, host_type: Ints, packed: bool) -> list[Request]:
    """Return ``(job, server, devices)`` for all requests, which fit on the servers' devices and types ``(h,)``.

    If `packed`, the largest request comes first, on the fullest host that has enough; over several hosts, the emptiest
    first, only where none has. Otherwise it is first fit in the order of `requests`, over as many hosts as it takes.
    """
    free = gpus.copy()
    hosts = [np.flatnonzero(host_type == kind) for kind in range(int(host_type.max()) + 1)]
    placed: list[Request] = []
    for job, kind, wanted in sorted(requests, key=lambda r: (-r[2], r[0])) if packed else requests:
        missing, among = wanted, hosts[kind]
        if packed:
            enough = among[free[among] >= wanted]
            order = np.argsort(-free[among], kind="stable")
            among = enough[[int(np.argmin(free[enough]))]] if enough.size else among[order]
        for server in among.tolist():
            taken = min(int(free[server]), missing)
            if taken:
                placed.append((job, server, taken))
                free[server] -= taken
                missing -= taken
            if not missing:
                break
    return placed


def throughput(instance: Instance, policy: object, trace: Trace) -> dict[str, float]:
    """Return the paper's own measures of policies (§6.1.4), beside the metrics of all policies.

    ``estimated_throughput`` is what fractional shares promise, ``actual_throughput`` what was done, both of all tenants
    together and on average over the rounds, in devices of the slowest type; the former is there for policies that have
    such shares. ``throughput_deviation`` is the gap between the two as a part of the former (§6.4.2).

    The paper divides by "the throughput of the same number of the slowest GPU devices". Taken literally, that is a
    speedup per device: (9) does not make it equal, although Fig. 4(a) shows it equal, and idle devices do not count. On
    ``gen/oef-20?load=8`` the shares of ``oef.cooperative`` are worth 21 % more than those of
    ``oef.gavel?row_cap=true``, but 0.6 % more per device.
    """
    view: View = PAPERS.get("oef").view(instance)
    numbers = {"actual_throughput": float(actual(view, trace).sum(axis=1).mean()) if trace.rounds else math.nan}
    if isinstance(policy, FairShares) and trace.rounds:
        promised = numbers["estimated_throughput"] = float(np.sum(policy.estimates, axis=1).mean())
        numbers["throughput_deviation"] = abs(promised - numbers["actual_throughput"]) / promised
    return numbers


def actual(view: View, trace: Trace) -> Array:
    """Return the work done in each round, ``(R, t)``, in iterations per second over those of one slowest GPU.

    It is NaN in rounds of jobs that do not run on the slowest type, as policies allow that need no shares.
    """
    work = trace.workload
    slowest = work.rates[:, work.gpu_types.index(view.gpu_types[0])]
    per_unit = trace.throughput(1 / np.where(slowest > 0, slowest, math.nan))
    return per_unit[:, [work.tenants.index(name) for name in view.tenants]]


def profiled(speedups: Array, error: float, rng: np.random.Generator) -> Array:
    """Return the speedups ``(v, k)`` of profiles in which every rate has a relative error uniform in ``±error``."""
    measured = speedups * rng.uniform(1 - error, 1 + error, speedups.shape)
    return np.asarray(measured / measured[:, :1])


ROUNDING = Parameter(
    "rounding",
    "how shares become devices: round is printed in §4.3 (by largest remainder where it exceeds capacity); tijdeman "
    "keeps debts below one device, throughputs within 1 % of it; memoryless carries no debt, as baselines of §6.3.2",
    choices=("round", "tijdeman", "largest_remainder", "memoryless"),
)
PACKED = Parameter("packed", "OEF's placement: large jobs first, on one type and one host where possible (§4.3)")
DEMAND_AWARE = Parameter("demand_aware", "none of a type rather than fewer devices than the smallest job needs (§4.3)")
NOISE = (
    Parameter("noise", "largest relative error, drawn uniformly, of every profiled rate (§6.4.2)", least=0.0, most=0.9),
    Parameter("noise_seed", "seed of these errors", least=0),
)
ROW_CAP = Parameter("row_cap", "at most one device per tenant, as in the allocation that the paper prints as (3)")


def fair_shares(
    instance: Instance, oracle: Oracle, *, evaluate: str, row_cap: bool = False, **settings: Any
) -> FairShares:
    """Return the policy that gives tenants the shares of an evaluator, see there and :class:`FairShares`."""
    name = f"{evaluate}?row_cap=true" if row_cap else evaluate
    return FairShares(instance, evaluator(name, oracle), **settings)


_build = passing(fair_shares, FairShares)
for _name in EVALUATORS:
    _own, _capped = _name in OEF_EVALUATORS, _name == "gavel"
    policy(
        f"oef.{_name}",
        source="OEF §4" if _own else "OEF §6.1.3, baseline without OEF's placement",
        measures=throughput,
        parameters=((ROW_CAP,) if _capped else ()) + (ROUNDING, PACKED, DEMAND_AWARE, *NOISE),
        variants=("row_cap=true",) if _capped else (),
    )(partial(_build, evaluate=_name, packed=_own))


@policy("oef.allox", source="AlloX (Le et al., EuroSys 2020), named in OEF §7", measures=throughput)
def allox(instance: Instance, oracle: Oracle) -> AlloX:
    """Return AlloX for an instance whose jobs fit on a single type, as OEF asks of its own.

    It raises `NotApplicableError` if some job does not.
    """
    policy = AlloX(workload(instance), servers(instance))
    stuck = np.flatnonzero(~policy.gangs.allowed[:, :-1].any(axis=1))
    if stuck.size:
        raise NotApplicableError(f"AlloX: job {policy.gangs.work.ids[stuck[0]]} fits on no single GPU type")
    return policy
