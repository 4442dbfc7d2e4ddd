import { EditorView } from "@codemirror/view"
import { act } from "react"
import { expect, test, vi } from "vitest"
import { testPage } from "@/testing/page"
import { speak } from "@/words"
import KindForm, { type KindFormProps, type NodeKind, NodeSettings } from "./index"
import type { FieldSchema, Values } from "./schema"

vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { headers: { "Content-Type": "application/json" } })))

const page = testPage("kindform")

const kindOf = (schema: FieldSchema, more: Partial<NodeKind> = {}) =>
  ({ name: "TEST.KIND", type: "TEST", subtype: "KIND", title: { en: "Test", zh: "测试" }, config_schema: { type: "object", additionalProperties: false, ...schema }, output_keys: ["result"], examples: [], timeout: 420, max_retries: 3, ...more }) as unknown as NodeKind

// As GET /node-kinds sends it, in the order of the server.
const common: FieldSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    timeout: { type: "integer", minimum: 1, maximum: 86400, default: 420, description: "How long." },
    max_retries: { type: "integer", minimum: 0, maximum: 10, default: 3, "x-older-names": ["retry_attempts"] },
    on_error: { type: "string", enum: ["fail", "continue", "default_output"], default: "fail" },
    default_output: { "x-takes": ["any"], "x-with": { on_error: ["default_output"] } },
    on_unknown: { type: "string", enum: ["ask", "retry", "fail"], default: "ask" },
    enabled: { type: "boolean", default: true },
    credential_id: { type: "string" },
    color: { type: "string", enum: ["red", "blue"], description: "What it is painted in." },
  },
}

async function show(schema: FieldSchema, value: Values, props: Partial<KindFormProps> = {}) {
  const told: Values[] = []
  await page.show(<KindForm key={Math.random()} kind={kindOf(schema)} common={common} value={value} onChange={(v) => told.push(v)} {...props} />)
  return told
}

const field = (at: string) => page.place.querySelector<HTMLElement>(`[data-field="${at}"]`)
const type = (at: Element, text: string) =>
  act(async () => {
    const view = EditorView.findFromDOM(at.querySelector<HTMLElement>(".cm-editor")!)!
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, userEvent: "input.type" })
  })
const input = (el: HTMLInputElement, value: string) =>
  act(async () => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")!.set!.call(el, value)
    el.dispatchEvent(new Event("input", { bubbles: true }))
  })
const click = (el: HTMLElement) => act(async () => el.click())
const button = (name: RegExp, at: Element = document.body) => [...at.querySelectorAll<HTMLElement>('button, [role="menuitem"]')].find((b) => name.test(`${b.textContent} ${b.getAttribute("aria-label")}`))!

test("one field is changed, everything else stays, in its order and with what the schema does not have", async () => {
  const value = { zeta: { deep: [1] }, url: "a", timeout: 3, method: "GET" }
  const told = await show({ properties: { method: { type: "string", enum: ["GET", "PUT"] }, url: { type: "string" } } }, value)
  await type(field("url")!, "b")
  expect(JSON.stringify(told.at(-1))).toBe('{"zeta":{"deep":[1]},"url":"b","timeout":3,"method":"GET"}')
  expect(page.place.querySelector('[data-unknown="zeta"]')).not.toBeNull()
  expect(page.place.querySelector('[data-unknown="timeout"]')).toBeNull()
})

test("required, set and usual fields are shown, others behind a button, what does not apply not at all", async () => {
  const properties = { must: { type: "string" }, a: { type: "string" }, b: { type: "string" }, c: { type: "string" }, d: { type: "string" }, only: { type: "string", "x-with": { must: ["x"] } }, set: { type: "string", "x-with": { must: ["x"] } } }
  await show({ properties, required: ["must"] }, { set: "1" })
  expect(field("must")!.textContent).toContain("required")
  expect(field("a")).toBeNull()
  expect(field("set")!.textContent).toContain("does nothing now")
  await click(button(/4 more settings/))
  expect(field("a")).not.toBeNull()
  expect(field("only")).toBeNull()
})

