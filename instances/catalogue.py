"""Placeholder until the catalogue lands."""
def load(ref, overrides=None):  # noqa
    return ref
def _x():
    raise NotImplementedError
