import { Anchor, SegmentedControl, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client } from "@/api/client"
import { type Range, ranges } from "@/home/overview"
import { plain } from "@/parts/plain"
import { Empty, Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { useAddress } from "./addresses"
import classes from "./list.module.css"
import page from "./one.module.css"

const shownAtMost = 100

/** Causes shows why executions failed: those that are alike in workflow, node and code together, with the message of the newest. */
export function Causes({ workflow }: { workflow: string }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const asked = params.get("since") as Range
  const range: Range = ranges.includes(asked) ? asked : "week"
  const query = useQuery({
    queryKey: ["executions", "causes", workflow, range],
    refetchInterval: 15_000,
    queryFn: ({ signal }) => call(client.GET("/api/v1/statistics", { params: { query: { range, failures: shownAtMost, ...(workflow ? { workflow_id: workflow } : {}) } }, signal })),
  })
  return (
    <>
      <div className={page.tools}>
        <SegmentedControl size="xs" aria-label={t("filter.time")} value={range} onChange={(v) => change({ since: v })} data={ranges.map((r) => ({ value: r, label: t(`filter.since.${r}`) }))} />
      </div>
      <Shown query={query} what={t("loading.list")}>
        {(data) => {
          const causes = data.failures ?? []
          if (causes.length === 0)
            return (
              <Empty title={t("causes.none")}>
                <Text c="dimmed">{t("causes.noneText")}</Text>
              </Empty>
            )
          return (
            <div className={classes.rows} tabIndex={0} role="region" aria-label={t("view.causes")}>
              <table className={classes.table}>
                <thead>
                  <tr>
                    <th scope="col">{t("causes.count")}</th>
                    <th scope="col">{t("column.workflow")}</th>
                    <th scope="col">{t("causes.newest")}</th>
                    <th scope="col">{t("causes.where")}</th>
                    <th scope="col">{t("causes.code")}</th>
                    <th scope="col">{t("column.error")}</th>
                  </tr>
                </thead>
                <tbody>
                  {causes.map((c) => (
                    <tr key={`${c.workflow_id} ${c.node_id} ${c.code}`}>
                      <td>
                        <Anchor component={Link} fz="sm" className={classes.above} to={`/executions?status=failed&workflow=${encodeURIComponent(c.workflow_id)}&since=${range}`} aria-label={t("causes.all", { count: c.count })}>
                          {c.count}
                        </Anchor>
                      </td>
                      <td>
                        <Link className={classes.link} to={`/executions/${encodeURIComponent(c.execution_id)}`}>
                          <bdi>{plain(c.workflow_name || c.workflow_id)}</bdi>
                        </Link>
                      </td>
                      <td>
                        <When at={c.time} />
                      </td>
                      <td>{c.node_id && plain(c.node_id)}</td>
                      <td className={classes.dim}>{c.code}</td>
                      <td className={`${classes.error} ${classes.wide}`} title={plain(c.message ?? "")}>
                        {plain(c.message ?? "")}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {causes.length >= shownAtMost && (
                <Text fz="xs" c="dimmed" p="sm">
                  {t("causes.some", { count: shownAtMost })}
                </Text>
              )}
            </div>
          )
        }}
      </Shown>
    </>
  )
}
