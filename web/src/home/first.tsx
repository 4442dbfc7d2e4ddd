import { Anchor, Button, CloseButton, Group, SimpleGrid, Text } from "@mantine/core"
import { useLocalStorage } from "@mantine/hooks"
import { IconArrowsSplit2, IconPlayerPlay, IconPlugConnected, IconRobot, IconUserCheck } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link, useNavigate } from "react-router"
import { useAct } from "@/api/act"
import { useMe, useRole } from "@/api/me"
import { Shown } from "@/parts/states"
import { language } from "@/words"
import { Card } from "./card"
import { beginExample, byHand, type Example, useExamples } from "./examples"
import classes from "./home.module.css"

// An installation with fewer runs than this is new to whoever looks at it.
const few = 5

/** First greets who has just installed it: three examples, each run with one click, and the others behind them. */
export function First({ total }: { total: number }) {
  const { t } = useTranslation("home")
  const { data: me } = useMe()
  const mayRun = useRole("editor")
  const examples = useExamples()
  const [all, setAll] = useState(false)
  const [hidden, hide] = useLocalStorage({ key: "tandem.examples.hidden", defaultValue: false, getInitialValueInEffect: false })
  if (hidden || total >= few || !me) return null
  return (
    <Card title={t(total === 0 ? "first.title" : "first.again")} aside={total > 0 && <CloseButton size="sm" aria-label={t("first.hide")} onClick={() => hide(true)} />}>
      <Text c="dimmed">{mayRun ? t("first.text") : t("first.mayNot")}</Text>
      <Shown query={examples}>
        {({ examples: list }) => (
          <SimpleGrid cols={{ base: 1, md: 3 }} spacing="md">
            {(list ?? [])
              .filter((e) => all || e.first)
              .map((e) => (
                <ExampleCard key={e.name} example={e} mayRun={mayRun} />
              ))}
          </SimpleGrid>
        )}
      </Shown>
      <Group gap="lg">
        {!all && (
          <Anchor component="button" type="button" fz="sm" onClick={() => setAll(true)}>
            {t("first.all")}
          </Anchor>
        )}
        <Anchor component={Link} to="/workflows/new?blank" fz="sm">
          {t("first.build")}
        </Anchor>
        <Anchor component={Link} to="/docs" fz="sm">
          {t("first.docs")}
        </Anchor>
      </Group>
    </Card>
  )
}

function ExampleCard({ example: e, mayRun }: { example: Example; mayRun: boolean }) {
  const { t } = useTranslation("home")
  const go = useNavigate()
  const needs = e.needs ?? []
  const Icon = needs.includes("agent") ? IconRobot : needs.includes("person") ? IconUserCheck : needs.includes("deploy") ? IconPlugConnected : IconArrowsSplit2
  const run = useAct(() => beginExample(e), { stale: ["executions", "workflows", "examples"], then: (to) => void go(to) })
  const title = e.title[language()]
  return (
    <div className={classes.example}>
      <Group gap="xs" wrap="nowrap">
        <Icon size={20} stroke={1.6} aria-hidden style={{ flex: "none" }} />
        <Text fw={600}>{title}</Text>
      </Group>
      <Text fz="sm" style={{ flex: 1 }}>
        {e.description[language()]}
      </Text>
      <Group gap="sm">
        <Button
          size="xs"
          variant={byHand(e) ? "filled" : "default"}
          leftSection={byHand(e) ? <IconPlayerPlay size={14} /> : <IconPlugConnected size={14} />}
          loading={run.isPending}
          disabled={!mayRun}
          onClick={() => run.mutate()}
          aria-label={t(byHand(e) ? "first.runNamed" : "first.addNamed", { name: title })}
        >
          {t(byHand(e) ? "first.run" : "first.add")}
        </Button>
        <Text fz="xs" c="dimmed" ff="monospace">
          {e.name}
        </Text>
      </Group>
    </div>
  )
}
