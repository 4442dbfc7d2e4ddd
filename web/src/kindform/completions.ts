import { asSchema, type FieldSchema, isObject, type NodeKind, typesOf, type Values } from "./schema"

/** Completion is a value that a placeholder or an expression can read. */
export type Completion = {
  /** As it is written, without brackets: start.outputs.name, or input.total in an expression. */
  path: string
  /** text, number, yes/no, list, object or any: a word of JSON Schema, empty if nobody knows. */
  type: string
  /** What it was the last time. */
  value?: unknown
  /** Where it comes from: the name of a node, or what it belongs to. */
  from: string
  meaning?: { en: string; zh: string }
  /** Where it can be written. */
  in: "placeholder" | "expression" | "both"
}

export type DefinitionNode = { id: string; name?: string; type?: string; subtype?: string; configurations?: Values | null; input_params?: Values | null; output_params?: Values | null; attached_nodes?: string[] | null }
export type DefinitionConnection = { from_node?: string; to_node?: string; fromNode?: string; toNode?: string; output_key?: string; outputKey?: string }
export type Definition = { nodes?: DefinitionNode[] | null; connections?: DefinitionConnection[] | null }

/** LastExecution is what is needed of GET /executions/{id}: what each node was given and put out. */
export type LastExecution = { node_executions?: Record<string, { input_data?: unknown; output_data?: Record<string, unknown> } | undefined> | null; trigger_info?: unknown }

const perNode = 150
const depth = 4

const fromOf = (c: DefinitionConnection) => c.from_node ?? c.fromNode ?? ""
const toOf = (c: DefinitionConnection) => c.to_node ?? c.toNode ?? ""
const keyOf = (c: DefinitionConnection) => c.output_key ?? c.outputKey ?? "result"

// A kind is TYPE.SUBTYPE, however the node spells it, or a name of older files.
const writtenKind = (n: DefinitionNode) => (n.subtype ? `${n.type ?? ""}.${n.subtype}` : (n.type ?? "")).toUpperCase()

class Graph {
  readonly nodes: Map<string, DefinitionNode>
  private readonly kinds: Map<string, NodeKind>
  private readonly into = new Map<string, DefinitionConnection[]>()
  private readonly out = new Map<string, DefinitionConnection[]>()
  constructor(definition: Definition, kinds: NodeKind[]) {
    this.kinds = new Map(kinds.flatMap((k) => [k.name, ...(k.older_names ?? [])].map((name) => [name, k])))
    this.nodes = new Map((definition.nodes ?? []).filter((n) => n && n.id).map((n) => [n.id, n]))
    for (const c of definition.connections ?? []) {
      if (!c || !this.nodes.has(fromOf(c)) || !this.nodes.has(toOf(c))) continue
      this.into.set(toOf(c), [...(this.into.get(toOf(c)) ?? []), c])
      this.out.set(fromOf(c), [...(this.out.get(fromOf(c)) ?? []), c])
    }
  }
  kindOf(n: DefinitionNode): NodeKind | undefined {
    return this.kinds.get(writtenKind(n))
  }
  isTrigger(n: DefinitionNode): boolean {
    return (this.kindOf(n)?.name ?? writtenKind(n)).startsWith("TRIGGER.")
  }
  /** reached are the nodes behind a node, or behind some of its keys. */
  reached(id: string, key?: string): Set<string> {
    const seen = new Set<string>()
    const queue = (this.out.get(id) ?? []).filter((c) => !key || key === keyOf(c)).map(toOf)
    while (queue.length) {
      const n = queue.pop()!
      if (seen.has(n) || n === id) continue
      seen.add(n)
      queue.push(...(this.out.get(n) ?? []).map(toOf))
    }
    return seen
  }
  private isBack(c: DefinitionConnection): boolean {
    const target = this.nodes.get(toOf(c))!
    const body = this.kindOf(target)?.body
    return !!body && this.reached(target.id, body.entry).has(fromOf(c))
  }
  /** before are the nodes that run before a node, the nearest first; what an attached node can read is what its agent can. */
  before(id: string): DefinitionNode[] {
    const agent = [...this.nodes.values()].find((n) => n.attached_nodes?.includes(id))
    const seen = new Set<string>([id])
    const out: DefinitionNode[] = []
    let level = [agent?.id ?? id]
    while (level.length) {
      const next: string[] = []
      for (const n of level)
        for (const c of this.into.get(n) ?? []) {
          const from = fromOf(c)
          if (seen.has(from) || this.isBack(c)) continue
          seen.add(from)
          out.push(this.nodes.get(from)!)
          next.push(from)
        }
      level = next
    }
    return out
  }
  /** sources are the connections that bring the input of a node. */
  sources(id: string): DefinitionConnection[] {
    return (this.into.get(id) ?? []).filter((c) => !this.isBack(c))
  }
  /** loops are the loops whose body a node is in, the innermost first. */
  loops(id: string): DefinitionNode[] {
    return this.before(id).filter((n) => {
      const body = this.kindOf(n)?.body
      return body && !body.once && this.reached(n.id, body.entry).has(id)
    })
  }
}

