import { Button, Group, Modal, Stack, Text, Textarea, TextInput } from "@mantine/core"
import { IconBell, IconGavel, IconLink, IconUserShare, IconX } from "@tabler/icons-react"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { call, client } from "@/api/client"
import { useMe, useRole } from "@/api/me"
import type { Question } from "@/parts/question/types"
import { Failed } from "@/parts/states"
import { useNotice } from "@/shell/notices"
import { ResponseLink, useRecipients } from "./response_link"

type Props = { question: Question; override: boolean; onOverride: (on: boolean) => void }

/** Acts are what else can be done with an open question, as far as the user may: hand it on, remind, make a link, withdraw, decide in the place of others. */
export function Acts({ question: q, override, onOverride }: Props) {
  const { t } = useTranslation("inbox")
  const { data: me } = useMe()
  const admin = useRole()
  const operates = useRole("editor", "operator") || me?.id === q.user_id
  const say = useNotice()
  const queries = useQueryClient()
  const [dialog, setDialog] = useState<"delegate" | "withdraw" | "link">()
  const recipients = useRecipients(q)
  const remind = useMutation({
    mutationFn: () => call(client.POST("/api/v1/interactions/{id}/remind", { params: { path: { id: q.id } } })),
    onSuccess: () => say(t("act.reminded")),
    onError: (e) => say(t("act.remindFailed"), { tone: "bad", detail: e.message }),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["interactions"] }),
  })
  const mayDelegate = (q.request_data.allow_delegation && q.may_respond) || (admin && q.request_data.allow_delegation)
  if (!operates && !mayDelegate && !admin && recipients.length === 0) return null
  return (
    <Group gap="xs" aria-label={t("act.title")} role="group">
      {mayDelegate && (
        <Button size="xs" variant="default" leftSection={<IconUserShare size={15} />} onClick={() => setDialog("delegate")}>
          {t("act.delegate")}
        </Button>
      )}
      {operates && (
        <Button size="xs" variant="default" leftSection={<IconBell size={15} />} loading={remind.isPending} onClick={() => remind.mutate()}>
          {t("act.remind")}
        </Button>
      )}
      {recipients.length > 0 && (
        <Button size="xs" variant="default" leftSection={<IconLink size={15} />} onClick={() => setDialog("link")}>
          {t("act.link")}
        </Button>
      )}
      {operates && (
        <Button size="xs" variant="default" leftSection={<IconX size={15} />} onClick={() => setDialog("withdraw")}>
          {t("act.withdraw")}
        </Button>
      )}
      {admin && !q.may_respond && (
        <Button size="xs" variant="default" leftSection={<IconGavel size={15} />} aria-pressed={override} onClick={() => onOverride(!override)}>
          {override ? t("act.notOverride") : t("act.override")}
        </Button>
      )}
      {dialog === "delegate" && <Delegate question={q} onClose={() => setDialog(undefined)} />}
      {dialog === "link" && <ResponseLink question={q} recipients={recipients} onClose={() => setDialog(undefined)} />}
      {dialog === "withdraw" && <Withdraw question={q} onClose={() => setDialog(undefined)} />}
    </Group>
  )
}

function Delegate({ question: q, onClose }: { question: Question; onClose: () => void }) {
  const { t } = useTranslation("inbox")
  const say = useNotice()
  const queries = useQueryClient()
  const [to, setTo] = useState("")
  const [from, setFrom] = useState("")
  const [note, setNote] = useState("")
  const others = !q.may_respond
  const send = useMutation({
    mutationFn: () => call(client.POST("/api/v1/interactions/{id}/delegate", { params: { path: { id: q.id } }, body: { to: to.trim(), ...(note.trim() ? { note } : {}), ...(others ? { from: from.trim() } : {}) } })),
    onSuccess: () => {
      say(t("delegate.done", { to: to.trim() }))
      onClose()
    },
    onSettled: () => void queries.invalidateQueries({ queryKey: ["interactions"] }),
  })
  return (
    <Modal opened onClose={onClose} title={t("delegate.title")} closeButtonProps={{ "aria-label": t("close") }}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          send.mutate()
        }}
      >
        <Stack gap="sm">
          <Text fz="sm">{t("delegate.text")}</Text>
          {others && <TextInput label={t("delegate.from")} required value={from} onChange={(e) => setFrom(e.currentTarget.value)} />}
          <TextInput label={t("delegate.to")} description={t("delegate.toAbout")} required data-autofocus value={to} onChange={(e) => setTo(e.currentTarget.value)} />
          <Textarea label={others ? t("delegate.reason") : t("delegate.note")} required={others} autosize minRows={2} value={note} onChange={(e) => setNote(e.currentTarget.value)} />
          {send.error && <Failed error={send.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t("cancel")}
            </Button>
            <Button type="submit" loading={send.isPending} disabled={!to.trim() || (others && (!from.trim() || !note.trim()))}>
              {t("delegate.do")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

function Withdraw({ question: q, onClose }: { question: Question; onClose: () => void }) {
  const { t } = useTranslation("inbox")
  const queries = useQueryClient()
  const [reason, setReason] = useState("")
  const send = useMutation({
    mutationFn: () => call(client.POST("/api/v1/interactions/{id}/cancel", { params: { path: { id: q.id } }, body: reason.trim() ? { reason } : {} })),
    onSuccess: onClose,
    onSettled: () => void queries.invalidateQueries({ queryKey: ["interactions"] }),
  })
  return (
    <Modal opened onClose={onClose} title={t("withdraw.title")} closeButtonProps={{ "aria-label": t("close") }}>
      <Stack gap="sm">
        <Text fz="sm">{t("withdraw.text")}</Text>
        <Textarea label={t("withdraw.reason")} autosize minRows={2} data-autofocus value={reason} onChange={(e) => setReason(e.currentTarget.value)} />
        {send.error && <Failed error={send.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("cancel")}
          </Button>
          <Button color="red" loading={send.isPending} onClick={() => send.mutate()}>
            {t("withdraw.do")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
