import { Alert, Button, Paper, SimpleGrid, Stack, Text, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { useFieldWords } from "./field_words"
import type { Value } from "./record"
import { RecordForm } from "./record_form"
import { Topic, useMay } from "./topic"

/** sizeOf says bytes as people do. */
export function sizeOf(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"]
  let n = bytes
  let i = 0
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024
    i++
  }
  return `${i === 0 ? n : n.toFixed(1)} ${units[i]}`
}

/** Limits says what the workspace may use, what is used, how long things are kept, and tidies up. */
export default function Limits() {
  const { t } = useTranslation("settings")
  const may = useMay("limits")
  const [tidying, setTidying] = useState(false)
  const query = useQuery({ queryKey: ["limits"], queryFn: ({ signal }) => call(client.GET("/api/v1/limits", { signal })) })
  const tidy = useAct(() => call(client.POST("/api/v1/limits/tidy", {})), { stale: ["limits", "executions"], quiet: true })
  const r = tidy.data
  return (
    <Topic
      name="limits"
      actions={
        <Button size="xs" variant="default" onClick={() => setTidying(true)}>
          {t("limits.tidy")}
        </Button>
      }
    >
      {r && (
        <Alert color="green" title={t("limits.tidied")} role="status">
          {t("limits.removed", { executions: r.executions, deliveries: r.deliveries, audit: r.audit, blobs: r.blobs, others: r.others, size: sizeOf(r.space.database_bytes) })}
        </Alert>
      )}
      <Shown query={query}>
        {(l) => (
          <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
            <Paper withBorder p="md" component="section">
              <LimitsForm key={JSON.stringify(l.settings)} settings={l.settings} readOnly={!may?.write} />
            </Paper>
            <Used limits={l} />
          </SimpleGrid>
        )}
      </Shown>
      {tidying && (
        <Sure title={t("limits.tidy")} verb={t("limits.tidyVerb")} act={() => tidy.mutateAsync()} onClose={() => setTidying(false)}>
          <Text>{t("limits.tidyText")}</Text>
        </Sure>
      )}
    </Topic>
  )
}

function LimitsForm({ settings, readOnly }: { settings: Schemas["LimitSettings"]; readOnly: boolean }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("limits")
  const save = useAct((v: Value) => call(client.PUT("/api/v1/limits", { body: v as Schemas["LimitSettings"] })), { stale: ["limits"], quiet: true, done: t("limits.saved") })
  const number = (name: string) => field(name, { kind: "number", placeholder: t("limits.unlimited") })
  const seconds = (name: string) => field(name, { kind: "number", placeholder: "60" })
  const kept = (name: string) => field(name, { kind: "number", placeholder: t("limits.forever") })
  return (
    <>
      <Title order={2} size="h5" pb="sm">
        {t("limits.settings")}
      </Title>
      <RecordForm
        start={settings as Value}
        verb={t("save")}
        wide
        readOnly={readOnly}
        onSave={(value) => save.mutateAsync(value)}
        fields={[
          number("running"),
          number("running_per_user"),
          number("starts.count"),
          seconds("starts.seconds"),
          number("starts_per_user.count"),
          seconds("starts_per_user.seconds"),
          number("executions_per_day"),
          number("executions_per_month"),
          field("storage_bytes", { kind: "number", placeholder: t("limits.unlimited"), scale: 2 ** 30 }),
          kept("retention.executions.days"),
          kept("retention.executions.count"),
          kept("retention.deliveries.days"),
          kept("retention.deliveries.count"),
          kept("retention.audit.days"),
          kept("retention.audit.count"),
          kept("retention.blob_days"),
        ]}
      />
    </>
  )
}

function Used({ limits: { usage, space } }: { limits: Schemas["Limits"] }) {
  const { t } = useTranslation("settings")
  const lines: [string, string][] = [
    ["running", usage.running.toLocaleString()],
    ["waiting", usage.waiting.toLocaleString()],
    ["today", usage.executions_today.toLocaleString()],
    ["month", usage.executions_this_month.toLocaleString()],
    ["kept", usage.executions.toLocaleString()],
    ["journal", sizeOf(usage.journal_bytes)],
    ["blobs", sizeOf(usage.blob_bytes)],
    ...(space
      ? ([
          ["database", sizeOf(space.database_bytes)],
          ["free", sizeOf(space.free_bytes)],
          ["log", sizeOf(space.log_bytes)],
          ["copies", sizeOf(space.copy_bytes)],
        ] as [string, string][])
      : []),
  ]
  return (
    <Paper withBorder p="md" component="section" h="fit-content">
      <Title order={2} size="h5" pb="sm">
        {t("limits.used")}
      </Title>
      <Stack gap={6}>
        {lines.map(([name, figure]) => (
          <Text key={name} style={{ display: "flex", justifyContent: "space-between" }}>
            <span>{t(`limits.usage.${name}`)}</span>
            <b>{figure}</b>
          </Text>
        ))}
      </Stack>
    </Paper>
  )
}
