"""Statements of the models, a file per paper: see :mod:`schedgap.models.explain`."""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
