"""The papers' claims; the file of each paper registers its own."""

from schedgap.harness.studies.audit.row import CLAIMS
from schedgap.instances.discovery import import_submodules

import_submodules(__name__)

__all__ = ["CLAIMS"]
