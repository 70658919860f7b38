"""Importers of real traces: CSV formats are tables in ``formats.toml``, other formats have a module here.

>>> from schedgap.instances.importers import import_trace
>>> instance = import_trace("philly", path)  # doctest: +SKIP
"""

from schedgap.instances.discovery import import_submodules
from schedgap.instances.importers.registry import IMPORTERS, ImporterSpec, Options, import_trace, read_trace

__all__ = ["IMPORTERS", "ImporterSpec", "Options", "import_trace", "read_trace"]

import_submodules(__name__)
