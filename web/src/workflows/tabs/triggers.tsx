import { Code, CopyButton, ActionIcon, Group, Paper, Stack, Text, Title, Tooltip } from "@mantine/core"
import { IconAlertTriangle, IconCheck, IconCircleCheck, IconCopy, IconLoader2 } from "@tabler/icons-react"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { call, client, type Schemas } from "@/api/client"
import { Shown } from "@/parts/states"
import { exact, When } from "@/parts/when"
import { Deployment } from "../deployment"
import { readDefinition } from "../export"
import { Deliveries } from "./deliveries"

/** Triggers says what starts the workflow: whether it is deployed, each trigger with its address and next times, and what has come so far. */
export default function Triggers({ id }: { id: string }) {
  const { t } = useTranslation("workflows")
  const workflow = useQuery({ queryKey: ["workflows", id, "newest"], queryFn: ({ signal }) => readDefinition(id, undefined, signal), refetchInterval: ({ state }) => (state.data?.metadata.deployment_status === "pending" ? 1_000 : false) })
  const triggers = useQuery({
    queryKey: ["triggers", "of", id],
    queryFn: ({ signal }) => call(client.GET("/api/v1/workflows/{id}/triggers", { params: { path: { id }, query: { page_size: 100, next_runs: 5 } }, signal })),
    refetchInterval: 10_000,
  })
  return (
    <Shown query={workflow}>
      {({ metadata }) => (
        <Stack gap="md" p="md">
          <Deployment workflow={metadata} />
          <Shown query={triggers}>
            {({ triggers: list }) => (
              <Stack gap="sm" component="section" aria-label={t("triggers.title")}>
                <Title order={2} size="h5">
                  {t("triggers.title")}
                </Title>
                {(list ?? []).length === 0 && <Text c="dimmed">{t("triggers.none")}</Text>}
                {(list ?? []).map((g) => (
                  <TriggerCard key={`${g.node_id} ${g.in_force}`} trigger={g} />
                ))}
              </Stack>
            )}
          </Shown>
          <Deliveries workflow={id} />
        </Stack>
      )}
    </Shown>
  )
}

function TriggerCard({ trigger: g }: { trigger: Schemas["Trigger"] }) {
  const { t } = useTranslation("workflows")
  return (
    <Paper withBorder p="sm">
      <Stack gap={6}>
        <Group gap="sm">
          <Text fw={600}>{g.node_id}</Text>
          <Text fz="sm" c="dimmed">
            {g.kind}
          </Text>
          <How trigger={g} />
        </Group>
        {g.address && (
          <Group gap={6} wrap="nowrap">
            {(g.methods ?? []).length > 0 && (
              <Text fz="sm" c="dimmed">
                {(g.methods ?? []).join(", ")}
              </Text>
            )}
            <Code style={{ overflowWrap: "anywhere" }}>{g.address}</Code>
            <Copy text={g.address} />
          </Group>
        )}
        {(g.next_runs ?? []).length > 0 && (
          <Group gap="md">
            <Text fz="sm">{t("triggers.next")}</Text>
            {(g.next_runs ?? []).map((at) => (
              <Text key={at} fz="sm" c="dimmed" title={exact(at)}>
                <When at={at} />
              </Text>
            ))}
            {g.timezone && (
              <Text fz="sm" c="dimmed">
                {t("triggers.zone", { zone: g.timezone })}
              </Text>
            )}
          </Group>
        )}
        {g.reason && (
          <Text fz="sm" c="var(--state-red)">
            {g.reason}
          </Text>
        )}
        {g.listening?.error && (
          <Text fz="sm" c="var(--state-red)">
            {t("triggers.failing", { error: g.listening.error })} {g.listening.retry_at ? <When at={g.listening.retry_at} /> : null}
          </Text>
        )}
      </Stack>
    </Paper>
  )
}

// How says how a trigger fares: it starts runs, it is being registered, it failed, or it listens and for how long.
function How({ trigger: g }: { trigger: Schemas["Trigger"] }) {
  const { t } = useTranslation("workflows")
  const word = g.state === "failed" ? "failed" : g.state === "pending" ? "pending" : g.listening?.state === "failing" ? "listeningFails" : g.listening ? "listening" : g.in_force ? "active" : "pending"
  const bad = word === "failed" || word === "listeningFails"
  const Icon = bad ? IconAlertTriangle : word === "pending" ? IconLoader2 : IconCircleCheck
  return (
    <Group gap={4} component="span" wrap="nowrap" style={{ color: bad ? "var(--state-red)" : word === "pending" ? "var(--state-blue)" : "var(--state-green)" }}>
      <Icon size={15} aria-hidden />
      <Text span fz="sm">
        {t(`triggers.state.${word}`)}
      </Text>
    </Group>
  )
}

function Copy({ text }: { text: string }) {
  const { t } = useTranslation("workflows")
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? t("triggers.copied") : t("triggers.copy")}>
          <ActionIcon variant="subtle" color="gray" onClick={copy} aria-label={t("triggers.copy")}>
            {copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  )
}
