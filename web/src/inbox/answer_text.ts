import type { Question } from "@/parts/question/types"

export type Data = { action?: string; selected_values?: string[]; confirm?: boolean; approved?: boolean; accept?: boolean; outcome?: string; raise_by?: number; notes?: string; [other: string]: unknown }

/** answerText is what an answer says in a word or two: the label of the button that was pressed; empty where it is a form. */
export function answerText(q: Question, data = (q.response_data ?? {}) as Data): string {
  const decision = (q.form?.entries ?? []).find((e) => e.decides)
  if (!decision?.choices || !decision.name || typeof data !== "object") return ""
  const value = data[decision.name]
  const chosen = Array.isArray(value) ? value : [value]
  return decision.choices
    .filter((c) => chosen.some((v) => v !== undefined && JSON.stringify(v) === JSON.stringify(c.raw)))
    .map((c) => c.label)
    .join(", ")
}
