import { Text } from "@mantine/core"
import { useMemo, useState } from "react"
import { useTranslation } from "react-i18next"
import { Code } from "@/parts/code"
import { completeText } from "../complete"
import { useForm } from "../context"
import { isWrong } from "../problems"
import { readLoose, writeLoose } from "../values"
import { Known } from "./known"
import type { EditorProps } from "./types"

/**
 * DataEditor edits any value as YAML. The text stays as it was typed while it means the same value. What cannot be read yet says so; it is handed on as a
 * text when somebody goes on to something else, so that it is not lost, and validation tells what is wrong with it.
 */
export function DataEditor({ value, onChange, label, describedBy, id, problems, lines = 1 }: Omit<EditorProps, "schema" | "name" | "siblings"> & { lines?: number }) {
  const { t } = useTranslation("kindform")
  const { completions, readOnly } = useForm()
  const [text, setText] = useState(() => writeLoose(value))
  const [told, setTold] = useState(value)
  if (told !== value) {
    setTold(value)
    // Somebody else has changed it; the same value read again is not a change, and what cannot be read yet stays.
    if (JSON.stringify(told) !== JSON.stringify(value)) setText(writeLoose(value))
  }
  const read = useMemo(() => readLoose(text), [text])
  const marks = useMemo(() => (read.problem === undefined ? undefined : [{ message: read.detail || t("quotePlaceholder", { example: "{{start.outputs.name}}" }), line: read.line, column: read.column }]), [read, t])
  // In a short text the Tab key goes on to the next field; in a longer one it indents.
  const short = lines === 1 && !text.includes("\n")
  return (
    <>
      <Code
        value={text}
        onChange={(next) => {
          setText(next)
          const now = readLoose(next)
          if (now.problem !== undefined) return
          setTold(now.value)
          onChange(now.value)
        }}
        onBlur={() => {
          if (read.problem === undefined || readOnly) return
          setTold(text)
          onChange(text)
        }}
        language={short ? "plain" : "yaml"}
        label={label}
        describedBy={describedBy}
        id={id}
        readOnly={readOnly}
        invalid={read.problem !== undefined || isWrong(problems)}
        problems={marks}
        minLines={lines}
        takesFields
        lineNumbers={!short && text.split("\n").length > 6}
        complete={completeText(completions)}
      />
      {read.problem !== undefined && (
        <Text fz="xs" c="var(--state-red)" role="status">
          {read.problem === "placeholder" ? t("quotePlaceholder", { example: "{{start.outputs.name}}" }) : t("noYaml", { detail: read.detail })}
        </Text>
      )}
      <Known text={text} />
    </>
  )
}
