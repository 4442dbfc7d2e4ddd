import type { TFunction } from "i18next"

/** personText says who is meant by user:ID, role:ROLE, mail:ADDRESS, CHANNEL:ADDRESS or anyone. */
export function personText(who: string, t: TFunction<"executions">): string {
  const at = who.indexOf(":")
  if (at < 0) return who === "anyone" ? t("executions:who.anyone") : who
  const [sort, name] = [who.slice(0, at), who.slice(at + 1)]
  if (sort === "user" || sort === "mail") return name
  if (sort === "role") return t("executions:who.role", { role: name })
  return `${name} (${sort})`
}

/** peopleText says who several people are, in one line. */
export const peopleText = (list: readonly string[] | null | undefined, t: TFunction<"executions">) => (list ?? []).map((w) => personText(w, t)).join(", ")
