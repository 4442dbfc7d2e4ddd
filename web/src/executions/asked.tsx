import { Button, Text } from "@mantine/core"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import type { Schemas } from "@/api/client"
import { Data } from "@/parts/data"
import { plain } from "@/parts/plain"
import { When } from "@/parts/when"
import { meansText } from "./means"
import { peopleText, personText } from "./people"
import classes from "./history.module.css"

type Question = Schemas["HistoryQuestion"]

/** answerText is what an answer says, in one line. */
export function answerText(data: unknown): string {
  if (typeof data !== "object" || data === null) return data === undefined ? "" : String(data)
  const d = data as Record<string, unknown>
  const main = d.action ?? d.decision ?? d.outcome ?? d.selected ?? d.choice
  if (typeof main === "string") return typeof d.notes === "string" && d.notes ? `${main} · ${d.notes}` : main
  const text = JSON.stringify(data)
  return text.length > 200 ? text.slice(0, 200) + "…" : text
}

/** Asked tells of one question: who was asked, exactly what they saw, who answered what and by which means, and what came of it. */
export function Asked({ q, execution }: { q: Question; execution: string }) {
  const { t } = useTranslation("executions")
  const [open, setOpen] = useState(false)
  const title = (q.shown as { title?: string } | null | undefined)?.title
  return (
    <div className={classes.question}>
      <div>
        {t("asked.asked", { who: peopleText(q.asked, t) || personText("anyone", t) })} <When at={q.asked_at} />
        {title && (
          <>
            {": "}
            <bdi>{plain(title)}</bdi>
          </>
        )}
        {q.risk && ` · ${t("asked.risk", { risk: t(`asked.risks.${q.risk}`, { defaultValue: q.risk }) })}`}
      </div>
      {(q.messages ?? []).map((m) => (
        <Text key={m.id} fz="xs" c="dimmed">
          {t("asked.message", { kind: t(`asked.kinds.${m.kind}`, { defaultValue: m.kind }), to: m.recipient ?? "", channel: m.channel_type, status: t(`asked.sent.${m.status}`) })}
          {m.error && ` · ${m.error}`}
        </Text>
      ))}
      {(q.delegations ?? []).map((d) => (
        <Text key={`${d.from} ${d.at}`} fz="xs">
          {t("asked.delegated", { from: d.from, to: d.to })} <When at={d.at} /> {d.note}
        </Text>
      ))}
      {(q.answers ?? []).map((a) => (
        <div key={a.id}>
          <strong>
            <bdi>{a.user_id ?? a.address ?? t("who.anyone")}</bdi>
          </strong>
          {": "}
          <bdi>{plain(answerText(a.response_data) || (a.raw ?? ""))}</bdi> <When at={a.received_at} />
          {!a.accepted && ` · ${t("asked.notCounted")}`}
          {a.ground && ` · ${t(`asked.ground.${a.ground}`)}`}
          {a.reason && ` · ${a.reason}`}
          <Text fz="xs" c="dimmed">
            {a.means ? meansText(a.means, a.user_id, t) : a.channel_type}
          </Text>
        </div>
      ))}
      {q.override && (
        <Text fz="sm">
          {t("asked.override", { by: q.override.by, reason: q.override.reason })} <When at={q.override.at} />
        </Text>
      )}
      <div>
        {t(`asked.status.${q.status ?? "pending"}`)}
        {q.ended_at !== undefined && (
          <>
            {" "}
            <When at={q.ended_at} />
          </>
        )}
        <Button size="compact-xs" variant="subtle" ml={6} aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? t("asked.hide") : t("asked.show")}
        </Button>
      </div>
      {open && (
        <>
          <Data value={q.shown} execution={execution} label={t("asked.shown")} height={260} />
          {q.outcome !== undefined && q.outcome !== null && <Data value={q.outcome} execution={execution} label={t("asked.outcome")} height={160} />}
        </>
      )}
    </div>
  )
}
