import { Button, Text } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { Empty } from "@/parts/states"

/** Missing says that there is no such execution, which also holds when it was deleted or is of another workspace. */
export function Missing({ id }: { id: string }) {
  const { t } = useTranslation("executions")
  return (
    <Empty title={t("missing.title")}>
      <Text>{t("missing.text")}</Text>
      <Text ff="monospace" fz="xs" c="dimmed">
        {id}
      </Text>
      <Button size="xs" component={Link} to="/executions">
        {t("missing.go")}
      </Button>
    </Empty>
  )
}
