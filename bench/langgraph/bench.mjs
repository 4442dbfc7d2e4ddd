// One step of the comparison on LangGraph JS: node bench.mjs STEP DIRECTORY. It is called by the program in the directory
// above and prints one line of JSON. Every checkpoint is written before the next step (durability "sync"), and every
// transaction is synced (synchronous=FULL).
import path from "node:path";
import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import Database from "better-sqlite3";

const step = JSON.parse(process.argv[2]);
const db = new Database(path.join(process.argv[3], "langgraph.db"));
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
const checkpointer = new SqliteSaver(db);

const State = Annotation.Root({ value: Annotation({ reducer: (_, next) => next, default: () => "{}" }) });
const nothing = () => ({ value: "{}" });

function chain(nodes) {
  const graph = new StateGraph(State);
  for (let i = 0; i < nodes; i++) {
    graph.addNode(`n${i}`, nothing);
    graph.addEdge(i === 0 ? START : `n${i - 1}`, `n${i}`);
  }
  graph.addEdge(`n${nodes - 1}`, END);
  return graph.compile({ checkpointer });
}

function fanOut(width) {
  const graph = new StateGraph(State).addNode("first", nothing).addNode("last", nothing).addEdge(START, "first");
  const names = Array.from({ length: width }, (_, i) => `n${i}`);
  for (const name of names) {
    graph.addNode(name, nothing);
    graph.addEdge("first", name);
  }
  graph.addEdge(names, "last");
  graph.addEdge("last", END);
  return graph.compile({ checkpointer });
}

function wait() {
  const graph = new StateGraph(State).addNode("wait", () => ({ value: interrupt("go") }));
  return graph.addEdge(START, "wait").addEdge("wait", END).compile({ checkpointer });
}

async function execute(graph, thread) {
  const config = { configurable: { thread_id: thread }, recursionLimit: step.nodes + 10, durability: "sync" };
  return graph.invoke({ value: "{}" }, config);
}

const resident = () => {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().rss;
};

const warm = chain(step.nodes);
await execute(warm, "warm");

const graph = { chain: () => warm, fan_out: () => fanOut(step.width), park: wait }[step.workload]();
const before = resident();
const start = process.hrtime.bigint();
await Promise.all(
  Array.from({ length: step.runs }, async (_, i) => {
    for (let k = 0; k < step.repeat; k++) {
      const out = await execute(graph, `run_${i}_${k}`);
      if (step.workload === "park" && out.__interrupt__ === undefined) throw new Error("a run did not park");
    }
  }),
);
const seconds = Number(process.hrtime.bigint() - start) / 1e9;
const memory = step.workload === "park" ? resident() - before : 0;

// What is said to be durable must be there: a checkpoint per step of every run.
const rows = db.prepare("SELECT count(*) AS n FROM checkpoints WHERE thread_id <> 'warm'").get().n;
const least = { chain: step.nodes, fan_out: 3, park: 1 }[step.workload] * step.runs * step.repeat;
if (rows < least) throw new Error(`${rows} checkpoints on disk, expected ${least} at least`);
const synchronous = db.pragma("synchronous", { simple: true });
db.close();
console.log(JSON.stringify({ seconds, synchronous, memory }));
