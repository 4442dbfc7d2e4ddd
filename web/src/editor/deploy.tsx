import { Anchor, Button, Group, List, Modal, Stack, Text } from "@mantine/core"
import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, Failure, type Schemas } from "@/api/client"
import { Failed } from "@/parts/states"
import { useNotice } from "@/shell/notices"

// Where what is missing can be made.
const places: Record<string, string> = {
  credential_missing: "/settings/credentials",
  unknown_credential: "/settings/credentials",
  unfit_credential: "/settings/credentials",
  unknown_profile: "/settings/profiles",
  unknown_server: "/settings/tools",
  unknown_approver: "/settings/users",
  unknown_workflow: "/workflows",
  workflow_not_deployed: "/workflows",
  unknown_agent: "/agents",
}

type Missing = Schemas["FaultField"]
type Props = { saved: () => Promise<string | undefined>; onJump: (m: Missing) => void; onClose: () => void; revision: number; dirty: boolean }

/** Deploy puts the newest revision in force, or says everything that is missing, each with a way to its place. */
export function Deploy({ saved, onJump, onClose, dirty }: Props) {
  const { t } = useTranslation("editor")
  const say = useNotice()
  const queries = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const missing = error instanceof Failure && error.status === 422 ? (error.problem?.errors ?? []).filter((e) => e.severity !== "warning") : []
  const deploy = async () => {
    setBusy(true)
    setError(undefined)
    try {
      const id = await saved()
      if (id === undefined) return onClose()
      const now = await call(client.POST("/api/v1/workflows/{id}/deploy", { params: { path: { id } } }))
      say(t("deploy.done", { revision: now.deployed_revision ?? now.revision }), now.warnings?.length ? { detail: now.warnings.map((w) => w.message).join("\n") } : undefined)
      await queries.invalidateQueries({ queryKey: ["workflows"] })
      onClose()
    } catch (e) {
      setError(e)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Modal opened onClose={onClose} title={t("deploy.title")} size="lg" closeButtonProps={{ "aria-label": t("close") }}>
      <Stack>
        <Text>{t(dirty ? "deploy.textDirty" : "deploy.text")}</Text>
        {missing.length > 0 ? (
          <Stack gap="xs" role="alert">
            <Text fw={600}>{t("deploy.missing", { count: missing.length })}</Text>
            <List spacing={6}>
              {missing.map((m, i) => (
                <List.Item key={i}>
                  {m.message}
                  <Group gap="md" mt={2}>
                    <Anchor component="button" type="button" fz="sm" onClick={() => onJump(m)}>
                      {t("deploy.show")}
                    </Anchor>
                    {places[m.code ?? ""] && (
                      <Anchor component={Link} to={places[m.code ?? ""]!} fz="sm">
                        {t("deploy.make")}
                      </Anchor>
                    )}
                  </Group>
                </List.Item>
              ))}
            </List>
            <Text fz="sm" c="dimmed">
              {t("deploy.stays")}
            </Text>
          </Stack>
        ) : (
          error !== undefined && <Failed error={error} lost={t("deploy.stays")} />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("cancel")}
          </Button>
          <Button loading={busy} onClick={() => void deploy()}>
            {missing.length ? t("deploy.again") : t("deploy.act")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
