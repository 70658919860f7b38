"""OEF over rounds (Mo, Xu, Lau, Middleware 2024): it rounds tenants' shares to whole devices and simulates policies.

``oef.rounding`` and ``oef.rounding_tijdeman`` round the optimal cooperative shares for a day of 5-minute rounds
(:data:`.rounding.ROUNDS`): long enough that a debt of one or two devices is less than 0.01 devices on average. AlloX
and the evaluators of :mod:`schedgap.heuristics.oef.dynamics` are policies of :mod:`schedgap.heuristics.simulator`.
"""

from __future__ import annotations

from schedgap.heuristics.oef import dynamics, gandiva_fair, mechanisms  # noqa: F401 -- they register what they define
from schedgap.heuristics.oef.rounding import Placer, quality, round_shares  # noqa: F401 -- for docstrings and lessons
from schedgap.heuristics.registry import Context, heuristic
from schedgap.instances.views.oef import Allocation, OefView


@heuristic(
    "oef.rounding",
    problem="oef.allocation",
    aims="oef.envy_free",
    kind="online",
    source="OEF §4.3, by largest remainder so that capacity holds",
)
def rounding(view: OefView, context: Context) -> Allocation:
    """Round the shares of ``oef.cooperative`` by largest remainder, for a day of rounds.

    The paper's own rule, which rounds each tenant on its own, exceeds capacity.

    The largest total efficiency can exceed that of these shares, as of all envy-free shares, by any factor. Example:
    two types with one device each; a tenant of weight 1 has speedups 1 and r, a tenant of weight r has 1 and 1. The
    second tenant is free of envy only with r times as many devices as the first, which leaves the first at most
    2 / (r + 1). So the total efficiency is below 4, while r + 1 is possible.

    See Also
    --------
    Placer : the rules.
    """
    return round_shares(view, context.oracle("oef.cooperative", view).devices, "largest_remainder")


@heuristic(
    "oef.rounding_tijdeman",
    problem="oef.allocation",
    aims="oef.envy_free",
    kind="online",
    source="OEF §4.3 with the chairman assignment (Tijdeman 1980)",
)
def rounding_tijdeman(view: OefView, context: Context) -> Allocation:
    """Round the shares of ``oef.cooperative`` by Tijdeman's rule, for a day of rounds.

    Debts stay below one device at all times, as long as shares do not change.

    See Also
    --------
    Placer : the rules.
    """
    return round_shares(view, context.oracle("oef.cooperative", view).devices, "tijdeman")
