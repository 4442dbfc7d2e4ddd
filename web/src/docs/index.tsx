import { Anchor, SimpleGrid, Stack, Text, TextInput, Title } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useSearch } from "@/api/search"
import { Page } from "@/parts/page"
import { Empty, Shown } from "@/parts/states"
import { language } from "@/words"
import { documentsOf, groups, isIn, search } from "./texts"
import classes from "./docs.module.css"

/** The documents of the product, as they belong to this version of it: what there is, and where words stand in it. */
export function Component() {
  const { t } = useTranslation("docs")
  const { get, set } = useSearch()
  const words = get("find") ?? ""
  const lang = language()
  return (
    <Page title={t("title")} text={t("text")}>
      <TextInput maw={480} label={t("find")} value={words} onChange={(e) => set({ find: e.currentTarget.value || null })} />
      {words.trim() ? (
        <Hits words={words.trim()} />
      ) : (
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="xl">
          <section aria-labelledby="docs-reference">
            <Title order={2} size="h4" id="docs-reference">
              {t("reference")}
            </Title>
            <ul className={classes.list}>
              <li>
                <Anchor component={Link} to="/docs/kinds">
                  {t("kinds.title")}
                </Anchor>
              </li>
              <li>
                <Anchor href="/openapi">{t("operations")}</Anchor>
              </li>
            </ul>
          </section>
          {groups.map((group) => (
            <section key={group} aria-labelledby={`docs-${group}`}>
              <Title order={2} size="h4" id={`docs-${group}`}>
                {t(`group.${group}`)}
              </Title>
              <ul className={classes.list}>
                {documentsOf(group, lang).map((d) => (
                  <li key={d.name}>
                    <Anchor component={Link} to={`/docs/${d.name}`} lang={isIn(d.name, lang) ? undefined : "en"}>
                      {d.title}
                    </Anchor>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </SimpleGrid>
      )}
    </Page>
  )
}

function Hits({ words }: { words: string }) {
  const { t } = useTranslation("docs")
  const lang = language()
  const [wanted] = useDebouncedValue(words, 150)
  const query = useQuery({ queryKey: ["docs", "search", lang, wanted], queryFn: () => search(wanted, lang), staleTime: Infinity, placeholderData: (before) => before })
  return (
    <Shown query={query} what={t("searching")}>
      {(found) =>
        found.length === 0 ? (
          <Empty title={t("nothing")}>
            <Text>{t("nothingText")}</Text>
          </Empty>
        ) : (
          <Stack gap="sm" maw={760} component="ul" className={classes.hits} aria-label={t("hits", { count: found.length })}>
            {found.slice(0, 50).map((f) => (
              <li key={f.name + f.slug}>
                <Anchor component={Link} to={`/docs/${f.name}${f.slug && "#" + f.slug}`}>
                  {f.title}
                </Anchor>
                <Text fz="sm" c="dimmed" className={classes.wrap}>
                  {f.around}
                </Text>
              </li>
            ))}
          </Stack>
        )
      }
    </Shown>
  )
}
