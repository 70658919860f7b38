"""Valid instances with extreme numbers: a family of named ones, and random ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np

from schedgap.harness.studies.adversary.task import Document, document, numbers, possible
from schedgap.instances import load
from schedgap.instances.canonical import validate
from schedgap.instances.random_instances import RANDOM
from schedgap.instances.schema import Instance

BASES = ("paper/walkthrough", "paper/hadar-fig1", "paper/oef-eq1", "paper/synergy-example", "gen/20jobs?jobs=3")
VALUES = (0.0, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e12)
COUNTS = (1, 2, 1000, 10**6)
MOST = 6

T = TypeVar("T")


@cache
def _base(reference: str) -> Document:
    return document(load(reference))


def extreme(seed: int) -> Instance:
    """Return the extreme instance of a seed: a small instance with one to four changes, still valid."""
    rng = np.random.default_rng(seed)
    while True:
        content = _drawn(rng) | {"name": f"extreme-{seed}"}
        for _ in range(int(rng.integers(1, 5))):
            _one_of(CHANGES, rng)(content, rng)
        if found := possible(content, MOST):
            return found


def _one_of(among: Sequence[T], rng: np.random.Generator) -> T:
    return among[int(rng.integers(len(among)))]


def _drawn(rng: np.random.Generator) -> Document:
    """Return the instance to change, as plain data: a known small one, a random one of a paper, gangs, or tenants."""
    papers = sorted(RANDOM.ids())
    kind = int(rng.integers(len(BASES) + len(papers) + 2))
    if kind < len(BASES):
        return copy.deepcopy(_base(BASES[kind]))
    if kind < len(BASES) + len(papers):
        return document(RANDOM.get(papers[kind - len(BASES)]).draw(rng))
    return document(gangs(rng) if kind % 2 else sharing(rng))


DURATIONS = ((0, 60, 120, 180, 300), (0, 1e-6, 2e-6, 1, 2, 3), (0, 1e-6, 1e6, 999999.9995, 1, 3), (0, 0, 0, 3, 3, 5))
"""Seconds that gangs last, and seconds at which they are submitted: zero, about a microsecond, whole, or huge."""

WEIGHTS = ((1.0, 1.0, 1.0), (1e-6, 1.0, 1e6), (0.0, 1.0, 2.0), (0.0, 0.0, 0.0))


def gangs(rng: np.random.Generator) -> Instance:
    """Return an instance of one to six rigid gangs in one or two pools, some of them with a duration of zero."""
    room = {"G": int(rng.integers(1, 5)), "H": int(rng.integers(1, 4))}
    pools = list(room)[: int(rng.integers(1, 3))]
    lasts, weights, jobs = _one_of(DURATIONS, rng), _one_of(WEIGHTS, rng), []
    for j in range(int(rng.integers(1, 7))):
        pool, submit_s = _one_of(pools, rng), float(_one_of((0, 0, *lasts), rng))
        job = {"gpus": int(rng.integers(1, room[pool] + 1)), "epochs": 1, "weight": _one_of(weights, rng)}
        times = {"submit_s": submit_s * _one_of(NEARLY, rng), "duration_s": float(_one_of(lasts, rng))}
        jobs.append({"id": f"J{j}", **job, **times, "rates": {pool: 1.0}, "history": {"gpu_type": pool}})
    servers = [{"name": f"{p}s", "count": 1, "gpu_type": p, "gpus": room[p]} for p in pools]
    cluster = {"gpu_types": [{"name": p} for p in pools], "servers": servers}
    return validate({"name": "gangs", "cluster": cluster, "jobs": jobs}, "gangs")


NEARLY = (1.0, 1.0, 1 + 1e-9, 1 - 1e-9, 1 + 1e-8, 1 - 1e-8, 1 + 1e-10, 1 - 1e-10)
"""Factors that change a number by a hundred-millionth or less."""


def sharing(rng: np.random.Generator) -> Instance:
    """Return an instance of one to five tenants; weights and rates are up to 1e6 times 1, or nearly equal."""
    types, far, heavy = [f"T{j}" for j in range(int(rng.integers(1, 5)))], _one_of(DECADES, rng), _one_of(DECADES, rng)

    def rate() -> float:
        if rng.random() < 0.3:
            return _one_of((1.0, 2.0, 3.0, 1.5), rng) * _one_of((1.0, 1 + 1e-10, 1 - 1e-10, 1 + 1e-8), rng)
        return float(10 ** rng.uniform(-far, far))

    def weight() -> float:
        return float(10 ** rng.uniform(-heavy, heavy)) if rng.random() < 0.7 else _one_of((1e-6, 1.0, 1e6, 1 / 3), rng)

    def kinds() -> list[Document]:
        return [{"name": f"k{t}", "rates": {r: rate() for r in types}} for t in range(int(rng.integers(1, 3)))]

    tenants = [{"id": f"u{l}", "weight": weight(), "job_types": kinds()} for l in range(int(rng.integers(1, 6)))]
    counts = (1, 2, 1000, 100_000)
    servers = [
        {"name": f"s{r}", "count": _one_of(counts, rng), "gpu_type": r, "gpus": int(rng.integers(1, 9))} for r in types
    ]
    cluster = {"gpu_types": [{"name": r} for r in types], "servers": servers}
    return validate({"name": "sharing", "cluster": cluster, "tenants": tenants}, "sharing")


DECADES = (0, 1, 3, 6)


def _one(content: Document, rng: np.random.Generator) -> None:
    """Give one random number of the instance an extreme value."""
    _set([_pick(content, rng)], rng, apart=True)


def _alike(content: Document, rng: np.random.Generator) -> None:
    """Give extreme values to all numbers of one field name: the same value, or one for each."""
    _, name = _pick(content, rng)
    _set([place for place in numbers(content, frozenset()) if place[1] == name], rng, apart=bool(rng.random() < 0.5))


def _pick(content: Document, rng: np.random.Generator) -> tuple[Any, Any]:
    places = [place for place in numbers(content, frozenset()) if place[1] != "schema_version"]
    names = sorted({str(name) for _, name in places})
    name = names[int(rng.integers(len(names)))]
    among = [place for place in places if str(place[1]) == name]
    return among[int(rng.integers(len(among)))]


def _set(places: list[tuple[Any, Any]], rng: np.random.Generator, apart: bool) -> None:
    value, count = VALUES[int(rng.integers(len(VALUES)))], COUNTS[int(rng.integers(len(COUNTS)))]
    for holder, key in places:
        if apart:
            value, count = VALUES[int(rng.integers(len(VALUES)))], COUNTS[int(rng.integers(len(COUNTS)))]
        holder[key] = count if isinstance(holder[key], int) else value


def _one_job(content: Document, rng: np.random.Generator) -> None:
    for name in ("jobs", "tenants"):
        content[name] = content[name][:1]


def _equal(content: Document, rng: np.random.Generator) -> None:
    for name in ("jobs", "tenants"):
        content[name] = [content[name][0] | {"id": item["id"]} for item in content[name]]


def _whole_cluster(content: Document, rng: np.random.Generator) -> None:
    gpus = sum(group["count"] * group["gpus"] for group in content["cluster"]["servers"])
    for job in content["jobs"]:
        job["gpus"] = max(1, gpus)


def _weights(content: Document, rng: np.random.Generator) -> None:
    for job in content["jobs"]:
        job["weight"] = (0.0, 1.0, 1e9)[int(rng.integers(3))]


def _many_servers(content: Document, rng: np.random.Generator) -> None:
    groups = content["cluster"]["servers"]
    groups[int(rng.integers(len(groups)))]["count"] = (1, 100, 10_000)[int(rng.integers(3))]


def _slots(content: Document, rng: np.random.Generator) -> None:
    if content["horizon"]:
        content["horizon"]["slots"] = (1, 2, 10_000)[int(rng.integers(3))]


def _apart(content: Document, rng: np.random.Generator) -> None:
    """Draw the weights of jobs and tenants from 1e-6 to 1e6."""
    for item in (*content["jobs"], *content["tenants"]):
        item["weight"] = float(10 ** rng.uniform(-6, 6))


def _hardly(content: Document, rng: np.random.Generator) -> None:
    """Change rates, or times of mini-batches, by a hundred-millionth or less."""
    for name in ("rates", "minibatch_ms", "update_ms"):
        for rates in _holders(content, name):
            for key in rates:
                rates[key] *= _one_of(NEARLY, rng)


def _holders(content: Any, name: str) -> Iterator[Document]:
    for key, item in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(item, dict) and key == name:
            yield item
        elif isinstance(item, dict | list):
            yield from _holders(item, name)


def _idle(content: Document, rng: np.random.Generator) -> None:
    """Give jobs durations of zero, of about a microsecond, or of whole seconds, and some of them the least work."""
    lasts = _one_of(DURATIONS, rng)
    for job in content["jobs"]:
        job["duration_s"] = float(_one_of(lasts, rng))
        if rng.random() < 0.5:
            job.update({"epochs": 1, "chunks": 1, "minibatches_per_chunk": 1})


def _microseconds(content: Document, rng: np.random.Generator) -> None:
    """Put submissions and deadlines a microsecond apart, or make slots about a microsecond long."""
    if content["horizon"] and rng.random() < 0.5:
        content["horizon"]["slot_s"] = float(_one_of((1e-6, 1 + 1e-6, 1 - 1e-6, 3e-6), rng))
    for job in content["jobs"]:
        job["submit_s"] = float(_one_of((0.0, 1e-6, 2e-6, 1.0, 1.000001, 0.999999), rng))
        if job["deadline_s"] is not None:
            job["deadline_s"] = job["submit_s"] + float(_one_of((1e-6, 1.0, 2.000001, 3.0), rng))


def _parts_of_servers(content: Document, rng: np.random.Generator) -> None:
    """Make what workers and PSs need nearly whole fractions of a server."""
    host = _one_of(content["cluster"]["servers"], rng)
    for kind in (*content["worker_types"], *content["ps_types"]):
        for name in ("cpus", "memory_gb", "bandwidth_gbps"):
            if host[name] and rng.random() < 0.7:
                kind[name] = host[name] / int(rng.integers(1, 5)) * _one_of(NEARLY, rng)


def _nearly_shares(content: Document, rng: np.random.Generator) -> None:
    """Change servers' CPUs and memory slightly, so that shares per GPU nearly equal a table's levels (Synergy)."""
    for host in content["cluster"]["servers"]:
        for name in ("cpus", "memory_gb"):
            host[name] *= _one_of(NEARLY, rng)


CHANGES = (
    *(_one, _one, _alike, _alike, _alike, _one_job, _equal, _whole_cluster, _weights, _many_servers, _slots),
    *(_apart, _hardly, _idle, _microseconds, _parts_of_servers, _nearly_shares),
)


# --------------------------------------------------------------------------------------------------- a family by name

TYPES = {"V": 2.0, "K": 1.0}
"""GPU types of the small instance that the family changes, with the iterations per second of a GPU."""


def _small() -> Document:
    """Return plain data of an instance that every paper's view reads: three jobs of two tenants on two servers."""
    host = {"count": 1, "gpus": 2, "cpus": 8.0, "memory_gb": 64.0, "bandwidth_gbps": 10.0, "ps_slots": 2}
    worker = {"gpus": 1, "cpus": 1.0, "memory_gb": 4.0, "bandwidth_gbps": 1.0}
    grid = {"cpus_per_gpu": [1.0, 4.0], "memory_gb_per_gpu": [8.0, 32.0], "progress": [[0.5, 0.8], [0.6, 1.0]]}
    job = {
        "chunks": 2,
        "weight": 1.0,
        "submit_s": 0.0,
        "rates": TYPES,
        "distributed": {"gradient_mb": 8.0, "minibatch_ms": {"V": 500.0, "K": 1000.0}, "update_ms": {"PS": 10.0}},
        "sensitivity": {"kind": "matrix", **grid},
    }
    sizes = ((1, 3, "A"), (2, 2, "B"), (1, 4, "A"))
    kinds = {"A": {"V": 2.0, "K": 1.0}, "B": {"V": 3.0, "K": 1.0}}
    content = {
        "name": "small",
        "cluster": {
            "gpu_types": [{"name": r} for r in TYPES],
            "servers": [{"name": f"{r} host", "gpu_type": r, **host} for r in TYPES],
        },
        "tenants": [{"id": t, "weight": 1.0, "job_types": [{"name": "k", "rates": r}]} for t, r in kinds.items()],
        "jobs": [{"id": f"J{k}", "gpus": n, "epochs": e, "tenant": t, **job} for k, (n, e, t) in enumerate(sizes)],
        "worker_types": [{"name": r, "gpu_type": r, **worker} for r in TYPES],
        "ps_types": [{"name": "PS", "cpus": 1.0, "memory_gb": 1.0, "bandwidth_gbps": 2.0}],
        "horizon": {"slot_s": 1.0, "slots": 8},
    }
    return copy.deepcopy(content)


