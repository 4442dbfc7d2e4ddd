import "@xyflow/react/dist/base.css"
import { ActionIcon, Tooltip } from "@mantine/core"
import { IconFocusCentered, IconZoomIn, IconZoomOut } from "@tabler/icons-react"
import { Background, BackgroundVariant, type Connection, type EdgeChange, type FinalConnectionState, getViewportForBounds, MiniMap, type NodeChange, Panel, ReactFlow, ReactFlowProvider, useReactFlow, useStore, useStoreApi } from "@xyflow/react"
import { type KeyboardEvent, type MouseEvent as Click, type ReactNode, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { Loading } from "@/parts/states"
import { language } from "@/words"
import { Card, Frame, Note } from "./cards"
import type { Definition, Point } from "./definition"
import { familyColor } from "./family"
import { attach, type CardData, drawNodes, drawWires, type FlowEdge, type FlowNode, hang, input, keyOfPort, type Marks, type NodeProblem, type NodeState, type Ports, portsOf } from "./flow"
import type { Kinds } from "./keys"
import { addTo, type Box, hangBelow, large, type Layout, layOut, placesOf, structureOf, surround } from "./layout"
import { Wire } from "./wire"
import classes from "./graph.module.css"

/** Chosen is what is selected: nodes by id, and connections by id. */
export type Chosen = { nodes: ReadonlySet<string>; wires: ReadonlySet<string> }

/** Where something is to be added: at a place of the canvas, and behind an output or before an input if a line was drawn from there. */
export type Adding = { at: Point; client: Point; from?: { node: string; key: string }; to?: string; agent?: string }

/** Editing is what a canvas tells that can be changed. Without it the canvas only shows. */
export type Editing = {
  onMove: (to: Map<string, Point>) => void
  onConnect: (from: string, key: string, to: string) => void
  onAttach: (agent: string, node: string) => void
  onAdd: (adding: Adding) => void
}

export type GraphProps = {
  definition: Definition
  kinds: Kinds
  /** What the canvas is called for those who do not see it. */
  label: string
  states?: Readonly<Record<string, NodeState>>
  problems?: ReadonlyMap<string, NodeProblem[]>
  /** Marks what differs between two revisions. */
  marks?: Marks
  chosen?: Chosen
  onChoose?: (chosen: Chosen) => void
  /** A node was clicked, or Enter was pressed on it. */
  onOpen?: (id: string) => void
  /** A connection was clicked, or Enter was pressed on it. */
  onOpenWire?: (id: string) => void
  /** Shows this node in the middle, whenever the object is a new one. */
  show?: { id: string }
  editing?: Editing
  /** Lets the page ask where the middle of what is seen is. */
  handle?: { current: GraphHandle | null }
  children?: ReactNode
}

export type GraphHandle = { middle: () => { at: Point; client: Point }; fit: () => void }

const nodeTypes = { card: Card, frame: Frame, note: Note }
const edgeTypes = { wire: Wire }
const nothing: Chosen = { nodes: new Set(), wires: new Set() }

export default function Canvas(props: GraphProps) {
  // The size of cards depends on what their kinds put out: before the kinds are there, nothing is drawn that would jump.
  if (props.kinds.size === 0) return <Loading />
  return (
    <ReactFlowProvider>
      <Inner {...props} />
    </ReactFlowProvider>
  )
}

function Inner({ definition, kinds, label, states, problems, marks, chosen: given, onChoose, onOpen, onOpenWire, show, editing, handle, children }: GraphProps) {
  const { t } = useTranslation("graph")
  const flow = useReactFlow<FlowNode, FlowEdge>()
  const [own, setOwn] = useState(nothing)
  const fit = useFit()
  const chosen = given ?? own
  const choose = onChoose ?? setOwn
  const [moved, setMoved] = useState<ReadonlyMap<string, Point>>()
  const edits = !!editing

  const ports = useMemo(() => portsOf(definition, kinds, edits), [definition, kinds, edits])
  const still = useLayout(definition, ports, edits)
  // While something is dragged, frames follow their bodies and what is attached follows its agent.
  const layout = useMemo(() => {
    if (!moved) return still
    const boxes = new Map<string, Box>([...still.boxes].map(([id, b]) => [id, { ...b, ...moved.get(id) }]))
    const held = { ...definition, nodes: definition.nodes.map((n) => (moved.has(n.id) ? { ...n, position: moved.get(n.id)! } : n)) }
    hangBelow(held, boxes, still.attachedTo)
    surround(definition, boxes, still.parents, new Set(definition.nodes.filter((n) => ports.get(n.id)?.entry).map((n) => n.id)))
    return { ...still, boxes }
  }, [still, moved, definition, ports])
  const shown = useMemo(() => (moved ? { ...definition, notes: definition.notes.map((n) => ({ ...n, position: moved.get(`note:${n.id}`) ?? n.position })) } : definition), [definition, moved])

  const tongue = language()
  const labelOf = useCallback((d: CardData) => [d.node.name, d.title, d.state ? t(`shell:state.${d.state.status}`) : "", d.mark ? t(`mark.${d.mark}`) : "", d.problems?.length ? t("problems", { count: d.problems.length }) : ""].filter(Boolean).join(", "), [t])
  const before = useRef(new Map<string, FlowNode>())
  const drawn = useRef<FlowNode[]>([])
  const nodes = useMemo(() => {
    const list = drawNodes({ definition: shown, kinds, layout, states, problems, marks, editing: edits, chosen: chosen.nodes, language: tongue, labelOf }, ports, before.current)
    drawn.current = sameList(drawn.current, list)
    before.current = new Map(list.map((n) => [n.id, n]))
    return drawn.current
  }, [shown, kinds, layout, states, problems, marks, edits, chosen.nodes, tongue, labelOf, ports])
  const { parents, attachedTo } = layout
  const drawnWires = useRef<FlowEdge[]>([])
  const wiresBefore = useRef(new Map<string, FlowEdge>())
  const edges = useMemo(() => {
    const list = drawWires({ definition, layout: { parents, attachedTo }, states, marks, editing: edits }, ports, chosen.wires, wiresBefore.current)
    drawnWires.current = sameList(drawnWires.current, list)
    wiresBefore.current = new Map(list.map((e) => [e.id, e]))
    return drawnWires.current
  }, [definition, parents, attachedTo, states, marks, edits, ports, chosen.wires])

  useEffect(() => setMoved(undefined), [definition])
  // What is to be shown is brought into view, also when the canvas becomes narrower because something opens beside it.
  const width = useStore((s) => s.width)
  const height = useStore((s) => s.height)
  const seen = useRef(false)
  useEffect(() => {
    const node = show && before.current.get(show.id)
    if (!width || !height) return
    if (!seen.current) {
      // Whoever comes sees all of it, or the node that the address names.
      seen.current = true
      fit(node ? [node] : [...before.current.values()], 0)
      return
    }
    if (!node) return
    const { x, y, zoom } = flow.getViewport()
    const [left, top] = [node.position.x * zoom + x, node.position.y * zoom + y]
    const [w, h] = [(node.width ?? 0) * zoom, Math.min(node.height ?? 0, 200) * zoom]
    if (left >= 0 && top >= 0 && left + w <= width && top + h <= height) return
    void flow.setCenter(node.position.x + (node.width ?? 0) / 2, node.position.y + Math.min(node.height ?? 0, 200) / 2, { zoom: Math.max(zoom, 0.6), duration: 150 })
  }, [show, flow, width, height, fit])

  const root = useRef<HTMLDivElement>(null)
  useImperativeHandle(
    handle,
    () => ({
      middle: () => {
        const box = root.current!.getBoundingClientRect()
        const client = { x: box.left + box.width / 2, y: box.top + box.height / 3 }
        return { at: flow.screenToFlowPosition(client), client }
      },
      fit: () => fit([...before.current.values()]),
    }),
    [flow, fit],
  )

  const onNodesChange = useSteady((changes: NodeChange<FlowNode>[]) => {
    const selected = pick(chosen.nodes, changes)
    if (selected) choose({ nodes: selected, wires: chosen.wires })
    const to = new Map(moved)
    let ended = false
    for (const c of changes) {
      if (c.type !== "position" || !c.position) {
        if (c.type === "position" && c.dragging === false && moved) ended = true
        continue
      }
      carry(c.id, c.position, to)
      if (c.dragging === false) ended = true
    }
    if (to.size === 0) return
    setMoved(to)
    if (ended) editing?.onMove(new Map([...to].map(([id, p]) => [id, { x: Math.round(p.x), y: Math.round(p.y) }])))
  })
  // A frame takes its body along; nothing else has a place of its own that depends on another.
  const carry = (id: string, to: Point, into: Map<string, Point>) => {
    const box = layout.boxes.get(id)
    const inside = box && [...layout.parents].filter(([m]) => isWithin(m, id, layout.parents)).map(([m]) => m)
    if (!box || !inside?.length) {
      into.set(id, to)
      return
    }
    for (const m of inside) {
      const b = layout.boxes.get(m)
      if (!b || [...layout.parents.values()].includes(m)) continue
      if (attachedTo.has(m) && !into.has(m) && !definition.nodes.find((n) => n.id === m)?.position) continue
      into.set(m, { x: b.x + to.x - box.x, y: b.y + to.y - box.y })
    }
  }
  const onEdgesChange = useSteady((changes: EdgeChange<FlowEdge>[]) => {
    const selected = pick(chosen.wires, changes)
    if (selected) choose({ nodes: chosen.nodes, wires: selected })
  })

  const connect = useSteady((c: Pick<Connection, "source" | "target" | "sourceHandle">) => {
    if (!editing || !c.source || !c.target) return
    const key = keyOfPort(c.sourceHandle)
    if (key !== undefined) editing.onConnect(c.source, key, c.target)
    else if (c.sourceHandle === attach) editing.onAttach(c.source, c.target)
  })
  const onConnectEnd = useSteady((event: MouseEvent | TouchEvent, state: FinalConnectionState) => {
    if (!editing || state.isValid || !state.fromHandle) return
    const client = "clientX" in event ? { x: event.clientX, y: event.clientY } : { x: event.changedTouches[0]!.clientX, y: event.changedTouches[0]!.clientY }
    const over = document.elementsFromPoint(client.x, client.y).map((e) => e.closest<HTMLElement>(".react-flow__node-card")?.dataset.id)
    const target = over.find((id) => id !== undefined)
    const { nodeId, id, type } = state.fromHandle
    if (target !== undefined) {
      if (target !== nodeId && type === "source") connect({ source: nodeId, sourceHandle: id ?? null, target })
      return
    }
    const key = keyOfPort(id)
    editing.onAdd({
      at: flow.screenToFlowPosition(client),
      client,
      ...(type === "target" ? (id === hang ? {} : { to: nodeId }) : key !== undefined ? { from: { node: nodeId, key } } : { agent: nodeId }),
    })
  })
  const onNodeClick = useSteady((e: Click, n: FlowNode) => {
    if (!e.shiftKey && !e.metaKey && !e.ctrlKey) onOpen?.(n.id)
  })
  const onEdgeClick = useSteady((_: Click, e: FlowEdge) => {
    if (!e.data?.dashed) onOpenWire?.(e.id)
  })
  const onPaneClick = useSteady(() => choose(nothing))
  const onDoubleClick = useSteady((e: Click) => {
    const client = { x: e.clientX, y: e.clientY }
    if (editing && isEmpty(e.target)) editing.onAdd({ at: flow.screenToFlowPosition(client), client })
  })
  const words = useMemo(
    () => ({
      "node.a11yDescription.default": t("a11y.node"),
      "node.a11yDescription.keyboardDisabled": t("a11y.node"),
      "edge.a11yDescription.default": t("a11y.wire"),
      "minimap.ariaLabel": t("minimap"),
      "handle.ariaLabel": t("a11y.port"),
    }),
    [t],
  )
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.key !== "Enter") return
    const id = (e.target as Element).closest<HTMLElement>(".react-flow__node")?.dataset.id
    if (id !== undefined) onOpen?.(id)
    const wire = (e.target as Element).closest<SVGElement>(".react-flow__edge")?.dataset.id
    if (wire !== undefined && wiresBefore.current.get(wire)?.data?.dashed === false) onOpenWire?.(wire)
  }
  return (
    <div ref={root} className={classes.canvas} role="region" aria-label={label} onKeyDown={onKeyDown}>
      <ReactFlow<FlowNode, FlowEdge>
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        onNodeClick={onNodeClick}
        onEdgeClick={onEdgeClick}
        onPaneClick={onPaneClick}
        onDoubleClick={onDoubleClick}
        onConnect={connect}
        onConnectEnd={onConnectEnd}
        isValidConnection={isAllowed}
        nodesDraggable={edits}
        nodesConnectable={edits}
        elementsSelectable
        elevateNodesOnSelect={false}
        deleteKeyCode={null}
        zoomOnDoubleClick={false}
        onlyRenderVisibleElements
        connectionRadius={28}
        minZoom={0.03}
        maxZoom={2}
        attributionPosition="bottom-left"
        ariaLabelConfig={words}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} size={1} />
        {definition.nodes.length > 8 && <MiniMap pannable zoomable ariaLabel={t("minimap")} nodeColor={mapColor} nodeStrokeWidth={0} style={mapSize} />}
        <Distance />
        <Tools />
        {children}
      </ReactFlow>
    </div>
  )
}

