import { createServer, type ServerResponse } from "node:http"
import type { Tandem } from "./tandem"

// Workflows that the tests of executions run.

const approval = `
metadata: {name: buying, description: Somebody agrees before something is bought.}
nodes:
  - {id: wanted, type: TRIGGER, subtype: MANUAL, description: What is wanted.}
  - id: price
    type: CALL
    subtype: EMPTY
    description: Adds what shipping costs.
    configurations: {pass_through: true}
    input_params: {item: "{{wanted.outputs.item}}", amount: "{{wanted.outputs.amount}}", shipping: 12}
  - id: ask
    type: HUMAN_IN_THE_LOOP
    subtype: IN_APP_APPROVAL
    description: Somebody agrees.
    configurations: {title: "Buy a {{wanted.outputs.item}}?", description: "It costs {{wanted.outputs.amount}}."}
  - {id: order, type: CALL, subtype: EMPTY, description: Orders it., configurations: {pass_through: true}}
connections:
  - {from_node: wanted, to_node: price}
  - {from_node: price, to_node: ask}
  - {from_node: ask, to_node: order, output_key: confirmed}
`

const slow = `
metadata: {name: slow, description: Many short waits one after the other.}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: Starts it.}
  - {id: each, type: FLOW, subtype: FOR_EACH, description: One after the other., configurations: {items_path: items, iteration_variable: n, max_concurrency: 1}}
  - {id: rest, type: FLOW, subtype: DELAY, description: Waits a moment., configurations: {duration_seconds: 0.15}}
  - {id: count, type: ACTION, subtype: RUN_CODE, description: Says where it is., configurations: {language: javascript, code: "function main(input) { console.log('line of ' + input.n); return {n: input.n} }"}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: rest, output_key: iteration}
  - {from_node: rest, to_node: count}
  - {from_node: count, to_node: each}
`

const many = `
metadata: {name: many, description: Ten thousand steps.}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: Starts it.}
  - {id: each, type: FLOW, subtype: FOR_EACH, description: Goes over all., configurations: {items_path: items, iteration_variable: n, max_concurrency: 50}}
  - {id: one, type: CALL, subtype: EMPTY, description: First., configurations: {pass_through: true}}
  - {id: two, type: CALL, subtype: EMPTY, description: Second., configurations: {pass_through: true}}
  - {id: three, type: CALL, subtype: EMPTY, description: Third., configurations: {pass_through: true}}
  - {id: four, type: CALL, subtype: EMPTY, description: Fourth., configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: one, output_key: iteration}
  - {from_node: one, to_node: two}
  - {from_node: two, to_node: three}
  - {from_node: three, to_node: four}
  - {from_node: four, to_node: each}
`

const large = `
metadata: {name: large, description: An output of five megabytes.}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: Starts it.}
  - id: make
    type: ACTION
    subtype: RUN_CODE
    description: Makes many rows.
    configurations:
      language: javascript
      memory_mb: 512
      code: |
        function main(input) {
          const rows = []
          for (let i = 0; i < 48000; i++) rows.push({id: i, name: "row number " + i, tags: ["a", "b", i % 7], note: "x".repeat(40)})
          return {rows: rows, text: "y".repeat(200000)}
        }
connections:
  - {from_node: start, to_node: make}
`

/** What a page must show as it is and never follow: markup, scripts, links, and signs that turn the direction of writing. */
export const hostile = {
  html: `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`,
  link: "[click](javascript:document.title='owned') https://example.com",
  bidi: "invoice \u202e gpj.exe",
  "<b>name</b>": "1",
  "\u202ename": "2",
}

const evil = `
metadata: {name: "<img src=x onerror=alert(1)> \u202eworkflow", description: Hostile texts.}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: Starts it.}
  - id: evil
    name: "<script>document.title='owned'</script>"
    type: ACTION
    subtype: RUN_CODE
    description: Prints and fails hostile texts.
    configurations:
      language: javascript
      code: |
        function main(input) {
          console.log(input.html); console.log(input.link); console.log(input.bidi)
          return input
        }
  - id: fails
    type: ACTION
    subtype: RUN_CODE
    description: Fails.
    configurations: {language: javascript, code: "function main(input) { throw new Error('<a href=javascript:alert(1)>broken</a> \u202e' + input.result.html) }"}
connections:
  - {from_node: start, to_node: evil}
  - {from_node: evil, to_node: fails}
`

const writer = `
metadata: {name: writer, description: A model writes.}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: Starts it.}
  - {id: writes, type: AI_AGENT, subtype: LLM, description: Writes., configurations: {profile_id: slow_model, stream: true, user_prompt: Write.}}
connections:
  - {from_node: start, to_node: writes}
`

const outer = `
metadata: {name: outer, description: Starts another workflow.}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: Starts it.}
  - {id: below, type: FLOW, subtype: SUB_WORKFLOW, description: Buys., configurations: {workflow_id: buying, revision: latest}}
connections:
  - {from_node: start, to_node: below}
`

const short = `
metadata: {name: short, description: One step.}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: Starts it.}
connections: []
`

export const definitions = { outer, short, buying: approval, slow, many, large, evil, writer }

/** addWorkflows keeps the workflows of the tests on a server. */
export async function addWorkflows(tandem: Tandem, ...names: (keyof typeof definitions)[]) {
  for (const name of names) await tandem.api("POST", `/workflows?id=${name}`, definitions[name])
}

/** run starts a workflow and returns the id of the execution. */
export async function run(tandem: Tandem, workflow: string, inputs: unknown = {}, wait = 0): Promise<string> {
  const { execution_id } = await tandem.api<{ execution_id: string }>("POST", `/workflows/${workflow}/execute`, { inputs, ...(wait ? { wait_seconds: wait } : {}) })
  return execution_id
}

/** A model that speaks OpenAI's protocol and says the next piece when the test says so. */
export class SlowModel {
  port = 0
  private answer?: ServerResponse
  private asked!: () => void
  readonly waits = new Promise<void>((done) => (this.asked = done))
  private readonly server = createServer((req, res) => {
    req.resume()
    res.writeHead(200, { "Content-Type": "text/event-stream" })
    this.answer = res
    this.asked()
  })

  async start() {
    await new Promise<void>((done) => this.server.listen(0, "127.0.0.1", done))
    this.port = (this.server.address() as { port: number }).port
  }

  say(content: string) {
    this.answer!.write(`data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", model: "slow", choices: [{ index: 0, delta: { role: "assistant", content } }] })}\n\n`)
  }

  stop() {
    this.answer!.write(`data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", model: "slow", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n`)
    this.answer!.end("data: [DONE]\n\n")
  }

  end() {
    this.server.closeAllConnections()
    this.server.close()
  }
}
