import type { Page } from "playwright-core"
import { expect } from "vitest"

type Event = { name: string; ph: string; pid: number; tid: number; dur?: number; tdur?: number; args: { name?: string } }

/** figures does something and tells how long the longest task of the page took the processor while it was done, in milliseconds. What it took by the clock is printed. */
export async function figures(page: Page, what: string, act: () => Promise<unknown>): Promise<number> {
  const browser = page.context().browser()!
  await browser.startTracing(page, { categories: ["-*", "disabled-by-default-devtools.timeline"] })
  const began = Date.now()
  try {
    await act()
  } catch (error) {
    await browser.stopTracing()
    throw error
  }
  const took = Date.now() - began
  // What was put off until the page is idle belongs to it.
  await page.evaluate(() => new Promise((done) => requestIdleCallback(() => setTimeout(done), { timeout: 2_000 })))
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: Event[] }
  const main = new Set(traceEvents.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => `${e.pid}.${e.tid}`))
  const tasks = traceEvents.filter((e) => e.name === "RunTask" && main.has(`${e.pid}.${e.tid}`) && e.tdur !== undefined)
  expect(tasks.length).toBeGreaterThan(0)
  const longest = tasks.reduce((a, b) => (a.tdur! > b.tdur! ? a : b))
  console.info(`${what}: longest task ${Math.round(longest.tdur! / 1000)} ms of the processor (${Math.round(longest.dur! / 1000)} ms by the clock), ${tasks.filter((t) => t.tdur! > 50_000).length} over 50 ms; done after ${took} ms`)
  return longest.tdur! / 1000
}
