import { Anchor, Button, Stack, Text, Title } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { Link, useRouteError } from "react-router"

/** Wrong is shown where a view could not be shown at all: something in the page itself broke, or a part of it could not be loaded. */
export function Wrong() {
  const { t } = useTranslation("shell")
  const error = useRouteError()
  return (
    <Stack p="xl" maw={640} role="alert">
      <Title order={1} size="h3">
        {t("wrong.title")}
      </Title>
      <Text>{t("wrong.text")}</Text>
      <Text ff="monospace" fz="xs" c="dimmed">
        {error instanceof Error ? error.message : String(error)}
      </Text>
      <Button w="fit-content" onClick={() => location.reload()}>
        {t("wrong.reload")}
      </Button>
    </Stack>
  )
}

/** Lost is shown at an address that leads nowhere. */
export function Lost() {
  const { t } = useTranslation("shell")
  return (
    <Stack p="xl" maw={640}>
      <Title order={1} size="h3">
        {t("lost.title")}
      </Title>
      <Text>{t("lost.text")}</Text>
      <Anchor component={Link} to="/">
        {t("lost.home")}
      </Anchor>
    </Stack>
  )
}
