import { IconAddressBook, IconBrain, IconCoins, IconCpu, IconGauge, IconHistory, IconKey, IconLock, IconMailForward, IconPlugConnected, IconUserCircle, IconUserPlus, IconUsers } from "@tabler/icons-react"
import type { Schemas } from "@/api/client"
import { valuesOf } from "@/api/values"

export type Role = NonNullable<Schemas["User"]["roles"]>[number]

export const everybody = valuesOf<Role>({ viewer: 1, approver: 1, operator: 1, editor: 1, admin: 1 })

/** topics are the pages of the settings: who may see each, and who may change what is there. */
export const topics = {
  profiles: { icon: IconCpu, read: everybody, write: ["editor", "admin"] },
  budgets: { icon: IconCoins, read: everybody, write: ["operator", "editor", "admin"] },
  tools: { icon: IconPlugConnected, read: ["operator", "editor", "admin"], write: ["admin"] },
  credentials: { icon: IconLock, read: ["editor", "admin"], write: ["admin"] },
  memories: { icon: IconBrain, read: everybody, write: everybody },
  users: { icon: IconUsers, read: ["admin"], write: ["admin"] },
  invitations: { icon: IconUserPlus, read: ["admin"], write: ["admin"] },
  channels: { icon: IconMailForward, read: everybody, write: ["admin"] },
  account: { icon: IconUserCircle, read: everybody, write: everybody },
  tokens: { icon: IconKey, read: everybody, write: everybody },
  reach: { icon: IconAddressBook, read: everybody, write: everybody },
  audit: { icon: IconHistory, read: ["admin"], write: ["admin"] },
  limits: { icon: IconGauge, read: everybody, write: ["admin"] },
} satisfies Record<string, { icon: typeof IconKey; read: Role[]; write: Role[] }>

export type TopicName = keyof typeof topics

/** groups is how the overview orders them. */
export const groups: { name: "models" | "people" | "you" | "operation"; topics: TopicName[] }[] = [
  { name: "models", topics: ["profiles", "budgets", "tools", "credentials", "memories"] },
  { name: "people", topics: ["users", "invitations", "channels"] },
  { name: "you", topics: ["account", "tokens", "reach"] },
  { name: "operation", topics: ["limits", "audit"] },
]
