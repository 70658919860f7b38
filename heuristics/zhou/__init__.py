"""Zhou et al.'s algorithms and the schedulers they are compared with, for parameter servers and rings (``ps``, ``ra``).

Algorithms 4 and 7 lose workers as printed, so that the exact placement is the default and ``printed=true`` theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from schedgap.heuristics.registry import Guarantee, heuristic
from schedgap.heuristics.zhou import baselines, batches
from schedgap.heuristics.zhou.batches import Way
from schedgap.instances.parameters import Parameter, passing
from schedgap.instances.views.zhou import ARCHITECTURES, RESTARTS, Architecture, Schedule


def _planned(decide: Callable[[Architecture, Way], Schedule]) -> Callable[..., Schedule]:
    return passing(lambda a, context, **settings: decide(a, Way(**settings)), decide, Way)


CELLS = 2_000_000
"""Servers times slots up to which a schedule is sought unasked: about two gigabytes of tables."""


def _too_large(a: Architecture) -> str | None:
    cells = a.machines.size * max(int(a.arrival.max() + 2 * a.options.shortest.max()), a.given_deadline or 0)
    return None if cells <= CELLS else f"servers x slots = {cells:,}, more than {CELLS:,}"


def _four_alpha(a: Architecture, *, alpha: int | str = Way.alpha, carry: bool = Way.carry) -> Guarantee:
    """Theorem 5, for jobs that meet its assumptions; what a run shows may be more."""
    least = a.alpha
    largest = least if alpha in ("formula", "round") else alpha
    if carry and isinstance(largest, int) and largest >= least and a.meets_assumptions.all():
        return Guarantee(f"4α = {4 * largest}", 4.0 * largest)
    return Guarantee(f"4·{largest} where a run meets Lemma 1" if carry else "4α where a run meets Lemma 1")


def _two_log(a: Architecture) -> Guarantee | None:
    """Theorem 3, for jobs that meet its assumptions."""
    return Guarantee(f"2 log λ = {a.gamma:.1f}", a.gamma) if a.meets_assumptions.all() else None


PRINTED = Parameter("printed", "Algorithms 4 and 7 as printed instead of the exact placement")
TIES = Parameter(
    "ties",
    "of schedules that cost the same, the first one found, as printed, or the one that completes first: on an empty "
    "cluster all cost nothing. On nine generated cases that makes the online totals 10.6 % smaller to 1.9 % larger "
    "(α = 1: 6 to 32 % smaller), and weights by τ 6.5 % smaller to 27 % larger",
    choices=("first", "completion"),
)
ONLINE = (
    Parameter(
        "alpha",
        "windows of a batch (the paper calls 4 typical): a number; formula: Theorem 5's, which needs all weights in "
        "advance; round: inequality (6) on each batch, which needs the least of them; realised: until nothing more of "
        "the batch fits",
        choices=("formula", "round", "realised"),
        least=1,
        most=10**6,
    ),
    Parameter("carry", "whether a batch leaves what does not fit to the next one; if not, its windows are repeated"),
    Parameter("tight", "not the paper's: whether a batch begins when the runs of the one before are done"),
    Parameter("inclusive", "whether the last slot of a window may be used, which (7b) forbids"),
    PRINTED,
    TIES,
)
VARIANTS = ("alpha=1", "carry=false")
"""What compare shows beside α = 4: the least α, about which nothing is proved, and windows that are repeated. With an α
by the formulas jobs wait for hundreds of windows."""
RESTART = Parameter(
    "restart_slots",
    "slots without work at the beginning of each run of a job but its first; §7.1: preemption lengthens jobs",
    least=0,
    most=len(RESTARTS),
    changes={slots: {"claims": (claim,)} for claim, slots in RESTARTS.items()},
)
KNOW = Parameter("know_remaining", "jobs go by their remaining work, as in §7, and not by the service they have had")
TYPES = Parameter("types", "any configuration of workers and PSs, or that of the ideal case", choices=("any", "ideal"))
AS_PRINTED = {"ps": ("printed=true",), "ra": ()}
"""Algorithm 7 as printed runs on request only: its schedules do not do the work."""


def _register(
    name: str,
    problem: str,
    kind: Literal["online", "baseline"],
    run: Callable[..., Schedule],
    source: str,
    parameters: tuple[Parameter, ...] = (),
    variants: tuple[str, ...] = (),
    **more: Callable[..., Guarantee | None],
) -> None:
    """Register a method for both architectures, whose functions are of an architecture instead of a view."""

    def of(arch: str, function: Callable[..., Any]) -> Callable[..., Any]:
        return passing(lambda view, *rest, **settings: function(view.architectures[arch], *rest, **settings), function)

    for arch in ARCHITECTURES:
        heuristic(
            f"zhou.{arch}.{name}",
            problem=f"zhou.{arch}.{problem}",
            kind=kind,
            source=source,
            skip=of(arch, lambda a: a.reason),
            too_large=of(arch, _too_large),
            parameters=parameters,
            variants=variants + (AS_PRINTED[arch] if PRINTED in parameters else ()),
            **{name: of(arch, function) for name, function in more.items()},
        )(of(arch, run))


_register(
    "online",
    "completion",
    "online",
    _planned(batches.online),
    "Zhou et al., Algorithms 1 to 7, Lemma 1, Theorem 5",
    guarantee=_four_alpha,
    shown=batches.shown,
    parameters=ONLINE,
    variants=VARIANTS,
)
_register(
    "amaxweight",
    "weight",
    "online",
    _planned(batches.maxweight),
    "Zhou et al., Algorithms 3 to 7, Theorem 3",
    guarantee=_two_log,
    parameters=(PRINTED, TIES),
)
_register(
    "amincost", "cost", "online", _planned(batches.mincost), "Zhou et al., Algorithms 4 to 7", parameters=(PRINTED,)
)
for _name, _problem, _decide, _source, _parameters in (
    ("jain", "weight", baselines.jain, "Jain et al., ACM TOPC 2015: greedy by weight density", (TYPES,)),
    ("fifo", "completion", baselines.fifo, "Zhou et al. §7: FIFO with 1 to 30 workers", ()),
    ("drf", "completion", baselines.drf, "Zhou et al. §7: DRF (Ghodsi et al., NSDI 2011)", ()),
    ("antman", "preemptive", baselines.antman, "Zhou et al. §7: AntMan (Xiao et al., OSDI 2020)", (RESTART,)),
    ("tiresias", "preemptive", baselines.tiresias, "Zhou et al. §7: Tiresias (Gu et al., NSDI 2019)", (RESTART, KNOW)),
):
    _register(_name, _problem, "baseline", _decide, _source, _parameters)
