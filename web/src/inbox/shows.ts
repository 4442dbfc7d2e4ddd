import type { Schemas } from "@/api/client"
import { valuesOf } from "@/api/values"

// Which questions have ended, of all states that they can be in.
const over = { pending: false, completed: true, timeout: true, cancelled: true, error: true } satisfies Record<Schemas["Interaction"]["status"], boolean>

/** The parts of the inbox: what waits for the reader, everything that waits, and what has ended. */
export const shows = ["mine", "all", "ended"] as const
export type Show = (typeof shows)[number]

export const showOf = (text: string | null): Show => (text === "all" || text === "ended" ? text : "mine")

/** queryOf is what the API is asked for. */
export function queryOf(show: Show): { mine?: boolean; status: string[] } {
  switch (show) {
    case "mine":
      return { mine: true, status: ["pending"] }
    case "all":
      return { status: ["pending"] }
  }
  return { status: valuesOf(over).filter((s) => over[s]) }
}
