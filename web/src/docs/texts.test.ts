import all from "virtual:documents"
import { expect, test } from "vitest"
import { outline, partsOf } from "./outline"
import { documentsOf, find, groups, placeOf, read, search } from "./texts"

test("every document is listed once", () => {
  const listed = groups.flatMap((g) => documentsOf(g, "en")).map((d) => d.name)
  expect([...listed].sort()).toEqual(
    all
      .map((d) => d.name)
      .filter((name) => !name.startsWith("zh/"))
      .sort(),
  )
  expect(documentsOf("use", "en").map((d) => d.title)).toContain("People in the loop")
})

// The links of the documents are written for files; each of them leads to a document that is here and to a heading of it, out of the documents, or nowhere.
test("every link between documents leads to a document and a heading that exist", async () => {
  const lost: string[] = []
  for (const { name } of all.filter((d) => !d.name.startsWith("zh/"))) {
    const text = (await read(name, "en")).replace(/^```[\s\S]*?^```/gm, "").replace(/`[^`\n]*`/g, "")
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      const place = placeOf(name, target!)
      if (place === undefined || place === "/openapi" || place?.startsWith("/docs/kinds")) continue
      if (place === null) {
        if (!target!.startsWith("../")) lost.push(`${name}: ${target}`)
        continue
      }
      const [path, slug] = place.replace("/docs/", "").split("#")
      const found = find(path!, "en")
      if (!found || (slug && !found.sections.some((s) => s.slug === decodeURIComponent(slug)))) lost.push(`${name}: ${target}`)
    }
  }
  expect(lost).toEqual([])
})

test("links lead to places of the UI", () => {
  expect(placeOf("people", "api.md#questions-to-people")).toBe("/docs/api#questions-to-people")
  expect(placeOf("people", "#channels")).toBe("/docs/people#channels")
  expect(placeOf("people", "nodes/flow.md#flowloop")).toBe("/docs/kinds/flowloop")
  expect(placeOf("decisions/0009-an-agent-is-a-workflow", "../agents.md")).toBe("/docs/agents")
  expect(placeOf("api", "openapi.json")).toBe("/openapi")
  expect(placeOf("web", "../web")).toBeNull()
  expect(placeOf("web", "https://example.com")).toBeUndefined()
})

test("headings in code are none", () => {
  expect(outline("# A\n\n```sh\n# no\n```\n\n## B `c`\ntext")).toEqual({ title: "A", sections: [{ title: "B c", slug: "b-c", level: 2 }] })
  expect(partsOf("# A\nx\n## B\ny").map((p) => p.text)).toEqual(["x\n", "y\n"])
})

test("words are found where they stand", async () => {
  const found = await search("replies prose", "en")
  expect(found.map((f) => f.name + "#" + f.slug)).toContain("people#replies-in-prose")
  expect(await search("zzzz qqqq", "en")).toEqual([])
})

test("what is written for programs is not shown", async () => {
  for (const { name } of all) expect(await read(name.replace(/^zh\//, ""), "en"), name).not.toMatch(/^<!--/m)
})
