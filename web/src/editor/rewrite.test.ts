import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { readText, rewrite } from "./rewrite"

type Any = any // eslint-disable-line

const value = (text: string) => {
  const read = readText(text)
  if (read.broken) throw new Error(JSON.stringify(read.broken))
  return read.value as Any
}
const change = (text: string, act: (v: Any) => void) => {
  const v = structuredClone(value(text))
  act(v)
  const next = rewrite(text, v)
  expect(value(next)).toEqual(v)
  return next
}

const file = `# What it is for.
metadata:
  name: greet # the name
  tags: [a, b]

nodes:
  # Somebody starts it.
  - id: start
    type: TRIGGER
    subtype: MANUAL

  # It greets.
  - id: greet   # says hello
    type: ACTION
    subtype: FILE_OPERATION
    configurations:
      operation: append   # never overwrites
      content: "Hello {{start.outputs.name}}\\n"
      script: |
        one
        two
connections:
  - {id: c1, from_node: start, to_node: greet} # the only one
`

test("a changed value changes its place and nothing else", () => {
  expect(change(file, (v) => (v.nodes[1].configurations.operation = "write"))).toBe(file.replace("operation: append ", "operation: write "))
  expect(change(file, (v) => (v.metadata.name = "wave"))).toBe(file.replace("name: greet #", "name: wave #"))
  expect(change(file, (v) => v.metadata.tags.push("c"))).toBe(file.replace("[a, b]", "[a, b, c]"))
  expect(change(file, (v) => (v.nodes[1].configurations.script = "three\nfour\n"))).toBe(file.replace("one\n        two", "three\n        four"))
})

test("a new field stands at the end of its node", () => {
  expect(change(file, (v) => (v.nodes[0].position = { x: 10, y: -5 }))).toBe(file.replace("subtype: MANUAL\n", "subtype: MANUAL\n    position: {x: 10, y: -5}\n"))
  expect(change(file, (v) => (v.nodes[1].position = { x: 1, y: 2 }))).toBe(file.replace("        two\n", "        two\n    position: {x: 1, y: 2}\n"))
})

test("several new positions are as many new lines", () => {
  const next = change(file, (v) => v.nodes.forEach((n: Any, i: number) => (n.position = { x: i, y: i })))
  expect(next.split("\n").length).toBe(file.split("\n").length + 2)
  expect(change(next, (v) => v.nodes.forEach((n: Any) => delete n.position))).toBe(file)
})

test("a new node is written like the others, and goes again without a trace", () => {
  const next = change(file, (v) => {
    v.nodes.push({ id: "end", type: "CALL", subtype: "EMPTY", configurations: { pass_through: true } })
    v.connections.push({ id: "c2", from_node: "greet", to_node: "end" })
  })
  expect(next).toContain("\n\n  - id: end\n    type: CALL\n    subtype: EMPTY\n    configurations:\n      pass_through: true\nconnections:")
  expect(next).toContain("# the only one\n  - {id: c2, from_node: greet, to_node: end}\n")
  const again = change(next, (v) => {
    v.nodes.pop()
    v.connections.pop()
  })
  expect(again.replace(/\n\n(?=connections)/, "\n")).toBe(file)
})

test("a node that goes takes the comment above it along, and no other", () => {
  const next = change(file, (v) => {
    v.nodes.splice(0, 1)
    v.connections = []
  })
  expect(next).not.toContain("Somebody starts it")
  for (const c of ["# What it is for.", "# the name", "# It greets.", "# says hello", "# never overwrites"]) expect(next).toContain(c)
})

test("a file is begun from nothing", () => {
  let text = "metadata:\n  name: x\nnodes: []\nconnections: []\n"
  text = change(text, (v) => v.nodes.push({ id: "a", type: "TRIGGER", subtype: "MANUAL" }))
  expect(text).toBe("metadata:\n  name: x\nnodes:\n  - id: a\n    type: TRIGGER\n    subtype: MANUAL\nconnections: []\n")
  text = change(text, (v) => v.connections.push({ from_node: "a", to_node: "b" }))
  text = change(text, (v) => (v.nodes = []))
  expect(text).toContain("nodes: []\n")
  expect(rewrite("", { nodes: [] })).toBe("nodes: []\n")
  expect(rewrite("# only a comment\n", { nodes: [] })).toBe("# only a comment\nnodes: []\n")
})

