"""The figures of comparisons and simulations, drawn without pyplot, the same for the same results."""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
