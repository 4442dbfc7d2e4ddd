import { Group, Paper, Stack, Title } from "@mantine/core"
import { type ReactNode, useId } from "react"

/** Card is one part of the first page, with a heading that screen readers find. */
export function Card({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  const id = useId()
  return (
    <Paper component="section" withBorder p="sm" aria-labelledby={id} miw={0}>
      <Stack gap="xs">
        <Group justify="space-between" gap="xs">
          <Title order={2} size="h5" id={id}>
            {title}
          </Title>
          {aside}
        </Group>
        {children}
      </Stack>
    </Paper>
  )
}
