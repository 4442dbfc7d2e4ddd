import { SegmentedControl, SimpleGrid } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { useSearch } from "@/api/search"
import { Page } from "@/parts/page"
import { Shown } from "@/parts/states"
import { Causes } from "./causes"
import { Counts } from "./counts"
import { First } from "./first"
import { Plots } from "./plots"
import { countOf, type Range, ranges, useOverview } from "./overview"
import { Upcoming } from "./upcoming"
import { WaitsForMe } from "./waits"

/** Home answers: is anything broken, is anybody waited for, is it slower than usual. On an empty installation it offers examples. */
export function Component() {
  const { t } = useTranslation("home")
  const { get, set } = useSearch()
  const range = ranges.find((r) => r === get("range")) ?? "day"
  const overview = useOverview(range)
  return (
    <Page
      title={t("title")}
      actions={
        <SegmentedControl
          size="xs"
          aria-label={t("range.label")}
          value={range}
          onChange={(r) => set({ range: r === "day" ? null : (r as Range) }, { replace: true })}
          data={ranges.map((r) => ({ value: r, label: t(`range.${r}`) }))}
        />
      }
    >
      <Shown query={overview} what={t("reading")}>
        {(o) => (
          <>
            {countOf(o.counts) === 0 && <First total={0} />}
            <Counts counts={o.counts} />
            <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
              <WaitsForMe />
              <Upcoming />
            </SimpleGrid>
            <Causes failures={o.failures ?? []} range={range} />
            <Plots buckets={o.buckets ?? []} range={range} />
            {countOf(o.counts) > 0 && <First total={countOf(o.counts)} />}
          </>
        )}
      </Shown>
    </Page>
  )
}
