import { ended } from "@/api/status"
import type { Step } from "./run"

export type Act = "pause" | "resume" | "cancel" | "retry_node" | "skip_node" | "fork" | "delete" | "freeze"

type About = { status: string; task: boolean; openQuestion: boolean }
type May = { operate: boolean; edit: boolean; admin: boolean }

/** actsOn are the actions on the whole execution that its state and the user's roles allow. The server decides in the end. */
export function actsOn({ status, task, openQuestion }: About, may: May): Act[] {
  const over = ended(status)
  const acts: Act[] = []
  if (may.operate && !over) {
    if (status === "PAUSED") acts.push("resume")
    else acts.push("pause")
    acts.push("cancel")
  }
  if (may.edit && task && status === "SUCCESS") acts.push("freeze")
  if (may.admin && over && !openQuestion) acts.push("delete")
  return acts
}

/** actsOnStep are the actions on one step: what failed is retried or left out, what has begun is where a fork can begin. */
export function actsOnStep(status: string, step: Step, may: May): Act[] {
  if (!may.operate) return []
  const acts: Act[] = []
  const revivable = status !== "SUCCESS" && status !== "CANCELED"
  const stuck = step.state === "ERROR" || step.state === "UNKNOWN" || (step.state === "CANCELED" && ended(status))
  if (revivable && stuck) acts.push("retry_node")
  const open = step.state === "RUNNING" || step.state === "WAITING" || step.state === "WAITING_FOR_HUMAN" || step.state === "PENDING"
  if (revivable && step.inner === undefined && (stuck || (open && !ended(status)))) acts.push("skip_node")
  if (step.inner === undefined && step.state !== "SKIPPED" && step.state !== "PENDING" && !step.kind.startsWith("TRIGGER")) acts.push("fork")
  return acts
}
