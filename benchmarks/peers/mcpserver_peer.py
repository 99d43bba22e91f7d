"""The Python SDK's high-level server, used as its documentation shows it."""

import sys

from mcp.server.mcpserver import MCPServer

from benchmarks.peers import typed_tools, workload


def build(tools: int) -> MCPServer:
    server = MCPServer("bench", log_level="WARNING")
    server.add_tool(typed_tools.noop, description="Do nothing.")
    server.add_tool(typed_tools.rows, description="Bars of one instrument.")
    for name in workload.filler_names(tools):
        server.add_tool(typed_tools.summary, name=name, description=workload.describe_filler(name))
    return server


def main() -> None:
    server = build(int(sys.argv[2]))
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        from benchmarks.peers.serve_http import serve  # here, so that uvicorn does not count in stdio's cold start

        serve(server.streamable_http_app())


if __name__ == "__main__":
    main()
