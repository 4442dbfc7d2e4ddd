import { Button, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { visible } from "@/parts/question/value"
import { StateMark } from "@/parts/state"
import { Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { useRun } from "./queries"
import classes from "./agents.module.css"

const few = 20

/** Tasks lists what an agent was given to do, the newest first. */
export function Tasks({ agent, open }: { agent: string; open?: string }) {
  const { t } = useTranslation("agents")
  const [size, setSize] = useState(few)
  const query = useQuery({ queryKey: ["agents", "tasks", agent, size], queryFn: ({ signal }) => call(client.GET("/api/v1/agents/{id}/tasks", { params: { path: { id: agent }, query: { page: 1, page_size: size } }, signal })), placeholderData: (before) => before })
  return (
    <Shown query={query} what={t("tasks.reading")}>
      {({ executions, total_count }) => (
        <>
          {(executions ?? []).length === 0 && (
            <Text fz="sm" c="dimmed" p="xs">
              {t("tasks.none")}
            </Text>
          )}
          <ul className={classes.tasks}>
            {(executions ?? []).map((e) => (
              <li key={e.execution_id}>
                <Link to={`/agents/${encodeURIComponent(agent)}/tasks/${encodeURIComponent(e.execution_id)}`} className={classes.task} aria-current={e.execution_id === open ? "page" : undefined}>
                  <StateMark status={e.status} word={false} />
                  <span className={classes.grow}>
                    <TaskName task={e} />
                    <Text span fz="xs" c="dimmed" display="block">
                      <When at={e.created_at} />
                    </Text>
                  </span>
                </Link>
              </li>
            ))}
          </ul>
          {total_count > size && size < 100 && (
            <Button size="xs" variant="subtle" onClick={() => setSize(Math.min(100, size + few))}>
              {t("tasks.more")}
            </Button>
          )}
        </>
      )}
    </Shown>
  )
}

// The listing does not name tasks, so each is read once for its name.
function TaskName({ task }: { task: Schemas["ExecutionSummary"] }) {
  const { data } = useRun(task.execution_id)
  return <span className={classes.taskName}>{visible(data?.task?.flow_name || data?.task?.question || "…")}</span>
}
