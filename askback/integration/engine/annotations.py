"""Reading what a callable's annotations say, wherever they were written."""

import builtins
import contextlib
import functools
import inspect
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin

from typing_extensions import TypeAliasType

from askback.markers import InvalidSignature

ALIASES: tuple[type, ...] = tuple({TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType)})
"""The classes of `type X = ...` aliases: the standard library's, where it has one, and the backport's."""


def callee(fn: Callable[..., Any]) -> Any:
    """What a call of `fn` ends up calling: inside `functools.partial` and `staticmethod`."""
    while isinstance(fn, functools.partial | staticmethod):
        fn = fn.func if isinstance(fn, functools.partial) else fn.__func__
    return fn


def name_of(fn: Callable[..., Any]) -> str:
    """What `fn` is called: its name, or for objects that have none, their class's."""
    named = fn if hasattr(fn, "__name__") else callee(fn)
    return getattr(named, "__name__", type(named).__name__)


def key_of(fn: Callable[..., Any]) -> str:
    """`module:qualname`, the same in every process that imports the same code."""
    target = callee(fn)
    named: Any = target if hasattr(target, "__qualname__") else target.__class__
    module = getattr(named, "__module__", None) or "builtins"
    return f"{module}:{named.__qualname__}"


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling `fn` gives a coroutine rather than doing the work."""
    target = callee(fn)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def is_generator(fn: Callable[..., Any]) -> bool:
    """Whether `fn` yields instead of returning."""
    function = function_behind(fn)
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def read_parameters(fn: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of `fn`, their annotations evaluated.

    Raises:
        InvalidSignature: If the signature or an annotation cannot be read.
    """
    scope = _Scope(fn)
    return {
        name: parameter.replace(
            annotation=scope.read(parameter.annotation, f"the annotation of its parameter {name!r}")
        )
        for name, parameter in _signature(fn).parameters.items()
    }


def read_return(fn: Callable[..., Any]) -> Any:
    """The evaluated return annotation of `fn`, `inspect.Signature.empty` where there is none.

    Raises:
        InvalidSignature: If the signature or the annotation cannot be read.
    """
    return _Scope(fn).read(_signature(fn).return_annotation, "its return annotation")


def bound_keywords(fn: Callable[..., Any]) -> set[str]:
    """The parameters that `functools.partial` has filled by name, which are still parameters of `fn`."""
    bound: set[str] = set()
    while isinstance(fn, functools.partial):
        partial = typing.cast("functools.partial[Any]", fn)
        bound.update(partial.keywords)
        fn = partial.func
    return bound


