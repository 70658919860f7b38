"""OEF over rounds (Mo, Xu, Lau, Middleware 2024): rounding placer, dynamics, simulated policies.

``oef.rounding`` and ``oef.rounding_tijdeman`` round the optimal cooperative shares for a day of 5-minute
rounds (:data:`.rounding.ROUNDS`), long enough for debts of a device or two to be less than a hundredth of a device on
average. The evaluators of :mod:`schedgap.heuristics.oef.dynamics` and AlloX are policies of
:mod:`schedgap.heuristics.simulator`.
"""

from schedgap.heuristics.oef import dynamics, gandiva_fair, rounding  # noqa: F401 -- they register what they define
