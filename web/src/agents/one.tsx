import { Alert, Anchor, Breadcrumbs, Button, Group, Switch, Text, Title } from "@mantine/core"
import { IconPencil, IconPlus, IconTrash } from "@tabler/icons-react"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { Link, useNavigate, useParams, useSearchParams } from "react-router"
import { call, client } from "@/api/client"
import { useMe, useRole } from "@/api/me"
import { visible } from "@/parts/question/value"
import { Failed, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { useNotice } from "@/shell/notices"
import { Chat } from "./chat"
import { AgentForm } from "./form"
import { type Agent, useAgent, useToolServers } from "./queries"
import { Tasks } from "./tasks"
import classes from "./agents.module.css"

/** One agent: its earlier tasks, and the conversation in which it is given something to do. */
export function Component() {
  const { t } = useTranslation("agents")
  const { id = "", task } = useParams()
  const query = useAgent(id)
  return (
    <Shown query={query} what={t("reading")}>
      {(agent) => <One agent={agent} task={task} />}
    </Shown>
  )
}

function One({ agent, task }: { agent: Agent; task?: string }) {
  const { t } = useTranslation("agents")
  const [search, setSearch] = useSearchParams()
  const editor = useRole("editor")
  const id = agent.id ?? ""
  const name = visible(agent.name || id)
  useEffect(() => {
    document.title = `${name} · Tandem`
  }, [name])
  const edits = search.has("edit") && editor
  return (
    <div className={classes.one}>
      <aside className={classes.side} aria-label={t("tasks.title")}>
        <Button component={Link} to={`/agents/${encodeURIComponent(id)}`} variant="default" fullWidth leftSection={<IconPlus size={16} />}>
          {t("tasks.new")}
        </Button>
        <Tasks agent={id} open={task} />
      </aside>
      <div className={classes.main}>
        <header className={classes.head}>
          <Breadcrumbs fz="sm">
            <Anchor component={Link} to="/agents" fz="sm">
              {t("title")}
            </Anchor>
          </Breadcrumbs>
          <Group justify="space-between" gap="xs" wrap="wrap">
            <Title order={1} size="h3" className={classes.wrap}>
              {name}
            </Title>
            {editor && !edits && (
              <Group gap="xs">
                <Button size="xs" variant="default" leftSection={<IconPencil size={14} />} onClick={() => setSearch({ edit: "" })}>
                  {t("edit")}
                </Button>
                <Remove agent={agent} />
              </Group>
            )}
          </Group>
          <Text fz="sm" c="dimmed" className={classes.wrap}>
            {t("model", { profile: agent.llm_profile })} · {(agent.mcp_servers ?? []).length > 0 ? t("tools", { list: (agent.mcp_servers ?? []).join(", ") }) : t("noTools")}
          </Text>
        </header>
        {edits && <AgentForm key={agent.revision} agent={agent} onClose={() => setSearch({})} onSaved={() => setSearch({})} />}
        <Inactive agent={agent} />
        {agent.auto_execute && <AutoExecute />}
        <Chat key={id} agent={agent} task={task} />
      </div>
    </div>
  )
}

function Remove({ agent }: { agent: Agent }) {
  const { t } = useTranslation("agents")
  const [asks, setAsks] = useState(false)
  const go = useNavigate()
  const queries = useQueryClient()
  const act = async () => {
    await call(client.DELETE("/api/v1/agents/{id}", { params: { path: { id: agent.id ?? "" } } }))
    void queries.invalidateQueries({ queryKey: ["agents", "list"] })
    void go("/agents")
  }
  return (
    <>
      <Button size="xs" variant="default" leftSection={<IconTrash size={14} />} onClick={() => setAsks(true)}>
        {t("remove")}
      </Button>
      {asks && (
        <Sure title={t("removeTitle", { name: agent.name || agent.id })} verb={t("remove")} danger act={act} onClose={() => setAsks(false)}>
          <Text>{t("removeText")}</Text>
        </Sure>
      )}
    </>
  )
}

// Inactive names the tool servers of the agent that the user has not activated: their tools are left out.
function Inactive({ agent }: { agent: Agent }) {
  const { t } = useTranslation("agents")
  const may = useRole("editor", "operator")
  const say = useNotice()
  const queries = useQueryClient()
  const wanted = agent.mcp_servers ?? []
  const { data } = useToolServers(may && wanted.length > 0)
  const activate = useMutation({
    mutationFn: (id: string) => call(client.POST("/api/v1/mcp/servers/{id}/activate", { params: { path: { id } }, body: {} })),
    onSuccess: (_, id) => say(t("inactive.done", { id })),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["mcp"] }),
  })
  const idle = (data?.servers ?? []).filter((s) => wanted.includes(s.id ?? "") && !s.activated)
  if (idle.length === 0) return null
  return (
    <Alert color="yellow" title={t("inactive.title")} role="note">
      <Text fz="sm">{t("inactive.text")}</Text>
      <Group mt="xs" gap="xs">
        {idle.map((s) => (
          <Button key={s.id} size="xs" variant="default" loading={activate.isPending && activate.variables === s.id} onClick={() => activate.mutate(s.id ?? "")}>
            {t("inactive.do", { name: s.name || s.id })}
          </Button>
        ))}
      </Group>
      {activate.error && <Failed error={activate.error} />}
    </Alert>
  )
}

// AutoExecute is the user's own word that calls of low risk may run without asking; agents alone do not decide that.
function AutoExecute() {
  const { t } = useTranslation("agents")
  const { data: me } = useMe()
  const queries = useQueryClient()
  const set = useMutation({
    mutationFn: (auto_execute: boolean) => call(client.PATCH("/api/v1/users/me", { body: { auto_execute } })),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["me"] }),
  })
  if (!me) return null
  return <Switch label={t("auto.label")} description={t("auto.text")} checked={set.isPending ? set.variables : me.auto_execute} disabled={set.isPending} onChange={(e) => set.mutate(e.currentTarget.checked)} />
}