test("what examples have is shown at once, unless the node is made in another way", async () => {
  const properties = Object.fromEntries(["a", "b", "c", "d", "e", "f"].map((n) => [n, { type: "string" }]))
  const kind = kindOf({ properties }, { examples: [{ configurations: { e: "x" } }] as never })
  await show({}, {}, { kind })
  expect(field("e")).not.toBeNull()
  expect(field("f")).toBeNull()
  await show({}, { f: "1" }, { kind })
  expect(field("e")).toBeNull()
  expect(field("f")).not.toBeNull()
})

test("of fields that stand for each other it is said that one is needed", async () => {
  await show({ properties: { query: { type: "string" }, question: { type: "string" } }, "x-need": [["query", "question"]] }, {})
  expect(field("query")!.textContent).toContain("One of these must be set: Query or Question.")
  await show({ properties: { query: { type: "string" }, question: { type: "string" } }, "x-need": [["query", "question"]] }, { query: "x" })
  expect(field("query")!.textContent).not.toContain("One of these")
})

test("a placeholder in the place of a list, a flag or a choice is shown as what it is, and the form is offered once it can be", async () => {
  const told = await show({ properties: { list: { type: ["null", "array"], items: { type: "string" } }, flag: { type: "boolean" } } }, { list: "{{start.outputs.list}}", flag: "{{x}}" })
  expect(field("list")!.getAttribute("data-editor")).toBe("yaml")
  expect(field("flag")!.getAttribute("data-editor")).toBe("yaml")
  await type(field("list")!, "[a, b]")
  expect(told.at(-1)).toEqual({ list: ["a", "b"], flag: "{{x}}" })
})

test("any field can be written as YAML; what cannot be read yet is handed on as a text when it is left, and not before", async () => {
  const told = await show({ properties: { values: { type: "object" } } }, { values: { a: 1 } })
  await click(button(/More about Values/))
  await click(button(/Write it as YAML/))
  await type(field("values")!, "a: [1")
  expect(told).toEqual([])
  expect(field("values")!.textContent).toContain("cannot be read as YAML yet")
  await act(async () => field("values")!.querySelector(".cm-content")!.dispatchEvent(new FocusEvent("blur")))
  expect(told).toEqual([{ values: "a: [1" }])
  await type(field("values")!, "a: [1]\nb: {c: '{{x}}'}")
  expect(told.at(-1)).toEqual({ values: { a: [1], b: { c: "{{x}}" } } })
})

test("numbers are numbers, placeholders are texts, anything else stays for validation to name", async () => {
  const told = await show({ properties: { n: { type: "integer", minimum: 1, maximum: 9, default: 4 } } }, {})
  const box = field("n")!.querySelector("input")!
  expect(box.placeholder).toBe("4")
  expect(field("n")!.textContent).toContain("1 – 9")
  await input(box, "12")
  expect(told.at(-1)).toEqual({ n: 12 })
  await input(box, "{{start.outputs.n}}")
  expect(told.at(-1)).toEqual({ n: "{{start.outputs.n}}" })
  await input(box, "a dozen")
  expect(told.at(-1)).toEqual({ n: "a dozen" })
})

test("a map keeps the order of its keys when one gets another name, and waits while two are the same", async () => {
  const told = await show({ properties: { headers: { type: "object" } } }, { headers: { A: "1", B: "2", C: "3" } })
  const boxes = [...field("headers")!.querySelectorAll<HTMLInputElement>("input")]
  await input(boxes[1]!, "C")
  expect(told).toEqual([])
  expect(field("headers")!.textContent).toContain("This name is there already.")
  await input(boxes[1]!, "Bee")
  expect(JSON.stringify(told.at(-1))).toBe('{"headers":{"A":"1","Bee":"2","C":"3"}}')
})

test("problems stand at their fields, also those deep inside and those of fields that are not set", async () => {
  const problems = [
    { path: "nodes[2].configurations.rules[0].field", message: "The field is missing.", severity: "error" },
    { path: "nodes[2].configurations.url", message: "An address is needed.", severity: "error" },
  ]
  const many = Object.fromEntries(["a", "b", "c", "d"].map((n) => [n, { type: "string" }]))
  await show({ properties: { ...many, rules: { type: ["null", "array"], items: { type: "object", properties: { field: { type: "string" } } } }, url: { type: "string" } } }, { rules: [{}] }, { problems })
  expect(field("rules.0.field")!.textContent).toContain("The field is missing.")
  expect(field("url")!.textContent).toContain("An address is needed.")
})

