import { Badge, Button, Group, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useMe } from "@/api/me"
import { useSearch } from "@/api/search"
import { Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { useFieldWords } from "./field_words"
import { Named } from "./profiles"
import type { Value } from "./record"
import { RecordForm } from "./record_form"
import { Row, Rows } from "./rows"
import { Side, Topic, useMay } from "./topic"
import { everybody } from "./topics"

type User = Schemas["User"]

/** Users has who may come in, and with which roles. */
export default function Users() {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const may = useMay("users")
  const { data: me } = useMe()
  const [removing, setRemoving] = useState<User>()
  const query = useQuery({ queryKey: ["users"], queryFn: ({ signal }) => call(client.GET("/api/v1/users", { signal })), enabled: may?.read })
  const close = () => set({ new: null, edit: null })
  return (
    <Topic
      name="users"
      add={t("users.add")}
      onAdd={() => set({ new: 1 })}
      actions={
        <Button size="xs" variant="default" component={Link} to="/settings/invitations">
          {t("invitations.title")}
        </Button>
      }
    >
      <Shown query={query}>
        {({ users }) => {
          const all = users ?? []
          const editing = all.find((u) => u.id === get("edit"))
          return (
            <>
              <Rows label={t("users.title")} head={[t("users.name"), t("users.field.email"), t("users.field.roles"), t("users.state"), t("do")]}>
                {all.map((u) => (
                  <Row
                    key={u.id}
                    cells={[
                      <Named key="n" id={u.id} name={u.name} />,
                      u.email || "–",
                      (u.roles ?? []).map((r) => t(`role.${r}`)).join(t("and")) || t("role.none"),
                      u.disabled ? (
                        <Badge key="s" color="red" variant="light" tt="none">
                          {t("users.disabled")}
                        </Badge>
                      ) : (
                        t("users.enabled")
                      ),
                      <Group key="a" gap="xs" wrap="nowrap">
                        <Button size="compact-xs" variant="default" onClick={() => set({ edit: u.id })} aria-label={t("changeOf", { name: u.id })}>
                          {t("change")}
                        </Button>
                        <Button size="compact-xs" variant="default" component={Link} to={`/settings/tokens?user=${encodeURIComponent(u.id)}`} aria-label={t("users.tokensOf", { name: u.id })}>
                          {t("tokens.title")}
                        </Button>
                        <Button size="compact-xs" variant="default" component={Link} to={`/settings/reach?user=${encodeURIComponent(u.id)}`} aria-label={t("users.reachOf", { name: u.id })}>
                          {t("users.reach")}
                        </Button>
                        <Button size="compact-xs" variant="default" component={Link} to={`/settings/account?user=${encodeURIComponent(u.id)}`} aria-label={t("users.sessionsOf", { name: u.id })}>
                          {t("account.sessions")}
                        </Button>
                        {u.id !== me?.id && (
                          <Button size="compact-xs" variant="default" onClick={() => setRemoving(u)} aria-label={t("deleteOf", { name: u.id })}>
                            {t("delete")}
                          </Button>
                        )}
                      </Group>,
                    ]}
                  />
                ))}
              </Rows>
              {get("new") && (
                <Side title={t("users.add")} onClose={close}>
                  <UserForm start={{ roles: ["viewer"] }} isNew onClose={close} />
                </Side>
              )}
              {editing && (
                <Side title={editing.name || editing.id} onClose={close}>
                  <UserForm key={editing.id} start={editing} onClose={close} />
                </Side>
              )}
            </>
          )
        }}
      </Shown>
      {removing && <Remove user={removing} onClose={() => setRemoving(undefined)} />}
    </Topic>
  )
}

function UserForm({ start, isNew, onClose }: { start: Partial<User>; isNew?: boolean; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("users")
  const save = useAct(
    (v: Value) => {
      const body = { name: "", roles: [], ...Object.fromEntries(["id", "name", "roles", "email", "addresses", "language", "disabled"].filter((k) => v[k] !== undefined).map((k) => [k, v[k]])), ...(isNew ? {} : { addresses: v.addresses ?? [], email: v.email ?? "", language: v.language ?? "" }) } as Schemas["UserRequest"]
      return isNew ? call(client.POST("/api/v1/users", { body })) : call(client.PUT("/api/v1/users/{id}", { params: { path: { id: start.id ?? "" } }, body }))
    },
    { stale: ["users", "me"], quiet: true, done: (u) => t("saved", { name: u.name || u.id }), then: onClose },
  )
  return (
    <RecordForm
      start={start as Value}
      verb={t("save")}
      onCancel={onClose}
      onSave={(value) => save.mutateAsync(value)}
      fields={[
        field("id", { kind: "text", required: true, disabled: !isNew, placeholder: "ann" }),
        field("name", { kind: "text", required: true }),
        field("email", { kind: "text", placeholder: "ann@example.com" }),
        field("roles", { kind: "choices", required: true, options: everybody.map((r) => ({ value: r, label: t(`role.${r}`) })) }),
        field("addresses", { kind: "list", placeholder: "slack:U024BE7LH" }),
        field("language", { kind: "choice", options: [{ value: "en", label: "English" }, { value: "zh", label: "中文" }] }),
        field("disabled", { kind: "switch" }),
      ]}
    >
      {() => isNew && <Text fz="sm" c="dimmed">{t("users.thenToken")}</Text>}
    </RecordForm>
  )
}

function Remove({ user: u, onClose }: { user: User; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const name = u.name || u.id
  const remove = useAct(() => call(client.DELETE("/api/v1/users/{id}", { params: { path: { id: u.id } } })), { stale: ["users"], done: t("deleted", { name }), quiet: true })
  return (
    <Sure title={t("deleteTitle", { name })} verb={t("delete")} danger act={() => remove.mutateAsync()} onClose={onClose}>
      <Text>{t("users.deleteText")}</Text>
    </Sure>
  )
}
