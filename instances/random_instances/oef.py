"""Instances of OEF with tenants of given or random speedups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from schedgap.instances.canonical import validate
from schedgap.instances.random_instances.registry import RANDOM, RandomSpec, cluster
from schedgap.instances.schema import Instance

Numbers = Sequence[float]

JobTypes = Sequence[Numbers]
"""Rates of each of a tenant's job types on every GPU type."""


def of_tenants(
    tenants: Sequence[JobTypes],
    devices: Numbers,
    reported: Sequence[JobTypes] | None = None,
    weights: Numbers | None = None,
    ids: Sequence[str] | None = None,
) -> Instance:
    """Return tenants ``u1 …`` with these job types on one server for each of the types ``GPU1 …``.

    True and reported rates (by default the true ones) are on GPU types from slowest to fastest, devices are integers,
    and weights are by default 1. Job types of a tenant that has several are named ``a``, ``b``, …
    """
    types = [f"GPU{j + 1}" for j in range(len(devices))]
    records = []
    for l, kinds in enumerate(tenants):
        job_types = []
        for i, (row, claim) in enumerate(zip(kinds, (reported or tenants)[l], strict=True)):
            kind = {"name": chr(ord("a") + i) if len(kinds) > 1 else "job", "rates": dict(zip(types, row, strict=True))}
            if list(row) != list(claim):
                kind["reported_rates"] = dict(zip(types, claim, strict=True))
            job_types.append(kind)
        records.append(
            {"id": ids[l] if ids else f"u{l + 1}", "weight": weights[l] if weights else 1, "job_types": job_types}
        )
    hosts = ({"name": f"host {j + 1}", "gpu_type": name, "gpus": int(devices[j])} for j, name in enumerate(types))
    return validate({"name": "tenants", "cluster": cluster(hosts), "tenants": records}, "tenants")


def of_matrix(speedups: ArrayLike, devices: Numbers, reported: ArrayLike | None = None) -> Instance:
    """Return tenants ``u1 …`` of one job type with these speedups (:func:`of_tenants`).

    True and reported speedups (by default the true ones) are ``(n, k)``, devices ``(k,)`` are integers.
    """
    true, claimed = (None if w is None else np.asarray(w, float)[:, None].tolist() for w in (speedups, reported))
    return of_tenants(true or [], devices, claimed)


def draw(rng: np.random.Generator, *, tenants: int = 4, types: int = 4, ordered: bool = False) -> Instance:
    """Return 2 to `tenants` tenants on 2 to `types` types, each type faster than the last for every tenant.

    If `ordered`, the ratios of all pairs of neighbouring types rank the tenants in the same order, without ties.
    """
    n, k = int(rng.integers(2, tenants + 1)), int(rng.integers(2, types + 1))
    ratios = 1 + rng.integers(1, 200, (n, k - 1)) / 100
    if ordered:
        ratios = 1 + np.cumsum(rng.integers(5, 101, (n, k - 1)), axis=0) / 100
    speedups = np.round(np.cumprod(np.hstack([np.ones((n, 1)), ratios]), axis=1), 8)
    return of_matrix(speedups, rng.integers(1, 5, k).tolist())


RANDOM.register(RandomSpec("oef", draw))
