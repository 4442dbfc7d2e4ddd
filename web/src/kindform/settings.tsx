import { Stack } from "@mantine/core"
import { useId, useMemo } from "react"
import { useTranslation } from "react-i18next"
import type { Completion } from "./completions"
import { Form } from "./context"
import { ObjectFields } from "./fields"
import { type FormProblem, placed } from "./problems"
import { type FieldSchema, isObject, type NodeKind, sharedFields, sharedNames, titleOf, type Values } from "./schema"
import { withKey } from "./values"

/** SettingsNode is a node of a definition, as the file has it. */
export type SettingsNode = { id: string; name?: string; description?: string; configurations?: Values | null; input_params?: Values | null; output_params?: Values | null }

type Props<N extends SettingsNode> = { node: N; kind: NodeKind; /** What nodes of every kind can be configured with, as GET /node-kinds says. */ common: FieldSchema; onChange: (node: N) => void; problems?: FormProblem[]; completions?: Completion[]; readOnly?: boolean }

const none: never[] = []
const own = ["name", "description", "input_params", "output_params"]

/**
 * NodeSettings edits what every node has: its name and description, what becomes of a failure, time limit and repetitions, what is laid over its input and
 * what it publishes. It is given a node and hands on a node in which only that has changed.
 */
export function NodeSettings<N extends SettingsNode>({ node, kind, common, onChange, problems = none, completions = none, readOnly = false }: Props<N>) {
  const { t } = useTranslation("kindform")
  const id = useId()
  const form = useMemo(() => ({ kind, completions, readOnly, id }), [kind, completions, readOnly, id])
  const schemas = useMemo(() => ({ node: nodeSchema(t), common: commonSchema(t, common, kind), data: dataSchema(t) }), [t, common, kind])
  const configurations = isObject(node.configurations) ? node.configurations : {}
  const wrong = useMemo(() => own.flatMap((field) => placed(problems, field).map((p) => ({ ...p, way: [field, ...p.way] }))), [problems])
  const shared = useMemo(() => sharedNames(common), [common])
  const wrongShared = useMemo(() => placed(problems, "configurations").filter((p) => shared.includes(p.way[0] ?? "")), [problems, shared])
  const labels = useMemo(() => Object.fromEntries([...own.map((name) => [name, {}] as const), ...Object.entries(sharedFields(common))].map(([name, s]) => [name, t(`common.${name}.label`, { defaultValue: titleOf(name, s) })])), [t, common])
  const all = Object.keys(node)
  const others = Object.keys(configurations).filter((k) => !shared.includes(k))
  const change = (next: Values) => onChange(next as unknown as N)
  return (
    <Form.Provider value={form}>
      <Stack gap={18} data-settings={node.id}>
        <ObjectFields schema={schemas.node} value={node} onChange={change} problems={wrong} at="node" elsewhere={all.filter((k) => k !== "name" && k !== "description")} usual={["name", "description"]} labels={labels} />
        <ObjectFields
          schema={schemas.common}
          value={configurations}
          onChange={(v) => change(withKey(node as Values, "configurations", Object.keys(v).length === 0 && node.configurations === undefined ? undefined : v))}
          problems={wrongShared}
          at="common"
          elsewhere={others}
          usual={["enabled", "on_error", "timeout", "max_retries"]}
          labels={labels}
        />
        <ObjectFields schema={schemas.data} value={node} onChange={change} problems={wrong} at="node" elsewhere={all.filter((k) => k !== "input_params" && k !== "output_params")} usual={["input_params", "output_params"]} labels={labels} />
      </Stack>
    </Form.Provider>
  )
}

type T = (key: string, options?: { defaultValue: string }) => string

// A field that the words of the UI do not know is described by the server.
function about(t: T, name: string, schema: FieldSchema): [string, FieldSchema] {
  const meaning = t(`common.${name}.meaning`, { defaultValue: "" })
  if (!meaning) return [name, schema]
  return [name, { ...schema, description: meaning, "x-description-zh": meaning }]
}

const nodeSchema = (t: T): FieldSchema => ({ type: "object", additionalProperties: false, properties: Object.fromEntries([about(t, "name", { type: "string", "x-fixed": true }), about(t, "description", { type: "string" })]) })

const dataSchema = (t: T): FieldSchema => ({ type: "object", additionalProperties: false, properties: Object.fromEntries([about(t, "input_params", { type: "object" }), about(t, "output_params", { type: "object" })]) })

// What most people look for stands first; the others follow as the server has them.
const first = ["enabled", "on_error", "default_output"]

/** commonSchema says what every kind can be configured with besides its own fields; times, repetitions and what becomes of an unknown outcome are those of the kind. */
function commonSchema(t: T, common: FieldSchema, kind: NodeKind): FieldSchema {
  const shared = sharedFields(common)
  const own: Record<string, unknown> = { timeout: kind.timeout, max_retries: kind.max_retries, on_unknown: kind.on_unknown }
  const names = [...first.filter((name) => name in shared), ...Object.keys(shared).filter((name) => !first.includes(name))]
  return { ...common, properties: Object.fromEntries(names.map((name) => about(t, name, name in own ? { ...shared[name], default: own[name] } : shared[name]!))) }
}
