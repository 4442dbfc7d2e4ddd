import { Anchor, Button, Group, List, Paper, Text } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { type Path, pathText } from "@/parts/data"
import { loopOf, type Run, type Step } from "./run"
import { type Origin, originsOf, type Source, sourceStep } from "./lineage"

type Props = {
  run: Run
  step: Step
  picked: Path
  lineage: readonly Origin[] | undefined
  onGo: (step: Step, source: Source) => void
  onClose: () => void
}

const shownAtMost = 40

/** OriginOf says where a value of an input came from, and leads there. */
export function OriginOf({ run, step, picked, lineage, onGo, onClose }: Props) {
  const { t } = useTranslation("executions")
  const origins = originsOf(lineage ?? [], picked)
  return (
    <Paper withBorder p="sm" role="region" aria-label={t("lineage.title", { path: pathText(picked) || t("lineage.all") })}>
      <Group justify="space-between" mb={4} wrap="nowrap">
        <Text fz="sm" fw={600}>
          {t("lineage.title", { path: pathText(picked) || t("lineage.all") })}
        </Text>
        <Button size="compact-xs" variant="subtle" onClick={onClose}>
          {t("lineage.close")}
        </Button>
      </Group>
      {origins.length === 0 && (
        <Text fz="sm" c="dimmed">
          {t("lineage.none")}
        </Text>
      )}
      <List size="sm" spacing={2} listStyleType="none">
        {origins.slice(0, shownAtMost).map((o) => (
          <List.Item key={o.path}>
            {(origins.length > 1 || o.path !== pathText(picked)) && (
              <Text span ff="monospace" fz="xs" mr={6}>
                {o.path || t("lineage.all")}
              </Text>
            )}
            {o.text && <Text span>{t("lineage.text")} </Text>}
            {o.sources.map((s, i) => (
              <SourceText key={i} source={s} from={sourceStep(run, step, s)} onGo={onGo} />
            ))}
            {o.unresolved && o.unresolved.length > 0 && <Text span>{t("lineage.unresolved", { what: o.unresolved.join(", ") })}</Text>}
          </List.Item>
        ))}
      </List>
      {origins.length > shownAtMost && (
        <Text fz="xs" c="dimmed">
          {t("lineage.more", { count: origins.length - shownAtMost })}
        </Text>
      )}
    </Paper>
  )
}

function SourceText({ source: s, from, onGo }: { source: Source; from: Step | undefined; onGo: Props["onGo"] }) {
  const { t } = useTranslation("executions")
  const name = [s.name, s.path].filter(Boolean).join(".")
  const loop = s.scope ? /^(.*)\[(\d+)\]$/.exec(s.scope) : null
  const said =
    s.layer === "connection" || s.layer === "step_results" || (s.layer === "runtime_metadata" && s.node_id)
      ? t("lineage.node", { path: s.path || t("lineage.all") })
      : s.layer === "scope" && loop
        ? t("lineage.scope", { name: name || "item", loop: loop[1], n: Number(loop[2]) + 1 })
        : t(`lineage.layer.${s.layer}`, { name: name || s.path || "" })
  const visit = from && loopOf(from)
  return (
    <Text span>
      {said}{" "}
      {from ? (
        <Anchor component="button" type="button" fz="sm" onClick={() => onGo(from, s)}>
          {from.name}
          {visit ? ` #${visit.iteration + 1}` : ""}
        </Anchor>
      ) : (
        s.node_id
      )}
      {s.converted && ` · ${t("lineage.converted")}`}
      {s.placeholder && (
        <Text span ff="monospace" fz="xs" c="dimmed">
          {" "}
          {s.placeholder}
        </Text>
      )}
      {s.edited_by && (
        <Text span>
          {" · "}
          {t("lineage.edited", { by: s.edited_by })}{" "}
          {s.edited_in && (
            <Anchor component={Link} to={`/executions/${encodeURIComponent(s.edited_in)}`} fz="sm">
              {t("lineage.editedIn")}
            </Anchor>
          )}
        </Text>
      )}
    </Text>
  )
}
