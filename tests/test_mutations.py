"""Errors in a view are noticed, because models and heuristics read the view, checkers and rules the raw instance.

Every numeric field of every paper's view is doubled, increased by 1, and permuted, one at a time. If this changes an
objective or a bound, some row must notice: it is WRONG, it ends in an error, its bound is not certified, or what the
method claims is not what a rule derives. Fields that no row notices are listed with the reason; the list may be neither
longer nor shorter than needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from schedgap.harness.check import differ
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.compare.run import compare_here
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances import load
from schedgap.instances.canonical import validate
from schedgap.instances.random_instances import RANDOM, synergy, zhou
from schedgap.instances.random_instances.registry import MB_PER_S
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

LIMITS = Limits(nodes=1000, rel_gap=0.0)

Path = tuple[str, ...]


def leaves(part: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the numbers and arrays of a view with their places; the instance does not count as part of the view."""
    if isinstance(part, np.ndarray | int | float):
        yield path, part
    elif not isinstance(part, Instance):
        for name, inner in members(part).items():
            yield from leaves(inner, (*path, name))


def members(part: Any) -> Mapping[str, Any]:
    """Return the parts of a dataclass, named tuple or mapping by name; other objects have no parts."""
    if is_dataclass(part):
        return {field.name: getattr(part, field.name) for field in fields(part)}
    if hasattr(part, "_asdict"):
        named: dict[str, Any] = part._asdict()
        return named
    return part if isinstance(part, Mapping) else {}


def with_leaf(part: Any, path: Path, value: Any) -> Any:
    """Return a copy of a view in which the number or array at this place is replaced."""
    if not path:
        return value
    name, inner = path[0], with_leaf(members(part)[path[0]], path[1:], value)
    if isinstance(part, Mapping):
        return {**part, name: inner}
    return replace(part, **{name: inner}) if is_dataclass(part) else part._replace(**{name: inner})


def boolean(value: Any) -> bool:
    return bool(np.asarray(value).dtype == bool)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "x2": lambda value: np.logical_not(value) if boolean(value) else value * 2,
    "+1": lambda value: value if boolean(value) else value + 1,
    "permuted": lambda value: np.roll(value.ravel(), 1).reshape(value.shape) if np.ndim(value) else value,
}
"""Changes of a field, by name; truth values are inverted instead of doubled."""


@dataclass(frozen=True)
class Case:
    """An instance with the methods that run on it, ordered so that those that notice errors fastest come first."""

    paper: str
    instance: Instance
    methods: Sequence[str]

    def row(self, method: str) -> Row:
        instance = self.instance
        task = MethodTask(*sent(instance), method, limits=LIMITS)
        return task.run().row


def close(one: float | None, other: float | None) -> bool:
    return one is other if one is None or other is None else not differ(one, other)


def altered(row: Row, before: Row) -> bool:
    """Return whether a row has another objective or bound than before."""
    numbers = ("objective", "claimed_bound", "own_bound")
    return not all(close(getattr(row, name), getattr(before, name)) for name in numbers)


def noticed(row: Row, before: Row) -> bool:
    """Return whether a row reports an error, or claims a bound that is not the one that the rule derives."""
    claims = row.claimed_bound is not None and not close(row.claimed_bound, row.own_bound)
    return (
        (row.verified is False and before.verified is not False)
        or (row.status != before.status and row.status not in ("optimal", "feasible", "gap left"))
        or (claims and close(before.claimed_bound, before.own_bound))
    )


def tried(case: Case, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str, str]]:
    """Change each field in each way; yield field, change and outcome: ``noticed``, ``unnoticed`` or ``the same``."""
    spec, before = PAPERS.get(case.paper), {method: case.row(method) for method in case.methods}
    assert not any(row.verified is False or row.status in ("error", "skipped") for row in before.values()), before
    view = spec.view(case.instance)
    for path, value in leaves(view):
        for change, changed in CHANGES.items():
            wrong = changed(value)
            if np.array_equal(wrong, value):
                continue
            seen = with_leaf(view, path, type(value)(wrong) if np.ndim(value) == 0 else wrong)
            with monkeypatch.context() as patch:
                patch.setitem(PAPERS._entries, spec.id, replace(spec, view=lambda instance, seen=seen: seen))
                yield ".".join(path), change, told(case, of_part(before, path))


