import { lazy, Suspense } from "react"
import type { MarkdownProps } from "./markdown/render"
import { plain } from "./plain"
import classes from "./markdown/markdown.module.css"

const Rendered = lazy(() => import("./markdown/render"))

/** Markdown shows a text of outside: what a model has written, what a question says. Its parser is loaded with the first one; until then it is text. */
export function Markdown(props: MarkdownProps) {
  return (
    <Suspense fallback={<div className={classes.source}>{plain(props.text)}</div>}>
      <Rendered {...props} />
    </Suspense>
  )
}
