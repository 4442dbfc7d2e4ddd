import { Alert, Button, Stack, Text, Textarea } from "@mantine/core"
import { IconAlertTriangle } from "@tabler/icons-react"
import { type FormEvent, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { Failure, type Schemas } from "@/api/client"
import { language } from "@/words"
import { answerOf, blame, isWrong, startOf, type Wrong } from "./answer"
import { useFilling } from "./draft"
import { Field } from "./field"
import { useAnswer } from "./queries"
import { type Choice, decisionOf, drawnOf, pathOf, type Question } from "./types"
import { visible } from "./value"
import classes from "./question.module.css"

type Props = {
  question: Question
  /** An admin decides in the place of those who are asked, and says why. */
  override?: boolean
  onAnswered?: (after: Schemas["Interaction"]) => void
}

const nothing: Wrong = { at: {}, rest: [] }

/** QuestionForm draws the form of a question as the server says it, and sends the answer. What was typed is kept until it is sent. */
export function QuestionForm({ question: q, override = false, onAnswered }: Props) {
  const { t } = useTranslation("question")
  const send = useAnswer(q)
  const { filling, fill, forget } = useFilling(q.id)
  const [wrong, setWrong] = useState<Wrong>(nothing)
  const [reason, setReason] = useState("")
  const [failure, setFailure] = useState<Failure>()
  const summary = useRef<HTMLDivElement>(null)
  const form = q.form
  if (!form) return <Alert color="red">{t("noForm")}</Alert>
  const decision = decisionOf(form)
  const tell = (w: Wrong) => {
    setWrong(w)
    if (isWrong(w)) setTimeout(() => summary.current?.focus(), 0)
  }
  const submit = (pressed?: Choice) => {
    setFailure(undefined)
    const { answer, wrong: found } = answerOf(form, filling, pressed, { required: t("required"), notJSON: t("notJSON") }, q.purpose === "param")
    if (override && reason.trim() === "") found.rest.push(t("reasonMissing"))
    if (isWrong(found)) return tell(found)
    send.mutate(
      { answer, reason: override ? reason : undefined },
      {
        onSuccess: (after) => {
          setWrong(nothing)
          forget()
          onAnswered?.(after)
        },
        onError: (error) => {
          const found = blame(form, error, language() === "zh")
          tell(found)
          if (!isWrong(found)) setFailure(error instanceof Failure ? error : new Failure(0, "", String(error)))
        },
      },
    )
  }
  // The enter key sends a form; it never decides one way or the other.
  const entered = (e: FormEvent) => {
    e.preventDefault()
    if (!decision) submit()
  }
  return (
    <form onSubmit={entered} noValidate autoComplete="off" className={classes.form} aria-label={override ? t("overrideForm") : t("form")}>
      {isWrong(wrong) && (
        <Alert color="red" role="alert" icon={<IconAlertTriangle />} title={t("check")} ref={summary} tabIndex={-1}>
          <Text fz="sm">{t("checkText")}</Text>
          {wrong.rest.map((line) => (
            <Text key={line} fz="sm">
              {visible(line)}
            </Text>
          ))}
        </Alert>
      )}
      {failure && (
        <Alert color={failure.away ? "yellow" : "red"} role="alert" icon={<IconAlertTriangle />} title={failure.away ? t("away") : t("refused")}>
          {failure.away ? t("awayText") : visible(failure.message)}
        </Alert>
      )}
      <Stack gap="md">
        {drawnOf(form).map((e) => (
          <Field key={pathOf(e)} entry={e} filled={filling[pathOf(e)] ?? startOf(e)} wrong={wrong.at[pathOf(e)]} disabled={send.isPending} onChange={(next) => fill(pathOf(e), next)} />
        ))}
        {override && <Textarea label={t("reason")} description={t("reasonAbout")} withAsterisk autosize minRows={2} maxLength={4000} value={reason} onChange={(e) => setReason(e.currentTarget.value)} disabled={send.isPending} />}
      </Stack>
      {decision?.label && <Text fw={600}>{visible(decision.label)}</Text>}
      <div className={classes.buttons}>
        {decision ? (
          decision.choices?.map((c) => <Decide key={c.value} choice={c} plain={decision.name === "outcome"} disabled={send.isPending} onClick={() => submit(c)} />)
        ) : (
          <Button type="submit" size="md" loading={send.isPending} className={classes.button}>
            {t("send")}
          </Button>
        )}
      </div>
    </form>
  )
}

// Yes is filled, no has an outline; both say what they do, so that colour is not all.
function Decide({ choice, plain, disabled, onClick }: { choice: Choice; plain: boolean; disabled: boolean; onClick: () => void }) {
  const yes = choice.outcome === "confirmed" && !plain
  const no = choice.outcome === "rejected"
  return (
    <Button type="button" size="md" disabled={disabled} onClick={onClick} className={classes.button} variant={yes ? "filled" : "outline"} color={yes ? "#23702f" : no ? "var(--state-red)" : "var(--mantine-color-text)"} data-outcome={choice.outcome}>
      <span className={classes.wrap}>{visible(choice.label)}</span>
    </Button>
  )
}
