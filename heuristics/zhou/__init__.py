"""Zhou et al.'s algorithms and their baselines, for parameter servers and ring all-reduce (``ps``, ``ra``).

Algorithms 4 and 7 lose workers as printed, so the exact placement is the default; ``printed=true`` selects theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from schedgap.heuristics.advice import PARAMETERS as PREDICTED
from schedgap.heuristics.advice import Advice, blurred, predicted
from schedgap.heuristics.duals import PriceRun
from schedgap.heuristics.registry import Context, Guarantee, heuristic
from schedgap.heuristics.zhou import baselines, batches, duality
from schedgap.heuristics.zhou.batches import Way
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.parameters import Parameter, passing
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.zhou import ARCHITECTURES, RESTARTS, Architecture, ZhouSchedule, ZhouView


def _planned(decide: Callable[[Architecture, Way], ZhouSchedule]) -> Callable[..., ZhouSchedule]:
    return passing(lambda a, context, **settings: decide(a, Way(**settings)), decide, Way)


CELLS = 2_000_000
"""Most servers times slots for which a comparison runs these heuristics by default: about two gigabytes of tables."""


def _too_large(a: Architecture) -> str | None:
    cells = a.machines.size * max(int(a.arrival.max() + 2 * a.options.shortest.max()), a.given_deadline or 0)
    return None if cells <= CELLS else f"servers x slots = {cells:,}, more than {CELLS:,}"


def _four_alpha(
    a: Architecture, *, alpha: int | str = Way.alpha, carry: bool = Way.carry, f: float = Way.f
) -> Guarantee:
    """Return the ratio ``4α`` of Theorem 5 if all jobs meet its assumptions.

    If they do not, no ratio is known in advance, but a run may be shown to meet the conditions of Lemma 1.
    """
    a = a.believed(f)
    least = a.alpha
    largest = least if alpha in ("formula", "round", "scheduled") else alpha
    if carry and isinstance(largest, int) and largest >= least and a.meets_assumptions.all():
        return Guarantee(f"4α = {4 * largest}", 4.0 * largest)
    return Guarantee(f"4·{largest} where a run meets Lemma 1" if carry else "4α where a run meets Lemma 1")


def _two_log(a: Architecture, *, f: float = Way.f) -> Guarantee | None:
    """Return the ratio ``2 log λ`` of Theorem 3 if all jobs meet its assumptions as printed, otherwise ``None``.

    It may be false there: rows state what :func:`schedgap.heuristics.zhou.duality.shown` says of a run.
    """
    a = a.believed(f)
    return Guarantee(f"2 log λ = {a.gamma:.1f}", a.gamma) if a.meets_assumptions.all() else None


PRINTED = Parameter(
    "printed",
    "whether to run Algorithms 4 and 7 as printed instead of the exact placement. Of types and durations, Algorithm 4 "
    "tries only those that could be the cheapest with the exact placement; all, up to hundreds of times as many, would "
    "change its cost for 11 of 3,927 random jobs",
)
TIES = Parameter(
    "ties",
    "choice among schedules of equal cost: the first one found, as printed, or the one that completes first; on an "
    "empty cluster all cost nothing. On nine generated cases the latter makes the online totals 10.6 % smaller to "
    "1.9 % larger (α = 1: 6 to 32 % smaller), and weights by τ 6.5 % smaller to 27 % larger",
    choices=("first", "completion"),
)
BELIEVED = Parameter("f", "multiple of F for which the algorithm takes it; λ − 1 grows with it", least=1e-6, most=1e6)
ONLINE = (
    Parameter(
        "alpha",
        "windows per batch (the paper calls 4 typical): a number; formula: that of Theorem 5, which needs all weights "
        "in advance; round: inequality (6) on each batch, which needs the least weight; scheduled: the same, or fewer "
        "if they schedule the whole batch, as section 5.3 prints for simulations; realised: until nothing more of the "
        "batch fits, even if some of its jobs are longer than a window",
        choices=("formula", "round", "scheduled", "realised"),
        least=1,
        most=10**6,
    ),
    Parameter("carry", "whether jobs that do not fit go to the next batch; if not, the batch's windows are repeated"),
    Parameter("tight", "not the paper's: whether a batch starts as soon as the runs of the previous batch are done"),
    Parameter("inclusive", "whether the last slot of a window may be used, which (7b) forbids"),
    PRINTED,
    TIES,
    BELIEVED,
)
VARIANTS = ("alpha=1", "carry=false")
"""Settings of ``online`` that comparisons run besides α = 4.

