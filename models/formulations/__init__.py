"""Statements of the models, a file per paper: see :mod:`models.explain`."""

from instances.discovery import import_submodules

import_submodules(__name__)
