import { Anchor, Stack, Title } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { Shown } from "@/parts/states"
import { QuestionAbout } from "./about"
import { QuestionForm } from "./form"
import { Happens } from "./happens"
import { useQuestion } from "./queries"
import { visible } from "./value"
import classes from "./question.module.css"

/** InlineQuestion is a question in the middle of something else, such as a conversation: what it is about, what happens then, and its form. */
export function InlineQuestion({ id, onAnswered }: { id: string; onAnswered?: () => void }) {
  const { t } = useTranslation("question")
  const query = useQuestion(id)
  return (
    <Shown query={query}>
      {(q) =>
        q.status !== "pending" ? null : (
          <section className={classes.inline} aria-label={visible(q.form?.title ?? "")}>
            <Stack gap="sm">
              <Title order={3} size="h4" className={classes.wrap}>
                {visible(q.form?.title ?? "")}
              </Title>
              <QuestionAbout question={q} />
              <Happens question={q} />
              {q.may_respond ? (
                <QuestionForm question={q} onAnswered={onAnswered} />
              ) : (
                <Anchor component={Link} to={`/inbox/${encodeURIComponent(q.id)}`}>
                  {t("elsewhere")}
                </Anchor>
              )}
            </Stack>
          </section>
        )
      }
    </Shown>
  )
}
