import { Alert, Button, Drawer, Group, Paper, Stack, Text, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { Shown } from "@/parts/states"
import { Acceptances } from "./acceptances"
import { Drift } from "./drift"
import { PolicyText, Suggestion, ToolPolicy } from "./tool_policy"

type Server = Schemas["MCPServer"]
type Tool = Schemas["MCPTool"]

/** ServerTools opens a tool server: its tools as they are now, whether they have drifted, what calls of them meet, and who uses it. */
export function ServerTools({ server, onClose }: { server: Server; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const isAdmin = useRole()
  const id = server.id ?? ""
  const path = { id }
  const query = useQuery({ queryKey: ["tools", id, "tools"], queryFn: ({ signal }) => call(client.GET("/api/v1/mcp/servers/{id}/tools", { params: { path }, signal })), staleTime: 60_000, retry: false, enabled: !server.disabled })
  const activate = useAct(() => call(client.POST("/api/v1/mcp/servers/{id}/activate", { params: { path }, body: {} })), { stale: ["tools"], done: t("tools.activatedNow", { name: id }) })
  const deactivate = useAct(() => call(client.DELETE("/api/v1/mcp/servers/{id}/activate", { params: { path } })), { stale: ["tools"], done: t("tools.deactivatedNow", { name: id }) })
  const restart = useAct(() => call(client.POST("/api/v1/mcp/servers/{id}/restart", { params: { path } })), { stale: ["tools"], done: t("tools.restarted") })
  const authorize = useAct(() => call(client.POST("/api/v1/mcp/servers/{id}/authorize", { params: { path } })), { stale: [], then: ({ url }) => location.assign(url) })
  return (
    <Drawer opened onClose={onClose} position="right" size="xl" title={t("tools.openOf", { name: server.name || id })} closeButtonProps={{ "aria-label": t("places:close") }}>
      <Stack gap="md">
        <Group gap="xs">
          {server.activated ? (
            <Button size="xs" variant="default" loading={deactivate.isPending} onClick={() => deactivate.mutate()}>
              {t("tools.deactivate")}
            </Button>
          ) : (
            <Button size="xs" loading={activate.isPending} disabled={server.disabled} onClick={() => activate.mutate()}>
              {t("tools.activate")}
            </Button>
          )}
          <Button size="xs" variant="default" loading={restart.isPending} onClick={() => restart.mutate()}>
            {t("tools.restart")}
          </Button>
          {isAdmin && server.transport !== "stdio" && (
            <Button size="xs" variant="default" loading={authorize.isPending} onClick={() => authorize.mutate()}>
              {t("tools.authorize")}
            </Button>
          )}
        </Group>
        {!server.activated && <Text c="dimmed">{t("tools.activateText")}</Text>}
        {server.disabled ? (
          <Alert color="gray">{t("tools.disabledText")}</Alert>
        ) : (
          <Shown query={query} what={t("tools.reaching")}>
            {({ tools, changes, activated }) => (
              <>
                {activated && (changes ?? []).length > 0 && <Drift server={id} changes={changes ?? []} />}
                <Title order={3} size="h5">
                  {t("tools.list", { count: (tools ?? []).length })}
                </Title>
                {(tools ?? []).map((tool) => (
                  <ToolCard key={tool.id} server={id} tool={tool} isAdmin={isAdmin} />
                ))}
              </>
            )}
          </Shown>
        )}
        <Acceptances server={id} />
      </Stack>
    </Drawer>
  )
}

function ToolCard({ server, tool, isAdmin }: { server: string; tool: Tool; isAdmin: boolean }) {
  const { t } = useTranslation("settings")
  return (
    <Paper withBorder p="sm">
      <Stack gap={6}>
        <Group gap="sm">
          <Text fw={600} ff="monospace">
            {tool.tool_name}
          </Text>
          <Text fz="sm" c="dimmed">
            {t(`tools.class.${tool.class}`)}
          </Text>
        </Group>
        {tool.description && (
          <Text fz="sm" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }} lineClamp={4}>
            {tool.description}
          </Text>
        )}
        <Text fz="sm">
          {t(`tools.decision.${tool.decision}`)}{" "}
          <Text span c="dimmed" fz="sm">
            {t(`tools.from.${tool.decision_from}`)}
          </Text>
        </Text>
        <Group gap="sm" align="flex-start">
          <ToolPolicy server={server} tool={tool} scope="user" />
          {isAdmin && <ToolPolicy server={server} tool={tool} scope="workspace" />}
        </Group>
        {!isAdmin && tool.workspace_policy && <PolicyText policy={tool.workspace_policy} label={t("tools.forAll", { name: tool.tool_name })} />}
        {!tool.policy && !tool.workspace_policy && tool.class !== "read_only" && <Suggestion server={server} tool={tool} />}
      </Stack>
    </Paper>
  )
}
