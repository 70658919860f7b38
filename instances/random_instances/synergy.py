"""Instances of Synergy, built by hand or drawn at random: catalogue models, input pipelines, small random tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schedgap.instances.canonical import validate
from schedgap.instances.model_catalogue import MODELS, gpu_type, rates_on
from schedgap.instances.random_instances.registry import RANDOM, RandomSpec, Source, pick
from schedgap.instances.schema import Instance

JobLike = Mapping[str, Any] | Sequence[Any]
Server = tuple[int, str, int, float, float]
"""Number of servers, GPU type, and the GPUs, CPUs and gigabytes of one server."""

V100 = (1, "V100", 8, 24.0, 500.0)
"""Synergy's server (section 5)."""

SYNERGY = tuple(name for name in MODELS if name.startswith("Synergy "))
"""The catalogue's models that have their own sensitivity matrix."""


def servers(count: int = 1, chip: str = "V100", gpus: int = 8, cpus: float = 24.0, memory_gb: float = 500.0) -> Server:
    """Return a group of equal servers, Synergy's by default."""
    return (count, chip, gpus, cpus, memory_gb)


def job(
    model: str = "Synergy ResNet18", gpus: int = 1, seconds: float = 3600.0, submit_s: float = 0.0, **given: Any
) -> dict[str, Any]:
    """Return a job with the rates and matrix of a catalogue model, unless `given` has ``rates`` or ``sensitivity``.

    Its work is ``iterations`` in `given`, or what it does in `seconds` at progress 1 on the first GPU type.
    """
    return {"model": model, "gpus": gpus, "seconds": seconds, "submit_s": submit_s, **given}


def matrix(cpus: Sequence[float], memory_gb: Sequence[float], progress: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return a sensitivity measured on a grid of CPUs and gigabytes per GPU."""
    return {"kind": "matrix", "cpus_per_gpu": cpus, "memory_gb_per_gpu": memory_gb, "progress": progress}


def pipeline(cpus: float, dataset_gb: float = 5.0, cached_gb: float = 0.0, *, gpus: int = 1) -> dict[str, Any]:
    """Return the pipeline of a gang that runs at full rate with `cpus` CPUs and `cached_gb` of its data cached."""
    storage = 500.0
    missed = max(1e-3, 1.0 - cached_gb / dataset_gb)
    return {
        "kind": "pipeline",
        "prep_rate_per_cpu": gpus / cpus,
        "item_mb_per_iteration": storage / (gpus * missed),
        "dataset_gb": dataset_gb,
        "process_memory_gb": 10.0,
        "storage_mb_per_s": storage,
    }


def instance(
    jobs: Sequence[JobLike],
    hosts: Sequence[Server] = (V100,),
    *,
    slot_s: float = 300.0,
    slots: int = 10_000,
    name: str = "case",
) -> Instance:
    """Return an instance of jobs on groups of servers (:func:`servers`), in rounds.

    Jobs come from :func:`job`, or are tuples ``(catalogue model, gpus, seconds, submit_s)``, whose last elements may be
    omitted.
    """
    chips = list(dict.fromkeys(chip for _, chip, *_ in hosts))
    content = {
        "name": name,
        "cluster": {
            "gpu_types": [gpu_type(chip).model_dump() for chip in chips],
            "servers": [
                {"name": f"g{i}", "count": n, "gpu_type": chip, "gpus": gpus, "cpus": cpus, "memory_gb": gb}
                for i, (n, chip, gpus, cpus, gb) in enumerate(hosts)
            ],
        },
        "horizon": {"slot_s": slot_s, "slots": slots},
        "jobs": [_record(entry, i, chips) for i, entry in enumerate(jobs)],
    }
    return validate(content, name)


def _record(entry: JobLike, position: int, chips: Sequence[str]) -> dict[str, Any]:
    fields = entry if isinstance(entry, Mapping) else job(*entry)
    model = MODELS[fields["model"]]
    rates = fields.get("rates") or rates_on(model, chips)[0]
    work = fields.get("iterations") or max(1, round(fields["seconds"] * fields["gpus"] * rates[chips[0]]))
    return {
        "id": fields.get("id", f"J{position + 1}"),
        "model": fields["model"],
        "gpus": fields["gpus"],
        "submit_s": fields["submit_s"],
        "epochs": work,
        "rates": rates,
        "sensitivity": fields.get("sensitivity") or model.sensitivity.model_dump(),  # type: ignore[union-attr]
    }


def mix(jobs: int, hosts: Sequence[Server], *, seed: int = 0, gangs: Sequence[int] = (1, 1, 1, 2, 4)) -> Instance:
    """Return an instance of random jobs of Synergy's models that all arrive at once."""
    rng = np.random.default_rng(seed)
    drawn = [(SYNERGY[rng.integers(len(SYNERGY))], int(rng.choice(gangs)), 3600.0) for _ in range(jobs)]
    return instance(drawn, hosts, name=f"mix-{jobs}")


def pipelines(jobs: int, hosts: Sequence[Server], *, seed: int = 0, gangs: Sequence[int] = (1, 1, 1, 2, 4)) -> Instance:
    """Return an instance of jobs with different random input pipelines that all arrive at once."""
    rng = np.random.default_rng(seed)
    chips = list(dict.fromkeys(chip for _, chip, *_ in hosts))
    drawn = []
    for _ in range(jobs):
        gang = int(rng.choice(gangs))
        sensitivity = pipeline(
            cpus=gang * float(rng.uniform(0.5, 12.0)),
            dataset_gb=float(rng.uniform(50.0, 900.0)),
            cached_gb=float(rng.uniform(0.0, 45.0)),
            gpus=gang,
        )
        rates = dict.fromkeys(chips, 1.0)
        drawn.append(job(gpus=gang, rates=rates, sensitivity=sensitivity))
    return instance(drawn, hosts, name=f"pipelines-{jobs}")


def draw(
    rng: Source, *, jobs: int = 5, chips: Sequence[str] = ("V100",), arrivals: Sequence[float] = (0.0,)
) -> Instance:
    """Return an instance of up to `jobs` jobs with random monotone tables on one or two servers of every GPU type.

    Tables are sums of increments, so that more CPUs or memory are never slower; every job can run with its share.
    """
    hosts = [
        servers(pick(rng, (1, 2)), chip, pick(rng, (2, 4)), pick(rng, (6.0, 8.0, 12.0)), pick(rng, (100.0, 200.0)))
        for chip in chips
    ]
    smallest = min(n * gpus for n, _, gpus, *_ in hosts)
    drawn = []
    for _ in range(pick(rng, range(1, jobs + 1))):
        cells = np.array([pick(rng, (0.0, 0.0, 0.25, 0.5, 1.0)) for _ in range(12)]).reshape(4, 3)
        cells[0, 0] += pick(rng, (0.25, 1.0))
        progress = cells.cumsum(axis=0).cumsum(axis=1)
        table = matrix((1.0, 2.0, 3.0, 4.0), (20.0, 25.0, 60.0), progress.tolist())
        rates = {chip: pick(rng, (0.5, 1.0, 2.0, 4.0)) for chip in chips}
        gpus = pick(rng, range(1, min(3, smallest) + 1))
        work = pick(rng, range(1, 41)) * 100
        submit_s = pick(rng, arrivals)
        drawn.append(job(gpus=gpus, submit_s=submit_s, iterations=work * gpus, rates=rates, sensitivity=table))
    return instance(drawn, hosts, name="small")


RANDOM.register(RandomSpec("synergy", draw))
