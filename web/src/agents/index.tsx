import { Anchor, Button, Text } from "@mantine/core"
import { IconPlus, IconRobot } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import { Link, useNavigate, useSearchParams } from "react-router"
import { useRole } from "@/api/me"
import { Page } from "@/parts/page"
import { Pages } from "@/parts/pages"
import { visible } from "@/parts/question/value"
import { Empty, Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { AgentForm } from "./form"
import { useAgents } from "./queries"
import classes from "./agents.module.css"

/** The agents of the workspace, and the form that makes another. */
export function Component() {
  const { t } = useTranslation("agents")
  const [search, setSearch] = useSearchParams()
  const go = useNavigate()
  const editor = useRole("editor")
  const page = Math.max(1, Number(search.get("page")) || 1)
  const query = useAgents(page)
  const fresh = search.has("new") && editor
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        editor &&
        !fresh && (
          <Button leftSection={<IconPlus size={16} />} onClick={() => setSearch({ new: "" })}>
            {t("new")}
          </Button>
        )
      }
    >
      {fresh && <AgentForm onClose={() => setSearch({})} onSaved={(a) => void go(`/agents/${encodeURIComponent(a.id ?? "")}`)} />}
      <Shown query={query} what={t("reading")}>
        {({ agents, page_size, total_count }) =>
          (agents ?? []).length === 0 && !fresh ? (
            <Empty title={t("empty.title")}>
              <Text maw={560}>{t("empty.text")}</Text>
              {editor ? (
                <Button leftSection={<IconPlus size={16} />} onClick={() => setSearch({ new: "" })}>
                  {t("empty.make")}
                </Button>
              ) : (
                <Text>{t("empty.mayNot")}</Text>
              )}
            </Empty>
          ) : (
            <>
              <ul className={classes.agents}>
              {(agents ?? []).map((a) => (
                <li key={a.id}>
                  <IconRobot size={20} stroke={1.6} aria-hidden />
                  <div className={classes.grow}>
                    <Anchor component={Link} to={`/agents/${encodeURIComponent(a.id ?? "")}`} fw={600}>
                      {visible(a.name || a.id || "")}
                    </Anchor>
                    {a.description && (
                      <Text fz="sm" lineClamp={2}>
                        {visible(a.description)}
                      </Text>
                    )}
                    <Text fz="sm" c="dimmed">
                      {t("model", { profile: a.llm_profile })} · {(a.mcp_servers ?? []).length > 0 ? t("tools", { list: (a.mcp_servers ?? []).join(", ") }) : t("noTools")} · <When at={a.updated_time} />
                    </Text>
                  </div>
                </li>
              ))}
              </ul>
              <Pages page={page} size={page_size} total={total_count} onPage={(n) => setSearch({ page: String(n) })} />
            </>
          )
        }
      </Shown>
    </Page>
  )
}
