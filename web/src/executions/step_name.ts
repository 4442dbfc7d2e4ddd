import type { TFunction } from "i18next"
import type { Step } from "./run"

/** stepName says what a step is: the name of its node, or what was done inside it. */
export function stepName(s: Pick<Step, "inner" | "name" | "node" | "tool">, t: TFunction<"executions">): string {
  if (s.inner === undefined) return s.name
  if (s.tool) return t("executions:inner.call", { tool: s.tool })
  const m = /^([a-z]+(?:_[a-z]+)*)_(\d+)/.exec(s.inner)
  return m ? t(`executions:inner.sort.${m[1]!}`, { n: m[2], defaultValue: s.inner }) : s.inner
}
