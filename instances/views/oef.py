"""OEF (Mo, Xu, Lau: *Optimal Resource Efficiency with Fairness in Heterogeneous GPU Clusters*, Middleware 2024).

Tenants share devices of several GPU types. Tenant ``l`` runs on a device of type ``j`` at speedup ``w[l, j]``, relative
to the slowest type; an allocation ``x[l, j]`` is a number of devices, which may be fractional. A tenant with several
job types is split into virtual tenants that share its weight equally (§4.2.4); rows of all arrays are virtual tenants.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from schedgap.instances.arrays import Array, Decision, Ints, members
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Cluster, GpuType, Instance, JobType, ServerGroup, Tenant
from schedgap.instances.schema.cluster import MOST_GPUS
from schedgap.instances.text import counted

LARGEST_RANGE = 1e6
"""Largest ratio of one tenant's rates, or of two tenants' weights. Solvers have tolerances of 1e-7 in double precision,
so that beyond this ratio the smaller coefficients of a row are lost. GPUs differ by less than a factor of 100."""


@dataclass(frozen=True, eq=False)
class OefView:
    """Arrays of the OEF models. ``v`` virtual tenants, ``k`` GPU types from slowest to fastest (by mean true rates).

    Attributes
    ----------
    instance
        The instance of the view.
    labels
        Name of each virtual tenant: the tenant's id, with the job type if the tenant has several.
    owner
        ``(v,)`` index into `tenants`.
    weight
        ``(v,)`` weight of the tenant divided by the number of its job types.
    capacity
        ``(k,)`` devices of each type.
    speedups
        ``(v, k)`` reported speedups, by which all methods decide; column 0 is 1.
    true_speedups
        ``(v, k)`` speedups that the jobs really reach; they differ if a tenant misreports.
    min_demand
        ``(v,)`` GPUs of the smallest job of each virtual tenant.
    """

    instance: Instance
    tenants: tuple[str, ...]
    labels: tuple[str, ...]
    gpu_types: tuple[str, ...]
    owner: Ints
    weight: Array
    capacity: Array
    speedups: Array
    true_speedups: Array
    min_demand: Ints

    @property
    def size(self) -> int:
        """Number of virtual tenants."""
        return len(self.labels)

    @property
    def asked(self) -> Mapping[str, Any]:
        """Facts that replace those of the instance in a check: the order of the GPU types, and the reported speedups.

        Tests of strategy-proofness ask a mechanism for its decision if a tenant reported other speedups.
        """
        types = [name for name, gpus in self.instance.cluster.gpus_by_type.items() if gpus]
        columns = [self.gpu_types.index(name) for name in types]
        return {"gpu_types": self.gpu_types, "rates": self.speedups[:, columns]}

    @cached_property
    def equal_split(self) -> Array:
        """``(v, k)`` devices if every type is divided in proportion to the weights."""
        return np.outer(self.weight / self.weight.sum(), self.capacity)

    @cached_property
    def split_efficiency(self) -> Array:
        """``(v,)`` reported efficiency of the equal split, the unit of a tenant's gains and losses."""
        return efficiency(self.speedups, self.equal_split)


@dataclass(frozen=True, eq=False, repr=False)
class Allocation(Decision):
    """Devices for every virtual tenant.

    Attributes
    ----------
    devices
        ``(v, k)`` devices, fractional; the average over rounds if there are rounds.
    rounds
        ``(rounds, v, k)`` integral devices of each round, for placers; absent for fractional shares.
    """

    devices: Array
    rounds: Ints | None = None


def efficiency(speedups: Array, devices: Array) -> Array:
    """Return ``E_l = Σ_j w[l, j]·x[l, j]``, shape ``(v,)``."""
    return np.asarray(np.einsum("lj,lj->l", speedups, devices))


def replicated(v: OefView, largest: int = 10_000) -> tuple[OefView, Ints]:
    """Return the unweighted view of §4.2.3, with replicas of each virtual tenant in proportion to its weight.

    Returns
    -------
    view, original
        View of replicas with weight 1, and ``(replicas,)`` rows of `v` that they replicate.

    Raises
    ------
    NotApplicableError
        If the weights have no common denominator small enough for at most `largest` replicas.
    """
    fractions = [Fraction(w).limit_denominator(1000) for w in v.weight.tolist()]
    scale = math.lcm(*(f.denominator for f in fractions))
    counts = np.array([int(f * scale) for f in fractions])
    counts //= math.gcd(*counts.tolist())
    if counts.sum() > largest:
        raise NotApplicableError(f"weights need {counts.sum()} replicas, more than {largest}")
    original, copy = members(counts)
    labels = tuple(f"{v.labels[i]}#{c + 1}" for i, c in zip(original, copy, strict=True))
    return _rows(v, original, labels, np.ones(len(original))), original


