"""Seeded generators: a TOML spec names a family and its parameters, the family draws an instance.

Adding a family = one file here that registers a :class:`~instances.generate.core.Family`, and TOML specs
for it in ``instances/gen``. The same spec and seed give the same fingerprint on every machine; more jobs
never change earlier ones (see :class:`~instances.generate.core.Streams`).
"""

from instances.discovery import import_submodules
from instances.generate.core import FAMILIES, Family, GeneratorSpec, Streams, generate

import_submodules(__name__)

__all__ = ["FAMILIES", "Family", "GeneratorSpec", "Streams", "generate"]
