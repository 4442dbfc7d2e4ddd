import { expect, test } from "vitest"
import { Failure } from "@/api/client"
import { answerOf, blame, startOf } from "./answer"
import { nextOf } from "./consequence"
import { difference } from "./diff"
import type { Entry, Form } from "./types"
import { visible } from "./value"

const words = { required: "required", notJSON: "no JSON" }
const formOf = (...entries: Entry[]): Form => ({ language: "en", entries })
const yes = { value: "true", label: "Yes", raw: true }
const no = { value: "false", label: "No", raw: false }

test("an answer has the keys of the form and no others", () => {
  const form = formOf(
    { name: "action", kind: "one", decides: true, choices: [{ value: "approve", label: "Approve", raw: "approve", outcome: "confirmed" }] },
    { name: "notes", kind: "area" },
  )
  const approve = form.entries![0]!.choices![0]
  expect(answerOf(form, { notes: { text: " " }, other: { text: "x" } }, approve, words, false).answer).toEqual({ action: "approve" })
  expect(answerOf(form, { notes: { text: "fine " } }, approve, words, false).answer).toEqual({ action: "approve", notes: "fine " })
})

test("each kind of entry has the type of its value", () => {
  const form = formOf(
    { group: "field_values", name: "line", kind: "line" },
    { group: "field_values", name: "number", kind: "number" },
    { group: "field_values", name: "wrong", kind: "number" },
    { group: "field_values", name: "sure", kind: "yes_no", choices: [yes, no] },
    { group: "field_values", name: "tick", kind: "tick" },
    { group: "field_values", name: "some", kind: "some", choices: [{ value: "a", label: "A", raw: "a" }, { value: "2", label: "Two", raw: 2 }] },
    { group: "field_values", name: "json", kind: "json" },
    { group: "field_values", name: "any", kind: "json", anything: true },
    { group: "field_values", name: "empty", kind: "line" },
    { group: "scores", name: "own", kind: "score", open: true, choices: [yes, no] },
    { group: "scores", name: "grade", kind: "score", open: true, choices: [yes, no] },
    { group: "scores", name: "word", kind: "score", open: true, choices: [yes, no], words: { 合格: true, fail: false } },
    { group: "scores", name: "fails", kind: "score", open: true, choices: [yes, no], words: { 合格: true, fail: false } },
    { group: "scores", name: "unknown", kind: "score", open: true, choices: [yes, no] },
  )
  const { answer, wrong } = answerOf(
    form,
    {
      "field_values.line": { text: " x " },
      "field_values.number": { text: "+7" },
      "field_values.wrong": { text: "0x10" },
      "field_values.sure": { picked: ["false"] },
      "field_values.some": { picked: ["2"] },
      "field_values.json": { text: '{"a": 1}' },
      "field_values.any": { text: "plain" },
      "scores.own": { picked: ["true"], other: "3.5" },
      "scores.grade": { other: "b" },
      "scores.word": { other: "合格" },
      "scores.fails": { other: "FAIL" },
      "scores.unknown": { other: "pass" },
    },
    undefined,
    words,
    false,
  )
  expect(wrong.at).toEqual({})
  expect(JSON.parse(JSON.stringify(answer))).toEqual({ field_values: { line: "x", number: 7, wrong: "0x10", sure: false, tick: false, some: [2], json: { a: 1 }, any: "plain" }, scores: { own: 3.5, grade: "B", word: true, fails: false, unknown: "pass" } })
})

test("one of a selection stands in a list", () => {
  const form = formOf({ name: "selected_values", kind: "one", decides: true, list: true, choices: [{ value: "a", label: "A", raw: "a" }] })
  expect(answerOf(form, { selected_values: { picked: ["a"] } }, undefined, words, false).answer).toEqual({ selected_values: ["a"] })
})

test("what is not JSON is told before anything is sent", () => {
  const form = formOf({ group: "content", name: "p", kind: "json", anything: true })
  expect(answerOf(form, { "content.p": { text: "[1," } }, undefined, words, true).wrong.at).toEqual({ "content.p": "no JSON" })
})

test("what a step knows goes along, and is not an answer by itself; what it lacks is required", () => {
  const form = formOf({ group: "content", name: "city", kind: "line", known: true, default: "Bonn" }, { group: "content", name: "day", kind: "date", required: true }, { name: "description", kind: "area" })
  expect(startOf(form.entries![0]!)).toEqual({ text: "Bonn" })
  expect(answerOf(form, {}, undefined, words, true)).toEqual({ answer: { content: {} }, wrong: { at: { "content.day": "required" }, rest: [] } })
  expect(answerOf(form, { "content.day": { text: "2027-01-01" } }, undefined, words, true).answer).toEqual({ content: { city: "Bonn", day: "2027-01-01" } })
})

test("what the server says is wrong stands beside its entry, in the language of the page", () => {
  const form = formOf({ group: "field_values", name: "a", kind: "line" }, { group: "field_values", name: "a.b", kind: "line" })
  const refused = new Failure(422, "invalid_input", "", { errors: [{ path: "response_data.field_values.a.b[0]", message: "it is too long", message_zh: "太长" }, { path: "response_data.comment", message: "there is no such field" }] } as never)
  expect(blame(form, refused, false)).toEqual({ at: { "field_values.a.b": "It is too long." }, rest: ["comment: There is no such field."] })
  expect(blame(form, refused, true).at).toEqual({ "field_values.a.b": "太长" })
})

test("a difference has what is gone and what is new, in order", () => {
  expect(difference("a\nb\nc", "a\nx\nc\nd").map((l) => l.kind[0] + l.text)).toEqual(["sa", "gb", "nx", "sc", "nd"])
  expect(difference("", "a")).toEqual([{ kind: "new", text: "a" }])
})

test("what follows an answer is read from the connections", () => {
  const definition = { nodes: [{ id: "y", name: "Pay" }], connections: [{ from_node: "ask", to_node: "y", output_key: "confirmed" }, { from_node: "ask", to_node: "z" }, { from_node: "other", to_node: "q" }] }
  expect(nextOf(definition, "ask")).toEqual({ confirmed: ["Pay", "z"], rejected: ["z"], timeout: ["z"] })
})

test("characters that turn the direction of reading are written out", () => {
  expect(visible("a\u202eb\u2066c")).toBe("a\\u202eb\\u2066c")
})
