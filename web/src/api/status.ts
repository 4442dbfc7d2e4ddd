import type { Schemas } from "./client"

/** Status is the state of an execution. */
export type Status = Schemas["Execution"]["status"]

const over: Record<Status, boolean> = { NEW: false, PENDING: false, RUNNING: false, PAUSED: false, WAITING: false, WAITING_FOR_HUMAN: false, SUCCESS: true, ERROR: true, CANCELED: true, TIMEOUT: true }

/** ended says of the state of an execution that nothing happens any more. */
export const ended = (status: string | undefined) => status !== undefined && over[status as Status] === true