def of_part(before: Mapping[str, Row], path: Path) -> Mapping[str, Row]:
    """Return the rows of methods that may read this part of a view; Zhou's methods read only one architecture each."""
    return {m: row for m, row in before.items() if path[0] != "architectures" or m.split(".")[1] == path[1]}


def told(case: Case, before: Mapping[str, Row]) -> str:
    """Run the methods of a case on the changed view; return ``noticed``, ``unnoticed`` or ``the same``."""
    other = False
    for method in before:
        row = case.row(method)
        if noticed(row, before[method]):
            return "noticed"
        other = other or altered(row, before[method])
    return "unnoticed" if other else "the same"


def outcomes(cases: Sequence[Case], monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], set[str]]:
    """Return the fields for which a change alters numbers unnoticed, and those for which no change alters numbers."""
    by_field: dict[str, dict[str, set[str]]] = {}
    for case in cases:
        for field, change, outcome in tried(case, monkeypatch):
            by_field.setdefault(field, {}).setdefault(change, set()).add(outcome)
    kinds = {field: list(changes.values()) for field, changes in by_field.items()}
    unnoticed = {name for name, each in kinds.items() if any("unnoticed" in o and "noticed" not in o for o in each)}
    unused = {name for name, each in kinds.items() if set().union(*each) == {"the same"}}
    return unnoticed, unused


FIG1 = load("paper/hadar-fig1")
SHAPES = validate(
    {
        "name": "shapes",
        "cluster": {
            "gpu_types": [{"name": "a"}, {"name": "b"}],
            "servers": [
                {"name": "host", "count": 2, "gpu_type": "a", "gpus": 1},
                {"name": "host b", "count": 2, "gpu_type": "b", "gpus": 1, "servers_of": "host"},
            ],
        },
        "horizon": {"slot_s": 1.0, "slots": 8},
        "jobs": [
            {"id": "J0", "gpus": 1, "epochs": 4, "rates": {"a": 2.0, "b": 1.0}, "utility": {"kind": "normalised"}},
            {
                **{"id": "J1", "gpus": 2, "epochs": 6, "rates": {"a": 3.0}},
                "utility": {"kind": "sigmoid", "amplitude": 5.0, "steepness_per_s": 0.5, "midpoint_s": 3.0},
            },
            {
                **{"id": "J2", "gpus": 1, "epochs": 5, "rates": {"a": 1.0, "b": 2.0}, "submit_s": 1.0},
                **{"deadline_s": 3.0, "utility": {"kind": "linear_deadline", "amplitude": 4.0, "grace_s": 6.0}},
            },
            {
                "id": "J3",
                "gpus": 1,
                "epochs": 3,
                "rates": {"b": 1.0},
                "utility": {"kind": "constant", "amplitude": 2.0},
            },
        ],
    },
    "shapes",
)
"""An instance with all shapes of utility, on two servers with GPUs of two types."""


def log(moves: bool) -> Instance:
    """Return a log with requested times and servers; if `moves`, a job may run in the other pool."""
    rows = (
        (2, 0, 3600, "a", 0, "s.0", 7200),
        (4, 60, 1800, "a", 60, "s.1", 1800),
        (2, 90, 5400, "a", 90, "s.0", 9000),
        (4, 120, 600, "a", 1860, "s.1", 900),
        (3, 0, 7200, "b", 0, "t", 7300),
        (4, 30, 1200, "b", 30, "t", 3000),
        (4, 45, 2400, "b", 1230, "t", 2500),
    )
    jobs = [
        {
            **{"id": f"j{i}", "gpus": gpus, "epochs": 1, "submit_s": at, "weight": 1 + i, "duration_s": lasts},
            "history": {
                **{"gpu_type": pool, "runs": [[start, start + lasts]], "hosts": [{host: gpus}], "requested_s": asked},
                "durations_s": {"b": 7200} if moves and i == 2 else {},
            },
        }
        for i, (gpus, at, lasts, pool, start, host, asked) in enumerate(rows)
    ]
    servers = [
        {"name": "s", "count": 2, "gpu_type": "a", "gpus": 4},
        {"name": "t", "count": 1, "gpu_type": "b", "gpus": 9},
    ]
    return validate(
        {"name": "log", "cluster": {"gpu_types": [{"name": "a"}, {"name": "b"}], "servers": servers}, "jobs": jobs},
        "log",
    )


