import { Anchor, Button, Group, Loader, Text } from "@mantine/core"
import { IconPlayerStop, IconSnowflake } from "@tabler/icons-react"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { lazy, Suspense, useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client } from "@/api/client"
import { useRole } from "@/api/me"
import { InlineQuestion } from "@/parts/question/inline"
import { visible } from "@/parts/question/value"
import { StateMark } from "@/parts/state"
import { Failed, Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { Plan } from "./plan"
import { Said } from "./said"
import { type Run, useTask } from "./queries"
import classes from "./agents.module.css"

const Freeze = lazy(() => import("./freeze"))

/** Turn is one task in a conversation: what was asked for, the plan as it grows, what it wants to know, and its answer while it is written. */
export function Turn({ id }: { id: string }) {
  const { t } = useTranslation("agents")
  const { query, ended, text } = useTask(id)
  return (
    <Shown query={query} what={t("chat.reading")}>
      {(run) => (
        <article className={classes.turn} aria-label={visible(run.task?.question ?? "")}>
          <div className={classes.mine}>
            <Text className={classes.said}>{visible(run.task?.question ?? "")}</Text>
            <Text fz="xs" c="dimmed">
              <When at={run.created_at} />
            </Text>
          </div>
          <Plan steps={run.task?.steps ?? []} execution={id} />
          {(run.questions ?? []).map((q) => (
            <InlineQuestion key={q.interaction_id} id={q.interaction_id} onAnswered={() => void query.refetch()} />
          ))}
          {text && <Said text={text} writing={!ended} />}
          {run.error && !text && (
            <Text c="var(--state-red)" className={classes.said}>
              {visible(run.error.error_message)}
            </Text>
          )}
          <Foot run={run} ended={ended} />
        </article>
      )}
    </Shown>
  )
}

function Foot({ run, ended }: { run: Run; ended: boolean }) {
  const { t } = useTranslation("agents")
  const operates = useRole("editor", "operator")
  const editor = useRole("editor")
  const queries = useQueryClient()
  const [freezes, setFreezes] = useState(false)
  const stop = useMutation({
    mutationFn: () => call(client.POST("/api/v1/executions/{id}/actions", { params: { path: { id: run.execution_id } }, body: { action: "cancel" } })),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["executions", run.execution_id] }),
  })
  const waits = (run.questions ?? []).length > 0
  const called = (run.task?.steps ?? []).some((s) => s.status === "SUCCESS")
  return (
    <>
      {stop.error && <Failed error={stop.error} />}
      <Group gap="sm" className={classes.foot}>
        {!ended && !waits && run.status === "RUNNING" ? (
          <Group gap={6} role="status">
            <Loader size={14} /> <Text fz="sm">{t("turn.works")}</Text>
          </Group>
        ) : (
          <StateMark status={run.status} />
        )}
        {!ended && operates && (
          <Button size="xs" variant="default" leftSection={<IconPlayerStop size={14} />} loading={stop.isPending} onClick={() => stop.mutate()}>
            {t("turn.stop")}
          </Button>
        )}
        {run.status === "SUCCESS" && called && editor && (
          <Button size="xs" variant="default" leftSection={<IconSnowflake size={14} />} onClick={() => setFreezes(true)}>
            {t("turn.freeze")}
          </Button>
        )}
        <Anchor component={Link} to={`/executions/${encodeURIComponent(run.execution_id)}`} fz="sm">
          {t("turn.look")}
        </Anchor>
      </Group>
      {freezes && (
        <Suspense>
          <Freeze run={run} onClose={() => setFreezes(false)} />
        </Suspense>
      )}
    </>
  )
}
