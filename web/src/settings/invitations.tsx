import { Badge, Button, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useSearch } from "@/api/search"
import { Empty, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"
import { useFieldWords } from "./field_words"
import { Once } from "./once"
import type { Value } from "./record"
import { RecordForm } from "./record_form"
import { Row, Rows } from "./rows"
import { Side, Topic, useMay } from "./topic"
import { everybody } from "./topics"

type Invitation = Schemas["Invitation"]

/** Invitations lets people in: each is a link that makes one user, once. */
export default function Invitations() {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const may = useMay("invitations")
  const [link, setLink] = useState<string>()
  const [removing, setRemoving] = useState<Invitation>()
  const query = useQuery({ queryKey: ["invitations"], queryFn: ({ signal }) => call(client.GET("/api/v1/invitations", { signal })), enabled: may?.read })
  const close = () => set({ new: null })
  return (
    <Topic name="invitations" add={t("invitations.add")} onAdd={() => set({ new: 1 })}>
      <Shown query={query}>
        {({ invitations }) =>
          (invitations ?? []).length === 0 ? (
            <Empty title={t("invitations.none")} />
          ) : (
            <Rows label={t("invitations.title")} head={[t("invitations.field.email"), t("invitations.field.roles"), t("invitations.by"), t("invitations.state"), t("do")]}>
              {(invitations ?? []).map((i) => (
                <Row
                  key={i.id}
                  cells={[
                    i.email,
                    (i.roles ?? []).map((r) => t(`role.${r}`)).join(t("and")),
                    i.invited_by,
                    <State key="s" invitation={i} />,
                    !i.accepted_time && (
                      <Button key="a" size="compact-xs" variant="default" onClick={() => setRemoving(i)} aria-label={t("invitations.takeBackOf", { email: i.email })}>
                        {t("invitations.takeBack")}
                      </Button>
                    ),
                  ]}
                />
              ))}
            </Rows>
          )
        }
      </Shown>
      {get("new") && may?.write && (
        <Side title={t("invitations.add")} onClose={close}>
          <InvitationForm
            onClose={close}
            onMade={(url) => {
              close()
              setLink(url)
            }}
          />
        </Side>
      )}
      {link && <Once title={t("invitations.made")} text={t("invitations.madeText")} secret={link} onClose={() => setLink(undefined)} />}
      {removing && <TakeBack invitation={removing} onClose={() => setRemoving(undefined)} />}
    </Topic>
  )
}

function State({ invitation: i }: { invitation: Invitation }) {
  const { t } = useTranslation("settings")
  if (i.accepted_time)
    return (
      <Badge color="green" variant="light" tt="none">
        {t("invitations.accepted", { user: i.user_id })}
      </Badge>
    )
  if (i.expires_time < Date.now())
    return (
      <Badge color="gray" variant="light" tt="none">
        {t("invitations.expired")}
      </Badge>
    )
  return (
    <Text span fz="sm">
      {t("invitations.open")} <When at={i.expires_time} />
    </Text>
  )
}

const days = [1, 7, 30, 90]

function InvitationForm({ onClose, onMade }: { onClose: () => void; onMade: (url: string) => void }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("invitations")
  const make = useAct((v: Value) => call(client.POST("/api/v1/invitations", { body: { email: String(v.email ?? ""), roles: (v.roles as string[]) ?? [], ...(v.name ? { name: String(v.name) } : {}), expires_in: Number(v.days) * 86_400 } })), { stale: ["invitations"], quiet: true, then: (made) => onMade(made.url) })
  return (
    <RecordForm
      start={{ roles: ["viewer"], days: "7" }}
      verb={t("invitations.invite")}
      onCancel={onClose}
      onSave={(value) => make.mutateAsync(value)}
      fields={[
        field("email", { kind: "text", required: true, placeholder: "ann@example.com" }),
        field("name", { kind: "text" }),
        field("roles", { kind: "choices", required: true, options: everybody.map((r) => ({ value: r, label: t(`role.${r}`) })) }),
        field("days", { kind: "choice", required: true, options: days.map((n) => ({ value: String(n), label: t("days", { count: n }) })) }),
      ]}
    />
  )
}

function TakeBack({ invitation: i, onClose }: { invitation: Invitation; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const remove = useAct(() => call(client.DELETE("/api/v1/invitations/{id}", { params: { path: { id: i.id } } })), { stale: ["invitations"], done: t("invitations.tookBack"), quiet: true })
  return (
    <Sure title={t("invitations.takeBackOf", { email: i.email })} verb={t("invitations.takeBack")} danger act={() => remove.mutateAsync()} onClose={onClose}>
      <Text>{t("invitations.takeBackText")}</Text>
    </Sure>
  )
}
