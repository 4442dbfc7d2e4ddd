import { Anchor, Breadcrumbs, Group, Stack, Text, Title } from "@mantine/core"
import { type ReactNode, useEffect } from "react"
import { Link } from "react-router"

type Props = {
  title: string
  /** The way back: each place above this one. */
  crumbs?: { to: string; name: string }[]
  /** One sentence that says what the page is for. */
  text?: ReactNode
  /** Buttons of the whole page. */
  actions?: ReactNode
  children: ReactNode
}

/** Page is what most views look like: where one is, what it is called, what can be done, and then the view itself. */
export function Page({ title, crumbs, text, actions, children }: Props) {
  useEffect(() => {
    const before = document.title
    document.title = `${title} · Tandem`
    return () => {
      document.title = before
    }
  }, [title])
  return (
    <Stack p="md" gap="md">
      <Stack gap={4}>
        {crumbs && (
          <Breadcrumbs fz="sm">
            {crumbs.map((c) => (
              <Anchor key={c.to} component={Link} to={c.to} fz="sm">
                {c.name}
              </Anchor>
            ))}
            <Text fz="sm" c="dimmed" aria-current="page">
              {title}
            </Text>
          </Breadcrumbs>
        )}
        <Group justify="space-between" gap="sm">
          <Title order={1} size="h3">
            {title}
          </Title>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
        {text && (
          <Text c="dimmed" maw={760}>
            {text}
          </Text>
        )}
      </Stack>
      {children}
    </Stack>
  )
}
