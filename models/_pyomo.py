"""Pyomo, imported without those parts of scipy that no model uses: half a second less for each process.

Pyomo imports all of scipy's statistics, integration and geometry as soon as somebody imports scipy, or at once if that
has happened. While it is imported it finds empty modules of these names; later on everybody gets the real ones.
"""

from __future__ import annotations

import sys
import types
from importlib import import_module

_UNUSED = [name for name in ("scipy.stats", "scipy.integrate", "scipy.spatial") if name not in sys.modules]

sys.modules.update({name: types.ModuleType(name) for name in _UNUSED})
import_module("scipy")
import_module("pyomo.environ")
for _name in _UNUSED:
    del sys.modules[_name]
