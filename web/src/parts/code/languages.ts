import { LanguageSupport, StreamLanguage, type StringStream } from "@codemirror/language"
import type { Extension } from "@codemirror/state"
import { Decoration, MatchDecorator, ViewPlugin, type DecorationSet, type EditorView, type ViewUpdate } from "@codemirror/view"
import type { CodeLanguage } from "../code"

const words = new Set(["and", "or", "not", "in"])
const atoms = new Set(["true", "false", "null", "undefined"])

// The language of conditions and conversions: values of JSON, operators, functions and one-expression lambdas.
const expression = StreamLanguage.define({
  name: "expression",
  token(stream: StringStream) {
    if (stream.eatSpace()) return null
    if (stream.match(/^(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)/)) return "string"
    if (stream.match(/^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return "number"
    const name = stream.match(/^[\p{L}_$][\p{L}\p{N}_$]*/u) as RegExpMatchArray | null
    if (name) {
      if (words.has(name[0])) return "keyword"
      if (atoms.has(name[0])) return "atom"
      return /^\s*\(/.test(stream.string.slice(stream.pos)) ? "variableName.function" : "variableName"
    }
    if (stream.match(/^(?:===?|!==?|<=?|>=?|=>|&&|\|\||\?\?|\?\.|[-+*/%!?:])/)) return "operator"
    stream.next()
    return null
  },
  languageData: { closeBrackets: { brackets: ["(", "[", "{", "'", '"'] } },
})

/** grammar loads what a language needs to be highlighted; each is fetched when it is first used. */
export async function grammar(language: CodeLanguage): Promise<Extension> {
  switch (language) {
    case "yaml":
      return (await import("@codemirror/lang-yaml")).yaml()
    case "python":
      return (await import("@codemirror/lang-python")).python()
    case "javascript":
      return (await import("@codemirror/lang-javascript")).javascript()
    case "sql":
      return (await import("@codemirror/lang-sql")).sql()
    case "json":
      return (await import("@codemirror/lang-json")).json()
    case "markdown":
      return (await import("@codemirror/lang-markdown")).markdown()
    case "expression":
      return new LanguageSupport(expression)
    default:
      return []
  }
}

/** placeholder finds the placeholders of a text: {{…}}, {{{…}}} and ${…}, unless a backslash stands before them. */
export const placeholder = () => /(?<!\\)(?:\{\{\{[^{}\n]*\}\}\}|\{\{[^{}\n]*\}\}|\$\{[^{}\n]*\})/g

/** placeholders marks the placeholders of a text, whatever its language. */
export const placeholders = ViewPlugin.fromClass(
  class {
    marks: DecorationSet
    constructor(view: EditorView) {
      this.marks = matcher.createDeco(view)
    }
    update(update: ViewUpdate) {
      this.marks = matcher.updateDeco(update, this.marks)
    }
  },
  { decorations: (plugin) => plugin.marks },
)

const matcher = new MatchDecorator({ regexp: placeholder(), decoration: Decoration.mark({ class: "cm-placeholder-mark" }) })
