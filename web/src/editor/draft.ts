/** Draft is what was typed and is not saved. It is kept in this browser, survives a reload and a crash, and knows from which revision it was made. */
export type Draft = { text: string; revision: number; base: string; at: number }

// What is not saved yet has no id. A workflow may be called "new".
const nameOf = (id: string) => (id === "" ? "tandem.draft.new" : id === "new" ? "tandem.draft.workflow:new" : `tandem.draft.${id}`)

export function readDraft(id: string): Draft | undefined {
  try {
    const said = JSON.parse(localStorage.getItem(nameOf(id)) ?? "null") as Partial<Draft> | null
    if (!said || typeof said.text !== "string") return undefined
    return { text: said.text, revision: Number(said.revision) || 0, base: typeof said.base === "string" ? said.base : "", at: Number(said.at) || 0 }
  } catch {
    return undefined
  }
}

/** keepDraft says whether it could be kept: a browser may have no room, or keep nothing at all. */
export function keepDraft(id: string, draft: Draft): boolean {
  try {
    localStorage.setItem(nameOf(id), JSON.stringify(draft))
    return true
  } catch {
    return false
  }
}

export function dropDraft(id: string) {
  try {
    localStorage.removeItem(nameOf(id))
  } catch {
    // A browser that keeps nothing has nothing to drop.
  }
}
