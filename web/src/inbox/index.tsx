import { useEffect } from "react"
import { useTranslation } from "react-i18next"
import { useParams, useSearchParams } from "react-router"
import { InboxList } from "./list"
import { InboxQuestion } from "./one"
import { showOf } from "./shows"
import classes from "./inbox.module.css"

/** The inbox: the questions on the left, the one that is looked at beside them; on a phone one of the two. What is shown is in the address. */
export function Component() {
  const { t } = useTranslation("inbox")
  const { id } = useParams()
  const [search] = useSearchParams()
  useEffect(() => {
    if (!id) document.title = `${t("title")} · Tandem`
  }, [id, t])
  return (
    <div className={`${classes.inbox} ${id ? classes.reading : ""}`}>
      <InboxList show={showOf(search.get("show"))} page={Math.max(1, Number(search.get("page")) || 1)} open={id} />
      <div className={classes.one}>{id ? <InboxQuestion key={id} id={id} /> : <p className={classes.hint}>{t("hint")}</p>}</div>
    </div>
  )
}
