import { Alert, Badge, Button, Group, Paper, Stack, Text, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useMe } from "@/api/me"
import { useSearch } from "@/api/search"
import { Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"
import { useFieldWords } from "./field_words"
import type { Value } from "./record"
import { RecordForm } from "./record_form"
import { Row, Rows } from "./rows"
import { Topic } from "./topic"
import classes from "./settings.module.css"

/** Account has one's own settings and the browsers in which one is logged in; as an admin the sessions of ?user=. */
export default function Account() {
  const { t } = useTranslation("settings")
  const { get } = useSearch()
  const me = useMe()
  const user = get("user") || "me"
  return (
    <Topic name="account">
      {user === "me" ? <Shown query={me}>{(u) => <Mine key={`${u.language} ${u.auto_execute}`} user={u} />}</Shown> : <Alert color="blue">{t("account.of", { user })}</Alert>}
      <Sessions user={user} />
    </Topic>
  )
}

function Mine({ user: u }: { user: Schemas["User"] }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("account")
  const save = useAct((v: Value) => call(client.PATCH("/api/v1/users/me", { body: { language: (v.language ?? "") as "zh" | "en" | "", auto_execute: v.auto_execute === true } })), { stale: ["me"], quiet: true, done: t("account.saved") })
  return (
    <Paper withBorder p="md" maw={640}>
      <Text pb="sm">
        <b>{u.name || u.id}</b> <code>{u.id}</code> · {(u.roles ?? []).map((r) => t(`role.${r}`)).join(t("and"))}
        {u.email && ` · ${u.email}`}
      </Text>
      <RecordForm
        start={{ language: u.language, auto_execute: u.auto_execute }}
        verb={t("save")}
        onSave={(value) => save.mutateAsync(value)}
        fields={[field("language", { kind: "choice", options: [{ value: "en", label: "English" }, { value: "zh", label: "中文" }] }), field("auto_execute", { kind: "switch" })]}
      />
    </Paper>
  )
}

// browserOf makes what a browser calls itself short enough to be read: Firefox 140 · Linux.
export function browserOf(agent: string): string {
  const browser = /(Edg|OPR)\/(\d+)/.exec(agent) ?? /(Firefox|HeadlessChrome|Chrome|Version)\/(\d+)/.exec(agent)
  const system = /Windows|Android|iPhone|iPad|Mac OS X|Linux/.exec(agent)?.[0]
  if (!browser) return agent.slice(0, 60) || "–"
  const names: Record<string, string> = { Edg: "Edge", OPR: "Opera", HeadlessChrome: "Chrome", Version: "Safari" }
  return [`${names[browser[1]!] ?? browser[1]} ${browser[2]}`, system].filter(Boolean).join(" · ")
}

function Sessions({ user }: { user: string }) {
  const { t } = useTranslation("settings")
  const [asking, setAsking] = useState(false)
  const query = useQuery({ queryKey: ["sessions", user], queryFn: ({ signal }) => call(client.GET("/api/v1/users/{id}/sessions", { params: { path: { id: user } }, signal })) })
  const end = useAct((session: string) => call(client.DELETE("/api/v1/users/{id}/sessions/{session}", { params: { path: { id: user, session } } })), { stale: ["sessions"], done: t("account.ended") })
  const endAll = useAct(() => call(client.DELETE("/api/v1/users/{id}/sessions", { params: { path: { id: user } } })), { stale: ["sessions"], done: t("account.endedAll"), quiet: true })
  return (
    <Shown query={query}>
      {({ sessions }) => (
        <Stack gap="xs" component="section">
          <Group justify="space-between">
            <Title order={2} size="h5">
              {t("account.sessions")}
            </Title>
            {(sessions ?? []).some((s) => !s.current) && (
              <Button size="xs" variant="default" onClick={() => setAsking(true)}>
                {t("account.endAll")}
              </Button>
            )}
          </Group>
          {(sessions ?? []).length === 0 ? (
            <Text c="dimmed">{t("account.noSessions")}</Text>
          ) : (
            <Rows label={t("account.sessions")} head={[t("account.browser"), t("account.from"), t("account.seen"), t("account.ends"), t("do")]}>
              {(sessions ?? []).map((s) => (
                <Row
                  key={s.id}
                  cells={[
                    <span key="b">
                      <span title={s.user_agent}>{browserOf(s.user_agent ?? "")}</span>{" "}
                      {s.current && (
                        <Badge color="green" variant="light" tt="none">
                          {t("account.current")}
                        </Badge>
                      )}
                    </span>,
                    <span key="f" className={classes.short}>
                      {s.address ?? "–"}
                    </span>,
                    <When key="s" at={s.seen_time} />,
                    <When key="e" at={s.expires_time} />,
                    !s.current && (
                      <Button key="a" size="compact-xs" variant="default" onClick={() => end.mutate(s.id)}>
                        {t("account.end")}
                      </Button>
                    ),
                  ]}
                />
              ))}
            </Rows>
          )}
          {asking && (
            <Sure title={t("account.endAll")} verb={t("account.endAll")} danger act={() => endAll.mutateAsync()} onClose={() => setAsking(false)}>
              <Text>{t("account.endAllText")}</Text>
            </Sure>
          )}
        </Stack>
      )}
    </Shown>
  )
}
