import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"

const dir = join(import.meta.dirname)
const src = join(dir, "..")

type Words = { [key: string]: string | Words }

function keysOf(words: Words, prefix = ""): string[] {
  return Object.entries(words).flatMap(([key, value]) => (typeof value === "string" ? [prefix + key] : keysOf(value, `${prefix}${key}.`)))
}

const read = (language: string, area: string) => JSON.parse(readFileSync(join(dir, language, area), "utf8")) as Words

// Chinese has one plural form, English has two.
const plain = (keys: string[]) => [...new Set(keys.map((key) => key.replace(/_(one|other)$/, "")))].sort()

const areas = readdirSync(join(dir, "en"))

test("both languages have the same areas", () => {
  expect(readdirSync(join(dir, "zh"))).toEqual(areas)
})

test.each(areas)("%s has the same words in both languages", (area) => {
  expect(plain(keysOf(read("zh", area)))).toEqual(plain(keysOf(read("en", area))))
})

test.each(areas)("%s keeps the arguments of its texts in both languages", (area) => {
  const args = (words: Words) => {
    const out: Record<string, string[]> = {}
    const walk = (w: Words, prefix: string) => {
      for (const [key, value] of Object.entries(w)) {
        if (typeof value !== "string") walk(value, `${prefix}${key}.`)
        else out[(prefix + key).replace(/_(one|other)$/, "")] = [...value.matchAll(/\{\{\s*(\w+)/g)].map((m) => m[1]!).sort()
      }
    }
    walk(words, "")
    return out
  }
  expect(args(read("zh", area))).toEqual(args(read("en", area)))
})

// A key that is written out in the code must exist; one that is put together is written with a template and is not looked at.
test("every word that the code names exists", () => {
  const missing: string[] = []
  const known = new Map(areas.map((area) => [area, new Set(plain(keysOf(read("en", area))))]))
  for (const name of readdirSync(src, { recursive: true, encoding: "utf8" })) {
    if (!/\.tsx?$/.test(name) || name.includes(".test.")) continue
    const text = readFileSync(join(src, name), "utf8")
    const area = /useTranslation\(\s*"(\w+)"/.exec(text)?.[1] ?? "shell"
    for (const m of text.matchAll(/\bt\(\s*"([^"]+)"/g)) {
      const [first, second] = m[1]!.includes(":") ? (m[1]!.split(":") as [string, string]) : [area, m[1]!]
      if (!known.get(first + ".json")?.has(second)) missing.push(`${name}: ${first}:${second}`)
    }
  }
  expect(missing).toEqual([])
})