def unannotated(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type inside `Annotated[...]` and all its metadata, through `type` aliases, innermost first."""
    annotation = _without_alias(annotation)
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    inner, *metadata = get_args(annotation)
    base, inner_metadata = unannotated(inner)
    return base, (*inner_metadata, *metadata)


def arms(annotation: Any) -> Iterator[Any]:
    """The members of a union, or the one type it is, through `Annotated`, `type` aliases and awaitables."""
    annotation, _ = unannotated(annotation)
    origin = get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        for argument in get_args(annotation):
            yield from arms(argument)
    elif origin in (Awaitable, Coroutine):
        yield from arms(get_args(annotation)[-1])
    else:
        yield annotation


def is_class_of(annotation: Any, classes: type | tuple[type, ...]) -> bool:
    """Whether an arm is one of `classes`, a subclass, or either of them with type arguments."""
    candidate = get_origin(annotation) or annotation
    return isinstance(candidate, type) and issubclass(candidate, classes)


def metadata_within(annotation: Any) -> Iterator[Any]:
    """Every piece of `Annotated` metadata anywhere in an annotation: in unions, containers and aliases."""
    base, metadata = unannotated(annotation)
    yield from metadata
    inside: list[Any] = [*get_args(base), *_hidden_in_aliases(annotation)]
    while inside:
        argument = inside.pop()
        if isinstance(argument, list):
            inside.extend(typing.cast("list[Any]", argument))
        else:
            yield from metadata_within(argument)


def _without_alias(annotation: Any) -> Any:
    while True:
        if isinstance(annotation, ALIASES) or isinstance(get_origin(annotation), ALIASES):
            # A subscripted alias forwards the attribute to the alias itself.
            annotation = _substituted(_readable(annotation.__value__, annotation), annotation)
        elif isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        else:
            return annotation


def _substituted(value: Any, alias: Any) -> Any:
    """The value of a generic alias, with its type arguments in place of its type parameters."""
    given = _type_arguments(alias)
    if isinstance(value, TypeVar):
        return given.get(value, value)
    parameters: tuple[Any, ...] = getattr(value, "__parameters__", ())
    return value[tuple(given.get(each, each) for each in parameters)] if given and parameters else value


def _type_arguments(alias: Any) -> dict[Any, Any]:
    return dict(zip(getattr(alias, "__type_params__", ()), get_args(alias), strict=False))


def _hidden_in_aliases(annotation: Any) -> Iterator[Any]:
    """The type arguments of generic aliases that do not appear in their values."""
    while isinstance(annotation, ALIASES) or isinstance(get_origin(annotation), ALIASES):
        value = _readable(annotation.__value__, annotation)
        shown = (value, *getattr(value, "__parameters__", ()))
        yield from (given for each, given in _type_arguments(annotation).items() if each not in shown)
        annotation = _substituted(value, annotation)
    if get_origin(annotation) is Annotated:
        yield from _hidden_in_aliases(get_args(annotation)[0])


def _readable(value: Any, alias: Any) -> Any:
    """The value of an alias, with the strings in it evaluated where the alias was made.

    Raises:
        InvalidSignature: If one cannot be.
    """
    module = sys.modules.get(getattr(alias, "__module__", ""))
    names = {**vars(builtins), **(vars(module) if module is not None else {})}
    return _evaluated(value, names, f"the alias {alias} cannot be read")


def _evaluated(annotation: Any, names: dict[str, Any], complaint: str) -> Any:
    """An annotation, with the strings in it evaluated where `names` are known."""
    carrier = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(carrier, globalns=names, include_extras=True)["it"]
    except Exception as error:
        raise InvalidSignature(f"{complaint}: {error}") from error


def _signature(fn: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(fn)
    except (ValueError, TypeError) as error:
        raise InvalidSignature(f"the signature of {name_of(fn)!r} cannot be read: {error}") from error


def function_behind(fn: Callable[..., Any]) -> Any:
    """The plain function in which the annotations of `fn` were written."""
    target = callee(fn)
    if isinstance(target, type):
        target = typing.cast("Any", target).__init__
    elif not inspect.isroutine(target):
        target = type(target).__call__
    return inspect.unwrap(getattr(target, "__func__", target))


class _Scope:
    """The names that an annotation of a function may use."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._owner = fn

    def read(self, annotation: Any, what: str) -> Any:
        # FastMCP tells a return annotation of `None` from one of its type; `get_type_hints` does not.
        if annotation is inspect.Parameter.empty or annotation is None or not _is_postponed(annotation):
            return annotation
        return _evaluated(annotation, self._names, f"{what} cannot be read in {name_of(self._owner)!r}")

    @functools.cached_property
    def _names(self) -> dict[str, Any]:
        """Closure before the running functions around it, before the module, before whoever is registering it."""
        function = function_behind(self._owner)
        module: dict[str, Any] = getattr(function, "__globals__", {})
        enclosing: dict[str, Any] = {}
        registering: dict[str, Any] = {}
        around = _enclosing_qualnames(getattr(function, "__qualname__", ""))
        for frame in _running_functions(module):
            names = enclosing if frame.f_code.co_qualname in around else registering
            for name, value in frame.f_locals.items():
                names.setdefault(name, value)
        return {
            **registering,
            **vars(builtins),
            **module,
            **enclosing,
            **closure_of(function),
            **_type_parameters(function),
        }


def _is_postponed(annotation: Any) -> bool:
    """Whether there is a string in an annotation that is yet to be evaluated."""
    if isinstance(annotation, str | typing.ForwardRef):
        return True
    if isinstance(annotation, list):
        return any(_is_postponed(each) for each in typing.cast("list[Any]", annotation))
    origin = get_origin(annotation)
    if origin is typing.Literal:
        return False
    arguments = get_args(annotation)
    return any(_is_postponed(each) for each in (arguments[:1] if origin is Annotated else arguments))


def _enclosing_qualnames(qualname: str) -> set[str]:
    parts = qualname.split(".<locals>.")
    return {".<locals>.".join(parts[:depth]) for depth in range(1, len(parts))}


def _running_functions(module: Mapping[str, Any]) -> Iterator[types.FrameType]:
    """The functions of `module` that are running now, the innermost first."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is module and frame.f_locals is not module:
            yield frame
        frame = frame.f_back


def closure_of(function: Any) -> dict[str, Any]:
    """What the names that a function takes from around it stand for."""
    if not inspect.isfunction(function):
        return {}
    names: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        # Empty while the name is not bound yet, as a function's own is under its decorators.
        with contextlib.suppress(ValueError):
            names[name] = cell.cell_contents
    return names


def _type_parameters(function: Any) -> dict[str, Any]:
    parameters: tuple[Any, ...] = getattr(function, "__type_params__", ())
    return {parameter.__name__: parameter for parameter in parameters}
