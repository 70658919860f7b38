"""Plug-ins: files, modules, installed distributions and notebook cells that add entries to the registries.

An entry (:class:`~schedgap.instances.registry.Registry`) that is registered while no file of the package is being
imported belongs to a plug-in. Worker processes load plug-ins from their recorded content, so that editing a file during
a run changes nothing, and results state the digests of the plug-ins that produced them.

==============  ====================================================  ===================================
kind            how the user loads it                                 what workers load
==============  ====================================================  ===================================
``file``        ``--plugin mine.py``, ``sg.load_plugin("mine.py")``   its source
``module``      ``--plugin package.module``                           the module, which must be installed
``installed``   an entry point of the group ``schedgap.plugins``      the module
``live``        a definition in a notebook cell or a script           the spec, its functions by value
==============  ====================================================  ===================================
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import logging
import os
import pickle
import sys
import sysconfig
import threading
import traceback
import types
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import base_id

GROUP = "schedgap.plugins"
"""Entry-point group of installed distributions; each entry names a module that registers its methods on import."""


@dataclass(frozen=True)
class Plugin:
    """A source of registry entries outside the package; picklable. The module's docstring lists the kinds.

    Attributes
    ----------
    name
        Path, module, or the id that a notebook cell defines.
    digest
        Digest of the content (source of a file, pickled specs of a definition), part of the keys of results.
    distribution
        Name and version of the distribution that provides it, if any.
    """

    name: str
    kind: Literal["file", "module", "installed", "live"]
    digest: str = ""
    content: bytes = b""
    distribution: str = ""

    @property
    def module(self) -> str:
        """Name of the module in ``sys.modules``."""
        return f"schedgap.plugins.{Path(self.name).stem}" if self.kind == "file" else self.name

    @property
    def remedy(self) -> str:
        """What the user must do if the plug-in is missing."""
        return {
            "installed": f"install {self.distribution}",
            "live": "run the notebook or script that defines it first",
        }.get(self.kind, f"add --plugin {self.name}")

    @property
    def word(self) -> str:
        """Name that identifies the plug-in, in whatever folder its file is."""
        return Path(self.name).name if self.kind == "file" else self.name

    def described(self) -> dict[str, str]:
        """Return the entry in ``run.json``: the fields that are not empty, without the content."""
        return {name: value for name in ("name", "kind", "digest", "distribution") if (value := getattr(self, name))}


Entry = tuple[Any, Any]
"""A registry and one of its specs."""

registries: dict[str, Any] = {}
"""All registries by kind (``"model"``), so that workers find them; each adds itself."""

_loaded: dict[str, Plugin] = {}
"""Plug-ins by name, in the order of loading."""

_entries: dict[str, list[Entry]] = {}
"""Entries of each plug-in."""

_modules: dict[str, list[str]] = {}
"""Modules that each plug-in imported from its own package."""

_broken: list[str] = []
"""Distributions whose plug-ins could not be loaded."""

_importing: list[str | None] = []
"""Plug-ins being imported, the innermost last; ``None`` for files of the package."""

_pending = [GROUP]
"""Groups of entry points that have not been loaded yet."""

_lock = threading.RLock()


# called by registries -----------------------------------------------------------------------------


@contextmanager
def importing(name: str | None) -> Iterator[None]:
    """Assign entries registered within the block to the plug-in of that name, or to the package (``None``)."""
    _importing.append(name)
    try:
        yield
    finally:
        _importing.pop()


def make_room(registry: Any, spec: Any) -> None:
    """Drop the entry that a notebook cell registered under this id earlier, and check the new one."""
    if any(other is registry and old.id == spec.id for other, old in _entries.get(spec.id, ())):
        _forget(spec.id)
    if not _importing:
        _check_method(registry, spec)


def note(registry: Any, specs: Sequence[Any]) -> None:
    """Record which plug-in registered these specs, if any."""
    owner = _importing[-1] if _importing else specs[0].id
    if owner is None:
        return
    if not _importing:
        _loaded.setdefault(owner, Plugin(owner, "live"))
    _entries.setdefault(owner, []).extend((registry, spec) for spec in specs)


def _check_method(registry: Any, spec: Any) -> None:
    """Raise `UsageError` if a method's or prover's paper or problem does not exist, or its id is not its own."""
    if registry.kind == "prover":
        registries["paper"].get(spec.id.partition(".")[0]).problem(spec.id)
    if not getattr(spec, "paper", None):
        return
    paper = registries["paper"].get(spec.paper)
    if hasattr(spec, "parameters") and not spec.id.startswith(f"{spec.paper}."):
        raise UsageError(f"{spec.id!r}: the id of a method must begin with its paper: write {spec.paper}.{spec.id}")
    if hasattr(spec, "problem"):
        paper.problem(spec.problem)
        if spec.aims and spec.problem not in paper.wider(spec.aims)[1:]:
            raise UsageError(f"{spec.id}: aims = {spec.aims!r}: must be a problem that restricts {spec.problem}")
        for other in ("model", "heuristic"):
            if other != registry.kind and spec.id in registries.get(other, ()):
                raise UsageError(f"{other} {spec.id!r} is registered already; choose another id")


def _forget(name: str) -> None:
    _loaded.pop(name, None)
    for registry, spec in _entries.pop(name, ()):
        registry.drop(spec.id)
    for module in _modules.pop(name, ()):
        sys.modules.pop(module, None)


# loading ------------------------------------------------------------------------------------------


def load_plugin(name: str | os.PathLike[str]) -> Plugin:
    """Load a plug-in (a Python file or an installed module), or reload it if it has changed, and return it.

    It raises `UsageError` if the plug-in cannot be found or run, registers nothing, or registers an invalid entry; none
    of its entries remain then.
    """
    text = os.fspath(name)
    path = Path(text)
    if path.suffix != ".py" and os.sep not in text and not path.exists():
        return _load(_of_module(text, "module"))
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; a plug-in is a .py file or an installed module")
    if path.suffix != ".py":
        raise UsageError(f"{path}: the name of a plug-in file must end in .py")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: the plug-in cannot be read: {error.strerror or error}") from None
    return _load(Plugin(str(path), "file", _digest([source]), source))


def _of_module(name: str, kind: Literal["module", "installed"], distribution: str = "") -> Plugin:
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        hint = f"to load the file, write --plugin {top}.py" if Path(f"{top}.py").exists() else "a file name ends in .py"
        raise UsageError(f"plug-in {name!r}: no module {top!r} is installed; {hint}")
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()] or [Path(spec.origin or "")]
    contents = (path.read_bytes() for path in sorted(files) if path.is_file() and path.suffix != ".pyc")
    return Plugin(name, kind, _digest(contents), distribution=distribution)


def _digest(contents: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()[:16]


def _load(plugin: Plugin) -> Plugin:
    """Run a plug-in and keep its entries in place of an earlier version's, which is restored on failure."""
    for other in _loaded.values():
        if (other.kind, other.word, other.digest) == (plugin.kind, plugin.word, plugin.digest):
            return other
        if other.module == plugin.module and other.name != plugin.name:
            raise UsageError(f"plug-in {plugin.name}: {other.name} has the same module name; rename one of them")
    earlier = _loaded.get(plugin.name)
    _forget(plugin.name)
    try:
        _run(plugin)
    except BaseException as error:
        _forget(plugin.name)
        if earlier:
            _load(earlier)
        if isinstance(error, KeyboardInterrupt | MemoryError):
            raise
        if isinstance(error, SyntaxError):
            message, lines = error.msg, [error.lineno]
        else:
            message = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == plugin.name]
        line = f"line {lines[-1]}: " if any(lines) else ""
        raise UsageError(f"plug-in {plugin.name}: {line}{message}") from error
    _loaded[plugin.name] = plugin
    return plugin


