import type { Schemas } from "@/api/client"
import type { Definition } from "@/graph/definition"

type Records = Record<string, Schemas["NodeExecution"]>
type Outputs = Record<string, Record<string, unknown>>

/** Tried is a run that somebody has just made by hand. */
export type Tried = { how: "node" | "from"; node: string; pinned: Outputs; status: string; error?: string; records: Records }

/** Why a run cannot be kept as a test. */
export type Refusal = "running" | "effects" | "large"

const partial = (v: unknown) => /"\$(blob|omitted)"/.test(JSON.stringify(v))

/**
 * testOf makes a test of a run: what was pinned stays pinned, what the world answered is pinned as well, since a test has no effects, and what was computed last is
 * expected.
 */
export function testOf(definition: Definition, tried: Tried): { test: Record<string, unknown> } | { refusal: Refusal } {
  if (!["SUCCESS", "ERROR", "TIMEOUT"].includes(tried.status)) return { refusal: "running" }
  const ran = Object.entries(tried.records).filter(([id, r]) => !r.pinned && definition.nodes.some((n) => n.id === id))
  if (ran.some(([id, r]) => id === tried.node && r.effect !== "pure")) return { refusal: "effects" }
  const pinned: Outputs = { ...tried.pinned }
  for (const [id, r] of ran) if (r.effect !== "pure" && r.output_data && Object.keys(r.output_data).length) pinned[id] = r.output_data as Record<string, unknown>
  const computed = new Map(ran.filter(([, r]) => r.effect === "pure" && r.status === "completed" && r.output_data && Object.keys(r.output_data).length))
  const outputs: Outputs = {}
  for (const [id, r] of computed) {
    const goesOn = definition.connections.some((c) => c.from === id && c.to !== id && computed.has(c.to))
    if (tried.how === "node" ? id === tried.node : !goesOn) outputs[id] = r.output_data as Record<string, unknown>
  }
  if (partial([pinned, outputs])) return { refusal: "large" }
  const expect: Record<string, unknown> = {}
  if (tried.status === "TIMEOUT") expect.status = tried.status
  if (Object.keys(outputs).length) expect.outputs = outputs
  if (tried.error && tried.status !== "SUCCESS") expect.error_code = tried.error
  return { test: { [tried.how]: tried.node, ...(Object.keys(pinned).length ? { pinned } : {}), ...(Object.keys(expect).length ? { expect } : {}) } }
}
