import { Button, Group, Input, MultiSelect, NumberInput, PasswordInput, Select, SimpleGrid, Stack, Switch, TagsInput, Textarea, TextInput } from "@mantine/core"
import { type FormEvent, type ReactNode, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { Failure } from "@/api/client"
import { Code } from "@/parts/code"
import { Failed } from "@/parts/states"
import { language } from "@/words"
import { jsonSaying } from "@/parts/syntax"
import { read, type Value, write } from "./record"

export type Option = { value: string; label: string }

/** Field is one field of a record, named by its path in it: price.input. */
export type Field = {
  name: string
  label: string
  help?: string
  required?: boolean
  placeholder?: string
  disabled?: boolean
  /** It is not often needed: it is shown when it has a value, or when somebody asks for more. */
  more?: boolean
  /** Of a number: how much one of it is in the record, such as the bytes of a gibibyte. */
  scale?: number
  /** It is shown only while this holds for what has been entered so far. */
  when?: (value: Value) => boolean
} & ({ kind: "text" | "long" | "secret" | "number" | "switch" | "list" | "json" } | { kind: "choice" | "choices"; options: Option[]; free?: boolean })

type Props = {
  fields: Field[]
  start: Value
  verb: string
  onSave: (value: Value) => Promise<unknown>
  onCancel?: () => void
  readOnly?: boolean
  /** The fields stand beside each other where there is room. */
  wide?: boolean
  /** Stands between the fields and the buttons. */
  children?: (value: Value) => ReactNode
}

/**
 * RecordForm is the form of a setting. The server decides what is right: what it refuses is shown at the field that it names, and what was typed stays.
 */
export function RecordForm({ fields, start, verb, onSave, onCancel, readOnly, wide, children }: Props) {
  const { t } = useTranslation("places")
  const [value, setValue] = useState(start)
  const [texts, setTexts] = useState<Record<string, string>>({})
  const [failure, setFailure] = useState<unknown>()
  const [broken, setBroken] = useState<Record<string, string>>({})
  const [busy, setBusy] = useState(false)
  const [all, setAll] = useState(() => fields.some((f) => f.more && read(start, f.name) !== undefined))
  const box = useRef<HTMLFormElement>(null)
  const fitting = fields.filter((f) => !f.when || f.when(value))
  const shown = fitting.filter((f) => all || !f.more)
  const first = shown.find((f) => !f.disabled)?.name
  const refused = failure instanceof Failure ? (failure.problem?.errors ?? []) : []
  const errorOf = (name: string) =>
    broken[name] ??
    refused
      .filter((e) => e.path === name || e.path.startsWith(name + ".") || e.path.startsWith(name + "["))
      .map((e) => (language() === "zh" && e.message_zh ? e.message_zh : e.message))
      .join(" · ")
  const atFields = refused.length > 0 && refused.every((e) => shown.some((f) => errorOf(f.name) !== "" && (e.path === f.name || e.path.startsWith(f.name + ".") || e.path.startsWith(f.name + "["))))
  const set = (name: string, next: unknown) => setValue((now) => write(now, name, next))
  const save = async (event: FormEvent) => {
    event.preventDefault()
    const wrong: Record<string, string> = {}
    let sent = value
    for (const f of shown) {
      const text = texts[f.name]
      if (f.kind !== "json" || text === undefined) continue
      try {
        sent = write(sent, f.name, text.trim() === "" ? undefined : JSON.parse(text))
      } catch (error) {
        wrong[f.name] = t("form.noJSON", { error: jsonSaying(text, error) })
      }
    }
    setBroken(wrong)
    setFailure(undefined)
    if (Object.keys(wrong).length === 0) {
      setBusy(true)
      try {
        await onSave(sent)
        return
      } catch (error) {
        setFailure(error)
        setAll(true)
      } finally {
        setBusy(false)
      }
    }
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus())
  }
  return (
    <form ref={box} onSubmit={(e) => void save(e)} noValidate autoComplete="off">
      <Stack gap="sm">
        <SimpleGrid cols={wide ? { base: 1, sm: 2 } : 1} spacing="sm" style={{ alignItems: "end" }}>
        {shown.map((f) => (
          <FieldInput
            key={f.name}
            field={f}
            focus={onCancel !== undefined && f.name === first}
            value={read(value, f.name)}
            text={texts[f.name]}
            error={errorOf(f.name) || undefined}
            readOnly={readOnly}
            onChange={(next) => set(f.name, next)}
            onText={(next) => setTexts((now) => ({ ...now, [f.name]: next }))}
          />
        ))}
        </SimpleGrid>
        {shown.length < fitting.length && (
          <Button variant="subtle" size="compact-sm" w="fit-content" onClick={() => setAll(true)}>
            {t("form.more", { count: fitting.length - shown.length })}
          </Button>
        )}
        {children?.(value)}
        {failure !== undefined && !atFields && <Failed error={failure} lost={t("form.kept")} />}
        {!readOnly && (
          <Group justify="flex-end" gap="sm">
            {onCancel && (
              <Button variant="default" onClick={onCancel}>
                {t("cancel")}
              </Button>
            )}
            <Button type="submit" loading={busy}>
              {verb}
            </Button>
          </Group>
        )}
      </Stack>
    </form>
  )
}

