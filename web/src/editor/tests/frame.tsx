import { type ReactNode } from "react"
import classes from "../editor.module.css"

/** Frame holds the editor, which keeps its state while another view of the same document is looked at. */
export function Frame({ shown, other, children }: { shown: boolean; other?: ReactNode; children: ReactNode }) {
  return (
    <>
      {other && <div style={{ flex: 1, minHeight: 0, overflow: "auto" }}>{other}</div>}
      <div className={classes.editor} hidden={!shown} style={shown ? undefined : { display: "none" }}>
        {children}
      </div>
    </>
  )
}
