import { type Edge, type Node, type NodeHandle, Position } from "@xyflow/react"
import type { Schemas } from "@/api/client"
import type { Definition, NodeDef } from "./definition"
import { gist } from "./gist"
import { entryKey, type Kinds, keyOf, outputKeys, shownKeys } from "./keys"
import type { Box, Layout } from "./layout"
import { card, cardHeight, frame, frameExit, portTop, small } from "./sizes"

/** NodeState is what an execution says of a node: its status, and a word beside it such as how long it took or how often it ran. */
export type NodeState = { status: string; note?: string }
/** Mark is what became of a node or a connection from one revision to another. */
export type Mark = "added" | "removed" | "changed"
export type Marks = { nodes: ReadonlyMap<string, Mark>; wires: ReadonlyMap<string, Mark> }
export type NodeProblem = { severity: string; message: string }

export type CardData = {
  node: NodeDef
  /** What the kind is called, in the reader's language. */
  title: string
  gist: string
  ports: string[]
  state?: NodeState
  problems?: NodeProblem[]
  mark?: Mark
  editing: boolean
  /** It hangs below an agent. */
  hangs: boolean
  takesInput: boolean
  /** It may have tools and memories. */
  agent: boolean
  /** It may hang below an agent. */
  attachable: boolean
}
export type FrameData = CardData & { entry: string; empty: boolean }
export type NoteData = { text: string; editing: boolean }

export type CardNode = Node<CardData, "card">
export type FrameNode = Node<FrameData, "frame">
export type NoteNode = Node<NoteData, "note">
export type FlowNode = CardNode | FrameNode | NoteNode
export type FlowEdge = Edge<{ conversion: string; muted: boolean; dashed: boolean; mark?: Mark }, "wire">

export const input = "in"
export const back = "back"
export const attach = "attach"
export const hang = "hang"
export const portId = (key: string) => `key:${key}`
export const keyOfPort = (id: string | null | undefined) => (id?.startsWith("key:") ? id.slice(4) : undefined)

export type Drawing = {
  definition: Definition
  kinds: Kinds
  layout: Layout
  states?: Readonly<Record<string, NodeState>>
  problems?: ReadonlyMap<string, NodeProblem[]>
  marks?: Marks
  editing: boolean
  /** Chosen cards show all of their ports. */
  chosen: ReadonlySet<string>
  language: "en" | "zh"
  labelOf: (d: CardData) => string
}

/** NodePorts are the ports of a node: those it is drawn with while it is not chosen, all that it has, those with connections, and the one that leads into its body. */
export type NodePorts = { shown: string[]; all: string[]; used: string[]; entry?: string; kind?: Schemas["NodeKind"] }

/** portsOf are the ports of every node. */
export function portsOf(definition: Definition, kinds: Kinds, editing: boolean): Map<string, NodePorts> {
  const used = new Map<string, Set<string>>()
  const keys = new Map(definition.nodes.map((n) => [n.id, outputKeys(n, kinds)]))
  const kindOf = new Map(definition.nodes.map((n) => [n.id, kinds.get(n.kind)]))
  for (const c of definition.connections) {
    const set = used.get(c.from) ?? new Set()
    set.add(keyOf(c, keys.get(c.from) ?? [], kindOf.get(c.from)))
    used.set(c.from, set)
  }
  const none = new Set<string>()
  return new Map(
    definition.nodes.map((n) => {
      const all = keys.get(n.id)!
      const shown = shownKeys(all, used.get(n.id) ?? none, editing)
      const kind = kindOf.get(n.id)
      return [n.id, { shown, all: [...new Set([...all, ...shown])], used: [...(used.get(n.id) ?? [])], entry: entryKey(all, kind), kind }]
    }),
  )
}

const dot = 10
const handle = (type: "source" | "target", id: string, position: Position, x: number, y: number): NodeHandle => ({ type, id, position, x: x - dot / 2, y: y - dot / 2, width: dot, height: dot })

