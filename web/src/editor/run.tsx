import { Button, Group, Modal, NumberInput, Select, Stack, Switch, Text, Textarea, TextInput } from "@mantine/core"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useNavigate } from "react-router"
import { call, client } from "@/api/client"
import { isFields, type Definition, listOf, type NodeDef, textOf } from "@/graph/definition"
import { Code } from "@/parts/code"
import { Failed } from "@/parts/states"
import { jsonSaying } from "@/parts/syntax"

type Fields = Record<string, unknown>
type Props = {
  definition: Definition
  /** Saves what is not saved, and returns the id to run; undefined if that did not work. */
  saved: () => Promise<string | undefined>
  onClose: () => void
}

const simple = (s: Fields) => ["string", "number", "integer", "boolean"].includes(textOf(s.type)) || Array.isArray(s.enum)

function begin(schema: Fields): Fields {
  const properties = isFields(schema.properties) ? schema.properties : {}
  return Object.fromEntries(Object.entries(properties).flatMap(([k, s]) => (isFields(s) && s.default !== undefined ? [[k, s.default]] : isFields(s) && s.type === "boolean" ? [[k, false]] : [])))
}

/** Run asks for the inputs that the workflow declares, starts the saved revision, and goes to the execution. */
export function Run({ definition, saved, onClose }: Props) {
  const { t } = useTranslation("editor")
  const go = useNavigate()
  const triggers = definition.nodes.filter((n) => n.kind.startsWith("TRIGGER.") && n.configurations.enabled !== false)
  const [trigger, setTrigger] = useState<NodeDef | undefined>(triggers.find((n) => n.kind === "TRIGGER.MANUAL") ?? triggers[0])
  const schema = isFields(trigger?.configurations.input_schema) ? trigger.configurations.input_schema : {}
  const properties = Object.entries(isFields(schema.properties) ? schema.properties : {}).filter((e): e is [string, Fields] => isFields(e[1]))
  const [inputs, setInputs] = useState<Fields>(() => begin(schema))
  const [text, setText] = useState<string>()
  const [wrong, setWrong] = useState<ReadonlyMap<string, string>>(new Map())
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const asText = text !== undefined || properties.length === 0

  const start = async () => {
    setError(undefined)
    let given: unknown = inputs
    if (asText) {
      try {
        given = JSON.parse(text?.trim() || "{}")
      } catch (e) {
        setError(new Error(t("run.notJson", { message: jsonSaying(text ?? "", e) })))
        return
      }
    }
    setBusy(true)
    try {
      const id = await saved()
      if (id === undefined) return onClose()
      const answer = await call(client.POST("/api/v1/workflows/{id}/execute", { params: { path: { id }, header: { "Idempotency-Key": crypto.randomUUID() } }, body: { inputs: given as never, ...(trigger && triggers.length > 1 ? { trigger_node: trigger.id } : {}) } }))
      void go(`/executions/${encodeURIComponent(answer.execution_id)}`)
    } catch (e) {
      setError(e)
    } finally {
      setBusy(false)
    }
  }
  const set = (name: string, value: unknown) => setInputs((now) => (value === undefined || value === "" ? Object.fromEntries(Object.entries(now).filter(([k]) => k !== name)) : { ...now, [name]: value }))
  const setJson = (name: string, said: string) => {
    try {
      set(name, said.trim() ? JSON.parse(said) : undefined)
      setWrong((now) => new Map([...now].filter(([k]) => k !== name)))
    } catch (e) {
      setWrong((now) => new Map(now).set(name, jsonSaying(said, e)))
    }
  }
  return (
    <Modal opened onClose={onClose} title={t("run.title")} size="lg" closeButtonProps={{ "aria-label": t("close") }}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          void start()
        }}
      >
        <Stack>
          {triggers.length > 1 && (
            <Select
              label={t("run.trigger")}
              data={triggers.map((n) => ({ value: n.id, label: n.name }))}
              value={trigger?.id ?? null}
              allowDeselect={false}
              onChange={(id) => {
                const next = triggers.find((n) => n.id === id)
                setTrigger(next)
                setInputs(begin(isFields(next?.configurations.input_schema) ? next.configurations.input_schema : {}))
              }}
            />
          )}
          {asText ? (
            <Stack gap={4}>
              <Text fz="sm">{t("run.json")}</Text>
              <Code value={text ?? ""} onChange={setText} language="json" label={t("run.json")} placeholder="{}" minLines={5} maxLines={20} />
            </Stack>
          ) : (
            properties.map(([name, s]) => <Field key={name} name={name} schema={s} required={listOf(schema.required).includes(name)} value={inputs[name]} wrong={wrong.get(name)} onChange={(v) => set(name, v)} onJson={(v) => setJson(name, v)} />)
          )}
          {properties.length > 0 && (
            <Button variant="subtle" size="compact-sm" w="fit-content" onClick={() => setText(asText ? undefined : JSON.stringify(inputs, null, 2))}>
              {asText ? t("run.asForm") : t("run.asJson")}
            </Button>
          )}
          {error !== undefined && <Failed error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t("cancel")}
            </Button>
            <Button type="submit" loading={busy} disabled={wrong.size > 0}>
              {t("run.start")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

type FieldProps = { name: string; schema: Fields; required: boolean; value: unknown; wrong?: string; onChange: (v: unknown) => void; onJson: (v: string) => void }

function Field({ name, schema, required, value, wrong, onChange, onJson }: FieldProps) {
  const { t } = useTranslation("editor")
  const [first] = useState(() => (value === undefined ? "" : JSON.stringify(value, null, 2)))
  const shared = { label: textOf(schema.title) || name, description: textOf(schema.description) || undefined, required }
  if (!simple(schema)) return <Textarea {...shared} autosize minRows={3} maxRows={12} ff="monospace" defaultValue={first} error={wrong && t("run.notJson", { message: wrong })} placeholder={schema.type === "array" ? "[]" : "{}"} onChange={(e) => onJson(e.currentTarget.value)} />
  if (Array.isArray(schema.enum)) return <Select {...shared} data={schema.enum.map((v) => textOf(v))} value={textOf(value) || null} onChange={(v) => onChange((schema.enum as unknown[]).find((e) => textOf(e) === v))} clearable={!required} />
  if (schema.type === "boolean") return <Switch label={shared.label} description={shared.description} checked={value === true} onChange={(e) => onChange(e.currentTarget.checked)} />
  if (schema.type === "string") return <TextInput {...shared} value={textOf(value)} onChange={(e) => onChange(e.currentTarget.value)} />
  return <NumberInput {...shared} value={typeof value === "number" ? value : ""} onChange={(v) => onChange(v === "" ? undefined : Number(v))} allowDecimal={schema.type !== "integer"} />
}
