import { Alert, Button, Group, List, Paper, Stack, Text } from "@mantine/core"
import { IconPlugConnected, IconPlugOff } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { Sure } from "@/parts/sure"
import { Missing } from "./missing"
import { DeploymentMark } from "./status"

/** Deployment says whether the workflow starts by itself, puts its newest revision in force or takes it out, and tells what is missing for that. */
export function Deployment({ workflow: w }: { workflow: Schemas["WorkflowMetadata"] }) {
  const { t } = useTranslation("workflows")
  const mayWrite = useRole("editor")
  const [asking, setAsking] = useState(false)
  const path = { id: w.id }
  const stale = ["workflows", "triggers"]
  const deploy = useAct(() => call(client.POST("/api/v1/workflows/{id}/deploy", { params: { path } })), {
    stale,
    quiet: true,
    done: (now) => (now.deployment_status === "deployed" ? t("deploy.done", { revision: now.deployed_revision }) : t(`status.${now.deployment_status}`)),
  })
  const undeploy = useAct(() => call(client.POST("/api/v1/workflows/{id}/undeploy", { params: { path } })), { stale, quiet: true, done: t("undeploy.done") })
  const inForce = w.deployed_revision !== undefined && w.deployed_revision > 0
  const newer = inForce && w.deployed_revision! < w.revision
  return (
    <Stack gap="sm">
      <Paper withBorder p="sm">
        <Group justify="space-between">
          <Stack gap={2}>
            <DeploymentMark workflow={w} />
            <Text fz="sm" c="dimmed">
              {newer ? t("deploy.newer", { deployed: w.deployed_revision, newest: w.revision }) : inForce ? t("deploy.inForce") : t("deploy.notYet")}
            </Text>
          </Stack>
          {mayWrite ? (
            <Group gap="xs">
              {inForce && (
                <Button variant="default" leftSection={<IconPlugOff size={16} />} onClick={() => setAsking(true)}>
                  {t("undeploy.open")}
                </Button>
              )}
              {(!inForce || newer || w.deployment_status === "failed") && (
                <Button leftSection={<IconPlugConnected size={16} />} loading={deploy.isPending} onClick={() => deploy.mutate()}>
                  {t("deploy.verb", { revision: w.revision })}
                </Button>
              )}
            </Group>
          ) : (
            <Text fz="sm" c="dimmed">
              {t("deploy.mayNot")}
            </Text>
          )}
        </Group>
      </Paper>
      {deploy.error ? <Missing id={w.id} error={deploy.error} /> : null}
      {!deploy.error && w.deployment_error && (
        <Alert color="red" title={t("deploy.failed")} role="alert">
          {w.deployment_error}
        </Alert>
      )}
      {(deploy.data?.warnings ?? []).length > 0 && (
        <Alert color="yellow" title={t("deploy.warnings")}>
          <List size="sm">
            {(deploy.data?.warnings ?? []).map((p) => (
              <List.Item key={`${p.path} ${p.message}`}>{p.message}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      {asking && (
        <Sure title={t("undeploy.title")} verb={t("undeploy.verb")} danger act={() => undeploy.mutateAsync()} onClose={() => setAsking(false)}>
          <Text>{t("undeploy.text")}</Text>
        </Sure>
      )}
    </Stack>
  )
}
