"""Pyomo, imported without those parts of scipy that no model uses: half a second less for each process that solves.

Once both Pyomo and scipy are imported, Pyomo imports all of scipy's statistics, integration and geometry, to be ready
for expressions in which they occur. It finds empty modules of these names here; everybody else gets the real ones.

Its lock for captured output becomes one of threads. As one of processes it is a semaphore of the system, which workers
that are stopped leave behind, so that a warning of Python's ended eight of ten simulations.
"""

from __future__ import annotations

import sys
import threading
import types
from importlib import import_module

_UNUSED = [name for name in ("scipy.stats", "scipy.integrate", "scipy.spatial") if name not in sys.modules]

sys.modules.update({name: types.ModuleType(name) for name in _UNUSED})
try:
    import_module("pyomo.environ")
    import_module("scipy")  # whichever of the two comes last starts these imports
finally:
    for _name in _UNUSED:
        del sys.modules[_name]

vars(import_module("pyomo.common.dependencies"))["capture_output_lock"] = threading.Lock()
