"""Runs with made-up rows, for tests of figures, tables and the report."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.instances.schema import Cluster, GpuType, Instance, JobType, ServerGroup, Tenant
from schedgap.instances.views.oef import Allocation, efficiency, view

META: dict[str, Any] = {
    "schema_version": 1,
    "command": "harness compare --instance paper/oef-eq1 --paper oef",
    "started_utc": "2025-01-02T03:04:05Z",
    "duration_s": 1.5,
    "versions": {"python": "3.11.2", "pyomo": "6.10.1", "highspy": "1.15.1"},
    "machine": {"cpu": "2 cores", "memory": "8 GB"},
    "limits": {"time_limit_s": 60, "memory_mb": 2000, "threads": 1},
    "git_commit": "0123456789abcdef0123456789abcdef01234567",
}

HOSTILE = (
    "<script>alert(1)</script>",
    "[red]x[/red]",
    "=cmd()",
    "a|b`c`*d*",
    "\x1b[31mred\x1b[0m",
    "n" * 300,
)


def instance(speedups: Any = ((1, 2), (1, 3), (1, 4)), devices: Any = (1, 1), names: Any = None) -> Instance:
    """Return an OEF instance with these speedups and devices."""
    speedups = np.asarray(speedups, float)
    names = names or [f"u{i + 1}" for i in range(len(speedups))]
    types = [f"GPU{j + 1}" for j in range(len(devices))]
    return Instance(
        name="oef-eq1",
        title="Three tenants on two GPU types",
        source="OEF, (1)",
        cluster=Cluster(
            gpu_types=tuple(GpuType(name=t) for t in types),
            servers=tuple(
                ServerGroup(name=f"s-{t}", count=1, gpu_type=t, gpus=int(m))
                for t, m in zip(types, devices, strict=True)
            ),
        ),
        tenants=tuple(
            Tenant(
                id=name[:200],
                job_types=(JobType(name="job", rates=dict(zip(types, w.tolist(), strict=True))),),
            )
            for name, w in zip(names, speedups, strict=True)
        ),
    )


def row(method: str, fingerprint: str, objective: float | None = None, bound: float = 5.0, **fields: Any) -> Row:
    """Return a verified row of a maximisation problem; gap and ratio follow from objective and bound."""
    known = objective is not None and fields.get("verified", True)
    base: dict[str, Any] = {
        "instance": "paper/oef-eq1",
        "fingerprint": fingerprint,
        "paper": method.split(".", maxsplit=1)[0],
        "method": method,
        "problem": "oef.allocation",
        "kind": "exact",
        "sense": "max",
        "objective": objective,
        "best_bound": bound,
        "bound_from": "oef.efficiency",
        "gap": (bound - objective) / bound if known and bound else None,
        "ratio": bound / objective if known and objective else None,
        "ratio_is_upper": False,
        "status": "optimal",
        "verified": True,
        "solve_s": 0.0104,
        "build_s": 0.002,
    }
    return Row(**(base | fields))


ALLOCATIONS = {
    "oef.efficiency": [[1, 0], [0, 0], [0, 1]],
    "oef.noncooperative": [[1, 5 / 26], [0, 6 / 13], [0, 9 / 26]],
    "oef.cooperative": [[1, 0], [0, 0.5], [0, 0.5]],
    "oef.gavel": [[1, 0.05102], [0, 0.4898], [0, 0.45918]],
    "oef.gandiva_fair": [[1, 1 / 11], [0, 31 / 66], [0, 29 / 66]],
}
KINDS = {"oef.gavel": "baseline", "oef.gandiva_fair": "baseline"}


def oef_run(**changes: Any) -> Comparison:
    """Return a run of the OEF methods on the paper's three tenants."""
    inst = instance()
    decisions = {(inst.fingerprint, m, 0, ""): Allocation(np.array(x, float)) for m, x in ALLOCATIONS.items()}
    v = view(inst)
    rows = []
    for (_, method, *_), decision in decisions.items():
        per_tenant = efficiency(v.true_speedups, decision.devices)
        kind = KINDS.get(method, "exact")
        rows.append(
            row(
                method,
                inst.fingerprint,
                float(per_tenant.sum()),
                kind=kind,
                status="feasible" if kind == "baseline" else "optimal",
                metrics={
                    "envy_free": method == "oef.cooperative",
                    "support_size": int((decision.devices > 0).sum()),
                },
            )
        )
    unit = "slowest-GPU equivalents"
    published = (
        {"quantity": "efficiency", "value": [1.18, 1.41, 1.76], "measured": [1.1818, 1.4091, 1.7576],
         "exact": None, "agrees": True, "exact_agrees": None, "where": "(1)", "note": "", "unit": unit},
        {"quantity": "objective", "value": 4.36, "exact": 4.348485, "agrees": False, "exact_agrees": True,
         "measured": 4.348485, "where": "§2.3", "note": "the text adds up rounded numbers", "unit": unit},
    )  # fmt: skip
    rows[-1] = rows[-1].replace(published=published)
    run = Comparison(meta=dict(META), rows=rows, instances={inst.fingerprint: inst}, decisions=decisions)
    for name, value in changes.items():
        setattr(run, name, value)
    return run


