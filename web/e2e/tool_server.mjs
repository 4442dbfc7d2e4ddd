// A small tool server of the Model Context Protocol over standard input and output. A file, read anew each time, says which tools it has and whether calls ever
// answer: {"tools": [...], "hang": false}.
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"

const settings = () => JSON.parse(readFileSync(process.argv[2], "utf8"))
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n")

// What parcels cost is told as the demo model reads it; any other call is just done.
const call = ({ arguments: { parcels } = {} }) => {
  if (settings().hang) return undefined
  if (!parcels) return { content: [{ type: "text", text: "done" }] }
  const result = { summary: { transformed_data: [{ tariff: "standard", parcels: parcels.length, euros: 6 }] } }
  return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result }
}

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "tests", version: "1" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools: settings().tools }),
  "tools/call": call,
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const answer = answers[method]
  if (!answer) return say({ id, error: { code: -32601, message: "there is no such method" } })
  const result = answer(params)
  if (result !== undefined) say({ id, result })
})