// useLayout lays out anew only when the structure has changed, and of a large workflow only what is new. What was moved is moved, and nothing else.
function useLayout(definition: Definition, ports: Ports, edits: boolean): Layout {
  const last = useRef<{ structure: string; places: string; layout: Layout }>(undefined)
  return useMemo(() => {
    const structure = structureOf(definition, ports)
    const places = placesOf(definition)
    const before = last.current
    if (before?.structure === structure && before.places === places) return before.layout
    const known = before ? definition.nodes.filter((n) => before.layout.boxes.has(n.id)).length : 0
    const moved = before?.structure === structure
    const layout = before && edits && (moved || (definition.nodes.length > large && known > definition.nodes.length / 2)) ? addTo(before.layout, definition, ports) : layOut(definition, ports)
    last.current = { structure, places, layout }
    return layout
  }, [definition, ports, edits])
}

function sameList<T>(before: T[], now: T[]): T[] {
  return before.length === now.length && now.every((n, i) => n === before[i]) ? before : now
}

// useSteady is a function that stays the same and does what the newest one does. Each new one would be told to every card.
function useSteady<A extends unknown[], R>(act: (...args: A) => R): (...args: A) => R {
  const now = useRef(act)
  useLayoutEffect(() => {
    now.current = act
  })
  return useCallback((...args: A) => now.current(...args), [])
}

