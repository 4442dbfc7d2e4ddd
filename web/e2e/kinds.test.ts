// Every kind can be configured in the editor: each kind's form is opened there and filled as a person fills it, and the definition is that of the kind's example.
import type { Locator, Page } from "playwright-core"
import { expect, test, vi } from "vitest"
import { parse } from "yaml"
import type { NodeKind } from "../src/kindform"
import { asSchema, editorOf, type FieldSchema, fits, type Values } from "../src/kindform/schema"
import { writeLoose } from "../src/kindform/values"
import { accessible } from "./axe"
import { follow, world } from "./tandem"

const { tandem, open, quiet } = world()

const families = ["ACTION", "AI_AGENT", "CALL", "EXTERNAL_ACTION", "FLOW", "HUMAN_IN_THE_LOOP", "MEMORY", "TOOL", "TRIGGER"]
const kindsOf = async () => (await tandem.api<{ node_kinds: NodeKind[] }>("GET", "/node-kinds")).node_kinds

const idOf = (kind: NodeKind, example: number) => `${kind.subtype.toLowerCase()}_${example}`

/** draft is a workflow that nobody has saved yet: a node for each example of each kind, with nothing set. */
const draft = (kinds: NodeKind[]) =>
  `metadata:\n  name: forms\nnodes:\n${kinds.flatMap((k) => k.examples!.map((_, i) => `  - id: ${idOf(k, i)}\n    type: ${k.type}\n    subtype: ${k.subtype}\n`)).join("")}connections: []\n`

const kept = async (page: Page): Promise<Record<string, string>> => {
  const text = await page.evaluate(() => (JSON.parse(localStorage.getItem("tandem.draft.new") ?? "{}") as { text?: string }).text ?? "")
  const nodes = (parse(text) as { nodes: { id: string; configurations?: Values }[] }).nodes
  return Object.fromEntries(nodes.map((n) => [n.id, JSON.stringify(n.configurations ?? {})]))
}

async function start(kinds: NodeKind[], options = {}): Promise<Page> {
  const page = await open("/healthz", options)
  await page.evaluate((text) => localStorage.setItem("tandem.draft.new", JSON.stringify({ text, revision: 0, base: "", at: Date.now() })), draft(kinds))
  return page
}

async function opened(form: Locator, at: string): Promise<Locator> {
  const place = form.locator(`[data-field="${at}"]`)
  for (let tries = 0; tries < 4 && (await place.count()) === 0; tries++) await form.getByRole("button", { name: /more setting/ }).first().click()
  await place.waitFor()
  return place
}

async function fill(page: Page, form: Locator, name: string, at: string, schema: FieldSchema, value: unknown) {
  const place = await opened(form, at)
  const editor = editorOf(name, schema)
  if (!fits(editor, schema, value)) {
    await place.getByRole("button", { name: /^More about/ }).click()
    await page.getByRole("menuitem", { name: /YAML/ }).click()
    return place.locator(".cm-content").fill(writeLoose(value))
  }
  switch (editor) {
    case "choice":
      return void (await place.locator("select").selectOption(value as string))
    case "flag": {
      const box = place.getByRole("switch")
      if ((await box.isChecked()) === value) await box.click({ force: true })
      await box.setChecked(value as boolean, { force: true })
      return
    }
    case "number":
    case "names":
    case "credential":
      return place.locator("input").first().fill(String(value))
    case "text":
    case "expression":
    case "code":
      return place.locator(".cm-content").fill(String(value))
    case "tags": {
      const box = place.locator("input:not([type=hidden])")
      for (const v of [value].flat()) {
        await box.click()
        if (asSchema(schema.items).enum) await page.getByRole("option", { name: String(v), exact: true }).click()
        else {
          await box.fill(String(v))
          await box.press("Enter")
        }
      }
      return
    }
    case "map":
      for (const [i, [key, v]] of Object.entries(value as Values).entries()) {
        await place.getByRole("button", { name: "Add a line" }).click()
        const row = place.locator("[data-row]").nth(i)
        await row.locator("input").fill(key)
        await row.locator(".cm-content").fill(writeLoose(v))
      }
      return
    case "objects":
      for (const [i, item] of (value as Values[]).entries()) {
        await place.getByRole("button", { name: /^Add (?!a plain)/ }).last().click()
        await fillAll(page, form, asSchema(schema.items), item, `${at}.${i}`)
      }
      return
    case "object":
      return fillAll(page, form, schema, value as Values, at)
    default:
      return place.locator(".cm-content").fill(writeLoose(value))
  }
}

