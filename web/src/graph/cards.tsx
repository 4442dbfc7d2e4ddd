import { Handle, type NodeProps, Position } from "@xyflow/react"
import { IconAlertTriangle } from "@tabler/icons-react"
import { memo } from "react"
import { useTranslation } from "react-i18next"
import { stateColor, StateMark } from "@/parts/state"
import { familyColor, iconOf } from "./family"
import { attach, back, type CardData, type CardNode, type FrameNode, hang, input, type NoteNode, portId } from "./flow"
import { MarkBadge, markClass } from "./mark"
import { frame, frameExit, plain, portTop } from "./sizes"
import classes from "./graph.module.css"

/** Card is one node: its icon, its name, what it is, and the one setting that matters; its output keys are ports on the right edge. */
export const Card = memo(function Card({ data, selected }: NodeProps<CardNode>) {
  const { ports } = data
  const look = [classes.card, selected && classes.chosen, data.hangs && classes.small, data.node.configurations.enabled === false && classes.off, data.state?.status === "SKIPPED" && classes.skipped, markClass(data.mark)]
  return (
    <div className={look.filter(Boolean).join(" ")} style={colours(data)}>
      {data.takesInput && <Handle type="target" id={input} position={Position.Left} className={classes.handle} style={{ top: data.hangs ? "50%" : 33 }} isConnectable={data.editing} />}
      {(data.hangs || (data.attachable && data.editing)) && <Handle type="target" id={hang} position={Position.Top} className={classes.handle} isConnectable={data.editing} />}
      <Head data={data} />
      {ports.map((key, i) => (
        <Port key={key} name={key} top={portTop(i, ports)} labelled={!plain(ports)} editing={data.editing} />
      ))}
      {data.agent && <Handle type="source" id={attach} position={Position.Bottom} className={`${classes.handle} ${classes.diamond}`} isConnectable={data.editing} />}
    </div>
  )
})

/** Frame is a loop, a split or a timeout: a head like that of a card, around the body that it runs. */
export const Frame = memo(function Frame({ data, selected }: NodeProps<FrameNode>) {
  const { t } = useTranslation("graph")
  const exits = data.ports.filter((k) => k !== data.entry)
  return (
    <div className={[classes.frame, selected && classes.chosen, markClass(data.mark)].filter(Boolean).join(" ")} style={colours(data)}>
      <div className={`${classes.frameHead} frame-head`}>
        <Handle type="target" id={input} position={Position.Left} className={classes.handle} style={{ top: frame.header / 2 }} isConnectable={data.editing} />
        <Head data={data} />
        {exits.map((key, i) => (
          <Port key={key} name={key} top={frameExit(i, exits.length)} labelled editing={data.editing} />
        ))}
      </div>
      <div className={classes.frameBody}>
        <Handle type="source" id={portId(data.entry)} position={Position.Right} className={`${classes.handle} ${classes.inner}`} style={{ left: 9 }} isConnectable={data.editing} />
        <span className={classes.entry}>{data.entry}</span>
        {data.empty && data.editing && <span className={classes.emptyBody}>{t("emptyBody")}</span>}
        <Handle type="target" id={back} position={Position.Left} className={`${classes.handle} ${classes.inner}`} style={{ left: "auto", right: 9 }} isConnectable={data.editing} />
      </div>
    </div>
  )
})

/** Note is a comment on the canvas. */
export const Note = memo(function Note({ data, selected }: NodeProps<NoteNode>) {
  return <div className={[classes.note, selected && classes.chosen].filter(Boolean).join(" ")}>{data.text}</div>
})

function colours({ node, state }: CardData) {
  return { "--family": familyColor(node.kind), ...(state ? { "--state": stateColor(state.status) } : {}) } as React.CSSProperties
}

function Head({ data }: { data: CardData }) {
  const Icon = iconOf(data.node.kind)
  const worst = data.problems?.some((p) => p.severity === "error") ? classes.error : classes.warning
  return (
    <div className={classes.head}>
      <span className={classes.icon}>
        <Icon size={data.hangs ? 16 : 20} stroke={1.7} aria-hidden />
      </span>
      <span className={classes.texts}>
        <span className={classes.name}>{data.node.name}</span>
        <span className={classes.kind}>{data.title}</span>
        {!data.hangs && <span className={classes.gist}>{data.gist}</span>}
      </span>
      {data.mark && <MarkBadge mark={data.mark} />}
      <span className={classes.marks}>
        {data.state && <StateMark status={data.state.status} word={false} size={data.hangs ? 14 : 18} />}
        {data.state?.note && <span className={classes.note2}>{data.state.note}</span>}
        {!!data.problems?.length && (
          <span className={worst} title={data.problems.map((p) => p.message).join("\n")}>
            <IconAlertTriangle size={16} stroke={2} aria-hidden />
          </span>
        )}
      </span>
    </div>
  )
}

function Port({ name, top, labelled, editing }: { name: string; top: number; labelled: boolean; editing: boolean }) {
  return (
    <>
      {labelled && (
        <span className={classes.port} style={{ top }}>
          {name}
        </span>
      )}
      <Handle type="source" id={portId(name)} position={Position.Right} className={classes.handle} style={{ top }} isConnectable={editing} />
    </>
  )
}