def _run(plugin: Plugin) -> None:
    """Run a plug-in and check its entries; its output goes to standard error, since standard output is for data."""
    before = set(sys.modules)
    try:
        with importing(plugin.name), redirect_stdout(sys.stderr):
            if plugin.kind == "file":
                module = sys.modules[plugin.module] = types.ModuleType(plugin.module)
                module.__file__ = os.path.abspath(plugin.name)
                exec(compile(plugin.content, plugin.name, "exec"), module.__dict__)
            elif plugin.kind == "live":
                for kind, spec in pickle.loads(plugin.content):
                    registries[kind].register(spec)
            else:
                importlib.import_module(plugin.module)
    finally:
        _modules[plugin.name] = [n for n in sys.modules if f"{n}.".startswith(f"{plugin.module}.") and n not in before]
    if plugin.name not in _entries:
        raise UsageError("it registers nothing; call HEURISTICS.register(…), or decorate a function with @sg.heuristic")
    for registry, spec in _entries[plugin.name]:
        _check_method(registry, spec)


def load_installed() -> None:
    """Load the plug-ins of installed distributions, once; a broken one causes a warning only."""
    if _importing or not _pending:
        return
    for entry in importlib.metadata.entry_points(group=_pending.pop()):
        name, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
        try:
            _load(_of_module(entry.module, "installed", f"{name} {version}".strip()))
        except UsageError as error:
            remedy = f"update it (pip install -U {name}) or remove it (pip uninstall {name})"
            logging.getLogger("schedgap").warning("%s; it comes with %s %s: %s", error, name, version, remedy)
            _broken.append(f"{name} {version}")


def listed() -> list[tuple[str, ...]]:
    """Return the name, kind, distribution and entries of each loaded plug-in."""
    load_installed()
    return [
        (name, plugin.kind, plugin.distribution, ", ".join(f"{at.kind} {spec.id}" for at, spec in _entries[name]))
        for name, plugin in _loaded.items()
    ]


