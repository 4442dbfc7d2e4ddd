import { NativeSelect, SegmentedControl, Switch, TextInput } from "@mantine/core"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useForm } from "../context"
import { isWrong } from "../problems"
import { hasPlaceholder, offered, takesNull } from "../schema"
import { Known } from "./known"
import type { EditorProps } from "./types"

/** ChoiceEditor chooses one of a few values. */
export function ChoiceEditor({ schema, value, onChange, describedBy, id, label, problems }: EditorProps) {
  const { t } = useTranslation("kindform")
  const { readOnly } = useForm()
  const usual = schema.default
  return (
    <NativeSelect
      id={id}
      size="sm"
      aria-label={label}
      aria-describedby={describedBy}
      error={isWrong(problems)}
      disabled={readOnly}
      value={typeof value === "string" ? value : ""}
      onChange={(e) => onChange(e.currentTarget.value === "" ? undefined : e.currentTarget.value)}
      data={[{ value: "", label: usual === undefined ? t("notSet") : t("usual", { value: String(usual) }) }, ...offered(schema, value)]}
    />
  )
}

/** FlagEditor switches something on or off; with a third state where nothing is an answer too. */
export function FlagEditor({ schema, value, onChange, describedBy, id, label }: EditorProps) {
  const { t } = useTranslation("kindform")
  const { readOnly } = useForm()
  if (takesNull(schema))
    return (
      <SegmentedControl
        id={id}
        size="xs"
        aria-label={label}
        aria-describedby={describedBy}
        disabled={readOnly}
        value={value === undefined ? "" : String(value)}
        onChange={(v) => onChange(v === "" ? undefined : v === "true")}
        data={[
          { value: "", label: t("either") },
          { value: "true", label: t("yes") },
          { value: "false", label: t("no") },
        ]}
      />
    )
  const on = value === undefined ? schema.default === true : value === true
  return (
    <Switch
      id={id}
      size="sm"
      aria-label={label}
      aria-describedby={describedBy}
      disabled={readOnly}
      checked={on}
      onChange={(e) => onChange(e.currentTarget.checked)}
      label={value === undefined ? t(on ? "onUsual" : "offUsual") : t(on ? "on" : "off")}
    />
  )
}

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** NumberEditor takes a number, or a text with a placeholder. What is neither is kept as it was typed, so that nothing is lost; validation says what is wrong with it. */
export function NumberEditor({ schema, value, onChange, describedBy, id, label, problems }: EditorProps) {
  const { t } = useTranslation("kindform")
  const { readOnly } = useForm()
  const [text, setText] = useState(written(value))
  // What is typed may be another spelling of the same number: 1.0, 1e3. It stays as it is until the value changes from outside.
  if (!sameNumber(text, value)) setText(written(value))
  const wrong = text.trim() !== "" && !number.test(text.trim()) && !hasPlaceholder(text)
  const { minimum: low, maximum: high } = schema
  const range = low !== undefined && high !== undefined ? t("range", { low, high }) : low !== undefined ? t("atLeast", { low }) : high !== undefined ? t("atMost", { high }) : undefined
  return (
    <>
      <TextInput
        id={id}
        size="sm"
        inputMode="decimal"
        autoComplete="off"
        aria-label={label}
        aria-describedby={describedBy}
        aria-invalid={wrong || isWrong(problems)}
        error={wrong ? t("noNumber", { example: "{{start.outputs.count}}" }) : isWrong(problems)}
        readOnly={readOnly}
        value={text}
        placeholder={schema.default === undefined || schema.default === null ? undefined : String(schema.default)}
        onChange={(e) => {
          const next = e.currentTarget.value
          setText(next)
          onChange(readNumber(next))
        }}
        rightSection={range ? <span aria-hidden>{range}</span> : undefined}
        rightSectionWidth={range ? range.length * 7 + 16 : undefined}
        rightSectionProps={{ style: { fontSize: "var(--mantine-font-size-xs)", color: "var(--mantine-color-dimmed)", justifyContent: "flex-end", paddingRight: 8, pointerEvents: "none" } }}
      />
      <Known text={text} />
    </>
  )
}

const written = (value: unknown) => (value === undefined || value === null ? "" : String(value))

function readNumber(text: string): unknown {
  const trimmed = text.trim()
  if (trimmed === "") return undefined
  return number.test(trimmed) && Number.isFinite(Number(trimmed)) ? Number(trimmed) : text
}

const sameNumber = (text: string, value: unknown) => readNumber(text) === (value ?? undefined)
