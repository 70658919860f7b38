"""Online algorithms and baselines: plain functions that map a paper's view of an instance to a decision.

>>> from schedgap import heuristics, instances
>>> heuristics.get("oef.gandiva_fair").decide(instances.load("paper/oef-eq1")).devices.shape
(3, 2)
"""

from schedgap.heuristics.registry import HEURISTICS, Context, Guarantee, HeuristicSpec
from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

get = HEURISTICS.get

__all__ = ["HEURISTICS", "Context", "Guarantee", "HeuristicSpec", "get"]
