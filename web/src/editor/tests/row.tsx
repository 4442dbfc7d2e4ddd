import { ActionIcon, Anchor, Button, Group, Paper, Stack, Table, Text, Tooltip } from "@mantine/core"
import { IconCircleCheck, IconCircleDashed, IconCircleX, IconPencil, IconTrash } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import type { Schemas } from "@/api/client"
import { When } from "@/parts/when"
import type { FileTest } from "./file"
import type { Result } from "./results"

type Props = { test: FileTest; nameOf: (node: string) => string; result?: Result; old: boolean; running: boolean; waits: boolean; mayEdit: boolean; mayRun: boolean; onRun: () => void; onEdit: () => void; onDelete: () => void }

/** TestRow is one test: what it runs, how it ended last, and what was not as it expects. */
export function TestRow({ test, nameOf, result, old, running, waits, mayEdit, mayRun, onRun, onEdit, onDelete }: Props) {
  const { t } = useTranslation("tests")
  return (
    <Paper withBorder p="sm" component="li" aria-label={test.name}>
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <Stack gap={2} style={{ flex: 1, minWidth: 0 }}>
          <Text fw={600} style={{ overflowWrap: "anywhere" }}>
            {test.name || t("unnamed")}
          </Text>
          <Group gap="md">
            <Text fz="sm" c="dimmed">
              {test.node ? t("runs.node", { name: nameOf(test.node) }) : test.from ? t("runs.from", { name: nameOf(test.from) }) : t("runs.whole")}
            </Text>
            <Mark result={result} running={running} />
            {result && !running && (
              <Text fz="sm" c="dimmed">
                <When at={result.at} />
                {old && ` · ${t("old")}`}
              </Text>
            )}
            {result?.execution && !running && (
              <Anchor component={Link} to={`/executions/${encodeURIComponent(result.execution)}`} fz="sm">
                {t("open")}
              </Anchor>
            )}
          </Group>
        </Stack>
        {mayRun && (
          <Button size="compact-sm" variant="default" loading={running} disabled={waits} onClick={onRun} aria-label={t("runOne", { name: test.name })}>
            {t("run")}
          </Button>
        )}
        {mayEdit && (
          <>
            <Act label={t("editOne", { name: test.name })} onClick={onEdit}>
              <IconPencil size={16} />
            </Act>
            <Act label={t("deleteOne", { name: test.name })} onClick={onDelete}>
              <IconTrash size={16} />
            </Act>
          </>
        )}
      </Group>
      {result && !running && !result.passed && (result.error ? <Text fz="sm" mt="xs">{result.error}</Text> : <Differences list={result.differences} nameOf={nameOf} />)}
    </Paper>
  )
}

function Act({ label, onClick, children }: { label: string; onClick: () => void; children: React.ReactNode }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" aria-label={label} onClick={onClick}>
        {children}
      </ActionIcon>
    </Tooltip>
  )
}

// State as colour, icon and word together.
function Mark({ result, running }: { result?: Result; running: boolean }) {
  const { t } = useTranslation("tests")
  const [Icon, color, word] = running
    ? [IconCircleDashed, "var(--state-blue)", t("state.running")]
    : !result
      ? [IconCircleDashed, "var(--mantine-color-dimmed)", t("state.none")]
      : result.passed
        ? [IconCircleCheck, "var(--state-green)", t("state.passed")]
        : [IconCircleX, "var(--state-red)", t(result.error ? "state.error" : "state.differs")]
  return (
    <Group gap={4} wrap="nowrap" role="status" style={{ color }}>
      <Icon size={16} aria-hidden />
      <Text fz="sm" c="inherit" span>
        {word}
      </Text>
    </Group>
  )
}

function Differences({ list, nameOf }: { list: Schemas["TestDifference"][]; nameOf: (node: string) => string }) {
  const { t } = useTranslation("tests")
  const shown = (v: unknown) => (v === undefined ? t("differ.nothing") : JSON.stringify(v))
  return (
    <div role="region" aria-label={t("differ.title")} tabIndex={0} style={{ overflowX: "auto", marginTop: 8 }}>
      <Table fz="sm" verticalSpacing={4} miw={360} aria-label={t("differ.title")}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t("differ.where")}</Table.Th>
            <Table.Th>{t("differ.expected")}</Table.Th>
            <Table.Th>{t("differ.got")}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {list.map((d, i) => (
            <Table.Tr key={i}>
              <Table.Td>
                {d.node ? `${nameOf(d.node)}${d.path ? ` · ${d.path}` : ""}` : d.about === "error_code" ? t("differ.code") : d.about === "status" ? t("differ.status") : ""}
                {d.message && (
                  <Text fz="xs" c="dimmed">
                    {d.message}
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <code style={{ overflowWrap: "anywhere" }}>{d.expected === undefined ? "" : shown(d.expected)}</code>
              </Table.Td>
              <Table.Td>
                <code style={{ overflowWrap: "anywhere" }}>{d.expected === undefined && d.got === undefined ? "" : shown(d.got)}</code>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}
