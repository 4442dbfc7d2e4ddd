import { expect, test } from "vitest"
import { addWorkflows, run } from "./executions_world"
import { world } from "./tandem"
import { figures } from "./tracing"

const { tandem, open, quiet } = world({ prepare: (tandem) => addWorkflows(tandem, "many", "large", "short") })

/** No piece of the page's work may take the processor longer than this, in milliseconds: on an idle machine (FIGURES=1), and beside many other tests. */
const freeze = process.env.FIGURES ? 300 : 1_500

// Ten thousand steps are measured, and shown at night; of the things that are tested here, a fifth of them shows the same.
const items = process.env.FIGURES || process.env.TANDEM_LONG ? 2_500 : 500
const count = 4 * items + 2

test("thousands of steps open without freezing, are all there, and can be searched and scrolled", async () => {
  const id = await run(tandem, "many", { items: Array.from({ length: items }, (_, i) => i) }, 60)
  const page = await open("/executions", { reducedMotion: "no-preference", fresh: !!process.env.FIGURES })
  await page.getByRole("link", { name: "many" }).waitFor()
  const opening = await figures(page, `${count} steps, opening`, async () => {
    await page.getByRole("link", { name: "many" }).click()
    await page.getByText(/^Succeeded after/).waitFor()
    await page.getByText(`${count} steps`).waitFor()
  })
  const box = page.getByRole("list", { name: "Timeline" })
  expect(await box.locator("[data-step]").count()).toBeLessThan(100)
  const using = await figures(page, `${count} steps, scrolling and searching`, async () => {
    await box.evaluate((e) => e.scrollTo(0, e.scrollHeight))
    await box.locator(`[data-index="${count - 1}"]`).waitFor()
    await page.getByLabel("Find a step").fill(`each[${items - 1}]/four`)
    await page.getByText(`1 of ${count} steps`).waitFor()
  })
  expect(Math.max(opening, using)).toBeLessThan(freeze)
  await page.goto(`/executions/${id}?tab=data`)
  await page.getByText(`${count} steps`).waitFor()
  quiet()
})

test("an output of five megabytes opens, folds and is searched without freezing", async () => {
  const id = await run(tandem, "large", {}, 60)
  const page = await open(`/executions/${id}?step=make`, { reducedMotion: "no-preference", fresh: !!process.env.FIGURES })
  const tree = page.getByRole("tree", { name: "Output" })
  const row = tree.getByRole("treeitem", { name: /Read 5\.\d MB/ })
  await row.waitFor()
  const frame = page.getByRole("region", { name: "Step make" })
  const reading = await figures(page, "5 MB, reading and showing", async () => {
    await row.click()
    await tree.getByRole("treeitem", { name: /rows: .*48000 items/ }).waitFor()
  })
  const using = await figures(page, "5 MB, unfolding and searching", async () => {
    await tree.getByRole("treeitem", { name: /rows: .*48000 items/ }).click()
    await tree.getByRole("treeitem", { name: /^0 … 999$/ }).waitFor()
    await frame.getByLabel("Search names and values").nth(1).fill("row number 47999")
    await frame.getByText("1 of 1 hit").waitFor()
    await tree.getByText('"row number 47999"').waitFor()
  })
  expect(await tree.getByRole("treeitem").count()).toBeLessThan(100)
  expect(Math.max(reading, using)).toBeLessThan(freeze)
  quiet()
})

test("pages of a long list are turned from the one that is shown, and what begins in the meantime moves nothing", async () => {
  const begin = (n: number) => Promise.all(Array.from({ length: n }, () => run(tandem, "short", {}, 60)))
  await begin(130)
  const page = await open("/workflows/short?tab=executions")
  await page.getByRole("link", { name: "See with more filters" }).click()
  await page.getByText("130 runs").waitFor()
  const shown = () => page.locator("tbody a").evaluateAll((links) => links.map((a) => a.getAttribute("href")!.split("/").pop()!))
  const turn = async (name: string) => {
    const answer = page.waitForResponse((r) => r.url().includes("/api/v1/executions?") && /(older|newer)_than/.test(r.url()))
    await page.getByRole("button", { name }).click()
    return ((await (await answer).json()) as { executions: { execution_id: string }[] }).executions.map((e) => e.execution_id)
  }
  const first = await shown()
  const second = await turn("Page 2")
  await expect.poll(shown).toEqual(second)
  expect(second.filter((id) => first.includes(id))).toEqual([])
  await begin(1)
  await page.getByText("131 runs").waitFor()
  expect(await shown()).toEqual(second)
  await page.getByRole("button", { name: "Page 3" }).click()
  await expect.poll(async () => (await shown()).length).toBe(31)
  expect(await turn("Page 2")).toHaveLength(50)
  // A colleague who is sent the address sees the same.
  const other = await open(new URL(page.url()).pathname + new URL(page.url()).search)
  await other.locator("tbody a").first().waitFor()
  expect(await other.locator("tbody a").first().getAttribute("href")).toBe(await page.locator("tbody a").first().getAttribute("href"))
  quiet()
})