Change = Callable[[Document], object]


def jobs(**values: Any) -> Change:
    """Return a change of fields of the jobs; a list has one value for each job, anything else is the value of all."""
    return lambda content: _update(content["jobs"], values)


def parts(name: str, **values: Any) -> Change:
    """Return a change of fields of all parts with a name (as ``tenants``), at any depth; see :func:`jobs`."""
    return lambda content: _update(list(_named(content, name)), values)


def _update(items: list[Document], values: Document) -> None:
    for name, value in values.items():
        for k, item in enumerate(items):
            item[name] = copy.deepcopy(value[k % len(value)] if isinstance(value, list) else value)


def _named(value: Any, name: str) -> Iterator[Document]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if key == name:
            yield from item if isinstance(item, list) else [item]
        elif isinstance(item, dict | list):
            yield from _named(item, name)


def times(count: int, name: str) -> Change:
    """Return a change that puts `count` copies of the first job or tenant in place of all."""

    def change(content: Document) -> None:
        content[name] = [content[name][0] | {"id": f"{name}-{k}"} for k in range(count)]
        for job in content["jobs"]:
            job["tenant"] = content["tenants"][0]["id"]

    return change


def fifty_types(content: Document) -> None:
    """Replace the two GPU types by fifty."""
    rates = {f"T{k}": 1.0 + k for k in range(50)}
    group, worker = content["cluster"]["servers"][0], content["worker_types"][0]
    content["cluster"]["gpu_types"] = [{"name": r} for r in rates]
    content["cluster"]["servers"] = [group | {"name": r, "gpu_type": r} for r in rates]
    content["worker_types"] = [worker | {"name": r, "gpu_type": r} for r in rates]
    _update([*content["jobs"], *_named(content, "job_types")], {"rates": rates})
    _update(list(_named(content, "distributed")), {"minibatch_ms": {r: 1000 / rate for r, rate in rates.items()}})


