import { Button, Stack, Text } from "@mantine/core"
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { DataEditor } from "./editors/data"
import { MapEditor } from "./editors/map"
import { Field, ProblemLine } from "./field"
import { useForm } from "./context"
import classes from "./kindform.module.css"
import { here, type Placed, within } from "./problems"
import { applies, asSchema, type FieldSchema, labelOf, type Values, writtenName } from "./schema"
import { withKey } from "./values"

type Props = {
  schema: FieldSchema
  value: Values
  onChange: (value: Values) => void
  problems: Placed[]
  at: string
  nested?: boolean
  /** Keys that are shown elsewhere. */
  elsewhere?: string[]
  /** Fields that most people need, besides those that are required; where others are set instead, they are not in the way. */
  usual?: string[]
  labels?: Record<string, string>
}

// So few that hiding them would hide more than it helps.
const few = 3

/**
 * ObjectFields shows the fields of an object: those that are required, set or usual at once, the others behind a button, what only has a meaning beside another
 * value when that is set. Keys that the schema does not have stay and are shown. A change of one field changes nothing else, and the order stays.
 */
export function ObjectFields({ schema, value, onChange, problems, at, nested = false, elsewhere = [], usual = [], labels = {} }: Props) {
  const { t } = useTranslation("kindform")
  const { readOnly } = useForm()
  const [open, setOpen] = useState(false)
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set())
  const [first] = useState(value)
  const properties = schema.properties ?? {}
  const otherwise = !usual.some((name) => name in first) && Object.keys(first).some((name) => name in properties)
  const groups = schema["x-need"] ?? []
  const all = Object.entries(properties)
    .filter(([name]) => !elsewhere.includes(name))
    .map(([name, s]) => {
      const field = asSchema(s)
      const key = writtenName(value, name, field)
      const set = key in value
      const fitting = applies(field, value, properties)
      const own = within(problems, name, key)
      const group = groups.find((g) => g.includes(name))
      const required = (schema.required ?? []).includes(name)
      // Of fields that stand for each other, those without a value give way once one has it; while somebody writes it they stay.
      const open = !!group && !group.some((n) => writtenName(first, n, asSchema(properties[n])) in first)
      const meant = Object.keys(field["x-with"] ?? {}).some((n) => writtenName(value, n, asSchema(properties[n])) in value)
      const plain = required || open || (usual.includes(name) && !otherwise) || meant
      return { name, key, field, set, fitting, own, group, required, shown: set || seen.has(name) || own.length > 0 || (fitting && plain), possible: fitting }
    })
  const rest = all.filter((f) => !f.shown && f.possible)
  const showAll = readOnly ? false : open || rest.length <= few
  const shown = all.filter((f) => f.shown || (showAll && f.possible))
  const names = new Set(all.flatMap((f) => [f.name, f.key]))
  const unknown = Object.keys(value).filter((k) => !names.has(k) && !elsewhere.includes(k))
  const free = schema.additionalProperties !== false
  const change = (name: string, key: string, v: unknown) => {
    if (!seen.has(name)) setSeen(new Set([...seen, name]))
    onChange(withKey(value, key, v))
  }
  return (
    <Stack gap={nested ? 12 : 18}>
      {here(problems).map((p) => nested || <ProblemLine key={p.message} problem={p} />)}
      {shown.map((f) => (
        <Field
          key={f.name}
          name={f.name}
          label={labels[f.name]}
          schema={f.field}
          value={value[f.key]}
          onChange={(v) => change(f.name, f.key, v)}
          problems={f.own}
          siblings={value}
          at={`${at ? at + "." : ""}${f.name}`}
          required={f.required}
          note={f.set && !f.fitting ? t("noEffect", { when: when(f.field, t) }) : f.group && !f.group.some((n) => writtenName(value, n, asSchema(properties[n])) in value) ? t("oneOf", { names: f.group.map(labelOf).join(t("or")) }) : undefined}
        />
      ))}
      {unknown.length > 0 && !free && (
        <div className={classes.field} data-field={`${at ? at + "." : ""}*`}>
          <Text fz="sm" fw={600}>
            {t("unknown")}
          </Text>
          <Text fz="xs" c="dimmed">
            {t("unknownText")}
          </Text>
          <Stack gap={8} mt={6}>
            {unknown.map((key) => (
              <UnknownKey key={key} name={key} value={value[key]} problems={within(problems, key)} onChange={(v) => onChange(withKey(value, key, v))} at={at} />
            ))}
          </Stack>
        </div>
      )}
      {free && !(readOnly && unknown.length === 0) && (
        <div className={classes.field} data-field={`${at ? at + "." : ""}*`}>
          <Text fz="sm" fw={600}>
            {t("others")}
          </Text>
          <OtherKeys value={value} keys={unknown} problems={problems} onChange={onChange} at={at} />
        </div>
      )}
      {!readOnly && rest.length > few && (
        <div>
          <Button size="compact-sm" variant="subtle" aria-expanded={open} leftSection={open ? <IconChevronUp size={14} /> : <IconChevronDown size={14} />} onClick={() => setOpen(!open)}>
            {open ? t("less") : t("more", { count: rest.length })}
          </Button>
        </div>
      )}
    </Stack>
  )
}

const when = (s: FieldSchema, t: (key: string) => string) =>
  Object.entries(s["x-with"] ?? {})
    .map(([name, values]) => `${labelOf(name)}: ${values.join(t("or"))}`)
    .join(", ")

function UnknownKey({ name, value, problems, onChange, at }: { name: string; value: unknown; problems: Placed[]; onChange: (v: unknown) => void; at: string }) {
  const { id } = useForm()
  return (
    <div data-unknown={name}>
      <Text fz="xs" ff="monospace">
        {name}
      </Text>
      {problems.map((p) => (
        <ProblemLine key={p.message} problem={p} />
      ))}
      <DataEditor id={`${id}-${at}-unknown-${name}`} label={name} value={value} problems={problems} onChange={onChange} />
    </div>
  )
}

/** OtherKeys edits the keys of an object besides those of its schema, where others are allowed. */
function OtherKeys({ value, keys, problems, onChange, at }: { value: Values; keys: string[]; problems: Placed[]; onChange: (v: Values) => void; at: string }) {
  const { t } = useTranslation("kindform")
  const { id } = useForm()
  const own = Object.fromEntries(keys.map((k) => [k, value[k]]))
  const change = (next: unknown) => {
    const wanted = (next ?? {}) as Values
    let out = value
    for (const key of keys) out = withKey(out, key, wanted[key])
    for (const [key, v] of Object.entries(wanted)) if (!keys.includes(key) && !(key in value)) out = withKey(out, key, v)
    onChange(out)
  }
  return <MapEditor value={keys.length ? own : undefined} onChange={change} label={t("others")} id={`${id}-${at}-others`} problems={problems} />
}
