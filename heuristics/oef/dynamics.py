"""OEF over time (§3.2, §6): in 5-minute rounds, shares of tenants become devices, and these are given to jobs.

The *evaluator* returns fractional shares of the tenants that currently have jobs; it is called again whenever that set
changes. A tenant's weight is divided among those of its job types that have jobs (§4.2.4). The *placer*
(:mod:`schedgap.heuristics.oef.rounding`) rounds the shares to whole devices of a tenant. These go to its jobs (§4.3,
§4.4, §6.1.3): :func:`round_robin` selects jobs, :func:`by_type` types, and :func:`on_hosts` servers. ``packed`` is
OEF's placement: large jobs first, on one type and one host if possible. Without it, jobs take devices in order, as the
paper describes its baselines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

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
from schedgap.instances.views.oef import OefView, efficiency, matrix_instance

Evaluator = Callable[[OefView], Array]
"""A function ``evaluator(view)`` that returns the fractional shares ``(v, k)`` of tenants."""

Profile = Literal["rates", "speedups"]
"""What profiling errors are errors of."""

Request = tuple[int, int, int]
"""A job's request for devices of one GPU type: ``(job, type, devices)``."""

OEF_EVALUATORS = ("cooperative", "noncooperative")
EVALUATORS = (*OEF_EVALUATORS, "gavel", "maxmin", "gandiva_fair")


def evaluator(name: str, oracle: Oracle | None = None) -> Evaluator:
    """Return the evaluator `name`, one of :data:`EVALUATORS`.

    Parameters
    ----------
    name
        ``gandiva_fair`` and ``maxmin`` are computed here; the others are optima of ``oef.<name>``, which may have
        settings (``gavel?row_cap=true``).
    oracle
        ``models.oracle``, required for these optima.

    Raises
    ------
    UnknownNameError
        If there is no such evaluator; the message lists the closest names.
    UsageError
        If the evaluator needs the oracle and there is none.
    """
    if base_id(name) not in EVALUATORS:
        raise UnknownNameError(unknown("evaluator", name, EVALUATORS))
    if name == "gandiva_fair":
        return gandiva_fair.shares
    if name == "maxmin":
        return lambda view: view.equal_split
    if oracle is None:
        raise UsageError(f"evaluator {name!r} needs the optimum of oef.{name}; pass oracle=models.oracle")
    return lambda view: np.asarray(oracle(f"oef.{name}", of_its_own(view)).devices)


def of_its_own(view: OefView) -> OefView:
    """Return the view with an instance made of its own tenants, weights and speedups.

    A checker reads the instance. So it judges an answer against the tenants that the question was about, not against
    all tenants.
    """
    instance = matrix_instance(view.true_speedups, view.capacity, view.weight, view.speedups)
    return replace(view, instance=instance, gpu_types=tuple(kind.name for kind in instance.cluster.gpu_types))


def restricted(view: OefView, active: Bools) -> OefView:
    """Return the view with only the virtual tenants in the mask `active` ``(v,)``.

    Each real tenant's weight is divided equally among its active virtual tenants.
    """
    weight = np.bincount(view.owner, view.weight, len(view.tenants))
    count = np.bincount(view.owner[active], minlength=len(view.tenants))
    owner = view.owner[active]
    return replace(
        view,
        labels=tuple(label for label, kept in zip(view.labels, active, strict=True) if kept),
        owner=owner,
        weight=weight[owner] / count[owner],
        speedups=view.speedups[active],
        true_speedups=view.true_speedups[active],
        min_demand=view.min_demand[active],
    )


