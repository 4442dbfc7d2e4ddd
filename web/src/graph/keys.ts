import type { Schemas } from "@/api/client"
import { applies, asSchema, type FieldSchema, writtenName } from "@/kindform/schema"
import { type ConnectionDef, type Definition, isFields, listOf, type NodeDef, textOf } from "./definition"

type Kind = Schemas["NodeKind"]
type Source = Schemas["NodeKeySource"]
type Fields = Record<string, unknown>

export type Kinds = ReadonlyMap<string, Kind>

const unique = (list: string[]) => [...new Set(list.filter(Boolean))]

// The keys that a configuration field names.
function namedKeys(from: Source, c: Fields, fields: Record<string, FieldSchema | true>): string[] {
  const schema = asSchema(fields[from.field])
  if (!applies(schema, c, fields)) return []
  const [list = "", flag = ""] = (from.unless ?? "").split(".")
  if (listOf(c[list]).some((i) => isFields(i) && i[flag] === true)) return []
  const value = c[writtenName(c, from.field, schema)]
  if (value === undefined || value === null) return from.usual ?? [textOf(schema.default)]
  if (isFields(value)) return Object.keys(value)
  if (!Array.isArray(value)) return [textOf(value)]
  return value.map((i: unknown) => (isFields(i) ? ((from.of ?? []).map((name) => textOf(i[name])).find(Boolean) ?? "") : textOf(i)))
}

// Some keys come from how a node is configured, as its kind says.
function configuredKeys(kind: Kind, c: Fields): string[] {
  const fields = (kind.config_schema as FieldSchema | undefined)?.properties ?? {}
  const has = (key: Schemas["NodeKey"]) => applies({ "x-with": key.with as FieldSchema["x-with"] }, c, fields)
  return (kind.keys ?? []).filter(has).flatMap((key) => (key.name === "*" ? (key.from ?? []).flatMap((from) => namedKeys(from, c, fields)) : [key.name]))
}

/** outputKeys are the keys that a node can put out, the most usual first. */
export function outputKeys(node: NodeDef, kinds: Kinds): string[] {
  const kind = kinds.get(node.kind)
  const own = kind?.keys?.some((k) => k.from || k.with) ? configuredKeys(kind, node.configurations) : (kind?.output_keys ?? ["result"])
  return unique([...own, ...(node.configurations.on_error === "continue" ? ["error"] : [])])
}

/** mainKey is the key that a connection means when it names none. */
export function mainKey(keys: string[], kind: Kind | undefined): string {
  if (keys.includes("result")) return "result"
  const other = kind?.key_aliases?.result
  return other && keys.includes(other) ? other : (keys[0] ?? "result")
}

/** keyOf is the key of a connection in the spelling of its node. */
export function keyOf(c: ConnectionDef, keys: string[], kind: Kind | undefined): string {
  if (keys.includes(c.key)) return c.key
  const other = kind?.key_aliases?.[c.key]
  return other && keys.includes(other) ? other : c.key
}

/** entryKey is the key that leads into the body of a loop, a split or a timeout, if the node has one. */
export function entryKey(keys: string[], kind: Kind | undefined): string | undefined {
  const entry = kind?.body?.entry
  return entry && keys.includes(entry) ? entry : undefined
}

/** Entries are the entry keys of nodes, by their ids. */
export type Entries = ReadonlyMap<string, { entry?: string }>

/** shownKeys are those that a card shows as ports while it is not chosen: what is connected, and what one usually connects. */
export function shownKeys(keys: string[], used: ReadonlySet<string>, editing: boolean): string[] {
  const usual = !editing ? [] : keys.length <= 3 ? keys : keys.includes("confirmed") ? ["confirmed", "rejected"] : keys.slice(0, 1)
  return unique([...keys.filter((k) => used.has(k) || usual.includes(k)), ...used])
}

/**
 * bodiesOf says of each node in which loop, split or timeout it runs: the innermost whose entry key leads to it and whose other keys do not.
 */
export function bodiesOf(definition: Definition, ports: Entries): Map<string, string> {
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
    const entry = ports.get(node.id)?.entry
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
