"""The instance of an imported trace, and its cluster: the user's, a list of servers, or the default (see `filling`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from schedgap.instances.canonical import describe
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.importers.registry import IMPORTERS, MAX_GANG, Options, Trace, TraceJob
from schedgap.instances.importers.table import CONTROL, Column, check_unique, parse_headed, read_text
from schedgap.instances.model_catalogue import gpu_type
from schedgap.instances.schema import Cluster, Instance, Job, Tenant

CPUS_PER_GPU = 3.0
MEMORY_GB_PER_GPU = 62.5

ALIASES = {"MISC": "K80"}
"""PAI's name for the K40, K80 and M60 cards of its older servers."""

UNDISCLOSED = ("G1", "G2", "G3")
"""Types of openb that Alibaba does not disclose. Like every type without known TFLOPS they count as fast as a
V100, so that no guess of ours makes one of them better or worse."""

NODE_COLUMNS = (
    Column("sn", "text", "the name of a server"),
    Column("cpu_milli", "number", "thousandths of a CPU, 0 or more"),
    Column("memory_mib", "number", "memory in MiB, 0 or more"),
    Column("gpu", "whole", "a whole number of GPUs, 0 to 10000", high=10_000),
    Column("model", "text", "a GPU type", blank=True),
)

LARGEST_HOST = 10_000
"""Most GPUs of a server; a pool without known servers is one, or as few as that allows."""

NODE_LIST = {
    "gpus": ("gpus", "gpu", "number of GPUs", "cap_gpu"),
    "type": ("type", "model", "gpu_type"),
    "server": ("server", "node", "name", "sn", "machineId", "machine"),
}
"""Columns of node lists; those of openb, Philly and PAI are among them."""


def cluster_for(trace: Trace, jobs: Sequence[TraceJob], options: Options, derived: list[str]) -> Cluster:
    """Return the user's cluster, or the format's default, grown until the largest gang fits on each type."""
    if options.nodes is not None:
        return read_nodes(Path(options.nodes), derived)
    per_server = options.gpus_per_server or trace.default_per_server
    cpus, memory_gb = options.cpus_per_gpu or CPUS_PER_GPU, options.memory_gb_per_gpu or MEMORY_GB_PER_GPU
    gpus = options.gpus
    if gpus is not None:
        recorded = {*UNDISCLOSED, *(name for job in jobs for name in job.rates)}
        for name in gpus:
            if gpu_type(chip(name)).tflops is None and name not in recorded:
                known = "the catalogue has V100, P100, K80, T4, A10, A100, …"
                raise UsageError(f"gpus: unknown GPU type {name!r}; {known}")
    else:
        largest = max(job.gpus for job in jobs)
        wanted = math.ceil(largest / per_server) * per_server
        gpus = {name: max(number, wanted) for name, number in trace.default_gpus.items()}
        sizes = ", ".join(f"{number} {name}" for name, number in gpus.items())
        grown = f", grown to the largest gang of {largest}" if gpus != dict(trace.default_gpus) else ""
        derived.append(f"cluster of {sizes}: the trace has none; this is the default{grown}")
    derived.append(
        f"servers of {count(per_server, 'GPU')} with {cpus:g} CPUs and {memory_gb:g} GB "
        "per GPU: the trace describes no servers"
    )
    servers = tuple(
        {
            "name": f"{chip(name)}-{size}gpu",
            "count": n,
            "gpu_type": chip(name),
            "gpus": size,
            "cpus": cpus * size,
            "memory_gb": memory_gb * size,
        }
        for name, total in gpus.items()
        for n, size in ((total // per_server, per_server), (1, total % per_server))  # a smaller one for the rest
        if n > 0 and size > 0
    )
    return validated("gpus", gpus, servers)


def read_nodes(path: Path, derived: list[str]) -> Cluster:
    """Return the cluster of an openb node list: one group for identical servers, none for those without GPU."""
    nodes = parse_headed(path, read_text(path), NODE_COLUMNS)
    with_gpu = nodes[(nodes["gpu"] > 0) & (nodes["model"] != "")]
    if with_gpu.empty:
        raise InstanceError(f"{path}: no server has a GPU and names its model")
    with_gpu = with_gpu.assign(model=with_gpu["model"].map(chip))
    if len(with_gpu) < len(nodes):
        derived.append(f"{len(nodes) - len(with_gpu)} of {len(nodes)} servers left out: they have no GPU")
    kinds: dict[Any, int] = with_gpu.groupby(["model", "gpu", "cpu_milli", "memory_mib"]).size().to_dict()
    groups = tuple(
        {
            "name": f"{model}-{gpus:.0f}gpu-{milli / 1000:.15g}cpu-{mib / 1024:.15g}gib",
            "count": servers,
            "gpu_type": model,
            "gpus": int(gpus),
            "cpus": milli / 1000,
            "memory_gb": mib / 1024 * 1024**3 / 1e9,
        }
        for (model, gpus, milli, mib), servers in kinds.items()
    )
    return validated(str(path), sorted(set(with_gpu["model"])), groups)


def validated(where: str, types: Iterable[str], servers: tuple[dict[str, object], ...]) -> Cluster:
    """Return the cluster, or raise with `where` it was described."""
    try:
        # Types have the catalogue's names, as jobs and servers do.
        return Cluster.model_validate({"gpu_types": tuple(gpu_type(chip(name)) for name in types), "servers": servers})
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error, Cluster)}") from None


