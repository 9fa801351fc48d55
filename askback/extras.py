"""Names that need an extra: their modules are imported when somebody first asks for them."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def from_extra(extra: str, brings: str, package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`, for the names in `homes` and the modules of the package that have them.

    Without the extra, naming one is an `ImportError` that says what to install.
    """

    def named(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        except ModuleNotFoundError as missing:
            raise ImportError(f"{package}.{name} needs {brings}: pip install 'askback[{extra}]'") from missing

    return named
