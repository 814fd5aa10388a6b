"""What a module in Python is made of: its file, those that it imports, and the versions of distributions of others."""

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
    """A digest of each file of a module and of what it imports, by the name of its module.

    Of another distribution than the module's own, its version stands for its files. Topolane and Python's own library are
    skipped. Only import statements are followed, so a module that is imported by a computed name is missed.
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
    """The packages that hold a module: their files run too."""
    parts = module.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _file(module: str) -> str | None:
    """The file of a module; None if there is none, as of a name that is no module or a module that is missing.

    Nothing is imported for it, because that would run code that the policy may never run.
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
    """The modules that the source of a module imports, and names that may be modules."""
    package = module if is_package else module.rpartition(".")[0]
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return  # it cannot be imported
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
