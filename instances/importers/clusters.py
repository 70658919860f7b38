"""Building the instance of an imported trace, and its cluster: the user's, a node list, or the default (`filling`)."""

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
from schedgap.instances.importers.registry import IMPORTERS, MAX_GANG, ImportedTrace, Options, TraceJob
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.importers.table import CONTROL, TraceColumn, check_unique, parse_headed, read_text
from schedgap.instances.model_catalogue import gpu_type
from schedgap.instances.schema import Cluster, Instance, Job, Tenant
from schedgap.instances.schema.columns import Column, JobTable
from schedgap.instances.text import counted

CPUS_PER_GPU = 3.0
MEMORY_GB_PER_GPU = 62.5

ALIASES = {"MISC": "K80"}
"""``MISC`` is PAI's name for the K40, K80 and M60 cards of its older servers."""

UNDISCLOSED = ("G1", "G2", "G3")
"""GPU types of openb that Alibaba does not disclose. Like every type of unknown TFLOPS they count as fast as a V100, so
that no guess makes one of them better or worse."""

NODE_COLUMNS = (
    TraceColumn("sn", "text", "the name of a server"),
    TraceColumn("cpu_milli", "number", "thousandths of a CPU, 0 or more"),
    TraceColumn("memory_mib", "number", "memory in MiB, 0 or more"),
    TraceColumn("gpu", "whole", "a whole number of GPUs, 0 to 10000", high=10_000),
    TraceColumn("model", "text", "a GPU type", blank=True),
)

LARGEST_HOST = 10_000
"""Most GPUs of a server; GPUs on no known server are put on one server, or on as few as this limit allows."""

NODE_LIST = {
    "gpus": ("gpus", "gpu", "number of GPUs", "cap_gpu"),
    "type": ("type", "model", "gpu_type"),
    "server": ("server", "node", "name", "sn", "machineId", "machine"),
}
"""Accepted column names of node lists, including those of openb, Philly and PAI."""


def cluster_for(trace: ImportedTrace, jobs: Sequence[TraceJob], options: Options, derived: list[str]) -> Cluster:
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
                hint = "the catalogue has V100, P100, K80, T4, A10, A100, …"
                raise UsageError(f"gpus: unknown GPU type {name!r}; {hint}")
    else:
        largest = max(job.gpus for job in jobs)
        needed = math.ceil(largest / per_server) * per_server
        gpus = {name: max(number, needed) for name, number in trace.default_gpus.items()}
        sizes = ", ".join(f"{number} {name}" for name, number in gpus.items())
        grown = f", grown to the largest gang of {largest}" if gpus != dict(trace.default_gpus) else ""
        derived.append(f"cluster of {sizes}: the default{grown}, since the trace describes no cluster")
    derived.append(
        f"servers of {counted(per_server, 'GPU')} with {cpus:g} CPUs and {memory_gb:g} GB "
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
    """Return the cluster of an openb node list: identical servers form a group, servers without GPUs are left out."""
    nodes = parse_headed(FileRows(path), read_text(path), NODE_COLUMNS)
    with_gpu = nodes[(nodes["gpu"] > 0) & (nodes["model"] != "")]
    if with_gpu.empty:
        raise InstanceError(f"{path}: no server has both a GPU and a GPU type (columns gpu and model)")
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
    """Return the cluster, or raise `InstanceError` with a message that begins with `where`."""
    try:
        # Use the catalogue's names of types, as jobs and servers do.
        return Cluster.model_validate({"gpu_types": tuple(gpu_type(chip(name)) for name in types), "servers": servers})
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error, Cluster)}") from None


@lru_cache(maxsize=1000)
def chip(name: str) -> str:
    """Return the catalogue's name of a GPU type, or `name` itself if the catalogue lacks it."""
    return gpu_type(ALIASES.get(name, name)).name


def node_list(path: Path) -> pd.DataFrame:
    """Return ``gpus``, ``type`` and ``server`` (name) of each server of a CSV node list; ``""`` if it lacks these."""
    text = read_text(path)
    header = [name.strip() for name in text.splitlines()[0].split(",")]
    gpus, *rest = (next((name for name in names if name in header), names[0]) for names in NODE_LIST.values())
    columns = (
        TraceColumn(gpus, "whole", "a whole number of GPUs, 0 to 10000", high=LARGEST_HOST),
        *(TraceColumn(name, "text", "a name", blank=True, optional=True) for name in rest),
    )
    rows = FileRows(path)
    nodes = parse_headed(rows, text, columns)
    if rest[-1] in nodes:
        check_unique(rows, nodes[rest[-1]][nodes[rest[-1]] != ""])
    nodes = nodes.rename(columns=dict(zip((gpus, *rest), NODE_LIST, strict=True)))
    return nodes.assign(**{name: "" for name in NODE_LIST if name not in nodes})


def held_gpus(gang: int, pool: str, on: Mapping[str, int], rooms: Mapping[str, tuple[str, int]]) -> dict[str, int]:
    """Return the GPUs that a gang certainly holds on each server of its pool.

    `on` has the GPUs by server according to the log, 0 if the log does not say. Such a server certainly has the part of
    the gang for which the other servers have no room, and at least one GPU if the gang has one for each server. `rooms`
    has the pool and GPUs of servers.
    """
    of = {name: rooms.get(name, (pool, MAX_GANG)) for name in on}
    room = {name: of[name][1] for name, gpus in on.items() if not gpus}
    rest, least = gang - sum(on.values()) - sum(room.values()), int(gang >= len(on))
    held = {name: gpus or max(least, rest + room[name]) for name, gpus in on.items()}
    return {name: gpus for name, gpus in held.items() if gpus and of[name][0] == pool}


def instance_of(
    format: str,
    path: Path,
    name: str,
    options: Options,
    derived: Iterable[str],
    tenants: Iterable[str],
    jobs: Iterable[Job] | Mapping[str, Column],
    **about: Any,
) -> Instance:
    """Return the instance of an imported file; its name is the user's, or else ``<format>/<name>``.

    It raises `InstanceError` if the schema rejects it.
    """
    spec = IMPORTERS.get(format)
    try:
        records = JobTable.of(jobs) if isinstance(jobs, Mapping) else tuple(jobs)
        return Instance(
            name=options.name or f"{format}/{CONTROL.sub('_', name)}"[:200],
            title=f"{spec.title}, {counted(len(records), 'job')}",
            source=spec.source,
            licence=spec.licence,
            derived=tuple(derived),
            tenants=tuple(Tenant(id=tenant) for tenant in dict.fromkeys(tenants)),
            jobs=records,
            **about,
        )
    except ValidationError as error:
        raise InstanceError(f"{path}: {describe(error)}") from None
