import { Anchor, Button, Text } from "@mantine/core"
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { useNavigate } from "react-router"
import { stringify } from "yaml"
import { useRole } from "@/api/me"
import { useSearch } from "@/api/search"
import { type Adding, type Chosen, Graph, type GraphHandle, useKinds } from "@/graph"
import { isFields, listOf, type Point, withKinds } from "@/graph/definition"
import { iconOf } from "@/graph/family"
import { mainKey, outputKeys } from "@/graph/keys"
import { Code, type CodeHandle } from "@/parts/code"
import { Loading } from "@/parts/states"
import { When } from "@/parts/when"
import { Conflict } from "./conflict"
import { Deploy } from "./deploy"
import { NodeDrawer, NoteDrawer } from "./drawer"
import * as edits from "./edits"
import { KindPalette } from "./kind_palette"
import { useKeys } from "./keys"
import { renamePins } from "./pins"
import { Problems } from "./problems"
import { rename } from "./rename"
import { type Plain, readText } from "./rewrite"
import { Run } from "./run"
import { Side } from "./side"
import { addTest } from "./tests/file"
import { Frame } from "./tests/frame"
import { Toolbar } from "./toolbar"
import { type Base, useDocument } from "./use_document"
import { type FileProblem, nodeOf, useProblems } from "./use_problems"
import { useSave } from "./use_save"
import { WireDrawer } from "./wire_drawer"
import classes from "./editor.module.css"

type Props = { id: string; server: Base; deployed?: number; shown: boolean; /** The tests of the document are shown instead of its canvas. */ tests?: boolean }

const Tests = lazy(() => import("./tests"))

const nothing: Chosen = { nodes: new Set(), wires: new Set() }
const beginnings = ["TRIGGER.MANUAL", "TRIGGER.CRON", "TRIGGER.WEBHOOK", "TRIGGER.FORM", "TRIGGER.CHAT"]

