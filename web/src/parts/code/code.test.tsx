import { EditorView } from "@codemirror/view"
import { act } from "react"
import { expect, test } from "vitest"
import { Code, type CodeProps } from "../code"
import { testPage } from "@/testing/page"
import { smallestChange } from "./change"

const page = testPage()

async function show(props: Partial<CodeProps>) {
  await page.show(<Code label="A prompt" value="" {...props} />)
  return EditorView.findFromDOM(page.place.querySelector<HTMLElement>(".cm-editor")!)!
}

const type = (view: EditorView, insert: string) => act(() => view.dispatch({ changes: { from: view.state.doc.length, insert }, userEvent: "input.type" }))

test("what is typed is told, what is set from outside is not", async () => {
  const told: string[] = []
  const onChange = (v: string) => told.push(v)
  const view = await show({ value: "one", onChange })
  type(view, " two")
  expect(told).toEqual(["one two"])
  await show({ value: "one two three", onChange })
  expect(view.state.doc.toString()).toBe("one two three")
  expect(told).toEqual(["one two"])
})

test("a single line takes no second one: Enter adds none, what is pasted becomes one", async () => {
  const view = await show({ value: "a", single: true })
  type(view, "\n")
  expect(view.state.doc.toString()).toBe("a")
  type(view, "b\n  c")
  expect(view.state.doc.toString()).toBe("ab c")
})

test("it says what it is for, and that it cannot be changed", async () => {
  await show({ value: "x", readOnly: true, describedBy: "why", invalid: true })
  const content = page.place.querySelector(".cm-content")!
  expect(content.getAttribute("aria-label")).toBe("A prompt")
  expect(content.getAttribute("aria-readonly")).toBe("true")
  expect(content.getAttribute("aria-describedby")).toBe("why")
  expect(content.getAttribute("contenteditable")).toBe("false")
})

test("the text is text, whatever stands in it", async () => {
  await show({ value: '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>' })
  expect(page.place.querySelector("img, script")).toBeNull()
})

test.each([
  ["", "abc"],
  ["abc", ""],
  ["aaa", "aa"],
  ["ab", "aab"],
  ["one two three", "one 2 three"],
])("the smallest change of %j into %j gives it", (before, next) => {
  const change = smallestChange(before, next)!
  expect(before.slice(0, change.from) + change.insert + before.slice(change.to)).toBe(next)
})

test("no change for the same text", () => expect(smallestChange("a", "a")).toBeUndefined())
