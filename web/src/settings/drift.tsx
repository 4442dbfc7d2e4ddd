import { Alert, Button, Checkbox, Group, Stack, Text } from "@mantine/core"
import { IconAlertTriangle } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { Difference } from "@/parts/difference"
import { Failed } from "@/parts/states"

const text = (value: unknown) => (value === undefined || value === null ? "" : JSON.stringify(value, null, 2) + "\n")

/** Drift shows how tools differ from what was accepted, each as a difference. Calls of them wait until somebody has looked and accepts. */
export function Drift({ server, changes }: { server: string; changes: Schemas["MCPChange"][] }) {
  const { t } = useTranslation("settings")
  const isAdmin = useRole()
  const [onlyMe, setOnlyMe] = useState(false)
  const accept = useAct(
    (list: Schemas["MCPChange"][]) =>
      call(
        client.POST("/api/v1/mcp/servers/{id}/accept", {
          params: { path: { id: server } },
          body: { ...(isAdmin && !onlyMe ? {} : { scope: "user" as const }), changes: list.map((c) => (c.after === undefined ? { tool: c.tool } : { tool: c.tool, after: c.after })) },
        }),
      ),
    { stale: ["tools"], quiet: true, done: t("drift.done") },
  )
  return (
    <Alert color="yellow" icon={<IconAlertTriangle />} title={t("drift.title", { count: changes.length })}>
      <Stack gap="md">
        <Text>{t("drift.text")}</Text>
        {changes.map((c) => (
          <Stack key={c.tool} gap={6}>
            <Group justify="space-between">
              <Text fw={600}>{t(`drift.${c.kind}`, { tool: c.tool })}</Text>
              <Button size="compact-sm" variant="default" loading={accept.isPending} onClick={() => accept.mutate([c])} aria-label={t("drift.acceptOf", { tool: c.tool })}>
                {t("drift.accept")}
              </Button>
            </Group>
            <Text fz="sm">{c.summary}</Text>
            <Difference before={text(c.before)} after={text(c.after)} language="json" beforeLabel={t("drift.before")} afterLabel={t("drift.after")} inline />
          </Stack>
        ))}
        {isAdmin && <Checkbox label={t("drift.onlyMe")} checked={onlyMe} onChange={(e) => setOnlyMe(e.currentTarget.checked)} />}
        {accept.error ? <Failed error={accept.error} /> : null}
        {changes.length > 1 && (
          <Button loading={accept.isPending} onClick={() => accept.mutate(changes)} w="fit-content">
            {t("drift.acceptAll", { count: changes.length })}
          </Button>
        )}
      </Stack>
    </Alert>
  )
}
