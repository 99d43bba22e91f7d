"""fastmcp, used as its documentation shows it."""

import sys

from fastmcp import FastMCP

from benchmarks.peers import typed_tools, workload


def build(tools: int) -> FastMCP:
    server: FastMCP = FastMCP("bench")
    server.tool(typed_tools.noop, description="Do nothing.")
    server.tool(typed_tools.rows, description="Bars of one instrument.")
    for name in workload.filler_names(tools):
        server.tool(typed_tools.summary, name=name, description=workload.describe_filler(name))
    return server


def main() -> None:
    server = build(int(sys.argv[2]))
    if sys.argv[1] == "stdio":
        server.run("stdio", show_banner=False, log_level="WARNING")
    else:
        from benchmarks.peers.serve_http import serve  # here, so that uvicorn does not count in stdio's cold start

        serve(server.http_app())


if __name__ == "__main__":
    main()
