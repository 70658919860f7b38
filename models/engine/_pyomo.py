"""Lazy import of Pyomo: on first use, and without the parts of scipy that no model needs.

Until a model is built, an empty module stands in for ``pyomo.environ``: importing the real one takes half a second,
and listing models, planning a run or generating columns does not need it.

Once both Pyomo and scipy are imported, Pyomo imports all of scipy's statistics, integration and geometry, in case they
occur in expressions. During that import it gets empty modules of these names; all other code gets the real ones.

Reading Pyomo parameters must not warn: version 6.10 itself calls one of their methods that it has marked as
deprecated, and spends half a millisecond on each call to find the caller.

Pyomo's lock for captured output is replaced by a thread lock. The original is a process lock, that is, a system
semaphore, which stopped workers leave behind; Python's warning about that ended eight of ten simulations.
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
    import_module("scipy")  # whichever of the two is imported last triggers these imports
finally:
    for _name in _UNUSED:
        del sys.modules[_name]

vars(_DEPENDENCIES)["capture_output_lock"] = threading.Lock()


class _Environ(types.ModuleType):
    """Stand-in for ``pyomo.environ`` that loads the real module when one of its names is first used.

    Dunder names do not trigger the import, because `inspect` looks some up in every module.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        vars(self).update(vars(load()))
        return super().__getattribute__(name)

    def __dir__(self) -> list[str]:
        return dir(load())


def load() -> types.ModuleType:
    """Return ``pyomo.environ``, importing it if necessary."""
    if isinstance(sys.modules.get(NAME), _Environ):
        sys.modules.pop(NAME, None)  # two threads may both be here
    loaded = import_module(NAME)
    loaded.Param.sparse_iteritems = loaded.Param.sparse_items
    return loaded


NAME = "pyomo.environ"

if NAME not in sys.modules:
    sys.modules[NAME] = vars(sys.modules["pyomo"])["environ"] = _Environ(NAME)
