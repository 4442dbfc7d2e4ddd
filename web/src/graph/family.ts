import {
  IconArrowsJoin, IconArrowsSort, IconArrowsSplit2, IconBolt, IconBox, IconBrain, IconClock, IconCode, IconDatabase, IconFilter, IconFunction, IconPlugConnected, IconRepeat,
  IconSparkles, IconTool, IconUserQuestion, IconWorld, type TablerIcon,
} from "@tabler/icons-react"

export const families = ["TRIGGER", "FLOW", "ACTION", "EXTERNAL_ACTION", "AI_AGENT", "HUMAN_IN_THE_LOOP", "TOOL", "MEMORY", "CALL"] as const
export type Family = (typeof families)[number]

const icons: Record<Family, TablerIcon> = {
  TRIGGER: IconBolt,
  FLOW: IconArrowsSplit2,
  ACTION: IconWorld,
  EXTERNAL_ACTION: IconPlugConnected,
  AI_AGENT: IconSparkles,
  HUMAN_IN_THE_LOOP: IconUserQuestion,
  TOOL: IconTool,
  MEMORY: IconBrain,
  CALL: IconFunction,
}

const special: Record<string, TablerIcon> = {
  "FLOW.LOOP": IconRepeat,
  "FLOW.FOR_EACH": IconRepeat,
  "FLOW.WHILE": IconRepeat,
  "FLOW.MERGE": IconArrowsJoin,
  "FLOW.FILTER": IconFilter,
  "FLOW.SORT": IconArrowsSort,
  "FLOW.WAIT": IconClock,
  "FLOW.DELAY": IconClock,
  "FLOW.TIMEOUT": IconClock,
  "FLOW.SUB_WORKFLOW": IconBox,
  "ACTION.RUN_CODE": IconCode,
  "ACTION.EXECUTE_SCRIPT": IconCode,
  "ACTION.DATABASE_QUERY": IconDatabase,
  "ACTION.DATABASE_OPERATION": IconDatabase,
  "TRIGGER.CRON": IconClock,
}

/** familyOf is the family of a kind, which has a colour and an icon; of kinds that nobody knows it is ACTION. */
export function familyOf(kind: string): Family {
  const type = kind.split(".", 1)[0]!
  return (families as readonly string[]).includes(type) ? (type as Family) : "ACTION"
}

export const iconOf = (kind: string): TablerIcon => special[kind] ?? icons[familyOf(kind)]

/** familyColor is the colour of a family, as a custom property: var(--family-flow). */
export const familyColor = (kind: string) => `var(--family-${familyOf(kind).toLowerCase().replaceAll("_", "-")})`
