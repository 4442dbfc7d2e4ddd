import { Text } from "@mantine/core"
import { useId, useMemo } from "react"
import { useTranslation } from "react-i18next"
import { Form } from "./context"
import type { Completion } from "./completions"
import { ObjectFields } from "./fields"
import classes from "./kindform.module.css"
import { type FormProblem, placed } from "./problems"
import { type FieldSchema, type NodeKind, sharedNames, type Values } from "./schema"
import type { Evaluate } from "./worth"

export { completionsFor, type Completion } from "./completions"
export type { FormProblem } from "./problems"
export type { NodeKind } from "./schema"
export { NodeSettings, type SettingsNode } from "./settings"
export type { Evaluate } from "./worth"

export type KindFormProps = {
  kind: NodeKind
  /** What nodes of every kind can be configured with, as GET /node-kinds says. */
  common: FieldSchema
  /** The configurations of the node. */
  value: Values | null | undefined
  /** Is given the new configurations. What was not touched is in them as it was, in the same order. */
  onChange: (value: Values) => void
  /** What validation says of the node; paths are those of the server: nodes[1].configurations.url. */
  problems?: FormProblem[]
  completions?: Completion[]
  readOnly?: boolean
  /** Says what expressions and texts are worth; without it only values of paths are shown. */
  evaluate?: Evaluate
}

const none: never[] = []

/**
 * KindForm is the form for the configurations of any kind, made of its schema. The settings that every kind has (timeout, what a failure becomes, …) are those of NodeSettings and stay untouched here.
 */
export default function KindForm({ kind, common, value, onChange, problems = none, completions = none, readOnly = false, evaluate }: KindFormProps) {
  const { t } = useTranslation("kindform")
  const id = useId()
  const form = useMemo(() => ({ kind, completions, readOnly, id, evaluate }), [kind, completions, readOnly, id, evaluate])
  const shared = useMemo(() => sharedNames(common), [common])
  const own = useMemo(() => placed(problems, "configurations").filter((p) => !shared.includes(p.way[0] ?? "")), [problems, shared])
  const values = value ?? {}
  const named = "credential_id" in values
  const schema = useMemo(() => withCredential(kind, named, t("credentialMeaning")), [kind, named, t])
  const usual = useMemo(() => [...new Set((kind.examples ?? []).flatMap((e) => Object.keys((e.configurations ?? {}) as Values)))], [kind])
  const nothing = Object.keys(schema.properties ?? {}).length === 0 && Object.keys(values).every((k) => shared.includes(k))
  return (
    <Form.Provider value={form}>
      <div className={classes.form} data-kind={kind.name}>
        {nothing && schema.additionalProperties === false ? (
          <Text fz="sm" c="dimmed">
            {t("nothingToSet")}
          </Text>
        ) : (
          <ObjectFields key={kind.name} schema={schema} value={values} onChange={onChange} problems={own} at="" elsewhere={shared} usual={usual} />
        )}
      </div>
    </Form.Provider>
  )
}

/** withCredential is the kind's own schema with the credential, where the kind can use one or has one all the same. */
function withCredential(kind: NodeKind, named: boolean, meaning: string): FieldSchema {
  const schema = kind.config_schema as FieldSchema
  const needs = kind.needs?.credential ?? []
  if (schema.properties?.credential_id || (needs.length === 0 && !named)) return schema
  const required = needs.length > 0 && !kind.needs?.optional ? [...(schema.required ?? []), "credential_id"] : schema.required
  return { ...schema, required, properties: { credential_id: { type: "string", description: meaning, "x-description-zh": meaning }, ...schema.properties } }
}
