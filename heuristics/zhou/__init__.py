"""Zhou et al.'s algorithms and the schedulers they are compared with, for parameter servers and rings (``ps``, ``ra``).

Algorithms 4 and 7 lose workers as printed, so that the exact placement is the default and ``printed=true`` theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from schedgap.heuristics.registry import HEURISTICS, Context, Guarantee, HeuristicSpec
from schedgap.heuristics.zhou import baselines, batches, lemma
from schedgap.heuristics.zhou.batches import Way
from schedgap.instances.parameters import Parameter
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, Schedule, View


def _baseline(view: View, context: Context, arch: str, decide: Callable[[Architecture, Context], Schedule]) -> Schedule:
    return decide(view.architectures[arch], context)


def _online(
    view: View,
    context: Context,
    arch: str,
    *,
    alpha: int | str = Way.alpha,
    carry: bool = Way.carry,
    tight: bool = Way.tight,
    inclusive: bool = Way.inclusive,
    printed: bool = Way.printed,
) -> Schedule:
    r"""Return the schedule of A_online.

    Rows state Lemma 1's :math:`4 \alpha` where a run is shown to meet it.

    See Also
    --------
    batches : Algorithms 1 to 3.
    lemma : what Lemma 1 promises for a run.
    schedgap.instances.elastic.search : the exact placement, in the place of Algorithms 4 to 7.
    """
    return batches.online(view.architectures[arch], Way(alpha, carry, tight, inclusive, printed))


def _planned(
    view: View,
    context: Context,
    arch: str,
    decide: Callable[[Architecture, Way], Schedule],
    *,
    printed: bool = Way.printed,
) -> Schedule:
    return decide(view.architectures[arch], Way(printed=printed))


def _skip(view: View, arch: str) -> str | None:
    return view.architectures[arch].reason


CELLS = 2_000_000
"""Servers times slots up to which a schedule is sought unasked: about two gigabytes of tables."""


def _too_large(view: View, arch: str) -> str | None:
    a = view.architectures[arch]
    cells = a.machines.size * int(a.arrival.max() + 2 * a.options.shortest.max())
    return None if cells <= CELLS else f"servers x slots = {cells:,}, more than {CELLS:,}"


def _four_alpha(view: View, arch: str, *, alpha: int | str = Way.alpha, carry: bool = Way.carry) -> Guarantee:
    """Theorem 5, for jobs that meet its assumptions; what a run shows may be more."""
    a = view.architectures[arch]
    least = a.alpha
    largest = least if alpha in ("formula", "round") else alpha
    if carry and isinstance(largest, int) and largest >= least and a.assumption_1.all() and a.assumption_2.all():
        return Guarantee(f"4α = {4 * largest}", 4.0 * largest)
    return Guarantee(f"4·{largest} where a run meets Lemma 1" if carry else "4α where a run meets Lemma 1")


def _lemma_1(view: View, decision: Schedule, arch: str) -> Guarantee:
    return lemma.shown(view.architectures[arch], decision)


def _two_log_lambda(view: View, arch: str) -> Guarantee:
    """Theorem 3."""
    gamma = view.architectures[arch].gamma
    return Guarantee(f"2 log λ = {gamma:.1f}", gamma)


PRINTED = Parameter("printed", "Algorithms 4 and 7 as printed instead of the exact placement")
ONLINE = (
    Parameter(
        "alpha",
        "windows of a batch (the paper calls 4 typical): a number; formula: Theorem 5's, which needs all weights in "
        "advance; round: inequality (6) on each batch; realised: until nothing more of the batch fits",
        choices=("formula", "round", "realised"),
        least=1,
        most=10**6,
    ),
    Parameter("carry", "whether a batch leaves what does not fit to the next one; if not, its windows are repeated"),
    Parameter("tight", "not the paper's: whether a batch begins when the runs of the one before are done"),
    Parameter("inclusive", "whether the last slot of a window may be used, which (7b) forbids"),
    PRINTED,
)
VARIANTS = ("alpha=1", "carry=false")
"""What compare shows beside α = 4: the least α, about which nothing is proved, and windows that are repeated. With an α
by the formulas jobs wait for hundreds of windows."""
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
    """Register a method for both architectures, whose id its functions get."""
    for arch in ARCHITECTURES:
        HEURISTICS.register(
            HeuristicSpec(
                id=f"zhou.{arch}.{name}",
                paper="zhou",
                problem=f"zhou.{arch}.{problem}",
                kind=kind,
                run=partial(run, arch=arch),
                source=source,
                skip=partial(_skip, arch=arch),
                too_large=partial(_too_large, arch=arch),
                parameters=parameters,
                variants=variants + (AS_PRINTED[arch] if PRINTED in parameters else ()),
                **{name: partial(function, arch=arch) for name, function in more.items()},  # type: ignore[arg-type]
            )
        )


_register(
    "online",
    "completion",
    "online",
    _online,
    "Zhou et al., Algorithms 1 to 7, Lemma 1, Theorem 5",
    guarantee=_four_alpha,
    shown=_lemma_1,
    parameters=ONLINE,
    variants=VARIANTS,
)
_register(
    "amaxweight",
    "weight",
    "online",
    partial(_planned, decide=batches.maxweight),
    "Zhou et al., Algorithms 3 to 7, Theorem 3",
    guarantee=_two_log_lambda,
    parameters=(PRINTED,),
)
_register(
    "amincost",
    "cost",
    "online",
    partial(_planned, decide=batches.mincost),
    "Zhou et al., Algorithms 4 to 7",
    parameters=(PRINTED,),
)
_register(
    "jain",
    "weight",
    "baseline",
    partial(_baseline, decide=batches.jain),
    "Jain et al., ACM TOPC 2015: greedy by weight density",
)
for _name, _problem, _decide, _source in (
    ("fifo", "completion", baselines.fifo, "FIFO with 1 to 30 workers"),
    ("drf", "completion", baselines.drf, "DRF (Ghodsi et al., NSDI 2011)"),
    ("antman", "preemptive", baselines.antman, "AntMan (Xiao et al., OSDI 2020)"),
    ("tiresias", "preemptive", baselines.tiresias, "Tiresias (Gu et al., NSDI 2019)"),
):
    _register(_name, _problem, "baseline", partial(_baseline, decide=_decide), f"Zhou et al. §7: {_source}")
