import { Anchor, Badge, Text } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { StateMark } from "@/parts/state"
import { When } from "@/parts/when"
import { Card } from "./card"
import type { Cause, Range } from "./overview"
import classes from "./home.module.css"

/** Causes has what failed, by cause, the newest first, with the one message that matters. */
export function Causes({ failures, range }: { failures: Cause[]; range: Range }) {
  const { t } = useTranslation("home")
  const shown = failures.slice(0, 8)
  return (
    <Card
      title={t("causes.title")}
      aside={
        <Anchor component={Link} to="/executions?status=failed" fz="sm">
          {t("causes.all")}
        </Anchor>
      }
    >
      {shown.length === 0 && <Text c="dimmed">{t(`causes.nothing.${range}`)}</Text>}
      <div>
        {shown.map((f) => (
          <Link key={`${f.workflow_id} ${f.node_id ?? ""} ${f.code ?? ""}`} to={`/executions/${encodeURIComponent(f.execution_id)}`} className={`${classes.line} ${classes.cause}`}>
            <StateMark status="ERROR" word={false} />
            <Text span fw={600} className={classes.name}>
              {f.workflow_name || f.workflow_id}
            </Text>
            {(f.node_id || f.code) && (
              <Text span c="dimmed" fz="sm" className={classes.name}>
                {[f.node_id, f.code].filter(Boolean).join(" · ")}
              </Text>
            )}
            <span className={classes.grow} title={f.message}>
              {f.message || t("causes.silent")}
            </span>
            {f.count > 1 && (
              <Badge size="sm" color="red" variant="light" tt="none" flex="none" title={t("causes.times", { count: f.count })}>
                ×{f.count}
              </Badge>
            )}
            <span className={classes.aside}>
              <When at={f.time} />
            </span>
          </Link>
        ))}
      </div>
    </Card>
  )
}
