import { IconCirclePlus, IconPencil, IconTrash } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import type { Mark } from "./flow"
import classes from "./graph.module.css"

const icons = { added: IconCirclePlus, removed: IconTrash, changed: IconPencil }

export const markClass = (mark: Mark | undefined) => mark && classes[mark]

/** MarkBadge says what became of something: by colour, icon and word. */
export function MarkBadge({ mark, inline = false }: { mark: Mark; inline?: boolean }) {
  const { t } = useTranslation("graph")
  const Icon = icons[mark]
  return (
    <span className={[classes.badge, classes[mark], inline && classes.badgeInline].filter(Boolean).join(" ")}>
      <Icon size={12} stroke={2} aria-hidden />
      {t(`mark.${mark}`)}
    </span>
  )
}
