import { Alert, Button, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useSearch } from "@/api/search"
import { valuesOf } from "@/api/values"
import { Empty, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"
import { useFieldWords } from "./field_words"
import { Once } from "./once"
import type { Value } from "./record"
import { RecordForm } from "./record_form"
import { Row, Rows } from "./rows"
import { Side, Topic } from "./topic"

type Token = Schemas["Token"]
// What a token can be for; only the program itself makes those for logging in.
const offered: Record<NonNullable<Token["scopes"]>[number], boolean> = { read: true, execute: true, answer: true, edit: true, admin: true, login: false }
const scopes = valuesOf(offered).filter((s) => offered[s])
const lifetimes = [1, 7, 30, 90, 365]

/** Tokens has what programs of a user show to be let in: one's own, or as an admin those of ?user=. */
export default function Tokens() {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const user = get("user") || "me"
  const [secret, setSecret] = useState<string>()
  const [removing, setRemoving] = useState<Token>()
  const query = useQuery({ queryKey: ["tokens", user], queryFn: ({ signal }) => call(client.GET("/api/v1/users/{id}/tokens", { params: { path: { id: user } }, signal })) })
  const close = () => set({ new: null })
  return (
    <Topic name="tokens" add={t("tokens.add")} onAdd={() => set({ new: 1 })}>
      {user !== "me" && <Alert color="blue">{t("tokens.of", { user })}</Alert>}
      <Shown query={query}>
        {({ tokens }) =>
          (tokens ?? []).length === 0 ? (
            <Empty title={t("tokens.none")} />
          ) : (
            <Rows label={t("tokens.title")} head={[t("tokens.field.name"), t("tokens.may"), t("tokens.used"), t("tokens.ends"), t("tokens.madeBy"), t("do")]}>
              {(tokens ?? []).map((k) => (
                <Row
                  key={k.id}
                  cells={[
                    <Text key="n" span fw={600}>
                      {k.name}
                    </Text>,
                    k.scopes?.length ? k.scopes.map((s) => t(`tokens.scope.${s}`)).join(t("and")) : t("tokens.everything"),
                    k.last_used_time ? <When key="u" at={k.last_used_time} /> : t("tokens.never"),
                    k.expires_time ? <When key="e" at={k.expires_time} /> : t("tokens.noEnd"),
                    k.made_by ?? "–",
                    <Button key="a" size="compact-xs" variant="default" onClick={() => setRemoving(k)} aria-label={t("tokens.revokeOf", { name: k.name })}>
                      {t("tokens.revoke")}
                    </Button>,
                  ]}
                />
              ))}
            </Rows>
          )
        }
      </Shown>
      {get("new") && (
        <Side title={t("tokens.add")} onClose={close}>
          <TokenForm
            user={user}
            onClose={close}
            onMade={(made) => {
              close()
              setSecret(made)
            }}
          />
        </Side>
      )}
      {secret && <Once title={t("tokens.made")} text={t("tokens.madeText")} secret={secret} onClose={() => setSecret(undefined)} />}
      {removing && <Revoke user={user} token={removing} onClose={() => setRemoving(undefined)} />}
    </Topic>
  )
}

function TokenForm({ user, onClose, onMade }: { user: string; onClose: () => void; onMade: (secret: string) => void }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("tokens")
  const make = useAct((v: Value) => call(client.POST("/api/v1/users/{id}/tokens", { params: { path: { id: user } }, body: { name: String(v.name ?? ""), ...(v.scopes ? { scopes: v.scopes as string[] } : {}), expires_in: v.days ? Number(v.days) * 86_400 : 0 } })), { stale: ["tokens"], quiet: true, then: (made) => onMade(made.secret) })
  return (
    <RecordForm
      start={{ days: "90" }}
      verb={t("tokens.make")}
      onCancel={onClose}
      onSave={(value) => make.mutateAsync(value)}
      fields={[
        field("name", { kind: "text", required: true, placeholder: t("tokens.example") }),
        field("scopes", { kind: "choices", options: scopes.map((s) => ({ value: s, label: t(`tokens.scope.${s}`) })) }),
        field("days", { kind: "choice", options: lifetimes.map((n) => ({ value: String(n), label: t("days", { count: n }) })) }),
      ]}
    />
  )
}

function Revoke({ user, token: k, onClose }: { user: string; token: Token; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const revoke = useAct(() => call(client.DELETE("/api/v1/users/{id}/tokens/{token}", { params: { path: { id: user, token: k.id } } })), { stale: ["tokens"], done: t("tokens.revoked", { name: k.name }), quiet: true })
  return (
    <Sure title={t("tokens.revokeOf", { name: k.name })} verb={t("tokens.revoke")} danger act={() => revoke.mutateAsync()} onClose={onClose}>
      <Text>{t("tokens.revokeText")}</Text>
    </Sure>
  )
}
