import { isFields, listOf, textOf } from "@/graph/definition"
import type { Mark } from "@/graph"

/** FieldChange is one field that differs; what is undefined was not there. */
export type FieldChange = { path: string; before: unknown; after: unknown }

export type Changes = {
  /** Everything that is in either revision, as one file that can be drawn. */
  both: Record<string, unknown>
  nodes: Map<string, { name: string; mark: Mark; fields: FieldChange[] }>
  /** By the id that the connection has in `both`. */
  wires: Map<string, { from: string; to: string; mark: Mark; fields: FieldChange[] }>
  /** What belongs to no node: the name, settings, triggers, notes. */
  other: FieldChange[]
  /** How many nodes only stand elsewhere, which changes nothing in a run. */
  moved: number
}

type Fields = Record<string, unknown>

const same = (a: unknown, b: unknown) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b))

// The order of fields says nothing.
function sorted(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(sorted)
  if (!isFields(v)) return v
  return Object.fromEntries(Object.keys(v).sort().map((k) => [k, sorted(v[k])]))
}

const empty = (v: unknown) => v === undefined || v === null || v === "" || (Array.isArray(v) && v.length === 0) || (isFields(v) && Object.keys(v).length === 0)

/** fieldChanges lists what differs between two values, as deep as both are objects. */
export function fieldChanges(before: unknown, after: unknown, path = ""): FieldChange[] {
  if (same(before, after) || (empty(before) && empty(after))) return []
  if (!isFields(before) || !isFields(after)) return [{ path, before, after }]
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.flatMap((n) => fieldChanges(before[n], after[n], path ? `${path}.${n}` : n))
}

const idOf = (v: unknown) => (isFields(v) ? textOf(v.id) : "")
const nodesOf = (file: Fields) => listOf(file.nodes).filter(isFields).filter((n) => idOf(n))

type Wire = { from: string; to: string; key: string; fields: Fields }
const wiresOf = (file: Fields): Wire[] =>
  listOf(file.connections)
    .filter(isFields)
    .map((c) => ({ from: textOf(c.from_node ?? c.fromNode), to: textOf(c.to_node ?? c.toNode), key: textOf(c.output_key ?? c.outputKey) || "result", fields: c }))

// What a connection says besides its ends.
const said = ({ fields: { id: _i, from_node: _f, fromNode: _g, to_node: _t, toNode: _u, output_key: _o, outputKey: _p, conversionFunction, conversion_function = conversionFunction, ...rest }, key }: Wire): Fields => ({ output_key: key, conversion_function, ...rest })

/** changesOf says how two revisions differ. A node is the same one as long as it has its id, a connection as long as it leads from the same output to the same node. */
export function changesOf(before: Fields, after: Fields): Changes {
  const nodes: Changes["nodes"] = new Map()
  const old = new Map(nodesOf(before).map((n) => [idOf(n), n]))
  const now = new Map(nodesOf(after).map((n) => [idOf(n), n]))
  const nameOf = (n: Fields) => textOf(n.name) || idOf(n)
  let moved = 0
  for (const [id, n] of now) {
    const o = old.get(id)
    const { position: here, ...rest } = n
    if (!o) {
      nodes.set(id, { name: nameOf(n), mark: "added", fields: fieldChanges({}, rest) })
      continue
    }
    const { position: there, ...was } = o
    const fields = fieldChanges(was, rest)
    if (fields.length) nodes.set(id, { name: nameOf(n), mark: "changed", fields })
    if (!same(here, there)) moved++
  }
  const gone = [...old].filter(([id]) => !now.has(id)).map(([, n]) => n)
  for (const n of gone) nodes.set(idOf(n), { name: nameOf(n), mark: "removed", fields: fieldChanges(without(n, "position"), {}) })

  const wires: Changes["wires"] = new Map()
  const left = wiresOf(before)
  const connections: Fields[] = []
  const add = (w: Wire, mark?: Mark, fields: FieldChange[] = []) => {
    const id = `wire-${connections.length}`
    connections.push({ ...w.fields, id })
    if (mark) wires.set(id, { from: w.from, to: w.to, mark, fields })
  }
  for (const w of wiresOf(after)) {
    const at = left.findIndex((o) => o.from === w.from && o.to === w.to && o.key === w.key)
    if (at < 0) {
      add(w, "added", fieldChanges({}, said(w)))
      continue
    }
    const [o] = left.splice(at, 1)
    const fields = fieldChanges(said(o!), said(w))
    add(w, fields.length ? "changed" : undefined, fields)
  }
  for (const w of left) add(w, "removed", fieldChanges(said(w), {}))

  const rest = (f: Fields) => without(without(f, "nodes"), "connections")
  return { both: { ...after, nodes: [...now.values(), ...gone], connections }, nodes, wires, other: fieldChanges(rest(before), rest(after)), moved }
}

function without(of: Fields, name: string): Fields {
  const { [name]: _, ...rest } = of
  return rest
}
