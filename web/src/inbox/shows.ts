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
  return { status: ["completed", "timeout", "cancelled", "error"] }
}
