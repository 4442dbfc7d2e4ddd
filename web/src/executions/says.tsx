import { Anchor, Button, Group, Text } from "@mantine/core"
import { useMutation, useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, Failure, type Schemas } from "@/api/client"
import { plain } from "@/parts/plain"
import { lasted, When } from "@/parts/when"
import { useNotice } from "@/shell/notices"
import { peopleText, personText } from "./people"
import type { Run } from "./run"
import classes from "./one.module.css"

type Execution = Schemas["Execution"]

/** useQuestions are the open questions of an execution and of those that it has started, with who is asked. */
export function useQuestions(id: string, waiting: boolean) {
  return useQuery({
    queryKey: ["interactions", "execution", id],
    enabled: waiting,
    queryFn: ({ signal }) => call(client.GET("/api/v1/interactions", { params: { query: { execution_id: id, family: true, status: ["pending"], page_size: 20 } }, signal })).then((got) => got.interactions ?? []),
  })
}

/** Says tells the state of an execution and since when, in words, with what to do about it. */
export function Says({ e, run }: { e: Execution; run: Run }) {
  const { t } = useTranslation("executions")
  const waiting = e.status === "WAITING_FOR_HUMAN" || (e.questions ?? []).length > 0
  const { data: questions } = useQuestions(e.execution_id, waiting)
  const lines: ReactNode[] = []
  const acts = e.acts ?? []
  const node = (id: string | undefined) => run.steps.findLast((s) => s.node === id)?.name ?? id ?? ""
  switch (e.status) {
    case "SUCCESS":
      lines.push(
        <span key="s">
          {t("says.success", { time: lasted(e.duration_ms ?? 0) })} <When at={e.end_time} />
        </span>,
      )
      break
    case "ERROR":
    case "TIMEOUT":
      lines.push(
        <span key="e">
          {e.error?.error_node_id ? t(e.status === "ERROR" ? "says.failedIn" : "says.timeoutIn", { node: node(e.error.error_node_id) }) : t(e.status === "ERROR" ? "says.failed" : "says.timeout")} <When at={e.end_time} />
        </span>,
      )
      break
    case "CANCELED": {
      const act = acts.findLast((a) => a.action === "cancel")
      lines.push(
        <span key="c">
          {act ? t("says.cancelledBy", { by: act.by }) : t("says.cancelled")} <When at={e.end_time} />
          {act?.reason && ` · ${act.reason}`}
        </span>,
      )
      break
    }
    case "PAUSED": {
      const act = acts.findLast((a) => a.action === "pause")
      lines.push(
        <span key="p">
          {act ? t("says.pausedBy", { by: act.by }) : t("says.paused")} <When at={act?.at ?? e.updated_at} />
          {act?.reason && ` · ${act.reason}`}
        </span>,
      )
      break
    }
    case "RUNNING":
      lines.push(
        <span key="r">
          {t("says.running")} <When at={e.start_time} />
          {(e.current_node_ids ?? []).length > 0 && ` · ${t("says.at", { nodes: (e.current_node_ids ?? []).slice(0, 4).map(node).join(", ") })}`}
        </span>,
      )
      break
    case "WAITING": {
      const due = run.steps.reduce<number | undefined>((least, s) => (s.end === undefined && s.due !== undefined && (least === undefined || s.due < least) ? s.due : least), undefined)
      lines.push(
        <span key="w">
          {t("says.waiting", { nodes: (e.current_node_ids ?? []).slice(0, 4).map(node).join(", ") })}{" "}
          {due !== undefined && (
            <>
              {t("says.due")} <When at={due} />
            </>
          )}
        </span>,
      )
      break
    }
    case "NEW":
    case "PENDING":
      lines.push(<span key="n">{t("says.pending")}</span>)
  }
  for (const q of questions ?? []) lines.push(<Waits key={q.id} q={q} mine={q.execution_id === e.execution_id} />)
  if (waiting && questions && questions.length === 0 && e.status === "WAITING_FOR_HUMAN") lines.push(<span key="h">{t("says.human")}</span>)
  return (
    <div className={classes.says} role="status">
      {lines.map((line, i) => (
        <div key={i}>{line}</div>
      ))}
    </div>
  )
}

// Waits says who is waited for, for what, and since when, with the ways to go on.
function Waits({ q, mine }: { q: Schemas["Interaction"]; mine: boolean }) {
  const { t } = useTranslation("executions")
  const say = useNotice()
  const remind = useMutation({
    mutationFn: () => call(client.POST("/api/v1/interactions/{id}/remind", { params: { path: { id: q.id } } })),
    onSuccess: () => say(t("says.reminded")),
    onError: (error) => say(t("says.notReminded"), { tone: "bad", detail: error instanceof Failure ? error.message : String(error) }),
  })
  const title = (q.request_data as { title?: string } | undefined)?.title
  return (
    <Group gap={8} component="span">
      <span>
        {t(`says.waits.${q.purpose === "human_node" ? q.interaction_type : q.purpose}`, { who: peopleText(q.approvers, t) || personText("anyone", t), defaultValue: t("says.waits.other", { who: peopleText(q.approvers, t) }) })} <When at={q.created_at} />
        {title && (
          <>
            {": "}
            <bdi>{plain(title)}</bdi>
          </>
        )}
      </span>
      <Anchor component={Link} to={`/inbox/${encodeURIComponent(q.id)}`} fz="sm">
        {t("says.answer")}
      </Anchor>
      <Button size="compact-xs" variant="subtle" loading={remind.isPending} onClick={() => remind.mutate()}>
        {t("says.remind")}
      </Button>
      {!mine && (
        <Anchor component={Link} to={`/executions/${encodeURIComponent(q.execution_id)}`} fz="sm">
          {t("says.below")}
        </Anchor>
      )}
      {q.timeout_at !== undefined && q.timeout_at > 0 && (
        <Text span fz="xs" c="dimmed">
          {t("says.until")} <When at={q.timeout_at} />
        </Text>
      )}
    </Group>
  )
}
