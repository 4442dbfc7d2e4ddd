import { Alert, Button, Group, JsonInput, List, Modal, Stack, Text, Textarea, TextInput } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useNavigate } from "react-router"
import { call, client } from "@/api/client"
import { Failed } from "@/parts/states"
import { useNotice } from "@/shell/notices"
import type { Act } from "./allowed"
import type { Step } from "./run"
import { stepName } from "./step_name"

type Props = { execution: string; name: string; act: Exclude<Act, "fork" | "freeze">; step?: Step; onClose: () => void }

/** ActDialog says what an action repeats and what it does not, asks for a reason, and does it. */
export function ActDialog({ execution, name, act, step, onClose }: Props) {
  const { t } = useTranslation("executions")
  const say = useNotice()
  const go = useNavigate()
  const queries = useQueryClient()
  const [reason, setReason] = useState("")
  const [output, setOutput] = useState("")
  const wrong = act === "skip_node" && output.trim() !== "" && !isJSON(output)
  const todo = useMutation({
    mutationFn: async () => {
      if (act === "delete") {
        await call(client.DELETE("/api/v1/executions/{id}", { params: { path: { id: execution }, query: reason ? { reason } : {} } }))
        return ""
      }
      const body = {
        action: act,
        ...(reason ? { reason } : {}),
        ...(step ? { activation_id: step.id } : {}),
        ...(act === "skip_node" && output.trim() ? { output: JSON.parse(output) as unknown } : {}),
      }
      const done = await call(client.POST("/api/v1/executions/{id}/actions", { params: { path: { id: execution } }, body }))
      return done.message
    },
    onSuccess: async () => {
      say(t(`act.${act}.done`))
      onClose()
      if (act === "delete") {
        queries.removeQueries({ queryKey: ["executions", execution] })
        await go("/executions")
      }
      await queries.invalidateQueries({ queryKey: ["executions"] })
    },
  })
  const what = step ? stepName(step, t) : name
  return (
    <Modal opened onClose={onClose} title={t(`act.${act}.title`, { name: what })} closeButtonProps={{ "aria-label": t("act.close") }} size="lg">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          if (!wrong) todo.mutate()
        }}
      >
        <Stack gap="sm">
          <List size="sm" spacing={4}>
            <List.Item>{t(`act.${act}.does`)}</List.Item>
            <List.Item>{t(`act.${act}.keeps`)}</List.Item>
          </List>
          {step?.effect === "once" && act === "retry_node" && <Alert color="yellow">{t("act.retry_node.once")}</Alert>}
          {act === "skip_node" && (
            <JsonInput label={t("act.skip_node.output")} description={t("act.skip_node.outputHint")} autosize minRows={3} maxRows={12} value={output} onChange={setOutput} validationError={t("fork.notJson")} error={wrong ? t("fork.notJson") : undefined} styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }} />
          )}
          {act === "delete" ? <TextInput label={t("act.reason")} description={t("act.reasonHint")} maxLength={1000} value={reason} onChange={(e) => setReason(e.currentTarget.value)} data-autofocus /> : <Textarea label={t("act.reason")} description={t("act.reasonHint")} autosize minRows={2} maxLength={1000} value={reason} onChange={(e) => setReason(e.currentTarget.value)} data-autofocus />}
          {todo.error ? <Failed error={todo.error} lost={t("act.nothingChanged")} /> : null}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t("act.back")}
            </Button>
            <Button type="submit" color={act === "delete" || act === "cancel" ? "red" : undefined} loading={todo.isPending}>
              {t(`act.${act}.verb`)}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

export function isJSON(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** FreezeDialog makes a workflow of a task that has ended well, after showing which values it could not trace. */
export function FreezeDialog({ execution, onClose }: { execution: string; onClose: () => void }) {
  const { t } = useTranslation("executions")
  const go = useNavigate()
  const [name, setName] = useState("")
  const freeze = useMutation({
    mutationFn: () => call(client.POST("/api/v1/executions/{id}/freeze", { params: { path: { id: execution } }, body: name ? { name } : {} })),
    onSuccess: (made) => void go(`/workflows/${encodeURIComponent(made!.workflow_id)}`),
  })
  return (
    <Modal opened onClose={onClose} title={t("act.freeze.title")} closeButtonProps={{ "aria-label": t("act.close") }} size="lg">
      <form
        onSubmit={(e) => {
          e.preventDefault()
          freeze.mutate()
        }}
      >
        <Stack gap="sm">
          <Text fz="sm">{t("act.freeze.does")}</Text>
          <Text fz="sm">{t("act.freeze.keeps")}</Text>
          <TextInput label={t("act.freeze.name")} maxLength={200} value={name} onChange={(e) => setName(e.currentTarget.value)} data-autofocus />
          {freeze.error ? <Failed error={freeze.error} lost={t("act.nothingChanged")} /> : null}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t("act.back")}
            </Button>
            <Button type="submit" loading={freeze.isPending}>
              {t("act.freeze.verb")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
