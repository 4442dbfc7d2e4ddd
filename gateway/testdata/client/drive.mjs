// Drives a client of the Model Context Protocol for tests: commands come as lines of JSON on standard input, answers go as lines
// of JSON to standard output. The installation with the clients is named by CLIENT_DIR; the first command says how to connect.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(process.env.CLIENT_DIR + '/package.json');
const say = (value) => process.stdout.write(JSON.stringify(value) + '\n');

let client, transport, sdk;
const replies = []; // what the user answers, one after the other
const asked = []; // what the user was asked
let changed = 0;
const waiting = [];

function heardChange() {
  changed++;
  for (const go of waiting.splice(0)) go();
}

async function connect(c) {
  sdk = c.sdk;
  const capabilities = c.elicit ? { elicitation: c.elicit === 'form' ? { form: {} } : {} } : {};
  const info = { name: 'test', version: '1' };
  const answer = async (request) => {
    asked.push(request.params);
    return replies.shift() ?? { action: 'cancel' };
  };
  let Stdio, HTTP;
  if (c.sdk === 1) {
    const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
    const types = require('@modelcontextprotocol/sdk/types.js');
    ({ StdioClientTransport: Stdio } = require('@modelcontextprotocol/sdk/client/stdio.js'));
    ({ StreamableHTTPClientTransport: HTTP } = require('@modelcontextprotocol/sdk/client/streamableHttp.js'));
    client = new Client(info, { capabilities });
    if (c.elicit) client.setRequestHandler(types.ElicitRequestSchema, answer);
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, heardChange);
  } else {
    const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
    ({ StdioClientTransport: Stdio } = require('@modelcontextprotocol/client/stdio'));
    HTTP = StreamableHTTPClientTransport;
    client = new Client(info, {
      capabilities,
      versionNegotiation: { mode: c.mode ?? 'auto' },
      listChanged: { tools: { autoRefresh: false, onChanged: heardChange } },
    });
    if (c.elicit) client.setRequestHandler('elicitation/create', answer);
  }
  transport = c.stdio
    ? new Stdio({ command: c.stdio.command, args: c.stdio.args, env: { ...process.env, ...c.stdio.env } })
    : new HTTP(new URL(c.url), { requestInit: { headers: c.headers ?? {} } });
  await client.connect(transport);
  const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? '';
  return { version, server: client.getServerVersion(), capabilities: client.getServerCapabilities(), instructions: client.getInstructions() };
}

const commands = {
  connect,
  replies: async (c) => { replies.push(...c.list); return {}; },
  list: async () => client.listTools(),
  call: async (c) => {
    const progress = [];
    const onprogress = (p) => progress.push(p);
    const params = { name: c.name, arguments: c.arguments };
    const options = { onprogress: c.progress ? onprogress : undefined, timeout: 60000 };
    const result = sdk === 1 ? await client.callTool(params, undefined, options) : await client.callTool(params, options);
    return { result, progress, asked: asked.splice(0) };
  },
  changed: async (c) => {
    while (changed < c.count) await new Promise((go) => waiting.push(go));
    return { changed };
  },
  close: async () => {
    if (transport.terminateSession) await transport.terminateSession();
    await client.close();
    return {};
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  try {
    say({ ok: await commands[command.do](command) });
  } catch (e) {
    say({ error: String(e?.message ?? e), code: e?.code });
  }
}
