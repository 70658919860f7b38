"""Rules that schedule gangs of fixed duration, and what really ran: each on its pool, all it knows at that moment."""

from schedgap.instances.discovery import import_submodules

import_submodules(__name__)
