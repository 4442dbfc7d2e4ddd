import { Anchor, Breadcrumbs, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useCallback, useEffect, useRef } from "react"
import { useTranslation } from "react-i18next"
import { Link, useLocation, useParams } from "react-router"
import Rendered from "@/parts/markdown/render"
import { Empty, Shown } from "@/parts/states"
import { language } from "@/words"
import { find, isIn, placeOf, read } from "./texts"
import classes from "./docs.module.css"

/** One document, with its headings beside it. */
export function Component() {
  const { t } = useTranslation("docs")
  const name = useParams()["*"] ?? ""
  const lang = language()
  const found = find(name, lang)
  const query = useQuery({ queryKey: ["docs", "text", lang, name], queryFn: () => read(name, lang), staleTime: Infinity, enabled: !!found })
  const inside = useCallback((target: string) => placeOf(name, target), [name])
  useEffect(() => {
    if (found) document.title = `${found.title} · Tandem`
  }, [found?.title])
  return (
    <div className={classes.page}>
      <div className={classes.text}>
        <Breadcrumbs fz="sm" mb="sm">
          <Anchor component={Link} to="/docs" fz="sm">
            {t("title")}
          </Anchor>
          <Text fz="sm" c="dimmed" aria-current="page">
            {found?.title ?? name}
          </Text>
        </Breadcrumbs>
        {found ? (
          <>
            {!isIn(name, lang) && (
              <Text fz="sm" c="dimmed" mb="sm" role="note">
                {t("onlyEnglish")}
              </Text>
            )}
            <Shown query={query} what={t("reading")}>
              {(text) => (
                <article lang={isIn(name, lang) ? undefined : "en"}>
                  <TextAt text={text} inside={inside} />
                </article>
              )}
            </Shown>
          </>
        ) : (
          <Empty title={t("missing")}>
            <Text>{t("missingText")}</Text>
          </Empty>
        )}
      </div>
      {found && found.sections.length > 0 && (
        <nav className={classes.contents} aria-label={t("contents")} lang={isIn(name, lang) ? undefined : "en"}>
          {found.sections
            .filter((s) => s.level <= 3)
            .map((s) => (
              <Anchor key={s.slug} component={Link} to={{ hash: s.slug }} replace fz="sm" c="inherit" pl={(s.level - 2) * 12} display="block">
                {s.title}
              </Anchor>
            ))}
        </nav>
      )}
    </div>
  )
}

// The text goes to the heading of the address when it is there, and whenever that changes.
function TextAt({ text, inside }: { text: string; inside: (target: string) => string | null | undefined }) {
  const { hash, key } = useLocation()
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const id = decodeURIComponent(hash.slice(1))
    const to = id ? box.current?.querySelector(`[id="${CSS.escape(id)}"]`) : box.current?.closest(`.${classes.text}`)
    to?.scrollIntoView({ block: "start" })
  }, [hash, key, text])
  return (
    <div ref={box}>
      <Rendered text={text} top={1} anchors inside={inside} />
    </div>
  )
}
