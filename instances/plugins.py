"""Plug-ins: files, modules, installed distributions and notebook cells that register what the package does not have.

Whatever is registered (:class:`~schedgap.instances.registry.Registry`) while no file of the package is being imported
belongs to a plug-in. Worker processes load the same plug-ins from their content, so that a file that is edited
meanwhile changes nothing, and results state the digests of the plug-ins that they come from.

==============  ====================================================  ===================================
kind            how it is named                                       what workers load
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
"""Entry points of installed distributions; each names a module that registers when it is imported."""


@dataclass(frozen=True)
class Plugin:
    """What registers from outside the package; picklable. The table of this module has its kinds.

    Attributes
    ----------
    name
        What a user calls it: path, module, or the id that a notebook cell defines.
    digest
        Of its content (source of a file, pickled specs of a definition), for the keys of results.
    distribution
        Name and version of the distribution that brings it, where one does.
    """

    name: str
    kind: Literal["file", "module", "installed", "live"]
    digest: str = ""
    content: bytes = b""
    distribution: str = ""

    @property
    def module(self) -> str:
        """Name of its module in ``sys.modules``."""
        return f"schedgap.plugins.{Path(self.name).stem}" if self.kind == "file" else self.name

    @property
    def remedy(self) -> str:
        """What to do where it is missing."""
        return {
            "installed": f"install {self.distribution}",
            "live": "run the notebook or script that defines it first",
        }.get(self.kind, f"add --plugin {self.name}")

    @property
    def word(self) -> str:
        """What distinguishes it from others, wherever its file lies."""
        return Path(self.name).name if self.kind == "file" else self.name

    def described(self) -> dict[str, str]:
        """Return what ``run.json`` says of it."""
        return {name: told for name in ("name", "kind", "digest", "distribution") if (told := getattr(self, name))}


Entry = tuple[Any, Any]
"""A registry, and what is in it."""

registries: dict[str, Any] = {}
"""All registries by what their entries are, so that workers find them; each enters itself."""

_loaded: dict[str, Plugin] = {}
"""Plug-ins by name, in the order in which they came."""

_entries: dict[str, list[Entry]] = {}
"""What each of them registered."""

_modules: dict[str, list[str]] = {}
"""Modules that each of them brought."""

_broken: list[str] = []
"""Distributions whose plug-ins could not be loaded."""

_importing: list[str | None] = []
"""Who is being imported, the innermost last: a plug-in, or ``None`` for files of the package."""

_pending = [GROUP]
"""Groups of entry points that have not been loaded yet."""

_lock = threading.RLock()


# what registries tell -----------------------------------------------------------------------------


@contextmanager
def importing(name: str | None) -> Iterator[None]:
    """Let what is registered within the block belong to the plug-in of that name, or to the package (``None``)."""
    _importing.append(name)
    try:
        yield
    finally:
        _importing.pop()


def make_room(registry: Any, spec: Any) -> None:
    """Forget what a notebook cell defined under this id before, and check what it defines now."""
    if any(known is registry and one.id == spec.id for known, one in _entries.get(spec.id, ())):
        _forget(spec.id)
    if not _importing:
        _check_method(registry, spec)


def note(registry: Any, specs: Sequence[Any]) -> None:
    """Note whose the specs are that have been registered."""
    owner = _importing[-1] if _importing else specs[0].id
    if owner is None:
        return
    if not _importing:
        _loaded.setdefault(owner, Plugin(owner, "live"))
    _entries.setdefault(owner, []).extend((registry, spec) for spec in specs)


def _check_method(registry: Any, spec: Any) -> None:
    """Raise where a method belongs to no paper or problem, or where its id is another paper's or method's."""
    if not getattr(spec, "paper", None):
        return
    importlib.import_module("schedgap.instances.views")
    paper = registries["paper"].get(spec.paper)
    if hasattr(spec, "parameters") and not spec.id.startswith(f"{spec.paper}."):
        raise UsageError(f"{spec.id!r}: the id of a method begins with its paper: {spec.paper}.{spec.id}")
    if hasattr(spec, "problem"):
        paper.problem(spec.problem)
        for other, package in (("model", "schedgap.models"), ("heuristic", "schedgap.heuristics")):
            importlib.import_module(package)
            if other != registry.kind and spec.id in registries[other]:
                raise UsageError(f"{other} {spec.id!r} is registered already; choose another id")


def _forget(name: str) -> None:
    _loaded.pop(name, None)
    for registry, spec in _entries.pop(name, ()):
        registry.drop([spec.id])
    for module in _modules.pop(name, ()):
        sys.modules.pop(module, None)


# loading ------------------------------------------------------------------------------------------


def load_plugin(name: str | os.PathLike[str]) -> Plugin:
    """Load a plug-in (a Python file, or a module that is installed), again where it has changed, and return it.

    It raises `UsageError` if it cannot be found or run, registers nothing, or registers what cannot be; nothing of it
    stays then.
    """
    text = os.fspath(name)
    path = Path(text)
    if path.suffix != ".py" and os.sep not in text and not path.exists():
        return _load(_of_module(text, "module"))
    if path.is_dir():
        raise UsageError(f"{path}: a folder; a plug-in is one .py file, or a module that is installed")
    if path.suffix != ".py":
        raise UsageError(f"{path}: a plug-in file ends in .py")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: the plug-in cannot be read: {error.strerror or error}") from None
    return _load(Plugin(str(path), "file", _digest([source]), source))


def _of_module(name: str, kind: Literal["module", "installed"], distribution: str = "") -> Plugin:
    top = name.partition(".")[0]
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        found = None
    if found is None:
        beside = f"; for the file, write --plugin {top}.py" if Path(f"{top}.py").exists() else ""
        raise UsageError(f"no module {top!r} is installed for the plug-in {name!r}{beside or '; a file ends in .py'}")
    folders = [Path(folder) for folder in found.submodule_search_locations or ()]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()] or [Path(found.origin or "")]
    read = (path.read_bytes() for path in sorted(files) if path.is_file() and path.suffix != ".pyc")
    return Plugin(name, kind, _digest(read), distribution=distribution)


def _digest(contents: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()[:16]


def _load(plugin: Plugin) -> Plugin:
    """Run a plug-in and keep what it registers; an earlier version of it goes first, and comes back if that fails."""
    for known in _loaded.values():
        if (known.kind, known.word, known.digest) == (plugin.kind, plugin.word, plugin.digest):
            return known
        if known.module == plugin.module and known.name != plugin.name:
            raise UsageError(f"plug-in {plugin.name}: {known.name} is loaded under the same name; rename one of them")
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
            told, lines = error.msg, [error.lineno]
        else:
            told = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == plugin.name]
        line = f"line {lines[-1]}: " if any(lines) else ""
        raise UsageError(f"plug-in {plugin.name}: {line}{told}") from error
    _loaded[plugin.name] = plugin
    return plugin


def _run(plugin: Plugin) -> None:
    """Run what registers, and check that; what it prints goes to standard error, since standard output is for data."""
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
        raise UsageError("it registers nothing; call HEURISTICS.register(…), or decorate with @sg.heuristic")
    for registry, spec in _entries[plugin.name]:
        _check_method(registry, spec)


def load_installed() -> None:
    """Load the plug-ins of installed distributions, once; a broken one is named and stops nothing."""
    if _importing or not _pending:
        return
    for entry in importlib.metadata.entry_points(group=_pending.pop()):
        name, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
        try:
            _load(_of_module(entry.module, "installed", f"{name} {version}".strip()))
        except UsageError as error:
            how = f"update it (pip install -U {name}) or remove it (pip uninstall {name})"
            logging.getLogger("schedgap").warning("%s; it comes with %s %s: %s", error, name, version, how)
            _broken.append(f"{name} {version}")


def listed() -> list[tuple[str, ...]]:
    """Return the name, kind, distribution and entries of each plug-in that is loaded."""
    load_installed()
    return [
        (one.name, one.kind, one.distribution, ", ".join(f"{at.kind} {spec.id}" for at, spec in _entries[one.name]))
        for one in _loaded.values()
    ]


def trouble() -> str:
    """Return what a message about an unknown name adds: the installed plug-ins that could not be loaded."""
    return f" (plug-ins that could not be loaded: {', '.join(_broken)})" if _broken else ""


# runs ---------------------------------------------------------------------------------------------


def loaded() -> tuple[Plugin, ...]:
    """Return the plug-ins that workers load, in the order in which they came."""
    load_installed()
    for name, plugin in _loaded.items():
        if plugin.kind == "live" and not plugin.content:
            # Variants come with the method that has them.
            specs = [(at.kind, spec) for at, spec in _entries[name] if not getattr(spec, "settings", None)]
            with suppress(Exception):  # whatever a stranger's object raises: it is told where the definition is used
                content = dumps(specs)
                _loaded[name] = replace(plugin, content=content, digest=_digest([content]))
    return tuple(plugin for plugin in _loaded.values() if plugin.kind != "live" or plugin.content)


def refresh() -> None:
    """Pickle definitions of cells anew when they are needed next: what they refer to may have changed."""
    for name, plugin in _loaded.items():
        if plugin.kind == "live":
            _loaded[name] = Plugin(name, "live")


def used(ids: Iterable[str]) -> list[Plugin]:
    """Return the plug-ins that registered one of these ids (settings do not count).

    It raises `UsageError` if one of them is a definition that cannot be sent to workers.
    """
    if not _loaded:
        return []
    loaded()
    wanted = {base_id(name) for name in ids}
    found = [_loaded[name] for name in _loaded if any(spec.id in wanted for _, spec in _entries[name])]
    for plugin in found:
        if plugin.kind == "live" and not plugin.content:
            how = "put it into a file, and load that with sg.load_plugin"
            raise UsageError(f"{plugin.name}: what is defined here cannot be sent to worker processes; {how}")
    return found


def restore(given: Sequence[Plugin]) -> None:
    """Load these plug-ins and no others: what a worker does before it unpickles a task."""
    with _lock:
        _pending.clear()
        for plugin in [plugin for plugin in _loaded.values() if plugin not in given]:
            _forget(plugin.name)
        for plugin in given:
            _load(plugin)


def options() -> list[str]:
    """Return the words of a command line that load what was loaded by name."""
    named = [plugin.name for plugin in loaded() if plugin.kind in ("file", "module")]
    return [word for name in named for word in ("--plugin", name)]


def require(meta: Mapping[str, Any], where: str) -> None:
    """Raise ``UsageError``, beginning with `where`, if results come from a plug-in that is not loaded.

    `meta` is the content of ``run.json``: ``plugins`` were loaded, results come from those that ``needs`` names.
    """
    here = {(plugin.kind, plugin.word) for plugin in loaded()}
    for plugin in (Plugin(**told) for told in meta.get("plugins", ()) if told["name"] in meta["needs"]):
        if (plugin.kind, plugin.word) not in here:
            raise UsageError(f"{where}: these results need the plug-in {plugin.name}: {plugin.remedy}")


def agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether the plug-ins that two runs have in common have the same content."""
    first, second = ({told["name"]: told["digest"] for told in meta.get("plugins", ())} for meta in (one, other))
    return all(first[name] == second[name] for name in first.keys() & second.keys())


