import { Group, Text } from "@mantine/core"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { StateMark, stateOf } from "@/parts/state"
import { ago, lasted } from "@/parts/when"

const shown = 10

type Runs = Record<string, Schemas["Run"][] | null>

/** useLastRuns reads the last runs of several workflows at once. */
export function useLastRuns(ids: string[]): Runs | undefined {
  const { data } = useQuery({
    queryKey: ["executions", "strips", ids],
    queryFn: ({ signal }) => call(client.GET("/api/v1/statistics", { params: { query: { range: "hour", failures: 0, runs: shown, runs_of: ids } }, signal })),
    enabled: ids.length > 0,
    refetchInterval: 5_000,
    placeholderData: keepPreviousData,
  })
  return data?.runs ?? (data && {})
}

/** Strip has the last runs of a workflow in a row, the newest on the right, each a link. */
export function Strip({ runs }: { runs: Schemas["Run"][] }) {
  const { t } = useTranslation("workflows")
  if (runs.length === 0)
    return (
      <Text span fz="sm" c="dimmed">
        {t("strip.none")}
      </Text>
    )
  return (
    <Group gap={3} wrap="nowrap" role="list" aria-label={t("strip.label")}>
      {[...runs].reverse().map((r) => {
        const words = [t(`shell:state.${stateOf(r.status)}`), ago(r.created_at), r.duration_ms === undefined ? "" : lasted(r.duration_ms)].filter(Boolean).join(" · ")
        return (
          <span key={r.execution_id} role="listitem">
            <Link to={`/executions/${encodeURIComponent(r.execution_id)}`} aria-label={words} title={words} style={{ display: "inline-flex" }}>
              <StateMark status={r.status} word={false} size={15} />
            </Link>
          </span>
        )
      })}
    </Group>
  )
}