def troubled_run() -> Comparison:
    """Return a run in which one method is WRONG, one failed and one was skipped."""
    run = oef_run()
    mark = run.rows[0].fingerprint
    run.rows += [
        row(
            "oef.rounding",
            mark,
            5.2,
            kind="online",
            verified=False,
            violations=("capacity of GPU2: 1.2 > 1", "envy"),
        ),
        row("oef.maxmin", mark, None, status="out of memory", verified=None, reason="more than 2000 MB"),
        row(
            "oef.multijob",
            mark,
            None,
            status="skipped",
            verified=None,
            reason="no tenant has several job types",
        ),
    ]
    return run


def large_run(tenants: int = 60, seed: int = 5) -> Comparison:
    """Return a run with many tenants on four GPU types: the equal split, one type per tenant, and their mean."""
    rng = np.random.default_rng(seed)
    steps = 1 + rng.random((tenants, 3)) * np.linspace(0.3, 1.5, tenants)[:, None]
    speedups = np.cumprod(np.hstack([np.ones((tenants, 1)), steps]), axis=1)
    inst = instance(rng.permutation(speedups), (24, 24, 16, 8))
    v = view(inst)
    stairs = np.zeros_like(v.equal_split)
    ranks = np.argsort(v.speedups[:, -1])
    for j, chunk in enumerate(np.array_split(ranks, 4)):
        stairs[chunk, j] = v.capacity[j] / len(chunk)
    shares = {
        "oef.maxmin": v.equal_split,
        "oef.efficiency": stairs,
        "oef.mixed": (stairs + v.equal_split) / 2,
    }
    run = oef_run(instances={inst.fingerprint: inst})
    run.decisions = {(inst.fingerprint, m, 0, ""): Allocation(x) for m, x in shares.items()}
    run.rows = [
        row(
            m,
            inst.fingerprint,
            float((v.speedups * x).sum()),
            1.1 * float((v.speedups * stairs).sum()),
            ratio_is_upper=True,
        )
        for m, x in shares.items()
    ]
    return run


def _trace(name: str, mark: str, method: str) -> list[dict[str, Any]]:
    """Return trace points of a search whose gap closes to 1.7 % in 4 s; the first points have no incumbent."""
    return [
        {
            "instance": name,
            "fingerprint": mark,
            "method": method,
            "seed": 0,
            "limits": "",
            "time_s": float(time),
            "incumbent": None if time < 0.3 else 1000 * (1 - 0.5 * math.exp(-time)),
            "bound": 1000 * (1 + 0.4 * math.exp(-time)),
        }
        for time in np.linspace(0.1, 4, 20)
    ]


SWEPT = {
    "hadar.p2.columns": ("relaxation", 0.01),
    "hadar.online": ("online", 0.06),
    "hadar.gavel": ("baseline", 0.15),
    "hadar.tiresias": ("baseline", 0.3),
    "hadar.yarn_cs": ("baseline", 0.5),
}


def sweep_run(instances: int = 12, seed: int = 3) -> Comparison:
    """Return a run of Hadar's methods over several instances, with guarantees, limits and traces."""
    rng = np.random.default_rng(seed)
    rows, traces = [], []
    for i in range(instances):
        name, mark = f"gen/200jobs?seed={i}", f"{i:02x}" * 32
        for method, (kind, mean) in SWEPT.items():
            gap = float(min(0.9, rng.gamma(4.0, mean / 4.0)))
            fields: dict[str, Any] = {"guarantee": "2α = 7.1", "guarantee_factor": 7.1} if kind == "online" else {}
            found = row(
                method,
                mark,
                1000.0 * (1 - gap),
                1000.0,
                instance=name,
                kind=kind,
                problem="hadar.utility",
                bound_from="hadar.p2.columns",
                ratio_is_upper=bool(rng.random() < 0.7),
                solve_s=float(rng.lognormal(-1, 1.5)),
                status="time limit with incumbent" if kind == "relaxation" else "feasible",
                **fields,
            )
            rows.append(found)
        for method in ("hadar.p2.columns", "hadar.online"):
            traces += _trace(name, mark, method)
    return Comparison(
        meta=dict(META, command="harness sweep sweeps/load.toml"),
        rows=rows,
        instances={},
        traces=list(traces),
    )


def hostile_run() -> Comparison:
    """Return a run in which each text that comes from outside (names, reasons, sources) is hostile."""
    speedups = [[1, x + 1, x * x + 2] for x in range(1, 7)]
    inst = instance(speedups, (2, 2, 2), names=[*HOSTILE[:4], "_x", "$a$ {b} \\frac"])
    evil = HOSTILE[0]
    entry = {"quantity": evil, "value": evil, "exact": None, "measured": 1.0, "agrees": None, "where": evil}
    texts: dict[str, Any] = {"instance": "".join(HOSTILE), "reason": HOSTILE[1], "guarantee": HOSTILE[2]}
    run = oef_run(instances={inst.fingerprint: inst})
    run.rows = [
        row(
            "oef.maxmin",
            inst.fingerprint,
            5.0,
            metrics={evil: 1.0},
            published=(entry | {"note": evil},),
            **texts,
        ),
        row(
            "oef.rounding",
            inst.fingerprint,
            None,
            status="error",
            verified=False,
            violations=HOSTILE,
            **texts,
        ),
    ]
    run.decisions = {(inst.fingerprint, "oef.maxmin", 0, ""): Allocation(view(inst).equal_split)}
    run.meta = dict(META, command=f"harness compare --instance '{evil}'", machine={evil: evil}, versions={evil: evil})
    return run
