import { Button, Group, List, Modal, Stack, Text, Textarea } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useNavigate } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { plain } from "@/parts/plain"
import { Failed, Shown } from "@/parts/states"
import { useNotice } from "@/shell/notices"
import { isJSON } from "./act"
import type { Step } from "./run"
import { useActivation } from "./step"
import { stepName } from "./step_name"
import classes from "./fork.module.css"

/** shownJSON is a value as it is written into a field, and as it is shown beside one. */
export const shownJSON = (value: unknown) => (value === undefined ? "" : JSON.stringify(value, null, 2))

/** editsOf are the values that differ from what they were, by name: only these are sent. */
export function editsOf(input: Record<string, unknown>, typed: ReadonlyMap<string, string>): Record<string, unknown> {
  const edits: Record<string, unknown> = {}
  for (const [name, text] of typed) {
    const value = JSON.parse(text) as unknown
    if (JSON.stringify(value) !== JSON.stringify(input[name])) edits[name] = value
  }
  return edits
}

/** ForkDialog starts another execution at a step, with its input as it was or edited. What was is beside what will be. */
export function ForkDialog({ execution, step, onClose }: { execution: string; step: Step; onClose: () => void }) {
  const { t } = useTranslation("executions")
  const query = useActivation(execution, step)
  return (
    <Modal opened onClose={onClose} title={t("fork.title", { name: stepName(step, t) })} closeButtonProps={{ "aria-label": t("act.close") }} size="xl">
      <Shown query={query} what={t("loading.step")}>
        {(n) => <ForkForm execution={execution} step={step} input={(typeof n.input_data === "object" && n.input_data !== null && !Array.isArray(n.input_data) ? n.input_data : {}) as Record<string, unknown>} onClose={onClose} />}
      </Shown>
    </Modal>
  )
}

function ForkForm({ execution, step, input, onClose }: { execution: string; step: Step; input: Record<string, unknown>; onClose: () => void }) {
  const { t } = useTranslation("executions")
  const go = useNavigate()
  const say = useNotice()
  const queries = useQueryClient()
  const [typed, setTyped] = useState<ReadonlyMap<string, string>>(new Map())
  const [reason, setReason] = useState("")
  const wrong = [...typed].filter(([, text]) => !isJSON(text)).map(([name]) => name)
  const edits = wrong.length ? {} : editsOf(input, typed)
  const fork = useMutation({
    mutationFn: () =>
      call(client.POST("/api/v1/executions/{id}/actions", { params: { path: { id: execution } }, body: { action: "fork", activation_id: step.id, ...(reason ? { reason } : {}), ...(Object.keys(edits).length ? { input: edits } : {}) } })),
    onSuccess: async (made) => {
      say(t("fork.done"))
      onClose()
      await queries.invalidateQueries({ queryKey: ["executions"] })
      if (made.execution_id) await go(`/executions/${encodeURIComponent(made.execution_id)}`)
    },
  })
  const type = (name: string, text: string | undefined) =>
    setTyped((now) => {
      const next = new Map(now)
      if (text === undefined) next.delete(name)
      else next.set(name, text)
      return next
    })
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault()
        if (wrong.length === 0) fork.mutate()
      }}
    >
      <Stack gap="sm">
        <List size="sm" spacing={4}>
          <List.Item>{t("fork.keeps")}</List.Item>
          <List.Item>{t("fork.repeats")}</List.Item>
          <List.Item>{t("fork.edits")}</List.Item>
        </List>
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col" className={classes.name}>
                {t("fork.name")}
              </th>
              <th scope="col">{t("fork.original")}</th>
              <th scope="col">{t("fork.edited")}</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(input).map(([name, value]) => (
              <tr key={name} className={name in edits ? classes.edited : undefined}>
                <td className={classes.name}>{plain(name)}</td>
                <td>
                  <pre className={classes.value}>{clip(shownJSON(value))}</pre>
                </td>
                <td>
                  {typed.has(name) ? (
                    <Stack gap={4}>
                      <Textarea
                        aria-label={t("fork.newValue", { name })}
                        autosize
                        minRows={1}
                        maxRows={14}
                        autoFocus
                        value={typed.get(name)}
                        onChange={(e) => type(name, e.currentTarget.value)}
                        error={wrong.includes(name) ? t("fork.notJson") : undefined}
                        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12.5 } }}
                      />
                      <Button size="compact-xs" variant="subtle" w="fit-content" onClick={() => type(name, undefined)}>
                        {t("fork.undo")}
                      </Button>
                    </Stack>
                  ) : (
                    <Button size="compact-xs" variant="default" aria-label={t("fork.editName", { name })} onClick={() => type(name, shownJSON(value))}>
                      {t("fork.edit")}
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {Object.keys(input).length === 0 && (
          <Text fz="sm" c="dimmed">
            {t("fork.noInput")}
          </Text>
        )}
        <Textarea label={t("act.reason")} description={t("act.reasonHint")} autosize minRows={2} maxLength={1000} value={reason} onChange={(e) => setReason(e.currentTarget.value)} />
        {fork.error ? <Failed error={fork.error} lost={t("act.nothingChanged")} /> : null}
        <Group justify="space-between">
          <Text fz="sm" role="status">
            {wrong.length ? t("fork.wrong", { names: wrong.join(", ") }) : t("fork.count", { count: Object.keys(edits).length })}
          </Text>
          <Group>
            <Button variant="default" onClick={onClose}>
              {t("act.back")}
            </Button>
            <Button type="submit" loading={fork.isPending} disabled={wrong.length > 0}>
              {t("act.fork.verb")}
            </Button>
          </Group>
        </Group>
      </Stack>
    </form>
  )
}

const clip = (text: string) => plain(text.length > 4_000 ? text.slice(0, 4_000) + "…" : text)

/** ForkEdits shows what was edited in a fork, beside what it was. */
export function ForkEdits({ fork }: { fork: Schemas["Fork"] }) {
  const { t } = useTranslation("executions")
  const edits = fork.edits ?? []
  if (edits.length === 0) return <Text fz="sm">{t("fork.unedited")}</Text>
  return (
    <table className={classes.table} aria-label={t("fork.editsOf")}>
      <thead>
        <tr>
          <th scope="col" className={classes.name}>
            {t("fork.name")}
          </th>
          <th scope="col">{t("fork.original")}</th>
          <th scope="col">{t("fork.edited")}</th>
        </tr>
      </thead>
      <tbody>
        {edits.map((e) => (
          <tr key={e.name}>
            <td className={classes.name}>{plain(e.name)}</td>
            <td>
              <pre className={classes.value}>{e.original === undefined ? t("fork.absent") : (e.original_part ?? clip(shownJSON(e.original)))}</pre>
            </td>
            <td className={classes.edited}>
              <pre className={classes.value}>{e.edited_part ?? clip(shownJSON(e.edited))}</pre>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
