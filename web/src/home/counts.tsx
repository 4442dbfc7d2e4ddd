import { SimpleGrid, Text } from "@mantine/core"
import { IconCircleX, IconClock, IconPlayerPlay, IconUserQuestion } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { countOf } from "./overview"
import classes from "./home.module.css"

/** Counts has the figures of now, each a link to the runs that it counts. */
export function Counts({ counts }: { counts: Record<string, number> }) {
  const { t } = useTranslation("home")
  const tiles = [
    { key: "running", statuses: ["RUNNING", "PENDING", "NEW"], icon: IconPlayerPlay, color: "blue" },
    { key: "people", statuses: ["WAITING_FOR_HUMAN"], icon: IconUserQuestion, color: "amber" },
    { key: "waiting", statuses: ["WAITING", "PAUSED"], icon: IconClock, color: "gray" },
    { key: "failed", statuses: ["ERROR", "TIMEOUT"], icon: IconCircleX, color: "red" },
  ] as const
  return (
    <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="md">
      {tiles.map(({ key, statuses, icon: Icon, color }) => {
        const figure = countOf(counts, ...statuses)
        return (
        <Link key={key} to={`/executions?status=${statuses.join(",")}`} className={classes.tile}>
          <Icon size={22} stroke={1.7} aria-hidden style={{ color: figure > 0 ? `var(--state-${color})` : "var(--mantine-color-dimmed)" }} />
          <span>
            <Text span fz={22} fw={600} lh={1.1} display="block" className={classes.figure}>
              {figure.toLocaleString()}
            </Text>
            <Text span fz="sm" c="dimmed">
              {t(`counts.${key}`)}
            </Text>
          </span>
        </Link>
        )
      })}
    </SimpleGrid>
  )
}
