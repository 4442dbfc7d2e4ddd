import { Anchor, Button, Text, VisuallyHidden } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { type ComponentType, lazy, Suspense, useEffect } from "react"
import { useTranslation } from "react-i18next"
import { Link, useParams, useSearchParams } from "react-router"
import { Editor } from "@/editor/editor"
import { call, client, Failure } from "@/api/client"
import { blank, sourceOf } from "@/editor/source"
import type { Base } from "@/editor/use_document"
import { readNewest } from "@/editor/use_save"
import { Empty, Loading, Shown } from "@/parts/states"
import classes from "./one.module.css"

type Read = { name: string; deployed?: number; server: { text: string; revision: number } }
type Tab = ComponentType<{ id: string }>

// The other views of a workflow, each loaded when it is looked at.
const files = import.meta.glob<{ default: Tab }>("./tabs/*.tsx")
const order = ["revisions", "triggers", "executions"]
const tabs = new Map(order.flatMap((name): [string, Tab][] => (files[`./tabs/${name}.tsx`] ? [[name, lazy(files[`./tabs/${name}.tsx`]!)]] : [])))

/** The page of one workflow: its canvas with the text beside it, and its other views as tabs. */
export function Component() {
  const { id = "" } = useParams()
  const [params] = useSearchParams()
  const template = params.get("template")
  if (id === "new" && template) return <FromTemplate key={`template:${template}`} name={template} />
  return id === "new" && params.has("blank") ? <One key="" id="" /> : <One key={id} id={id} />
}

/** FromTemplate begins a workflow with a template. Nothing is kept on the server before it is saved. */
function FromTemplate({ name }: { name: string }) {
  const query = useQuery({
    queryKey: ["templates", name],
    staleTime: Infinity,
    queryFn: ({ signal }) => call(client.GET("/api/v1/workflow-templates/{name}", { params: { path: { name } }, signal })),
  })
  if (query.error instanceof Failure && query.error.status === 404) return <Missing />
  return <Shown query={query}>{(template) => <One id="" begins={{ text: template.definition ?? "", revision: 0, from: name }} />}</Shown>
}

function One({ id, begins = newcomer }: { id: string; begins?: Base }) {
  const { t } = useTranslation("editor")
  const [params] = useSearchParams()
  const query = useQuery<Read | null>({
    queryKey: ["workflows", id, "source"],
    enabled: id !== "",
    refetchInterval: (q) => (q.state.data === null ? false : 10_000),
    queryFn: async ({ signal }) => {
      const w = await readNewest(id, signal).catch((error: unknown) => {
        // A workflow may be called "new"; while there is none, this is where one is begun.
        if (id === "new" && error instanceof Failure && error.status === 404) return null
        throw error
      })
      if (!w) return null
      return { name: w.metadata.name || id, deployed: w.metadata.deployment_status === "deployed" ? w.metadata.deployed_revision : undefined, server: { text: sourceOf(w), revision: w.metadata.revision } }
    },
  })
  const fresh = id === "" || query.data === null
  const missing = query.data === undefined && query.error instanceof Failure && query.error.status === 404
  const tab = !fresh && (tabs.has(params.get("tab") ?? "") || params.get("tab") === "tests") ? params.get("tab")! : "canvas"
  const title = fresh ? t("page.new") : (query.data?.name ?? id)
  useEffect(() => {
    document.title = `${title} · Tandem`
    return () => {
      document.title = "Tandem"
    }
  }, [title])
  const Body = tabs.get(tab)
  return (
    <div className={classes.page}>
      <VisuallyHidden component="h1">{title}</VisuallyHidden>
      <nav className={classes.head} aria-label={t("page.views")}>
        <Text fz="sm">
          <Anchor component={Link} to="/workflows" fz="sm" underline="always">
            {t("page.workflows")}
          </Anchor>{" "}
          / {title}
        </Text>
        {!fresh &&
          !missing &&
          tabs.size > 0 &&
          ["canvas", "tests", ...tabs.keys()].map((name) => (
            <Link key={name} className={classes.tab} aria-current={name === tab ? "page" : undefined} to={name === "canvas" ? "?" : `?tab=${name}`}>
              {t(`page.tab.${name}`)}
            </Link>
          ))}
      </nav>
      {missing ? <Missing /> : fresh ? <Editor id="" server={begins} shown /> : <Shown query={query}>{(data) => (data ? <Editor id={id} server={data.server} deployed={data.deployed} shown={tab === "canvas"} tests={tab === "tests"} /> : null)}</Shown>}
      {Body && !missing && (
        <div className={classes.body}>
          <Suspense fallback={<Loading />}>
            <Body id={id} />
          </Suspense>
        </div>
      )}
    </div>
  )
}

// Missing says that there is no such workflow, which also holds when it was deleted or is of another workspace.
function Missing() {
  const { t } = useTranslation("editor")
  return (
    <Empty title={t("page.missing.title")}>
      <Text>{t("page.missing.text")}</Text>
      <Button size="xs" component={Link} to="/workflows">
        {t("page.missing.go")}
      </Button>
    </Empty>
  )
}

const newcomer: Base = { text: blank("new_workflow"), revision: 0 }
