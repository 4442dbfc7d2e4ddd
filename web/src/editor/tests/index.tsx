import { Alert, Button, Group, Stack, Text, Title } from "@mantine/core"
import { useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import type { Definition } from "@/graph/definition"
import { Failure } from "@/api/client"
import { Empty, Failed } from "@/parts/states"
import type { Plain } from "../rewrite"
import { EditTest } from "./edit_test"
import { addTest, type FileTest, freeName, removeTest, setTest, testsOf } from "./file"
import { keepResults, markOf, readResults, type Result, runTest } from "./results"
import { TestRow } from "./row"

type Props = {
  workflow: string
  text: string
  value: Plain
  definition: Definition
  broken: boolean
  dirty: boolean
  saving: boolean
  mayEdit: boolean
  edit: (act: (value: Plain) => Plain) => void
  onSave: () => void
}

/** Tests are those that stand in the workflow's file: run them, see what differs, change them. They are run as the text is, saved or not, and nothing with effects happens. */
export default function Tests({ workflow, text, value, definition, broken, dirty, saving, mayEdit, edit, onSave }: Props) {
  const { t } = useTranslation("tests")
  const queries = useQueryClient()
  const tests = testsOf(value)
  const [results, setResults] = useState(() => readResults(workflow))
  const [running, setRunning] = useState<string>()
  const [error, setError] = useState<unknown>()
  const [editing, setEditing] = useState<FileTest | "new">()
  const here = useRef(true)
  useEffect(() => {
    here.current = true
    return () => {
      here.current = false
    }
  }, [])
  const mark = markOf(text)
  const changes = mayEdit && !broken
  const nameOf = (node: string) => definition.nodes.find((n) => n.id === node)?.name ?? node

  const run = async (list: FileTest[]) => {
    setError(undefined)
    for (const test of list) {
      if (!here.current) return
      setRunning(test.name)
      let result: Result
      try {
        result = await runTest(workflow, text, test.name)
      } catch (e) {
        if (!(e instanceof Failure) || e.away) {
          setError(e)
          break
        }
        result = { passed: false, error: e.message, differences: [], at: Date.now(), of: mark }
      }
      const next = { ...readResults(workflow), [test.name]: result }
      keepResults(workflow, next)
      setResults((now) => ({ ...now, [test.name]: result }))
    }
    setRunning(undefined)
    void queries.invalidateQueries({ queryKey: ["executions"] })
  }
  const passed = tests.filter((x) => results[x.name]?.passed).length
  const failed = tests.filter((x) => results[x.name] && !results[x.name]!.passed).length
  return (
    <Stack gap="md" p="md" component="section" aria-label={t("title")}>
      <Group gap="sm">
        <Title order={2} size="h5">
          {t("title")}
        </Title>
        {tests.length > 0 && (
          <Text fz="sm" c="dimmed" role="status">
            {t("counts", { passed, failed, rest: tests.length - passed - failed })}
          </Text>
        )}
        <Group gap="xs" ml="auto">
          {dirty && mayEdit && (
            <Button size="compact-sm" variant="default" loading={saving} onClick={onSave}>
              {t("save")}
            </Button>
          )}
          {changes && (
            <Button size="compact-sm" variant="default" onClick={() => setEditing("new")}>
              {t("add")}
            </Button>
          )}
          {mayEdit && tests.length > 0 && (
            <Button size="compact-sm" disabled={broken || running !== undefined} onClick={() => void run(tests)}>
              {t("runAll")}
            </Button>
          )}
        </Group>
      </Group>
      {broken && <Alert color="yellow">{t("broken")}</Alert>}
      {error !== undefined && <Failed error={error} />}
      {tests.length === 0 ? (
        <Empty title={t("empty.title")}>
          <Text fz="sm" c="dimmed" maw={640}>
            {t("empty.text")}
          </Text>
        </Empty>
      ) : (
        <Stack component="ul" gap="xs" m={0} p={0} style={{ listStyle: "none" }}>
          {tests.map((test) => (
            <TestRow
              key={test.index}
              test={test}
              nameOf={nameOf}
              result={results[test.name]}
              old={results[test.name]?.of !== mark}
              running={running === test.name}
              waits={broken || (running !== undefined && running !== test.name)}
              mayEdit={changes}
              mayRun={mayEdit}
              onRun={() => void run([test])}
              onEdit={() => setEditing(test)}
              onDelete={() => edit((v) => removeTest(v, test.index))}
            />
          ))}
        </Stack>
      )}
      <Text fz="sm" c="dimmed" maw={760}>
        {t("about")}
      </Text>
      {editing && (
        <EditTest
          name={editing === "new" ? "" : editing.name}
          fields={editing === "new" ? { inputs: {}, expect: { outputs: {} } } : editing.fields}
          taken={new Set(tests.filter((x) => x !== editing).map((x) => x.name))}
          onClose={() => setEditing(undefined)}
          onDone={(test) => {
            edit((v) => (editing === "new" ? addTest(v, { ...test, name: freeName(v, String(test.name)) }) : setTest(v, editing.index, test)))
            setEditing(undefined)
          }}
        />
      )}
    </Stack>
  )
}
