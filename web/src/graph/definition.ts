/** Definition is a workflow as far as it is drawn. It is read tolerantly: what is being typed is often not whole. */
export type Definition = { name: string; description: string; nodes: NodeDef[]; connections: ConnectionDef[]; notes: NoteDef[] }

export type Point = { x: number; y: number }

export type NodeDef = {
  id: string
  /** Where it stands in the list of the file. */
  index: number
  name: string
  description: string
  /** TYPE.SUBTYPE. As a file is read it may also be an older name of a kind, which withKinds replaces. */
  kind: string
  configurations: Record<string, unknown>
  attached: string[]
  position?: Point
}

export type ConnectionDef = { id: string; index: number; from: string; to: string; key: string; conversion: string }

/** NoteDef is a comment on the canvas. */
export type NoteDef = { id: string; index: number; text: string; position: Point; width?: number; height?: number }

type Fields = Record<string, unknown>

export const isFields = (v: unknown): v is Fields => typeof v === "object" && v !== null && !Array.isArray(v)
export const listOf = (v: unknown): unknown[] => (Array.isArray(v) ? v : [])
export const textOf = (v: unknown): string => (typeof v === "string" ? v : typeof v === "number" || typeof v === "boolean" ? String(v) : "")

// A field may be written in snake or in camel case.
const camel = (name: string) => name.replace(/_(\w)/g, (_, c: string) => c.toUpperCase())
const field = (of: Fields, name: string) => of[name] ?? of[camel(name)]

function pointOf(v: unknown): Point | undefined {
  if (!isFields(v)) return undefined
  const { x, y } = v
  return typeof x === "number" && typeof y === "number" && Number.isFinite(x) && Number.isFinite(y) ? { x, y } : undefined
}

function kindOf(node: Fields): string {
  const type = textOf(node.type).toUpperCase()
  const subtype = textOf(node.subtype).toUpperCase()
  return subtype ? `${type}.${subtype}` : type
}

// What has been read stays the same object for as long as it is the same in the file: who draws it sees at once that it has not changed.
const readNodes = new WeakMap<object, NodeDef>()
const readWires = new WeakMap<object, ConnectionDef>()

function nodeOf(n: Fields, id: string, index: number): NodeDef {
  const known = readNodes.get(n)
  if (known?.index === index) return known
  const configurations = isFields(n.configurations) ? n.configurations : {}
  const node = known ? { ...known, index } : { id, index, name: textOf(n.name) || id, description: textOf(n.description), kind: kindOf(n), configurations, attached: listOf(field(n, "attached_nodes")).map(textOf), position: pointOf(n.position) }
  readNodes.set(n, node)
  return node
}

function wireOf(c: Fields, wire: ConnectionDef): ConnectionDef {
  const known = readWires.get(c)
  if (known && known.id === wire.id && known.index === wire.index) return known
  readWires.set(c, wire)
  return wire
}

/** readDefinition reads what a file or the API says. Of nodes with the same id the first is drawn; validation tells of the others. */
export function readDefinition(value: unknown): Definition {
  const file = isFields(value) ? value : {}
  const metadata = isFields(file.metadata) ? file.metadata : {}
  const nodes: NodeDef[] = []
  const ids = new Set<string>()
  listOf(file.nodes).forEach((n, index) => {
    if (!isFields(n)) return
    const id = textOf(n.id)
    if (!id || ids.has(id)) return
    ids.add(id)
    nodes.push(nodeOf(n, id, index))
  })
  const connections: ConnectionDef[] = []
  const taken = new Set<string>()
  listOf(file.connections).forEach((c, index) => {
    if (!isFields(c)) return
    const from = textOf(field(c, "from_node"))
    const to = textOf(field(c, "to_node"))
    if (!ids.has(from) || !ids.has(to)) return
    const key = textOf(field(c, "output_key")) || "result"
    let id = textOf(c.id) || `${from}-${key}-${to}`
    while (taken.has(id)) id += "'"
    taken.add(id)
    connections.push(wireOf(c, { id, index, from, to, key, conversion: textOf(field(c, "conversion_function")) }))
  })
  const notes = listOf(file.notes).flatMap((n, index): NoteDef[] => {
    const position = isFields(n) ? pointOf(n.position) : undefined
    if (!isFields(n) || !position) return []
    return [{ id: textOf(n.id) || `note ${index + 1}`, index, text: textOf(n.text), position, width: Number(n.width) || undefined, height: Number(n.height) || undefined }]
  })
  return { name: textOf(metadata.name), description: textOf(metadata.description), nodes, connections, notes }
}

// What has been given its name stays the same object, too.
const named = new WeakMap<NodeDef, NodeDef>()

/** withKinds is a definition in which nodes have the names of their kinds instead of older ones. */
export function withKinds(definition: Definition, kinds: ReadonlyMap<string, { name: string; older_names?: string[] | null }>): Definition {
  if (definition.nodes.every((n) => kinds.has(n.kind))) return definition
  const older = new Map([...kinds.values()].flatMap((k) => (k.older_names ?? []).map((name) => [name, k.name] as const)))
  const nodes = definition.nodes.map((n) => {
    const kind = kinds.has(n.kind) ? undefined : older.get(n.kind)
    if (!kind) return n
    const known = named.get(n)
    if (known?.kind === kind) return known
    const node = { ...n, kind }
    named.set(n, node)
    return node
  })
  return nodes.every((n, i) => n === definition.nodes[i]) ? definition : { ...definition, nodes }
}
