import { List, Stack, Text, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { call, client } from "@/api/client"
import { Shown } from "@/parts/states"
import { When } from "@/parts/when"

/** Acceptances says which changes of tools were accepted, by whom and for whom. */
export function Acceptances({ server }: { server: string }) {
  const { t } = useTranslation("settings")
  const query = useQuery({ queryKey: ["tools", server, "acceptances"], queryFn: ({ signal }) => call(client.GET("/api/v1/mcp/servers/{id}/acceptances", { params: { path: { id: server }, query: { limit: 20 } }, signal })) })
  return (
    <Shown query={query}>
      {({ acceptances }) =>
        (acceptances ?? []).length === 0 ? null : (
          <Stack gap="xs" component="section">
            <Title order={3} size="h5">
              {t("drift.accepted")}
            </Title>
            <List size="sm" spacing={4}>
              {(acceptances ?? []).map((a) => (
                <List.Item key={`${a.tool} ${a.time} ${a.user ?? ""}`}>
                  <Text span fw={600} ff="monospace" fz="sm">
                    {a.tool}
                  </Text>{" "}
                  {a.summary}{" "}
                  <Text span c="dimmed" fz="sm">
                    {t(a.scope === "workspace" ? "drift.byForAll" : "drift.byForSelf", { by: a.accepted_by, user: a.user ?? a.accepted_by })} · <When at={a.time} />
                  </Text>
                </List.Item>
              ))}
            </List>
          </Stack>
        )
      }
    </Shown>
  )
}
