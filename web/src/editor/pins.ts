import type { ConnectionDef, Definition, NodeDef } from "@/graph/definition"

/** Pins are the data that stand for the outputs of nodes while another one is tried, as they were typed: by node and output key. */
export type Pins = Record<string, string>

/** Source is an output that leads to a node. */
export type Source = { id: string; node: NodeDef; key: string }

export function sourcesOf(definition: Definition, node: NodeDef, keyOf: (n: NodeDef, c: ConnectionDef) => string): Source[] {
  const list = new Map<string, Source>()
  for (const c of definition.connections) {
    const from = definition.nodes.find((n) => n.id === c.from)
    if (c.to !== node.id || !from) continue
    const key = keyOf(from, c)
    const id = JSON.stringify([from.id, key])
    list.set(id, { id, node: from, key })
  }
  return [...list.values()]
}

const nameOf = (workflow: string) => `tandem.pins.${workflow}`

/** readPins are those that were used last with this workflow, in this browser. */
export function readPins(workflow: string): Pins {
  try {
    const said: unknown = JSON.parse(localStorage.getItem(nameOf(workflow)) ?? "{}")
    return Object.fromEntries(Object.entries(said as object).filter((e): e is [string, string] => typeof e[1] === "string"))
  } catch {
    return {}
  }
}

/** renamePins takes the pins of a node along when it gets another id. */
export function renamePins(workflow: string, from: string, to: string) {
  const pins = Object.entries(readPins(workflow)).map(([id, text]) => {
    const [node, key] = JSON.parse(id) as [string, string]
    return [node === from ? JSON.stringify([to, key]) : id, text]
  })
  if (pins.length) keepPins(workflow, Object.fromEntries(pins) as Pins)
}

export function keepPins(workflow: string, pins: Pins) {
  try {
    localStorage.setItem(nameOf(workflow), JSON.stringify(pins))
  } catch {
    // Without room they are typed again next time.
  }
}
