import { Alert, Anchor, List, Stack, Text } from "@mantine/core"
import { IconAlertTriangle } from "@tabler/icons-react"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { Failure, type Problem } from "@/api/client"
import { Failed } from "@/parts/states"
import { language } from "@/words"
import { readDefinition } from "./export"
import { valueAt } from "./paths"

type Fault = NonNullable<Problem["errors"]>[number]

// placeOf says where what is missing can be made: by the code of the problem, with the name that the workflow uses.
function placeOf(fault: Fault, named: unknown): { to: string; word: "profile" | "server" | "credential" | "people" } | undefined {
  const name = typeof named === "string" ? encodeURIComponent(named) : ""
  switch (fault.code) {
    case "unknown_profile":
      return { to: `/settings/profiles?new=1&id=${name}`, word: "profile" }
    case "unknown_server":
    case "not_activated":
      return { to: `/settings/tools?new=1&id=${name}`, word: "server" }
    case "credential_missing":
    case "unknown_credential":
      return { to: `/settings/credentials?new=1&name=${name}`, word: "credential" }
    case "unknown_approver":
      return { to: "/settings/users", word: "people" }
  }
  return undefined
}

/** Missing lists why a workflow cannot be deployed, each with a link to the place where that is put right. */
export function Missing({ id, error }: { id: string; error: unknown }) {
  const { t } = useTranslation("workflows")
  const faults = error instanceof Failure ? (error.problem?.errors ?? []) : []
  const { data: definition } = useQuery({ queryKey: ["workflows", id, "newest"], queryFn: ({ signal }) => readDefinition(id, undefined, signal), enabled: faults.length > 0 })
  if (faults.length === 0) return <Failed error={error} />
  return (
    <Alert color="red" icon={<IconAlertTriangle />} title={t("missing.title", { count: faults.length })} role="alert">
      <Stack gap="xs">
        <Text>{t("missing.text")}</Text>
        <List size="sm" spacing={6}>
          {faults.map((f) => {
            const node = /^nodes\[(\d+)\]/.exec(f.path)?.[0]
            const nodeID = node && definition ? valueAt(definition, `${node}.id`) : undefined
            const place = placeOf(f, definition ? valueAt(definition, f.path) : undefined)
            return (
              <List.Item key={f.path + f.message}>
                {language() === "zh" && f.message_zh ? f.message_zh : f.message}{" "}
                {place && (
                  <Anchor component={Link} to={place.to} fz="sm" fw={600}>
                    {t(`missing.${place.word}`)}
                  </Anchor>
                )}{" "}
                {typeof nodeID === "string" && (
                  <Anchor component={Link} to={`/workflows/${encodeURIComponent(id)}?node=${encodeURIComponent(nodeID)}`} fz="sm">
                    {t("missing.node", { node: nodeID })}
                  </Anchor>
                )}
              </List.Item>
            )
          })}
        </List>
      </Stack>
    </Alert>
  )
}
