import { Text } from "@mantine/core"
import { IconCheck, IconClock, IconX } from "@tabler/icons-react"
import type { ReactNode } from "react"
import { useTranslation } from "react-i18next"
import { useNext } from "./consequence"
import { Countdown } from "./countdown"
import { decisionOf, type Question } from "./types"
import { visible } from "./value"
import classes from "./question.module.css"

/** Happens says what follows a yes, a no, and no answer at all, with the time that is left. */
export function Happens({ question: q }: { question: Question }) {
  const { t, i18n } = useTranslation("question")
  const next = useNext(q)
  const names = (list: string[]) => new Intl.ListFormat(i18n.language === "zh" ? "zh-CN" : "en").format(list.map((n) => `“${visible(n)}”`))
  const follow = (list: string[] | undefined, otherwise: string) => (list === undefined ? otherwise : list.length > 0 ? t("happens.next", { names: names(list) }) : t("happens.nothing"))
  const decision = q.form && decisionOf(q.form)
  const yes = decision?.choices?.filter((c) => c.outcome === "confirmed").map((c) => c.label)
  const no = decision?.choices?.filter((c) => c.outcome === "rejected").map((c) => c.label)
  const review = q.interaction_type === "review"
  const node = q.purpose === "human_node"
  const purpose = i18n.exists(`question:purpose.${q.purpose}.yes`) ? q.purpose : undefined
  const silence = q.request_data.timeout_action ?? "fail"
  const more = q.min_approvals > 1 ? " " + t("happens.votes", { count: q.min_approvals }) : ""
  return (
    <ul className={classes.facts} aria-label={t("happens.title")}>
      {node && yes?.length !== 0 && (
        <Line icon={<IconCheck size={16} aria-hidden />} label={yes?.length ? visible(yes.join(" / ")) : review ? t("happens.passed") : t("happens.sent")}>
          {follow(next?.confirmed, t("happens.yes"))}
          {more}
        </Line>
      )}
      {node && (review || !!no?.length) && (
        <Line icon={<IconX size={16} aria-hidden />} label={review ? t("happens.failed") : visible(no!.join(" / "))}>
          {follow(next?.rejected, t("happens.no"))}
        </Line>
      )}
      {purpose && !!yes?.length && purpose !== "outcome_unknown" && (
        <>
          <Line icon={<IconCheck size={16} aria-hidden />} label={visible(yes.join(" / "))}>
            {t(`purpose.${purpose}.yes`)}
          </Line>
          <Line icon={<IconX size={16} aria-hidden />} label={visible(no?.join(" / ") ?? "")}>
            {t(`purpose.${purpose}.no`)}
          </Line>
        </>
      )}
      {purpose && (!yes?.length || purpose === "outcome_unknown") && (
        <Line icon={<IconCheck size={16} aria-hidden />} label={t("happens.sent")}>
          {t(`purpose.${purpose}.yes`)}
        </Line>
      )}
      <Line icon={<IconClock size={16} aria-hidden />} label={t("happens.silence")}>
        {q.timeout_at ? (
          <>
            {silence === "continue" && next ? follow(next.timeout, t("silence.continue")) : t(`silence.${silence}`)} · <Countdown until={q.timeout_at} />
          </>
        ) : (
          t("silence.waits")
        )}
      </Line>
    </ul>
  )
}

function Line({ icon, label, children }: { icon: ReactNode; label: string; children: ReactNode }) {
  return (
    <li style={{ display: "flex", gap: 8 }}>
      <span style={{ flex: "none", paddingTop: 2 }}>{icon}</span>
      <Text fz="sm" span className={classes.wrap}>
        <strong>{label}:</strong> {children}
      </Text>
    </li>
  )
}
