import { Alert, Anchor, Stack, Text, Title } from "@mantine/core"
import { IconArrowLeft, IconUserOff } from "@tabler/icons-react"
import { useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { Link, useSearchParams } from "react-router"
import { Failure } from "@/api/client"
import { useMe } from "@/api/me"
import { QuestionAbout } from "@/parts/question/about"
import { QuestionForm } from "@/parts/question/form"
import { Happens } from "@/parts/question/happens"
import { useQuestion } from "@/parts/question/queries"
import type { Question } from "@/parts/question/types"
import { visible } from "@/parts/question/value"
import { Empty, Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { Acts } from "./acts"
import { Ended } from "./ended"
import { History, Votes } from "./history"
import { useWho } from "./who"
import classes from "./inbox.module.css"

/** InboxQuestion is one question: who asks, why now, exactly what will be done, what happens then, and the form to answer it. */
export function InboxQuestion({ id }: { id: string }) {
  const { t } = useTranslation("inbox")
  const query = useQuestion(id)
  const [search] = useSearchParams()
  const back = search.toString()
  const missing = query.error instanceof Failure && query.error.status === 404
  return (
    <>
      <Anchor component={Link} to={{ pathname: "/inbox", search: back && "?" + back }} className={classes.back}>
        <IconArrowLeft size={16} aria-hidden /> {t("back")}
      </Anchor>
      {missing ? (
        <Empty title={t("missing")}>
          <Text>{t("missingText")}</Text>
        </Empty>
      ) : (
        <Shown query={query} what={t("readingOne")}>
          {(q) => <Asked question={q} />}
        </Shown>
      )}
    </>
  )
}

function Asked({ question: q }: { question: Question }) {
  const { t } = useTranslation("inbox")
  const [mine, setMine] = useState(false)
  const [override, setOverride] = useState(false)
  // What was open when the page was opened and is over now has ended while somebody was looking.
  const [sawOpen] = useState(q.status === "pending")
  const who = useWho()
  const { data: me } = useMe()
  const voted = mine || (q.responses ?? []).some((r) => r.accepted && !r.overruled_by && !!me && r.user_id === me.id)
  const title = visible(q.form?.title || q.request_data.title || q.workflow_name)
  useEffect(() => {
    document.title = `${title} · Tandem`
  }, [title])
  const pending = q.status === "pending"
  return (
    <article className={classes.article} aria-label={title}>
      <Stack gap="md">
        <header>
          <Title order={1} size="h2" className={classes.heading}>
            {title}
          </Title>
          <Text fz="sm" c="dimmed" className={classes.wrap}>
            <Anchor component={Link} to={`/executions/${encodeURIComponent(q.execution_id)}`} fz="sm" underline="always">
              {visible(q.workflow_name)}
            </Anchor>{" "}
            {q.user_id ? t("asks", { user: q.user_id }) : t("asksNobody")}
            {q.token_made_by && " " + t("tokenOf", { user: q.token_made_by })} · <When at={q.created_at} />
          </Text>
          <Text fz="sm" c="dimmed" className={classes.wrap}>
            {t("asked", { who: who.list(q.approvers ?? []) })}
          </Text>
        </header>
        {!pending && <Ended question={q} looking={sawOpen && !mine} />}
        <QuestionAbout question={q} />
        {pending && <Happens question={q} />}
        <Votes question={q} />
        {pending && voted && (
          <Alert color="green" role="status" title={t("counted")}>
            {t("countedText")}
          </Alert>
        )}
        {pending && q.may_respond && !override && !mine && <QuestionForm question={q} onAnswered={() => setMine(true)} />}
        {pending && !q.may_respond && !voted && (
          <Alert color="gray" icon={<IconUserOff />} title={t("notAsked")} role="note">
            {visible(q.why_not ?? "")}
          </Alert>
        )}
        {pending && override && <QuestionForm question={q} override onAnswered={() => setMine(true)} />}
        {pending && <Acts question={q} override={override} onOverride={setOverride} />}
        <History question={q} />
      </Stack>
    </article>
  )
}
