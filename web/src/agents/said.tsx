import { Markdown } from "@/parts/markdown"
import classes from "./agents.module.css"

/** Said is what an agent says, as Markdown: whatever a model or a tool has written, no HTML is made of it and no picture is loaded. */
export function Said({ text, writing }: { text: string; writing: boolean }) {
  return (
    <div className={classes.answer} aria-live="polite" aria-busy={writing}>
      <Markdown text={text} breaks />
      {writing && <span className={classes.cursor} aria-hidden />}
    </div>
  )
}
