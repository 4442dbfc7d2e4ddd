import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useEffect, useState } from "react"
import type { Schemas } from "@/api/client"

/** Evaluate asks the server what an expression or a text with placeholders is worth. Key names the data that is read: answers of another key are of no use. */
export type Evaluate = { key: string; ask: (what: { expression: string } | { template: string }, signal: AbortSignal) => Promise<Schemas["EvaluateResponse"]> }

/** Worth is what a text is worth. Old says that the text has changed since. */
export type Worth = { answer: Schemas["EvaluateResponse"]; old: boolean }

// How long somebody pauses who wants to see what they have typed, in milliseconds.
const pause = 250
const opened = /(?<!\\)(?:\{\{|\$\{)/
const literal = /^\s*(?:true|false|null|-?\d+(?:\.\d+)?)?\s*$/

/** isAsked says whether a text has a value of its own to be told. */
export const isAsked = (text: string, expression: boolean) => text.length <= 20_000 && (expression ? !literal.test(text) : opened.test(text))

/** useWorth is what a text is worth, asked for when one pauses while typing; a question whose text has changed since is called off. */
export function useWorth(text: string, expression: boolean, evaluate: Evaluate | undefined): Worth | undefined {
  const [asked, setAsked] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), pause)
    return () => clearTimeout(timer)
  }, [text])
  const wanted = evaluate !== undefined && isAsked(text, expression)
  const { data, isPlaceholderData } = useQuery({
    queryKey: ["worth", evaluate?.key, expression, asked],
    enabled: wanted && isAsked(asked, expression),
    queryFn: ({ signal }) => evaluate!.ask(expression ? { expression: asked } : { template: asked }, signal),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    gcTime: 60_000,
    retry: false,
  })
  return wanted && data ? { answer: data, old: isPlaceholderData || asked !== text } : undefined
}
