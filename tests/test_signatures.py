"""What is refused when a tool is registered, and what can be read."""

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Annotated, Any, Generic, Literal, NewType, Protocol, TypedDict, TypeVar

import fastmcp
import pytest
from fastmcp.dependencies import Depends
from fastmcp.tools import InputRequiredToolResult, Tool
from mcp.server.mcpserver import Context as SDKContext
from mcp.server.mcpserver import Resolve as SDKResolve
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from askback import (
    AcceptedElicitation,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    ListRoots,
    Resolve,
    Sample,
)
from askback.agents import Decline
from askback.integration import (
    FastMCP,
    HostTypes,
    build_resolver_plans,
    find_resolved_parameters,
    resolved,
    returns_input_required,
)
from askback.integration.engine.agreement import Agreement, agreement
from askback.testing import Rehearsal
from tests import postponed

T = TypeVar("T")


class Sure(BaseModel):
    ok: bool


class Other(BaseModel):
    name: str


def look(title: str) -> str:
    return title


def refused(fn: Callable[..., Any]) -> str:
    """Why a tool is refused, the same sentence in every way to register it."""
    mcp = FastMCP("shop")
    sentences: set[str] = set()
    for register in (mcp.tool, mcp.add_tool, resolved, lambda fn: mcp.tool(name=fn.__name__)(fn)):
        with pytest.raises(InvalidSignature) as caught:
            register(fn)
        sentences.add(str(caught.value))
    (sentence,) = sentences
    return sentence


def test_a_cycle_is_refused() -> None:
    def one(x: int) -> int:
        return x

    def two(x: Annotated[int, Resolve(one)]) -> int:
        return x

    one.__annotations__["x"] = Annotated[int, Resolve(two)]

    async def tool(y: Annotated[int, Resolve(two)]) -> str:
        return ""

    sentence = refused(tool)
    assert sentence.startswith("Tool 'tool': parameter 'y'")
    assert "resolver 'two': it depends on itself: two -> one -> two" in sentence


def test_a_cycle_through_bound_methods_is_refused() -> None:
    class Desk:
        def scope(self, amount: int) -> int:
            return amount

        def amount(self, scope: int) -> int:
            return scope

    desk = Desk()
    Desk.scope.__annotations__["amount"] = Annotated[int, Resolve(desk.amount)]
    Desk.amount.__annotations__["scope"] = Annotated[int, Resolve(desk.scope)]

    async def tool(y: Annotated[int, Resolve(desk.scope)]) -> str:
        return ""

    assert "'scope': it depends on itself: scope -> amount -> scope" in refused(tool)


def unknown_name(titel: str) -> str:
    return titel


def with_default(title: str, retries: int = 3) -> str:
    return title


def positional_only(title: str, /) -> str:
    return title


def anything(*args: Any) -> str:
    return ""


def any_keywords(**kwargs: Any) -> str:
    return ""


def depending(title: str = Depends(look)) -> str:
    return title


@pytest.mark.parametrize(
    ("resolver", "parameter"),
    [
        (unknown_name, "titel"),
        (with_default, "retries"),
        (positional_only, "title"),
        (anything, "args"),
        (any_keywords, "kwargs"),
    ],
)
def test_a_resolver_parameter_that_nothing_fills_is_refused(resolver: Callable[..., Any], parameter: str) -> None:
    async def tool(title: str, found: Annotated[str, Resolve(resolver)]) -> str:
        return found

    sentence = refused(tool)
    assert f"Tool 'tool': parameter 'found', resolver '{resolver.__name__}', its parameter '{parameter}'" in sentence
    assert "named like an argument of the tool (title)" in sentence


def test_what_a_tool_gets_injected_is_not_an_argument() -> None:
    def take(ctx: str, db: str) -> str:
        return ctx

    async def tool(ctx: fastmcp.Context, found: Annotated[str, Resolve(take)], db: str = Depends(look)) -> str:
        return found

    assert "its parameter 'ctx': nothing can fill it" in refused(tool)
    assert "argument of the tool (none)" in refused(tool)


async def ask_two() -> Elicit[Sure] | Elicit[Other]:
    raise AssertionError


