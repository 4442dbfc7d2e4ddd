import type { Completion as Option, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete"
import type { EditorView } from "@codemirror/view"
import { language } from "@/words"
import { type Completion, valueAt } from "./completions"
import { short } from "./values"

const opening = /(?:\{\{\{?|\$\{)[ ]*([^{}]*)$/

// The functions of the expression language, as they are written.
const functions: [string, string][] = [
  ["len", "(x)"],
  ["lower", "(text)"],
  ["upper", "(text)"],
  ["trim", "(text)"],
  ["split", "(text, separator)"],
  ["join", "(list, separator)"],
  ["contains", "(x, part)"],
  ["starts_with", "(text, start)"],
  ["ends_with", "(text, end)"],
  ["matches", "(text, pattern)"],
  ["replace", "(text, old, new)"],
  ["int", "(x)"],
  ["num", "(x)"],
  ["str", "(x)"],
  ["bool", "(x)"],
  ["abs", "(n)"],
  ["floor", "(n)"],
  ["ceil", "(n)"],
  ["round", "(n, digits)"],
  ["min", "(…)"],
  ["max", "(…)"],
  ["sum", "(list)"],
  ["avg", "(list)"],
  ["keys", "(object)"],
  ["values", "(object)"],
  ["has", "(object, key)"],
  ["first", "(list)"],
  ["last", "(list)"],
  ["slice", "(x, start, end)"],
  ["sort", "(list, x => key)"],
  ["unique", "(list)"],
  ["any", "(list, x => …)"],
  ["all", "(list, x => …)"],
  ["map", "(list, x => …)"],
  ["filter", "(list, x => …)"],
  ["count", "(list, x => …)"],
  ["now", "()"],
  ["date", "(x)"],
  ["duration", "(x)"],
  ["format_date", "(x, layout)"],
]

function option(c: Completion, apply?: Option["apply"]): Option {
  const info = [c.meaning?.[language()], c.from].filter(Boolean).join("\n")
  return { label: c.path, detail: "value" in c ? short(c.value) : c.type, info: info || undefined, apply }
}

/** closing writes a path into a placeholder, and its brackets if they are missing. */
function closing(open: string) {
  const close = open.startsWith("${") ? "}" : open.startsWith("{{{") ? "}}}" : "}}"
  return (view: EditorView, completion: Option, from: number, to: number) => {
    const behind = view.state.sliceDoc(to, to + close.length + 1)
    const there = /^ ?\}*/.exec(behind)![0].trim().length
    const text = completion.label + close.slice(Math.min(there, close.length))
    view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + completion.label.length + close.length }, userEvent: "input.complete" })
  }
}

/** placeholders suggests what can stand in brackets. */
function placeholders(completions: Completion[], context: CompletionContext): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos)
  const m = opening.exec(line.text.slice(0, context.pos - line.from))
  if (!m) return null
  const apply = closing(m[0])
  return { from: context.pos - m[1]!.length, options: completions.filter((c) => c.in !== "expression").map((c) => option(c, apply)), validFor: /^[^{}]*$/ }
}

/** completeText suggests what placeholders can read, once they are opened. */
export function completeText(completions: Completion[]): CompletionSource {
  return (context) => placeholders(completions, context)
}

/** completeExpression suggests what an expression can read, and the functions. */
export function completeExpression(completions: Completion[]): CompletionSource {
  return (context) => {
    const inside = placeholders(completions, context)
    if (inside) return inside
    const word = context.matchBefore(/[\p{L}_$][\p{L}\p{N}_$.[\]"-]*/u)
    if (!word && !context.explicit) return null
    return {
      from: word?.from ?? context.pos,
      options: [...completions.filter((c) => c.in !== "placeholder").map((c) => option(c)), ...functions.map(([label, detail]): Option => ({ label, detail, apply: label + "(", boost: -1 }))],
      validFor: /^[\p{L}\p{N}_$.[\]"-]*$/u,
    }
  }
}

/** Resolved is a path that stands in a text, with what it was the last time. */
export type Resolved = { path: string; value: unknown; from: string }

const bracket = /(?<!\\)(?:\{\{\{([^{}]*)\}\}\}|\{\{([^{}]*)\}\}|\$\{([^{}]*)\})/g

/** filledIn is what a text becomes with the values that are known; undefined if one is not, or if the text is nothing but one placeholder. */
export function filledIn(text: string, completions: Completion[]): string | undefined {
  let known = true
  let count = 0
  const filled = text.replace(bracket, (whole, a?: string, b?: string, c?: string) => {
    const got = valueAt(completions, (a ?? b ?? c ?? "").trim())
    count++
    if (!got || whole === text.trim()) known = false
    return got ? (typeof got.value === "string" ? got.value : JSON.stringify(got.value)) : whole
  })
  return known && count > 0 ? filled : undefined
}

/** resolvedIn lists the paths of a text whose last value is known, each once. */
export function resolvedIn(text: string, completions: Completion[], expression: boolean, limit = 3): Resolved[] {
  const paths = new Set<string>()
  for (const m of text.matchAll(bracket)) paths.add((m[1] ?? m[2] ?? m[3] ?? "").trim())
  if (expression) {
    const bare = text.replace(/\{\{[^{}]*\}\}|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, (s) => " ".repeat(s.length))
    for (const m of bare.matchAll(/(?<![\p{L}\p{N}_$.])[\p{L}_$][\p{L}\p{N}_$]*(?:\.[\p{L}_$][\p{L}\p{N}_$]*|\[\d+\])*(?!\s*\()/gu)) paths.add(m[0])
  }
  const out: Resolved[] = []
  for (const path of paths) {
    const known = valueAt(completions, path)
    if (known) out.push({ path, ...known })
    if (out.length === limit) break
  }
  return out
}
