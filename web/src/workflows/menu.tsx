import { ActionIcon, Menu, Text, TextInput } from "@mantine/core"
import { IconCopy, IconDots, IconDownload, IconPlugConnected, IconTrash } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link, useNavigate } from "react-router"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { Sure } from "@/parts/sure"
import { exportWorkflow } from "./export"

/** WorkflowMenu has what can be done with a workflow of the list. */
export function WorkflowMenu({ workflow: w }: { workflow: Schemas["WorkflowMetadata"] }) {
  const { t } = useTranslation("workflows")
  const mayWrite = useRole("editor")
  const [asking, ask] = useState<"copy" | "delete">()
  const save = useAct((format: "yaml" | "json") => exportWorkflow(w.id, format), { stale: [] })
  const name = w.name || w.id
  return (
    <>
      <Menu position="bottom-end" withinPortal shadow="md">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={t("menu.of", { name })}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconDownload size={16} />} onClick={() => save.mutate("yaml")}>
            {t("menu.yaml")}
          </Menu.Item>
          <Menu.Item leftSection={<IconDownload size={16} />} onClick={() => save.mutate("json")}>
            {t("menu.json")}
          </Menu.Item>
          {mayWrite && (
            <>
              <Menu.Item leftSection={<IconPlugConnected size={16} />} component={Link} to={`/workflows/${encodeURIComponent(w.id)}?tab=triggers`}>
                {t("menu.deploy")}
              </Menu.Item>
              <Menu.Item leftSection={<IconCopy size={16} />} onClick={() => ask("copy")}>
                {t("menu.copy")}
              </Menu.Item>
              <Menu.Item leftSection={<IconTrash size={16} />} color="red" onClick={() => ask("delete")}>
                {t("menu.delete")}
              </Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {asking === "copy" && <Copy workflow={w} onClose={() => ask(undefined)} />}
      {asking === "delete" && <Delete workflow={w} onClose={() => ask(undefined)} />}
    </>
  )
}

function Copy({ workflow: w, onClose }: { workflow: Schemas["WorkflowMetadata"]; onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const go = useNavigate()
  const [name, setName] = useState(t("copy.name", { name: w.name || w.id }))
  const copy = useAct(() => call(client.POST("/api/v1/workflows/{id}/copy", { params: { path: { id: w.id } }, body: { name } })), {
    stale: ["workflows"],
    done: (saved) => t("copy.done", { name: saved.workflow.name }),
    quiet: true,
    then: (saved) => void go(`/workflows/${encodeURIComponent(saved.workflow.id)}`),
  })
  return (
    <Sure title={t("copy.title")} verb={t("copy.verb")} disabled={name.trim() === ""} act={() => copy.mutateAsync()} onClose={onClose}>
      <Text>{t("copy.text", { revision: w.revision })}</Text>
      <TextInput label={t("copy.label")} value={name} onChange={(e) => setName(e.currentTarget.value)} />
    </Sure>
  )
}

function Delete({ workflow: w, onClose }: { workflow: Schemas["WorkflowMetadata"]; onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const name = w.name || w.id
  const remove = useAct(() => call(client.DELETE("/api/v1/workflows/{id}", { params: { path: { id: w.id } } })), { stale: ["workflows", "triggers"], done: t("delete.done", { name }), quiet: true })
  return (
    <Sure title={t("delete.title", { name })} verb={t("delete.verb")} danger act={() => remove.mutateAsync()} onClose={onClose}>
      <Text>{t("delete.text")}</Text>
    </Sure>
  )
}
