"""The code that a Python module depends on: its file, the files that it imports, and versions of other
distributions.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder

from topolane import texts


@functools.cache
def content(module: str) -> dict[str, str]:
    """A digest of each file of a module and of its imports, by module name.

    For a distribution other than the module's own, its version replaces the digests. Topolane and Python's
    standard library are skipped. Only import statements are followed, so a module imported by a computed name
    is missed.
    """
    owners = importlib.metadata.packages_distributions()
    home = owners.get(_top(module))
    found: dict[str, str] = {}
    left = [module]
    while left:
        name = left.pop()
        if name in found or _top(name) in sys.stdlib_module_names or _top(name) == "topolane":
            continue
        owner = owners.get(_top(name))
        if owner is not None and owner != home:
            found[_top(name)] = " ".join(f"{one} {importlib.metadata.version(one)}" for one in owner)
        elif (file := _file(name)) is not None:
            data = bytes(texts.read_bytes(file, texts.LARGE))
            found[name] = hashlib.sha256(data).hexdigest()
            left += _parents(name)
            left += _imports(data, name, file.endswith("__init__.py")) if file.endswith(".py") else ()
    return found


def _top(module: str) -> str:
    return module.partition(".")[0]


def _parents(module: str) -> Iterator[str]:
    """The packages that contain a module, whose files are run on import too."""
    parts = module.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _file(module: str) -> str | None:
    """The file of a module; None if the name is no module or its module is missing.

    Nothing is imported, because that would run code that the policy may never run.
    """
    name, *parts = module.split(".")
    try:
        spec = importlib.util.find_spec(name)
        for part in parts:
            if spec is None or spec.submodule_search_locations is None:
                return None
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    except (ImportError, AttributeError, ValueError, KeyError):
        return (
            None  # KeyError: a folder without a file of its own, in another such folder that is not imported
        )
    return spec.origin if spec is not None and spec.has_location else None


def _imports(data: bytes, module: str, is_package: bool) -> Iterator[str]:
    """The names that the source of a module imports. Some of them may not be modules."""
    package = module if is_package else module.rpartition(".")[0]
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return  # such a file cannot be imported
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
