// Workflows are begun with templates on the page of workflows.
import { expect, test } from "vitest"
import { accessible, accessibleInBoth } from "./axe"
import { world } from "./tandem"

const { tandem, open, quiet } = world()
const total = async () => (await tandem.api<{ total_count: number }>("GET", "/workflows")).total_count

test("a template opens on the canvas and is kept when it is saved, with what it needs told before", async () => {
  const before = await total()
  const page = await open("/workflows")
  await page.getByRole("button", { name: "From a template" }).click()
  const list = page.getByRole("list", { name: "Templates" })
  await list.getByRole("listitem").nth(11).waitFor()
  await expect.poll(() => list.getByRole("listitem").count()).toBe(12)
  const expenses = list.getByRole("listitem").filter({ hasText: "Needs the credential mail (smtp)." }).first()
  await expenses.waitFor()
  await accessibleInBoth(page)
  const { templates } = await tandem.api<{ templates: { name: string; title: { en: string } }[] }>("GET", "/workflow-templates")
  await list.getByRole("link", { name: templates.find((t) => t.name === "translation_review")!.title.en }).click()
  await page.waitForURL(/\/workflows\/new\?template=translation_review/)
  await expect.poll(() => page.getByLabel("Name of the workflow").inputValue()).toBe("translation_review")
  expect(await total()).toBe(before)
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await page.waitForURL(/\/workflows\/(?!new)[^/?]+/)
  await page.getByText("Saved as revision 1").first().waitFor()
  expect(await total()).toBe(before + 1)
  quiet()
})

test("what was begun without a template is still there after a look at one, and a template that is not there is told", async () => {
  const page = await open("/workflows/new?blank")
  await page.getByRole("button", { name: "Manual trigger" }).click()
  await page.getByText(/Not saved yet|not saved/).first().waitFor()
  await page.goto(`${tandem.url}/workflows/new?template=daily_digest`)
  await expect.poll(() => page.getByLabel("Name of the workflow").inputValue()).toBe("daily_digest")
  await page.goto(`${tandem.url}/workflows/new?blank`)
  await page.getByRole("group", { name: /^start/ }).or(page.getByText("start", { exact: true })).first().waitFor()
  await page.goto(`${tandem.url}/workflows/new?template=nothing`)
  await page.getByRole("link", { name: "Workflows" }).first().waitFor()
})

test("templates are chosen with the keyboard alone, on a phone and in Chinese", async () => {
  const page = await open("/workflows", { locale: "zh-CN", colorScheme: "dark", viewport: { width: 390, height: 844 } })
  await page.getByText("还没有工作流").or(page.getByRole("table")).first().waitFor()
  await page.getByRole("button", { name: "从模板开始" }).press("Enter")
  const list = page.getByRole("list", { name: "模板" })
  await list.getByRole("listitem").first().waitFor()
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  await accessible(page)
  await list.getByRole("link").first().press("Enter")
  await page.waitForURL(/\/workflows\/new\?template=/)
  quiet()
})
