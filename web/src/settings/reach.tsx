import { Alert, Button, Code, Group, Paper, Stack, Text, TextInput, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { useSearch } from "@/api/search"
import { Failed, Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { useFieldWords } from "./field_words"
import type { Value } from "./record"
import { RecordForm } from "./record_form"
import { Row, Rows } from "./rows"
import { Topic } from "./topic"

type Reach = Schemas["Reach"]

/** Reach says where questions reach a user besides the inbox: oneself, or as an admin ?user=. */
export default function ReachPage() {
  const { t } = useTranslation("settings")
  const { get } = useSearch()
  const user = get("user") || "me"
  const isAdmin = useRole()
  const reach = useQuery({ queryKey: ["reach", user], queryFn: ({ signal }) => call(client.GET("/api/v1/users/{id}/reach", { params: { path: { id: user } }, signal })) })
  const channels = useQuery({ queryKey: ["channels"], queryFn: ({ signal }) => call(client.GET("/api/v1/contact-channels", { signal })) })
  return (
    <Topic name="reach">
      {user !== "me" && <Alert color="blue">{t("reach.of", { user })}</Alert>}
      <Shown query={channels}>
        {({ channels: all }) => (
          <Shown query={reach}>
            {(r) => (
              <Stack gap="md">
                <Contacts user={user} reach={r} />
                {user === "me" && <Proofs reach={r} />}
                {(all ?? []).length === 0 ? (
                  <Text c="dimmed">
                    {t("reach.noChannels")} {isAdmin ? <Link to="/settings/channels">{t("channels.add")}</Link> : t("reach.askAdmin")}
                  </Text>
                ) : (
                  <Add key={(r.contacts ?? []).length} user={user} reach={r} channels={all ?? []} />
                )}
                {user === "me" && <Addresses reach={r} />}
              </Stack>
            )}
          </Shown>
        )}
      </Shown>
    </Topic>
  )
}

function useSetReach(user: string, done: string) {
  return useAct((contacts: Schemas["Contact"][]) => call(client.PUT("/api/v1/users/{id}/reach", { params: { path: { id: user } }, body: { contacts: contacts.map(({ channel, address, after_seconds }) => ({ channel, address, after_seconds })) } })), { stale: ["reach"], done, quiet: true })
}

function Contacts({ user, reach }: { user: string; reach: Reach }) {
  const { t } = useTranslation("settings")
  const change = useSetReach(user, t("reach.removed"))
  const all = reach.contacts ?? []
  return (
    <Stack gap="xs" component="section">
      <Title order={2} size="h5">
        {t("reach.now")}
      </Title>
      {all.length === 0 ? (
        <Text c="dimmed">{t("reach.inboxOnly")}</Text>
      ) : (
        <Rows label={t("reach.now")} head={[t("reach.field.channel"), t("reach.field.address"), t("reach.after"), t("do")]}>
          {all.map((c, i) => (
            <Row
              key={`${c.channel} ${c.address}`}
              cells={[
                <span key="c">
                  {c.channel}
                  {c.problem && (
                    <Text fz="sm" c="var(--state-red)">
                      {c.problem}
                    </Text>
                  )}
                </span>,
                c.address ?? "–",
                c.after_seconds ? t("reach.afterMinutes", { count: Math.round(c.after_seconds / 60) }) : t("reach.atOnce"),
                <Button key="a" size="compact-xs" variant="default" loading={change.isPending} onClick={() => change.mutate(all.filter((_, n) => n !== i))} aria-label={t("reach.removeOf", { channel: c.channel })}>
                  {t("reach.remove")}
                </Button>,
              ]}
            />
          ))}
        </Rows>
      )}
      {change.error ? <Failed error={change.error} /> : null}
    </Stack>
  )
}

// Add chooses another place. An address that is not known to be the user's is proved first, by a code that is sent there.
function Add({ user, reach, channels }: { user: string; reach: Reach; channels: Schemas["ContactChannel"][] }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("reach")
  const add = useSetReach(user, t("reach.added"))
  const prove = useAct((v: { channel: string; address: string }) => call(client.POST("/api/v1/users/me/addresses", { body: v })), { stale: ["reach"], done: t("reach.codeSent"), quiet: true })
  const known = new Set((reach.addresses ?? []).flatMap((a) => [a.toLowerCase(), a.slice(a.indexOf(":") + 1).toLowerCase()]))
  const needs = (v: Value) => channels.find((c) => c.name === v.channel)?.needs_address !== false
  const save = async (v: Value) => {
    const channel = String(v.channel ?? "")
    const address = needs(v) ? String(v.address ?? "").trim() : undefined
    if (user === "me" && address && !known.has(address.toLowerCase())) await prove.mutateAsync({ channel, address })
    else await add.mutateAsync([...(reach.contacts ?? []), { channel, address, after_seconds: v.minutes ? Number(v.minutes) * 60 : 0 }])
  }
  return (
    <Paper withBorder p="md" maw={640} component="section">
      <Title order={2} size="h5" pb="sm">
        {t("reach.add")}
      </Title>
      <RecordForm
        start={{ channel: channels[0]?.name }}
        verb={t("reach.verb")}
        onSave={save}
        fields={[field("channel", { kind: "choice", required: true, options: channels.map((c) => ({ value: c.name, label: `${c.name} (${t(`channels.type.${c.channel_type}`, c.channel_type)})` })) }), field("address", { kind: "text", required: true, when: needs, placeholder: (reach.addresses ?? []).map((a) => a.slice(a.indexOf(":") + 1))[0] }), field("minutes", { kind: "number", placeholder: "0" })]}
      />
    </Paper>
  )
}

function Proofs({ reach }: { reach: Reach }) {
  const { t } = useTranslation("settings")
  const proofs = reach.proofs ?? []
  if (proofs.length === 0) return null
  return (
    <Stack gap="xs" component="section">
      <Title order={2} size="h5">
        {t("reach.prove")}
      </Title>
      {proofs.map((p) => (
        <Proof key={p.address} proof={p} />
      ))}
    </Stack>
  )
}

function Proof({ proof }: { proof: Schemas["AddressProof"] }) {
  const { t } = useTranslation("settings")
  const [code, setCode] = useState("")
  const bare = proof.address.slice(proof.address.indexOf(":") + 1)
  const confirm = useAct(() => call(client.POST("/api/v1/users/me/addresses/confirm", { body: { address: bare, code: code.trim() } })), { stale: ["reach", "me"], done: t("reach.added"), quiet: true })
  return (
    <Paper withBorder p="sm" maw={640}>
      <Text pb={6}>
        {t("reach.enterCode", { address: bare })} <When at={proof.expires_time} />
      </Text>
      <Group align="flex-end">
        <TextInput label={t("reach.code")} value={code} onChange={(e) => setCode(e.currentTarget.value)} inputMode="numeric" autoComplete="one-time-code" />
        <Button loading={confirm.isPending} disabled={code.trim() === ""} onClick={() => confirm.mutate()}>
          {t("reach.confirm")}
        </Button>
      </Group>
      {confirm.error ? <Failed error={confirm.error} /> : null}
    </Paper>
  )
}

function Addresses({ reach }: { reach: Reach }) {
  const { t } = useTranslation("settings")
  const drop = useAct((address: string) => call(client.DELETE("/api/v1/users/me/addresses/{address}", { params: { path: { address } } })), { stale: ["reach", "me"], done: t("reach.dropped") })
  const all = reach.addresses ?? []
  if (all.length === 0) return null
  return (
    <Stack gap="xs" component="section">
      <Title order={2} size="h5">
        {t("reach.addresses")}
      </Title>
      {all.map((a) => (
        <Group key={a} gap="sm">
          <Code>{a}</Code>
          <Button size="compact-xs" variant="default" onClick={() => drop.mutate(a)} aria-label={t("reach.dropOf", { address: a })}>
            {t("reach.drop")}
          </Button>
        </Group>
      ))}
    </Stack>
  )
}