These are the smallest α, for which no theorem holds, and repeated windows. With the α of the formulas, jobs would wait
for hundreds of windows.
"""
RESTART = Parameter(
    "restart_slots",
    "slots without work at the start of each run of a job except its first; §7.1: preemption lengthens jobs",
    least=0,
    most=len(RESTARTS),
    changes={slots: {"claims": (claim,)} for claim, slots in RESTARTS.items()},
)
KNOW = Parameter("know_remaining", "whether jobs are ordered by remaining work, as in §7, or by attained service")
TYPES = Parameter("types", "any configuration of workers and PSs, or that of the ideal case", choices=("any", "ideal"))
AS_PRINTED = {"ps": ("printed=true",), "ra": ()}
"""Settings with algorithms as printed that comparisons run in addition, by architecture.

Algorithm 7 (ring all-reduce) as printed runs on request only, because its schedules do not do all work of the jobs.
"""


def _register(
    name: str,
    problem: str,
    kind: Literal["online", "baseline"],
    run: Callable[..., ZhouSchedule],
    source: str,
    parameters: tuple[Parameter, ...] = (),
    variants: tuple[str, ...] = (),
    **more: Callable[..., Guarantee | PriceRun | None],
) -> None:
    """Register a heuristic for both architectures, PSs and ring all-reduce.

    The functions `run` and those of `more` take an architecture instead of a view.
    """

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
    shown=duality.shown,
    steps=duality.steps,
    parameters=(PRINTED, TIES, BELIEVED),
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


def _advised(arch: str) -> None:
    """Register A_maxweight with predicted prices for an architecture."""

    def run(
        view: ZhouView, context: Context, *, trust: float = 0.5, noise: float | str = 0.0, of: str = "same"
    ) -> ZhouSchedule:
        """Schedule by τ as A_maxweight does, at prices that follow those of column generation for (8) or (17).

        :mod:`schedgap.heuristics.advice` has the price function. Rows state the ratio 2 log λ / (1 − trust) where all
        jobs meet the assumptions of Theorem 3 and the prices (11) of what is in use at the end show it, whatever was
        predicted.
        """
        a = view.architectures[arch]
        found = predicted(view, context, f"zhou.{arch}.columns.maxweight", of, PAPERS.get("zhou"))
        slots, by_class = a.deadline - 1, found.reshape(-1, len(a.machines.resources), found.shape[-1])
        if len(by_class) != a.classes.size:
            raise NotApplicableError("the other draw has servers of other kinds")
        known = np.zeros((*by_class.shape[:2], slots))
        known[:, :, : by_class.shape[2]] = by_class[:, :, :slots]
        least, most = np.full_like(known, 1e-3), np.full_like(known, max(a.price_base - 1.0, 2e-3))
        told = blurred(known, noise, context, least, most)
        return batches.follow_advice(a, Advice(1.0 + told[a.machines.kind], trust))

    def shown(
        view: ZhouView, schedule: ZhouSchedule, *, trust: float = 0.5, noise: float | str = 0.0, of: str = "same"
    ) -> Guarantee | None:
        return duality.shown(view.architectures[arch], schedule, trust=trust)

    heuristic(
        f"zhou.{arch}.advised",
        problem=f"zhou.{arch}.weight",
        kind="baseline",
        source="Zhou et al., Algorithms 3 to 7, with predicted prices (not in the paper)",
        skip=lambda view: view.architectures[arch].reason,
        too_large=lambda view: _too_large(view.architectures[arch]),
        parameters=PREDICTED,
        by_name=True,
        shown=shown,
    )(run)


for _arch in ARCHITECTURES:
    _advised(_arch)
