import { Text } from "@mantine/core"
import { useId } from "react"
import { useTranslation } from "react-i18next"
import type { Question } from "@/parts/question/types"
import { ValueTable, visible } from "@/parts/question/value"
import { When } from "@/parts/when"
import { answerText, type Data } from "./answer_text"
import { Reading, type Reply } from "./reading"
import { useWho } from "./who"
import classes from "./inbox.module.css"

/** Votes says who has answered so far where several people have to. */
export function Votes({ question: q }: { question: Question }) {
  const { t } = useTranslation("inbox")
  const who = useWho()
  const votes = (q.responses ?? []).filter((r) => r.accepted && !r.overruled_by)
  if (q.status !== "pending" || (q.min_approvals <= 1 && votes.length === 0 && (q.approvers ?? []).length <= 1)) return null
  return (
    <section aria-label={t("votes.title")}>
      <Text fz="sm" fw={600}>
        {t("votes.title")}: {q.min_approvals > 1 ? t("votes.of", { votes: votes.length, needed: q.min_approvals }) : t("votes.count", { count: votes.length })}
      </Text>
      {votes.map((r) => (
        <Text key={r.id} fz="sm" className={classes.wrap}>
          {who.one(r.user_id ? "user:" + r.user_id : (r.address ?? ""))}: {visible(answerText(q, r.response_data as Data) || t("votes.answered"))} · <When at={r.received_at} />
        </Text>
      ))}
    </section>
  )
}

type Line = { at: number; key: string; text: string; note?: string; data?: unknown; bad?: boolean; reply?: Reply }

/** History is everything that happened to a question, in order: asked, sent, handed on, answered, ended. */
export function History({ question: q }: { question: Question }) {
  const { t } = useTranslation("inbox")
  const who = useWho()
  const id = useId()
  const person = (r: Reply) => who.one(r.user_id ? "user:" + r.user_id : (r.address ?? t("who.somebody")))
  const lines: Line[] = [{ at: q.created_at, key: "asked", text: t("history.asked", { who: who.list(q.approvers ?? []) }) }]
  for (const d of q.deliveries ?? []) {
    const values = { channel: d.channel_type, to: visible(d.recipient ?? "") }
    lines.push({ at: d.created_at, key: d.id, text: t(`history.delivery.${d.kind}`, values), note: d.status === "failed" ? t("history.undelivered", { error: visible(d.error ?? "") }) : undefined, bad: d.status === "failed" })
  }
  for (const d of q.delegations ?? []) {
    const values = { from: who.one(d.from), to: who.one(d.to), by: d.by ? who.one("user:" + d.by) : "" }
    lines.push({ at: d.at, key: `${d.from}-${d.to}-${d.at}`, text: d.by ? t("history.handedFor", values) : t("history.handed", values), note: d.note && visible(d.note) })
  }
  for (const r of q.responses ?? []) {
    const data = (r.response_data ?? {}) as Data
    const said = answerText(q, data)
    lines.push({
      at: r.received_at,
      key: r.id,
      text: r.accepted && !r.overruled_by ? t(r.ground === "override" ? "history.override" : "history.answered", { who: person(r), what: visible(said) }) : t("history.notCounted", { who: person(r) }),
      reply: r.relevance ? r : undefined,
      note: [data.notes && data.notes !== r.raw ? visible(String(data.notes)) : "", r.reason ? visible(r.reason) : ""].filter(Boolean).join("\n"),
      data: said || r.relevance ? undefined : (data.field_values ?? data.scores ?? data.content),
    })
  }
  if (q.status !== "pending") lines.push({ at: q.updated_at, key: "ended", text: t(`history.${q.status}`) })
  lines.sort((a, b) => a.at - b.at)
  return (
    <section aria-labelledby={id}>
      <Text fz="sm" fw={600} id={id} component="h2" m={0}>
        {t("history.title")}
      </Text>
      <ol className={classes.history}>
        {lines.map((line) => (
          <li key={line.key}>
            <Text fz="sm" className={classes.wrap} c={line.bad ? "var(--state-red)" : undefined}>
              <span className={classes.at}>
                <When at={line.at} />
              </span>{" "}
              {line.text}
            </Text>
            {line.note && (
              <Text fz="sm" className={classes.note}>
                {line.note}
              </Text>
            )}
            {line.reply && <Reading question={q} reply={line.reply} />}
            {line.data !== undefined && line.data !== null && <ValueTable value={line.data} label={t("history.given")} />}
          </li>
        ))}
      </ol>
    </section>
  )
}
