import { Badge, Button, Group, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useSearch } from "@/api/search"
import { Empty, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { Named } from "./profiles"
import { Row, Rows } from "./rows"
import { ServerForm } from "./server_form"
import { ServerTools } from "./server_tools"
import { Side, Topic, useMay } from "./topic"

type Server = Schemas["MCPServer"]

/** Tools has the registered tool servers (MCP), and of one that is opened its tools, how they have changed, and what may be done with them. */
export default function Tools() {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const may = useMay("tools")
  const [removing, setRemoving] = useState<Server>()
  const query = useQuery({ queryKey: ["tools"], queryFn: ({ signal }) => call(client.GET("/api/v1/mcp/servers", { signal })), enabled: may?.read })
  const close = () => set({ new: null, edit: null, id: null })
  return (
    <Topic name="tools" add={t("tools.add")} onAdd={() => set({ new: 1 })}>
      <Shown query={query}>
        {({ servers }) => {
          const all = servers ?? []
          const editing = all.find((s) => s.id === get("edit"))
          const opened = all.find((s) => s.id === get("server"))
          return (
            <>
              {all.length === 0 && (
                <Empty title={t("tools.none")}>
                  <Text c="dimmed">{t("tools.how")}</Text>
                </Empty>
              )}
              {all.length > 0 && (
                <Rows label={t("tools.title")} head={[t("tools.name"), t("tools.reached"), t("tools.state"), t("do")]}>
                  {all.map((s) => (
                    <Row
                      key={s.id}
                      cells={[
                        <span key="n">
                          <Named id={s.id ?? ""} name={s.name} />
                          {s.description && (
                            <Text fz="sm" c="dimmed">
                              {s.description}
                            </Text>
                          )}
                        </span>,
                        <span key="r">
                          {t(`tools.transport.${s.transport}`)}
                          {(s.url || s.command) && (
                            <Text fz="sm" c="dimmed" ff="monospace">
                              {s.url || s.command}
                            </Text>
                          )}
                        </span>,
                        s.disabled ? (
                          <Badge key="s" color="gray" variant="light" tt="none">
                            {t("tools.disabled")}
                          </Badge>
                        ) : s.activated ? (
                          <Badge key="s" color="green" variant="light" tt="none">
                            {t("tools.activated")}
                          </Badge>
                        ) : (
                          <Badge key="s" variant="default" tt="none">
                            {t("tools.notActivated")}
                          </Badge>
                        ),
                        <Group key="a" gap="xs" wrap="nowrap">
                          <Button size="compact-xs" variant="default" onClick={() => set({ server: s.id ?? null })} aria-label={t("tools.openOf", { name: s.id })}>
                            {t("tools.open")}
                          </Button>
                          {may?.write && (
                            <>
                              <Button size="compact-xs" variant="default" onClick={() => set({ edit: s.id ?? null })} aria-label={t("changeOf", { name: s.id })}>
                                {t("change")}
                              </Button>
                              <Button size="compact-xs" variant="default" onClick={() => setRemoving(s)} aria-label={t("deleteOf", { name: s.id })}>
                                {t("delete")}
                              </Button>
                            </>
                          )}
                        </Group>,
                      ]}
                    />
                  ))}
                </Rows>
              )}
              {opened && <ServerTools key={opened.id} server={opened} onClose={() => set({ server: null })} />}
              {get("new") && may?.write && (
                <Side title={t("tools.add")} onClose={close}>
                  <ServerForm start={{ transport: "http", ...(get("id") ? { id: get("id") } : {}) }} isNew onClose={close} />
                </Side>
              )}
              {editing && may?.write && (
                <Side title={editing.id ?? ""} onClose={close}>
                  <ServerForm key={editing.id} start={editing} onClose={close} />
                </Side>
              )}
            </>
          )
        }}
      </Shown>
      {removing && <Remove server={removing} onClose={() => setRemoving(undefined)} />}
    </Topic>
  )
}

function Remove({ server: s, onClose }: { server: Server; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const name = s.id ?? ""
  const remove = useAct(() => call(client.DELETE("/api/v1/mcp/servers/{id}", { params: { path: { id: name } } })), { stale: ["tools"], done: t("deleted", { name }), quiet: true })
  return (
    <Sure title={t("deleteTitle", { name })} verb={t("delete")} danger act={() => remove.mutateAsync()} onClose={onClose}>
      <Text>{t("tools.deleteText")}</Text>
    </Sure>
  )
}
