import type { CompletionSource } from "@codemirror/autocomplete"
import { lazy, Suspense } from "react"
import { Broken } from "./code/broken"
import classes from "./code/code.module.css"

export type CodeLanguage = "yaml" | "python" | "javascript" | "sql" | "json" | "markdown" | "plain" | "expression"

/** CodeProblem is something wrong in the text. Lines and columns count from 1, as the server's do; without a line it stands at the beginning. */
export type CodeProblem = { message: string; severity?: "error" | "warning" | "info"; line?: number; column?: number; endLine?: number; endColumn?: number }

/** CodeHandle lets the page lead the reader to a place of the text. */
export type CodeHandle = { focus: () => void; show: (line: number, column?: number) => void }

export type CodeProps = {
  value: string
  /** Is told each change that is typed; a value that is set from outside is not told. */
  onChange?: (value: string) => void
  language?: CodeLanguage
  /** What the editor is for, as it is read out. */
  label: string
  /** The id of the text that explains the field, and that of the problem that is shown with it. */
  describedBy?: string
  /** The id of the text area of the editor, so that something else can lead to it. */
  id?: string
  invalid?: boolean
  readOnly?: boolean
  placeholder?: string
  /** What may be written at the cursor, the most likely first. */
  complete?: CompletionSource
  problems?: CodeProblem[]
  /** One line only: Enter adds none. */
  single?: boolean
  minLines?: number
  maxLines?: number
  /** The editor is as high as what it stands in. */
  fill?: boolean
  lineNumbers?: boolean
  /** Long lines are broken; on by default for prose and for single lines that do not scroll. */
  wrap?: boolean
  autoFocus?: boolean
  onBlur?: () => void
  onSave?: () => void
  /** A field of data can be dropped and inserted here. */
  takesFields?: boolean
  /** Is told where the cursor is, as an offset into the text, when it moves. */
  onCursor?: (offset: number) => void
  handle?: { current: CodeHandle | null }
}

const Editor = lazy(() => import("./code/editor"))

/**
 * Code is the one editor for code, expressions, prompts and documents. It is loaded when it is first shown; until then the text is there to read. `complete`, `onChange`
 * and the like may change at any time.
 */
export function Code(props: CodeProps) {
  return (
    <Broken text={props.value} label={props.label} onChange={props.readOnly ? undefined : props.onChange}>
      <Suspense
        fallback={
          <pre className={props.single ? `${classes.waiting} ${classes.single}` : classes.waiting} aria-busy="true" aria-label={props.label} role="group">
            {props.value}
          </pre>
        }
      >
        <Editor {...props} />
      </Suspense>
    </Broken>
  )
}