SPREAD = zhou.instance(
    [zhou.job(3, 2, gradient_mb=MB_PER_S / 2, weight=2.0), zhou.job(2, 1, gradient_mb=MB_PER_S / 2, update_s=0.5)],
    [zhou.servers(3, gpus=1, cpus=3.0)],
    types=[zhou.ps(bandwidth_gbps=1.0)],
)
"""An instance whose jobs end first if they exchange gradients over the network, at the PSs' highest bandwidth."""


def drawn(seed: int, draw: Callable[..., Instance], **size: Any) -> Instance:
    return draw(np.random.default_rng(seed), **size)


HADAR = ("hadar.srtf", "hadar.online", "hadar.fluid", "hadar.p2.columns")
ROUNDS = ("synergy.tune", "synergy.greedy", "synergy.makespan_fluid", "synergy.refill.srtf")
RUNS = ("zhou.ra.fifo", "zhou.ps.fifo", "zhou.ps.fluid", "zhou.ra.mincost", "zhou.ra.columns", "zhou.ps.columns")
CASES = (
    Case("hadar", FIG1, (*HADAR, "hadar.hadare")),
    Case("hadar", SHAPES, (*HADAR, "hadar.online?beta=0.25")),
    Case("gavel", FIG1, ("gavel.makespan_fluid", "gavel.jct_p99")),
    Case("oef", load("paper/oef-multi"), ("oef.gandiva_fair", "oef.cooperative", "oef.noncooperative")),
    Case("oef", drawn(1, RANDOM.get("oef").draw), ("oef.gandiva_fair", "oef.cooperative", "oef.rounding")),
    Case("rigid", log(moves=True), ("rigid.sjf", "rigid.bound", "rigid.executed")),
    Case("rigid", log(moves=False), ("rigid.easy?estimates=requested", "rigid.bound?objective=weighted")),
    Case("synergy", load("paper/synergy-example"), (*ROUNDS, "synergy.ilp1")),
    Case("synergy", drawn(2, synergy.draw, jobs=3, chips=("V100", "K80")), (*ROUNDS, "synergy.hetero.ilp1")),
    Case("zhou", drawn(20, zhou.draw), RUNS),
    Case("zhou", SPREAD, RUNS),
    Case("admission", drawn(14, RANDOM.get("admission").draw), ("admission.online", "admission.columns")),
    Case("admission", drawn(15, RANDOM.get("admission").draw), ("admission.online", "admission.columns")),
)

LATER = "jobs start later than they could: a worse schedule, whose objective is what the row says"
COPIES = "another field of the view has what methods read; this one is for simulations, figures and captions"
ELSEWHERE = "the problem has no such thing"

UNNOTICED = {
    "hadar": {"workload.arrival_s": LATER},
    "gavel": {
        "workload.arrival_s": "the bound is lower than it could be, and the rule derives just that",
        "capacity": "likewise, if types swap their GPUs; with more GPUs, the claim is not what the rule derives",
    },
    "oef": {"min_demand": "a placer rounds otherwise: an allocation whose efficiency is what the row says"},
    "rigid": {"release": LATER},
    "synergy": {
        "workload.arrival_s": LATER,
        "needs.demand": "heuristics ask for other CPUs and memory: a round whose progress is what the row says",
    },
    "zhou": {},
    "admission": {},
}
"""Fields whose change alters an objective or a bound unnoticed, and why what the rows say is still true."""

