"""Names that need an extra: their modules are imported on first use."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def from_extra(extra: str, brings: str, package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`, for the names in `homes` and the modules that define them.

    A module is one of the package's own, or has a dotted name. Without the extra, using such a name is an
    `ImportError` that says what to install.
    """

    def named(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        try:
            return getattr(import_module(home if "." in home else f"{package}.{home}"), name)
        except ModuleNotFoundError as missing:
            raise ImportError(f"{package}.{name} needs {brings}: pip install 'askback[{extra}]'") from missing

    return named