/** Editor is where a workflow is made: the canvas and its text, which are two views of one document. */
export function Editor({ id, server, deployed, shown, tests }: Props) {
  const { t, i18n } = useTranslation("editor")
  const go = useNavigate()
  const { get, set } = useSearch()
  const { kinds } = useKinds()
  const mayEdit = useRole("editor")
  const mayRun = useRole("editor", "operator")
  const doc = useDocument(id, server)
  const read = doc.history.now
  const now = useMemo(() => ({ ...read, definition: withKinds(read.definition, kinds) }), [read, kinds])
  const { problems, byNode, current } = useProblems(now)
  const opened = get("node")
  const [chosen, setChosen] = useState<Chosen>(() => (opened ? { nodes: new Set([opened]), wires: new Set() } : nothing))
  const [adding, setAdding] = useState<Adding>()
  const [listed, setListed] = useState(false)
  const [show, setShow] = useState<{ id: string } | undefined>(() => (opened ? { id: opened } : undefined))
  const dialog = get("do")
  const setDialog = (next: "run" | "deploy" | undefined) => set({ do: next }, { replace: true })
  const wanted = useRef<"run" | "deploy">(undefined)
  const [drawn, setDrawn] = useState(0)
  const graph = useRef<GraphHandle>(null)
  const code = useRef<CodeHandle>(null)
  const yaml = get("yaml") === "1"
  const broken = !!now.broken
  const changes = mayEdit && !broken

  const saving = useSave({ id, doc, onCreated: (next) => void go(`/workflows/${encodeURIComponent(next)}${wanted.current ? `?do=${wanted.current}` : ""}`, { replace: true }), onRefused: () => setListed(true) })
  /** saved is the id of what the server has once everything here is saved. */
  const saved = async () => (doc.dirty || id === "" ? await saving.save() : id)

  // A new workflow is there first, and at its own address, before it is run or deployed.
  const ask = (what: "run" | "deploy") => {
    if (id !== "") return setDialog(what)
    wanted.current = what
    void saving.save().finally(() => (wanted.current = undefined))
  }

  // Somebody else has saved: without changes of one's own the new text is taken, with some it is told.
  const { rebase, replace, dirty, base } = doc
  useEffect(() => {
    if (server.revision <= base.revision || dirty) return
    replace(server.text)
    rebase(server)
  }, [server, base.revision, dirty, replace, rebase])

  const open = (node: string | undefined) => {
    setShow(node === undefined ? undefined : { id: node })
    set({ node, wire: undefined }, { replace: true })
  }
  const edit = doc.edit

  const add = (kind: string) => {
    const a = adding
    setAdding(undefined)
    const value = now.value
    const placed = now.definition.nodes.some((n) => n.position)
    const node = edits.newNode(value, kind, placed && a && !a.agent ? { position: { x: Math.round(a.at.x), y: Math.round(a.at.y - 33) } } : {})
    const made = String(node.id)
    edit((v) => {
      let next = edits.addNode(v, node)
      if (a?.from) next = edits.connect(next, a.from.node, a.from.key, made)
      if (a?.agent) next = edits.attachTo(next, a.agent, made)
      if (a?.to) next = edits.connect(next, made, mainKey(kinds.get(kind)?.output_keys ?? [], kinds.get(kind)), a.to)
      return next
    })
    setChosen({ nodes: new Set([made]), wires: new Set() })
    open(made)
  }
  // From the keyboard, what is added follows the node that is chosen.
  const begin = () => {
    const middle = graph.current?.middle() ?? { at: { x: 0, y: 0 }, client: { x: 200, y: 200 } }
    const only = chosen.nodes.size === 1 ? now.definition.nodes.find((n) => chosen.nodes.has(n.id)) : undefined
    const at = only?.position ? { x: only.position.x + 308, y: only.position.y + 33 } : middle.at
    setAdding({ ...middle, at, ...(only ? { from: { node: only.id, key: mainKey(outputKeys(only, kinds), kinds.get(only.kind)) } } : {}) })
  }
  const pickNodes = (ids: Iterable<string>) => setChosen({ nodes: new Set(ids), wires: new Set() })
  const remove = () => {
    const wires = now.definition.connections.filter((c) => chosen.wires.has(c.id)).map((c) => c.index)
    const notes = now.definition.notes.filter((n) => chosen.nodes.has(`note:${n.id}`)).map((n) => n.index)
    const attached = [...chosen.wires].filter((w) => w.startsWith("attached:")).map((w) => JSON.parse(w.slice(9)) as [string, string])
    if (!chosen.nodes.size && !chosen.wires.size) return
    edit((v) => attached.reduce((next, [agent, node]) => edits.detach(next, agent, node), edits.remove(v, chosen.nodes, new Set(wires), new Set(notes))))
    if (chosen.nodes.has(opened)) open(undefined)
    setChosen(nothing)
  }
  const copied = () => {
    const clip = edits.copy(now.value, chosen.nodes)
    return clip.nodes.length ? stringify(clip, { lineWidth: 0 }) : undefined
  }
  const paste = (clip: edits.Clip | undefined) => {
    if (!clip || !changes) return
    const { ids } = edits.paste(now.value, clip)
    edit((v) => edits.paste(v, clip).value)
    pickNodes(ids)
  }
  const addNote = () => {
    const { at } = graph.current?.middle() ?? { at: { x: 0, y: 0 } }
    const taken = new Set(now.definition.notes.map((n) => n.id))
    let n = 1
    while (taken.has(`note_${n}`)) n++
    edit((v) => ({ ...(isFields(v) ? v : {}), notes: [...listOf(isFields(v) ? v.notes : []), { id: `note_${n}`, text: "", position: { x: Math.round(at.x), y: Math.round(at.y) } }] }))
    open(`note:note_${n}`)
  }
  const jump = (p: Pick<FileProblem, "node" | "path" | "line" | "column">) => {
    const node = nodeOf(p, now)
    if (node) {
      pickNodes([node])
      setShow({ id: node })
      set({ node, do: undefined }, { replace: true })
    } else if (p.line) {
      set({ yaml: 1, do: undefined }, { replace: true })
      requestAnimationFrame(() => code.current?.show(p.line!, p.column))
    }
    if (p.line) code.current?.show(p.line, p.column)
  }
  const onMove = (to: Map<string, Point>) => {
    const nodes = new Map([...to].filter(([node]) => !node.startsWith("note:")))
    const notes = new Map(now.definition.notes.flatMap((n): [number, Point][] => (to.has(`note:${n.id}`) ? [[n.index, to.get(`note:${n.id}`)!]] : [])))
    edit((v) => (notes.size ? edits.moveNotes(edits.move(v, nodes), notes) : edits.move(v, nodes)))
  }
  const editing = changes
    ? { onMove, onConnect: (from: string, key: string, to: string) => edit((v) => edits.connect(v, from, key, to)), onAttach: (agent: string, node: string) => edit((v) => edits.attachTo(v, agent, node)), onAdd: setAdding }
    : undefined

  useKeys(shown && !dialog && !adding && !saving.theirs, {
    add: () => changes && begin(),
    undo: doc.undo,
    redo: doc.redo,
    remove: () => changes && remove(),
    all: () => pickNodes(now.definition.nodes.map((n) => n.id)),
    save: () => mayEdit && void saving.save(),
    escape: () => {
      const shown = !!opened || !!get("wire")
      if (shown) open(undefined)
      return shown
    },
    copy: copied,
    cut: () => {
      const text = copied()
      if (text !== undefined && changes) remove()
      return text
    },
    paste: (text) => {
      const read = readText(text)
      if (!read.broken) paste(edits.asClip(read.value))
    },
  })

  const node = now.definition.nodes.find((n) => n.id === opened)
  const wire = node ? undefined : now.definition.connections.find((c) => c.id === get("wire"))
  const note = now.definition.notes.find((n) => `note:${n.id}` === opened)
  const fields = useMemo(() => (node ? listOf(isFields(now.value) ? now.value.nodes : [])[node.index] : undefined), [node, now.value])
  const only = adding?.agent ? agentsOnly : adding?.from ? notTriggers : undefined
  return (
    <Frame
      shown={shown}
      other={
        tests && (
          <Suspense fallback={<Loading />}>
            <Tests workflow={id} text={now.text} value={now.value} definition={now.definition} broken={broken} dirty={dirty} saving={saving.busy} mayEdit={mayEdit} edit={edit} onSave={() => void saving.save()} />
          </Suspense>
        )
      }
    >
      <Toolbar
        name={now.definition.name}
        revision={base.revision}
        deployed={deployed}
        dirty={dirty}
        mayEdit={mayEdit}
        mayRun={mayRun}
        canUndo={doc.history.past.length > 0}
        canRedo={doc.history.future.length > 0}
        broken={broken}
        yaml={yaml}
        saving={saving.busy}
        onName={(name) => edit((v) => edits.setMetadata(v, "name", name))}
        onAdd={begin}
        onUndo={doc.undo}
        onRedo={doc.redo}
        onTidy={() => {
          edit(edits.tidy)
          setDrawn((n) => n + 1)
        }}
        onNote={addNote}
        onYaml={() => set({ yaml: yaml ? undefined : 1 }, { replace: true })}
        onSave={() => void saving.save()}
        onRun={() => ask("run")}
        onDeploy={() => ask("deploy")}
      />
      <Banners doc={doc} server={server} broken={broken} onDifference={() => void saving.showTheirs()} onText={() => set({ yaml: 1 }, { replace: true })} />
      <div className={classes.stage}>
        <div className={classes.canvas}>
          <Graph key={drawn} definition={now.definition} kinds={kinds} label={t("canvas")} problems={byNode} chosen={chosen} onChoose={setChosen} onOpen={open} onOpenWire={(w) => set({ wire: w, node: undefined }, { replace: true })} show={show} editing={editing} handle={graph} />
          {now.definition.nodes.length === 0 && changes && kinds.size > 0 && (
            <div className={classes.begin}>
              <Text fw={600}>{t("begin.title")}</Text>
              <Text fz="sm" c="dimmed">
                {t("begin.text")}
              </Text>
              {beginnings
                .filter((k) => kinds.has(k))
                .map((k) => {
                  const Icon = iconOf(k)
                  return (
                    <Button key={k} variant="default" w={240} justify="flex-start" leftSection={<Icon size={18} />} onClick={() => add(k)}>
                      {kinds.get(k)!.title[i18n.language === "zh" ? "zh" : "en"]}
                    </Button>
                  )
                })}
            </div>
          )}
        </div>
        {node && isFields(fields) && (
          <NodeDrawer
            workflow={id}
            definition={now.definition}
            node={node}
            fields={fields}
            kinds={kinds}
            problems={problems.filter((p) => nodeOf(p, now) === node.id)}
            readOnly={!changes}
            value={now.value}
            onName={(name) => edit((v) => edits.setField(v, node.id, "name", name && name !== node.id ? name : undefined))}
            onConfigurations={(value) => edit((v) => edits.setField(v, node.id, "configurations", value), `${node.id}.configurations`)}
            onNode={(next) => edit((v) => edits.setNode(v, node.id, () => next), `${node.id}.settings`)}
            onOpen={(next) => {
              pickNodes([next])
              open(next)
            }}
            onRename={(to) => {
              edit((v) => rename(v, node.id, to).value)
              renamePins(id, node.id, to)
              pickNodes([to])
              open(to)
            }}
            onCopy={() => paste(edits.copy(now.value, new Set([node.id])))}
            onDelete={() => {
              edit((v: Plain) => edits.remove(v, new Set([node.id]), new Set()))
              open(undefined)
            }}
            onClose={() => open(undefined)}
            text={changes ? now.text : undefined}
            onKeep={(test) => edit((v) => addTest(v, test))}
          />
        )}
        {wire && (
          <WireDrawer
            key={wire.index}
            wire={wire}
            definition={now.definition}
            kinds={kinds}
            problems={problems.filter((p) => p.path?.startsWith(`connections[${wire.index}]`))}
            readOnly={!changes}
            onKey={(key) => {
              edit((v) => edits.setWire(v, wire.index, "output_key", key === "result" ? undefined : key))
              // Without an id of its own a connection is called after its ends.
              if (wire.id === `${wire.from}-${wire.key}-${wire.to}`) set({ wire: `${wire.from}-${key}-${wire.to}` }, { replace: true })
            }}
            onConversion={(text) => edit((v) => edits.setWire(v, wire.index, "conversion_function", text.trim() ? text : undefined), `wire.${wire.index}`)}
            onDelete={() => {
              edit((v) => edits.remove(v, new Set(), new Set([wire.index])))
              open(undefined)
            }}
            onClose={() => open(undefined)}
          />
        )}
        {note && (
          <NoteDrawer
            note={note}
            readOnly={!changes}
            onText={(text) => edit((v) => ({ ...(isFields(v) ? v : {}), notes: listOf(isFields(v) ? v.notes : []).map((n, i) => (i === note.index && isFields(n) ? { ...n, text } : n)) }), `note.${note.id}`)}
            onDelete={() => {
              edit((v) => edits.remove(v, new Set(), new Set(), new Set([note.index])))
              open(undefined)
            }}
            onClose={() => open(undefined)}
          />
        )}
        {yaml && (
          <Side name="yaml" label={t("yaml.title")} width={440}>
            <div className={classes.text}>
              <Code value={now.text} onChange={doc.type} language="yaml" label={t("yaml.title")} fill lineNumbers readOnly={!mayEdit} handle={code} onSave={() => void saving.save()} problems={now.broken ? [{ ...now.broken, severity: "error" }] : problems} />
            </div>
          </Side>
        )}
      </div>
      {now.definition.nodes.length > 0 || broken ? <Problems problems={problems} nameOf={(p) => now.definition.nodes.find((n) => n.id === nodeOf(p, now))?.name ?? ""} open={listed && problems.length > 0} onOpen={setListed} onJump={jump} current={current} /> : null}
      {adding && <KindPalette kinds={kinds} at={adding.client} only={only} onPick={add} onClose={() => setAdding(undefined)} />}
      {dialog === "run" && <Run definition={now.definition} saved={saved} onClose={() => setDialog(undefined)} />}
      {dialog === "deploy" && (
        <Deploy
          saved={saved}
          dirty={dirty}
          revision={base.revision}
          onClose={() => setDialog(undefined)}
          onJump={jump}
        />
      )}
      {saving.theirs && (
        <Conflict
          theirs={saving.theirs}
          mine={now.text}
          busy={saving.busy}
          onClose={saving.closeTheirs}
          onKeepMine={() => void saving.save(saving.theirs!.revision)}
          onTakeTheirs={() => {
            doc.replace(saving.theirs!.text)
            doc.rebase(saving.theirs!)
            saving.closeTheirs()
          }}
        />
      )}
    </Frame>
  )
}

