import { Alert, Anchor, Text } from "@mantine/core"
import { IconCircleCheck, IconClock, IconForbid2, IconHelpCircle } from "@tabler/icons-react"
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useRef } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { recordedEvents } from "@/api/events"
import { useFollow } from "@/api/live"
import { ended as hasEnded } from "@/api/status"
import type { Question } from "@/parts/question/types"
import { visible } from "@/parts/question/value"
import { StateMark } from "@/parts/state"
import { exact } from "@/parts/when"
import { answerText } from "./answer_text"
import { useWho } from "./who"
import classes from "./inbox.module.css"

const looks = { completed: { color: "green", icon: IconCircleCheck }, timeout: { color: "yellow", icon: IconClock }, cancelled: { color: "gray", icon: IconForbid2 }, error: { color: "red", icon: IconHelpCircle } }

/** Ended says what became of a question, and what the run has done since. */
export function Ended({ question: q, looking }: { question: Question; looking: boolean }) {
  const { t } = useTranslation("inbox")
  const who = useWho()
  const { color, icon: Icon } = looks[q.status as keyof typeof looks]
  const by = [...new Set((q.responses ?? []).filter((r) => r.accepted && !r.overruled_by).map((r) => who.one(r.user_id ? "user:" + r.user_id : (r.address ?? ""))))]
  const text = answerText(q)
  return (
    <Alert color={color} icon={<Icon />} role="status" title={t(`end.${q.status}`, { time: exact(q.updated_at) })}>
      {looking && <Text fw={600}>{t("looking")}</Text>}
      {q.status === "completed" && (
        <Text>
          {q.override ? t("overridden", { who: who.one("user:" + q.override.by), reason: visible(q.override.reason) }) : by.length > 0 ? t("answeredBy", { who: by.join(", ") }) : ""}
          {text && (
            <>
              {" "}
              <strong>{visible(text)}</strong>
            </>
          )}
        </Text>
      )}
      <RunNow question={q} />
    </Alert>
  )
}

// RunNow follows the run and names the steps that came after the question, each with its state.
function RunNow({ question: q }: { question: Question }) {
  const { t } = useTranslation("inbox")
  const queries = useQueryClient()
  const key = ["executions", q.execution_id, "now"]
  const query = useQuery({ queryKey: key, queryFn: ({ signal }) => call(client.GET("/api/v1/executions/{id}", { params: { path: { id: q.execution_id } }, signal })) })
  const run = query.data?.execution
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const changed = () => {
    clearTimeout(timer.current)
    timer.current = setTimeout(() => void queries.invalidateQueries({ queryKey: key }), 100)
  }
  const ended = hasEnded(run?.status)
  useFollow(run && !ended ? `/api/v1/executions/${encodeURIComponent(q.execution_id)}/events` : null, { events: Object.fromEntries(recordedEvents.map((e) => [e, changed])), after: run ? String(run.seq) : undefined })
  if (!run) return null
  const sequence = run.execution_sequence ?? []
  const since = sequence.slice(sequence.lastIndexOf(q.node_id) + 1).slice(-6)
  return (
    <div className={classes.run}>
      <span>
        {ended ? t("run.ended") : t("run.goesOn")} <StateMark status={run.status} />
      </span>
      {since.map((id, n) => {
        const node = run.node_executions[id]
        return (
          <span key={id + n} className={classes.step}>
            <StateMark status={nodeState(node?.status)} word={false} /> {visible(node?.node_name || id)}
          </span>
        )
      })}
      {run.error?.error_message && <Text fz="sm">{visible(run.error.error_message)}</Text>}
      <Anchor component={Link} to={`/executions/${encodeURIComponent(q.execution_id)}`} fz="sm" underline="always" c="inherit">
        {t("run.look")}
      </Anchor>
    </div>
  )
}

// The states of nodes have names of their own in the API.
const nodeStates: Record<Schemas["NodeExecution"]["status"], string> = { completed: "SUCCESS", failed: "ERROR", running: "RUNNING", retrying: "RUNNING", waiting_input: "WAITING_FOR_HUMAN", skipped: "SKIPPED", canceled: "CANCELED", pending: "PENDING" }
const nodeState = (status: Schemas["NodeExecution"]["status"] | undefined) => (status && nodeStates[status]) ?? "NEW"
