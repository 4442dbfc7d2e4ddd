import dagre from "@dagrejs/dagre"
import type { Definition, Point } from "./definition"
import { bodiesOf, type Entries } from "./keys"
import { card, cardHeight, frame, small } from "./sizes"

export type Box = Point & { width: number; height: number }

/** Layout is where everything stands: cards, frames (the boxes of loops are around their body) and what is attached, all from the same corner. */
export type Layout = {
  boxes: Map<string, Box>
  parents: Map<string, string>
  attachedTo: Map<string, string>
  /** Where nodes stand, or would if the file said nothing of it. */
  own: Map<string, Point>
}

type Size = { width: number; height: number }

/** attachments says which node hangs below which agent; the first one that names it has it. */
export function attachments(definition: Definition): Map<string, string> {
  const ids = new Map(definition.nodes.map((n) => [n.id, n]))
  const to = new Map<string, string>()
  for (const n of definition.nodes) for (const a of n.attached) if (ids.has(a) && a !== n.id && !to.has(a) && ids.get(a)!.attached.length === 0) to.set(a, n.id)
  return to
}

/** Structure is what a layout depends on, as a text: while it stays the same, nothing has to be laid out anew. */
export function structureOf(definition: Definition, ports: ReadonlyMap<string, { shown: string[] }>): string {
  return JSON.stringify([definition.nodes.map((n) => [n.id, n.kind, n.attached, ports.get(n.id)?.shown]), definition.connections.map((c) => [c.from, c.key, c.to])])
}

/** placesOf are the positions that the file has. */
export function placesOf(definition: Definition): string {
  return JSON.stringify(definition.nodes.map((n) => n.position ?? 0))
}

/** From this size on a change does not move what is there: to lay out 500 nodes takes longer than a change may. */
export const large = 120

/** addTo lays out what is new among many nodes: behind the node that leads to it, in the next free place. */
export function addTo(before: Layout, definition: Definition, ports: Entries): Layout {
  const parents = bodiesOf(definition, ports)
  const attachedTo = attachments(definition)
  const boxes = new Map<string, Box>()
  const taken: Box[] = []
  const own = new Map(before.own)
  for (const n of definition.nodes) {
    const b = before.boxes.get(n.id)
    if (b && (!attachedTo.has(n.id) || before.attachedTo.has(n.id))) boxes.set(n.id, { ...b, ...(n.position ?? before.own.get(n.id)) })
    else if (n.position) boxes.set(n.id, { ...n.position, width: card.width, height: card.height })
  }
  const loops = new Set(definition.nodes.filter((n) => ports.get(n.id)?.entry).map((n) => n.id))
  for (const [id, b] of boxes) if (!loops.has(id)) taken.push(b)
  for (const n of definition.nodes) {
    if (boxes.has(n.id) || attachedTo.has(n.id)) continue
    const from = boxes.get(definition.connections.find((c) => c.to === n.id && boxes.has(c.from))?.from ?? "")
    const size = loops.has(n.id) ? { width: frame.width, height: frame.height } : { width: card.width, height: card.height }
    const at: Box = { x: from ? from.x + from.width + 76 : 0, y: from ? from.y : Math.max(0, ...taken.map((t) => t.y + t.height + 34)), ...size }
    while (taken.some((t) => t.x < at.x + at.width && at.x < t.x + t.width && t.y < at.y + at.height && at.y < t.y + t.height)) at.y += card.height + 34
    boxes.set(n.id, at)
    own.set(n.id, { x: at.x, y: at.y })
    taken.push(at)
  }
  hangBelow(definition, boxes, attachedTo)
  surround(definition, boxes, parents, loops)
  return { boxes, parents, attachedTo, own }
}

const rowWidth = (n: number) => n * small.width + (n - 1) * small.gap
const below = 34

/**
 * layOut computes a place for every node, from left to right, each body in its frame. Nodes that have a position in the file keep it; frames are drawn around
 * where their bodies are then.
 */
