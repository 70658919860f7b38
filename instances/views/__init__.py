"""Each paper's view of an instance (arrays in one unit system) and the decision type that its methods return.

A view is what a paper's models and heuristics read, a decision what they return. Checkers of decisions read the raw
instance instead (:mod:`schedgap.certificates.reading`).
Every file here registers its paper in :data:`schedgap.instances.registry.PAPERS`.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
