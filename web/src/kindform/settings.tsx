import { Stack } from "@mantine/core"
import { useId, useMemo } from "react"
import { useTranslation } from "react-i18next"
import type { Completion } from "./completions"
import { Form } from "./context"
import { ObjectFields } from "./fields"
import { type FormProblem, placed } from "./problems"
import { commonFields, type FieldSchema, isObject, type NodeKind, type Values } from "./schema"
import { withKey } from "./values"

/** SettingsNode is a node of a definition, as the file has it. */
export type SettingsNode = { id: string; name?: string; description?: string; configurations?: Values | null; input_params?: Values | null; output_params?: Values | null }

type Props<N extends SettingsNode> = { node: N; kind: NodeKind; onChange: (node: N) => void; problems?: FormProblem[]; completions?: Completion[]; readOnly?: boolean }

const none: never[] = []
const own = ["name", "description", "input_params", "output_params"]

/**
 * NodeSettings edits what every node has: its name and description, what becomes of a failure, time limit and repetitions, what is laid over its input and
 * what it publishes. It is given a node and hands on a node in which only that has changed.
 */
export function NodeSettings<N extends SettingsNode>({ node, kind, onChange, problems = none, completions = none, readOnly = false }: Props<N>) {
  const { t } = useTranslation("kindform")
  const id = useId()
  const form = useMemo(() => ({ kind, completions, readOnly, id }), [kind, completions, readOnly, id])
  const schemas = useMemo(() => ({ node: nodeSchema(t), common: commonSchema(t, kind), data: dataSchema(t) }), [t, kind])
  const configurations = isObject(node.configurations) ? node.configurations : {}
  const wrong = useMemo(() => own.flatMap((field) => placed(problems, field).map((p) => ({ ...p, way: [field, ...p.way] }))), [problems])
  const common = useMemo(() => placed(problems, "configurations").filter((p) => commonFields.includes(p.way[0] ?? "")), [problems])
  const labels = useMemo(() => Object.fromEntries([...own, ...Object.keys(schemas.common.properties!)].map((name) => [name, t(`common.${name}.label`)])), [t, schemas])
  const all = Object.keys(node)
  const others = Object.keys(configurations).filter((k) => !(k in schemas.common.properties!) && k !== "retry_attempts")
  const change = (next: Values) => onChange(next as unknown as N)
  return (
    <Form.Provider value={form}>
      <Stack gap={18} data-settings={node.id}>
        <ObjectFields schema={schemas.node} value={node} onChange={change} problems={wrong} at="node" elsewhere={all.filter((k) => k !== "name" && k !== "description")} usual={["name", "description"]} labels={labels} />
        <ObjectFields
          schema={schemas.common}
          value={configurations}
          onChange={(v) => change(withKey(node as Values, "configurations", Object.keys(v).length === 0 && node.configurations === undefined ? undefined : v))}
          problems={common}
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

type T = (key: string) => string

function about(t: T, name: string, schema: FieldSchema): [string, FieldSchema] {
  const meaning = t(`common.${name}.meaning`)
  return [name, { ...schema, description: meaning, "x-description-zh": meaning }]
}

const nodeSchema = (t: T): FieldSchema => ({ type: "object", additionalProperties: false, properties: Object.fromEntries([about(t, "name", { type: "string", "x-fixed": true }), about(t, "description", { type: "string" })]) })

const dataSchema = (t: T): FieldSchema => ({ type: "object", additionalProperties: false, properties: Object.fromEntries([about(t, "input_params", { type: "object" }), about(t, "output_params", { type: "object" })]) })

/** commonSchema says what every kind can be configured with besides its own fields; times and repetitions are those of the kind. */
function commonSchema(t: T, kind: NodeKind): FieldSchema {
  return {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries([
      about(t, "enabled", { type: "boolean", default: true }),
      about(t, "on_error", { type: "string", enum: ["fail", "continue", "default_output"], default: "fail" }),
      about(t, "default_output", { "x-with": { on_error: ["default_output"] } }),
      about(t, "timeout", { type: "integer", minimum: 1, maximum: 86400, default: kind.timeout }),
      about(t, "max_retries", { type: "integer", minimum: 0, maximum: 10, default: kind.max_retries, "x-older-names": ["retry_attempts"] }),
      about(t, "on_unknown", { type: "string", enum: ["ask", "retry", "fail"], default: kind.type === "HUMAN_IN_THE_LOOP" ? "retry" : "ask" }),
      about(t, "template_id", { type: "string", "x-names": "template" }),
      about(t, "enable_filling", { type: "boolean" }),
      about(t, "filling_profile", { type: "string", "x-names": "profile", "x-with": { enable_filling: ["true"] } }),
      about(t, "to_user", { type: "boolean" }),
      about(t, "credit_cost", { type: "integer", minimum: 0 }),
    ]),
  }
}