async def ask_and_sample() -> str | Elicit[Sure] | Sample:
    raise AssertionError


Questions = TypeAliasType("Questions", Annotated[Sample | None, "metadata"] | ListRoots)


async def ask_through_aliases() -> Questions:
    raise AssertionError


@pytest.mark.parametrize("resolver", [ask_two, ask_and_sample, ask_through_aliases])
def test_more_than_one_question_in_a_return_annotation_is_refused(resolver: Callable[..., Any]) -> None:
    async def tool(found: Annotated[Any, Resolve(resolver)]) -> str:
        return found

    sentence = refused(tool)
    assert f"parameter 'found', resolver '{resolver.__name__}': its return annotation declares 2 questions" in sentence


class Nested(BaseModel):
    inner: Sure


async def ask_nested() -> Elicit[Nested]:
    raise AssertionError


async def ask_scalar() -> Elicit[bool]:
    raise AssertionError


@pytest.mark.parametrize(
    ("resolver", "reason"), [(ask_nested, "'inner'"), (ask_scalar, "answered with a pydantic model")]
)
def test_a_declared_form_that_the_protocol_cannot_ask_is_refused(resolver: Callable[..., Any], reason: str) -> None:
    async def tool(found: Annotated[Any, Resolve(resolver)]) -> str:
        return found

    assert f"resolver '{resolver.__name__}': it cannot ask for" in refused(tool)
    assert reason in refused(tool)


async def test_a_question_of_any_model_may_be_declared(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    class Asks(Generic[T]):
        def __init__(self, model: type[T]) -> None:
            self.model = model

        async def __call__(self) -> Elicit[T]:
            return Elicit("Sure?", self.model)

    @mcp.tool
    async def tool(found: Annotated[Sure, Resolve(Asks(Sure))]) -> str:
        return str(found.ok)

    call = await askback.call(mcp, "tool", {}, {Sure: Sure(ok=True)})
    assert (call.result, call.failed) == ("True", False)


def yielding(title: str) -> Iterator[str]:
    yield title


async def yielding_async(title: str) -> AsyncIterator[str]:
    yield title


@pytest.mark.parametrize("resolver", [yielding, yielding_async])
def test_a_generator_is_refused(resolver: Callable[..., Any]) -> None:
    async def tool(title: str, found: Annotated[str, Resolve(resolver)]) -> str:
        return found

    assert f"resolver '{resolver.__name__}': it yields; a resolver returns its value" in refused(tool)


Found = Annotated[str, Resolve(look)]
AliasedFound = TypeAliasType("AliasedFound", Annotated[str, Resolve(look)])
OptionalFound = TypeAliasType("OptionalFound", AliasedFound | None)
Box = TypeAliasType("Box", list[T], type_params=(T,))
Maybe = TypeAliasType("Maybe", T | None, type_params=(T,))
Tagged = TypeAliasType("Tagged", Annotated[T, "metadata"], type_params=(T,))
Phantom = TypeAliasType("Phantom", str, type_params=(T,))
Identity = TypeAliasType("Identity", T, type_params=(T,))
NewFound = NewType("NewFound", Annotated[str, Resolve(look)])  # pyright: ignore
StringFound = TypeAliasType("StringFound", "Annotated[str, Resolve(look)]")
ListOfString = TypeAliasType("ListOfString", list["Annotated[str, Resolve(look)]"])
Unreadable = TypeAliasType("Unreadable", "Annotated[Nowhere, Resolve(look)]")  # noqa: F821  # pyright: ignore


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(Found | None, id="union"),
        pytest.param(list[Found], id="list"),
        pytest.param(dict[str, Found], id="dict"),
        pytest.param(Callable[[Found], str], id="callable"),
        pytest.param(Callable[[str, "Found"], str], id="callable with a string in it"),
        pytest.param(Annotated[Found | None, "metadata"], id="union in Annotated"),
        pytest.param(Annotated[list[Found], Resolve(look)], id="container with a marker of its own"),
        pytest.param(OptionalFound, id="alias"),
        pytest.param(Box[Found], id="generic alias of a container"),
        pytest.param(Maybe[Found], id="generic alias of a union"),
        pytest.param(Annotated[Maybe[Found], "metadata"], id="generic alias of a union in Annotated"),
        pytest.param(Phantom[Found], id="generic alias that does not show it"),
        pytest.param(ListOfString, id="alias with a string in it"),
        pytest.param(Annotated[str, SDKResolve(look)] | int, id="the SDK's marker"),
    ],
)
def test_a_marker_inside_a_union_or_container_is_refused(annotation: Any) -> None:
    async def tool(title: str, found: annotation) -> str:
        return title

    assert refused(tool) == (
        "Tool 'tool': parameter 'found' of 'tool': Resolve(look) is inside a union or a container; annotate the "
        "parameter itself, as Annotated[T, Resolve(...)]"
    )


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(AliasedFound, id="alias"),
        pytest.param(Annotated[AliasedFound, "metadata"], id="annotated alias"),
        pytest.param(NewFound, id="new type"),
        pytest.param(StringFound, id="alias of a string"),
        pytest.param(Tagged[Found], id="generic alias"),
        pytest.param(Identity[Found], id="generic alias of its parameter"),
        pytest.param(Annotated[str, "first", Resolve(look)], id="among other metadata"),
        pytest.param(Annotated[str, SDKResolve(look)], id="the SDK's marker"),
    ],
)
async def test_a_marker_is_found_through_aliases_and_among_metadata(askback: Rehearsal, annotation: Any) -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    async def tool(title: str, found: annotation) -> str:
        return f"found {found}"

    call = await askback.call(mcp, "tool", {"title": "Dune"})
    assert (call.result, call.failed) == ("found Dune", False)