function cardHandles(d: CardData, width: number, height: number): NodeHandle[] {
  const list = d.ports.map((key, i) => handle("source", portId(key), Position.Right, width, portTop(i, d.ports)))
  if (d.takesInput) list.push(handle("target", input, Position.Left, 0, card.height / 2))
  if (d.hangs || (d.attachable && d.editing)) list.push(handle("target", hang, Position.Top, width / 2, 0))
  if (d.agent) list.push(handle("source", attach, Position.Bottom, width / 2, height))
  return list
}

function frameHandles(d: FrameData, box: Box): NodeHandle[] {
  const exits = d.ports.filter((k) => k !== d.entry)
  return [
    handle("target", input, Position.Left, 0, frame.header / 2),
    handle("source", portId(d.entry), Position.Right, 14, frame.header + (box.height - frame.header) / 2),
    handle("target", back, Position.Left, box.width - 14, frame.header + (box.height - frame.header) / 2),
    ...exits.map((key, i) => handle("source", portId(key), Position.Right, box.width, frameExit(i, exits.length))),
  ]
}

export type Ports = ReturnType<typeof portsOf>

/** drawNodes makes the nodes that xyflow shows. What has not changed is handed on as the very same object, so that it is not drawn again. */
export function drawNodes(d: Drawing, ports: Ports, before: ReadonlyMap<string, FlowNode>): FlowNode[] {
  const { definition, kinds, layout, editing } = d
  const bodies = new Set(layout.parents.values())
  const incoming = new Set(definition.connections.map((c) => c.to))
  const nodes: FlowNode[] = []
  for (const node of definition.nodes) {
    const box = layout.boxes.get(node.id)
    if (!box) continue
    const kind = kinds.get(node.kind)
    const chosen = d.chosen.has(node.id)
    const { shown, all, used, entry } = ports.get(node.id)!
    const hangs = layout.attachedTo.has(node.id)
    const data: CardData = {
      node,
      title: kind?.title[d.language] || node.kind,
      gist: gist(node),
      ports: hangs ? used : editing && (chosen || entry) ? all : shown,
      state: d.states?.[node.id],
      problems: d.problems?.get(node.id),
      mark: d.marks?.nodes.get(node.id),
      editing,
      hangs,
      // What should have no input shows one all the same if a connection leads to it.
      takesInput: incoming.has(node.id) || (!hangs && !node.kind.startsWith("TRIGGER.")),
      agent: node.kind.startsWith("AI_AGENT.") && (editing || node.attached.length > 0),
      attachable: /^(TOOL|MEMORY)\./.test(node.kind) && !incoming.has(node.id) && used.length === 0,
    }
    const common = { id: node.id, position: { x: box.x, y: box.y }, selected: chosen, ariaLabel: d.labelOf(data), focusable: true }
    let drawn: FlowNode
    if (entry) {
      const full: FrameData = { ...data, entry, empty: !bodies.has(node.id) }
      drawn = { ...common, type: "frame", data: full, ...sized(box.width, box.height), zIndex: -1000 + depthOf(node.id, layout), handles: frameHandles(full, box), dragHandle: ".frame-head", style: { pointerEvents: "none" } }
    } else {
      const width = hangs ? small.width : card.width
      const height = hangs ? small.height : cardHeight(data.ports)
      drawn = { ...common, type: "card", data, ...sized(width, height), zIndex: chosen ? 10 : 1, handles: cardHandles(data, width, height) }
    }
    nodes.push(same(before.get(node.id), drawn))
  }
  for (const note of definition.notes) {
    const drawn: NoteNode = {
      id: noteId(note.id),
      type: "note",
      position: note.position,
      selected: d.chosen.has(noteId(note.id)),
      data: { text: note.text, editing },
      ...sized(note.width ?? 220, note.height ?? 96),
      zIndex: -2000,
      ariaLabel: note.text.slice(0, 200),
    }
    nodes.push(same(before.get(drawn.id), drawn))
  }
  return nodes
}

