// Files of other systems are imported on the page of workflows.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Page } from "playwright-core"
import { expect, test } from "vitest"
import { accessible, accessibleInBoth, accessibleToo } from "./axe"
import { world } from "./tandem"

const { tandem, open, quiet } = world()
const sample = (path: string) => ({ name: path.split("/").at(-1)!, mimeType: "application/json", buffer: readFileSync(join(import.meta.dirname, "..", "..", "importer", path)) })
const made = (name: string, text: string) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) })
const dialog = (page: Page) => page.getByRole("dialog")
const report = (page: Page, workflow: string) => page.getByRole("region", { name: workflow, exact: true })
const total = async () => (await tandem.api<{ total_count: number }>("GET", "/workflows")).total_count

async function choose(page: Page, ...files: ReturnType<typeof made>[]) {
  await page.getByRole("button", { name: "Import", exact: true }).click()
  await page.locator('input[type="file"]').setInputFiles(files)
  await dialog(page).getByRole("button", { name: "Import", exact: true }).click()
}

test("what becomes of each node is shown before anything is kept, and leads to it afterwards", async () => {
  const before = await total()
  const page = await open("/workflows")
  const own = "metadata: {id: own, name: own}\nnodes:\n  - {id: start, type: TRIGGER, subtype: MANUAL}\n"
  await choose(page, sample("n8n/testdata/orders.json"), sample("dify/testdata/chat.yml"), sample("seed/testdata/older.json"), sample("seed/testdata/steps.json"), made("own.yaml", own), made("other.json", '{"a": 1}'))
  await page.getByText("This is what becomes of the files").waitFor()
  const orders = report(page, "Orders to invoices")
  await orders.getByText("1 node is missing").waitFor()
  const odd = orders.getByRole("listitem").filter({ hasText: "n8n-nodes-base.somethingElse" }).first()
  await odd.getByText("missing", { exact: true }).waitFor()
  await orders.getByText("A secret of it moves to the credential fetch_orders_key.").waitFor()
  await orders.getByText(/The credential fetch_orders_key .* will be made of a secret in the file/).waitFor()
  expect(await orders.getByText("Split Out").count()).toBe(0)
  await orders.getByRole("button", { name: /^Show \d+ nodes that do the same$/ }).click()
  await orders.getByText("Split Out").waitFor()
  await report(page, "Tell Slack").getByText("nearly the same", { exact: true }).first().waitFor()
  await report(page, "Shop chat").getByText("openai-gpt-4o").waitFor()
  for (const system of ["n8n", "Dify", "flow of steps", "older workflow file"]) await dialog(page).getByText(system, { exact: true }).waitFor()
  await dialog(page).getByText("A definition of this product. It is kept as it is.").waitFor()
  await dialog(page).getByText(/other\.json is not a file of a system that is known here/).waitFor()
  for (const secret of ["9f8e7d6c", "0f9e8d7c", "example-token"]) expect(await dialog(page).innerText()).not.toContain(secret)
  expect(await total()).toBe(before)
  await accessibleInBoth(page)
  await dialog(page).getByRole("button", { name: "Keep 5 workflows" }).click()
  await page.getByText("5 workflows are kept").waitFor()
  await orders.getByText(/The credential fetch_orders_key .* was made of a secret in the file/).waitFor()
  expect(await total()).toBe(before + 5)
  await expect.poll(() => dialog(page).getByRole("link", { name: "Open it" }).count()).toBe(5)
  await accessibleToo(page)
  await orders.getByRole("link", { name: "Odd" }).click()
  await page.waitForURL(/\/workflows\/[^/]+\?node=odd$/)
  await page.getByRole("complementary", { name: "Node odd", exact: true }).waitFor()
  quiet()
})

