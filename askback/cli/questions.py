"""What a resolver may ask: what its return annotation declares, and the markers written in its body."""

import ast
import builtins
import contextlib
import inspect
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, get_args

from pydantic import BaseModel, PydanticUserError

from askback.cli.places import source_lines
from askback.exchange.form import Form
from askback.integration import ResolverPlan
from askback.integration.engine.annotations import arms, closure_of, function_behind, is_class_of, read_return
from askback.integration.engine.questions import MARKERS, RenderedForms
from askback.markers import InvalidSignature, Sample, SDKElicit

Whom = Literal["person", "model", "directories", "anyone"]


@dataclass(frozen=True)
class PossibleQuestion:
    """A question that a resolver may ask."""

    whom: Whom
    model: type[Any] | None = None
    """The model of the form, where it is known."""
    message: str = ""
    """The constant parts of the message, where it is written in the resolver."""


def declared_questions(plan: ResolverPlan) -> list[PossibleQuestion]:
    """The questions in the return annotation; one to anyone, if it does not say whether the resolver asks."""
    # The annotation may use names that existed only while the tool was registered.
    with contextlib.suppress(InvalidSignature):
        declared = [
            PossibleQuestion(_whom(arm), next((each for each in get_args(arm) if is_class_of(each, BaseModel)), None))
            for arm in arms(read_return(plan.fn))
            if is_class_of(arm, MARKERS)
        ]
        if declared:
            return declared
    return [PossibleQuestion("anyone")] if plan.may_elicit else []


def written_questions(fn: Callable[..., Any]) -> list[PossibleQuestion]:
    """The questions that are written in the body of a resolver: `Elicit(...)`, `Sample(...)`, `ListRoots()`.

    What another function returns is known only when the resolver runs.
    """
    function = function_behind(fn)
    names = {**vars(builtins), **getattr(function, "__globals__", {}), **closure_of(function)}
    body = _body(function)
    variables = _variables(body)
    return [
        PossibleQuestion(_whom(marker), _model(call, names), _text(_argument(call, 0, "message"), names, variables))
        for call in body
        if isinstance(call, ast.Call) and is_class_of(marker := _value(call.func, names), MARKERS)
    ]


def models_asked(plan: ResolverPlan) -> list[type[Any]]:
    """The models of the forms that a resolver may ask with."""
    questions = (*declared_questions(plan), *written_questions(plan.fn))
    return list(dict.fromkeys(each.model for each in questions if each.model is not None))


def form_of(model: type[Any]) -> Form | str:
    """The form that asks for a model, or why the protocol cannot ask for it."""
    try:
        return Form(RenderedForms().of(model).schema)
    except (TypeError, PydanticUserError) as error:
        return str(error)


def _whom(marker: Any) -> Whom:
    if is_class_of(marker, SDKElicit):
        return "person"
    return "model" if is_class_of(marker, Sample) else "directories"


def _body(function: Any) -> list[ast.AST]:
    # The source of a lambda is often only a part of a statement.
    with contextlib.suppress(SyntaxError):
        return list(ast.walk(ast.parse(textwrap.dedent("".join(source_lines(function))))))
    return []


def _variables(body: list[ast.AST]) -> dict[str, list[ast.expr]]:
    """The expressions that are assigned to each local variable."""
    variables: dict[str, list[ast.expr]] = {}
    for assignment in (each for each in body if isinstance(each, ast.Assign)):
        for target in assignment.targets:
            if isinstance(target, ast.Name):
                variables.setdefault(target.id, []).append(assignment.value)
    return variables


def _argument(call: ast.Call, index: int, name: str) -> ast.expr | None:
    named = (each.value for each in call.keywords if each.arg == name)
    return call.args[index] if index < len(call.args) else next(named, None)


def _model(call: ast.Call, names: dict[str, Any]) -> type[Any] | None:
    model = _value(_argument(call, 1, "schema"), names)
    return model if isinstance(model, type) else None


def _value(expression: ast.expr | None, names: dict[str, Any]) -> Any:
    """What a name, an attribute or a subscripted class stands for; None if that is known only at run time."""
    if isinstance(expression, ast.Name):
        return names.get(expression.id)
    if isinstance(expression, ast.Attribute):
        owner = _value(expression.value, names)
        # An instance's attribute may be a property, which would run the server's code.
        read = getattr if isinstance(owner, ModuleType) else inspect.getattr_static
        return read(owner, expression.attr, None)
    return _value(expression.value, names) if isinstance(expression, ast.Subscript) else None


def _text(expression: ast.AST | None, names: dict[str, Any], variables: dict[str, list[ast.expr]]) -> str:
    """The parts of a message that are the same in every call."""
    if expression is None or isinstance(expression, ast.Subscript):
        # The result of a lookup is shown, its key is not.
        return ""
    if isinstance(expression, ast.Constant):
        return str(expression.value)
    parts: Iterable[ast.AST] = ast.iter_child_nodes(expression)
    if isinstance(expression, ast.Name) and expression.id in variables:
        parts = variables[expression.id]
        # A variable may be made of itself.
        variables = {name: values for name, values in variables.items() if name != expression.id}
    elif isinstance(expression, ast.Name | ast.Attribute) and isinstance(value := _value(expression, names), str):
        return value
    return " ".join(_text(part, names, variables) for part in parts)
