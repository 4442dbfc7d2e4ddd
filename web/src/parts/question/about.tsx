import { Text } from "@mantine/core"
import { IconAlertTriangle, IconGitFork, IconShieldCheck } from "@tabler/icons-react"
import { type ReactNode, useId } from "react"
import { useTranslation } from "react-i18next"
import { Markdown } from "../markdown"
import { Changes, Edits } from "./difference"
import type { Change, Edit, Question } from "./types"
import { Prose, ValueTable, visible } from "./value"
import classes from "./question.module.css"

/** Risk says how much can go wrong, and why that was found. It has a word and an icon, not only a colour. */
export function Risk({ question: q }: { question: Question }) {
  const { t } = useTranslation("question")
  const { risk, reason, warning } = q.request_data
  if (risk !== "medium" && risk !== "high" && !reason) return null
  const level = risk === "high" || risk === "medium" ? risk : "low"
  const Icon = level === "low" ? IconShieldCheck : IconAlertTriangle
  return (
    <div className={`${classes.risk} ${classes[level]}`} role="note">
      <Icon size={18} stroke={1.8} aria-hidden style={{ flex: "none", marginTop: 2 }} />
      <div>
        <Text fw={600}>{t(`risk.${level}`)}</Text>
        {reason && <Prose>{reason}</Prose>}
        {warning && <Prose>{warning}</Prose>}
      </div>
    </div>
  )
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  const id = useId()
  return (
    <section className={classes.section} aria-labelledby={id}>
      <h2 id={id} className={classes.heading}>
        {title}
      </h2>
      {children}
    </section>
  )
}

// A description that repeats the reason of the risk says it once.
function descriptionOf(q: Question): string {
  const said = q.form?.description ?? q.request_data.description ?? ""
  const reason = q.request_data.reason
  return (reason ? said.replace(reason, "") : said).trim()
}

const isEmpty = (v: unknown) => v === undefined || v === null || v === "" || (typeof v === "object" && Object.keys(v).length === 0)

/** QuestionAbout shows what a question is about: why it is asked, the risk, exactly what will be done, and what has to be known before. */
export function QuestionAbout({ question: q }: { question: Question }) {
  const { t } = useTranslation("question")
  const r = q.request_data
  const description = descriptionOf(q)
  const edits: Edit[] = [...(r.fork?.edits ?? []), ...(r.fork?.earlier ?? []).flatMap((f) => f.edits ?? [])]
  // What was edited stands in the table, each beside what it was; the lines say the rest, whatever a value is called.
  const lines = (q.form?.lines ?? []).filter((_, n) => !q.form?.edit_lines?.includes(n))
  const changes = (r.content as { changes?: Change[] } | undefined)?.changes
  const drift = q.purpose === "drift" && Array.isArray(changes)
  // Of a step that lacks parameters, what it has stands in the form.
  const approved = q.purpose === "param" ? undefined : r.arguments
  return (
    <>
      {description && <Markdown text={description} breaks />}
      <Risk question={q} />
      {lines.length > 0 && (
        <div className={`${classes.risk} ${classes.medium}`} role="note">
          <IconGitFork size={18} stroke={1.8} aria-hidden style={{ flex: "none", marginTop: 2 }} />
          <div className={classes.grow}>
            <Text fw={600}>{t("lines")}</Text>
            {lines.map((line) => (
              <Text key={line} fz="sm" className={classes.wrap}>
                {visible(line)}
              </Text>
            ))}
            {edits.length > 0 && <Edits edits={edits} execution={q.execution_id} />}
          </div>
        </div>
      )}
      {!isEmpty(approved) && (
        <Section title={r.tool ? t("callExactly", { tool: visible(r.tool) }) : t("exactly")}>
          <ValueTable value={approved} label={t("exactly")} />
        </Section>
      )}
      {drift && (
        <Section title={t("changes")}>
          <Changes changes={changes} />
        </Section>
      )}
      {q.purpose === "budget" && (
        <Section title={t("budget.title")}>
          <ValueTable value={budgetOf(q, { limit: t("budget.limit"), spent: t("budget.spent"), needed: t("budget.needed") })} label={t("budget.title")} />
        </Section>
      )}
      {!drift && !isEmpty(r.content) && (
        <Section title={t("content")}>
          <ValueTable value={r.content} label={t("content")} />
        </Section>
      )}
    </>
  )
}

// A budget limits tokens or money; what is nought of all three is not limited.
function budgetOf(q: Question, names: Record<"limit" | "spent" | "needed", string>): Record<string, unknown> {
  const r = q.request_data as Record<string, Record<string, number> | undefined>
  const unit = r.limit?.cost ? "cost" : "tokens"
  return Object.fromEntries((["limit", "spent", "needed"] as const).filter((k) => r[k]).map((k) => [names[k], unit === "tokens" ? `${r[k]?.tokens ?? 0} tokens` : r[k]?.cost]))
}
