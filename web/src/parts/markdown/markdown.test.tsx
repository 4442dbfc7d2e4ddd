import { MemoryRouter } from "react-router"
import { expect, test } from "vitest"
import { testPage } from "@/testing/page"
import { safeLink, saysTarget } from "./links"
import Rendered from "./render"
import { slugs } from "./slugs"

const { place, show } = testPage("markdown")

async function drawn(text: string, more: { breaks?: boolean; anchors?: boolean; inside?: (t: string) => string | undefined } = {}) {
  await show(
    <MemoryRouter>
      <Rendered text={text} {...more} />
    </MemoryRouter>,
  )
  return place.querySelector("div")!
}

// The page of tests has nothing but what was drawn, without the classes of the libraries.
const html = (e: Element) => e.innerHTML.replace(/ (class|style|data-\w+(-\w+)*|title)="[^"]*"/g, "")


test("paragraphs, emphasis, code, lists, quotations, rules and headings are elements", async () => {
  const e = await drawn("# One\n\nA **strong** *word* with `a < b` and ~~gone~~\\*.\n\n- x\n  - y\n- [x] z\n\n3. c\n4. d\n\n> said\n> so\n\n---\n\nTwo\n===\n")
  expect(html(e)).toBe(
    "<h3>One</h3><p>A <strong>strong</strong> <em>word</em> with <code>a &lt; b</code> and <del>gone</del>*.</p><ul><li><p>x</p><ul><li><p>y</p></li></ul></li><li><p>☑ z</p></li></ul>" +
      '<ol start="3"><li><p>c</p></li><li><p>d</p></li></ol><blockquote><p>said so</p></blockquote><hr><h3>Two</h3>',
  )
})

test("a line break is kept where somebody asks for it", async () => {
  expect(html(await drawn("one\ntwo", { breaks: true }))).toBe("<p>one<br>two</p>")
  expect(html(await drawn("one\ntwo"))).toBe("<p>one two</p>")
  expect(html(await drawn("one  \ntwo"))).toBe("<p>one<br>two</p>")
})

test("code is shown as it was written and can be copied", async () => {
  const e = await drawn("- list\n  ```js\n  let a = 1\n\n    b()\n  ```\n")
  expect(e.querySelector("pre")!.textContent).toBe("let a = 1\n\n  b()")
  expect(e.querySelector("button")!.getAttribute("aria-label")).toBe("Copy the code")
})

test("a table has its empty cells, its sides and its code with a bar", async () => {
  const e = await drawn("| a | b | c |\n| --- | :-: | --: |\n| 1 | | `x\\|y` |\n|| 2 |\n")
  expect([...e.querySelectorAll("th")].map((c) => c.textContent)).toEqual(["a", "b", "c"])
  expect([...e.querySelectorAll("tbody tr")].map((r) => [...r.children].map((c) => c.textContent))).toEqual([
    ["1", "", "x|y"],
    ["", "2"],
  ])
  expect(e.querySelectorAll("th")[2]!.getAttribute("style")).toContain("right")
})

test("a link says where it leads unless its text does, and tells the other side nothing", async () => {
  const e = await drawn("[your bank](https://evil.example/x) https://ok.example/a <https://ok.example/b> [https://bank.example](https://evil.example) a@b.example [ref]\n\n[ref]: http://r.example")
  const links = [...e.querySelectorAll("a")]
  expect(links.map((a) => [a.textContent, a.getAttribute("href")])).toEqual([
    ["your bank", "https://evil.example/x"],
    ["https://ok.example/a", "https://ok.example/a"],
    ["https://ok.example/b", "https://ok.example/b"],
    ["https://bank.example", "https://evil.example/"],
    ["a@b.example", "mailto:a@b.example"],
    ["ref", "http://r.example/"],
  ])
  expect(links.every((a) => a.rel === "noopener noreferrer nofollow" && a.target === "_blank")).toBe(true)
  expect(e.querySelector("p")!.textContent).toBe("your bank (evil.example) https://ok.example/a https://ok.example/b https://bank.example (evil.example) a@b.example ref (r.example)")
  // Nothing that was written is hidden.
  expect(e.textContent).toContain("[ref]: http://r.example")
})

test("a picture is a link and is not loaded", async () => {
  const e = await drawn("![the plan](https://pictures.example/p.png) ![x](data:image/png;base64,AAAA)")
  expect(e.querySelectorAll("img").length).toBe(0)
  expect([...e.querySelectorAll("a")].map((a) => a.href)).toEqual(["https://pictures.example/p.png"])
  expect(e.textContent).toBe("the plan (pictures.example) ![x](data:image/png;base64,AAAA)")
})

const tricks = [
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)",
  "java&#10;script:alert(1)",
  "java&#x0a;script:alert(1)",
  "&#106;avascript:alert(1)",
  "javascript&colon;alert(1)",
  "\\javascript:alert(1)",
  "<javascript:alert(1)>",
  "data:text/html,<script>alert(1)</script>",
  "data:text/html;base64,PHNjcmlwdD4=",
  "vbscript:x",
  "file:///etc/passwd",
  "blob:https://x/1",
  "//evil.example",
  "/\\evil.example",
  "/api/v1/sessions/current",
  "https:evil.example",
  "https://",
  "https:\\\\evil.example",
  "https://bank.example@evil.example/",
  "https://bank.example:pw@evil.example/",
  "https://bank.example\u202e/x",
  "https://bank\u200b.example",
  "http://\u0000x",
  "ftp://x.example",
  "mailto:a@b.example?body=x",
  "mailto:",
  "tel:123",
  "#main",
  "",
]

