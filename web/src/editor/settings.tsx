import { Stack, Tabs, Text } from "@mantine/core"
import { useMemo, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { stringify } from "yaml"
import type { Schemas } from "@/api/client"
import { isFields, listOf, type NodeDef } from "@/graph/definition"
import type { Kinds } from "@/graph/keys"
import { useKinds } from "@/graph/kinds"
import KindForm, { type Completion, completionsFor, type Evaluate, NodeSettings, type SettingsNode } from "@/kindform"
import { Code } from "@/parts/code"
import { type Plain, readText } from "./rewrite"
import type { FileProblem } from "./use_problems"

type Fields = Record<string, unknown>

export type SettingsProps = {
  /** The whole file, and the last execution: what placeholders can read. */
  value: Plain
  execution?: Schemas["Execution"]
  node: NodeDef
  fields: Fields
  kinds: Kinds
  problems: FileProblem[]
  readOnly: boolean
  evaluate?: Evaluate
  onConfigurations: (value: Fields | undefined) => void
  onNode: (node: Fields) => void
}

/** Settings is the middle column of a node: what its kind is configured with, and what every node has. */
export function Settings({ value, execution, node, fields, kinds, problems, readOnly, evaluate, onConfigurations, onNode }: SettingsProps) {
  const { t } = useTranslation("editor")
  const { common } = useKinds()
  const kind = kinds.get(node.kind)
  const completions = useCompletions(value, node.id, kinds, execution)
  const configurations = isFields(fields.configurations) ? fields.configurations : {}
  const configure = (v: Fields) => onConfigurations(Object.keys(v).length || "configurations" in fields ? v : undefined)
  if (!kind) return <Configurations value={configurations} readOnly={readOnly} onChange={configure} />
  return (
    <Tabs defaultValue="parameters" keepMounted={false}>
      <Tabs.List mb="sm" aria-label={t("drawer.settings")}>
        <Tabs.Tab value="parameters">{t("settings.parameters")}</Tabs.Tab>
        <Tabs.Tab value="node">{t("settings.node")}</Tabs.Tab>
        <Tabs.Tab value="text">YAML</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="parameters">
        <KindForm kind={kind} common={common} value={configurations} onChange={configure} problems={problems} completions={completions} readOnly={readOnly} evaluate={evaluate} />
      </Tabs.Panel>
      <Tabs.Panel value="node">
        <NodeSettings node={fields as SettingsNode} kind={kind} common={common} onChange={(n) => onNode(n as Fields)} problems={problems} completions={completions} readOnly={readOnly} />
      </Tabs.Panel>
      <Tabs.Panel value="text">
        <Configurations value={configurations} readOnly={readOnly} onChange={configure} />
      </Tabs.Panel>
    </Tabs>
  )
}

// What placeholders can read depends on the other nodes; while one node is typed into, it is not looked for again.
function useCompletions(value: Plain, id: string, kinds: Kinds, execution: Schemas["Execution"] | undefined): Completion[] {
  const others = useRef<Plain[]>([])
  const now = isFields(value) ? [...listOf(value.nodes).map((n) => (isFields(n) && n.id === id ? JSON.stringify(n.input_params ?? null) : n)), ...listOf(value.connections)] : []
  if (now.length !== others.current.length || now.some((n, i) => n !== others.current[i])) others.current = now
  const stable = others.current
  // eslint-disable-next-line react-hooks/exhaustive-deps
  return useMemo(() => completionsFor((value ?? {}) as never, id, [...kinds.values()], execution as never), [stable, id, kinds, execution])
}

// Everything that a kind takes can be written, also what no form can draw.
function Configurations({ value, readOnly, onChange }: { value: Fields; readOnly: boolean; onChange: (v: Fields) => void }) {
  const { t } = useTranslation("editor")
  const [text, setText] = useState(() => (Object.keys(value).length ? stringify(value, { lineWidth: 0 }) : ""))
  const read = readText(text)
  const wrong = read.broken ? read.broken.message : !isFields(read.value ?? {}) ? t("settings.notFields") : undefined
  const change = (next: string) => {
    setText(next)
    const said = readText(next)
    if (!said.broken && isFields(said.value ?? {})) onChange((said.value ?? {}) as Fields)
  }
  return (
    <Stack gap={4}>
      <Text fz="sm" fw={500}>
        {t("settings.configurations")}
      </Text>
      <Code value={text} language="yaml" label={t("settings.configurations")} minLines={8} maxLines={30} readOnly={readOnly} onChange={change} />
      {wrong && (
        <Text fz="xs" c="var(--state-red)" role="alert">
          {wrong}
        </Text>
      )}
    </Stack>
  )
}
