"""Seeded generators: a TOML spec names a family and its parameters; the family draws an instance.

To add a family, write a file here that registers a :class:`~schedgap.instances.generate.core.Family`, and TOML specs
for it in ``instances/gen``. The same spec and seed give the same fingerprint on every machine, and asking for more jobs
does not change earlier ones (see :class:`~schedgap.instances.generate.core.Streams`).
"""

from schedgap.instances.discovery import import_submodules
from schedgap.instances.generate.core import FAMILIES, Family, GeneratorSpec, Streams, generate

import_submodules(__name__)

__all__ = ["FAMILIES", "Family", "GeneratorSpec", "Streams", "generate"]
