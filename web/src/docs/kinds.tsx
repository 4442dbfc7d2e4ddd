import { Anchor, Group, SimpleGrid, Text, TextInput, Title } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useSearch } from "@/api/search"
import { findKinds } from "@/editor/find_kinds"
import { families, familyOf, iconOf } from "@/graph/family"
import { useKinds } from "@/graph/kinds"
import { Page } from "@/parts/page"
import { Empty, Shown } from "@/parts/states"
import { language } from "@/words"
import classes from "./docs.module.css"

/** The kinds of nodes that this server runs, by family. */
export function Component() {
  const { t } = useTranslation("docs")
  const { t: names } = useTranslation("editor")
  const { get, set } = useSearch()
  const { kinds, query } = useKinds()
  const words = get("find") ?? ""
  const found = findKinds(kinds, words)
  return (
    <Page title={t("kinds.title")} text={t("kinds.text")} crumbs={[{ to: "/docs", name: t("title") }]}>
      <TextInput maw={480} label={t("kinds.find")} value={words} onChange={(e) => set({ find: e.currentTarget.value || null })} />
      <Shown query={query} what={t("reading")}>
        {() => (
          <>
            {found.length === 0 && <Empty title={t("nothing")} />}
            {families
              .filter((f) => found.some((k) => familyOf(k.name) === f))
              .map((f) => (
                <section key={f} aria-labelledby={`family-${f}`}>
                  <Title order={2} size="h4" id={`family-${f}`} mb="xs">
                    {names(`family.${f}`)}
                  </Title>
                  <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm" component="ul" className={classes.hits}>
                    {found
                      .filter((k) => familyOf(k.name) === f)
                      .map((k) => {
                        const Icon = iconOf(k.name)
                        return (
                          <li key={k.name}>
                            <Group gap={6} wrap="nowrap">
                              <Icon size={16} stroke={1.6} aria-hidden style={{ flex: "none" }} />
                              <Anchor component={Link} to={`/docs/kinds/${k.name}`}>
                                {k.title[language()]}
                              </Anchor>
                            </Group>
                            <Text fz="sm" c="dimmed">
                              {k.description[language()]}
                            </Text>
                          </li>
                        )
                      })}
                  </SimpleGrid>
                </section>
              ))}
          </>
        )}
      </Shown>
    </Page>
  )
}
