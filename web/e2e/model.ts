import { createServer, type ServerResponse } from "node:http"
import { afterAll } from "vitest"
import type { Tandem } from "./tandem"

type Asked = { stream?: boolean; response_format?: { json_schema?: { name?: string } } }

const decisions: Record<string, unknown> = {
  flow_name: { flow_name: "A letter" },
  flow_risk: { risk: "low", reason: "It only writes." },
  plan: { tool_id: "FINAL", description: "Nothing has to be looked up." },
}

/**
 * A model for the tests that speaks the protocol of OpenAI. Its decisions are made at once; its answer is written piece by piece, as the test says.
 */
export class Model {
  private open: ServerResponse[] = []
  private waiting: (() => void)[] = []
  private server = createServer((request, response) => {
    let body = ""
    request.on("data", (d: Buffer) => (body += d))
    request.on("end", () => this.answer(JSON.parse(body) as Asked, response))
  })

  private answer(asked: Asked, response: ServerResponse) {
    const name = asked.response_format?.json_schema?.name
    const content = name ? JSON.stringify(decisions[name] ?? {}) : undefined
    if (!asked.stream) {
      response.setHeader("Content-Type", "application/json")
      response.end(JSON.stringify({ id: "1", object: "chat.completion", choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: content ?? "done" } }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }))
      return
    }
    response.setHeader("Content-Type", "text/event-stream")
    this.piece(response, { role: "assistant", content: content ?? "" })
    if (content !== undefined) return this.finish(response)
    this.open.push(response)
    this.waiting.splice(0).forEach((go) => go())
  }

  private piece(response: ServerResponse, delta: object, finish_reason: string | null = null) {
    response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`)
  }

  private finish(response: ServerResponse) {
    this.piece(response, {}, "stop")
    response.end("data: [DONE]\n\n")
  }

  /** asked waits until the model is to write an answer. */
  async asked() {
    while (this.open.length === 0) await new Promise<void>((go) => this.waiting.push(go))
  }

  /** write adds a piece to the answer that is being written. */
  write(text: string) {
    this.piece(this.open[0]!, { content: text })
  }

  /** end ends the answer. */
  end() {
    this.finish(this.open.shift()!)
  }

  /** start lets the model listen, and makes a profile "slow" of it. */
  async start(tandem: Tandem) {
    await new Promise<void>((done) => this.server.listen(0, "127.0.0.1", done))
    const { port } = this.server.address() as { port: number }
    await tandem.api("POST", "/credentials", { name: "slow-key", type: "openai", data: { api_key: "sk-tests-only" } })
    await tandem.api("POST", "/llm/profiles", { id: "slow", provider: "openai", model: "tests", base_url: `http://127.0.0.1:${port}/v1`, credential_id: "slow-key" })
  }

  stop() {
    this.open.forEach((r) => r.destroy())
    this.server.closeAllConnections()
    this.server.close()
  }
}

/** slowModel is a model for a test file; it ends with it. */
export function slowModel(): Model {
  const model = new Model()
  afterAll(() => model.stop())
  return model
}
