// Lists the tools, calls one well and once badly, and prints what came. Arguments: a file beside the modules, JSON.
const { createRequire } = require("node:module");

const [beside, json] = process.argv.slice(2);
const told = JSON.parse(json);
const need = createRequire(beside);
const modules = {
  v1: ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js",
       "@modelcontextprotocol/sdk/client/streamableHttp.js"],
  v2: ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"],
}[told.sdk];
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = Object.assign({}, ...modules.map(need));

async function main() {
  const options = told.mode ? { versionNegotiation: { mode: told.mode } } : {};
  const client = new Client({ name: "test", version: "0" }, options);
  await client.connect(
    told.url
      ? new StreamableHTTPClientTransport(new URL(told.url))
      : new StdioClientTransport({ command: told.command, args: told.arguments, env: process.env }),
  );
  const call = (values) => client.callTool({ name: "get_top_strategies", arguments: values });
  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  const answer = await call({ symbol: "BTC/USD", limit: 2 });
  const failure = await call({ symbol: "no such thing" });
  await client.close();
  console.log(JSON.stringify({ tools, answer, failure }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