/** refOf is how a node is named in placeholders: by its id if people can read it, else by its name. */
export function refOf(n: DefinitionNode): string {
  return n.name && !/^[A-Za-z_]\w{0,39}$/.test(n.id) ? n.name : n.id
}

/** step adds a key to a path. */
export function step(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`
  return /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key) ? (path ? `${path}.${key}` : key) : `${path}[${JSON.stringify(key)}]`
}

export function typeOf(value: unknown): string {
  if (value === null || value === undefined) return ""
  if (Array.isArray(value)) return "array"
  return typeof value
}

const isBlob = (v: unknown) => isObject(v) && typeof v.$blob === "string"

type Collect = (c: Omit<Completion, "from" | "in">) => void

/** fromValue collects what a value has in it: fields, the first element of lists, as deep as people read. */
function fromValue(path: string, value: unknown, add: Collect, level = 0) {
  if (isBlob(value)) return add({ path, type: "" })
  add({ path, type: typeOf(value), value })
  if (level >= depth) return
  if (Array.isArray(value)) {
    if (value.length > 0) fromValue(step(path, 0), value[0], add, level + 1)
  } else if (isObject(value)) for (const [k, v] of Object.entries(value)) fromValue(step(path, k), v, add, level + 1)
}

/** fromSchema collects what a JSON Schema says that a value has. */
function fromSchema(path: string, schema: FieldSchema, add: Collect, level = 0) {
  for (const [k, s] of Object.entries(schema.properties ?? {})) {
    const sub = asSchema(s)
    const words = sub.title ?? sub.description
    add({ path: step(path, k), type: typesOf(sub)[0] ?? "", meaning: words ? { en: words, zh: sub["x-description-zh"] ?? words } : undefined })
    if (level >= depth) continue
    fromSchema(step(path, k), sub, add, level + 1)
    if (sub.items) fromSchema(step(step(path, k), 0), asSchema(sub.items), add, level + 1)
  }
}

/** mainKey is the key whose payload `outputs` means. */
const mainKey = (kind: NodeKind | undefined) => (kind?.output_keys?.includes("result") ? "result" : (kind?.key_aliases?.result ?? kind?.output_keys?.[0] ?? "result"))

/** payloadOf is what a node put out the last time under a key, else under its main key, else under any. */
function payloadOf(execution: LastExecution | undefined, id: string, kind: NodeKind | undefined, key?: string): unknown {
  const data = execution?.node_executions?.[id]?.output_data
  if (!data) return undefined
  if (key !== undefined && key in data) return data[key]
  return data[mainKey(kind)] ?? Object.values(data)[0]
}

function declared(path: string, n: DefinitionNode, graph: Graph, key: string | undefined, add: Collect) {
  const kind = graph.kindOf(n)
  const schema = n.configurations?.input_schema ?? n.configurations?.form_schema
  if (isObject(schema) && graph.isTrigger(n)) fromSchema(path, schema as FieldSchema, add)
  const keys = kind?.keys ?? []
  const of = keys.find((k) => k.name === (key ?? mainKey(kind))) ?? keys.find((k) => k.name === mainKey(kind)) ?? keys[0]
  const output = asSchema(kind?.output_schema as FieldSchema | undefined)
  for (const f of of?.fields ?? []) {
    if (f.name === "*" || f.name.includes("*")) continue
    const first = asSchema(output.properties?.[f.name])
    add({ path: `${path}${f.name.startsWith("[") ? "" : "."}${f.name.replace(/\[\]/g, "[0]")}`, type: typesOf(first)[0] ?? "", meaning: f.meaning })
  }
}

/**
 * completionsFor lists what a node's placeholders and expressions can read: what earlier nodes put out, as their kinds declare it and as it was in an execution, what
 * they publish, the variables of loops, and its own input. The nearest come first.
 */
export function completionsFor(definition: Definition, node: string | { id: string }, kinds: NodeKind[], lastExecution?: LastExecution | null): Completion[] {
  const id = typeof node === "string" ? node : node.id
  const execution = lastExecution ?? undefined
  const graph = new Graph(definition, kinds)
  const self = graph.nodes.get(id)
  if (!self) return []
  const found = new Map<string, Completion>()
  const adder = (from: string, where: Completion["in"]): Collect => {
    let count = 0
    return (c) => {
      const known = found.get(c.path)
      if (known) {
        // What a kind declares has a meaning, what was seen has a value; both are told.
        found.set(c.path, { ...known, type: known.type || c.type, meaning: known.meaning ?? c.meaning, ...(!("value" in known) && "value" in c ? { value: c.value } : {}) })
      } else if (count++ < perNode) found.set(c.path, { ...c, from, in: where })
    }
  }

  for (const loop of graph.loops(id)) {
    const add = adder(loop.name ?? loop.id, "both")
    const given = execution?.node_executions?.[id]?.input_data
    const seen = (name: string) => (isObject(given) && name in given ? given[name] : undefined)
    for (const name of ["item", "index", loop.configurations?.iteration_variable]) {
      if (typeof name !== "string" || !name) continue
      const value = seen(name)
      if (value === undefined) add({ path: name, type: name === "item" ? "" : "integer" })
      else fromValue(name, value, add)
    }
  }

  // Its own input: what the last run gave it, else what the connections bring.
  const given = execution?.node_executions?.[id]?.input_data
  const input = adder("", "expression")
  input({ path: "input", type: "object", ...(given === undefined ? {} : { value: given }) })
  for (const key of Object.keys(self.input_params ?? {})) input({ path: step("input", key), type: "" })
  for (const c of graph.sources(id)) {
    const from = graph.nodes.get(fromOf(c))!
    const kind = graph.kindOf(from)
    const add = adder(from.name ?? from.id, "expression")
    declared("input", from, graph, keyOf(c), add)
    const value = payloadOf(execution, from.id, kind, keyOf(c))
    if (given === undefined && isObject(value) && !isBlob(value)) for (const [k, v] of Object.entries(value)) fromValue(step("input", k), v, add, 1)
  }
  if (isObject(given) && !isBlob(given)) for (const [k, v] of Object.entries(given)) fromValue(step("input", k), v, input, 1)

  for (const n of graph.before(id)) {
    const kind = graph.kindOf(n)
    const collect = adder(n.name ?? n.id, "placeholder")
    const added = new Map<string, Completion>()
    const add: Collect = (c) => {
      collect(c)
      const known = found.get(c.path)
      if (known?.in === "placeholder") added.set(c.path, known)
    }
    const path = `${refOf(n)}.outputs`
    const value = payloadOf(execution, n.id, kind)
    add({ path, type: "object", ...(value === undefined || isBlob(value) ? {} : { value }) })
    declared(path, n, graph, undefined, add)
    if (value !== undefined) fromValue(path, value, add)
    for (const name of Object.keys(n.output_params ?? {})) {
      const last = isObject(value) ? value[name] : undefined
      add({ path: step("", name), type: typeOf(last), ...(last === undefined ? {} : { value: last }) })
    }
    // In an expression the same is read as steps.start.name.
    const steps = adder(n.name ?? n.id, "expression")
    for (const c of added.values()) if (c.path.startsWith(path + ".")) steps({ ...c, path: step("steps", refOf(n)) + c.path.slice(path.length) })
    // What a trigger puts out is also read as trigger.name, in both.
    if (!graph.isTrigger(n)) continue
    const started = adder(n.name ?? n.id, "both")
    started({ path: "trigger", type: "object" })
    for (const c of added.values()) if (c.path.startsWith(path + ".")) started({ ...c, path: "trigger" + c.path.slice(path.length) })
  }

  const run = adder("", "both")
  run({ path: "trigger", type: "object" })
  run({ path: "execution.id", type: "string" })
  run({ path: "workflow.id", type: "string" })
  return [...found.values()]
}

/** valueAt finds the last value of a path, also one that goes deeper than what is listed; undefined when nobody knows it. */
export function valueAt(completions: Completion[], path: string): { value: unknown; from: string } | undefined {
  const exact = completions.find((c) => c.path === path && "value" in c)
  if (exact) return { value: exact.value, from: exact.from }
  let best: Completion | undefined
  for (const c of completions) if ("value" in c && path.startsWith(c.path) && /^[.[]/.test(path.slice(c.path.length)) && c.path.length > (best?.path.length ?? 0)) best = c
  if (!best) return undefined
  let value = best.value
  for (const m of path.slice(best.path.length).matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|\.?([^.[\]]+)/g)) {
    const key = m[1] ?? m[2] ?? m[3]!
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Values)[key]
  }
  return { value, from: best.from }
}