class FairShares:
    """A simulation policy that gives each tenant the share that an evaluator computes.

    Parameters
    ----------
    instance
        An instance whose jobs have a rate on every GPU type.
    evaluate
        The evaluator, which returns the fractional shares of the active tenants.
    rounding
        Rule of the placer; see :mod:`schedgap.heuristics.oef.rounding`.
    packed
        Whether to use OEF's placement; see the module.
    demand_aware
        Whether a tenant gets no devices of a type if it would get fewer than its smallest job needs (§4.3).
    noise, noise_of, noise_seed
        Largest relative error of profiles, what it is an error of (see :func:`profiled`), and the seed of the errors;
        jobs advance by the true rates.
    lie
        Factor by which the first tenant exaggerates each step to a faster type (§6.2.1).

    Raises
    ------
    NotApplicableError
        If a job has no rate on some GPU type, or needs more GPUs than any type has.
    """

    def __init__(
        self,
        instance: Instance,
        evaluate: Evaluator,
        rounding: Rule = "round",
        packed: bool = True,
        demand_aware: bool = True,
        *,
        noise: float = 0.0,
        noise_of: Profile = "rates",
        noise_seed: int = 0,
        lie: float = 1.0,
    ) -> None:
        self.view: OefView = PAPERS.get("oef").view(instance)
        speedups = self.view.speedups.copy()
        speedups[self.view.owner == 0] *= lie ** np.arange(speedups.shape[1])
        if noise:
            speedups = profiled(speedups, noise, np.random.default_rng(noise_seed), noise_of)
        self.view = replace(self.view, speedups=speedups)
        self.work, self.cluster = workload(instance), servers(instance)
        self.row = _rows(instance, self.view, self.work)
        self.present: list[Bools] = []
        self.estimates: list[Array] = []
        self.attainable: list[Array] = []
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
        self.present.append(active)
        self.estimates.append(efficiency(self.view.speedups, ideal))
        self.attainable.append(efficiency(self.view.true_speedups, ideal))
        self.granted.append(devices)
        chosen = round_robin(row, gpus, state.starved, state.arrival_s, devices.sum(axis=1))
        requests = by_type(chosen, row, gpus, devices, self._packed)
        requests = [(int(state.jobs[row]), kind, count) for row, kind, count in requests]
        return Assignment.of(on_hosts(requests, self.cluster.gpus, self._host_type, self._packed))

    def shares(self, active: Bools) -> Array:
        """Return the ``(v, k)`` fractional shares when the tenants of the mask `active` have jobs."""
        key = active.tobytes()
        if key not in self._shares:
            ideal = np.zeros_like(self.view.speedups)
            ideal[active] = self._evaluate(restricted(self.view, active))
            self._shares[key] = ideal
        return self._shares[key]


def _rows(instance: Instance, view: OefView, work: Workload) -> Ints:
    """Return each job's virtual tenant: the job type of its tenant with the same model and the closest speedups."""
    rates = work.rates[:, [work.gpu_types.index(name) for name in view.gpu_types]]
    rows_of: dict[str, list[int]] = {}
    for row, owner in enumerate(view.owner.tolist()):
        rows_of.setdefault(view.tenants[owner], []).append(row)
    chosen, largest = np.zeros(work.size, np.int64), view.capacity.max()
    for i, job in enumerate(instance.jobs):
        candidates = rows_of.get(work.tenants[work.tenant[i]], [])
        for fails, reason in (
            (not candidates, "has a tenant without job types, while other tenants declare theirs"),
            (rates[i].min() <= 0, "needs a positive rate on every GPU type"),
            (job.gpus > largest, f"needs {job.gpus} GPUs, more than the {largest:g} of the largest type"),
        ):
            if fails:
                raise NotApplicableError(f"OEF's simulation: job {job.id} {reason}")
        rows = [row for row in candidates if view.labels[row].endswith(f"/{job.model or 'job'}")] or candidates
        distance = np.abs(np.log(view.true_speedups[rows] / (rates[i] / rates[i, 0]))).sum(axis=1)
        chosen[i] = rows[int(np.argmin(distance))]
    return chosen


