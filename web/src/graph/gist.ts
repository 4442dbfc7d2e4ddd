import { isFields, listOf, type NodeDef, textOf } from "./definition"

// The setting that matters most, of whatever kind: what is asked, decided, called, run or waited for.
const telling = [
  "condition_expression", "switch_value", "propose", "user_prompt", "prompt", "question", "title", "system_prompt", "cron_expression", "url", "query", "statement",
  "items_path", "array_path", "loop_condition", "wait_condition", "until", "code", "script", "command", "template", "path", "webhook_path", "workflow_id", "agent_id", "server_id", "operation",
  "merge_strategy", "wait_type", "sort_field", "repository", "trigger_name", "collection_name", "profile_id", "mcp_server_url",
]

const seconds = ["duration_seconds", "for_seconds", "timeout_seconds"]

const firstLine = (text: string) => text.trim().split("\n", 1)[0]!.slice(0, 120)

/** gist is the one line about a node that tells it from others of its kind. */
export function gist(node: NodeDef): string {
  const c = node.configurations
  if (textOf(c.method) && textOf(c.url)) return firstLine(`${textOf(c.method)} ${textOf(c.url)}`)
  if (textOf(c.operation) && (textOf(c.path) || textOf(c.table))) return firstLine(`${textOf(c.operation)} ${textOf(c.path) || textOf(c.table)}`)
  for (const name of telling) {
    const said = firstLine(textOf(c[name]))
    if (said) return said
  }
  for (const name of seconds) if (textOf(c[name])) return `${textOf(c[name])} s`
  const properties = isFields(c.input_schema) && isFields(c.input_schema.properties) ? Object.keys(c.input_schema.properties) : []
  if (properties.length) return properties.join(", ")
  const conditions = listOf(c.conditions)
  if (isFields(conditions[0])) return firstLine(Object.values(conditions[0]).map(textOf).join(" "))
  return firstLine(node.description)
}
