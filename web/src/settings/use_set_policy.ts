import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import type { Policy, Rule } from "./rules"

type Tool = Schemas["MCPTool"]
export type Scope = "user" | "workspace"

/** useSetPolicy sets the policy of a tool as it is shown now, or takes it away. Rules without a policy leave the rest to what the server says. */
export function useSetPolicy(server: string, tool: Tool, scope: Scope, more: { quiet?: boolean; then?: () => void } = {}) {
  const { t } = useTranslation("settings")
  return useAct(
    ({ policy, rules }: { policy: Policy | null; rules: Rule[] }) =>
      call(
        client.PUT("/api/v1/mcp/servers/{id}/policies", {
          params: { path: { id: server } },
          body: policy || rules.length > 0 ? { scope, policies: { [tool.tool_name]: { ...(policy ? { policy } : {}), ...(rules.length > 0 ? { rules } : {}), hash: tool.hash } } } : { scope, remove: [tool.tool_name] },
        }),
      ),
    { stale: ["tools"], done: t("tools.policySet", { name: tool.tool_name }), ...more },
  )
}