test("read-only: nothing can be changed, and what is not set is not shown", async () => {
  await show({ properties: { url: { type: "string" }, other: { type: "string" } } }, { url: "x" }, { readOnly: true })
  expect(field("other")).toBeNull()
  expect(page.place.querySelector("button")).toBeNull()
  expect(page.place.querySelector('[contenteditable="true"]')).toBeNull()
})

test("the last value of a placeholder is shown beneath the text", async () => {
  const completions = [{ path: "start.outputs", type: "object", value: { name: "Ada" }, from: "start", in: "placeholder" as const }]
  await show({ properties: { url: { type: "string" } } }, { url: "x/{{start.outputs.name}}" }, { completions })
  expect(field("url")!.textContent).toContain('start.outputs.name = "Ada"')
})

test("names and meanings are in the language of the reader", async () => {
  const schema = {
    properties: {
      url: { type: "string", description: "The address.", "x-description-zh": "地址；省略时取输入的 url。", "x-title-zh": "地址" },
      body: { type: "string", description: "What is sent.", "x-description-zh": "发送的内容。", "x-title-zh": "发送的内容" },
    },
  }
  await act(() => speak("zh"))
  await show(schema, {})
  expect(field("url")!.querySelector("label")!.textContent).toBe("地址")
  expect(field("url")!.textContent).toContain("地址；省略时取输入的 url。")
  // What the name says already is not said again.
  expect(field("body")!.textContent).not.toContain("发送的内容。")
  await act(() => speak("en"))
  await show(schema, {})
  expect(field("url")!.querySelector("label")!.textContent).toBe("URL")
  expect(field("url")!.textContent).toContain("The address.")
})

test("hostile names and values are text", async () => {
  const bad = '<img src=x onerror="window.hacked=1">'
  await show({ properties: { url: { type: "string", description: bad } } }, { url: bad, [bad]: bad })
  expect(page.place.querySelector("img")).toBeNull()
})

test("the settings of a node change only what they are for", async () => {
  const node = { type: "FLOW", id: "a", configurations: { url: "x", retry_attempts: 2 }, position: { x: 1, y: 2 } }
  const told: unknown[] = []
  await page.show(<NodeSettings node={node} kind={kindOf({})} common={common} onChange={(n) => told.push(n)} />)
  expect(field("common.timeout")!.querySelector("input")!.placeholder).toBe("420")
  await input(field("common.max_retries")!.querySelector("input")!, "5")
  expect(JSON.stringify(told.at(-1))).toBe('{"type":"FLOW","id":"a","configurations":{"url":"x","retry_attempts":5},"position":{"x":1,"y":2}}')
  await type(field("node.name")!, "fetch")
  expect(told.at(-1)).toEqual({ ...node, name: "fetch" })
})

test("the settings of a node are those that the server sends, with the defaults of the kind", async () => {
  const node = { id: "a", configurations: { color: "red", credential_id: "c", on_error: "default_output", other: 1 } }
  await page.show(<NodeSettings node={node} kind={kindOf({}, { timeout: 7, on_unknown: "retry" })} common={common} onChange={() => undefined} />)
  const shown = [...page.place.querySelectorAll<HTMLElement>('[data-field^="common."]')].map((f) => f.dataset.field!.slice("common.".length))
  expect(shown).toEqual(["enabled", "on_error", "default_output", "timeout", "max_retries", "on_unknown", "color"])
  expect(field("common.timeout")!.querySelector("input")!.placeholder).toBe("7")
  expect(field("common.on_unknown")!.textContent).toContain("retry (default)")
  // One that the words of the UI do not have is told as the server tells it.
  expect(field("common.color")!.querySelector("label")!.textContent).toBe("Color")
  expect(field("common.color")!.textContent).toContain("What it is painted in.")
  await show({ properties: {} }, { color: "red", timeout: 3 })
  expect(page.place.textContent).toContain("There is nothing to set")
})