async def two_markers(title: str, found: Annotated[str, Resolve(look), Resolve(unknown_name)]) -> str:
    raise AssertionError


async def marker_and_dependency(title: str, found: Annotated[str, Resolve(look), Depends(look)]) -> str:
    raise AssertionError


async def marker_and_default(title: str, found: Annotated[str, Resolve(look)] = Depends(look)) -> str:
    raise AssertionError


async def marker_on_context(title: str, found: Annotated[fastmcp.Context, Resolve(look)]) -> str:
    raise AssertionError


async def marker_on_sdk_context(title: str, found: Annotated[SDKContext[Any, Any], Resolve(look)]) -> str:
    raise AssertionError


@pytest.mark.parametrize(
    "tool", [two_markers, marker_and_dependency, marker_and_default, marker_on_context, marker_on_sdk_context]
)
def test_two_injections_on_one_parameter_are_refused(tool: Callable[..., Any]) -> None:
    assert "parameter 'found'" in refused(tool)
    assert "Resolve(look) is not the only thing that would fill it" in refused(tool)


def test_two_injections_on_a_resolver_parameter_are_refused() -> None:
    async def tool(title: str, found: Annotated[str, Resolve(two_markers)]) -> str:
        return found

    assert "resolver 'two_markers', its parameter 'found': Resolve(look) is not the only thing" in refused(tool)


async def marker_as_default(title: str, found: str = Resolve(look)) -> str:  # pyright: ignore[reportArgumentType]
    raise AssertionError


async def sdk_marker_as_default(title: str, found: str = SDKResolve(look)) -> str:  # pyright: ignore[reportArgumentType]
    raise AssertionError


async def marker_not_called(title: str, found: Annotated[str, Resolve]) -> str:
    raise AssertionError


@pytest.mark.parametrize("tool", [marker_as_default, sdk_marker_as_default, marker_not_called])
def test_a_marker_written_another_way_is_refused(tool: Callable[..., Any]) -> None:
    assert "write the marker as Annotated[T, Resolve(resolver)]" in refused(tool)


def test_a_resolved_parameter_must_have_a_name_to_be_passed_by() -> None:
    async def tool(title: str, *found: Annotated[str, Resolve(look)]) -> str:
        return title

    assert "a resolved parameter must be one that can be passed by name" in refused(tool)


Rounds = TypeAliasType("Rounds", Annotated[InputRequiredResult, "metadata"])