type InputProps = { field: Field; focus?: boolean; value: unknown; text?: string; error?: string; readOnly?: boolean; onChange: (value: unknown) => void; onText: (text: string) => void }

function FieldInput({ field: f, focus, value, text, error, readOnly, onChange, onText }: InputProps) {
  const { t } = useTranslation("places")
  const same = { label: f.label, description: f.help, withAsterisk: f.required, error, placeholder: f.placeholder, disabled: f.disabled, readOnly, "data-autofocus": focus || undefined }
  const words = typeof value === "string" ? value : ""
  const typed = (v: string) => onChange(v === "" ? undefined : v)
  const list = Array.isArray(value) ? (value as unknown[]).map(String) : []
  switch (f.kind) {
    case "text":
      return <TextInput {...same} value={words} onChange={(e) => typed(e.currentTarget.value)} />
    case "long":
      return <Textarea {...same} autosize minRows={2} maxRows={10} value={words} onChange={(e) => typed(e.currentTarget.value)} />
    case "secret":
      return <PasswordInput {...same} autoComplete="new-password" value={words} onChange={(e) => typed(e.currentTarget.value)} visibilityToggleButtonProps={{ "aria-label": t("form.show") }} />
    case "number":
      return <NumberInput {...same} hideControls value={typeof value === "number" ? value / (f.scale ?? 1) : ""} onChange={(v) => onChange(v === "" ? undefined : f.scale ? Math.round(Number(v) * f.scale) : Number(v))} />
    case "switch":
      return <Switch label={f.label} description={f.help} error={error} disabled={f.disabled || readOnly} checked={value === true} onChange={(e) => onChange(e.currentTarget.checked)} />
    case "list":
      return <TagsInput {...same} value={list} onChange={(v) => onChange(v.length ? v : undefined)} clearable={false} />
    case "choice":
      return <Select {...same} data={f.options} value={words || null} onChange={(v) => onChange(v ?? undefined)} clearable={!f.required} clearButtonProps={{ "aria-label": t("form.clear") }} searchable={f.options.length > 8} nothingFoundMessage={t("form.nothing")} allowDeselect={!f.required} />
    case "choices":
      return <MultiSelect {...same} data={f.options} value={list} onChange={(v) => onChange(v.length ? v : undefined)} searchable={f.options.length > 8} />
    case "json":
      return (
        <Input.Wrapper label={f.label} labelElement="div" description={f.help} error={error} withAsterisk={f.required}>
          <Code label={f.label} language="json" value={text ?? (value === undefined ? "" : JSON.stringify(value, null, 2))} onChange={onText} readOnly={readOnly} invalid={!!error} minLines={3} maxLines={18} />
        </Input.Wrapper>
      )
  }
}
