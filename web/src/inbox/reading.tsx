import { Button, Group, Modal, Radio, Stack, Text, Textarea } from "@mantine/core"
import { IconPencil } from "@tabler/icons-react"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { call, client } from "@/api/client"
import { useMe } from "@/api/me"
import { answerOf, blame, type Filling, isWrong, startOf, type Wrong } from "@/parts/question/answer"
import { Field } from "@/parts/question/field"
import { decisionOf, drawnOf, pathOf, type Question } from "@/parts/question/types"
import { ValueTable, visible } from "@/parts/question/value"
import { Failed } from "@/parts/states"
import { language } from "@/words"
import { answerText } from "./answer_text"
import { useWho } from "./who"
import classes from "./inbox.module.css"

export type Reply = NonNullable<Question["responses"]>[number]

const relevances = ["relevant", "uncertain", "filtered"] as const

/** Reading says how a reply in somebody's own words was understood and why, who has corrected that, and lets those who may answer correct it. */
export function Reading({ question: q, reply: r }: { question: Question; reply: Reply }) {
  const { t } = useTranslation("inbox")
  const who = useWho()
  const { data: me } = useMe()
  const [corrects, setCorrects] = useState(false)
  if (!r.relevance) return null
  const relevance = relevances.find((one) => one === r.relevance) ?? "uncertain"
  const said = answerText(q, (r.response_data ?? {}) as Record<string, unknown>)
  const may = q.status === "pending" && q.may_respond && !r.overruled_by && !r.read_by && !!me && r.user_id !== me.id
  return (
    <div className={classes.reading}>
      {r.raw && <blockquote className={classes.quoted}>{visible(r.raw)}</blockquote>}
      <Text fz="sm" className={classes.wrap}>
        {r.accepted || said ? t("reading.as", { what: visible(said) || t("reading.value") }) : t("reading.nothing")} {t(`reading.${relevance}`)}
        {r.score !== undefined && !r.read_by && ` · ${t("reading.score", { score: r.score.toFixed(2) })}`}
      </Text>
      {!said && r.response_data !== undefined && r.response_data !== null && <ValueTable value={r.response_data} label={t("history.given")} />}
      {r.reasoning && (
        <Text fz="sm" c="dimmed" className={classes.wrap}>
          {t("reading.why", { reasons: visible(r.reasoning) })}
        </Text>
      )}
      {r.read_by && <Text fz="sm">{t("reading.readBy", { who: who.one("user:" + r.read_by) })}</Text>}
      {r.overruled_by && <Text fz="sm">{t("reading.overruled", { who: who.one("user:" + r.overruled_by), reason: visible(r.overrule_reason ?? "") })}</Text>}
      {may && (
        <Button mt={4} size="compact-xs" variant="default" leftSection={<IconPencil size={14} />} onClick={() => setCorrects(true)}>
          {t("reading.correct")}
        </Button>
      )}
      {corrects && <Correct question={q} reply={r} onClose={() => setCorrects(false)} />}
    </div>
  )
}

// What a reply means when it decides nothing; no value of a form has this name.
const none = "\u0000none"

function Correct({ question: q, reply: r, onClose }: { question: Question; reply: Reply; onClose: () => void }) {
  const { t } = useTranslation(["inbox", "question"])
  const queries = useQueryClient()
  const form = q.form ?? { language: language(), entries: [] }
  const decision = decisionOf(form)
  const [meant, setMeant] = useState("")
  const [filling, setFilling] = useState<Filling>({})
  const [reason, setReason] = useState("")
  const [wrong, setWrong] = useState<Wrong>({ at: {}, rest: [] })
  const send = useMutation({
    mutationFn: (response_data: unknown) => call(client.POST("/api/v1/interactions/{id}/responses/{response_id}/overrule", { params: { path: { id: q.id, response_id: r.id } }, body: { reason, ...(response_data === undefined ? {} : { response_data }) } })),
    onSuccess: onClose,
    onError: (error) => setWrong(blame(form, error, language() === "zh")),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["interactions"] }),
  })
  const submit = () => {
    if (meant === none) return send.mutate(undefined)
    const { answer, wrong: found } = answerOf(form, filling, decision?.choices?.find((c) => c.value === meant), { required: t("question:required"), notJSON: t("question:notJSON") }, q.purpose === "param")
    setWrong(found)
    if (!isWrong(found)) send.mutate(answer)
  }
  const ready = reason.trim() !== "" && (meant !== "" || !decision)
  return (
    <Modal opened onClose={onClose} title={t("reading.title")} closeButtonProps={{ "aria-label": t("close") }}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          submit()
        }}
      >
        <Stack gap="sm">
          <Text fz="sm">{t("reading.text")}</Text>
          {r.raw && <blockquote className={classes.quoted}>{visible(r.raw)}</blockquote>}
          <Radio.Group label={t("reading.means")} value={meant} onChange={setMeant}>
            <Stack gap={8} mt={6}>
              {decision?.choices?.map((c) => <Radio key={c.value} value={c.value} label={visible(c.label)} />)}
              {!decision && <Radio value="" label={t("reading.asBelow")} />}
              {r.accepted && <Radio value={none} label={t("reading.decidesNothing")} />}
            </Stack>
          </Radio.Group>
          {meant !== none && !decision && drawnOf(form).map((e) => <Field key={pathOf(e)} entry={e} filled={filling[pathOf(e)] ?? startOf(e)} wrong={wrong.at[pathOf(e)]} disabled={send.isPending} onChange={(next) => setFilling((now) => ({ ...now, [pathOf(e)]: next }))} />)}
          <Textarea label={t("reading.reason")} description={t("reading.reasonAbout")} required autosize minRows={2} maxLength={4000} value={reason} onChange={(e) => setReason(e.currentTarget.value)} />
          {wrong.rest.map((line) => (
            <Text key={line} fz="sm" c="var(--state-red)">
              {visible(line)}
            </Text>
          ))}
          {send.error && !isWrong(wrong) && <Failed error={send.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t("cancel")}
            </Button>
            <Button type="submit" loading={send.isPending} disabled={!ready}>
              {t("reading.do")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
