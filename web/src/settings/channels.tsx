import { Button, Group, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { useSearch } from "@/api/search"
import { Empty, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"
import { useFieldWords } from "./field_words"
import type { Value } from "./record"
import { RecordForm } from "./record_form"
import { Row, Rows } from "./rows"
import { Side, Topic, useMay } from "./topic"

type Channel = Schemas["ContactChannel"]
type Medium = Schemas["ContactMedium"]

/** Channels has the accounts through which questions reach people. */
export default function Channels() {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const may = useMay("channels")
  const [removing, setRemoving] = useState<Channel>()
  const query = useQuery({ queryKey: ["channels"], queryFn: ({ signal }) => call(client.GET("/api/v1/contact-channels", { signal })) })
  const close = () => set({ new: null, edit: null })
  return (
    <Topic name="channels" add={t("channels.add")} onAdd={() => set({ new: 1 })}>
      <Shown query={query}>
        {({ channels, media: known }) => {
          const all = channels ?? []
          const media = known ?? []
          const editing = all.find((c) => c.name === get("edit"))
          return (
            <>
              {all.length === 0 ? (
                <Empty title={t("channels.none")}>
                  <Text c="dimmed">{t("channels.how")}</Text>
                </Empty>
              ) : (
                <Rows label={t("channels.title")} head={[t("channels.field.name"), t("channels.medium"), t("channels.changed"), t("do")]}>
                  {all.map((c) => (
                    <Row
                      key={c.name}
                      cells={[
                        <Text key="n" span fw={600}>
                          {c.name}
                        </Text>,
                        t(`channels.type.${c.channel_type}`, c.channel_type),
                        <When key="w" at={c.updated_time} />,
                        may?.write && (
                          <Group key="a" gap="xs" wrap="nowrap">
                            <Button size="compact-xs" variant="default" onClick={() => set({ edit: c.name })} aria-label={t("changeOf", { name: c.name })}>
                              {t("change")}
                            </Button>
                            <Button size="compact-xs" variant="default" onClick={() => setRemoving(c)} aria-label={t("deleteOf", { name: c.name })}>
                              {t("delete")}
                            </Button>
                          </Group>
                        ),
                      ]}
                    />
                  ))}
                </Rows>
              )}
              {get("new") && may?.write && (
                <Side title={t("channels.add")} onClose={close}>
                  <ChannelForm start={{}} media={media} isNew onClose={close} />
                </Side>
              )}
              {editing && may?.write && (
                <Side title={editing.name} onClose={close}>
                  <ChannelForm key={editing.name} start={editing} media={media} onClose={close} />
                </Side>
              )}
            </>
          )
        }}
      </Shown>
      {removing && <Remove channel={removing} onClose={() => setRemoving(undefined)} />}
    </Topic>
  )
}

/** ChannelForm makes or changes a contact channel. Which credentials fit is what the server says of the media that it has. */
export function ChannelForm({ start, media, isNew, onClose }: { start: Partial<Channel>; media: Medium[]; isNew?: boolean; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("channels")
  const isAdmin = useRole()
  const credentials = useQuery({ queryKey: ["credentials"], queryFn: ({ signal }) => call(client.GET("/api/v1/credentials", { signal })), enabled: isAdmin })
  const all = credentials.data?.credentials ?? []
  const options = (types: string[]) => all.filter((c) => types.includes(c.type)).map((c) => ({ value: c.id, label: `${c.name} (${c.type})` }))
  const mediumOf = (v: Value) => media.find((m) => m.credentials?.includes(all.find((c) => c.id === v.credential_id)?.type ?? ""))
  const save = useAct(
    (v: Value) => {
      const { credential_id, in_credential_id, webhook_url } = v as Channel
      return call(client.PUT("/api/v1/contact-channels/{name}", { params: { path: { name: String(v.name ?? "").trim() } }, body: { credential_id, in_credential_id, webhook_url } }))
    },
    { stale: ["channels"], quiet: true, done: (c) => t("saved", { name: c.name }), then: onClose },
  )
  return (
    <RecordForm
      start={start as Value}
      verb={t("save")}
      onCancel={onClose}
      onSave={(value) => save.mutateAsync(value)}
      fields={[
        field("name", { kind: "text", required: true, disabled: !isNew, placeholder: "office" }),
        field("credential_id", { kind: "choice", required: true, options: options(media.flatMap((m) => m.credentials ?? [])) }),
        field("in_credential_id", { kind: "choice", options: options(media.flatMap((m) => m.reads_with ?? [])), when: (v) => !!mediumOf(v)?.reads_with?.length }),
        field("webhook_url", { kind: "text", placeholder: "https://…", when: (v) => !!mediumOf(v)?.needs_url || typeof v.webhook_url === "string" }),
      ]}
    />
  )
}

function Remove({ channel: c, onClose }: { channel: Channel; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const remove = useAct((force: boolean) => call(client.DELETE("/api/v1/contact-channels/{name}", { params: { path: { name: c.name }, query: force ? { force } : {} } })), { stale: ["channels", "reach"], done: t("deleted", { name: c.name }), quiet: true })
  return (
    <Sure title={t("deleteTitle", { name: c.name })} verb={t("delete")} forceVerb={t("deleteAnyway")} danger act={(force) => remove.mutateAsync(force)} onClose={onClose}>
      <Text>{t("channels.deleteText")}</Text>
    </Sure>
  )
}