export function layOut(definition: Definition, ports: ReadonlyMap<string, { shown: string[]; entry?: string }>): Layout {
  const heightOf = (id: string) => cardHeight(ports.get(id)?.shown ?? [])
  const parents = bodiesOf(definition, ports)
  const attachedTo = attachments(definition)
  const hanging = new Map<string, string[]>()
  for (const [a, agent] of attachedTo) hanging.set(agent, [...(hanging.get(agent) ?? []), a])
  const loops = new Set(definition.nodes.filter((n) => ports.get(n.id)?.entry).map((n) => n.id))
  const members = new Map<string, string[]>()
  for (const n of definition.nodes) {
    if (attachedTo.has(n.id)) continue
    const p = parents.get(n.id) ?? ""
    members.set(p, [...(members.get(p) ?? []), n.id])
  }
  const boxes = new Map<string, Box>()

  // Where a node stands among those of its scope: the node itself, or the frame that it is in there.
  const standIn = (id: string, scope: string): string | undefined => {
    for (let at: string | undefined = id; at !== undefined; at = parents.get(at)) if ((parents.get(at) ?? "") === scope) return at
    return undefined
  }

  // size is that of the block a node takes: with what hangs below it, or with its body.
  const place = (scope: string): Size => {
    const ids = members.get(scope) ?? []
    const g = new dagre.graphlib.Graph({ multigraph: false })
    g.setGraph({ rankdir: "LR", nodesep: 34, ranksep: 76, marginx: 0, marginy: 0 })
    g.setDefaultEdgeLabel(() => ({}))
    const inner = new Map<string, Size>()
    for (const id of ids) {
      let size: Size = { width: card.width, height: heightOf(id) }
      if (loops.has(id)) {
        const body = place(id)
        inner.set(id, body)
        size = frameSize(body)
      } else {
        const n = hanging.get(id)?.length ?? 0
        if (n) size = { width: Math.max(card.width, rowWidth(n)), height: size.height + below + small.height }
      }
      g.setNode(id, { ...size })
    }
    for (const c of definition.connections) {
      const a = standIn(c.from, scope)
      const b = standIn(c.to, scope)
      if (a !== undefined && b !== undefined && a !== b && c.to !== scope && c.from !== scope) g.setEdge(a, b)
    }
    if (ids.length) dagre.layout(g, { constraints: ids.length > large ? [] : branchOrder(definition, ports, new Set(ids)) })
    let width = 0
    let height = 0
    for (const id of ids) {
      const n = g.node(id) as unknown as { x: number; y: number; width: number; height: number }
      boxes.set(id, { x: n.x - n.width / 2, y: n.y - n.height / 2, width: n.width, height: n.height })
      width = Math.max(width, n.x + n.width / 2)
      height = Math.max(height, n.y + n.height / 2)
    }
    return { width, height }
  }
  place("")

  // From the corners of the scopes to the one corner of the canvas, outer scopes first.
  const settle = (scope: string, dx: number, dy: number) => {
    for (const id of members.get(scope) ?? []) {
      const b = boxes.get(id)!
      b.x += dx
      b.y += dy
      if (loops.has(id)) settle(id, b.x + frame.left, b.y + frame.header + frame.top)
      else if (hanging.has(id)) {
        // The card is centred above what hangs below it.
        b.x += (b.width - card.width) / 2
        b.width = card.width
        b.height = heightOf(id)
      }
    }
  }
  settle("", 0, 0)

  const own = new Map([...boxes].map(([id, b]) => [id, { x: b.x, y: b.y }]))
  for (const n of definition.nodes) {
    const b = boxes.get(n.id)
    if (!b || !n.position) continue
    if (loops.has(n.id) && members.has(n.id)) continue
    b.x = n.position.x
    b.y = n.position.y
  }
  hangBelow(definition, boxes, attachedTo)
  surround(definition, boxes, parents, loops)
  return { boxes, parents, attachedTo, own }
}

// What follows the ports of a card stands in their order, where it follows nothing else.
function branchOrder(definition: Definition, ports: ReadonlyMap<string, { shown: string[] }>, among: ReadonlySet<string>): { left: string; right: string }[] {
  const incoming = new Map<string, number>()
  for (const c of definition.connections) incoming.set(c.to, (incoming.get(c.to) ?? 0) + 1)
  const branches = new Map<string, { to: string; at: number }[]>()
  for (const c of definition.connections) {
    if (!among.has(c.from) || !among.has(c.to) || incoming.get(c.to) !== 1) continue
    branches.set(c.from, [...(branches.get(c.from) ?? []), { to: c.to, at: ports.get(c.from)?.shown.indexOf(c.key) ?? 0 }])
  }
  return [...branches.values()].flatMap((list) => {
    list.sort((a, b) => a.at - b.at)
    return list.slice(1).map((b, i) => ({ left: list[i]!.to, right: b.to }))
  })
}

function frameSize(body: Size): Size {
  if (!body.width) return { width: frame.width, height: frame.height }
  return { width: Math.max(frame.width, frame.left + body.width + frame.right), height: frame.header + frame.top + body.height + frame.bottom }
}

/** hangBelow puts what is attached below its agent, in one row, unless the file says where it is. */
export function hangBelow(definition: Definition, boxes: Map<string, Box>, attachedTo: Map<string, string>) {
  const rows = new Map<string, string[]>()
  for (const n of definition.nodes) {
    const agent = attachedTo.get(n.id)
    if (agent === undefined) continue
    if (n.position) boxes.set(n.id, { ...n.position, width: small.width, height: small.height })
    else rows.set(agent, [...(rows.get(agent) ?? []), n.id])
  }
  for (const [agent, ids] of rows) {
    const b = boxes.get(agent)
    if (!b) continue
    const left = b.x + b.width / 2 - rowWidth(ids.length) / 2
    ids.forEach((id, i) => boxes.set(id, { x: left + i * (small.width + small.gap), y: b.y + b.height + below, width: small.width, height: small.height }))
  }
}

/** surround draws the frames around where their bodies are, the innermost first. */
export function surround(definition: Definition, boxes: Map<string, Box>, parents: Map<string, string>, loops: ReadonlySet<string>) {
  const depth = (id: string) => {
    let d = 0
    for (let p = parents.get(id); p !== undefined; p = parents.get(p)) d++
    return d
  }
  const ordered = definition.nodes.filter((n) => loops.has(n.id)).map((n) => ({ id: n.id, d: depth(n.id) }))
  ordered.sort((a, b) => b.d - a.d)
  for (const { id } of ordered) {
    const body = [...parents].filter(([, p]) => p === id).flatMap(([m]) => boxes.get(m) ?? [])
    const own = boxes.get(id)
    if (!own || body.length === 0) continue
    const x = Math.min(...body.map((b) => b.x)) - frame.left
    const y = Math.min(...body.map((b) => b.y)) - frame.header - frame.top
    const right = Math.max(...body.map((b) => b.x + b.width)) + frame.right
    const bottom = Math.max(...body.map((b) => b.y + b.height)) + frame.bottom
    boxes.set(id, { x, y, width: Math.max(frame.width, right - x), height: bottom - y })
  }
}
