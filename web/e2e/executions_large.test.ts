import type { Page } from "playwright-core"
import { expect, test } from "vitest"
import { addWorkflows, run } from "./executions_world"
import { world } from "./tandem"

const { tandem, open, quiet } = world({ prepare: (tandem) => addWorkflows(tandem, "many", "large") })

/** No piece of the page's work may take longer than this, in milliseconds, on a machine that is busy with many other tests. How long it took is written to the console. */
const freeze = 2_000

/** watchTasks notes each piece of work that takes longer than 50 ms from now on; longest tells the longest of them and their sum. */
async function watchTasks(page: Page) {
  await page.evaluate(() => {
    const w = window as unknown as { tasks: number[] }
    w.tasks = []
    new PerformanceObserver((list) => w.tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true })
  })
}

async function longTasks(page: Page): Promise<{ longest: number; sum: number; count: number }> {
  const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks)
  return { longest: Math.round(Math.max(0, ...tasks)), sum: Math.round(tasks.reduce((a, b) => a + b, 0)), count: tasks.length }
}

test("ten thousand steps open without freezing, are all there, and can be searched and scrolled", async () => {
  const id = await run(tandem, "many", { items: Array.from({ length: 2_500 }, (_, i) => i) }, 60)
  const page = await open("/executions")
  await page.getByRole("link", { name: "many" }).waitFor()
  await watchTasks(page)
  const began = Date.now()
  await page.getByRole("link", { name: "many" }).click()
  await page.getByText(/^Succeeded after/).waitFor()
  const painted = Date.now() - began
  await page.getByText("10002 steps").waitFor()
  const whole = Date.now() - began
  const opened = await longTasks(page)
  const box = page.getByRole("list", { name: "Timeline" })
  expect(await box.locator("[data-step]").count()).toBeLessThan(100)
  await box.evaluate((e) => e.scrollTo(0, e.scrollHeight))
  await box.locator('[data-index="10001"]').waitFor()
  await page.getByLabel("Find a step").fill("each[2499]/four")
  await page.getByText("1 of 10002 steps").waitFor()
  const used = await longTasks(page)
  console.info(`10,000 steps: first paint ${painted} ms, all there ${whole} ms, longest task ${opened.longest} ms (${opened.count} over 50 ms, ${opened.sum} ms in all); after scrolling and searching longest ${used.longest} ms`)
  expect(used.longest).toBeLessThan(freeze)
  await page.goto(`/executions/${id}?tab=data`)
  await page.getByText("10002 steps").waitFor()
  quiet()
})

test("an output of five megabytes opens, folds and is searched without freezing", async () => {
  const id = await run(tandem, "large", {}, 60)
  const page = await open(`/executions/${id}?step=make`)
  const tree = page.getByRole("tree", { name: "Output" })
  const row = tree.getByRole("treeitem", { name: /Read 5\.\d MB/ })
  await row.waitFor()
  await watchTasks(page)
  const began = Date.now()
  await row.click()
  await tree.getByRole("treeitem", { name: /rows: .*48000 items/ }).waitFor()
  const read = Date.now() - began
  await tree.getByRole("treeitem", { name: /rows: .*48000 items/ }).click()
  await tree.getByRole("treeitem", { name: /^0 … 999$/ }).waitFor()
  const frame = page.getByRole("region", { name: "Step make" })
  const searching = Date.now()
  await frame.getByLabel("Search names and values").nth(1).fill("row number 47999")
  await frame.getByText("1 of 1 hit").waitFor()
  await tree.getByText('"row number 47999"').waitFor()
  const found = Date.now() - searching
  const { longest, sum, count } = await longTasks(page)
  console.info(`5 MB: read and shown ${read} ms, searched ${found} ms, longest task ${longest} ms (${count} over 50 ms, ${sum} ms in all)`)
  expect(await tree.getByRole("treeitem").count()).toBeLessThan(100)
  expect(longest).toBeLessThan(freeze)
  quiet()
})
