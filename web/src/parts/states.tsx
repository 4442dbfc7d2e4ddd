import { Alert, Button, Group, Loader, Stack, Text } from "@mantine/core"
import { IconAlertTriangle, IconPlugConnectedX } from "@tabler/icons-react"
import { type ReactNode, useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { Failure } from "@/api/client"

/** Loading shows nothing for 300 ms, then says what is waited for. */
export function Loading({ what }: { what?: string }) {
  const { t } = useTranslation("shell")
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 300)
    return () => clearTimeout(timer)
  }, [])
  if (!late) return null
  return (
    <Group p="xl" gap="sm" role="status">
      <Loader size="sm" />
      <Text c="dimmed">{what ?? t("loading")}</Text>
    </Group>
  )
}

/** Empty says that there is nothing yet, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <Stack p="xl" gap="xs" align="flex-start">
      <Text fw={600}>{title}</Text>
      {children}
    </Stack>
  )
}

/** Failed tells an error with its code, cause and remedy, and offers to try again. */
export function Failed({ error, again, lost }: { error: unknown; again?: () => void; lost?: string }) {
  const { t } = useTranslation("shell")
  const failure = error instanceof Failure ? error : undefined
  const away = failure?.away ?? false
  return (
    <Alert m="md" color={away ? "yellow" : "red"} icon={away ? <IconPlugConnectedX /> : <IconAlertTriangle />} title={away ? t("failed.away") : t("failed.title")} role="alert">
      <Stack gap="xs" align="flex-start">
        <Text>{away ? t("failed.awayText") : error instanceof Error ? error.message : String(error)}</Text>
        {failure?.problem?.errors?.map((e) => (
          <Text key={e.path + e.message} fz="sm">
            <code>{e.path}</code> {e.message}
          </Text>
        ))}
        {lost && <Text fz="sm">{lost}</Text>}
        {failure?.code && !away && (
          <Text fz="xs" c="dimmed">
            {t("failed.code", { code: failure.code })}
          </Text>
        )}
        {again && (
          <Button size="xs" variant="default" onClick={again}>
            {t("failed.again")}
          </Button>
        )}
      </Stack>
    </Alert>
  )
}

type Query<T> = { data: T | undefined; error: unknown; refetch: () => unknown }

/** Shown shows what a query brought, or that it is on its way, or why it failed. What was there stays while it is asked again. */
export function Shown<T>({ query, what, children }: { query: Query<T>; what?: string; children: (data: T) => ReactNode }) {
  if (query.data !== undefined)
    return (
      <>
        {query.error ? <Failed error={query.error} again={() => void query.refetch()} /> : null}
        {children(query.data)}
      </>
    )
  if (query.error) return <Failed error={query.error} again={() => void query.refetch()} />
  return <Loading what={what} />
}
