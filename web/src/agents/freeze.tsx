import { Anchor, Button, Group, Modal, Stack, Table, Text, TextInput } from "@mantine/core"
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link, useNavigate } from "react-router"
import { call, client } from "@/api/client"
import { Value, visible } from "@/parts/question/value"
import { Failed, Shown } from "@/parts/states"
import type { Run } from "./queries"
import classes from "./agents.module.css"

type Definition = { nodes?: { id: string; name?: string; type?: string; subtype?: string }[] }

/** Freeze makes a workflow of a task that has ended well: first it shows what would come of it, then it keeps it and opens it in the editor. */
export default function Freeze({ run, onClose }: { run: Run; onClose: () => void }) {
  const { t } = useTranslation("agents")
  const go = useNavigate()
  const queries = useQueryClient()
  const [name, setName] = useState(run.task?.flow_name ?? "")
  const [id, setId] = useState("")
  const path = { id: run.execution_id }
  const shown = useQuery({ queryKey: ["executions", run.execution_id, "freeze"], queryFn: () => call(client.POST("/api/v1/executions/{id}/freeze", { params: { path }, body: { dry_run: true } })) })
  const keep = useMutation({
    mutationFn: () => call(client.POST("/api/v1/executions/{id}/freeze", { params: { path }, body: { ...(id.trim() ? { id: id.trim() } : {}), ...(name.trim() ? { name: name.trim() } : {}) } })),
    onSuccess: (made) => {
      void queries.invalidateQueries({ queryKey: ["workflows"] })
      void go(`/workflows/${encodeURIComponent(made.workflow_id)}`)
    },
  })
  return (
    <Modal opened onClose={onClose} size="lg" title={t("freeze.title")} closeButtonProps={{ "aria-label": t("close") }}>
      <Stack gap="md">
        <Text>{t("freeze.text")}</Text>
        <Shown query={shown} what={t("freeze.reading")}>
          {({ definition, untraced }) => (
            <>
              <ol className={classes.frozen} aria-label={t("freeze.steps")}>
                {((definition as Definition).nodes ?? []).map((n) => (
                  <li key={n.id}>
                    {visible(n.name || n.id)}{" "}
                    <Text span fz="sm" c="dimmed">
                      {n.type}.{n.subtype}
                    </Text>
                  </li>
                ))}
              </ol>
              {(untraced ?? []).length > 0 && (
                <>
                  <Text fw={600}>{t("freeze.untraced")}</Text>
                  <Text fz="sm">{t("freeze.untracedText")}</Text>
                  <Table fz="sm" aria-label={t("freeze.untraced")}>
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>{t("freeze.where")}</Table.Th>
                        <Table.Th>{t("freeze.value")}</Table.Th>
                        <Table.Th>{t("freeze.why")}</Table.Th>
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {(untraced ?? []).map((u) => (
                        <Table.Tr key={u.step_id + u.path}>
                          <Table.Td className={classes.wrap}>
                            {u.step_id} · {visible(u.path)}
                          </Table.Td>
                          <Table.Td>
                            <Value value={u.value} />
                          </Table.Td>
                          <Table.Td className={classes.wrap}>{visible(u.reason)}</Table.Td>
                        </Table.Tr>
                      ))}
                    </Table.Tbody>
                  </Table>
                </>
              )}
              <Group grow align="flex-start">
                <TextInput label={t("freeze.name")} value={name} maxLength={200} onChange={(e) => setName(e.currentTarget.value)} />
                <TextInput label={t("freeze.id")} description={t("freeze.idAbout")} value={id} onChange={(e) => setId(e.currentTarget.value)} />
              </Group>
              {keep.error && <Failed error={keep.error} />}
              <Group justify="space-between">
                <Anchor component={Link} to={`/executions/${encodeURIComponent(run.execution_id)}`} fz="sm">
                  {t("turn.look")}
                </Anchor>
                <Group>
                  <Button variant="default" onClick={onClose}>
                    {t("cancel")}
                  </Button>
                  <Button loading={keep.isPending} onClick={() => keep.mutate()}>
                    {t("freeze.do")}
                  </Button>
                </Group>
              </Group>
            </>
          )}
        </Shown>
      </Stack>
    </Modal>
  )
}
