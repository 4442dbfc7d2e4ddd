import type { Tandem } from "./tandem"

/** asking is a workflow that asks one question and then writes down what became of it. */
export function asking(id: string, kind: string, configurations: Record<string, unknown>) {
  return {
    metadata: { id, name: id, description: "It asks, then goes on.", version: "1.0" },
    triggers: ["start"],
    nodes: [
      { id: "start", name: "start", type: "TRIGGER", subtype: "MANUAL", configurations: {} },
      { id: "ask", name: "ask", type: "HUMAN_IN_THE_LOOP", subtype: kind, configurations },
      { id: "yes", name: "carry_it_out", type: "ACTION", subtype: "DATA_FORMATTING", configurations: { format_type: "template", template: "done" } },
      { id: "no", name: "tell_them", type: "ACTION", subtype: "DATA_FORMATTING", configurations: { format_type: "template", template: "not done" } },
    ],
    connections: [
      { id: "c1", from_node: "start", to_node: "ask" },
      { id: "c2", from_node: "ask", to_node: "yes", output_key: "confirmed" },
      { id: "c3", from_node: "ask", to_node: "no", output_key: "rejected" },
    ],
  }
}

type Found = { interactions: { id: string; execution_id: string; status: string }[] }

/** ask starts such a workflow and waits until its question is there. It returns the ids of the question and of the run. */
export async function ask(tandem: Tandem, id: string, kind: string, configurations: Record<string, unknown>, input: Record<string, unknown> = {}, token?: string) {
  await tandem.api("POST", "/workflows", asking(id, kind, configurations))
  const { execution_id } = await tandem.api<{ execution_id: string }>("POST", `/workflows/${id}/execute`, { inputs: input }, token)
  return { question: await questionOf(tandem, execution_id), run: execution_id }
}

/** questionOf waits until a run asks something, and returns the id of the question. */
export async function questionOf(tandem: Tandem, run: string, purpose = ""): Promise<string> {
  for (const until = Date.now() + 120_000; Date.now() < until; ) {
    const { interactions } = await tandem.api<Found>("GET", `/interactions?execution_id=${run}&status=pending${purpose && "&purpose=" + purpose}`)
    if (interactions.length > 0) return interactions[0]!.id
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error(`${run} has asked nothing`)
}

/** ended waits until a run is over and returns it. */
export async function ended(tandem: Tandem, run: string) {
  for (const until = Date.now() + 120_000; Date.now() < until; ) {
    const { execution } = await tandem.api<{ execution: { status: string; node_executions: Record<string, { status: string; output_data?: unknown }>; outputs?: unknown } }>("GET", `/executions/${run}`)
    if (["SUCCESS", "ERROR", "CANCELED", "TIMEOUT"].includes(execution.status)) return execution
    await new Promise((done) => setTimeout(done, 50))
  }
  throw new Error(`${run} has not ended`)
}

/** answerOf is what was recorded as the answer of a question. */
export async function answerOf(tandem: Tandem, question: string) {
  return (await tandem.api<{ response_data: Record<string, unknown>; status: string }>("GET", `/interactions/${question}`)).response_data
}
