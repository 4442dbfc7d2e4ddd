import { Alert, Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useSearch } from "@/api/search"
import { Empty, Failed, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { lasted } from "@/parts/when"
import { ProfileForm } from "./profile_form"
import { Row, Rows } from "./rows"
import { Side, Topic, useMay } from "./topic"

type Profile = Schemas["Profile"]

/** Profiles says which models there are: each can be tried, changed and deleted. */
export default function Profiles() {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const may = useMay("profiles")
  const [testing, setTesting] = useState<Profile>()
  const [removing, setRemoving] = useState<Profile>()
  const query = useQuery({ queryKey: ["profiles"], queryFn: ({ signal }) => call(client.GET("/api/v1/llm/profiles", { signal })) })
  const close = () => set({ new: null, edit: null, id: null })
  return (
    <Topic name="profiles" add={t("profiles.add")} onAdd={() => set({ new: 1 })}>
      <Shown query={query}>
        {({ profiles, providers: registered }) => {
          const all = profiles ?? []
          const providers = registered ?? []
          const editing = all.find((p) => p.id === get("edit"))
          return (
            <>
              {all.length === 0 && <Empty title={t("profiles.none")} />}
              {all.length > 0 && (
                <Rows label={t("profiles.title")} head={[t("profiles.name"), t("profiles.field.provider"), t("profiles.field.model"), t("profiles.prices"), t("profiles.limits"), t("do")]}>
                  {all.map((p) => (
                    <Row
                      key={p.id}
                      cells={[
                        <Named key="n" id={p.id ?? ""} name={p.name} />,
                        p.provider,
                        p.model ?? "–",
                        p.price ? t("profiles.price", { input: p.price.input ?? 0, output: p.price.output ?? 0 }) : "–",
                        (p.budget ?? []).map((b) => t(`profiles.per.${b.per}`, { limit: [b.tokens ? t("profiles.tokens", { count: b.tokens }) : "", b.cost ? String(b.cost) : ""].filter(Boolean).join(" · ") })).join(", ") || "–",
                        <Group key="a" gap="xs" wrap="nowrap">
                          {may?.write && (
                            <Button size="compact-xs" variant="default" onClick={() => setTesting(p)} aria-label={t("profiles.testOf", { name: p.id })}>
                              {t("profiles.test")}
                            </Button>
                          )}
                          <Button size="compact-xs" variant="default" onClick={() => set({ edit: p.id ?? null })} aria-label={t(may?.write ? "changeOf" : "lookOf", { name: p.id })}>
                            {t(may?.write ? "change" : "look")}
                          </Button>
                          {may?.write && (
                            <Button size="compact-xs" variant="default" onClick={() => setRemoving(p)} aria-label={t("deleteOf", { name: p.id })}>
                              {t("delete")}
                            </Button>
                          )}
                        </Group>,
                      ]}
                    />
                  ))}
                </Rows>
              )}
              {get("new") && may?.write && (
                <Side title={t("profiles.add")} onClose={close}>
                  <ProfileForm start={{ provider: providers[0]?.name, ...(get("id") ? { id: get("id") } : {}) }} all={all} providers={providers} isNew onClose={close} />
                </Side>
              )}
              {editing && (
                <Side title={editing.id ?? ""} onClose={close}>
                  <ProfileForm key={editing.id} start={editing} all={all} providers={providers} readOnly={!may?.write} onClose={close} />
                </Side>
              )}
            </>
          )
        }}
      </Shown>
      {testing && <Test profile={testing} onClose={() => setTesting(undefined)} />}
      {removing && <Remove profile={removing} onClose={() => setRemoving(undefined)} />}
    </Topic>
  )
}

/** Named shows a record by its name, with its id beside it where that is another. */
export function Named({ id, name }: { id: string; name?: string }) {
  return (
    <>
      <Text span fw={600}>
        {name || id}
      </Text>
      {name && name !== id && (
        <Text span c="dimmed" fz="sm" ff="monospace">
          {" "}
          {id}
        </Text>
      )}
    </>
  )
}

function Test({ profile: p, onClose }: { profile: Profile; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const [prompt, setPrompt] = useState("")
  const test = useAct(() => call(client.POST("/api/v1/llm/profiles/{id}/test", { params: { path: { id: p.id ?? "" } }, body: prompt ? { prompt } : {} })), { stale: ["budgets"], quiet: true })
  const r = test.data
  return (
    <Modal opened onClose={onClose} title={t("profiles.testOf", { name: p.id })} closeButtonProps={{ "aria-label": t("places:close") }}>
      <Stack gap="sm">
        <Text>{t("profiles.testText")}</Text>
        <TextInput label={t("profiles.prompt")} placeholder={t("profiles.promptDefault")} value={prompt} onChange={(e) => setPrompt(e.currentTarget.value)} />
        {test.error ? <Failed error={test.error} /> : null}
        {r && (
          <Alert color={r.ok ? "green" : "red"} title={r.ok ? t("profiles.works", { time: lasted(r.latency_ms) }) : t("profiles.fails")} role="status">
            {r.reply && <Text style={{ whiteSpace: "pre-wrap" }}>{r.reply}</Text>}
            {r.error && (
              <Text>
                {r.error.message} <code>{r.error.code}</code>
              </Text>
            )}
            {r.usage && (
              <Text fz="sm" c="dimmed">
                {t("profiles.used", { input: r.usage.input_tokens, output: r.usage.output_tokens, cost: r.usage.cost })}
                {r.first_token_ms !== undefined && ` · ${t("profiles.firstToken", { time: lasted(r.first_token_ms) })}`}
              </Text>
            )}
            {(r.warnings ?? []).map((w) => (
              <Text key={w} fz="sm">
                {w}
              </Text>
            ))}
          </Alert>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("places:close")}
          </Button>
          <Button loading={test.isPending} onClick={() => test.mutate()} data-autofocus>
            {t("profiles.ask")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}

function Remove({ profile: p, onClose }: { profile: Profile; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const name = p.id ?? ""
  const remove = useAct((force: boolean) => call(client.DELETE("/api/v1/llm/profiles/{id}", { params: { path: { id: name }, query: force ? { force } : {} } })), { stale: ["profiles", "budgets"], done: t("deleted", { name }), quiet: true })
  return (
    <Sure title={t("deleteTitle", { name })} verb={t("delete")} forceVerb={t("deleteAnyway")} danger act={(force) => remove.mutateAsync(force)} onClose={onClose}>
      <Text>{t("profiles.deleteText")}</Text>
    </Sure>
  )
}
