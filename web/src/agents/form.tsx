import { Anchor, Button, Checkbox, Collapse, Group, NativeSelect, NumberInput, Paper, Stack, Text, Textarea, TextInput, Title } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, Failure } from "@/api/client"
import { Failed } from "@/parts/states"
import { type Agent, useProfiles, useToolServers } from "./queries"

const limits = ["steps", "plan_tries", "inner_calls", "failures", "json_tries", "history_rounds"] as const
const usual = { steps: 25, plan_tries: 3, inner_calls: 5, failures: 3, json_tries: 3, history_rounds: 3 }

/** AgentForm makes an agent, or changes one. A change is refused when somebody else has saved the agent meanwhile. */
export function AgentForm({ agent, onClose, onSaved }: { agent?: Agent; onClose: () => void; onSaved: (saved: Agent) => void }) {
  const { t } = useTranslation("agents")
  const queries = useQueryClient()
  const profiles = useProfiles()
  const servers = useToolServers()
  const [value, setValue] = useState<Agent>(() => agent ?? { name: "", llm_profile: "" })
  const [more, setMore] = useState(false)
  const set = (part: Partial<Agent>) => setValue((now) => ({ ...now, ...part }))
  const list = profiles.data?.profiles ?? []
  // On a new installation there is the demo model alone; it is taken until somebody chooses.
  const profile = value.llm_profile || list[0]?.id || ""
  const save = useMutation({
    mutationFn: () => {
      const { id, name, description, mcp_servers, auto_execute, policy, language, limits } = value
      const body = { ...(id ? { id } : {}), name, description, llm_profile: profile, mcp_servers: mcp_servers ?? [], auto_execute, policy, language, limits } as Agent
      return agent?.id ? call(client.PUT("/api/v1/agents/{id}", { params: { path: { id: agent.id }, header: { "If-Match": `"${agent.revision}"` } }, body })) : call(client.POST("/api/v1/agents", { body }))
    },
    onSuccess: (saved) => {
      void queries.invalidateQueries({ queryKey: ["agents"] })
      onSaved(saved)
    },
  })
  const wrong = (field: string) => (save.error instanceof Failure ? save.error.problem?.errors?.find((e) => e.path.replace(/^body\./, "").startsWith(field))?.message : undefined)
  return (
    <Paper withBorder p="md" maw={720} component="form" aria-label={agent ? t("form.change") : t("form.make")} onSubmit={(e: { preventDefault: () => void }) => (e.preventDefault(), save.mutate())}>
      <Stack gap="md">
        <Title order={2} size="h4">
          {agent ? t("form.change") : t("form.make")}
        </Title>
        <TextInput label={t("form.name")} required maxLength={200} data-autofocus value={value.name ?? ""} error={wrong("name")} onChange={(e) => set({ name: e.currentTarget.value })} />
        <Textarea label={t("form.prompt")} description={t("form.promptAbout")} autosize minRows={3} maxLength={4000} value={value.description ?? ""} error={wrong("description")} onChange={(e) => set({ description: e.currentTarget.value })} />
        <NativeSelect
          label={t("form.profile")}
          description={t("form.profileAbout")}
          required
          value={profile}
          error={wrong("llm_profile")}
          onChange={(e) => set({ llm_profile: e.currentTarget.value })}
          data={list.map((p) => ({ value: p.id ?? "", label: p.provider === "scripted" ? t("form.scripted", { name: p.name || p.id }) : p.name || p.id || "" }))}
        />
        <Checkbox.Group label={t("form.tools")} description={t("form.toolsAbout")} error={wrong("mcp_servers")} value={value.mcp_servers ?? []} onChange={(mcp_servers) => set({ mcp_servers })}>
          <Stack gap={8} mt={6}>
            {(servers.data?.servers ?? []).map((s) => (
              <Checkbox key={s.id} value={s.id ?? ""} label={s.name || s.id} description={s.description} />
            ))}
            {servers.data && (servers.data.servers ?? []).length === 0 && (
              <Text fz="sm" c="dimmed">
                {t("form.noTools")}{" "}
                <Anchor component={Link} to="/settings/tools" fz="sm" underline="always">
                  {t("form.addTools")}
                </Anchor>
              </Text>
            )}
          </Stack>
        </Checkbox.Group>
        <Checkbox label={t("form.auto")} description={t("form.autoAbout")} checked={value.auto_execute ?? false} onChange={(e) => set({ auto_execute: e.currentTarget.checked })} />
        <Button variant="subtle" size="compact-sm" w="fit-content" aria-expanded={more} onClick={() => setMore(!more)}>
          {more ? t("form.less") : t("form.more")}
        </Button>
        <Collapse expanded={more}>
          <Stack gap="md">
            <Checkbox.Group label={t("form.approve")} description={t("form.approveAbout")} value={value.policy?.auto_approve ?? []} onChange={(auto_approve) => set({ policy: { auto_approve } })}>
              <Group mt={6}>
                <Checkbox value="medium" label={t("form.medium")} />
                <Checkbox value="high" label={t("form.high")} />
              </Group>
            </Checkbox.Group>
            <NativeSelect
              label={t("form.language")}
              w={220}
              value={value.language ?? ""}
              onChange={(e) => set({ language: (e.currentTarget.value || undefined) as Agent["language"] })}
              data={[
                { value: "", label: t("form.anyLanguage") },
                { value: "en", label: "English" },
                { value: "zh", label: "中文" },
              ]}
            />
            <Group gap="md" align="flex-end">
              {limits.map((name) => (
                <NumberInput key={name} label={t(`limit.${name}`)} w={200} min={1} placeholder={String(usual[name])} value={value.limits?.[name] ?? ""} onChange={(n) => set({ limits: { ...value.limits, [name]: typeof n === "number" ? n : undefined } })} />
              ))}
            </Group>
          </Stack>
        </Collapse>
        {save.error && <Failed error={save.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("cancel")}
          </Button>
          <Button type="submit" loading={save.isPending} disabled={!value.name?.trim() || !profile}>
            {agent ? t("form.save") : t("form.create")}
          </Button>
        </Group>
      </Stack>
    </Paper>
  )
}
