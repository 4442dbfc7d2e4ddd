import { Alert, Anchor, Button, Group, List, Modal, Stack, Text } from "@mantine/core"
import { IconAlertTriangle } from "@tabler/icons-react"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useSearch } from "@/api/search"
import { Empty, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"
import { language } from "@/words"
import { CredentialForm } from "./credential_form"
import { Row, Rows } from "./rows"
import { Side, Topic, useMay } from "./topic"

type Credential = Schemas["Credential"]

const byBrowser = ["google_oauth", "microsoft_oauth", "oauth2"]

/** Credentials has the keys and accounts of the workspace. What is secret is written and never shown. */
export default function Credentials() {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const may = useMay("credentials")
  const [removing, setRemoving] = useState<Credential>()
  const [uses, setUses] = useState<Credential>()
  const query = useQuery({ queryKey: ["credentials"], queryFn: ({ signal }) => call(client.GET("/api/v1/credentials", { signal })), enabled: may?.read })
  const types = useQuery({ queryKey: ["credential-types"], queryFn: ({ signal }) => call(client.GET("/api/v1/credential-types", { signal })), enabled: may?.read, staleTime: Infinity })
  const close = () => set({ new: null, edit: null, name: null })
  const titleOf = (type: string) => types.data?.types?.find((x) => x.name === type)?.title[language()] ?? type
  return (
    <Topic name="credentials" add={t("credentials.add")} onAdd={() => set({ new: 1 })}>
      <Shown query={query}>
        {({ credentials }) => {
          const all = credentials ?? []
          const editing = all.find((c) => c.id === get("edit"))
          return (
            <>
              {all.length === 0 && (
                <Empty title={t("credentials.none")}>
                  <Text c="dimmed">{t("credentials.how")}</Text>
                </Empty>
              )}
              {all.length > 0 && (
                <Rows label={t("credentials.title")} head={[t("credentials.field.name"), t("credentials.field.type"), t("credentials.changed"), t("do")]}>
                  {all.map((c) => (
                    <Row
                      key={c.id}
                      cells={[
                        <span key="n">
                          <Text span fw={600}>
                            {c.name}
                          </Text>
                          {c.problem && (
                            <Text fz="sm" c="var(--state-red)">
                              <IconAlertTriangle size={13} aria-hidden /> {c.problem}
                            </Text>
                          )}
                        </span>,
                        titleOf(c.type),
                        <When key="w" at={c.updated_time} />,
                        <Group key="a" gap="xs" wrap="nowrap">
                          <Test credential={c} />
                          {may?.write && byBrowser.includes(c.type) && <Connect credential={c} />}
                          <Button size="compact-xs" variant="default" onClick={() => setUses(c)} aria-label={t("credentials.usesOf", { name: c.name })}>
                            {t("credentials.uses")}
                          </Button>
                          {may?.write && (
                            <>
                              <Button size="compact-xs" variant="default" onClick={() => set({ edit: c.id })} aria-label={t("changeOf", { name: c.name })}>
                                {t("change")}
                              </Button>
                              <Button size="compact-xs" variant="default" onClick={() => setRemoving(c)} aria-label={t("deleteOf", { name: c.name })}>
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
              {get("new") && may?.write && types.data && (
                <Side title={t("credentials.add")} onClose={close}>
                  <CredentialForm types={types.data.types ?? []} name={get("name")} onClose={close} />
                </Side>
              )}
              {editing && may?.write && types.data && (
                <Side title={editing.name} onClose={close}>
                  <CredentialForm key={editing.id} types={types.data.types ?? []} credential={editing} onClose={close} />
                </Side>
              )}
            </>
          )
        }}
      </Shown>
      {removing && <Remove credential={removing} onClose={() => setRemoving(undefined)} />}
      {uses && <Uses credential={uses} onClose={() => setUses(undefined)} />}
    </Topic>
  )
}

function Test({ credential: c }: { credential: Credential }) {
  const { t } = useTranslation("settings")
  const [open, setOpen] = useState(false)
  const test = useAct(() => call(client.POST("/api/v1/credentials/{id}/test", { params: { path: { id: c.id } } })), { stale: [], then: () => setOpen(true) })
  const r = test.data
  return (
    <>
      <Button size="compact-xs" variant="default" loading={test.isPending} onClick={() => test.mutate()} aria-label={t("credentials.testOf", { name: c.name })}>
        {t("credentials.test")}
      </Button>
      {open && r && (
        <Modal opened onClose={() => setOpen(false)} title={t("credentials.testOf", { name: c.name })} closeButtonProps={{ "aria-label": t("places:close") }}>
          <Alert color={r.ok ? "green" : r.testable ? "red" : "yellow"} title={t(r.ok ? "credentials.works" : r.testable ? "credentials.fails" : "credentials.untestable")} role="status">
            {r.detail}
          </Alert>
        </Modal>
      )}
    </>
  )
}

// Connect leads to the service, where a person agrees. The address is good for some minutes and for the browser that opens it first.
function Connect({ credential: c }: { credential: Credential }) {
  const { t } = useTranslation("settings")
  const begin = useAct(() => call(client.POST("/api/v1/credentials/{id}/authorize", { params: { path: { id: c.id } } })), { stale: [], then: ({ url }) => location.assign(url) })
  return (
    <Button size="compact-xs" variant="default" loading={begin.isPending} onClick={() => begin.mutate()} aria-label={t("credentials.connectOf", { name: c.name })}>
      {t("credentials.connect")}
    </Button>
  )
}

const places: Record<Schemas["CredentialUse"]["kind"], (id: string) => string | undefined> = {
  workflow: (id) => `/workflows/${encodeURIComponent(id)}`,
  profile: (id) => `/settings/profiles?edit=${encodeURIComponent(id)}`,
  mcp_server: (id) => `/settings/tools?edit=${encodeURIComponent(id)}`,
  contact_channel: (id) => `/settings/channels?edit=${encodeURIComponent(id)}`,
  node_template: () => undefined,
  channel: () => undefined,
}

function Uses({ credential: c, onClose }: { credential: Credential; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const query = useQuery({ queryKey: ["credentials", c.id, "uses"], queryFn: ({ signal }) => call(client.GET("/api/v1/credentials/{id}/uses", { params: { path: { id: c.id } }, signal })), staleTime: 0 })
  return (
    <Modal opened onClose={onClose} title={t("credentials.usesOf", { name: c.name })} size="lg" closeButtonProps={{ "aria-label": t("places:close") }}>
      <Shown query={query}>
        {({ uses }) =>
          (uses ?? []).length === 0 ? (
            <Text c="dimmed">{t("credentials.unused")}</Text>
          ) : (
            <Stack gap="xs">
              <List size="sm" spacing={6}>
                {(uses ?? []).map((u) => {
                  const to = places[u.kind](u.id)
                  const said = `${t(`credentials.use.${u.kind}`)} ${u.name || u.id}`
                  return (
                    <List.Item key={`${u.kind} ${u.id} ${u.revision ?? ""}`}>
                      {to ? (
                        <Anchor component={Link} to={to}>
                          {said}
                        </Anchor>
                      ) : (
                        said
                      )}{" "}
                      <Text span c="dimmed" fz="sm">
                        {[u.revision ? t("credentials.revision", { revision: u.revision }) : "", u.deployed ? t("credentials.deployed") : "", ...(u.paths ?? [])].filter(Boolean).join(" · ")}
                      </Text>
                    </List.Item>
                  )
                })}
              </List>
            </Stack>
          )
        }
      </Shown>
    </Modal>
  )
}

function Remove({ credential: c, onClose }: { credential: Credential; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const remove = useAct((force: boolean) => call(client.DELETE("/api/v1/credentials/{id}", { params: { path: { id: c.id }, query: force ? { force } : {} } })), { stale: ["credentials"], done: t("deleted", { name: c.name }), quiet: true })
  return (
    <Sure title={t("deleteTitle", { name: c.name })} verb={t("delete")} forceVerb={t("deleteAnyway")} danger act={(force) => remove.mutateAsync(force)} onClose={onClose}>
      <Text>{t("credentials.deleteText")}</Text>
    </Sure>
  )
}
