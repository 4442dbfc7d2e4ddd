import { useTranslation } from "react-i18next"
import { difference } from "./diff"
import { written } from "./exact"
import type { Change, Edit } from "./types"
import { Value, visible } from "./value"
import classes from "./value.module.css"

const text = (v: unknown) => (v === undefined || v === null || v === "" ? "" : typeof v === "string" ? v : written(v))

/** LineDifference shows two values, what is gone and what is new, by sign and colour. It is small, so that the inbox loads no editor for it. */
export function LineDifference({ before, after, label }: { before: unknown; after: unknown; label: string }) {
  const { t } = useTranslation("question")
  const signs = { same: " ", gone: "−", new: "+" }
  return (
    <pre className={classes.difference} tabIndex={0} aria-label={label}>
      {difference(text(before), text(after)).map((line, n) => (
        <span key={n} className={classes[line.kind]}>
          <span className={classes.sign} aria-label={line.kind === "same" ? undefined : t(`line.${line.kind}`)} role={line.kind === "same" ? undefined : "img"}>
            {signs[line.kind]}
          </span>
          {visible(line.text)}
          {"\n"}
        </span>
      ))}
    </pre>
  )
}

/** Changes shows how tools differ from what was accepted. */
export function Changes({ changes }: { changes: Change[] }) {
  return (
    <>
      {changes.map((c) => (
        <section key={c.tool}>
          <strong>{visible(c.tool)}</strong> · {visible(c.summary)}
          <LineDifference before={c.before} after={c.after} label={c.tool} />
        </section>
      ))}
    </>
  )
}

/** Edits shows values that were edited in a fork, each beside what it was. */
export function Edits({ edits, execution }: { edits: Edit[]; execution: string }) {
  const { t } = useTranslation("question")
  return (
    <table className={classes.beside}>
      <thead>
        <tr>
          <th scope="col">{t("edits.name")}</th>
          <th scope="col">{t("edits.was")}</th>
          <th scope="col">{t("edits.is")}</th>
        </tr>
      </thead>
      <tbody>
        {edits.map((e) => (
          <tr key={e.name}>
            <th scope="row">{visible(e.name)}</th>
            <td>{"original" in e || e.original_part ? <Part value={e.original} part={e.original_part} execution={execution} /> : t("edits.none")}</td>
            <td>
              <Part value={e.edited} part={e.edited_part} execution={execution} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

// Of a large value the beginning is shown, and where all of it is.
function Part({ value, part, execution }: { value: unknown; part?: string; execution: string }) {
  const { t } = useTranslation("question")
  const hash = (value as { $blob?: unknown } | null | undefined)?.$blob
  if (part === undefined || typeof hash !== "string") return <Value value={value} />
  return (
    <>
      <Value value={part} />…{" "}
      <a href={`/api/v1/executions/${encodeURIComponent(execution)}/values/${encodeURIComponent(hash)}`} target="_blank" rel="noopener">
        {t("edits.all")}
      </a>
    </>
  )
}
