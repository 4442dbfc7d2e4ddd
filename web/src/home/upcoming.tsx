import { Anchor, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { Card } from "./card"
import classes from "./home.module.css"

/** nextRuns puts the next times of all triggers in one order. */
export function nextRuns(triggers: Schemas["Trigger"][], most: number): { workflow: string; node: string; at: number }[] {
  return triggers
    .filter((g) => g.in_force)
    .flatMap((g) => (g.next_runs ?? []).map((at) => ({ workflow: g.workflow_id, node: g.node_id, at })))
    .sort((a, b) => a.at - b.at)
    .slice(0, most)
}

/** Upcoming has the runs that schedules will start next. */
export function Upcoming() {
  const { t } = useTranslation("home")
  const query = useQuery({
    queryKey: ["triggers", "upcoming"],
    queryFn: ({ signal }) => call(client.GET("/api/v1/triggers", { params: { query: { kind: "TRIGGER.CRON", next_runs: 3, page_size: 100 } }, signal })),
    refetchInterval: 30_000,
  })
  return (
    <Card title={t("upcoming.title")}>
      <Shown query={query}>
        {({ triggers }) => {
          const runs = nextRuns(triggers ?? [], 6)
          return (
            <div>
              {runs.length === 0 && (
                <Text c="dimmed">
                  {t("upcoming.nothing")}{" "}
                  <Anchor component={Link} to="/workflows" fz="sm">
                    {t("upcoming.deploy")}
                  </Anchor>
                </Text>
              )}
              {runs.map((r) => (
                <Link key={`${r.workflow} ${r.node} ${r.at}`} to={`/workflows/${encodeURIComponent(r.workflow)}?tab=triggers`} className={classes.line}>
                  <span className={classes.grow}>
                    {r.workflow}{" "}
                    <Text span c="dimmed" fz="sm">
                      {r.node}
                    </Text>
                  </span>
                  <span className={classes.aside}>
                    <When at={r.at} />
                  </span>
                </Link>
              ))}
            </div>
          )
        }}
      </Shown>
    </Card>
  )
}
