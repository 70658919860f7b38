"""Node lists: the servers of a cluster by name, and what gangs hold of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from schedgap.instances.importers.registry import MAX_GANG
from schedgap.instances.importers.table import Column, check_unique, parse_headed, read_text

LARGEST_HOST = 10_000
"""Most GPUs of a server; a pool without known servers is one, or as few as that allows."""

NODE_LIST = {
    "gpus": ("gpus", "gpu", "number of GPUs", "cap_gpu"),
    "type": ("type", "model", "gpu_type"),
    "server": ("server", "node", "name", "sn", "machineId", "machine"),
}
"""Columns of node lists; those of openb, Philly and PAI are among them."""


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


def rooms_of(nodes: pd.DataFrame, pools: list[str]) -> dict[str, tuple[str, int]]:
    """Return pool and GPUs of each server that a node list names; without a type, it is in the only pool."""
    kinds = nodes["type"].where(nodes["type"].isin(pools) | (len(pools) > 1), pools[0])
    rows = zip(nodes["server"], kinds, nodes["gpus"].astype(int), strict=True)
    return {name: (kind, gpus) for name, kind, gpus in rows if name and gpus and kind in pools}


def sure(gang: int, pool: str, on: Mapping[str, int], rooms: Mapping[str, tuple[str, int]]) -> dict[str, int]:
    """Return what a gang holds for certain on servers of its pool: what the log says, or others have no room for."""
    of = {name: rooms.get(name, (pool, MAX_GANG)) for name in on}
    room = {name: of[name][1] for name, gpus in on.items() if not gpus}
    rest, least = gang - sum(on.values()) - sum(room.values()), int(gang >= len(on))
    found = {name: gpus or max(least, rest + room[name]) for name, gpus in on.items()}
    return {name: gpus for name, gpus in found.items() if gpus and of[name][0] == pool}
