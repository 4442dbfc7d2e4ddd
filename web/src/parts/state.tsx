import { Group, Text } from "@mantine/core"
import { IconCircleCheck, IconCircleDashed, IconCircleX, IconClock, IconForbid2, IconHelpCircle, IconLoader2, IconPlayerPause, IconUserQuestion } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import type { Status } from "@/api/status"
import classes from "./state.module.css"

// A state has colour, icon and word together, never colour alone.
const looks = {
  NEW: { color: "gray", icon: IconCircleDashed },
  PENDING: { color: "gray", icon: IconCircleDashed },
  RUNNING: { color: "blue", icon: IconLoader2 },
  WAITING: { color: "gray", icon: IconClock },
  WAITING_FOR_HUMAN: { color: "amber", icon: IconUserQuestion },
  PAUSED: { color: "gray", icon: IconPlayerPause },
  SUCCESS: { color: "green", icon: IconCircleCheck },
  ERROR: { color: "red", icon: IconCircleX },
  TIMEOUT: { color: "red", icon: IconClock },
  UNKNOWN: { color: "violet", icon: IconHelpCircle },
  SKIPPED: { color: "hollow", icon: IconCircleDashed },
  CANCELED: { color: "gray", icon: IconForbid2 },
} as const satisfies Record<Status | "SKIPPED" | "UNKNOWN", unknown>

export type State = keyof typeof looks

/** stateOf makes sure that a status of the API is one that can be shown. */
export function stateOf(status: string): State {
  return status in looks ? (status as State) : "NEW"
}

/** stateColor is the colour of a state, as a custom property of the page: var(--state-green). */
export const stateColor = (status: string) => `var(--state-${looks[stateOf(status)].color})`

/** StateMark shows a state: its icon in its colour, and its word unless it is left out, when the word is still read out. */
export function StateMark({ status, word = true, size = 16 }: { status: string; word?: boolean; size?: number }) {
  const { t } = useTranslation("shell")
  const state = stateOf(status)
  const { icon: Icon } = looks[state]
  const said = t(`state.${state}`)
  return (
    <Group gap={5} wrap="nowrap" component="span" className={classes.mark} style={{ color: stateColor(state) }} title={word ? undefined : said}>
      <Icon size={size} stroke={1.8} className={state === "RUNNING" ? classes.turning : undefined} role={word ? undefined : "img"} aria-hidden={word} aria-label={word ? undefined : said} />
      {word && (
        <Text span fz="sm" inherit={false} className={classes.word}>
          {said}
        </Text>
      )}
    </Group>
  )
}
