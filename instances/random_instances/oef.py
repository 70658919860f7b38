"""Instances of OEF with tenants of given or random speedups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from schedgap.instances.canonical import validate
from schedgap.instances.random_instances.registry import RANDOM, RandomSpec, cluster
from schedgap.instances.schema import Instance


def of_matrix(speedups: ArrayLike, devices: Sequence[float], reported: ArrayLike | None = None) -> Instance:
    """Return tenants ``u1 …`` with these speedups on one server for each of the types ``GPU1 …``.

    True and reported speedups (by default the true ones) are ``(n, k)``, devices ``(k,)`` are integers.
    """
    true = np.asarray(speedups, float)
    claimed = true if reported is None else np.asarray(reported, float)
    types = [f"GPU{j + 1}" for j in range(true.shape[1])]
    kinds = [{"name": "job", "rates": dict(zip(types, row, strict=True))} for row in true.tolist()]
    for kind, row, claim in zip(kinds, true.tolist(), claimed.tolist(), strict=True):
        if row != claim:
            kind["reported_rates"] = dict(zip(types, claim, strict=True))
    return validate(
        {
            "name": "tenants",
            "cluster": cluster(
                {"name": f"host {j + 1}", "gpu_type": name, "gpus": int(devices[j])} for j, name in enumerate(types)
            ),
            "tenants": [{"id": f"u{l + 1}", "job_types": [kind]} for l, kind in enumerate(kinds)],
        },
        "tenants",
    )


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
