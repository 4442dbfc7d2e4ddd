import { Button, Checkbox, Collapse, Group, Text, Textarea } from "@mantine/core"
import { IconSend } from "@tabler/icons-react"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type KeyboardEvent, useState } from "react"
import { useTranslation } from "react-i18next"
import { useNavigate } from "react-router"
import { call, client, Failure } from "@/api/client"
import { useRole } from "@/api/me"
import { parse } from "@/parts/question/exact"
import { Failed } from "@/parts/states"
import type { Agent } from "./queries"
import classes from "./agents.module.css"

const most = 2_000

const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("")

type Draft = { question: string; known: string; ask: boolean; key: string }

const at = (agent: string) => `tandem.agent.${agent}`

function kept(agent: string): Draft {
  try {
    return { question: "", known: "", ask: false, key: newKey(), ...(JSON.parse(sessionStorage.getItem(at(agent)) ?? "{}") as Partial<Draft>) }
  } catch {
    return { question: "", known: "", ask: false, key: newKey() }
  }
}

/**
 * Composer gives an agent something to do. What is typed is kept until it was taken, also over a reload; each text carries a key of its own, so that
 * sending it twice starts one task.
 */
export function Composer({ agent, conversation }: { agent: Agent; conversation?: string }) {
  const { t } = useTranslation("agents")
  const id = agent.id ?? ""
  const may = useRole("editor", "operator")
  const go = useNavigate()
  const queries = useQueryClient()
  const [draft, setDraft] = useState(() => kept(id))
  const [more, setMore] = useState(draft.known !== "")
  const [wrong, setWrong] = useState("")
  const change = (part: Partial<Draft>) => {
    const next = { ...draft, ...part, key: newKey() }
    setDraft(next)
    sessionStorage.setItem(at(id), JSON.stringify(next))
  }
  const send = useMutation({
    mutationFn: (metadata: unknown) =>
      call(
        client.POST("/api/v1/agents/{id}/tasks", {
          params: { path: { id }, header: { "Idempotency-Key": draft.key } },
          body: { question: draft.question.trim(), ...(conversation ? { conversation_id: conversation } : {}), ...(metadata === undefined ? {} : { metadata }), ...(draft.ask ? { auto_execute: false } : {}) },
        }),
      ),
    onSuccess: (started) => {
      sessionStorage.removeItem(at(id))
      setDraft({ question: "", known: "", ask: draft.ask, key: newKey() })
      void queries.invalidateQueries({ queryKey: ["agents", "tasks"] })
      void go(`/agents/${encodeURIComponent(id)}/tasks/${encodeURIComponent(started.task_id)}`)
    },
  })
  const submit = () => {
    if (draft.question.trim() === "" || send.isPending) return
    setWrong("")
    let metadata: unknown
    if (draft.known.trim()) {
      try {
        metadata = parse(draft.known)
        if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) throw new Error()
      } catch {
        return setWrong(t("chat.knownWrong"))
      }
    }
    send.mutate(metadata)
  }
  const typed = (e: KeyboardEvent) => {
    if (e.key !== "Enter" || e.shiftKey || e.nativeEvent.isComposing) return
    e.preventDefault()
    submit()
  }
  if (!may) return <Text c="dimmed">{t("chat.mayNot")}</Text>
  const late = send.error instanceof Failure && send.error.status === 429
  return (
    <form
      className={classes.composer}
      aria-label={t("chat.form")}
      onSubmit={(e) => {
        e.preventDefault()
        submit()
      }}
    >
      <Textarea
        label={conversation ? t("chat.next") : t("chat.goal")}
        description={t("chat.enter")}
        placeholder={conversation ? undefined : t("chat.placeholder")}
        autosize
        minRows={2}
        maxRows={10}
        maxLength={most}
        value={draft.question}
        onChange={(e) => change({ question: e.currentTarget.value })}
        onKeyDown={typed}
      />
      <Collapse expanded={more}>
        <Textarea label={t("chat.known")} description={t("chat.knownAbout")} autosize minRows={2} maxRows={10} spellCheck={false} classNames={{ input: classes.mono }} value={draft.known} error={wrong} onChange={(e) => change({ known: e.currentTarget.value })} />
        <Checkbox mt="sm" label={t("chat.ask")} checked={draft.ask} onChange={(e) => change({ ask: e.currentTarget.checked })} />
      </Collapse>
      {send.error && (late ? <Text c="var(--state-red)">{t("chat.tooMany")}</Text> : <Failed error={send.error} lost={t("chat.kept")} />)}
      <Group justify="space-between">
        <Button variant="subtle" size="compact-sm" aria-expanded={more} onClick={() => setMore(!more)}>
          {more ? t("chat.less") : t("chat.more")}
        </Button>
        <Button type="submit" leftSection={<IconSend size={16} />} loading={send.isPending} disabled={draft.question.trim() === ""}>
          {t("chat.send")}
        </Button>
      </Group>
    </form>
  )
}
