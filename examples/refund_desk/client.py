"""A plain client: what the model sees, what a person is asked, and the effect of their answers."""

import fastmcp
from fastmcp.client.transports import ClientTransport

from examples.command_line import Options, expect
from examples.conversation import Person, call
from examples.refund_desk.server import Refund

NO_SCOPE = "Resolver for parameter 'scope' could not resolve: elicitation was decline"


async def story(server: ClientTransport, options: Options) -> None:
    """Show the schema, then refund with every kind of answer."""
    one_line_of_two = {"full": False, "sku": "LAMP"}
    person = Person({"full": True}, {"restock": True}, one_line_of_two, "decline", {"full": False, "sku": "BOAT"})
    async with fastmcp.Client(server, mode=options.mode, elicitation_handler=person) as client:
        print(f"A client, on protocol {client.protocol_version}")
        (tool,) = await client.list_tools()
        print(f"The model sees that {tool.name} takes: {', '.join(tool.input_schema['properties'])}")
        expect(set(tool.input_schema["properties"]), {"order_id", "reason"})
        expect(set(tool.input_schema["required"]), {"order_id", "reason"})

        print("\nOne line, not shipped yet: nobody is asked, and an amount that the client sends is ignored.")
        said = await call(client, "refund_order", order_id="ORD-7001", reason="changed my mind", cents=999999)
        expect(said, refunded("ORD-7001", 1250, restocked=False))
        expect(len(person.asked), 0)

        print("\nTwo lines: the scope is asked once, though the amount and the restocking both depend on it.")
        said = await call(client, "refund_order", order_id="ORD-7002", reason="arrived late")
        expect(said, refunded("ORD-7002", 6150, restocked=True))
        expect(len(person.asked), 2)

        print("\nOne of the two lines, and no answer about the shelf: refunded anyway.")
        said = await call(client, "refund_order", order_id="ORD-7002", reason="the lamp is broken")
        expect(said, refunded("ORD-7002", 4900, restocked=False))
        expect(len(person.asked), 4)

        print("\nA line that the order does not have: what people type is checked, too.")
        said = await call(client, "refund_order", order_id="ORD-7002", reason="the boat leaks")
        expect(said, "failed: ORD-7002 has no line 'BOAT'.")

        print("\nNo scope: no amount, no refund, and no question about the shelf.")
        said = await call(client, "refund_order", order_id="ORD-7002", reason="no reason")
        expect((said.startswith("failed: "), NO_SCOPE in said), (True, True))
        expect(len(person.asked), 6)


def refunded(order_id: str, cents: int, *, restocked: bool) -> str:
    """The result of the tool for such a refund."""
    return Refund(order_id=order_id, cents=cents, restocked=restocked).model_dump_json()
