import { Text } from "@mantine/core"
import { useMemo } from "react"
import { useTranslation } from "react-i18next"
import { filledIn, resolvedIn } from "../complete"
import { useForm } from "../context"
import type { NodeKind } from "../schema"
import { short } from "../values"
import { useWorth, type Worth } from "../worth"
import classes from "../kindform.module.css"

/** Known shows what the paths of a text were the last time, and what the whole of it is worth with that: while one types, and why it has no value. */
export function Known({ text, expression = false, whole = false }: { text: string; expression?: boolean; whole?: boolean }) {
  const { t } = useTranslation("kindform")
  const { completions, evaluate } = useForm()
  const known = useMemo(() => resolvedIn(text, completions, expression), [text, completions, expression])
  const filled = useMemo(() => (expression || text.length > 20_000 ? undefined : filledIn(text, completions)), [text, completions, expression])
  const worth = useWorth(text, expression, whole ? evaluate : undefined)
  // A path that is all of the text has its value beside it already.
  const told = worth && !(known.length === 1 && !worth.answer.error && bare(text) === known[0]!.path) ? worth : undefined
  if (known.length === 0 && !told) return null
  return (
    <div className={classes.known}>
      {known.map((k) => (
        <Text key={k.path} fz="xs" truncate title={t("lastValue")}>
          <code>{k.path}</code> = <code className={classes.value}>{short(k.value, 80)}</code>
        </Text>
      ))}
      {told ? (
        <Told worth={told} />
      ) : (
        filled !== undefined && (
          <Text fz="xs" lineClamp={3} title={t("lastValue")}>
            → <span className={classes.value}>{filled.slice(0, 500)}</span>
          </Text>
        )
      )}
    </div>
  )
}

const bare = (text: string) => text.trim().replace(/^(?:\{\{\{?|\$\{)\s*|\s*\}+$/g, "")

// The names of some kinds exist only while the node runs: the item of a filter, the result of an iteration.
const isPlain = (kind: NodeKind) => kind.plain_names === "input"

function Told({ worth: { answer, old } }: { worth: Worth }) {
  const { t } = useTranslation("kindform")
  const { kind } = useForm()
  const wrong = answer.error
  if (wrong?.unknown && !isPlain(kind))
    return (
      <Text fz="xs" role="status" aria-label={t("worth.label")}>
        {t("worth.later", { name: wrong.unknown })}
      </Text>
    )
  return (
    <Text fz="xs" lineClamp={3} role="status" aria-label={t("worth.label")} aria-busy={old} className={old ? classes.old : undefined} title={wrong ? undefined : t("lastValue")}>
      → {wrong ? <span className={classes.wrong}>{wrong.message}</span> : <span className={classes.value}>{valueText(answer.value, !!answer.cut)}</span>}
      {answer.cut && ` ${t("worth.cut", { size: answer.size })}`}
    </Text>
  )
}

const valueText = (value: unknown, cut: boolean) => (typeof value === "string" ? (cut || value !== "" ? value.slice(0, 500) : '""') : short(value, 500))