async function fillAll(page: Page, form: Locator, schema: FieldSchema, value: Values, at = "") {
  for (const [name, v] of Object.entries(value)) await fill(page, form, name, at ? `${at}.${name}` : name, name === "credential_id" ? { type: "string" } : asSchema(schema.properties?.[name]), v)
}

test("these are all families", async () => {
  expect([...new Set((await kindsOf()).map((k) => k.type))].sort()).toEqual(families)
})

test.each(families)("every kind of %s is configured in the editor, and the definition is that of its examples", { timeout: 300_000 }, async (family) => {
  const kinds = (await kindsOf()).filter((k) => k.type === family)
  const page = await start(kinds)
  await page.goto("/workflows/new")
  await page.locator(".react-flow__node").first().waitFor()
  const all: Record<string, string> = {}
  for (const [kind, example] of kinds.flatMap((k) => k.examples!.map((_, i) => [k, i] as const))) {
    const node = idOf(kind, example)
    const wanted = (kind.examples![example]!.configurations ?? {}) as Values
    await follow(page, `/workflows/new?node=${node}`)
    // The form of the node before may be one of the same kind.
    const form = page.getByRole("complementary", { name: `Node ${node}`, exact: true }).locator(`[data-kind="${kind.name}"]`)
    await form.waitFor()
    await fillAll(page, form, kind.config_schema as FieldSchema, wanted)
    all[node] = JSON.stringify(wanted)
  }
  // What was typed into one node is kept, although the next was opened at once.
  await vi.waitFor(async () => expect(await kept(page)).toEqual(all), { timeout: 15_000, interval: 100 })
  quiet()
})

test("what is typed offers what earlier nodes put out; the form can be used by everybody, in both languages and schemes", async () => {
  const kinds = await kindsOf()
  const text = `metadata: {name: greet}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, configurations: {input_schema: {type: object, properties: {city: {type: string, title: The city}}}}}
  - {id: fetch, type: ACTION, subtype: HTTP_REQUEST, configurations: {pagination: {}, surprise: 1}}
connections:
  - {from_node: start, to_node: fetch}
`
  for (const options of [{ locale: "en-GB" }, { locale: "zh-CN", colorScheme: "dark" as const }]) {
    const page = await start(kinds.slice(0, 1), options)
    await page.evaluate((t) => localStorage.setItem("tandem.draft.new", JSON.stringify({ text: t, revision: 0, base: "", at: Date.now() })), text)
    await page.goto("/workflows/new?node=fetch")
    const form = page.locator('[data-kind="ACTION.HTTP_REQUEST"]')
    const url = form.locator('[data-field="url"]')
    await url.getByText(options.locale === "zh-CN" ? "必填" : "required", { exact: true }).waitFor()
    // Validation of the server stands at its field, and what the kind does not have is shown.
    await url.getByText(/"url"/).waitFor()
    await form.locator('[data-unknown="surprise"]').waitFor()
    await accessible(page, '[data-kind]')
    await url.locator(".cm-content").click()
    await page.keyboard.type("https://example.org/{{ci")
    await page.getByRole("option", { name: /start\.outputs\.city/ }).click()
    await vi.waitFor(async () => expect((await kept(page)).fetch).toBe('{"pagination":{},"surprise":1,"url":"https://example.org/{{start.outputs.city}}"}'), { timeout: 10_000, interval: 100 })
    await page.close()
  }
  quiet()
})
