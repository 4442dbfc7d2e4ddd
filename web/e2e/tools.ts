import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Tandem } from "./tandem"

const file = join(mkdtempSync(join(tmpdir(), "tandem-e2e-tools-")), "tools.json")

const schema = { type: "object", required: ["parcels"], properties: { parcels: { type: "array", items: { type: "object", properties: { id: { type: "string" }, kg: { type: "number" } } } } } }

/** toolServer is the command that starts the tool server of the tests, which behaves as a file says. */
export const toolServer = (file: string) => [process.execPath, join(import.meta.dirname, "tool_server.mjs"), file] as const

/** tools says how the tool server "toolbox" behaves from its next start on: it has one tool, parcels. */
export function tools({ description = "Says what parcels cost.", hang = false }: { description?: string; hang?: boolean } = {}) {
  writeFileSync(file, JSON.stringify({ tools: [{ name: "parcels", description, inputSchema: schema }], hang }))
}

/** withTools registers the tool server, as "toolbox", and activates it for the admin. */
export async function withTools(tandem: Tandem) {
  tools()
  const [command, ...args] = toolServer(file)
  await tandem.api("POST", "/mcp/servers", { id: "toolbox", transport: "stdio", command, args })
  await tandem.api("POST", "/mcp/servers/toolbox/activate", {})
}

/** calling is a workflow that calls the tool. */
export const calling = (id: string) => ({
  metadata: { id, name: id, description: "It calls a tool.", version: "1.0" },
  triggers: ["start"],
  nodes: [
    { id: "start", name: "start", type: "TRIGGER", subtype: "MANUAL", configurations: {} },
    { id: "quote", name: "quote", type: "TOOL", subtype: "MCP_TOOL", configurations: { server_id: "toolbox", tool_name: "parcels", function_args: { parcels: [{ id: "p1", kg: 2 }] } } },
  ],
  connections: [{ id: "c1", from_node: "start", to_node: "quote" }],
})

/** call starts such a workflow and returns the id of the run. */
export async function call(tandem: Tandem, id: string): Promise<string> {
  await tandem.api("POST", "/workflows", calling(id))
  return (await tandem.api<{ execution_id: string }>("POST", `/workflows/${id}/execute`, { inputs: {} })).execution_id
}
