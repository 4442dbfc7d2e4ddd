import type { TFunction } from "i18next"
import type { Schemas } from "@/api/client"

/** meansText says by which means somebody proved who they are, and who else could have: whoever made the token or entered the address. */
export function meansText(m: Schemas["Means"], who: string | undefined, t: TFunction<"executions">): string {
  const said = [t(`executions:means.${m.kind ?? "unknown"}`, { address: m.address ?? m.known_by ?? "" }).trim()]
  if (m.token_made_by && m.token_made_by !== who) said.push(t("executions:history.tokenOf", { who: m.token_made_by }))
  if (m.address_set_by && m.address_set_by !== who) said.push(t("executions:means.enteredBy", { who: m.address_set_by }))
  return said.join(" · ")
}
