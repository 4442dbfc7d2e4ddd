import type { Page } from "playwright-core"
import { expect, test } from "vitest"
import { parse } from "yaml"
import { accessible, accessibleToo } from "./axe"
import { follow, world } from "./tandem"

const { tandem, open, quiet } = world({ inOrder: true })
const row = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text })
const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: typeof name === "string" })

const shop = (description: string) => `# why this is here
metadata:
  id: shop
  name: shop
  description: ${description}
  tags: [orders, front]
triggers: [order]
nodes:
  - {id: order, type: TRIGGER, subtype: WEBHOOK, configurations: {webhook_path: /orders, authentication: none}}
  - {id: note, type: ACTION, subtype: DATA_FORMATTING, configurations: {format_type: template, template: "thanks"}}
connections:
  - {id: c1, from_node: order, to_node: note}
`
const file = (text: string) => ({ name: "shop.yaml", mimeType: "application/yaml", buffer: Buffer.from(text) })

async function saved(page: Page, press: () => Promise<void>): Promise<string> {
  const down = page.waitForEvent("download")
  await press()
  let text = ""
  for await (const part of await (await down).createReadStream()) text += String(part)
  return text
}

test("an empty list says what to do, in both languages", async () => {
  const page = await open("/workflows")
  await page.getByText("There are no workflows yet").waitFor()
  await accessible(page)
  const zh = await open("/workflows", { locale: "zh-CN", colorScheme: "dark" })
  await zh.getByText("还没有工作流").waitFor()
  await zh.getByRole("link", { name: "新建工作流" }).waitFor()
  await accessible(zh)
  quiet()
})

test("a file is imported; what is wrong with it is said, and the text stays", async () => {
  const page = await open("/workflows")
  await button(page, "Import").click()
  await page.locator('input[type="file"]').setInputFiles(file(shop("first").replace("DATA_FORMATTING", "DATA_FORMATING")))
  await page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click()
  await page.getByText(/did you mean/).first().waitFor()
  await page.getByText("Nothing was kept. Your text is still here.").waitFor()
  await accessibleToo(page)
  await page.locator('input[type="file"]').setInputFiles(file(shop("first")))
  await page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click()
  await page.getByText("shop is kept, revision 1").waitFor()
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click()
  await row(page, "shop").waitFor()
  // The same id once more is another revision, if one wants that.
  await button(page, "Import").click()
  await page.getByLabel("Or paste it here").fill(shop("second"))
  await page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click()
  await button(page, "Keep as a new revision of shop").click()
  await page.getByText("shop is kept, revision 2").waitFor()
  quiet()
})

test("a workflow is exported as its author wrote it, and as JSON", async () => {
  const page = await open("/workflows")
  const menu = () => button(page, "What you can do with shop").click()
  await menu()
  expect(await saved(page, () => page.getByRole("menuitem", { name: "Export as YAML" }).click())).toBe(shop("second"))
  await menu()
  const json = JSON.parse(await saved(page, () => page.getByRole("menuitem", { name: "Export as JSON" }).click())) as { nodes: { id: string }[] }
  expect(json.nodes.map((n) => n.id)).toEqual(["order", "note"])
  expect((parse(shop("second")) as { nodes: unknown[] }).nodes).toHaveLength(json.nodes.length)
  quiet()
})

