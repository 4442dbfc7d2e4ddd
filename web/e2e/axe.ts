import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Locator, Page } from "playwright-core"
import { expect } from "vitest"

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

type Rule = { id: string; impact: string | null; matches: (...of: unknown[]) => unknown }
type Check = { evaluate: (...of: unknown[]) => unknown }
type Axe = {
  _audit: { rules: Rule[]; checks: Record<string, Check> }
  run: (where: unknown, o: object) => Promise<{ violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[] }>
}

/**
 * accessible fails when axe finds something serious or critical on the page as it is shown now, or in one part of it. Rules whose findings are never that are not
 * tried. `only` names the rules that are tried, where the same page was looked at with all of them before.
 */
export async function accessible(page: Page, part?: string, only?: string[]) {
  // What the pointer happens to be on has other colours.
  await page.mouse.move(0, 0)
  await prepare(page)
  await page.evaluate(eachLookOnce, true)
  await look(page, part, only)
}

/** accessibleToo is for pages that are made of what other tests look at already. With TANDEM_LONG=1 (`make test-long`) they are looked at, too. */
export const accessibleToo = async (page: Page) => (process.env.TANDEM_LONG ? accessible(page) : undefined)

/** readableUnderPointer looks at the colours of what the pointer is on, in light and in dark. */
export async function readableUnderPointer(page: Page, what: Locator) {
  for (const scheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme: scheme })
    await page.locator(`html[data-mantine-color-scheme="${scheme}"]`).waitFor()
    await what.hover()
    await prepare(page)
    await page.evaluate(eachLookOnce, false)
    await look(page, ":hover", ["color-contrast"])
  }
}

/** prepare brings axe into the page. It is evaluated by the debugger, which the page's strict policy for scripts does not hold up. */
async function prepare(page: Page) {
  if (await page.evaluate(() => !("axe" in window))) await page.evaluate(source)
}

/**
 * eachLookOnce lets axe measure the contrast of the same look once as long as a page is not loaded anew, or every time again: finding out what is behind a text is most of axe's work.
 * Texts look the same when they and all that they are in have the same attributes, but for those that no style depends on, and stand at the same place in their parents: first, last,
 * odd or even. What could not be measured, because something was before it, is measured the next time.
 */
function eachLookOnce(once: boolean) {
  const w = window as unknown as { axe: Axe; looks?: Map<string, number>; measured?: Set<number>; own?: { matches: Rule["matches"]; evaluate: Check["evaluate"] } }
  const rule = w.axe._audit.rules.find((r) => r.id === "color-contrast")!
  const check = w.axe._audit.checks["color-contrast"]!
  const { matches, evaluate } = (w.own ??= { matches: rule.matches, evaluate: check.evaluate })
  Object.assign(rule, { matches })
  Object.assign(check, { evaluate })
  if (!once) return
  const looks = (w.looks ??= new Map())
  const measured = (w.measured ??= new Set())
  const silent = /^(id|href|for|name|title|value|placeholder|aria-(label|labelledby|describedby|controls|owns))$/
  const now = new Map<Element, number>()
  const lookOf = (e: Element | null): number => {
    if (!e) return -1
    const found = now.get(e)
    if (found !== undefined) return found
    const beside = e.parentElement?.children ?? [e]
    const at = Array.prototype.indexOf.call(beside, e)
    const attributes = [...e.attributes].filter((a) => !silent.test(a.name)).map((a) => `${a.name}=${a.value}`)
    const states = [at === 0, at === beside.length - 1, at % 2, e === document.activeElement, e.querySelector(":scope > :checked") !== null]
    const key = [lookOf(e.parentElement), e.tagName, ...states, ...attributes].join(" ")
    const look = looks.get(key) ?? looks.size
    looks.set(key, look)
    now.set(e, look)
    return look
  }
  const chosen = new Set<number>()
  rule.matches = (...of) => {
    const look = lookOf(of[0] as Element)
    if (measured.has(look) || chosen.has(look) || !matches.apply(rule, of)) return false
    chosen.add(look)
    return true
  }
  check.evaluate = function (...of) {
    const good = evaluate.apply(this, of)
    if (good) measured.add(lookOf(of[0] as Element))
    return good
  }
}

async function look(page: Page, part?: string, only?: string[]) {
  // Colours that fade into others are not what is meant.
  await page.evaluate(() => Promise.allSettled(document.getAnimations().filter((a) => a.effect?.getComputedTiming().endTime !== Infinity).map((a) => a.finished)))
  const found = await page.evaluate(
    async ([part, only]) => {
      const { axe } = window as unknown as { axe: Axe }
      const light = axe._audit.rules.filter((r) => r.impact === "minor" || r.impact === "moderate")
      const which = only ? { runOnly: only } : { rules: Object.fromEntries(light.map((r) => [r.id, { enabled: false }])) }
      const { violations } = await axe.run(part ?? document, { resultTypes: ["violations"], ...which })
      return violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} ${n.failureSummary}`).join(" | ")}`)
    },
    [part, only] as const,
  )
  expect(found).toEqual([])
}

/** Of what axe looks at, this is all that depends on colours. */
const colours = ["color-contrast", "link-in-text-block"]

/** accessibleInBoth looks at the page in light and in dark: the other one is the same page in other colours, and stays. */
export async function accessibleInBoth(page: Page) {
  await accessible(page)
  const other = (await page.locator("html").getAttribute("data-mantine-color-scheme")) === "dark" ? "light" : "dark"
  await page.emulateMedia({ colorScheme: other })
  await page.locator(`html[data-mantine-color-scheme="${other}"]`).waitFor()
  await accessible(page, undefined, colours)
}
