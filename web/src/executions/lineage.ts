import { type Path, pathText } from "@/parts/data"
import type { Run, Step } from "./run"

/** Source is where a value of an input came from, as the API tells it. */
export type Source = {
  layer: "initial_metadata" | "runtime_metadata" | "step_results" | "connection" | "literal" | "scope" | "input" | "trigger" | "execution" | "env"
  node_id?: string
  activation_id?: string
  scope?: string
  name?: string
  output_key?: string
  connection_id?: string
  converted?: boolean
  path?: string
  placeholder?: string
  edited_by?: string
  edited_in?: string
}

/** Origin is where the value at a path, with everything below it, came from. */
export type Origin = { path: string; sources: Source[]; text?: boolean; unresolved?: string[] }

const below = (path: string, of: string) => of === "" || path === of || path.startsWith(of + ".") || path.startsWith(of + "[")

/** originsOf are the origins of what was picked: the one that it is a part of, or those of its parts. */
export function originsOf(lineage: readonly Origin[], picked: Path): Origin[] {
  const path = pathText(picked)
  const above = lineage.filter((o) => below(path, o.path) && (o.path !== "" || lineage.length === 1))
  if (above.length > 0) return above
  return lineage.filter((o) => below(o.path, path))
}

// scopesOf are the scopes around an activation, the innermost first: a[1]/b[0]/c is in a[1]/b[0], which is in a[1].
function scopesOf(id: string): string[] {
  const parts = id.split("/").slice(0, -1)
  return [...parts.map((_, i) => parts.slice(0, parts.length - i).join("/")), ""]
}

/** sourceStep finds the step that a source is of: the one that is named, or the last visit of the node that this step could see. */
export function sourceStep(run: Run, current: Step, source: Source): Step | undefined {
  if (source.activation_id) return run.step(source.activation_id)
  if (source.layer === "scope" && source.scope) return run.step(source.scope.replace(/\[\d+\]$/, ""))
  if (!source.node_id) return
  for (const scope of scopesOf(current.id)) {
    const found = run.step(scope ? `${scope}/${source.node_id}` : source.node_id)
    if (found && found.id !== current.id) return found
  }
  return run.steps.findLast((s) => s.node === source.node_id && s.inner === undefined && (s.start ?? 0) <= (current.start ?? Infinity) && s.id !== current.id)
}

/** outputPath is where the value stands in the output of its step, for marking it there. */
export function outputPath(source: Source, output: Record<string, unknown> | undefined): Path | undefined {
  if (!output) return
  const keys = Object.keys(output)
  const key = source.output_key && source.output_key in output ? source.output_key : keys.length === 1 ? keys[0] : "result" in output ? "result" : undefined
  if (key === undefined) return
  const steps: (string | number)[] = [key]
  let at: unknown = output[key]
  for (const step of pathSteps(source.path ?? "")) {
    if (typeof at !== "object" || at === null || !(step in at)) break
    steps.push(step)
    at = (at as Record<string | number, unknown>)[step]
  }
  return steps
}

/** pathSteps reads a path as the API writes it: a.b[0]["c d"]. */
export function pathSteps(text: string): (string | number)[] {
  const steps: (string | number)[] = []
  for (const m of text.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+)/g)) {
    if (m[1] !== undefined) steps.push(Number(m[1]))
    else if (m[2] !== undefined) steps.push(JSON.parse(m[2]) as string)
    else steps.push(m[3]!)
  }
  return steps
}
