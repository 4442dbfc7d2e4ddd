import { lazy } from "react"
import { Route, Routes } from "react-router"
import { Lost } from "@/shell/wrong"
import { Overview } from "./overview"
import type { TopicName } from "./topics"

// Each topic is loaded when somebody opens it.
const pages: Record<TopicName, ReturnType<typeof lazy>> = {
  profiles: lazy(() => import("./profiles")),
  budgets: lazy(() => import("./budgets")),
  tools: lazy(() => import("./tools")),
  credentials: lazy(() => import("./credentials")),
  memories: lazy(() => import("./memories")),
  users: lazy(() => import("./users")),
  invitations: lazy(() => import("./invitations")),
  channels: lazy(() => import("./channels")),
  account: lazy(() => import("./account")),
  tokens: lazy(() => import("./tokens")),
  reach: lazy(() => import("./reach")),
  audit: lazy(() => import("./audit")),
  limits: lazy(() => import("./limits")),
}

/** Settings has a page for each topic, and one that leads to them. */
export function Component() {
  return (
    <Routes>
      <Route index element={<Overview />} />
      {Object.entries(pages).map(([name, Topic]) => (
        <Route key={name} path={name} element={<Topic />} />
      ))}
      <Route path="*" element={<Lost />} />
    </Routes>
  )
}
