import { expect, test } from "vitest"
import { pieceOf } from "./queries"

const piece = (text: string, offset: number, more: { snapshot?: boolean; attempt?: number } = {}) => ({ data: { text, offset, activation_id: "summary", attempt: 1, ...more } })

test("pieces of a text are put together; a snapshot and a new attempt replace what came before", () => {
  let now = { key: "", text: "" }
  for (const p of [piece("Hel", 0), piece("lo", 3)]) now = pieceOf(now, p)
  expect(now.text).toBe("Hello")
  expect(pieceOf(now, piece("All of it", 0, { snapshot: true })).text).toBe("All of it")
  expect(pieceOf(now, piece("Again", 0, { attempt: 2 })).text).toBe("Again")
})
