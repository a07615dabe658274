// An MCP client in another language: the official one for JavaScript, told what to do by one line of JSON on stdin.
//
//     node mcp_client.mjs PACKAGES <<< '{"command": […], "env": {…}, "steps": [["ask", {"message": "Hello"}], …]}'
//
// `url` and `headers` stand in place of `command` and `env` for an address. It prints one line of JSON: what the
// server calls itself, the names of its tools, and for each step its answer and the progress that was told.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "package.json"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const plan = JSON.parse(readFileSync(0, "utf8"));
const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers: plan.headers } })
  : new StdioClientTransport({ command: plan.command[0], args: plan.command.slice(1), env: plan.env, cwd: plan.cwd });
const client = new Client({ name: "a program", version: "1" });

await client.connect(transport);
const told = { server: client.getServerVersion(), tools: (await client.listTools()).tools.map((t) => t.name), steps: [] };
for (const [name, given] of plan.steps) {
  const progress = [];
  const answer = await client.callTool({ name, arguments: given }, undefined, {
    onprogress: (one) => progress.push(one.message),
  });
  told.steps.push({ ...answer, progress });
}
await client.close();
console.log(JSON.stringify(told));
