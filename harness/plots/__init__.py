"""The figures of comparisons and simulations; the same results have the same ones."""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
