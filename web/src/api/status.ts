/** ended says of the state of an execution that nothing happens any more. */
export const ended = (status: string | undefined) => status === "SUCCESS" || status === "ERROR" || status === "CANCELED" || status === "TIMEOUT"
