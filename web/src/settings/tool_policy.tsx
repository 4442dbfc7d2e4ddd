import { Badge, Button, Group, Select, Stack, Text } from "@mantine/core"
import { IconBulb } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import type { Schemas } from "@/api/client"
import { plain } from "@/parts/plain"
import { type Policy, policies, type Rule, useRuleText } from "./rules"
import { RulesForm } from "./rules_form"
import { type Scope, useSetPolicy } from "./use_set_policy"

type Tool = Schemas["MCPTool"]

/** ToolPolicy is what a person, or an admin for everybody, says about a tool: a policy, and rules about its arguments that come before it. */
export function ToolPolicy({ server, tool, scope }: { server: string; tool: Tool; scope: Scope }) {
  const { t } = useTranslation("settings")
  const [edits, setEdits] = useState(false)
  const now = scope === "user" ? tool.policy : tool.workspace_policy
  const rules = now?.rules ?? []
  const change = useSetPolicy(server, tool, scope)
  const label = t(scope === "user" ? "tools.forMe" : "tools.forAll", { name: tool.tool_name })
  const edit = rules.length > 0 ? t("rules.edit") : t("rules.add")
  return (
    <Stack gap={6} w={270}>
      <Select
        size="xs"
        label={label}
        description={now?.lapsed ? t("tools.lapsed") : rules.length > 0 ? t("rules.otherwise") : undefined}
        placeholder={rules.length > 0 ? t("rules.asServer") : t("tools.noPolicy")}
        value={now?.policy ?? null}
        onChange={(p) => change.mutate({ policy: p as Policy | null, rules })}
        data={policies.map((p) => ({ value: p, label: t(`tools.policy.${p}`) }))}
        clearable
        clearButtonProps={{ "aria-label": t("places:form.clear") }}
        disabled={change.isPending}
      />
      <RuleList rules={rules} label={t("rules.of", { name: label })} />
      <Button size="compact-xs" variant="default" w="fit-content" onClick={() => setEdits(true)} aria-label={`${edit} · ${label}`}>
        {edit}
      </Button>
      {edits && <RulesForm server={server} tool={tool} scope={scope} start={{ policy: now?.policy ?? null, rules }} title={t("rules.of", { name: label })} onClose={() => setEdits(false)} />}
    </Stack>
  )
}

/** PolicyText shows a policy that the reader may not change. */
export function PolicyText({ policy, label }: { policy: Schemas["MCPToolPolicy"]; label: string }) {
  const { t } = useTranslation("settings")
  return (
    <div>
      <Text fz="sm">
        {label}: {policy.policy ? t(`tools.policy.${policy.policy}`) : t("rules.asServer")}
      </Text>
      <RuleList rules={policy.rules ?? []} label={t("rules.of", { name: label })} />
    </div>
  )
}

function RuleList({ rules, label }: { rules: Rule[]; label: string }) {
  const say = useRuleText()
  if (rules.length === 0) return null
  return (
    <ol aria-label={label} style={{ margin: 0, paddingLeft: "1.4em", fontSize: "var(--mantine-font-size-sm)", overflowWrap: "anywhere" }}>
      {rules.map((r, i) => (
        <li key={i}>{say(r)}</li>
      ))}
    </ol>
  )
}

/** Suggestion is what the name and the description of a tool suggest. It grants nothing until a person takes it over. */
export function Suggestion({ server, tool }: { server: string; tool: Tool }) {
  const { t } = useTranslation("settings")
  const take = useSetPolicy(server, tool, "user")
  const policy = t(`tools.policy.${tool.suggestion.policy}`)
  return (
    <Group gap="xs" role="note" aria-label={t("tools.suggested")}>
      <Badge variant="default" tt="none" leftSection={<IconBulb size={12} aria-hidden />}>
        {t("tools.suggested")}
      </Badge>
      <Text fz="sm" c="dimmed" style={{ flex: 1, minWidth: 200, overflowWrap: "anywhere" }}>
        {t("tools.suggestion", { policy, reason: plain(tool.suggestion.reason) })}
      </Text>
      <Button size="compact-xs" variant="default" loading={take.isPending} onClick={() => take.mutate({ policy: tool.suggestion.policy, rules: [] })}>
        {t("tools.takeOver", { policy })}
      </Button>
    </Group>
  )
}
