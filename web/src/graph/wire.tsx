import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from "@xyflow/react"
import { memo } from "react"
import type { FlowEdge } from "./flow"
import { MarkBadge, markClass } from "./mark"
import classes from "./graph.module.css"

/** Wire is a connection. One that changes what it carries has a mark. */
export const Wire = memo(function Wire({ id, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, data, selected }: EdgeProps<FlowEdge>) {
  const [path, x, y] = getBezierPath({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition })
  const look = [classes.wire, selected && classes.wireChosen, data?.muted && classes.wireMuted, data?.dashed && classes.wireDashed, markClass(data?.mark)]
  return (
    <>
      <BaseEdge id={id} path={path} className={look.filter(Boolean).join(" ")} interactionWidth={16} />
      {data?.mark && (
        <EdgeLabelRenderer>
          <span className={classes.wireMark} style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y - 18}px)` }}>
            <MarkBadge mark={data.mark} inline />
          </span>
        </EdgeLabelRenderer>
      )}
      {data?.conversion && (
        <EdgeLabelRenderer>
          <span className={classes.conversion} style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }} title={data.conversion}>
            ƒ
          </span>
        </EdgeLabelRenderer>
      )}
    </>
  )
})
