import { call, client, type Schemas } from "@/api/client"
import type { Evaluate } from "@/kindform"
import type { Input } from "./input"
import type { Pins } from "./pins"

/** evaluator asks what the settings of a node are worth: with what it was given in the last run, else with what is pinned and what examples bring. Nothing is asked where nothing is known. */
export function evaluator(node: string, last: Schemas["Execution"] | undefined, input: Input | undefined, pins: Pins): Evaluate | undefined {
  if (!last && !input) return undefined
  const pinned: Record<string, Record<string, unknown>> = {}
  for (const [id, text] of Object.entries(pins)) {
    const [of, key] = JSON.parse(id) as [string, string]
    try {
      if (text.trim()) pinned[of] = { ...pinned[of], [key]: JSON.parse(text) as unknown }
    } catch {
      // What is being typed is not JSON yet; the last run says what the node puts out.
    }
  }
  const given = {
    node_id: node,
    ...(last ? { execution_id: last.execution_id } : {}),
    ...(input && input.origin !== "last" ? { input: input.value } : {}),
    ...(Object.keys(pinned).length ? { pinned } : {}),
  }
  return { key: JSON.stringify(given), ask: (what, signal) => call(client.POST("/api/v1/workflows/evaluate", { body: { ...given, ...what } as never, signal })) }
}