const isAllowed = (c: FlowEdge | Connection) => (c.sourceHandle === attach) === (c.targetHandle === hang) && (c.targetHandle !== input || c.source !== c.target)

const isEmpty = (target: EventTarget) => target instanceof Element && target.classList.contains("react-flow__pane")

const mapSize = { width: 160, height: 110 }

const mapColor = (n: FlowNode) => (n.type === "card" ? familyColor(n.data.node.kind) : "transparent")

function isWithin(id: string, loop: string, parents: Map<string, string>): boolean {
  for (let p = parents.get(id); p !== undefined; p = parents.get(p)) if (p === loop) return true
  return false
}

function pick(now: ReadonlySet<string>, changes: { type: string; id?: string; selected?: boolean }[]): Set<string> | undefined {
  const selects = changes.filter((c) => c.type === "select")
  if (selects.length === 0) return undefined
  const next = new Set(now)
  for (const c of selects) {
    if (c.selected) next.add(c.id!)
    else next.delete(c.id!)
  }
  return next
}

// useFit returns what brings nodes into view. It knows their places without their having been drawn, which the library's own way does not.
function useFit() {
  const store = useStoreApi()
  const { setViewport } = useReactFlow()
  return useCallback(
    (nodes: FlowNode[], duration = 200) => {
      const { width, height } = store.getState()
      if (nodes.length === 0 || !width || !height) return
      const x = Math.min(...nodes.map((n) => n.position.x))
      const y = Math.min(...nodes.map((n) => n.position.y))
      const right = Math.max(...nodes.map((n) => n.position.x + (n.width ?? 0)))
      const bottom = Math.max(...nodes.map((n) => n.position.y + (n.height ?? 0)))
      void setViewport(getViewportForBounds({ x, y, width: right - x, height: bottom - y }, width, height, 0.03, 1, 0.12), { duration })
    },
    [store, setViewport],
  )
}

// Distance marks the canvas when it is seen from afar; the style sheet does the rest, so that no card is drawn again.
function Distance() {
  const far = useStore((s) => s.transform[2] < 0.42)
  const root = useStore((s) => s.domNode)
  useEffect(() => {
    root?.closest(`.${classes.canvas}`)?.toggleAttribute("data-far", far)
  }, [far, root])
  return null
}

function Tools() {
  const { t } = useTranslation("graph")
  const { zoomIn, zoomOut, getNodes } = useReactFlow<FlowNode>()
  const fit = useFit()
  const buttons = [
    { name: t("zoomIn"), icon: IconZoomIn, act: () => void zoomIn() },
    { name: t("zoomOut"), icon: IconZoomOut, act: () => void zoomOut() },
    { name: t("fit"), icon: IconFocusCentered, act: () => fit(getNodes()) },
  ]
  return (
    <Panel position="bottom-left" className={classes.tools}>
      {buttons.map(({ name, icon: Icon, act }) => (
        <Tooltip key={name} label={name} position="top">
          <ActionIcon variant="subtle" color="gray" size="md" aria-label={name} onClick={act}>
            <Icon size={16} stroke={1.7} />
          </ActionIcon>
        </Tooltip>
      ))}
    </Panel>
  )
}
