import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Locator, Page } from "playwright-core"
import { expect } from "vitest"

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

type Rule = { id: string; impact: string | null }
type Axe = {
  _audit: { rules: Rule[] }
  run: (where: unknown, o: object) => Promise<{ violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[] }>
}

/**
 * accessible fails when axe finds something serious or critical on the page as it is shown now, or in one part of it. Rules whose findings are never that are not
 * tried. `only` names the rules that are tried, where the same page was looked at with all of them before.
 */
export async function accessible(page: Page, part?: string, only?: string[]) {
  // What the pointer happens to be on has other colours.
  await page.mouse.move(0, 0)
  await look(page, part, only)
}

/** readableUnderPointer looks at the colours of what the pointer is on, in light and in dark. */
export async function readableUnderPointer(page: Page, what: Locator) {
  for (const scheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme: scheme })
    await page.locator(`html[data-mantine-color-scheme="${scheme}"]`).waitFor()
    await what.hover()
    await look(page, ":hover", ["color-contrast"])
  }
}

async function look(page: Page, part?: string, only?: string[]) {
  // Colours that fade into others are not what is meant.
  await page.evaluate(() => Promise.allSettled(document.getAnimations().filter((a) => a.effect?.getComputedTiming().endTime !== Infinity).map((a) => a.finished)))
  // Evaluated by the debugger, which the page's strict policy for scripts does not hold up.
  if (await page.evaluate(() => !("axe" in window))) await page.evaluate(source)
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

/** accessibleInBoth looks at the page in light and in dark: the dark one is the same page in other colours. */
export async function accessibleInBoth(page: Page) {
  await accessible(page)
  await page.emulateMedia({ colorScheme: "dark" })
  await page.locator('html[data-mantine-color-scheme="dark"]').waitFor()
  await accessible(page, undefined, colours)
  await page.emulateMedia({ colorScheme: "light" })
  await page.locator('html[data-mantine-color-scheme="light"]').waitFor()
}
