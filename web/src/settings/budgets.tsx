import { Badge, Button, NumberInput, Progress, Stack, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { Empty, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"
import { Row, Rows } from "./rows"
import { Topic, useMay } from "./topic"

type Budget = Schemas["Budget"]

/** Budgets shows what profiles limit, what is spent and who waits, and lets somebody add to one. */
export default function Budgets() {
  const { t } = useTranslation("settings")
  const may = useMay("budgets")
  const [raising, setRaising] = useState<Budget>()
  const query = useQuery({ queryKey: ["budgets"], queryFn: ({ signal }) => call(client.GET("/api/v1/budgets", { params: { query: { limit: 200 } }, signal })), refetchInterval: 10_000 })
  return (
    <Topic name="budgets">
      <Shown query={query}>
        {({ budgets, more }) =>
          (budgets ?? []).length === 0 ? (
            <Empty title={t("budgets.none")}>
              <Text c="dimmed">{t("budgets.how")}</Text>
            </Empty>
          ) : (
            <>
              <Rows label={t("budgets.title")} head={[t("budgets.of"), t("budgets.spent"), t("budgets.remaining"), t("budgets.waiting"), t("do")]}>
                {(budgets ?? []).map((b) => (
                  <Row
                    key={b.budget}
                    cells={[
                      <span key="n">
                        <Text fw={600}>{b.profile_id}</Text>
                        <Text fz="sm" c="dimmed">
                          {t(`budgets.unit.${b.unit}`)} · {t(`budgets.per.${b.per}`, { key: b.key })}
                        </Text>
                      </span>,
                      <Spent key="s" budget={b} />,
                      amount(b.remaining, b.unit, t),
                      <Stack key="w" gap={2}>
                        {(b.waiting ?? []).length === 0 ? "–" : (
                          <Badge color="yellow" variant="light" tt="none">
                            {t("budgets.waits", { count: (b.waiting ?? []).length })}
                          </Badge>
                        )}
                        {b.waiting?.[0] && (
                          <Text fz="sm" c="dimmed">
                            <When at={b.waiting[0].since_time} />
                          </Text>
                        )}
                      </Stack>,
                      may?.write && (
                        <Button key="a" size="compact-xs" variant="default" onClick={() => setRaising(b)} aria-label={t("budgets.raiseOf", { name: b.budget })}>
                          {t("budgets.raise")}
                        </Button>
                      ),
                    ]}
                  />
                ))}
              </Rows>
              {more && <Text c="dimmed">{t("budgets.more")}</Text>}
            </>
          )
        }
      </Shown>
      {raising && <Raise budget={raising} onClose={() => setRaising(undefined)} />}
    </Topic>
  )
}

function amount(n: number, unit: Budget["unit"], t: (key: string, args: Record<string, unknown>) => string): string {
  return unit === "tokens" ? t("budgets.tokens", { n: n.toLocaleString() }) : t("budgets.cost", { n: n.toLocaleString(undefined, { maximumFractionDigits: 4 }) })
}

function Spent({ budget: b }: { budget: Budget }) {
  const { t } = useTranslation("settings")
  const whole = b.limit + b.raised
  const part = whole > 0 ? Math.min(100, (b.spent / whole) * 100) : 100
  return (
    <Stack gap={3} miw={180}>
      <Text fz="sm">{t("budgets.spentOf", { spent: amount(b.spent, b.unit, t), whole: amount(whole, b.unit, t) })}</Text>
      <Progress value={part} color={part >= 100 ? "red" : part >= 80 ? "yellow" : "blue"} aria-label={t("budgets.part", { part: Math.round(part) })} />
      {b.raised > 0 && (
        <Text fz="xs" c="dimmed">
          {t("budgets.raised", { by: amount(b.raised, b.unit, t) })}
        </Text>
      )}
    </Stack>
  )
}

function Raise({ budget: b, onClose }: { budget: Budget; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const [by, setBy] = useState<number | "">("")
  const [request] = useState(() => crypto.randomUUID())
  const raise = useAct(() => call(client.POST("/api/v1/budgets/raise", { body: { budget: b.budget, raise_by: Number(by), request_id: request } })), { stale: ["budgets", "executions", "interactions"], quiet: true, done: t("budgets.done") })
  return (
    <Sure title={t("budgets.raiseOf", { name: b.budget })} verb={t("budgets.raise")} disabled={by === ""} act={() => raise.mutateAsync()} onClose={onClose}>
      <Text>{t("budgets.raiseText")}</Text>
      <NumberInput label={t(b.unit === "tokens" ? "budgets.byTokens" : "budgets.byCost")} value={by} onChange={(v) => setBy(v === "" ? "" : Number(v))} hideControls data-autofocus />
    </Sure>
  )
}