const agentsOnly = (k: { type: string }) => k.type === "TOOL" || k.type === "MEMORY"
const notTriggers = (k: { type: string }) => k.type !== "TRIGGER"

type BannersProps = { doc: ReturnType<typeof useDocument>; server: Base; broken: boolean; onDifference: () => void; onText: () => void }

// What one has to know before going on: a draft was found, somebody else has saved, the text cannot be read, or drafts cannot be kept.
function Banners({ doc, server, broken, onDifference, onText }: BannersProps) {
  const { t } = useTranslation("editor")
  const behind = doc.dirty && server.revision > doc.base.revision
  return (
    <>
      {behind && (
        <div className={classes.banner} role="alert">
          <span>{t("banner.behind", { revision: server.revision })}</span>
          <Button size="compact-xs" variant="default" onClick={onDifference}>
            {t("banner.difference")}
          </Button>
        </div>
      )}
      {doc.restored !== undefined && doc.dirty && !behind && (
        <div className={classes.banner} role="status">
          <span>
            {t("banner.restored")} <When at={doc.restored} />
          </span>
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => {
              doc.replace(server.text)
              doc.rebase(server)
            }}
          >
            {t("banner.discard")}
          </Button>
          <Button size="compact-xs" variant="default" onClick={() => doc.rebase(doc.base)}>
            {t("banner.keep")}
          </Button>
        </div>
      )}
      {broken && (
        <div className={classes.banner} role="alert">
          <span>{t("banner.broken", { line: doc.history.now.broken!.line, message: doc.history.now.broken!.message })}</span>
          <Anchor component="button" type="button" fz="sm" onClick={onText}>
            {t("banner.text")}
          </Anchor>
        </div>
      )}
      {doc.homeless && (
        <div className={classes.banner} role="alert">
          {t("banner.homeless")}
        </div>
      )}
    </>
  )
}