def round_robin(row: Ints, gpus: Ints, starved: Ints, arrival_s: Array, devices: Ints) -> list[int]:
    """Choose the jobs that run: in each virtual tenant, those that have waited longest, while its devices last.

    Ties go by arrival, then index; a job that does not fit into the devices left is skipped. `row`, `gpus`, `starved`
    and `arrival_s` ``(a,)`` are each job's virtual tenant, gang, rounds of waiting and arrival; `devices` ``(v,)``
    count all types together.
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
    """Choose the GPU types of the chosen jobs within their tenants' `devices` ``(v, k)``; return the requests.

    If `packed`, large jobs come first, each on the type that fits it most tightly (ties: the faster one), and on
    several types only if no single one has enough. Otherwise jobs keep their order and take the slowest devices first.
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
    """Return the types from which a job takes `wanted` devices, in order.

    This is the type with the fewest devices that are enough; if no type alone has enough, all types, the one with most
    devices first.
    """
    enough = [kind for kind, devices in enumerate(have) if devices >= wanted]
    if enough:
        return [min(enough, key=lambda kind: (have[kind], -kind))]
    return sorted(range(len(have)), key=lambda kind: (-have[kind], -kind))


def on_hosts(requests: Sequence[Request], gpus: Ints, host_type: Ints, packed: bool) -> list[Request]:
    """Place requests on servers; return ``(job, server, devices)`` for all of them.

    The requests must fit: servers have `gpus` ``(h,)`` devices of type `host_type` ``(h,)``. If `packed`, the largest
    request comes first, on the fullest host with enough devices; only if there is no such host, it takes several, the
    emptiest first. Otherwise placement is first fit in order, on as many hosts as needed.
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
    """Return the throughput that shares promise and the one that jobs achieve, as the paper measures them (§6.1.4).

    ``estimated_throughput`` is the throughput that fractional shares promise, ``actual_throughput`` the one achieved.
    Both are summed over tenants and averaged over rounds, in devices of the slowest type; the estimate exists only for
    policies with such shares. ``throughput_deviation`` is the gap between the two relative to the estimate (§6.4.2);
    ``profile_deviation`` is the part of it that false speedups cause, without rounding, demand and networks: the gap
    between what the shares promise and what they give by true speedups. ``first_throughput`` and ``other_throughput``
    are those of the first tenant, who may lie, and of all others; ``tenants_apart`` is that of :func:`apart`.

    The paper divides by "the throughput of the same number of the slowest GPU devices". Taken literally, that is a
    speedup per device: (9) does not make it equal for all tenants, although Fig. 4(a) shows it equal, and idle devices
    do not count.
    """
    view: OefView = PAPERS.get("oef").view(instance)
    if not trace.rounds:
        return {}
    means = actual(view, trace).mean(axis=0)
    numbers = {"actual_throughput": means.sum(), "first_throughput": means[0], "other_throughput": means[1:].sum()}
    if isinstance(policy, FairShares):
        promised = np.sum(policy.estimates, axis=1).mean()
        given = np.sum(policy.attainable, axis=1).mean()
        numbers |= {
            "estimated_throughput": promised,
            "throughput_deviation": abs(promised - numbers["actual_throughput"]) / promised,
            "profile_deviation": abs(promised - given) / promised,
            "tenants_apart": apart(policy, trace),
        }
    return {name: float(number) for name, number in numbers.items()}


def apart(policy: FairShares, trace: Trace) -> float:
    """Return how far apart the throughputs of virtual tenants are: largest minus smallest, relative to their mean.

    They are divided by the tenants' weights and averaged over the last rounds in which the same ones have jobs: in the
    end of Fig. 4(a), after a tenant has left, and of Fig. 5(b), after another has begun a second type of jobs.
    """
    view, last = policy.view, policy.present[-1]
    changes = np.flatnonzero((np.array(policy.present) != last).any(axis=1))
    begin = int(changes[-1]) + 1 if changes.size else 0
    slowest = trace.workload.rates[:, trace.workload.gpu_types.index(view.gpu_types[0])]
    per_row = trace.throughput(1 / slowest, policy.row)[begin:].mean(axis=0)
    own = np.pad(per_row, (0, view.size - per_row.size))[last] / restricted(view, last).weight
    return float(np.ptp(own) / own.mean()) if own.mean() > 0 else math.nan


def actual(view: OefView, trace: Trace) -> Array:
    """Return the ``(R, t)`` throughput of each tenant in each round, in GPUs of the slowest type.

    A tenant's throughput is NaN in rounds in which it has jobs that cannot run on the slowest type (policies without
    shares allow such jobs).
    """
    work = trace.workload
    slowest = work.rates[:, work.gpu_types.index(view.gpu_types[0])]
    per_unit = trace.throughput(1 / np.where(slowest > 0, slowest, math.nan))
    return per_unit[:, [work.tenants.index(name) for name in view.tenants]]


def profiled(speedups: Array, error: float, rng: np.random.Generator, of: Profile = "rates") -> Array:
    """Return the ``(v, k)`` speedups that a profiler would report if it is off by up to ``±error`` (uniform).

    Either each rate is off, that on the slowest type as well, or each speedup over the slowest type.
    """
    factor = rng.uniform(1 - error, 1 + error, speedups.shape)
    if of == "speedups":
        factor[:, 0] = 1.0
    measured = speedups * factor
    return np.asarray(measured / measured[:, :1])


ROUNDING = Parameter(
    "rounding",
    "rule that rounds shares to devices: round is printed in §4.3 (largest remainder if it exceeds capacity); tijdeman "
    "keeps debts below one device, throughputs within 1 % of it; memoryless carries no debt, as baselines of §6.3.2",
    choices=("round", "tijdeman", "largest_remainder", "memoryless"),
)
PACKED = Parameter("packed", "whether to place as OEF does: large jobs first, on one type and host if possible (§4.3)")
DEMAND_AWARE = Parameter("demand_aware", "no devices of a type rather than fewer than the smallest job needs (§4.3)")
NOISE = (
    Parameter("noise", "largest relative error, drawn uniformly, of every profile (§6.4.2)", least=0.0, most=0.9),
    Parameter("noise_of", "whether rates are off, or speedups over the slowest type", choices=("rates", "speedups")),
    Parameter("noise_seed", "seed of these errors", least=0),
)
LIE = Parameter("lie", "factor by which the first tenant exaggerates each step to a faster type", least=1.0, most=100.0)
ROW_CAP = Parameter("row_cap", "whether a tenant gets at most one device, as in the allocation printed as (3)")


def fair_shares(
    instance: Instance, oracle: Oracle, *, evaluate: str, row_cap: bool = False, **settings: Any
) -> FairShares:
    """Return the policy that gives tenants the shares of one evaluator (:func:`evaluator`, :class:`FairShares`)."""
    name = f"{evaluate}?row_cap=true" if row_cap else evaluate
    return FairShares(instance, evaluator(name, oracle), **settings)


_build = passing(fair_shares, FairShares)
for _name in EVALUATORS:
    _own, _capped = _name in OEF_EVALUATORS, _name == "gavel"
    policy(
        f"oef.{_name}",
        source="OEF §4" if _own else "OEF §6.1.3, baseline without OEF's placement",
        measures=throughput,
        parameters=((ROW_CAP,) if _capped else ()) + (ROUNDING, PACKED, DEMAND_AWARE, *NOISE, LIE),
        variants=("row_cap=true",) if _capped else (),
    )(partial(_build, evaluate=_name, packed=_own))


@policy("oef.allox", source="AlloX (Le et al., EuroSys 2020), named in OEF §7", measures=throughput)
def allox(instance: Instance, oracle: Oracle) -> AlloX:
    """Return the policy AlloX for an instance in which each job fits on a single type, as OEF's policies require.

    Raises `NotApplicableError` if some job does not.
    """
    policy = AlloX(workload(instance), servers(instance))
    misfits = np.flatnonzero(~policy.gangs.allowed[:, :-1].any(axis=1))
    if misfits.size:
        raise NotApplicableError(f"AlloX: job {policy.gangs.work.ids[misfits[0]]} fits on no single GPU type")
    return policy