INSTALLED = tuple(f"{path}{os.sep}" for path in set(sysconfig.get_paths().values()) if path)
"""Folders of the standard library and of installed packages."""


def dumps(value: Any) -> bytes:
    """Return a value pickled, with what notebooks and scripts define by value: workers cannot import that."""
    if not any(plugin.kind == "live" for plugin in _loaded.values()):
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    import cloudpickle

    # Code goes without the name of its file, which differs between kernels that run the same cells.
    usual = cloudpickle.Pickler.dispatch_table
    nameless = {types.CodeType: lambda code: usual[types.CodeType](code.replace(co_filename="<cell>"))}
    stream = io.BytesIO()
    pickler = cloudpickle.Pickler(stream)
    pickler.dispatch_table = ChainMap(nameless, usual)
    beside = _beside(tuple(sys.modules))
    for module in beside:
        cloudpickle.register_pickle_by_value(module)
    try:
        pickler.dump(value)
    finally:
        for module in beside:
            cloudpickle.unregister_pickle_by_value(module)
    return stream.getvalue()


@functools.lru_cache(maxsize=1)
def _beside(names: Sequence[str]) -> list[types.ModuleType]:
    """Return the modules that workers may not find, since they lie beside a script or notebook; looked for once."""
    ours = [sys.modules[name] for name in names if not name.startswith(("schedgap", "__main__"))]
    return [one for one in ours if not (getattr(one, "__file__", None) or INSTALLED[0]).startswith(INSTALLED)]
