// A client on the TypeScript SDK: a real peer for the serving side of Toolcrib.
//
//     node client.mjs NODE_MODULES http URL
//     node client.mjs NODE_MODULES stdio PROGRAM ARGUMENT...
//
// It does everything a client does with the server of `toolcrib demo-server` and prints what it saw
// as one JSON object on standard output; the tests of Toolcrib judge it. It judges nothing itself and
// ends with an error when it cannot go on.
//
// Observed of this SDK (1.32): it knows the legacy era only. It drops a progress notification that is
// read in one piece with the answer of its request. One whose request was given up is an error to it,
// so what a server sends too late is seen.

import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [modules, kind, ...where] = process.argv.slice(2);
const require = createRequire(join(modules, "client.mjs"));
const sdk = (path) => require(`@modelcontextprotocol/sdk/${path}`);
const { Client } = sdk("client/index.js");
const { StdioClientTransport } = sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = sdk("client/streamableHttp.js");
const { ElicitRequestSchema, ToolListChangedNotificationSchema } = sdk("types.js");

const PATIENCE_MS = 20_000;
const SIGNATURE = { name: "Ada", days: "7", outdoors: true };
const SUM = { name: "add", arguments: { a: 20, b: 22 } };

async function connected(seen) {
  const client = new Client(
    { name: "peer-typescript", version: "1.0.0" },
    { capabilities: { elicitation: {} } },
  );
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    seen.asked.push(params);
    return { action: "accept", content: SIGNATURE };
  });
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => seen.toolsChanged());
  client.onerror = (error) => seen.errors.push(String(error));
  const transport =
    kind === "stdio"
      ? new StdioClientTransport({ command: where[0], args: where.slice(1) })
      : new StreamableHTTPClientTransport(new URL(where[0]));
  // The SDK tells its transport which revision was agreed on.
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    seen.version = version;
    tell?.(version);
  };
  await client.connect(transport);
  return [client, transport];
}

async function lists(client) {
  return {
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    resources: (await client.listResources()).resources.map((resource) => resource.uri),
    templates: (await client.listResourceTemplates()).resourceTemplates.map(
      (template) => template.uriTemplate,
    ),
    prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  };
}

async function uses(client) {
  const prompt = { name: "review", arguments: { code: "x = 1", language: "python" } };
  const complete = {
    ref: { type: "ref/prompt", name: "review" },
    argument: { name: "language", value: "ja" },
  };
  return {
    called: await client.callTool({ name: "add", arguments: { a: 2, b: 40 } }),
    misfit: await client.callTool({ name: "add", arguments: { a: "two" } }),
    handbook: (await client.readResource({ uri: "docs://handbook" })).contents,
    profile: (await client.readResource({ uri: "users://7/profile" })).contents,
    prompt: (await client.getPrompt(prompt)).messages,
    completion: (await client.complete(complete)).completion.values,
  };
}

async function progress(client) {
  const told = [];
  const onprogress = ({ progress, total, message }) =>
    told.push([progress, total ?? null, message ?? null]);
  const search = { name: "search_docs", arguments: { query: { text: "tool", limit: 1 } } };
  const found = await client.callTool(search, undefined, { onprogress });
  const count = { name: "count", arguments: { to: 3, step_ms: 1 } };
  const counted = await client.callTool(count, undefined, { onprogress });
  return { progress: told, found: found.content, counted: counted.content };
}

// Gives up a call of twenty seconds once it has begun, and goes on.
async function cancel(client, seen) {
  const given = new AbortController();
  const begun = Promise.withResolvers();
  const count = { name: "count", arguments: { to: 1000, step_ms: 20 } };
  const options = { onprogress: () => begun.resolve(), signal: given.signal };
  const counting = client.callTool(count, undefined, options).then(
    () => "answered",
    () => "given up",
  );
  await begun.promise;
  given.abort("no longer wanted");
  const ended = await counting;
  const after = await client.callTool(SUM);
  // What was under way when the server heard of it has time to arrive.
  await sleep(200);
  const errors = seen.errors.length;
  await sleep(300);
  return { ended, after_cancel: after, steps_after_cancel: seen.errors.length - errors };
}

async function change(client, seen) {
  const changed = new Promise((resolve) => {
    seen.toolsChanged = resolve;
  });
  const refreshed = await client.callTool({ name: "refresh", arguments: {} });
  await changed;
  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  const greeted = await client.callTool({ name: "greet", arguments: { name: "Ada" } });
  return {
    refreshed: refreshed.content,
    event: "ToolsListChanged",
    tools_after: tools,
    greeted: greeted.content,
  };
}

async function main() {
  const seen = { asked: [], errors: [], toolsChanged: () => {} };
  const [client, transport] = await connected(seen);
  const out = {
    protocol: seen.version ?? null,
    server: client.getServerVersion().name,
    ...(await lists(client)),
    ...(await uses(client)),
    ...(await progress(client)),
    ...(await cancel(client, seen)),
  };
  const borrow = { name: "borrow", arguments: { tool: "plane" } };
  out.borrowed = (await client.callTool(borrow)).content;
  out.asked = seen.asked;
  Object.assign(out, await change(client, seen));
  await transport.terminateSession?.();
  await client.close();
  console.log(JSON.stringify(out, null, 1));
}

setTimeout(() => {
  console.error(`still not done after ${PATIENCE_MS} ms`);
  process.exit(1);
}, PATIENCE_MS).unref();
await main();