test("a text that was pasted is imported with the keyboard alone, on a phone, in the dark and in Chinese", async () => {
  const page = await open("/workflows", { locale: "zh-CN", colorScheme: "dark", viewport: { width: 390, height: 844 } })
  await page.getByText("还没有工作流").or(page.getByRole("table")).first().waitFor()
  await page.getByRole("button", { name: "导入", exact: true }).press("Enter")
  await page.getByLabel("或者粘贴到这里").focus()
  await page.keyboard.insertText(sample("n8n/testdata/agent.json").buffer.toString())
  await page.keyboard.press("Tab")
  await page.keyboard.press("Enter")
  // The report has the focus, and all that it shows fits the phone.
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toContain("这些文件将变成什么")
  await dialog(page).getByText("粘贴的内容").waitFor()
  await dialog(page).getByText("缺失", { exact: true }).waitFor()
  expect(await dialog(page).evaluate((d) => d.scrollWidth - d.clientWidth)).toBeLessThanOrEqual(0)
  await accessible(page)
  await dialog(page).getByRole("button", { name: "保存 1 个工作流" }).press("Enter")
  await page.getByText("已保存 1 个工作流").waitFor()
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toContain("已保存 1 个工作流")
  quiet()
})

test("files that are dropped on the page are imported; names in them are inert", async () => {
  const page = await open("/workflows")
  const name = '<img src=x onerror="window.hit=1">'
  const text = JSON.stringify({ name, nodes: [{ id: "1", name, type: "n8n-nodes-base." + name, parameters: {} }], connections: {} })
  await page.getByRole("button", { name: "Import", exact: true }).waitFor()
  const brought = await page.evaluateHandle((text) => {
    const data = new DataTransfer()
    for (const name of ["a.json", "b.json", "c.json"]) data.items.add(new File([text], name))
    return data
  }, text)
  await page.dispatchEvent("body", "dragover", { dataTransfer: brought })
  await page.getByText("Let go to import the files").waitFor()
  await page.dispatchEvent("body", "drop", { dataTransfer: brought })
  await page.getByText("Let go to import the files").waitFor({ state: "detached" })
  await dialog(page).getByRole("button", { name: "Leave out b.json" }).click()
  await dialog(page).getByRole("button", { name: "Import", exact: true }).click()
  await dialog(page).getByRole("button", { name: "Keep 2 workflows" }).waitFor()
  expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined()
  // Away: nothing of it is lost, and what may have happened is said.
  await page.route("**/api/v1/import", (route) => route.abort())
  await dialog(page).getByRole("button", { name: "Keep 2 workflows" }).click()
  await page.getByText("Some of it may be kept already").waitFor()
  await page.unroute("**/api/v1/import")
  await dialog(page).getByRole("button", { name: "Keep 2 workflows" }).click()
  await page.getByText("2 workflows are kept").waitFor()
  quiet()
})

test("who may not keep secrets is told before, and a definition that is not valid can be read as a file of another system", async () => {
  await tandem.api("POST", "/users", { id: "eda", name: "Eda", roles: ["editor"] })
  const { secret } = await tandem.api<{ secret: string }>("POST", "/users/eda/tokens", { name: "test" })
  const page = await open("/workflows", { token: secret })
  await choose(page, sample("n8n/testdata/orders.json"))
  await page.getByText("You cannot keep it").waitFor()
  await page.getByText(/let an admin import it/).waitFor()
  expect(await dialog(page).getByRole("button", { name: "Keep", exact: true }).isDisabled()).toBe(true)
  await dialog(page).getByRole("button", { name: "Back" }).click()
  await page.locator('input[type="file"]').setInputFiles([made("wrong.json", '{"metadata": {"name": "wrong"}, "nodes": [{"id": "start", "type": "TRIGGER", "subtype": "NEVER_HEARD_OF"}]}')])
  await dialog(page).getByRole("button", { name: "Import", exact: true }).click()
  await page.getByRole("button", { name: "Read it as a file of another system" }).click()
  await report(page, "wrong").getByText("1 node is missing").waitFor()
  quiet()
})