// What is not in view is never measured by the browser; it is known all the same.
const sized = (width: number, height: number) => ({ width, height, measured: { width, height } })

export const attachedId = (agent: string, attached: string) => `attached:${JSON.stringify([agent, attached])}`
export const noteId = (id: string) => `note:${id}`

function depthOf(id: string, layout: Layout): number {
  let depth = 0
  for (let p = layout.parents.get(id); p !== undefined; p = layout.parents.get(p)) depth++
  return depth
}

type Wiring = Pick<Drawing, "definition" | "states" | "marks" | "editing"> & { layout: Pick<Layout, "parents" | "attachedTo"> }

/** drawWires makes the connections that xyflow shows, and those between agents and what hangs below them. */
export function drawWires({ definition, layout, states, marks, editing }: Wiring, ports: Ports, chosen: ReadonlySet<string>, before?: ReadonlyMap<string, FlowEdge>): FlowEdge[] {
  const edges: FlowEdge[] = definition.connections.map((c) => {
    // A connection from a body back to its loop ends at the inner right edge of the frame.
    const inward = isInside(c.from, c.to, layout.parents)
    return sameWire(before, {
      id: c.id,
      type: "wire",
      source: c.from,
      target: c.to,
      sourceHandle: portId(keyOf(c, ports.get(c.from)?.all ?? [], ports.get(c.from)?.kind)),
      targetHandle: inward ? back : input,
      data: { conversion: c.conversion, muted: !!states && (!states[c.to] || states[c.to]!.status === "SKIPPED" || !states[c.from]), dashed: false, mark: marks?.wires.get(c.id) },
      focusable: editing,
      selectable: editing,
      selected: chosen.has(c.id),
      zIndex: 0,
    })
  })
  for (const [a, agent] of layout.attachedTo) {
    const id = attachedId(agent, a)
    edges.push(sameWire(before, { id, selected: chosen.has(id), type: "wire", source: agent, target: a, sourceHandle: attach, targetHandle: hang, data: { conversion: "", muted: false, dashed: true }, focusable: editing, selectable: editing, zIndex: 0 }))
  }
  return edges
}

// What is drawn from it, as a connection that has not changed, is the very same object.
function sameWire(before: ReadonlyMap<string, FlowEdge> | undefined, now: FlowEdge): FlowEdge {
  const old = before?.get(now.id)
  if (!old) return now
  const { data: a, ...x } = old
  const { data: b, ...y } = now
  return alike(x, y) && alike(a!, b!) ? old : now
}

function isInside(id: string, loop: string, parents: Map<string, string>): boolean {
  for (let p = parents.get(id); p !== undefined; p = parents.get(p)) if (p === loop) return true
  return false
}

// Most often nothing but the choice has changed: then every part is the very same, or a short list.
function alike(a: object, b: object): boolean {
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const part = (p: unknown, q: unknown) => p === q || (Array.isArray(p) && Array.isArray(q) && p.length === q.length && p.every((v, i) => v === q[i]))
  return Object.keys(y).every((k) => (k === "node" ? sameNode(x[k] as NodeDef, y[k] as NodeDef) : part(x[k], y[k])))
}

// Where a node stands in the file does not show.
function sameNode(a: NodeDef, b: NodeDef): boolean {
  if (a === b) return true
  return (Object.keys(b) as (keyof NodeDef)[]).every((k) => k === "index" || a[k] === b[k])
}

// The data of nodes is small and plain; what a memoised card gets must be the same object as long as it says the same.
function same(before: FlowNode | undefined, now: FlowNode): FlowNode {
  if (!before) return now
  const data = alike(before.data, now.data) || JSON.stringify(before.data) === JSON.stringify(now.data) ? before.data : now.data
  const kept = { ...now, data } as FlowNode
  const equal =
    data === before.data && before.type === now.type && before.position.x === now.position.x && before.position.y === now.position.y && before.width === now.width &&
    before.height === now.height && before.selected === now.selected && before.zIndex === now.zIndex && before.ariaLabel === now.ariaLabel
  return equal ? before : kept
}
