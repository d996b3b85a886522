"""A client on the Python SDK, of 2.3.0 or 1.30.0: a real peer for the serving side of Toolcrib.

    python client.py MODE http URL
    python client.py MODE stdio PROGRAM ARGUMENT...

MODE is `auto` (the SDK finds out the era; 1.30 knows one only) or `legacy`. It does everything a
client does with the server of `toolcrib demo-server` and prints what it saw as one JSON object on
standard output; the tests of Toolcrib judge it. It judges nothing itself and ends with an error when
it cannot go on.

Observed of these SDKs: 1.30 does not tell the server when a request is given up, so the client does
it itself, and validates structured content against the tool's outputSchema, as 2.3 does.
"""

import asyncio
import contextlib
import json
import sys

import mcp
from mcp import StdioServerParameters, types
from mcp.client.stdio import stdio_client

MODERN_SDK = hasattr(mcp, "Client")
PATIENCE = 20
SIGNATURE = {"name": "Ada", "days": "7", "outdoors": True}


class Seen:
    """What the server sent unasked."""

    def __init__(self) -> None:
        self.asked = []
        self.steps = []
        self.tools_changed = asyncio.Event()

    async def message(self, message) -> None:
        note = getattr(message, "root", message)
        if isinstance(note, types.ToolListChangedNotification):
            self.tools_changed.set()
        if isinstance(note, types.ProgressNotification):
            self.steps.append(plain(note)["params"])

    async def elicit(self, _context, params):
        self.asked.append(plain(params))
        return types.ElicitResult(action="accept", content=SIGNATURE)


def plain(value):
    """As it stands on the wire."""
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


@contextlib.asynccontextmanager
async def connected(mode, kind, where, seen):
    """The session, and what the handshake brought."""
    server = StdioServerParameters(command=where[0], args=where[1:]) if kind == "stdio" else where[0]
    if MODERN_SDK:
        async with mcp.Client(
            server,
            mode=mode,
            message_handler=seen.message,
            elicitation_callback=seen.elicit,
            # What is cached was not served.
            cache=None,
        ) as client:
            yield client, client.protocol_version, client.server_info.name
        return
    from mcp.client.streamable_http import streamable_http_client

    transport = stdio_client(server) if kind == "stdio" else streamable_http_client(server)
    async with transport as streams:
        async with mcp.ClientSession(
            streams[0],
            streams[1],
            message_handler=seen.message,
            elicitation_callback=seen.elicit,
        ) as session:
            hello = await session.initialize()
            yield session, hello.protocolVersion, hello.serverInfo.name


async def lists(client):
    tools = plain(await client.list_tools())["tools"]
    resources = plain(await client.list_resources())["resources"]
    templates = plain(await client.list_resource_templates())["resourceTemplates"]
    prompts = plain(await client.list_prompts())["prompts"]
    return {
        "tools": [tool["name"] for tool in tools],
        "resources": [resource["uri"] for resource in resources],
        "templates": [template["uriTemplate"] for template in templates],
        "prompts": [prompt["name"] for prompt in prompts],
    }


async def call(client, name, arguments, **options):
    return plain(await client.call_tool(name, arguments, **options))


async def uses(client):
    """Calls, reads, prompts and completions."""
    read = lambda uri: client.read_resource(uri if MODERN_SDK else types.AnyUrl(uri))
    handbook = plain(await read("docs://handbook"))
    profile = plain(await read("users://7/profile"))
    prompt = plain(await client.get_prompt("review", {"code": "x = 1", "language": "python"}))
    reference = types.PromptReference(type="ref/prompt", name="review")
    completion = plain(await client.complete(reference, {"name": "language", "value": "ja"}))
    return {
        "called": await call(client, "add", {"a": 2, "b": 40}),
        "misfit": await call(client, "add", {"a": "two"}),
        "handbook": handbook["contents"],
        "profile": profile["contents"],
        "prompt": prompt["messages"],
        "completion": completion["completion"]["values"],
    }


async def progress(client):
    told = []

    async def step(done, total, message):
        told.append([done, total, message])

    query = {"query": {"text": "tool", "limit": 1}}
    found = await call(client, "search_docs", query, progress_callback=step)
    counted = await call(client, "count", {"to": 3, "step_ms": 1}, progress_callback=step)
    # A notification may still be on its way to its callback.
    while len(told) < 7:
        await asyncio.sleep(0.01)
    return {"progress": told, "found": found["content"], "counted": counted["content"]}


async def cancel(client, seen):
    """Gives up a call of twenty seconds once it has begun, and goes on."""
    begun = asyncio.Event()

    async def step(_done, _total, _message):
        begun.set()

    seen.steps.clear()
    counting = asyncio.create_task(
        call(client, "count", {"to": 1000, "step_ms": 20}, progress_callback=step)
    )
    await begun.wait()
    if not MODERN_SDK:
        token = seen.steps[-1]["progressToken"]
        given_up = types.CancelledNotification(
            params=types.CancelledNotificationParams(requestId=token, reason="no longer wanted")
        )
        await client.send_notification(types.ClientNotification(given_up))
    counting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await counting
    after = await call(client, "add", {"a": 20, "b": 22})
    # What was under way when the server heard of it has time to arrive.
    await asyncio.sleep(0.2)
    steps = len(seen.steps)
    await asyncio.sleep(0.3)
    return {"after_cancel": after, "steps_after_cancel": len(seen.steps) - steps}


async def change(client, version, seen):
    if version >= "2026-07-28":
        async with client.listen(tools_list_changed=True) as changes:
            refreshed = await call(client, "refresh", {})
            event = type(await anext(aiter(changes))).__name__
    else:
        refreshed = await call(client, "refresh", {})
        await seen.tools_changed.wait()
        event = "ToolsListChanged"
    tools = plain(await client.list_tools())["tools"]
    greeted = await call(client, "greet", {"name": "Ada"})
    return {
        "refreshed": refreshed["content"],
        "event": event,
        "tools_after": [tool["name"] for tool in tools],
        "greeted": greeted["content"],
    }


async def main(mode, kind, *where) -> None:
    seen = Seen()
    async with asyncio.timeout(PATIENCE), connected(mode, kind, where, seen) as connection:
        client, version, name = connection
        out = {"protocol": version, "server": name}
        out |= await lists(client)
        out |= await uses(client)
        out |= await progress(client)
        out |= await cancel(client, seen)
        borrowed = await call(client, "borrow", {"tool": "plane"})
        out |= {"borrowed": borrowed["content"], "asked": seen.asked}
        out |= await change(client, version, seen)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
