/** FormProblem is what validation says about a place of the workflow; the severity is "error" unless it says otherwise. */
export type FormProblem = { path?: string; message: string; severity?: string; code?: string }

/** Placed is a problem with the way to it from the value that is edited. */
export type Placed = FormProblem & { way: string[] }

/** wayOf takes a path of the server apart: rules[0].field, headers["X-Key"]. */
export function wayOf(path: string): string[] {
  const out: string[] = []
  for (const m of path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\['([^']*)'\]|\[(\d+)\]|([^.[\]]+)/g)) out.push(m[1] ?? m[2] ?? m[3] ?? m[4]!)
  return out
}

/** placed finds the problems of a node below one of its fields, such as configurations; what has no such path is about the whole. */
export function placed(problems: FormProblem[], field: string): Placed[] {
  return problems.flatMap((p) => {
    let way = wayOf(p.path ?? "")
    if (way[0] === "nodes") way = way.slice(2)
    if (way[0] === field) return [{ ...p, way: way.slice(1) }]
    return []
  })
}

/** within are the problems below a key. */
export function within(problems: Placed[], ...keys: string[]): Placed[] {
  return problems.filter((p) => p.way.length > 0 && keys.includes(p.way[0]!)).map((p) => ({ ...p, way: p.way.slice(1) }))
}

/** here are those about the value itself. */
export const here = (problems: Placed[]) => problems.filter((p) => p.way.length === 0)

/** isWrong says that there is an error about the value itself, and not only something to consider. */
export const isWrong = (problems: Placed[]) => here(problems).some((p) => p.severity !== "warning")
