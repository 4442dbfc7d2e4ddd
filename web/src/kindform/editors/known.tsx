import { Text } from "@mantine/core"
import { useMemo } from "react"
import { useTranslation } from "react-i18next"
import { filledIn, resolvedIn } from "../complete"
import { useForm } from "../context"
import { short } from "../values"
import classes from "../kindform.module.css"

/** Known shows what the paths of a text were the last time. */
export function Known({ text, expression = false }: { text: string; expression?: boolean }) {
  const { t } = useTranslation("kindform")
  const { completions } = useForm()
  const known = useMemo(() => resolvedIn(text, completions, expression), [text, completions, expression])
  const filled = useMemo(() => (expression || text.length > 20_000 ? undefined : filledIn(text, completions)), [text, completions, expression])
  if (known.length === 0) return null
  return (
    <div className={classes.known}>
      {known.map((k) => (
        <Text key={k.path} fz="xs" truncate title={t("lastValue")}>
          <code>{k.path}</code> = <code className={classes.value}>{short(k.value, 80)}</code>
        </Text>
      ))}
      {filled !== undefined && (
        <Text fz="xs" lineClamp={3} title={t("lastValue")}>
          → <span className={classes.value}>{filled.slice(0, 500)}</span>
        </Text>
      )}
    </div>
  )
}
