"""Zhou et al.'s algorithms and the schedulers they are compared with, for parameter servers and rings (``ps``, ``ra``).

==========================  ========================================================================================
``zhou.<a>.online``         Algorithm 1 (A_online) with Algorithms 2 to 7; the window of a batch is as long as
                            A_maxweight really needed (the realised α), because windows by the formula overlap
``….online.printed``        the same with Algorithm 4 as printed (only ``ps``)
``….online.inclusive``      slot τ of a window may be used, too
``….online.tight``          not the paper's: a batch starts when the one before is done, not at the end of its window
``zhou.<a>.amaxweight``     Algorithm 3 on the problem of the largest weight; ``….printed`` likewise
``zhou.<a>.amincost``       Algorithms 4 to 7, repaired, on the problem of one job; ``….printed`` (only ``ps``)
``zhou.<a>.jain``           greedy by weight density (Jain et al.) on the problem of the largest weight
``zhou.<a>.fifo``           in order of arrival, with a fixed number of workers between 1 and 30
``zhou.<a>.drf``            numbers of workers by max-min fair dominant shares
``zhou.<a>.antman``         guaranteed jobs first, opportunistic ones on what is left
``zhou.<a>.tiresias``       least remaining work times GPUs first, with interruptions
==========================  ========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from heuristics.registry import HEURISTICS, Context, Guarantee, HeuristicSpec
from heuristics.zhou import baselines, batches
from heuristics.zhou.batches import Way
from instances.views.zhou import ARCHITECTURES, Architecture, Schedule, View

Decide = Callable[[Architecture, Context], Schedule]


def _run(view: View, context: Context, arch: str, decide: Decide) -> Schedule:
    return decide(view.architectures[arch], context)


def _skip(view: View, arch: str) -> str | None:
    return view.architectures[arch].reason


CELLS = 2_000_000
"""Servers times slots up to which a schedule is sought unasked: about two gigabytes of tables."""


def _too_large(view: View, arch: str) -> str | None:
    a = view.architectures[arch]
    cells = a.machines.size * int(a.arrival.max() + 2 * a.options.shortest.max())
    return None if cells <= CELLS else f"servers x slots = {cells:,}, more than {CELLS:,}"


def _four_alpha(view: View, arch: str) -> Guarantee:
    """Theorem 5, with α by its formula."""
    alpha = view.architectures[arch].alpha
    return Guarantee(f"4α = {4 * alpha}", 4.0 * alpha)


def _two_log_lambda(view: View, arch: str) -> Guarantee:
    """Theorem 3."""
    gamma = view.architectures[arch].gamma
    return Guarantee(f"2 log λ = {gamma:.1f}", gamma)


def _nothing(view: View, arch: str) -> None:
    """Promise nothing."""


def _register(
    name: str,
    problem: str,
    kind: Literal["online", "baseline"],
    decide: Decide,
    source: str,
    theorem: Callable[..., Guarantee | None] = _nothing,
    architectures: tuple[str, ...] = tuple(ARCHITECTURES),
) -> None:
    for arch in architectures:
        HEURISTICS.register(
            HeuristicSpec(
                id=f"zhou.{arch}.{name}",
                paper="zhou",
                problem=f"zhou.{arch}.{problem}",
                kind=kind,
                run=partial(_run, arch=arch, decide=decide),
                source=source,
                guarantee=partial(theorem, arch=arch),
                skip=partial(_skip, arch=arch),
                too_large=partial(_too_large, arch=arch),
            )
        )


def _way(function: Callable[..., Schedule], **options: Any) -> Decide:
    """Return a decision procedure of :mod:`heuristics.zhou.batches`, which is not random."""
    return lambda a, context: function(a, Way(**options))


PS = ("ps",)
for _name, _problem, _function, _source, _theorem in (
    ("online", "completion", batches.online, "Zhou et al., Algorithms 1 to 7, Theorem 5", _four_alpha),
    ("amaxweight", "weight", batches.maxweight, "Zhou et al., Algorithms 3 to 7, Theorem 3", _two_log_lambda),
):
    _register(_name, _problem, "online", _way(_function), _source, _theorem)
    _printed = _way(_function, printed=True)
    _register(f"{_name}.printed", _problem, "online", _printed, f"{_source}; as printed", architectures=PS)
_inclusive = _way(batches.online, inclusive=True)
_register("online.inclusive", "completion", "online", _inclusive, "Zhou et al., Algorithms 1 to 7; slot τ may be used")
_register("online.tight", "completion", "online", _way(batches.online, tight=True), "after Zhou et al., Algorithm 1")
_register("amincost", "cost", "online", _way(batches.mincost), "Zhou et al., Algorithms 4 to 7, repaired")
_register(
    "amincost.printed",
    "cost",
    "online",
    _way(batches.mincost, printed=True),
    "Zhou et al., Algorithms 4 and 5 as printed",
    architectures=PS,
)
_register("jain", "weight", "baseline", _way(batches.jain), "Jain et al., ACM TOPC 2015: greedy by weight density")
_register("fifo", "completion", "baseline", baselines.fifo, "Zhou et al. §7: FIFO with 1 to 30 workers")
_register("drf", "completion", "baseline", baselines.drf, "Zhou et al. §7: DRF (Ghodsi et al., NSDI 2011)")
_register("antman", "preemptive", "baseline", baselines.antman, "Zhou et al. §7: AntMan (Xiao et al., OSDI 2020)")
_register("tiresias", "preemptive", "baseline", baselines.tiresias, "Zhou et al. §7: Tiresias (Gu et al., NSDI 2019)")
