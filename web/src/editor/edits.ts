import { isFields, listOf, type Point, textOf } from "@/graph/definition"
import type { Plain } from "./rewrite"

/**
 * The changes that the canvas makes. Each takes what the file says and returns what it says then; what is not concerned is the same object. The text is changed by `rewrite`.
 */
export type Fields = Record<string, Plain>
type File = Fields & { nodes?: Plain; connections?: Plain }

const file = (v: Plain): File => (isFields(v) ? v : {})
const nodesOf = (v: Plain) => listOf(file(v).nodes)
const wiresOf = (v: Plain) => listOf(file(v).connections)
export const idOf = (n: Plain) => (isFields(n) ? textOf(n.id) : "")
const end = (c: Plain, name: "from" | "to") => (isFields(c) ? textOf(c[`${name}_node`] ?? c[`${name}Node`]) : "")
const attachedOf = (n: Fields) => ("attachedNodes" in n ? "attachedNodes" : "attached_nodes")

/** newId makes an id from a name that no node has yet: if, if_2, if_3. */
export function newId(v: Plain, wanted: string, also: ReadonlySet<string> = new Set()): string {
  const base = wanted.toLowerCase().replace(/[^\p{L}\p{N}_]+/gu, "_").replace(/^_+|_+$/g, "") || "node"
  const taken = new Set(nodesOf(v).flatMap((n) => [idOf(n), isFields(n) ? textOf(n.name) : ""]))
  for (let i = 1; ; i++) {
    const id = i === 1 ? base : `${base}_${i}`
    if (!taken.has(id) && !also.has(id)) return id
  }
}

export function addNode(v: Plain, node: Fields): Plain {
  return { ...file(v), nodes: [...nodesOf(v), node] }
}

/** newNode is a node of a kind, as short as it can be. */
export function newNode(v: Plain, kind: string, more: Fields = {}): Fields {
  const [type, subtype] = kind.split(".") as [string, string]
  const short: Record<string, string> = { MANUAL: "start", IN_APP_APPROVAL: "approval", CRON: "schedule", ANTHROPIC_CLAUDE: "claude", OPENAI_CHATGPT: "chatgpt", GOOGLE_GEMINI: "gemini", MCP_AGENT: "agent", EMPTY: "step" }
  return { id: newId(v, short[subtype] ?? subtype), type, subtype, ...more }
}

export function setNode(v: Plain, id: string, change: (n: Fields) => Fields): Plain {
  return { ...file(v), nodes: nodesOf(v).map((n) => (isFields(n) && idOf(n) === id ? change(n) : n)) }
}

/** setField sets a field of a node; undefined takes it out. */
export function setField(v: Plain, id: string, name: string, value: Plain): Plain {
  return setNode(v, id, (n) => {
    const { [name]: _, ...rest } = n
    if (value === undefined) return rest
    return name in n ? { ...n, [name]: value } : ordered({ ...n, [name]: value })
  })
}

// A new field of a node stands where the format lists it.
const order = ["id", "name", "description", "type", "subtype", "configurations", "input_params", "output_params", "attached_nodes", "position"]
function ordered(n: Fields): Fields {
  const rank = (k: string) => (order.includes(k) ? order.indexOf(k) : order.length)
  const names = Object.keys(n)
  const last = names.pop()!
  const at = names.findLastIndex((k) => rank(k) < rank(last)) + 1
  names.splice(at, 0, last)
  return Object.fromEntries(names.map((k) => [k, n[k]]))
}

/** connect adds a connection, unless it is there. */
export function connect(v: Plain, from: string, key: string, to: string): Plain {
  const same = wiresOf(v).some((c) => end(c, "from") === from && end(c, "to") === to && isFields(c) && (textOf(c.output_key ?? c.outputKey) || "result") === key)
  if (same) return v
  return { ...file(v), connections: [...wiresOf(v), { from_node: from, to_node: to, ...(key === "result" ? {} : { output_key: key }) }] }
}

/** setWire changes a field of a connection, by its place in the list; undefined takes it out. */
export function setWire(v: Plain, index: number, name: "output_key" | "conversion_function", value: Plain): Plain {
  const other = name === "output_key" ? "outputKey" : "conversionFunction"
  return {
    ...file(v),
    connections: wiresOf(v).map((c, i) => {
      if (i !== index || !isFields(c)) return c
      const written = other in c ? other : name
      if (value !== undefined) return { ...c, [written]: value }
      const { [written]: _, ...rest } = c
      return rest
    }),
  }
}

export function attachTo(v: Plain, agent: string, node: string): Plain {
  return setNode(v, agent, (n) => {
    const name = attachedOf(n)
    const list = listOf(n[name])
    if (list.map(textOf).includes(node)) return n
    return name in n ? { ...n, [name]: [...list, node] } : ordered({ ...n, [name]: [node] })
  })
}

