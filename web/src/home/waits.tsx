import { Anchor, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { language } from "@/words"
import { Card } from "./card"
import classes from "./home.module.css"

const titleOf = (q: Schemas["Interaction"]) => {
  const data = q.request_data as { title?: unknown } | null
  return q.title || (typeof data?.title === "string" && data.title ? data.title : q.workflow_name)
}

/** WaitsForMe has the questions that the user is asked, the most pressing first, each a link to where it is answered. */
export function WaitsForMe() {
  const { t } = useTranslation("home")
  const lang = language()
  const query = useQuery({
    queryKey: ["interactions", "home", lang],
    queryFn: ({ signal }) => call(client.GET("/api/v1/interactions", { params: { query: { mine: true, status: ["pending"], page_size: 6, language: lang } }, signal })),
    refetchInterval: 30_000,
  })
  return (
    <Card
      title={t("waits.title")}
      aside={
        <Anchor component={Link} to="/inbox" fz="sm">
          {t("waits.all")}
        </Anchor>
      }
    >
      <Shown query={query}>
        {({ interactions, total_count }) => (
          <div>
            {total_count === 0 && <Text c="dimmed">{t("waits.nothing")}</Text>}
            {(interactions ?? []).map((q) => (
              <Link key={q.id} to={`/inbox/${encodeURIComponent(q.id)}`} className={classes.line}>
                <span className={classes.grow} title={titleOf(q)}>
                  {titleOf(q)}{" "}
                  <Text span c="dimmed" fz="sm">
                    {q.workflow_name}
                  </Text>
                </span>
                <span className={classes.aside}>{q.timeout_at ? <Until at={q.timeout_at} /> : <When at={q.created_at} />}</span>
              </Link>
            ))}
            {total_count > 6 && (
              <Text fz="sm" c="dimmed" pt={4}>
                {t("waits.more", { count: total_count - 6 })}
              </Text>
            )}
          </div>
        )}
      </Shown>
    </Card>
  )
}

function Until({ at }: { at: number }) {
  const { t } = useTranslation("home")
  return (
    <>
      {t("waits.until")} <When at={at} />
    </>
  )
}
