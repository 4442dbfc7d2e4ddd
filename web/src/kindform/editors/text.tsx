import { useState } from "react"
import { Code } from "@/parts/code"
import { completeExpression, completeText } from "../complete"
import { useForm } from "../context"
import { isWrong } from "../problems"
import { editorOf, textLanguage, typesOf } from "../schema"
import { short } from "../values"
import { Known } from "./known"
import type { EditorProps } from "./types"

/** TextEditor edits texts of every sort: single lines, prompts, expressions, SQL and code. */
export function TextEditor({ name, schema, value, onChange, label, describedBy, id, problems, siblings }: EditorProps) {
  const { completions, readOnly } = useForm()
  const text = value === undefined || value === null ? "" : String(value)
  const { language, lines } = textLanguage(name, schema, text, siblings)
  // A text that has several lines when the form opens, or gets them, keeps its room.
  const [tall, setTall] = useState(lines)
  if (lines > tall) setTall(lines)
  const expression = editorOf(name, schema) === "expression"
  const single = tall === 1 && !text.includes("\n")
  return (
    <>
      <Code
        value={text}
        onChange={(next) => onChange(typed(next, value, typesOf(schema)))}
        language={language}
        label={label}
        describedBy={describedBy}
        id={id}
        readOnly={readOnly}
        invalid={isWrong(problems)}
        single={single}
        takesFields
        minLines={Math.max(1, tall)}
        placeholder={schema.default === undefined || schema.default === null ? undefined : typeof schema.default === "string" ? schema.default : short(schema.default)}
        complete={expression ? completeExpression(completions) : completeText(completions)}
      />
      <Known text={text} expression={expression} whole={expression || editorOf(name, schema) === "text"} />
    </>
  )
}

/** typed keeps the type of a value that is still one of it: 42 stays a number where a text is allowed too. */
function typed(text: string, before: unknown, types: string[]): unknown {
  if (text === "") return undefined
  if (typeof before === "number" && !types.includes("integer") && /^-?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (typeof before === "boolean" && /^(true|false)$/.test(text)) return text === "true"
  if (types.includes("integer") && /^-?\d{1,15}$/.test(text)) return Number(text)
  return text
}