test("it is copied, found by words and tags in the address, and deleted", async () => {
  const page = await open("/workflows")
  await button(page, "What you can do with shop").click()
  await page.getByRole("menuitem", { name: "Copy…" }).click()
  await page.getByLabel("Name of the copy").fill("market")
  await page.getByRole("dialog").getByRole("button", { name: "Copy", exact: true }).click()
  await page.waitForURL("**/workflows/market**")
  await follow(page, "/workflows")
  await page.getByRole("textbox", { name: "Find by name or description" }).fill("mark")
  await row(page, "shop").waitFor({ state: "detached" })
  await row(page, "market").waitFor()
  expect(page.url()).toContain("q=mark")
  await follow(page, "/workflows?tags=front")
  await row(page, "shop").waitFor()
  await follow(page, "/workflows?q=nothing-is-called-this")
  await page.getByText("No workflow fits").waitFor()
  await button(page, "Show all").click()
  await row(page, "market").first().waitFor()
  await button(page, "What you can do with market").click()
  await page.getByRole("menuitem", { name: "Delete…" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click()
  await page.getByText("market was deleted").waitFor()
  await row(page, "market").waitFor({ state: "detached" })
  quiet()
})

test("a workflow with a run under way is not deleted, and the reason is shown", async () => {
  await tandem.api("POST", "/workflows", "metadata: {id: waits, name: waits}\ntriggers: [start]\nnodes:\n  - {id: start, type: TRIGGER, subtype: MANUAL}\n  - {id: ask, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: 'Go on'}}\nconnections:\n  - {id: c1, from_node: start, to_node: ask}\n")
  const { execution_id } = await tandem.api<{ execution_id: string }>("POST", "/workflows/waits/execute", { inputs: {} })
  const page = await open("/workflows")
  await row(page, "waits").getByRole("link", { name: /waits for a person/ }).waitFor()
  expect(await row(page, "waits").getByRole("link", { name: /waits for a person/ }).getAttribute("href")).toBe(`/executions/${execution_id}`)
  await accessible(page)
  await button(page, "What you can do with waits").click()
  await page.getByRole("menuitem", { name: "Delete…" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click()
  await page.getByRole("dialog").getByText("unfinished").waitFor()
  quiet()
})

test("revisions are compared on the canvas: what was added, removed and changed is marked, and a click shows the fields", async () => {
  const text = (nodes: string, wires: string) => `metadata: {name: differs}\nnodes:\n  - {id: start, description: Starts., type: TRIGGER, subtype: MANUAL}\n${nodes}connections:\n${wires}`
  const step = (id: string, words: string) => `  - {id: ${id}, description: ${words}, type: CALL, subtype: EMPTY, configurations: {pass_through: true}}\n`
  await tandem.api("POST", "/workflows?id=differs", text(step("kept", "First words.") + step("gone", "Goes."), "  - {from_node: start, to_node: kept}\n  - {from_node: kept, to_node: gone}\n"))
  await tandem.api("PUT", "/workflows/differs", text(step("kept", "Other words.") + step("fresh", "Comes."), "  - {from_node: start, to_node: kept}\n  - {from_node: kept, to_node: fresh}\n"))
  const page = await open("/workflows/differs?tab=revisions")
  await button(page, "What changed with revision 2").click()
  await page.getByText("On the canvas").click()
  await page.waitForURL(/as=canvas/)
  const card = (id: string) => page.locator(`.react-flow__node[data-id="${id}"]`)
  for (const [id, word] of [["kept", "changed"], ["gone", "removed"], ["fresh", "added"]] as const) await card(id).getByText(word, { exact: true }).waitFor()
  expect(await card("start").getByText(/^(added|removed|changed)$/).count()).toBe(0)
  const list = page.getByRole("region", { name: "Changes" })
  await list.getByRole("button", { name: /removed\s*kept → gone/ }).waitFor()
  await list.getByRole("button", { name: /added\s*kept → fresh/ }).waitFor()
  await card("kept").click()
  await page.waitForURL(/change=kept/)
  const fields = list.getByRole("table", { name: "kept" })
  await fields.getByRole("row", { name: "description First words. Other words." }).waitFor()
  await accessible(page)
  // The address is enough for a colleague.
  const other = await open(new URL(page.url()).pathname + new URL(page.url()).search, { locale: "zh-CN", colorScheme: "dark" })
  await other.getByRole("table", { name: "kept" }).getByText("Other words.").waitFor()
  await other.locator('.react-flow__node[data-id="gone"]').getByText("已删除").waitFor()
  await accessible(other)
  quiet()
})

test("revisions are compared as texts, and an old one comes back as a new one", async () => {
  const page = await open("/workflows/shop?tab=revisions")
  await button(page, "What changed with revision 2").click()
  await page.waitForURL(/from=1&to=2/)
  const difference = page.getByRole("region", { name: "Difference" })
  await difference.getByText("description: first").first().waitFor()
  await difference.getByText("description: second").first().waitFor()
  await difference.getByText("# why this is here").first().waitFor()
  await accessible(page)
  await button(page, "Bring back revision 1").click()
  await page.getByRole("dialog").getByRole("button", { name: "Bring back" }).click()
  await page.getByText("Revision 1 is back, as revision 3").waitFor()
  await row(page, "newest").getByText("3").first().waitFor()
  expect((await tandem.api<{ source: string }>("GET", "/workflows/shop?include=source")).source).toBe(shop("first"))
  quiet()
})

test("it is deployed, its trigger has an address that works, and what came can be looked at and started again", async () => {
  const page = await open("/workflows/shop?tab=triggers")
  await page.getByText("Nothing starts it by itself.").waitFor()
  await button(page, "Deploy revision 3").click()
  await page.getByText("Triggers start the newest revision.").waitFor()
  const address = await page.locator("code", { hasText: "/hooks/shop/orders" }).innerText()
  await page.getByText("Nothing has come yet.").waitFor()
  expect((await fetch(address, { method: "POST", body: '{"item": "<script>alert(1)</script>"}', headers: { "Content-Type": "application/json" } })).status).toBe(202)
  await page.reload()
  await page.getByRole("cell", { name: "started a run" }).waitFor()
  await accessible(page)
  await button(page, "See what it brought").click()
  await page.getByRole("dialog").getByText("<script>alert(1)</script>").waitFor()
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).first().click()
  await button(page, "Start again…").click()
  await page.getByRole("dialog").getByRole("button", { name: "Start again", exact: true }).click()
  await page.getByText("Another run has begun").waitFor()
  await page.getByRole("cell", { name: "started a run" }).nth(1).waitFor()
  await follow(page, "/workflows/shop?tab=executions")
  await page.getByRole("row").nth(2).waitFor()
  await expect.poll(() => page.getByRole("row").count()).toBe(3)
  await accessibleToo(page)
  await follow(page, "/workflows/shop?tab=triggers")
  await button(page, "Take out of service").click()
  await page.getByRole("dialog").getByRole("button", { name: "Take out of service" }).click()
  await page.getByText("taken out of service").waitFor()
  expect((await fetch(address, { method: "POST", body: "{}" })).status).toBe(404)
  quiet()
})

test("a deployment that lacks something says what, each with the way to put it right", async () => {
  await tandem.api(
    "POST",
    "/workflows",
    "metadata: {id: lacks, name: lacks}\ntriggers: [start]\nnodes:\n  - {id: start, type: TRIGGER, subtype: MANUAL}\n  - {id: ask, type: AI_AGENT, subtype: LLM, configurations: {profile_id: clever, prompt: hi}}\n  - {id: tell, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: 'Yes', approvers: ['role:approver']}}\nconnections:\n  - {id: c1, from_node: start, to_node: ask}\n  - {id: c2, from_node: ask, to_node: tell}\n",
  )
  const page = await open("/workflows/lacks?tab=triggers")
  await button(page, "Deploy revision 1").click()
  await page.getByText("2 things are missing before it can be deployed").waitFor()
  await page.getByRole("link", { name: "Give somebody the role" }).waitFor()
  expect(await page.getByRole("link", { name: "Open the node ask" }).getAttribute("href")).toBe("/workflows/lacks?node=ask")
  await accessible(page)
  await page.getByRole("link", { name: "Make the profile" }).click()
  await page.waitForURL("**/settings/profiles?new=1&id=clever")
  expect(await page.getByRole("textbox", { name: "Id", exact: true }).inputValue()).toBe("clever")
  quiet()
})

test("who may only look sees no buttons that would be refused", async () => {
  await tandem.api("POST", "/users", { id: "vera", name: "Vera", roles: ["viewer"] })
  const { secret } = await tandem.api<{ secret: string }>("POST", "/users/vera/tokens", { name: "test" })
  const page = await open("/workflows", { token: secret })
  await row(page, "shop").waitFor()
  expect(await button(page, "Import").count()).toBe(0)
  await button(page, "What you can do with shop").click()
  await page.getByRole("menuitem", { name: "Export as YAML" }).waitFor()
  expect(await page.getByRole("menuitem", { name: "Delete…" }).count()).toBe(0)
  await follow(page, "/workflows/shop?tab=triggers")
  await page.getByText("Editors and admins deploy workflows.").waitFor()
  quiet()
})

test("a name that is code is a name", async () => {
  const name = '<img src=x onerror="window.hit=1">'
  await tandem.api("POST", "/workflows", { metadata: { id: "hostile", name, description: name, tags: ["<b>bold</b>"] }, triggers: ["start"], nodes: [{ id: "start", type: "TRIGGER", subtype: "MANUAL" }], connections: [] })
  const page = await open("/workflows")
  await page.getByRole("link", { name }).waitFor()
  expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined()
  quiet()
})

test("the list stays while the server is away, and many workflows come in pages", async () => {
  for (let i = 0; i < 25; i++) await tandem.api("POST", "/workflows", { metadata: { id: `many_${i}`, name: `many ${i}` }, triggers: ["start"], nodes: [{ id: "start", type: "TRIGGER", subtype: "MANUAL" }], connections: [] })
  const page = await open("/workflows?q=many")
  await page.getByText("1 to 20 of 25").waitFor()
  await page.getByRole("button", { name: "Next page" }).click()
  await page.waitForURL(/page=2/)
  await page.getByText("21 to 25 of 25").waitFor()
  await expect.poll(() => page.getByRole("row").count()).toBe(6)
  await tandem.kill()
  await page.getByText("The server does not answer").first().waitFor()
  await expect.poll(() => page.getByRole("row").count()).toBe(6)
  await tandem.start()
  await page.getByText("The server does not answer").first().waitFor({ state: "detached" })
})
