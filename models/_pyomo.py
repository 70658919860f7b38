"""Pyomo, imported when the first model is built, and without those parts of scipy that no model uses.

Until then an empty module stands for ``pyomo.environ``: importing that takes half a second, and who lists models, plans
a run or generates columns builds none.

Once both Pyomo and scipy are imported, Pyomo imports all of scipy's statistics, integration and geometry, to be ready
for expressions in which they occur. It finds empty modules of these names here; everybody else gets the real ones.

Its parameters are read without a warning: 6.10 calls a method of theirs that it has marked as deprecated, and finds out
each time who did, in half a millisecond.

Its lock for captured output becomes one of threads. As one of processes it is a semaphore of the system, which workers
that are stopped leave behind, so that a warning of Python's ended eight of ten simulations.
"""

from __future__ import annotations

import sys
import threading
import types
from importlib import import_module
from typing import Any

_UNUSED = [name for name in ("scipy.stats", "scipy.integrate", "scipy.spatial") if name not in sys.modules]

sys.modules.update({name: types.ModuleType(name) for name in _UNUSED})
try:
    _DEPENDENCIES = import_module("pyomo.common.dependencies")
    import_module("scipy")  # whichever of the two comes last starts these imports
finally:
    for _name in _UNUSED:
        del sys.modules[_name]

vars(_DEPENDENCIES)["capture_output_lock"] = threading.Lock()


class _Environ(types.ModuleType):
    """Stands for Pyomo until the first use of one of its names, and has all of them from then on.

    Names with underscores do not count: `inspect` looks for such in every module.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        vars(self).update(vars(load()))
        return super().__getattribute__(name)

    def __dir__(self) -> list[str]:
        return dir(load())


def load() -> types.ModuleType:
    """Return ``pyomo.environ``, imported now if it was not before."""
    if isinstance(sys.modules.get(NAME), _Environ):
        sys.modules.pop(NAME, None)  # two threads may both be here
    loaded = import_module(NAME)
    loaded.Param.sparse_iteritems = loaded.Param.sparse_items
    return loaded


NAME = "pyomo.environ"

if NAME not in sys.modules:
    sys.modules[NAME] = vars(sys.modules["pyomo"])["environ"] = _Environ(NAME)
