import type { Schemas } from "@/api/client"
import { type ConnectionDef, type Definition, isFields, listOf, type NodeDef, textOf } from "./definition"

export type Kinds = ReadonlyMap<string, Schemas["NodeKind"]>

const unique = (list: string[]) => [...new Set(list.filter(Boolean))]

// The keys of a switch, a split and a question come from how they are configured.
function configuredKeys({ kind, configurations: c }: NodeDef, own: string[]): string[] {
  const of = (list: unknown, ...names: string[]) => listOf(list).map((i) => (isFields(i) ? (names.map((n) => textOf(i[n])).find(Boolean) ?? "") : textOf(i)))
  if (kind === "FLOW.SWITCH") {
    const branches = of(c.branches, "branch_id")
    const cases = of(c.cases, "output_key", "output_port", "case")
    const other = listOf(c.branches).some((b) => isFields(b) && b.is_default === true) ? "" : textOf(c.default_output_key) || textOf(c.default_output_port) || "default"
    return [...cases, ...branches, ...of(c.choices, "branch"), other]
  }
  if (kind === "FLOW.SPLIT" && c.split_mode === "predicate") return [...(isFields(c.predicate_paths) ? Object.keys(c.predicate_paths) : []), "unmatched", "result"]
  if (kind === "FLOW.SPLIT" && c.split_mode === "by_key") return [...of(c.by_key), "result"]
  if (kind.startsWith("HUMAN_IN_THE_LOOP.")) {
    const options = [...of(c.approval_options, "id", "value", "key", "label"), ...of(c.selection_options, "id", "value", "key", "label")]
    const always = ["result", "confirmed", "rejected", "unrelated", "timeout"]
    return options.length ? [...always, ...options] : own
  }
  return own
}

/** outputKeys are the keys that a node can put out, the most usual first. */
export function outputKeys(node: NodeDef, kinds: Kinds): string[] {
  const own = kinds.get(node.kind)?.output_keys ?? ["result"]
  return unique([...configuredKeys(node, own), ...(node.configurations.on_error === "continue" ? ["error"] : [])])
}

/** mainKey is the key that a connection means when it names none. */
export function mainKey(keys: string[]): string {
  return ["result", "completed", "confirmed"].find((k) => keys.includes(k)) ?? keys[0] ?? "result"
}

const otherNames: Record<string, string> = { success: "result", response: "result", completed: "result", delayed: "result", approved: "confirmed", filtered: "unrelated" }

/** keyOf is the key of a connection in the spelling of its node. */
export function keyOf(c: ConnectionDef, keys: string[]): string {
  if (keys.includes(c.key)) return c.key
  if (c.key === "main") return mainKey(keys)
  if (c.key === "result" && keys.includes("completed")) return "completed"
  const other = otherNames[c.key]
  return other && keys.includes(other) ? other : c.key
}

/** entryKey is the key that leads into the body of a loop, a split or a timeout. */
export function entryKey(node: NodeDef): string | undefined {
  if (["FLOW.LOOP", "FLOW.FOR_EACH", "FLOW.WHILE"].includes(node.kind)) return "iteration"
  if (node.kind === "FLOW.TIMEOUT") return "body"
  if (node.kind === "FLOW.SPLIT" && !["predicate", "by_key"].includes(textOf(node.configurations.split_mode))) return "branch"
  return undefined
}

/** shownKeys are those that a card shows as ports while it is not chosen: what is connected, and what one usually connects. */
export function shownKeys(keys: string[], used: ReadonlySet<string>, editing: boolean): string[] {
  const usual = !editing ? [] : keys.length <= 3 ? keys : keys.includes("confirmed") ? ["confirmed", "rejected"] : keys.slice(0, 1)
  return unique([...keys.filter((k) => used.has(k) || usual.includes(k)), ...used])
}

/**
 * bodiesOf says of each node in which loop, split or timeout it runs: the innermost whose entry key leads to it and whose other keys do not.
 */
export function bodiesOf(definition: Definition): Map<string, string> {
  const next = new Map<string, ConnectionDef[]>()
  for (const c of definition.connections) next.set(c.from, [...(next.get(c.from) ?? []), c])
  const reach = (from: string[], around: string) => {
    const seen = new Set(from.filter((id) => id !== around))
    const todo = [...seen]
    for (let id = todo.pop(); id !== undefined; id = todo.pop())
      for (const c of next.get(id) ?? [])
        if (c.to !== around && !seen.has(c.to)) {
          seen.add(c.to)
          todo.push(c.to)
        }
    return seen
  }
  const bodies: { loop: string; body: Set<string> }[] = []
  for (const node of definition.nodes) {
    const entry = entryKey(node)
    if (!entry) continue
    const out = next.get(node.id) ?? []
    const inside = reach(out.filter((c) => c.key === entry).map((c) => c.to), node.id)
    const outside = reach(out.filter((c) => c.key !== entry).map((c) => c.to), node.id)
    bodies.push({ loop: node.id, body: new Set([...inside].filter((id) => !outside.has(id))) })
  }
  bodies.sort((a, b) => a.body.size - b.body.size)
  const parent = new Map<string, string>()
  const within = (id: string, loop: string) => {
    for (let p: string | undefined = loop; p !== undefined; p = parent.get(p)) if (p === id) return true
    return false
  }
  for (const { loop, body } of bodies) for (const id of body) if (!parent.has(id) && !within(id, loop)) parent.set(id, loop)
  // What is attached to an agent runs where the agent does.
  for (const node of definition.nodes) for (const a of node.attached) if (parent.has(node.id) && !parent.has(a) && a !== parent.get(node.id)) parent.set(a, parent.get(node.id)!)
  return parent
}