function detachAll(v: Plain, gone: (agent: string, node: string) => boolean): Plain {
  return {
    ...file(v),
    nodes: nodesOf(v).map((n) => {
      if (!isFields(n)) return n
      const name = attachedOf(n)
      const list = listOf(n[name])
      const rest = list.filter((a) => !gone(idOf(n), textOf(a)))
      if (rest.length === list.length) return n
      if (rest.length) return { ...n, [name]: rest }
      const { [name]: _, ...others } = n
      return others
    }),
  }
}

export const detach = (v: Plain, agent: string, node: string) => detachAll(v, (a, n) => a === agent && n === node)

/** remove takes out nodes and all that names them, connections by their place in the list, and notes. */
export function remove(v: Plain, nodes: ReadonlySet<string>, wires: ReadonlySet<number>, notes: ReadonlySet<number> = new Set()): Plain {
  const f = file(detachAll(v, (_, n) => nodes.has(n)))
  const next: File = { ...f, nodes: nodesOf(f).filter((n) => !nodes.has(idOf(n))) }
  if (Array.isArray(f.connections)) next.connections = f.connections.filter((c, i) => !wires.has(i) && !nodes.has(end(c, "from")) && !nodes.has(end(c, "to")))
  if (Array.isArray(f.triggers)) next.triggers = f.triggers.filter((t) => !nodes.has(textOf(t)))
  if (Array.isArray(f.notes) && notes.size) next.notes = f.notes.filter((_, i) => !notes.has(i))
  return next
}

/** move sets positions. */
export function move(v: Plain, to: ReadonlyMap<string, Point>): Plain {
  let next = v
  for (const [id, p] of to) next = setField(next, id, "position", p)
  return next
}

export function moveNotes(v: Plain, to: ReadonlyMap<number, Point>): Plain {
  return { ...file(v), notes: listOf(file(v).notes).map((n, i) => (isFields(n) && to.has(i) ? { ...n, position: to.get(i) } : n)) }
}

/** tidy forgets all positions: the layout is computed then. */
export function tidy(v: Plain): Plain {
  return {
    ...file(v),
    nodes: nodesOf(v).map((n) => {
      if (!isFields(n) || !("position" in n)) return n
      const { position: _, ...rest } = n
      return rest
    }),
  }
}

export function setMetadata(v: Plain, name: string, value: Plain): Plain {
  const f = file(v)
  const metadata = isFields(f.metadata) ? f.metadata : {}
  return "metadata" in f ? { ...f, metadata: { ...metadata, [name]: value } } : { metadata: { [name]: value }, ...f }
}

/** Clip is what was copied: nodes, and the connections among them. It is a piece of a file, so that it can be pasted as text, too. */
export type Clip = { nodes: Fields[]; connections: Fields[] }

export function copy(v: Plain, ids: ReadonlySet<string>): Clip {
  return {
    nodes: nodesOf(v).filter((n): n is Fields => isFields(n) && ids.has(idOf(n))),
    connections: wiresOf(v).filter((c): c is Fields => isFields(c) && ids.has(end(c, "from")) && ids.has(end(c, "to"))),
  }
}

/** asClip reads what somebody pastes: what was copied here or in another window, or nodes written by hand. */
export function asClip(value: Plain): Clip | undefined {
  const nodes = (Array.isArray(value) ? value : nodesOf(value)).filter((n): n is Fields => isFields(n) && !!idOf(n) && !!textOf(n.type))
  return nodes.length ? { nodes, connections: wiresOf(value).filter(isFields) } : undefined
}

/** paste adds what was copied under ids of their own, beside where it was; the new ids are told. */
export function paste(v: Plain, clip: Clip): { value: Plain; ids: Set<string> } {
  const names = new Map<string, string>()
  for (const n of clip.nodes) names.set(idOf(n), newId(v, idOf(n).replace(/_\d+$/, ""), new Set(names.values())))
  const renamed = (id: string) => names.get(id) ?? id
  const nodes = clip.nodes.map((n) => {
    const { name: _, position, ...rest } = n
    const field = attachedOf(n)
    const at = isFields(position) && typeof position.x === "number" && typeof position.y === "number" ? { position: { x: position.x + 40, y: position.y + 60 } } : {}
    const attached = listOf(n[field]).map(textOf).filter((a) => names.has(a))
    const next: Fields = { ...rest, id: renamed(idOf(n)), ...at }
    if (field in n) {
      if (attached.length) next[field] = attached.map(renamed)
      else delete next[field]
    }
    return next
  })
  const connections = clip.connections.flatMap((c) => {
    const [from, to] = [names.get(end(c, "from")), names.get(end(c, "to"))]
    if (!from || !to) return []
    const { id: _, fromNode: _f, toNode: _t, ...rest } = c
    return [{ ...rest, from_node: from, to_node: to }]
  })
  return { value: { ...file(v), nodes: [...nodesOf(v), ...nodes], connections: [...wiresOf(v), ...connections] }, ids: new Set(names.values()) }
}