def _rows(v: OefView, rows: Ints, labels: tuple[str, ...], weight: Array) -> OefView:
    """Return the view of these rows of virtual tenants, which may repeat, with new labels and weights."""
    arrays = {name: getattr(v, name)[rows] for name in ("owner", "speedups", "true_speedups", "min_demand")}
    return replace(v, labels=labels, weight=weight, **arrays)


def merged(v: OefView) -> tuple[OefView, Ints]:
    """Return the view in which virtual tenants with equal speedups are merged and their weights added.

    It has the same optima if only efficiency per weight counts. Dividing the bundle of a merged tenant in proportion to
    the weights gives its members the same per weight; conversely, averaging the bundles of equal tenants creates no
    envy, since the value of an average is the average of the values.

    Returns
    -------
    view, group
        View of the merged tenants, and ``(v,)`` its row for each virtual tenant.
    """
    _, first, group = np.unique(v.speedups, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    weight = np.asarray(np.bincount(group, weights=v.weight), float)
    return _rows(v, first, tuple(v.labels[i] for i in first), weight), group


def unmerged(v: OefView, group: Ints, devices: Array) -> Array:
    """Return ``(v, k)`` the devices of virtual tenants, if those of :func:`merged` divide theirs by weight."""
    part = v.weight / np.bincount(group, weights=v.weight)[group]
    return np.asarray(devices[group] * part[:, None])


def whole(v: OefView) -> tuple[OefView, Ints]:
    """Return the view with one row per tenant: a tenant with several job types runs the fastest one on each type.

    A tenant's weight is that of all its job types together, and its speedup on a type is its largest.

    Returns
    -------
    view, best
        View of the tenants, and ``(tenants, k)`` the row of `v`, the first if there are several, that is fastest.
    """
    first = np.unique(v.owner, return_index=True)[1]
    speedups, true = (np.zeros((len(v.tenants), v.capacity.size)) for _ in range(2))
    np.maximum.at(speedups, v.owner, v.speedups)
    np.maximum.at(true, v.owner, v.true_speedups)
    smallest = np.full(len(v.tenants), np.iinfo(np.int64).max)
    np.minimum.at(smallest, v.owner, v.min_demand)
    best = np.full(speedups.shape, v.size)
    fastest = v.speedups == speedups[v.owner]
    np.minimum.at(best, v.owner, np.where(fastest, np.arange(v.size)[:, None], v.size))
    weight = np.asarray(np.bincount(v.owner, v.weight), float)
    seen = _rows(v, first, v.tenants, weight)
    return replace(seen, speedups=speedups, true_speedups=true, min_demand=smallest), best


class Kinds(NamedTuple):
    """Tenants as a whole, those with equal speedups merged.

    `view` has one row per kind, `tenants` one per tenant, and `group` ``(tenants,)`` is the kind of each tenant; `best`
    ``(tenants, k)`` is the one of `rows` rows that is fastest on each type.
    """

    view: OefView
    group: Ints
    tenants: OefView
    best: Ints
    rows: int

    def divided(self, devices: Array) -> Array:
        """Return ``(v, k)`` the devices of all rows, if each kind divides its devices ``(n, k)`` by weight."""
        return on_fastest(self.best, self.rows, unmerged(self.tenants, self.group, devices))


def on_fastest(best: Ints, rows: int, devices: Array) -> Array:
    """Return ``(rows, k)`` the devices of rows, if those of tenants ``(tenants, k)`` run the `best` on each type."""
    found = np.zeros((rows, devices.shape[1]))
    found[best, np.arange(devices.shape[1])] = devices
    return found


def kinds(v: OefView) -> Kinds:
    """Return the kinds of the tenants of a view."""
    seen, best = whole(v)
    small, group = merged(seen)
    small = replace(small, tenants=small.labels, owner=np.arange(small.size))
    return Kinds(small, group, seen, best, v.size)


def sampled(v: OefView, rows: Ints) -> OefView:
    """Return the view of some virtual tenants, with a part of all devices in proportion to their weight."""
    few = _rows(v, rows, tuple(v.labels[row] for row in rows.tolist()), v.weight[rows])
    return replace(few, capacity=v.capacity * (few.weight.sum() / v.weight.sum()))


def matrix_view(speedups: ArrayLike, capacity: ArrayLike, weight: ArrayLike | None = None) -> OefView:
    """Return the view of :func:`matrix_instance`, for tests and notebooks."""
    instance = matrix_instance(speedups, capacity, weight)
    return view(instance, order=[kind.name for kind in instance.cluster.gpu_types])


def matrix_instance(
    speedups: ArrayLike, capacity: ArrayLike, weight: ArrayLike | None = None, reported: ArrayLike | None = None
) -> Instance:
    """Return an instance made of plain arrays, with tenants ``u1 …`` and types ``GPU1 …``.

    Parameters
    ----------
    speedups, reported
        ``(n, k)`` speedups, types from slowest to fastest, and those that the tenants report, by default the same.
    capacity, weight
        ``(k,)`` devices, whole numbers; ``(n,)`` weights, 1 by default.

    Raises
    ------
    ValueError
        If a speedup or weight is not positive, or devices are not whole.
    """
    true = np.asarray(speedups, float)
    shown = true if reported is None else np.asarray(reported, float)
    weights = np.ones(len(true)) if weight is None else np.asarray(weight, float)
    types, tenants = [f"GPU{j + 1}" for j in range(true.shape[1])], []
    for i, (w, *rows) in enumerate(zip(weights.tolist(), true.tolist(), shown.tolist(), strict=True)):
        rates, claimed = (dict(zip(types, row, strict=True)) for row in rows)
        kind = JobType(name="job", rates=rates, reported_rates=claimed if claimed != rates else None)
        tenants.append(Tenant(id=f"u{i + 1}", weight=w, job_types=(kind,)))
    groups = []
    for name, devices in zip(types, np.asarray(capacity, float).tolist(), strict=True):
        full, left = divmod(int(devices) if devices == int(devices) else devices, MOST_GPUS)
        if full:
            label = f"{name}, full servers"
            groups.append(ServerGroup(name=label, count=int(full), gpu_type=name, gpus=MOST_GPUS))
        if left or not full:
            groups.append(ServerGroup(name=name, count=1, gpu_type=name, gpus=left))
    cluster = Cluster(gpu_types=tuple(GpuType(name=name) for name in types), servers=tuple(groups))
    return Instance(name="matrix", cluster=cluster, tenants=tuple(tenants))


def view(instance: Instance, order: Sequence[str] | None = None) -> OefView:
    """Return the OEF view of `instance`; `order` has its GPU types from slowest to fastest, by default by mean rates.

    Job types come from the tenants if any tenant declares some, otherwise from the tenants' jobs (one job type per
    model and speedups). A job without a tenant counts as its own tenant. GPU types that the cluster lacks are left out.
    It raises `NotApplicableError` if no job type has a positive rate on every GPU type of the cluster, or if speedups
    or weights are further apart than :data:`LARGEST_RANGE`.
    """
    types = [r for r, count in instance.cluster.gpus_by_type.items() if count > 0]
    smallest = {t.id: min((j.gpus for j in instance.jobs if j.tenant == t.id), default=1) for t in instance.tenants}
    declared = [
        _VirtualTenant(t.id, kind, t.weight / len(t.job_types), smallest[t.id])
        for t in instance.tenants
        for kind in t.job_types
    ]
    rows = declared or _from_jobs(instance, types)
    if not rows:
        raise NotApplicableError(f"OEF needs tenants with a positive rate on each GPU type ({', '.join(types)})")
    true = np.array([[row.kind.rates[r] for r in types] for row in rows])
    by_rate = np.argsort(np.log(true).mean(axis=0), kind="stable").tolist()
    column = [types.index(name) for name in order if name in types] if order else by_rate
    reported = np.array([[(row.kind.reported_rates or row.kind.rates)[r] for r in types] for row in rows])
    _check_range("rates of one tenant", np.concatenate([true, reported]))
    _check_range("weights of tenants", np.array([[row.weight for row in rows]]))
    count = Counter(row.tenant for row in rows)
    tenants = tuple(count)
    return OefView(
        instance=instance,
        tenants=tenants,
        labels=tuple(f"{row.tenant}/{row.kind.name}" if count[row.tenant] > 1 else row.tenant for row in rows),
        gpu_types=tuple(types[j] for j in column),
        owner=np.array([tenants.index(row.tenant) for row in rows]),
        weight=np.array([row.weight for row in rows]),
        capacity=np.array([instance.cluster.gpus_by_type[types[j]] for j in column], float),
        speedups=reported[:, column] / reported[:, column[:1]],
        true_speedups=true[:, column] / true[:, column[:1]],
        min_demand=np.array([row.min_demand for row in rows]),
    )


def _check_range(what: str, numbers: Array) -> None:
    """Raise `NotApplicableError` if a row's range is too large for certificates in double precision."""
    for row in numbers:
        if row.max() > LARGEST_RANGE * row.min():
            span = f"from {row.min():g} to {row.max():g}"
            raise NotApplicableError(f"{what} {span}: OEF needs them within a factor of {LARGEST_RANGE:g}")


class _VirtualTenant(NamedTuple):
    tenant: str
    kind: JobType
    weight: float
    min_demand: int


def _from_jobs(instance: Instance, types: list[str]) -> list[_VirtualTenant]:
    """Return virtual tenants made from the jobs: one per tenant, model and speedups (not rates)."""
    weights = {t.id: t.weight for t in instance.tenants}
    demands: dict[str, dict[tuple[str, tuple[float, ...]], int]] = {t.id: {} for t in instance.tenants}
    for job in instance.jobs:
        rates = [job.rates.get(r, 0.0) for r in types]
        if min(rates) > 0:
            _check_range(f"rates of {job.id}", np.array([rates]))
            kinds = demands.setdefault(job.tenant or job.id, {})
            # Rounded to twelve digits, since equal speedups computed from different rates differ in the last digits.
            key = (job.model or "job", tuple(float(f"{rate / max(rates):.12g}") for rate in rates))
            kinds[key] = min(kinds.get(key, job.gpus), job.gpus)
    rows = []
    for tenant, kinds in demands.items():
        for (model, speeds), gpus in kinds.items():
            kind = JobType(name=model, rates=dict(zip(types, speeds, strict=True)))
            rows.append(_VirtualTenant(tenant, kind, weights.get(tenant, 1.0) / len(kinds), gpus))
    return rows


def describe(v: OefView) -> str:
    """Return the caption of a comparison: tenants and devices."""
    devices = ", ".join(f"{m:g} {name}" for name, m in zip(v.gpu_types, v.capacity, strict=True))
    virtual = f" ({v.size} virtual tenants by job type)" if v.size > len(v.tenants) else ""
    return f"{counted(len(v.tenants), 'tenant')}{virtual} on {devices}; efficiency: total speedup over the slowest type"


_largest = partial(Problem, sense="max", unit="slowest-GPU equivalents")
ALLOCATION = _largest("oef.allocation", "largest total efficiency within capacity")
EQUAL = _largest(
    "oef.equal_efficiency",
    "largest total efficiency at equal efficiency for all tenants",
    restricts=ALLOCATION.id,
    requires="equal efficiency",
)
SHARING = _largest(
    "oef.sharing_incentive",
    "largest total efficiency with at least an equal split for everybody",
    restricts=ALLOCATION.id,
    requires="the sharing incentive",
)
# An envy-free optimum allocates all devices; then summing the envy constraints gives sharing incentive (Theorem 5.1).
ENVY_FREE = _largest(
    "oef.envy_free",
    "largest total efficiency without envy between tenants",
    restricts=SHARING.id,
    requires="envy-freeness",
    base=ALLOCATION.id,
)
NASH = Problem(
    "oef.nash_welfare",
    "largest Nash welfare, the product by weight of the tenants' gains over an equal split",
    "max",
    "equal splits",
)
LEAST = Problem("oef.least_gain", "largest least gain of a tenant over an equal split", "max", "equal splits")

FAIR = _largest(
    "oef.fair",
    "largest total efficiency with at most a part ε of envy and at least a share σ of an equal split",
    restricts=ALLOCATION.id,
    requires="a degree of fairness",
)

PAPERS.register(
    PaperSpec(
        id="oef",
        title="Mo, Xu, Lau: Optimal Resource Efficiency with Fairness in Heterogeneous GPU Clusters (Middleware 2024)",
        view=view,
        problems=(ALLOCATION, EQUAL, SHARING, ENVY_FREE, NASH, LEAST, FAIR),
        decision=Allocation,
        describe=describe,
        counts="tenants",
    )
)
