"""Each paper's view of an instance (arrays in one unit system) and the decision type that its methods return.

A view and its decision are the only interface between a paper's models, heuristics and verifier.
Every file here registers its paper in :data:`schedgap.instances.registry.PAPERS`.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
