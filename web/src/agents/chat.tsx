import { Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useEffect, useRef } from "react"
import { useTranslation } from "react-i18next"
import { call, client } from "@/api/client"
import { ended } from "@/api/status"
import { Empty, Shown } from "@/parts/states"
import { Composer } from "./composer"
import { type Agent, useRun } from "./queries"
import { Turn } from "./turn"
import classes from "./agents.module.css"

/** Chat is a conversation with an agent: each task of it is a turn. Without a task it begins a new one. */
export function Chat({ agent, task }: { agent: Agent; task?: string }) {
  const { t } = useTranslation("agents")
  if (!task)
    return (
      <div className={classes.chat}>
        <Empty title={t("chat.begin")}>{t("chat.beginText")}</Empty>
        <Composer agent={agent} />
      </div>
    )
  return <Conversation agent={agent} task={task} />
}

function Conversation({ agent, task }: { agent: Agent; task: string }) {
  const { t } = useTranslation("agents")
  const first = useRun(task)
  const conversation = first.data?.task?.conversation_id
  const others = useQuery({
    queryKey: ["agents", "tasks", agent.id, "of", conversation],
    enabled: !!conversation,
    queryFn: ({ signal }) => call(client.GET("/api/v1/agents/{id}/tasks", { params: { path: { id: agent.id ?? "" }, query: { conversation_id: conversation, page: 1, page_size: 50 } }, signal })),
    placeholderData: (before) => before,
  })
  const end = useRef<HTMLDivElement>(null)
  // The listing has the newest first; a conversation is read from the beginning. The task of the address is there from the start.
  const turns = [...(others.data?.executions ?? [])].reverse().map((e) => e.execution_id)
  if (!turns.includes(task)) turns.push(task)
  useEffect(() => {
    end.current?.scrollIntoView({ block: "nearest" })
  }, [turns.length])
  return (
    <div className={classes.chat}>
      <Shown query={first} what={t("chat.reading")}>
        {() => (
          <>
            {turns.map((id) => (
              <Turn key={id} id={id} />
            ))}
          </>
        )}
      </Shown>
      <div ref={end} />
      {conversation && <GoOn agent={agent} conversation={conversation} last={turns[turns.length - 1]!} />}
    </div>
  )
}

// The next task of a conversation is begun when the last one has ended, so that it knows what came of it.
function GoOn({ agent, conversation, last }: { agent: Agent; conversation: string; last: string }) {
  const { t } = useTranslation("agents")
  const { data } = useRun(last)
  if (!data) return null
  if (!ended(data.status))
    return (
      <Text fz="sm" c="dimmed">
        {t("chat.later")}
      </Text>
    )
  return <Composer agent={agent} conversation={conversation} />
}