UTILITIES = {f"workload.utilities.{name}": COPIES for name in ("shape", "a", "b", "c")}
NETWORK = "only simulations with `--network` read it"
JOBS = {
    "workload.tenant": ELSEWHERE,
    "workload.weight": ELSEWHERE,
    "workload.exchange_s": NETWORK,
    **UTILITIES,
}
AMOUNTS = {"servers.cpus": ELSEWHERE, "servers.memory_gb": ELSEWHERE}
UNUSED = {
    "hadar": {**JOBS, **AMOUNTS, "servers.host": "the checker counts servers; these methods fill them in order"},
    "gavel": {
        **JOBS,
        **AMOUNTS,
        **{f"utilities.{name}": ELSEWHERE for name in ("shape", "a", "b", "c")},
        **dict.fromkeys(("servers.gpu_type", "servers.gpus"), "bounds read the GPUs of all servers, `capacity`"),
        "slots": "a makespan has no horizon",
    },
    "oef": {
        "owner": "only strategy-proofness is about whole tenants",
        "true_speedups": "methods decide by what is reported; the true total is the checker's",
    },
    "rigid": {
        "requested": "EASY finds the same starts here",
        "asked": "whether there are limits decides which rules run",
        "overran": "a note below the ladder counts jobs that ran longer than their limit",
    },
    "synergy": {
        **JOBS,
        "workload.rates": "`profiles` has the rates",
        "rounds": "the number of rounds is an estimate, for limits of size",
        **dict.fromkeys(("pools.cpus_per_gpu", "pools.memory_gb_per_gpu", "pools.largest"), "`needs` was made of it"),
        **dict.fromkeys(("needs.share", "needs.best", "fair"), "read by heuristics that are not tried here"),
    },
    "zhou": {
        **dict.fromkeys(("slots", "arrival", "weight", "work", "most"), COPIES),
        "architectures.ps.slots": "only prices depend on T: `zhou.ra.mincost` is tried, and reads that of rings",
        "architectures.ra.machines.worker_bandwidth": "rings have no parameter servers, which it would load",
    },
    "admission": {
        "machines.ps_bandwidth": "one parameter server suffices here",
        "machines.worker_bandwidth": "one parameter server carries the traffic of all workers here",
    },
}
"""Fields whose changes alter no objective and no bound, and why."""


@pytest.mark.parametrize("paper", dict.fromkeys(case.paper for case in CASES))
def test_a_wrong_view_is_noticed_but_for_these_fields(paper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unnoticed, unused = outcomes([case for case in CASES if case.paper == paper], monkeypatch)
    assert unnoticed == set(UNNOTICED[paper])
    assert unused == set(UNUSED[paper])


def test_every_paper_is_tried() -> None:
    assert {case.paper for case in CASES} == {spec.id for spec in PAPERS} - {"smith"}


@pytest.mark.parametrize(
    ("case", "path", "method", "optimum"),
    [
        (Case("oef", load("paper/oef-eq1"), ()), ("capacity",), "oef.cooperative", 4.5),
        (Case("hadar", FIG1, ()), ("workload", "rates"), "hadar.p2.columns", 1025 / 21),
    ],
)
def test_twice_as_much_is_not_twice_as_good(
    case: Case, path: Path, method: str, optimum: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a method reads twice the capacity or rates, its decision is refused.

    With a doubled capacity, eq. (1) of OEF was once "verified" at 9.0 = its bound; with doubled rates, Fig. 1 at 82.5.
    """
    spec = PAPERS.get(case.paper)
    view = spec.view(case.instance)
    value = dict(leaves(view))[path]
    seen = with_leaf(view, path, value * 2)
    monkeypatch.setitem(PAPERS._entries, spec.id, replace(spec, view=lambda instance: seen))
    (row,) = compare_here(case.instance, [method], limits=LIMITS, probes=False).rows
    assert row.verified is False
    assert row.violations
    assert row.own_bound is not None
    assert optimum * (1 - 1e-9) <= row.own_bound < 2 * optimum * 0.9
    assert row.gap is None
