import { Button, CopyButton, Group, Modal, NativeSelect, Stack, Text, TextInput } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { call, client } from "@/api/client"
import { useMe, useRole } from "@/api/me"
import type { Question } from "@/parts/question/types"
import { Failed } from "@/parts/states"
import { exact } from "@/parts/when"
import { useWho } from "./who"

/**
 * useRecipients are those for whom the user may have a link made: themselves, if they are asked; each who is asked, for an admin, who has it sent;
 * anyone, where a form is open to all who have a link and the user runs it.
 */
export function useRecipients(q: Question): string[] {
  const { data: me } = useMe()
  const admin = useRole()
  const operates = useRole("editor", "operator") || me?.id === q.user_id
  if (q.status !== "pending" || !me) return []
  if (q.request_data.access === "link" || q.request_data.access === "public") return operates ? ["anyone"] : []
  const mine = `user:${me.id}`
  const others = admin ? (q.approvers ?? []).filter((a) => a !== mine && !a.startsWith("role:") && a !== "anyone") : []
  return [...(q.may_respond ? [mine] : []), ...others]
}

/** ResponseLink makes a link to the response page. The user's own and those for anyone are shown to be copied; one for somebody else is sent to them. */
export function ResponseLink({ question: q, recipients, onClose }: { question: Question; recipients: string[]; onClose: () => void }) {
  const { t } = useTranslation("inbox")
  const { data: me } = useMe()
  const who = useWho()
  const queries = useQueryClient()
  const [to, setTo] = useState(recipients[0]!)
  const make = useMutation({
    mutationFn: () => call(client.POST("/api/v1/interactions/{id}/link", { params: { path: { id: q.id } }, body: { recipient: to } })),
    onSettled: () => void queries.invalidateQueries({ queryKey: ["interactions"] }),
  })
  const sends = to !== "anyone" && to !== `user:${me?.id}`
  const made = make.data
  return (
    <Modal opened onClose={onClose} title={t("link.title")} closeButtonProps={{ "aria-label": t("close") }}>
      <Stack gap="sm">
        <Text fz="sm">{t(to === "anyone" ? "link.forAnyone" : sends ? "link.forOther" : "link.forMe")}</Text>
        {!made && recipients.length > 1 && <NativeSelect label={t("link.for")} value={to} onChange={(e) => setTo(e.currentTarget.value)} data={recipients.map((r) => ({ value: r, label: who.one(r) }))} />}
        {make.error && <Failed error={make.error} />}
        {made?.sent_to && <Text role="status">{t("link.sent", { to: made.sent_to })}</Text>}
        {made?.url && (
          <>
            <TextInput label={t("link.it")} readOnly value={made.url} onFocus={(e) => e.currentTarget.select()} data-autofocus />
            {made.expires_at ? (
              <Text fz="sm" c="dimmed">
                {t("link.until", { time: exact(made.expires_at) })}
              </Text>
            ) : null}
          </>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {made ? t("close") : t("cancel")}
          </Button>
          {made?.url && (
            <CopyButton value={made.url}>
              {({ copied, copy }) => <Button onClick={copy}>{copied ? t("link.copied") : t("link.copy")}</Button>}
            </CopyButton>
          )}
          {!made && (
            <Button loading={make.isPending} onClick={() => make.mutate()}>
              {t(sends ? "link.send" : "link.make")}
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  )
}
