import { Group, Pagination, Text } from "@mantine/core"
import { useTranslation } from "react-i18next"

/** Pages leads through a listing of the API by its page, page size and total. It shows nothing where one page is all. */
export function Pages({ page, size, total, onPage }: { page: number; size: number; total: number; onPage: (page: number) => void }) {
  const { t } = useTranslation("places")
  if (total <= size) return null
  const first = (page - 1) * size + 1
  return (
    <Group justify="space-between" gap="sm">
      <Text fz="sm" c="dimmed">
        {t("pages.range", { first: Math.min(first, total), last: Math.min(page * size, total), total })}
      </Text>
      <Pagination
        size="sm"
        value={page}
        total={Math.ceil(total / size)}
        onChange={onPage}
        getControlProps={(control) => ({ "aria-label": t(`pages.${control}`) })}
        getItemProps={(n) => ({ "aria-label": t("pages.page", { n }) })}
      />
    </Group>
  )
}
