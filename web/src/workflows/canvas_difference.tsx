import { Stack, Table, Text, UnstyledButton } from "@mantine/core"
import { useMemo } from "react"
import { useTranslation } from "react-i18next"
import { type Chosen, Graph, readDefinition, useKinds, withKinds } from "@/graph"
import { MarkBadge } from "@/graph/mark"
import { plain } from "@/parts/plain"
import { changesOf, type FieldChange } from "./changes"
import classes from "./difference.module.css"

type Fields = Record<string, unknown>
type Props = {
  before: Fields
  after: Fields
  /** What is looked at: the id of a node, a connection, or "workflow". */
  picked: string
  onPick: (id: string | null) => void
}

/** CanvasDifference draws two revisions over each other. What was added, removed or changed is marked, and a click shows which fields differ. */
export default function CanvasDifference({ before, after, picked, onPick }: Props) {
  const { t } = useTranslation("workflows")
  const { kinds } = useKinds()
  const changes = useMemo(() => changesOf(before, after), [before, after])
  const definition = useMemo(() => withKinds(readDefinition(changes.both), kinds), [changes, kinds])
  const marks = useMemo(() => ({ nodes: new Map([...changes.nodes].map(([id, n]) => [id, n.mark])), wires: new Map([...changes.wires].map(([id, w]) => [id, w.mark])) }), [changes])
  const chosen = useMemo<Chosen>(() => ({ nodes: new Set(changes.nodes.has(picked) ? [picked] : []), wires: new Set(changes.wires.has(picked) ? [picked] : []) }), [changes, picked])
  const show = useMemo(() => (changes.nodes.has(picked) ? { id: picked } : undefined), [changes, picked])
  const nameOf = (id: string) => definition.nodes.find((n) => n.id === id)?.name ?? id
  const entries = [
    ...[...changes.nodes].map(([id, n]) => ({ id, mark: n.mark, name: n.name, fields: n.fields })),
    ...[...changes.wires].map(([id, w]) => ({ id, mark: w.mark, name: `${nameOf(w.from)} → ${nameOf(w.to)}`, fields: w.fields })),
    ...(changes.other.length ? [{ id: "workflow", mark: "changed" as const, name: t("compare.other"), fields: changes.other }] : []),
  ]
  const open = entries.find((e) => e.id === picked)
  return (
    <div className={classes.frame}>
      <Graph definition={definition} kinds={kinds} label={t("compare.canvas")} marks={marks} chosen={chosen} onChoose={ignore} onOpen={(id) => changes.nodes.has(id) && onPick(id)} show={show} />
      <div className={classes.list} role="region" aria-label={t("compare.list")} tabIndex={0}>
        <Stack gap={2}>
          {entries.length === 0 && <Text fz="sm">{t("compare.nothing")}</Text>}
          {entries.map((e) => (
            <UnstyledButton key={e.id} className={classes.entry} aria-pressed={e.id === picked} onClick={() => onPick(e.id === picked ? null : e.id)}>
              <MarkBadge mark={e.mark} inline />
              <Text span fz="sm" truncate>
                <bdi>{plain(e.name)}</bdi>
              </Text>
            </UnstyledButton>
          ))}
          {changes.moved > 0 && (
            <Text fz="xs" c="dimmed" mt={4}>
              {t("compare.moved", { count: changes.moved })}
            </Text>
          )}
          {open ? (
            <FieldTable name={open.name} fields={open.fields} />
          ) : (
            entries.length > 0 && (
              <Text fz="xs" c="dimmed" mt={8}>
                {t("compare.pick")}
              </Text>
            )
          )}
        </Stack>
      </div>
    </div>
  )
}

const ignore = () => undefined

function FieldTable({ name, fields }: { name: string; fields: FieldChange[] }) {
  const { t } = useTranslation("workflows")
  return (
    <Table mt="sm" verticalSpacing={4} horizontalSpacing={6} className={classes.fields} aria-label={plain(name)}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t("compare.field")}</Table.Th>
          <Table.Th>{t("compare.before")}</Table.Th>
          <Table.Th>{t("compare.after")}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {fields.map((f) => (
          <Table.Tr key={f.path}>
            <Table.Td>
              <code>{plain(f.path)}</code>
            </Table.Td>
            <Table.Td>
              <Shown value={f.before} />
            </Table.Td>
            <Table.Td>
              <Shown value={f.after} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}

const most = 2_000

function Shown({ value }: { value: unknown }) {
  const { t } = useTranslation("workflows")
  if (value === undefined || value === null) return <Text span fz="xs" c="dimmed">{t("compare.absent")}</Text>
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2)
  return <code>{plain(text.length > most ? text.slice(0, most) + "…" : text)}</code>
}
