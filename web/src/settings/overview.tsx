import { SimpleGrid, Stack, Text, Title } from "@mantine/core"
import { IconLock } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useMe } from "@/api/me"
import { Page } from "@/parts/page"
import { groups, topics } from "./topics"
import classes from "./settings.module.css"

/** Overview leads to the topics; of those that the user may not see it says so. */
export function Overview() {
  const { t } = useTranslation("settings")
  const { data: me } = useMe()
  const mine = me?.roles ?? []
  return (
    <Page title={t("title")}>
      <Stack gap="lg">
        {groups.map((g) => (
          <Stack key={g.name} gap="xs" component="section" aria-labelledby={`settings-${g.name}`}>
            <Title order={2} size="h5" id={`settings-${g.name}`}>
              {t(`group.${g.name}`)}
            </Title>
            <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
              {g.topics.map((name) => {
                const { icon: Icon, read } = topics[name]
                const may = mine.includes("admin") || read.some((r) => mine.includes(r))
                return (
                  <Link key={name} to={name} className={classes.topic}>
                    <Icon size={20} stroke={1.6} aria-hidden style={{ flex: "none" }} />
                    <span>
                      <Text span fw={600} display="block">
                        {t(`${name}.title`)} {me && !may && <IconLock size={13} aria-label={t("locked")} />}
                      </Text>
                      <Text span fz="sm" c="dimmed">
                        {t(`${name}.text`)}
                      </Text>
                    </span>
                  </Link>
                )
              })}
            </SimpleGrid>
          </Stack>
        ))}
      </Stack>
    </Page>
  )
}
