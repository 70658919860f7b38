"""Families of instances with a parameter, on each of which some algorithm gets worse as the parameter grows.

``family/<name>?<parameter>=<value>`` is an instance of a family. A family also says how an algorithm that knows the
future would decide (:attr:`HardFamily.answer`). The checker verifies that decision, so the ratio of the two is a lower
bound on the competitive ratio at any size, without a solver. Each builder's docstring explains its instance.
"""

from schedgap.instances.discovery import import_submodules
from schedgap.instances.families.registry import HARD, HardFamily, HardSpec

import_submodules(__name__)

__all__ = ["HARD", "HardFamily", "HardSpec"]