def trouble() -> str:
    """Return the end of a message about an unknown name: the installed plug-ins that could not be loaded, if any."""
    return f" (plug-ins that could not be loaded: {', '.join(_broken)})" if _broken else ""


# runs ---------------------------------------------------------------------------------------------


def loaded() -> tuple[Plugin, ...]:
    """Return the plug-ins that workers must load, in the order of loading."""
    load_installed()
    for name, plugin in _loaded.items():
        if plugin.kind == "live" and not plugin.content:
            # Registering a method registers its variants.
            specs = [(at.kind, spec) for at, spec in _entries[name] if not getattr(spec, "settings", None)]
            with suppress(Exception):  # pickling foreign objects may raise anything; used() reports the definition
                content = dumps(specs)
                _loaded[name] = replace(plugin, content=content, digest=_digest([content]))
    return tuple(plugin for plugin in _loaded.values() if plugin.kind != "live" or plugin.content)


def refresh() -> None:
    """Discard the pickles of live definitions, since objects that they refer to may have changed."""
    for name, plugin in _loaded.items():
        if plugin.kind == "live":
            _loaded[name] = Plugin(name, "live")


def owners(ids: Iterable[str]) -> list[Plugin]:
    """Return the plug-ins that registered one of these ids, ignoring settings."""
    wanted = {base_id(name) for name in ids} if _loaded else set()
    return [plugin for name, plugin in _loaded.items() if any(spec.id in wanted for _, spec in _entries[name])]


def used(ids: Iterable[str]) -> list[Plugin]:
    """Return the :func:`owners`; raise `UsageError` if one is a definition that cannot be sent to workers."""
    if not _loaded:
        return []
    loaded()
    plugins = owners(ids)
    for plugin in plugins:
        if plugin.kind == "live" and not plugin.content:
            remedy = "move it to a file and load that with sg.load_plugin"
            raise UsageError(f"{plugin.name}: this definition cannot be sent to worker processes; {remedy}")
    return plugins


def restore(plugins: Sequence[Plugin]) -> None:
    """Load these plug-ins and drop all others; workers do this before they unpickle a task."""
    with _lock:
        _pending.clear()
        for plugin in [plugin for plugin in _loaded.values() if plugin not in plugins]:
            _forget(plugin.name)
        for plugin in plugins:
            _load(plugin)


def options() -> list[str]:
    """Return the command-line arguments that load the plug-ins that were loaded by name."""
    return [word for plugin in loaded() if plugin.kind in ("file", "module") for word in ("--plugin", plugin.name)]


def require(meta: Mapping[str, Any], where: str) -> None:
    """Raise ``UsageError``, with a message that begins with `where`, if results need a plug-in that is not loaded.

    `meta` is the content of ``run.json``: ``plugins`` lists those that were loaded, ``needs`` names those that the
    results come from.
    """
    available = {(plugin.kind, plugin.word) for plugin in loaded()}
    for plugin in (Plugin(**entry) for entry in meta.get("plugins", ()) if entry["name"] in meta["needs"]):
        if (plugin.kind, plugin.word) not in available:
            raise UsageError(f"{where}: these results need the plug-in {plugin.name}: {plugin.remedy}")


def agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether the plug-ins that two runs share have the same content."""
    first, second = ({entry["name"]: entry["digest"] for entry in meta.get("plugins", ())} for meta in (one, other))
    return all(first[name] == second[name] for name in first.keys() & second.keys())


INSTALLED = tuple(f"{path}{os.sep}" for path in set(sysconfig.get_paths().values()) if path)
"""Folders of the standard library and of installed packages."""


def dumps(value: Any) -> bytes:
    """Pickle a value, including definitions of notebooks and scripts by value, since workers cannot import these."""
    if not any(plugin.kind == "live" for plugin in _loaded.values()):
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    import cloudpickle

    # Drop the file name of code objects, which differs between kernels that run the same cells.
    usual = cloudpickle.Pickler.dispatch_table
    nameless = {types.CodeType: lambda code: usual[types.CodeType](code.replace(co_filename="<cell>"))}
    stream = io.BytesIO()
    pickler = cloudpickle.Pickler(stream)
    pickler.dispatch_table = ChainMap(nameless, usual)
    modules = _local_modules(tuple(sys.modules))
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        pickler.dump(value)
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
    return stream.getvalue()


@functools.lru_cache(maxsize=1)
def _local_modules(names: Sequence[str]) -> list[types.ModuleType]:
    """Return the modules next to a script or notebook, which workers may not find; cached for the same `names`."""
    modules = [sys.modules[name] for name in names if not name.startswith(("schedgap", "__main__"))]
    return [m for m in modules if not (getattr(m, "__file__", None) or INSTALLED[0]).startswith(INSTALLED)]