test.each(tricks)("%j is not a link", async (target) => {
  for (const text of [`[click](${target})`, `![p](${target})`, `<${target}>`, `[r]\n\n[r]: ${target}`, target]) {
    const e = await drawn(text)
    for (const a of e.querySelectorAll("a")) expect(a.href).toMatch(/^(https?:\/\/(?!.*@)|mailto:[^?]*$)/)
    expect(e.querySelectorAll(`a[href^="javascript" i], a[href^="data" i], img, script, iframe, style`).length).toBe(0)
  }
  expect(safeLink(target)).toBeUndefined()
})

test("the host of a link is shown as the browser will ask for it", () => {
  const cyrillic = safeLink("https://\u0430pple.com/")!
  expect(cyrillic.host).toBe("xn--pple-43d.com")
  expect(saysTarget("https://\u0430pple.com/", cyrillic)).toBe(false)
  expect(saysTarget("https://apple.com", safeLink("https://apple.com/")!)).toBe(true)
  expect(saysTarget("https://apple.com.", safeLink("https://apple.com/")!)).toBe(false)
})

test("HTML is text", async () => {
  const text = `<script>alert(1)</script>\n\n<div onclick="x">a</div>\n\nb <img src=x onerror=alert(1)> <!-- hidden --> &lt;b&gt; <b>c</b>\n\n<!-- block -->`
  const e = await drawn(text)
  expect(e.querySelectorAll("script, img, b, div div").length).toBe(0)
  for (const part of ["<script>alert(1)</script>", `<div onclick="x">a</div>`, "<img src=x onerror=alert(1)>", "<!-- hidden -->", "<b>", "<b>c</b>", "<!-- block -->"]) expect(e.textContent).toContain(part)
})

test("what turns the direction of writing is written out, in text, code and links", async () => {
  const e = await drawn("a\u202eb `c\u2066d` [e\u202ef](https://x.example)\n\n```\ng\u202eh\n```")
  expect(e.textContent).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/)
  expect(e.textContent).toContain("a\\u202eb c\\u2066d e\\u202ef")
})

const floods: [string, string][] = [
  ["quotations", ">".repeat(20_000) + "a"],
  ["spaced quotations", "> ".repeat(20_000) + "a"],
  ["lists", "- ".repeat(20_000) + "a"],
  ["lists that grow", Array.from({ length: 400 }, (_, i) => "  ".repeat(i) + "- a").join("\n")],
  ["brackets", "[".repeat(20_000)],
  ["pairs of brackets", "[".repeat(5_000) + "a" + "]".repeat(5_000)],
  ["links in links", "[a](".repeat(5_000)],
  ["pictures", "![".repeat(10_000)],
  ["stars", "*a ".repeat(10_000)],
  ["strong in strong", "**a ".repeat(3_000) + "**".repeat(3_000)],
  ["mixed marks", "*_~~".repeat(5_000) + "a" + "~~_*".repeat(5_000)],
  ["ticks", Array.from({ length: 300 }, (_, i) => "`".repeat(i + 1) + " a ").join("")],
  ["tags", "<a ".repeat(10_000)],
  ["references", "[a]: /x\n".repeat(5_000)],
  ["bars", "|".repeat(20_000) + "\n" + "|-".repeat(10_000)],
  ["one long word", "x".repeat(250_000)],
]

test.each(floods)("a flood of %s is shown in time", async (_, text) => {
  const began = performance.now()
  const e = await drawn(text)
  expect(e.textContent!.length).toBeGreaterThan(0)
  expect(performance.now() - began).toBeLessThan(4_000)
})

test("headings have the addresses that links between documents use", async () => {
  const slug = slugs()
  expect(["In whose name", "What `tandem test` does", "Replies: in prose!", "Twice", "Twice", "一个 标题"].map(slug)).toEqual(["in-whose-name", "what-tandem-test-does", "replies-in-prose", "twice", "twice-1", "一个-标题"])
  const e = await drawn("# A `b`\n\n[next](people.md#replies) [out](https://x.example)", { anchors: true, inside: (t) => (t.includes(".md") ? "/docs/" + t.replace(".md", "") : undefined) })
  expect(e.querySelector("h3")!.id).toBe("a-b")
  expect(e.querySelector("a")!.getAttribute("href")).toBe("/docs/people#replies")
})

test("the text of a link has no links in it, and a picture in a link leads where the link does", async () => {
  const e = await drawn("[see https://a.example and [b](https://b.example)](https://c.example) [![p](https://d.example/p.png)](https://f.example)")
  for (const a of e.querySelectorAll("a")) expect(a.querySelector("a")).toBeNull()
  expect([...e.querySelectorAll("a")].map((a) => a.href)).toContain("https://f.example/")
})
