import type { Diagnostic } from "@codemirror/lint"
import type { Text } from "@codemirror/state"
import type { CodeProblem } from "../code"

/** toDiagnostics finds the places of problems in a text; one whose place is not there any more stands at the end. */
export function toDiagnostics(doc: Text, problems: CodeProblem[]): Diagnostic[] {
  return problems
    .map((p): Diagnostic => {
      const offset = (line: number, column: number) => {
        if (line > doc.lines) return doc.length
        const l = doc.line(Math.max(1, line))
        return Math.min(l.from + Math.max(0, column - 1), l.to)
      }
      const from = p.line ? offset(p.line, p.column ?? 1) : 0
      const end = p.endLine ? offset(p.endLine, p.endColumn ?? 1) : p.line ? wordEnd(doc, from) : doc.lineAt(0).to
      return { from, to: Math.max(from, end), severity: p.severity ?? "error", message: p.message }
    })
    .sort((a, b) => a.from - b.from)
}

function wordEnd(doc: Text, from: number): number {
  const line = doc.lineAt(from)
  const word = /^[^\s:,\]}]+/.exec(line.text.slice(from - line.from))
  return word ? from + word[0].length : line.to
}
