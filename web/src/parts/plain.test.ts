import { expect, test } from "vitest"
import { plain } from "./plain"

test("signs that turn the direction of writing are made visible, and letters of any script are left", () => {
  expect(plain("invoice \u202e gpj.exe")).toBe("invoice \\u202e gpj.exe")
  expect(plain("a\u2066b\u2069\u200f")).toBe("a\\u2066b\\u2069\\u200f")
  expect(plain("שלום 你好 \u200d👩‍💻")).toBe("שלום 你好 \u200d👩‍💻")
})
