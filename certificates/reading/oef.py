"""Reads tenants that share devices (OEF): speedups, weights, and the devices of each type.

Rows are virtual tenants: a tenant with several job types is one row for each of them, which share its weight equally.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..basics import Array, Data, require
from .servers import capacities


@dataclass(frozen=True, eq=False)
class RawTenants:
    """``v`` virtual tenants that share ``k`` GPU types: those types of which the cluster has devices.

    Attributes
    ----------
    labels
        Name of each row: the tenant's id, with the job type if the tenant has several.
    tenants, owner
        Ids of tenants, and ``(v,)`` whose row it is.
    weight
        ``(v,)`` weight of the tenant divided by the number of its job types.
    devices
        Devices by name of the GPU type.
    rates, true_rates
        ``(v, k)`` rates as reported, and as they are, in the order of `devices`.
    gpu_types
        Types from the slowest to the fastest, by their mean true rates; the order of the columns below.
    epsilon, sigma
        Part that a tenant may lack of what another's devices are worth to it, and part of the equal split that every
        tenant needs, in ``oef.fair``; by default it requires neither.
    """

    labels: tuple[str, ...]
    tenants: tuple[str, ...]
    owner: Array
    weight: Array
    devices: dict[str, int]
    rates: Array
    true_rates: Array
    gpu_types: tuple[str, ...]
    epsilon: float = 1.0
    sigma: float = 0.0

    @cached_property
    def capacity(self) -> Array:
        """``(k,)`` devices of each type."""
        return np.array([self.devices[name] for name in self.gpu_types], float)

    @cached_property
    def speedups(self) -> Array:
        """``(v, k)`` reported speedups over the slowest type."""
        return self._over_slowest(self.rates)

    @cached_property
    def true_speedups(self) -> Array:
        """``(v, k)`` true speedups over the slowest type."""
        return self._over_slowest(self.true_rates)

    @cached_property
    def whole(self) -> RawTenants:
        """The tenants with one row each: on every type, a tenant runs the fastest of its job types."""
        order = [self.gpu_types.index(name) for name in self.devices]
        rates, true = (self._largest(speedups)[:, order] for speedups in (self.speedups, self.true_speedups))
        return replace(
            self,
            labels=self.tenants,
            owner=np.arange(len(self.tenants)),
            weight=np.asarray(np.bincount(self.owner, self.weight), float),
            rates=rates,
            true_rates=true,
        )

    def _largest(self, speedups: Array) -> Array:
        found = np.zeros((len(self.tenants), speedups.shape[1]))
        np.maximum.at(found, self.owner, speedups)
        return found

    def of_tenants(self, rows: Array) -> Array:
        """Return the sums ``(tenants, …)`` of what the rows of each tenant have."""
        total = np.zeros((len(self.tenants), *rows.shape[1:]))
        np.add.at(total, self.owner, rows)
        return total

    def _over_slowest(self, rates: Array) -> Array:
        order = [list(self.devices).index(name) for name in self.gpu_types]
        return np.asarray(rates[:, order] / rates[:, order[:1]])


class VirtualTenant(NamedTuple):
    """A virtual tenant: its tenant, the name of the job type, its weight, and its rates by GPU type."""

    tenant: str
    kind: str
    weight: float
    rates: Data
    true_rates: Data


def shares_of(data: Data) -> RawTenants:
    """Return the tenants of an instance and what they share.

    Job types come from the tenants if any tenant declares some. Otherwise they are made from the tenants' jobs, one for
    each model and speedups; a job without a tenant counts as its own tenant.
    """
    devices = {name: gpus for name, gpus in capacities(data).items() if gpus}
    rows = list(_declared(data)) or list(_from_jobs(data, list(devices)))
    require(bool(rows), "no tenant has a rate on each GPU type")
    columns = ([row.rates for row in rows], [row.true_rates for row in rows])
    rates, true = (np.array([[row[r] for r in devices] for row in column]) for column in columns)
    order = np.argsort(np.log(true).mean(axis=0), kind="stable")
    kinds = Counter(row.tenant for row in rows)
    number = {tenant: t for t, tenant in enumerate(kinds)}
    return RawTenants(
        labels=tuple(f"{row.tenant}/{row.kind}" if kinds[row.tenant] > 1 else row.tenant for row in rows),
        tenants=tuple(kinds),
        owner=np.array([number[row.tenant] for row in rows]),
        weight=np.array([row.weight for row in rows]),
        devices=devices,
        rates=rates,
        true_rates=true,
        gpu_types=tuple(list(devices)[j] for j in order),
    )


def _declared(data: Data) -> Iterator[VirtualTenant]:
    for tenant in data.get("tenants", ()):
        kinds: Sequence[Data] = tenant.get("job_types", ())
        for kind in kinds:
            reported = kind.get("reported_rates") or kind["rates"]
            yield VirtualTenant(
                tenant["id"], kind["name"], tenant.get("weight", 1.0) / len(kinds), reported, kind["rates"]
            )


def _from_jobs(data: Data, types: Sequence[str]) -> Iterator[VirtualTenant]:
    """Yield rows made from the jobs; speedups are rounded to twelve digits, so that equal ones compare as equal."""
    weights = {tenant["id"]: tenant.get("weight", 1.0) for tenant in data.get("tenants", ())}
    kinds: dict[str, dict[Any, None]] = {tenant: {} for tenant in weights}
    for job in data.get("jobs", ()):
        rates = [job.get("rates", {}).get(r, 0.0) for r in types]
        if min(rates) > 0:
            speeds = tuple(float(f"{rate / max(rates):.12g}") for rate in rates)
            kinds.setdefault(job.get("tenant", job["id"]), {})[job.get("model", "job"), speeds] = None
    for tenant, own in kinds.items():
        for model, speeds in own:
            rates_of = dict(zip(types, speeds, strict=True))
            yield VirtualTenant(tenant, model, weights.get(tenant, 1.0) / len(own), rates_of, rates_of)
