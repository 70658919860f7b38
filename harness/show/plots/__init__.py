"""Figures of all kinds of results; importing this package registers them."""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
