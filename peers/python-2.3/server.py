"""A small server on the Python SDK 2.3.0: a real peer for Toolcrib's tests, of both eras.

    python server.py               speaks over standard input and output
    python server.py --http PORT   speaks streamable HTTP; PORT 0 takes a free one; prints
                                   `LISTEN http://127.0.0.1:PORT/mcp` on standard error

Observed of this SDK over stdio: the first message settles the era of the whole connection. After
`server/discover`, `initialize` is refused (-32022); after `initialize`, a request that carries
the modern `_meta` is refused (-32600). To legacy clients it declares `listChanged: false` and sends
`list_changed` all the same. A `subscriptions/listen` open at end of input is answered -32000.
"""

import argparse
import asyncio
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("peer-python-2.3", version="1.0.0", instructions="Adds numbers, slowly if asked.")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool()
async def count(to: int, pause_ms: int, ctx: Context) -> str:
    """Count slowly up to a number and report progress on the way."""
    for step in range(1, to + 1):
        await asyncio.sleep(pause_ms / 1000)
        await ctx.report_progress(step, to, f"{step} of {to}")
    return f"counted to {to}"


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Add one more tool of the given name to this server and announce the change."""
    server.add_tool(lambda: f"this is {name}", name=name, description="A tool added while running.")
    # Modern clients hear of it on subscriptions/listen, legacy ones on their connection.
    if ctx.protocol_version is not None and ctx.protocol_version >= "2026-07-28":
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return f"added {name}"


@server.resource("docs://handbook", name="handbook", mime_type="text/plain")
def handbook() -> str:
    """The handbook."""
    return "Count the tools before and after."


@server.resource("users://{user_id}/profile", name="profile", mime_type="text/plain")
def profile(user_id: str) -> str:
    """The profile of one user."""
    return f"profile of {user_id}"


@server.prompt()
def review(code: str, language: str = "python") -> str:
    """Ask for a review of some code."""
    return f"Please review this {language} code:\n{code}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, metavar="PORT")
    port = parser.parse_args().http
    if port is None:
        server.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", port))
    print(f"LISTEN http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