@pytest.mark.parametrize(
    "returned",
    [
        InputRequiredResult,
        str | InputRequiredResult,
        Annotated[str | InputRequiredResult, "metadata"],
        Rounds | None,
        str | Rounds,
        Awaitable[InputRequiredResult],
    ],
)
def test_a_tool_that_drives_its_own_rounds_can_have_no_resolvers(returned: Any) -> None:
    async def tool(title: str, found: Annotated[str, Resolve(look)]) -> returned:
        return found

    assert returns_input_required(tool)
    assert refused(tool).startswith("Tool 'tool': it has resolvers ('found' by 'look') and returns an InputRequired")


def test_any_other_return_is_no_round() -> None:
    async def tool() -> str | CallToolResult | list[InputRequiredResult]:
        raise AssertionError

    assert not returns_input_required(tool)


def test_an_alias_that_cannot_be_read_is_refused() -> None:
    async def tool(title: str, found: Unreadable) -> str:
        return title

    assert "the alias Unreadable cannot be read: name 'Nowhere' is not defined" in refused(tool)


def test_a_tool_that_returns_fastmcps_ask_can_have_no_resolvers() -> None:
    async def tool(title: str, found: Annotated[str, Resolve(look)]) -> InputRequiredToolResult:
        raise AssertionError

    assert "and returns an InputRequiredResult" in refused(tool)


def test_the_name_of_the_hidden_parameter_is_taken() -> None:
    async def tool(askback_resolution: str, title: str, found: Annotated[str, Resolve(look)]) -> str:
        return found

    assert "parameter 'askback_resolution' has a name that is taken" in refused(tool)


def test_fastmcp_refuses_what_it_always_refuses() -> None:
    async def tool(title: str, found: Annotated[str, Resolve(look)], **more: str) -> str:
        return found

    with pytest.raises(ValueError, match="kwargs are not supported as tools"):
        FastMCP("shop").tool(tool)
    with pytest.raises(TypeError, match="use @classmethod above @tool"):
        FastMCP("shop").tool(classmethod(tool))  # pyright: ignore
    with pytest.raises(TypeError, match="5 is not a callable object"):
        FastMCP("shop").add_tool(5)  # pyright: ignore


def test_an_unbound_methods_self_fills_nothing() -> None:
    def look_in(self: Any) -> str:
        return str(self)

    def method(self: Any, found: Annotated[str, Resolve(look_in)]) -> str:
        return found

    with pytest.raises(InvalidSignature, match="its parameter 'self': nothing can fill it"):
        resolved(method)


