"""Each paper's view of an instance (arrays, one unit system) and the decision type its methods return.

A view and its decision are what a paper's models, heuristics and verifier all speak; nothing else connects them.
Every file here registers its paper in :data:`schedgap.instances.registry.PAPERS`.
"""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