def one_gpu(content: Document) -> None:
    """Remove all GPUs but one."""
    content["cluster"]["gpu_types"].pop()
    content["cluster"]["servers"] = [content["cluster"]["servers"][0] | {"gpus": 1}]
    content["worker_types"].pop()
    _update([*content["jobs"], *_named(content, "job_types")], {"rates": {"V": 2.0}, "gpus": 1})
    _update(list(_named(content, "distributed")), {"minibatch_ms": {"V": 500.0}})
    for kind in _named(content, "job_types"):
        kind.pop("gpus")


APART = [{"V": 1.0, "K": 1e-9}, {"V": 1.0, "K": 1e9}]
FAMILY: dict[str, tuple[Change, ...]] = {
    "as it is": (),
    "weights 0": (jobs(weight=0.0),),
    "weights 1e-9": (jobs(weight=1e-9), parts("tenants", weight=1e-9)),
    "weights 1e12": (jobs(weight=1e12), parts("tenants", weight=1e12)),
    "weights apart": (jobs(weight=[1e-9, 1.0, 1e12]), parts("tenants", weight=[1e-9, 1e12])),
    "rates 1e-9": (jobs(rates={"V": 2e-9, "K": 1e-9}),),
    "rates 1e12": (jobs(rates={"V": 2e12, "K": 1e12}),),
    "rates of types apart": (jobs(rates=APART), parts("job_types", rates=APART)),
    "rates of jobs apart": (jobs(rates=[{"V": 2e-2, "K": 1e-2}, TYPES, {"V": 2e7, "K": 1e7}]),),
    "rates 0 of a type": (jobs(rates=[{"V": 2.0, "K": 0.0}, {"K": 1.0}]),),
    "equal rates": (jobs(rates={"V": 1.0, "K": 1.0}), parts("job_types", rates={"V": 1.0, "K": 1.0})),
    "slots of 1e-9 s": (parts("horizon", slot_s=1e-9),),
    "slots of 1e9 s": (parts("horizon", slot_s=1e9),),
    "the longest horizon": (parts("horizon", slot_s=1.25e11), jobs(rates={"V": 2e-11, "K": 1e-11})),
    "one slot": (parts("horizon", slots=1),),
    "10,000 slots": (parts("horizon", slots=10_000),),
    "no horizon": (lambda content: content.pop("horizon"),),
    "work 1": (jobs(epochs=1, chunks=1),),
    "most work": (jobs(epochs=10**15, chunks=1),),
    "arrivals at the end": (jobs(submit_s=7.999999999),),
    "arrivals 1e-9 apart": (jobs(submit_s=[1.0, 1.000000001, 1.000000002]),),
    "deadlines on arrival": (jobs(deadline_s=1e-9),),
    "a deadline past all": (jobs(deadline_s=1e12),),
    "one job": (times(1, "jobs"),),
    "thousands of equal jobs": (times(2000, "jobs"),),
    "a thousand equal tenants": (times(1000, "tenants"),),
    "gangs of the cluster": (jobs(gpus=4),),
    "no gradients": (parts("distributed", gradient_mb=0.0, update_ms={"PS": 0.0}),),
    "gradients 1e12": (parts("distributed", gradient_mb=1e12),),
    "mini-batches 1e-9": (parts("distributed", minibatch_ms={"V": 1e-9, "K": 1e-9}),),
    "mini-batches apart": (parts("distributed", minibatch_ms={"V": 1e-9, "K": 1e9}),),
    "workers of nothing": (parts("worker_types", gpus=0, cpus=0.0, memory_gb=0.0),),
    "PSs of nothing": (parts("ps_types", cpus=0.0, memory_gb=0.0),),
    "bandwidths 1e-9": (parts("ps_types", bandwidth_gbps=1e-9), parts("worker_types", bandwidth_gbps=1e-9)),
    "bandwidths 1e12": (parts("ps_types", bandwidth_gbps=1e12), parts("worker_types", bandwidth_gbps=1e12)),
    "servers of GPUs only": (parts("servers", cpus=0.0, memory_gb=0.0, bandwidth_gbps=0.0, ps_slots=0),),
    "servers of 1e12": (parts("servers", cpus=1e12, memory_gb=1e12, bandwidth_gbps=1e12, ps_slots=10**12),),
    "a type without GPUs": (parts("servers", gpus=[2, 0]),),
    "one GPU": (one_gpu,),
    "fifty types": (fifty_types,),
    "10,000 servers": (parts("servers", count=5_000),),
    "a million servers": (parts("servers", count=500_000),),
    "10,000 GPUs a server": (parts("servers", gpus=10_000),),
    "no progress": (parts("sensitivity", progress=[[[0.0, 0.0], [0.0, 0.0]]]),),
    "progress apart": (parts("sensitivity", progress=[[[1e-9, 1e-9], [1e-9, 1e9]]]),),
    "steep utilities": (jobs(utility={"kind": "sigmoid", "amplitude": 1e12, "steepness_per_s": 1e9}),),
    "flat utilities": (jobs(utility={"kind": "constant", "amplitude": 1e-9}),),
    "a unit worth 1e15": (lambda content: content.update(unit_worth=1e15),),
    "a unit worth 1e-9": (lambda content: content.update(unit_worth=1e-9),),
}
"""Changes of the small instance, by name of the resulting instance; each result is valid."""

LARGE = {"thousands of equal jobs", "a thousand equal tenants", "10,000 slots"}
"""Instances of the family that take many seconds."""


@cache
def named(name: str) -> Instance:
    """Return an instance of the family by name."""
    content = _small()
    for change in FAMILY[name]:
        change(content)
    return validate(content | {"name": name}, name)