test("JSON stays JSON", () => {
  const json = JSON.stringify(value(file), null, 2) + "\n"
  const next = change(json, (v) => {
    v.nodes.push({ id: "end", type: "CALL" })
    v.nodes[0].position = { x: 1, y: 2 }
    delete v.nodes[1].configurations.script
    v.connections = []
  })
  expect(JSON.parse(next)).toEqual(value(next))
  expect(next.split("\n").slice(0, 7)).toEqual(json.split("\n").slice(0, 7))
  JSON.parse(change('{"nodes":[{"id":"a"}]}', (v) => v.nodes.unshift({ id: "b", tags: ["x"] })))
})

test("odd texts are still changed to what is meant", () => {
  for (const [text, act] of [
    ["a: &x {b: 1}\nc: *x\n", (v: Any) => (v.c.b = 2)],
    ["? a\n: 1\n? b\n: 2\n", (v: Any) => delete v.a],
    ["nodes:\n- id: a\n- id: b\n", (v: Any) => v.nodes.push({ id: "c" })],
    ["nodes:\n-\n  id: a\n-\n  id: b\n", (v: Any) => v.nodes.splice(0, 1, { id: "c" }, { id: "d" })],
    ["a:\nb: 1", (v: Any) => (v.a = { c: [1, { d: "x\ny" }] })],
    ["a: >\n  folded\n  text\n\nb: 1\n", (v: Any) => (v.a = "short")],
    ["a: 'it''s'\nb: {c: 1, d: [1, 2]}\n", (v: Any) => (v.b.d = [2])],
    ['{a: 1, b: {c: 2}}', (v: Any) => (v.b = { d: "x: y", e: null })],
    ["a: 1 # one\n# two\nb: 2\n", (v: Any) => (v.c = "{{x}}")],
    ["l:\n  - - 1\n    - 2\n  - []\n", (v: Any) => v.l[1].push({ a: "#" })],
  ] as [string, (v: Any) => void][])
    change(text, act)
})

// What a person may do to any example, at random, always leads to what was meant; and what was not touched keeps its comments. With TANDEM_LONG=1 they do more.
const steps = process.env.TANDEM_LONG ? 60 : 15
const examples = join(import.meta.dirname, "..", "..", "..", "examples")
test.each(readdirSync(examples).filter((f) => /\.(yaml|json)$/.test(f)))("%s", (name) => {
  let text = readFileSync(join(examples, name), "utf8")
  const comments = text.split("\n").filter((l) => l.startsWith("#"))
  let seed = 7 + name.length
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  const acts: ((v: Any) => void)[] = [
    (v) => v.nodes.push({ id: `new_${random(1000)}`, description: "x: y\nz", type: "CALL", subtype: "EMPTY", configurations: { a: [1, { b: null }], c: "{{d}}" } }),
    (v) => v.nodes.splice(random(v.nodes.length), v.nodes.length > 1 ? 1 : 0),
    (v) => v.nodes.forEach((n: Any) => random(2) && (n.position = { x: random(1000), y: -random(1000) })),
    (v) => (v.nodes[random(v.nodes.length)].configurations = { text: "a\n  b\n\nc", list: ["- x", "#"], n: 1.5 }),
    (v) => (v.connections = (v.connections ?? []).filter(() => random(3) > 0)),
    (v) => (v.connections ??= []).splice(random(v.connections.length + 1), 0, { id: `c_${random(10000)}`, from_node: "a", to_node: "b", output_key: "true" }),
    (v) => delete v.nodes[random(v.nodes.length)].description,
    (v) => (v.metadata.name = `name ${random(100)}: #`),
    (v) => (v.nodes[random(v.nodes.length)].name = "été 名"),
  ]
  for (let i = 0; i < steps; i++) {
    text = change(text, acts[random(acts.length)]!)
    for (const c of comments) expect(text).toContain(c)
  }
})
