import i18next from "i18next"
import { parseDocument } from "yaml"
import { afterAll, beforeAll, expect, test } from "vitest"
import { prepareWords } from "@/words"
import { jsonSaying, yamlSaying } from "./syntax"

beforeAll(prepareWords)
afterAll(() => i18next.changeLanguage("en"))

const json = (text: string) => {
  try {
    JSON.parse(text)
  } catch (error) {
    return jsonSaying(text, error)
  }
}

test.each(["en", "zh"])("what is wrong with a text is told in the language of the reader: %s", async (language) => {
  await i18next.changeLanguage(language)
  const said = ["a: 1\n b: 2", "a: [1", "a: 1\na: 2", "a:\n\t- 1", "a: b: c", "- @x"].map((text) => yamlSaying(parseDocument(text).errors[0]!))
  said.push(json('{"a": 1,\n "b" 2}')!, json("[1")!, json("x")!)
  for (const s of said) {
    expect(s).not.toMatch(/syntax\.|undefined/)
    expect(/[\u4e00-\u9fff]/.test(s)).toBe(language === "zh")
  }
  expect(json('{"a": 1,\n "b" 2}')).toContain(language === "zh" ? "第 2 行第 6 列" : "line 2, column 6")
})