def test_a_callable_without_a_signature_is_refused() -> None:
    with pytest.raises(InvalidSignature, match="the signature of 'dict' cannot be read"):
        find_resolved_parameters(dict)


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (postponed.unreadable_marker, "its parameter 'stock' cannot be read in 'unreadable_marker'"),
        (postponed.unreadable_argument, "its parameter 'title' cannot be read in 'unreadable_argument'"),
        (postponed.unreadable_return, "its return annotation cannot be read in 'unreadable_return'"),
        (postponed.with_unreadable_resolver, "resolver 'unreadable_resolver': the annotation of its parameter 'title'"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_refused(tool: Callable[..., Any], reason: str) -> None:
    assert refused(tool).startswith(f"Tool '{tool.__name__}': ")
    assert reason in refused(tool)
    assert "name 'Missing' is not defined" in refused(tool)


async def test_postponed_annotations_may_name_what_the_module_names(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    mcp.tool(postponed.order)
    call = await askback.call(mcp, "order", {"title": "Dune"})
    assert (call.result, call.failed) == ("4 of Dune", False)


async def test_postponed_annotations_may_name_what_a_closure_holds(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    mcp.tool(postponed.make_closure(look))
    call = await askback.call(mcp, "order_by", {"title": "Dune"})
    assert (call.result, call.failed) == ("Dune look", False)


async def test_postponed_annotations_may_name_what_is_local_where_they_are_registered(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    postponed.register_locally(mcp.tool)
    call = await askback.call(mcp, "order_local", {"title": "Dune"}, {"Shelf D": {"ok": True}})
    assert (call.result, call.failed) == ("D True", False)
    call = await askback.call(mcp, "order_nested")
    assert (call.result, call.failed) == ("E", False)


async def test_postponed_annotations_may_name_what_their_registrar_names(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")
    postponed.register_for_others(mcp.tool)
    call = await askback.call(mcp, "named_by_the_registrar", {"title": "Dune"})
    assert (call.result, call.failed) == ("4", False)
    with pytest.raises(InvalidSignature, match="name 'Anything' is not defined"):
        resolved(postponed.named_by_the_registrar)


async def test_postponed_annotations_may_name_what_a_class_body_holds(askback: Rehearsal) -> None:
    plain = fastmcp.FastMCP("plain")
    postponed.register_in_a_class_body(plain.tool)
    call = await askback.call(plain, "order_in_class", {"title": "Dune"})
    assert (call.result, call.failed) == ("4", False)


def test_a_function_may_name_itself_under_its_decorator() -> None:
    @resolved
    async def again(title: str, found: "Annotated[str, Resolve(look)]") -> str:
        return await again(title, found)

    assert find_resolved_parameters(again) == {}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are new in 3.12")
async def test_postponed_annotations_may_name_type_parameters(askback: Rehearsal) -> None:
    scope: dict[str, Any] = {"Annotated": Annotated, "Resolve": Resolve, "look": look}
    exec(
        "from __future__ import annotations\n"
        "async def tool[T: str](title: T, found: Annotated[T, Resolve(look)]) -> str:\n    return found\n",
        scope,
    )
    mcp = FastMCP("shop")
    mcp.tool(scope["tool"])
    call = await askback.call(mcp, "tool", {"title": "Dune"})
    assert (call.result, call.failed) == ("Dune", False)


class Backorder(BaseModel):
    confirm: bool


async def ask_backorder() -> Backorder | Elicit[Backorder]:
    return Elicit("Order anyway?", Backorder)


@pytest.mark.parametrize(
    ("taken", "returned"),
    [
        (int, Backorder | Elicit[Backorder]),
        (Other, Elicit[Backorder]),
        (ElicitationResult[Other], Elicit[Backorder]),
        (AcceptedElicitation[Other], Elicit[Backorder]),
        (str, int),
        (Backorder, int),
        (Literal["a"], int),
        (list[int], tuple[int, ...]),
        (str, Sample),
        (str | None, ListRoots),
        (int, ElicitationResult[Backorder]),
    ],
)
def test_annotations_that_can_never_agree_are_refused(taken: Any, returned: Any) -> None:
    async def resolver() -> returned:  # pyright: ignore
        raise AssertionError("never registered")

    async def tool(value: Annotated[taken, Resolve(resolver)]) -> str:
        raise AssertionError("never registered")

    sentence = refused(tool)
    assert sentence.startswith("Tool 'tool': parameter 'value', resolver 'resolver': it returns ")
    assert "which can never be the" in sentence


@pytest.mark.parametrize(
    ("taken", "returned", "agreed"),
    [
        (Backorder, Backorder | Elicit[Backorder], Agreement.AGREED),
        (BaseModel, Elicit[Backorder], Agreement.AGREED),
        (float, int, Agreement.AGREED),
        (int, bool, Agreement.AGREED),
        (Any, Backorder, Agreement.AGREED),
        (Backorder, Any, Agreement.AGREED),
        (object, int, Agreement.AGREED),
        (int, inspect.Signature.empty, Agreement.AGREED),
        (Iterable, list[int], Agreement.AGREED),
        (Protocol, int, Agreement.AGREED),
        (TypedDict("Row", {"a": int}), dict[str, int], Agreement.AGREED),
        (Literal["a", 1], bytes, Agreement.AGREED),
        (int | None, None, Agreement.AGREED),
        (DeclinedElicitation, Elicit[Backorder], Agreement.AGREED),
        (ElicitationResult, Elicit[Backorder], Agreement.AGREED),
        (ElicitationResult[Backorder], Elicit[Backorder], Agreement.AGREED),
        (str, str | Elicit[Backorder], Agreement.DOUBTFUL),
        (bool, int, Agreement.DOUBTFUL),
        (Other, Backorder, Agreement.DOUBTFUL),
        (int, int | str, Agreement.DOUBTFUL),
        (Backorder, BaseModel, Agreement.DOUBTFUL),
    ],
)
def test_how_far_annotations_agree(taken: Any, returned: Any, agreed: Agreement) -> None:
    assert agreement(taken, returned, HostTypes()) is agreed


Asked = TypeAliasType("Asked", Annotated[T, Resolve(ask_backorder)], type_params=(T,))


async def test_a_generic_alias_keeps_the_outcome(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    async def buy(
        outcome: Asked[ElicitationResult[Backorder]],  # pyright: ignore
        whole: Annotated[ElicitationResult[Backorder], Resolve(ask_backorder)],
    ) -> str:
        return f"{outcome.action} {whole.action}"

    call = await askback.call(mcp, "buy", {}, {Backorder: Decline()})
    assert (call.result, call.failed) == ("decline decline", False)


async def test_what_the_author_binds_wins_over_the_resolver(askback: Rehearsal) -> None:
    async def buy(title: str, order: Annotated[Backorder, Resolve(ask_backorder)]) -> str:
        return f"{title} {order.confirm}"

    mcp = FastMCP("shop")
    plain = fastmcp.FastMCP("plain")
    bound = partial(buy, order=Backorder(confirm=False))
    mcp.add_tool(Tool.from_function(bound, name="buy"))
    plain.add_tool(Tool.from_function(resolved(bound), name="buy"))
    for server in (mcp, plain):
        call = await askback.call(server, "buy", {"title": "Dune"})
        assert (call.result, call.failed, call.exchanges) == ("Dune False", False, [])
        (tool,) = await server.list_tools()
        assert set(tool.parameters["properties"]) == {"title"}
    call = await askback.call(mcp, "buy", {"title": "Dune", "order": {"confirm": True}})
    assert call.result == "Dune False"


async def test_a_key_can_be_chosen(askback: Rehearsal) -> None:
    mcp = FastMCP("shop")

    async def depends(order: Annotated[Backorder, Resolve(ask_backorder)]) -> bool:
        return order.confirm

    @mcp.tool
    async def buy(
        order: Annotated[Backorder, Resolve(ask_backorder, key="user_name")], sure: Annotated[bool, Resolve(depends)]
    ) -> str:
        return f"{order.confirm} {sure}"

    async with askback.connect(mcp, {Backorder: Backorder(confirm=True)}) as client:
        assert (await client.call_tool("buy")).data == "True True"
    if askback.generation == "2026-07-28":
        assert [question.key for question in client.asked] == ["user_name"]


def test_chosen_keys_are_unique_within_a_tool() -> None:
    async def ask_again() -> Elicit[Backorder]:
        raise AssertionError("never asked")

    async def same(
        a: Annotated[Any, Resolve(ask_backorder, key="k")], b: Annotated[Any, Resolve(ask_again, key="k")]
    ) -> str:
        raise AssertionError("never registered")

    async def two(
        a: Annotated[Any, Resolve(ask_backorder, key="k")], b: Annotated[Any, Resolve(ask_backorder, key="l")]
    ) -> str:
        raise AssertionError("never registered")

    assert refused(same).endswith("resolver 'ask_again': its key 'k' is also the key of 'ask_backorder'")
    assert refused(two).endswith("resolver 'ask_backorder': it has two keys, 'k' and 'l'; give it one")
    for key in ("", "a@1", 3):
        with pytest.raises(ValueError, match="The key of a question is a non-empty string without '@'"):
            Resolve(ask_backorder, key=key)  # pyright: ignore


def test_a_chosen_key_is_nobody_elses() -> None:
    async def tool(
        a: Annotated[Any, Resolve(look)], b: Annotated[Any, Resolve(ask_backorder, key="tests.test_signatures:look")]
    ) -> str:
        raise AssertionError("never called")

    plans = build_resolver_plans(find_resolved_parameters(tool), {"title"})
    assert [plan.key for plan in plans.values()] == ["tests.test_signatures:look#1", "tests.test_signatures:look"]
