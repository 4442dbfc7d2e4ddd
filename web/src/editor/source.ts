import { stringify } from "yaml"
import type { Schemas } from "@/api/client"
import { isFields } from "@/graph/definition"

const ofAuthor = ["name", "description", "icon_url", "tags", "version", "parent_workflow", "settings"] as const

const empty = (v: unknown) => v === undefined || v === null || v === "" || (Array.isArray(v) && v.length === 0) || (isFields(v) && Object.keys(v).length === 0)
const filled = (v: unknown) => (isFields(v) ? Object.fromEntries(Object.entries(v).filter(([, x]) => !empty(x))) : v)

type Kept = Schemas["Workflow"] & { source?: string; notes?: unknown[] | null }

/** sourceOf is the text of a workflow: as its author wrote it where the server has kept that, else the definition in YAML. */
export function sourceOf(w: Kept): string {
  if (w.source) return w.source
  const metadata = Object.fromEntries(ofAuthor.map((k) => [k, w.metadata[k]]).filter(([, v]) => !empty(v)))
  const nodes = (w.nodes ?? []).map(filled)
  const connections = (w.connections ?? []).map(filled)
  return stringify({ metadata, ...(empty(w.triggers) ? {} : { triggers: w.triggers }), nodes, connections, ...(empty(w.notes) ? {} : { notes: w.notes }), ...(empty(w.tests) ? {} : { tests: w.tests }) }, { lineWidth: 0 })
}

/** blank is how a new workflow begins. */
export const blank = (name: string) => `metadata:\n  name: ${name}\nnodes: []\nconnections: []\n`
