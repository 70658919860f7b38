"""Small random instances with exact optima, and builders for parts of instances, for audits, searches and tests.

Each paper has a file that registers its ``draw(rng, ...)``. A draw takes only integers from `rng`, so that both a
seeded generator and a testing library can supply them.
"""

from __future__ import annotations

from schedgap.instances.discovery import import_submodules
from schedgap.instances.random_instances.registry import RANDOM, RandomSpec, Source, cluster, pick

__all__ = ["RANDOM", "RandomSpec", "Source", "cluster", "pick"]

import_submodules(__name__)