@lru_cache(maxsize=1000)
def chip(name: str) -> str:
    """Return the catalogue's name for a GPU type; one that it does not know keeps its own."""
    return gpu_type(ALIASES.get(name, name)).name


def count(n: int, noun: str = "job") -> str:
    """Return ``1 job``, ``812 jobs``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def told_left_out(left_out: Mapping[str, int], rest: int, noun: str = "job") -> list[str]:
    """Return one sentence for every reason why jobs were left out, beside the `rest`."""
    total = count(rest + sum(left_out.values()), noun)
    return [f"{n} of {total} left out: {reason}" for reason, n in left_out.items() if n > 0]


def node_list(path: Path) -> pd.DataFrame:
    """Return ``gpus``, ``type`` and name (``server``) of each server of a node list in CSV; empty where it has none."""
    text = read_text(path)
    header = [name.strip() for name in text.splitlines()[0].split(",")]
    gpus, *rest = (next((one for one in names if one in header), names[0]) for names in NODE_LIST.values())
    columns = (
        Column(gpus, "whole", "a whole number of GPUs, 0 to 10000", high=LARGEST_HOST),
        *(Column(name, "text", "a name", blank=True, optional=True) for name in rest),
    )
    found = parse_headed(path, text, columns)
    if rest[-1] in found:
        check_unique(path, found[rest[-1]][found[rest[-1]] != ""])
    found = found.rename(columns=dict(zip((gpus, *rest), NODE_LIST, strict=True)))
    return found.assign(**{name: "" for name in NODE_LIST if name not in found})


def sure(gang: int, pool: str, on: Mapping[str, int], rooms: Mapping[str, tuple[str, int]]) -> dict[str, int]:
    """Return what a gang holds for certain on servers of its pool: what the log says, or others have no room for."""
    of = {name: rooms.get(name, (pool, MAX_GANG)) for name in on}
    room = {name: of[name][1] for name, gpus in on.items() if not gpus}
    rest, least = gang - sum(on.values()) - sum(room.values()), int(gang >= len(on))
    found = {name: gpus or max(least, rest + room[name]) for name, gpus in on.items()}
    return {name: gpus for name, gpus in found.items() if gpus and of[name][0] == pool}


def instance_of(
    format: str,
    path: Path,
    name: str,
    options: Options,
    derived: Iterable[str],
    tenants: Iterable[str],
    jobs: Iterable[Job],
    **about: Any,
) -> Instance:
    """Return the instance of what was read from a file, called by its format and `name` unless the user says how.

    It raises `InstanceError` if it is none by the schema.
    """
    spec = IMPORTERS.get(format)
    try:
        found = tuple(jobs)
        return Instance(
            name=options.name or f"{format}/{CONTROL.sub('_', name)}"[:200],
            title=f"{spec.title}, {count(len(found))}",
            source=spec.source,
            licence=spec.licence,
            derived=tuple(derived),
            tenants=tuple(Tenant(id=tenant) for tenant in dict.fromkeys(tenants)),
            jobs=found,
            **about,
        )
    except ValidationError as error:
        raise InstanceError(f"{path}: {describe(error)}") from None
