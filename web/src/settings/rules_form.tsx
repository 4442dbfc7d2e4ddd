import { ActionIcon, Button, Group, Modal, NativeSelect, Paper, Stack, Text, TextInput } from "@mantine/core"
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Failure, type Schemas } from "@/api/client"
import { plain } from "@/parts/plain"
import { Failed } from "@/parts/states"
import { argumentsOf, type Draft, draftOf, type Policy, policies, type Rule, ruleOf, tests, typeOf } from "./rules"
import { type Scope, useSetPolicy } from "./use_set_policy"

type Props = { server: string; tool: Schemas["MCPTool"]; scope: Scope; start: { policy: Policy | null; rules: Rule[] }; title: string; onClose: () => void }

const most = 50

/** RulesForm edits the rules about the arguments of a tool, in their order: the first that matches decides. */
export function RulesForm({ server, tool, scope, start, title, onClose }: Props) {
  const { t } = useTranslation("settings")
  const known = argumentsOf(tool.input_schema)
  const fresh = (): Draft => ({ argument: known[0] ?? "", test: "equals", value: "", policy: "ask" })
  const [rules, setRules] = useState<Draft[]>(() => (start.rules.length > 0 ? start.rules.map(draftOf) : known.length > 0 ? [fresh()] : []))
  const [policy, setPolicy] = useState(start.policy)
  const save = useSetPolicy(server, tool, scope, { quiet: true, then: onClose })
  const change = (i: number, part: Partial<Draft>) => setRules((all) => all.map((r, n) => (n === i ? { ...r, ...part } : r)))
  const move = (i: number, by: number) =>
    setRules((all) => {
      const next = [...all]
      const [one] = next.splice(i, 1)
      next.splice(i + by, 0, one!)
      return next
    })
  // What the server says is wrong with a rule stands beside it.
  const { path = "" } = (save.error instanceof Failure ? (save.error.problem?.details ?? {}) : {}) as { path?: string }
  const at = /rules\[(\d+)\]/.exec(path)?.[1]
  const wrong = (i: number) => (at === String(i) ? (save.error as Failure).message.replace(`${path}: `, "") : undefined)
  return (
    <Modal opened onClose={onClose} size="xl" title={title} closeButtonProps={{ "aria-label": t("places:close") }}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          save.mutate({ policy, rules: rules.map((r) => ruleOf(r, tool.input_schema)) })
        }}
      >
        <Stack gap="sm">
          <Text fz="sm">{t("rules.text")}</Text>
          {known.length === 0 && <Text fz="sm">{t("rules.noArguments")}</Text>}
          {rules.map((r, i) => (
            <RuleFields key={i} n={i + 1} last={i === rules.length - 1} rule={r} known={known} type={typeOf(tool.input_schema, r.argument)} wrong={wrong(i)} onChange={(part) => change(i, part)} onMove={(by) => move(i, by)} onRemove={() => setRules((all) => all.filter((_, n) => n !== i))} />
          ))}
          {known.length > 0 && rules.length < most && (
            <Button variant="default" size="xs" w="fit-content" leftSection={<IconPlus size={14} />} onClick={() => setRules((all) => [...all, fresh()])}>
              {t("rules.more")}
            </Button>
          )}
          <NativeSelect
            label={t("rules.otherwise")}
            w={280}
            value={policy ?? ""}
            onChange={(e) => setPolicy((e.currentTarget.value || null) as Policy | null)}
            data={[{ value: "", label: rules.length > 0 ? t("rules.asServer") : t("tools.noPolicy") }, ...policies.map((p) => ({ value: p as string, label: t(`tools.policy.${p}`) }))]}
          />
          {save.error && at === undefined ? <Failed error={save.error} /> : null}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t("places:cancel")}
            </Button>
            <Button type="submit" loading={save.isPending}>
              {t("save")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

type FieldsProps = { n: number; last: boolean; rule: Draft; known: string[]; type: "text" | "number" | "boolean"; wrong?: string; onChange: (part: Partial<Draft>) => void; onMove: (by: number) => void; onRemove: () => void }

function RuleFields({ n, last, rule: r, known, type, wrong, onChange, onMove, onRemove }: FieldsProps) {
  const { t } = useTranslation("settings")
  const names = known.includes(r.argument) ? known : [r.argument, ...known]
  return (
    <Paper withBorder p="xs" role="group" aria-label={t("rules.rule", { n })}>
      <Group gap="xs" align="flex-end">
        <NativeSelect size="xs" label={t("rules.argument")} value={r.argument} onChange={(e) => onChange({ argument: e.currentTarget.value })} data={names.map((a) => ({ value: a, label: plain(a) }))} />
        <NativeSelect size="xs" label={t("rules.test")} value={r.test} onChange={(e) => onChange({ test: e.currentTarget.value as Draft["test"] })} data={tests.map((one) => ({ value: one as string, label: t(`rules.tests.${one}`) }))} />
        {r.test === "equals" && type === "boolean" ? (
          <NativeSelect size="xs" label={t("rules.value")} value={r.value} onChange={(e) => onChange({ value: e.currentTarget.value })} data={["", "true", "false"]} />
        ) : (
          r.test !== "absent" && <TextInput size="xs" label={t("rules.value")} maxLength={500} spellCheck={false} autoComplete="off" value={r.value} onChange={(e) => onChange({ value: e.currentTarget.value })} style={{ flex: 1, minWidth: 140 }} />
        )}
        <NativeSelect size="xs" label={t("rules.then")} value={r.policy} onChange={(e) => onChange({ policy: e.currentTarget.value as Policy })} data={policies.map((p) => ({ value: p as string, label: t(`tools.policy.${p}`) }))} />
        <Group gap={4} wrap="nowrap">
          <ActionIcon variant="default" aria-label={t("rules.up", { n })} disabled={n === 1} onClick={() => onMove(-1)}>
            <IconArrowUp size={14} />
          </ActionIcon>
          <ActionIcon variant="default" aria-label={t("rules.down", { n })} disabled={last} onClick={() => onMove(1)}>
            <IconArrowDown size={14} />
          </ActionIcon>
          <ActionIcon variant="default" aria-label={t("rules.remove", { n })} onClick={onRemove}>
            <IconTrash size={14} />
          </ActionIcon>
        </Group>
      </Group>
      {r.test === "pattern" && (
        <Text fz="xs" c="dimmed" mt={4}>
          {t("rules.patternAbout")}
        </Text>
      )}
      {wrong && (
        <Text fz="sm" c="var(--state-red)" mt={4} role="alert">
          {plain(wrong)}
        </Text>
      )}
    </Paper>
  )
}
