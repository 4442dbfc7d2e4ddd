import { Anchor, Button, Group, Modal, SegmentedControl, Stack, Text } from "@mantine/core"
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import type { Definition, NodeDef } from "@/graph/definition"
import { type Kinds, keyOf, outputKeys } from "@/graph/keys"
import { Code } from "@/parts/code"
import { Data } from "@/parts/data"
import { StateMark } from "@/parts/state"
import { Failed } from "@/parts/states"
import { language } from "@/words"
import { jsonSaying } from "@/parts/syntax"
import { readPins, keepPins, type Pins, type Source, sourcesOf } from "./pins"
import type { Plain } from "./rewrite"
import type { Tried } from "./tests/keep"
import { KeepForm } from "./tests/keep_form"

type Props = { workflow: string; text: string; definition: Definition; node: NodeDef; kinds: Kinds; last?: Schemas["Execution"]; value: Plain; onKeep: (test: Record<string, unknown>) => void; onClose: () => void }
type Result = { id: string; status: string; record?: Schemas["NodeExecution"]; error?: Schemas["ExecutionError"]; tried: Tried }

/**
 * TryNode runs one node, or all from it on, with pinned data in place of what would come before it. The text is tried as it is, saved or not; the run is a real one that is
 * marked as a test.
 */
export function TryNode({ workflow, text, definition, node, kinds, last, value, onKeep, onClose }: Props) {
  const { t } = useTranslation("editor")
  const queries = useQueryClient()
  const sources = sourcesOf(definition, node, (n, c) => keyOf(c, outputKeys(n, kinds), kinds.get(n.kind)))
  const [how, setHow] = useState<"node" | "from">("node")
  const [pins, setPins] = useState<Pins>(() => ({ ...suggested(sources, kinds, last), ...readPins(workflow) }))
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [result, setResult] = useState<Result>()

  const start = async () => {
    setError(undefined)
    setResult(undefined)
    const pinned: Record<string, Record<string, unknown>> = {}
    for (const s of sources) {
      const said = pins[s.id]?.trim()
      if (!said) continue
      try {
        ;(pinned[s.node.id] ??= {})[s.key] = JSON.parse(said)
      } catch (e) {
        setError(new Error(t("try.notJson", { name: s.node.name, message: jsonSaying(said, e) })))
        return
      }
    }
    keepPins(workflow, { ...readPins(workflow), ...Object.fromEntries(sources.map((s) => [s.id, pins[s.id] ?? ""])) })
    setBusy(true)
    try {
      const answer = await call(client.POST("/api/v1/workflows/test", { body: { definition: text as never, ...(workflow === "" ? {} : { workflow_id: workflow }), [how]: node.id, pinned, wait_seconds: 20, language: language() } }))
      const { execution } = await call(client.GET("/api/v1/executions/{id}", { params: { path: { id: answer.execution_id } } }))
      const records = execution.node_executions as Record<string, Schemas["NodeExecution"]> | undefined
      setResult({ id: answer.execution_id, status: execution.status, record: records?.[node.id], error: execution.error, tried: { how, node: node.id, pinned, status: execution.status, error: execution.error?.error_code, records: records ?? {} } })
      void queries.invalidateQueries({ queryKey: ["executions"] })
    } catch (e) {
      setError(e)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Modal opened onClose={onClose} size="xl" title={t("try.title", { name: node.name })} closeButtonProps={{ "aria-label": t("close") }}>
      <Stack>
        <SegmentedControl value={how} onChange={(v) => setHow(v as "node" | "from")} data={[{ value: "node", label: t("try.only") }, { value: "from", label: t("try.from") }]} aria-label={t("try.how")} w="fit-content" />
        <Text fz="sm" c="dimmed">
          {t("try.text")}
        </Text>
        {sources.map((s) => (
          <Stack key={s.id} gap={4}>
            <Text fz="sm" fw={500}>
              {t("try.pin", { name: s.node.name, key: s.key })}
            </Text>
            <Code value={pins[s.id] ?? ""} onChange={(v) => setPins((now) => ({ ...now, [s.id]: v }))} language="json" label={t("try.pin", { name: s.node.name, key: s.key })} minLines={3} maxLines={14} placeholder="{}" />
          </Stack>
        ))}
        {error !== undefined && <Failed error={error} />}
        {result && (
          <Stack gap="xs" role="status">
            <Group gap="md">
              <StateMark status={result.status} />
              <Anchor component={Link} to={`/executions/${encodeURIComponent(result.id)}`} fz="sm">
                {t("try.open")}
              </Anchor>
            </Group>
            {result.error && <Text fz="sm">{result.error.error_message}</Text>}
            {result.record?.output_data !== undefined && <Data value={result.record.output_data} execution={result.id} label={t("drawer.output")} height={260} depth={2} />}
            <KeepForm key={result.id} definition={definition} value={value} workflow={workflow} tried={result.tried} name={node.name} onKeep={onKeep} />
          </Stack>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("close")}
          </Button>
          <Button loading={busy} onClick={() => void start()}>
            {t("try.start")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}

// What a node put out last is what it is pinned with at first; else what its kind shows as an example.
function suggested(sources: Source[], kinds: Kinds, last: Schemas["Execution"] | undefined): Pins {
  const records = last?.node_executions as Record<string, Schemas["NodeExecution"]> | undefined
  return Object.fromEntries(
    sources.map((s) => {
      const real = records?.[s.node.id]?.output_data?.[s.key]
      const example = (kinds.get(s.node.kind)?.examples?.[0]?.output as Record<string, unknown> | undefined)?.[s.key]
      const said = JSON.stringify(real ?? example ?? {}, null, 2)
      return [s.id, /"\$(blob|omitted)"/.test(said) ? "" : said]
    }),
  )
}
