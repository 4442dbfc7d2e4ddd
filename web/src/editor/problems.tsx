import { UnstyledButton, VisuallyHidden } from "@mantine/core"
import { IconAlertTriangle, IconChevronDown, IconChevronUp, IconCircleCheck } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import type { FileProblem } from "./use_problems"
import classes from "./editor.module.css"

type Props = {
  problems: FileProblem[]
  /** The name of the node that a problem is about. */
  nameOf: (p: FileProblem) => string
  open: boolean
  onOpen: (open: boolean) => void
  onJump: (p: FileProblem) => void
  /** The server has looked at the text as it is now. */
  current: boolean
}

/** Problems is the list at the bottom: everything that is wrong, each a way to its place. */
export function Problems({ problems, nameOf, open, onOpen, onJump, current }: Props) {
  const { t } = useTranslation("editor")
  const errors = problems.filter((p) => p.severity === "error").length
  const warnings = problems.length - errors
  const Chevron = open ? IconChevronDown : IconChevronUp
  const summary = problems.length === 0 ? t(current ? "problems.none" : "problems.looking") : [errors ? t("problems.errors", { count: errors }) : "", warnings ? t("problems.warnings", { count: warnings }) : ""].filter(Boolean).join(" · ")
  return (
    <section className={classes.problems} aria-label={t("problems.title")}>
      <VisuallyHidden role="status">{summary}</VisuallyHidden>
      <UnstyledButton className={classes.problemsHead} aria-expanded={open} onClick={() => onOpen(!open)}>
        {problems.length === 0 && current && <IconCircleCheck size={16} color="var(--state-green)" aria-hidden />}
        {summary}
        {problems.length > 0 && <Chevron size={16} aria-hidden />}
      </UnstyledButton>
      {open &&
        problems.map((p, i) => (
          <UnstyledButton key={i} className={classes.problem} onClick={() => onJump(p)}>
            <IconAlertTriangle size={14} className={p.severity === "error" ? classes.error : classes.warning} role="img" aria-label={t(`problems.${p.severity}`)} />
            {nameOf(p) && <span className={classes.where}>{nameOf(p)}</span>}
            <span>{p.message}</span>
            {p.line ? <span className={classes.line}>{t("problems.line", { line: p.line })}</span> : null}
          </UnstyledButton>
        ))}
    </section>
  )
}
