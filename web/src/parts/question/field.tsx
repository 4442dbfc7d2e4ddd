import { Button, Checkbox, FileButton, Group, Input, NativeSelect, Radio, Stack, Text, Textarea, TextInput } from "@mantine/core"
import { IconPaperclip, IconX } from "@tabler/icons-react"
import { useId, useState } from "react"
import { useTranslation } from "react-i18next"
import { type Filled } from "./answer"
import { fileOf, maxFile } from "./file"
import { type Entry } from "./types"
import { visible } from "./value"
import classes from "./question.module.css"

type Props = { entry: Entry; filled: Filled; wrong?: string; disabled?: boolean; onChange: (next: Filled) => void }

const hintOf = (e: Entry) => [e.about, e.limits].filter(Boolean).join(" ") || undefined

/** Field draws one entry of a form: what it is called, what may be filled in, and what is wrong with it. */
export function Field({ entry: e, filled, wrong, disabled, onChange }: Props) {
  const common = { label: visible(e.label ?? e.name ?? ""), description: hintOf(e) && visible(hintOf(e)!), error: wrong, withAsterisk: e.required, disabled, inputWrapperOrder: ["label", "description", "error", "input"] as const }
  const text = { ...common, inputWrapperOrder: [...common.inputWrapperOrder], value: filled.text ?? "", onChange: (ev: { currentTarget: { value: string } }) => onChange({ text: ev.currentTarget.value }) }
  switch (e.kind) {
    case "area":
      return <Textarea {...text} autosize minRows={2} maxRows={12} />
    case "json":
      return <Textarea {...text} autosize minRows={2} maxRows={16} spellCheck={false} classNames={{ input: classes.mono }} />
    case "email":
      return <TextInput {...text} type="email" inputMode="email" autoComplete="off" />
    case "date":
      return <TextInput {...text} type="date" className={classes.short} />
    case "file":
      return <FileField entry={e} filled={filled} wrong={wrong} disabled={disabled} onChange={onChange} />
    case "tick":
      return <Checkbox label={common.label} description={common.description} error={wrong} disabled={disabled} checked={filled.checked === true} onChange={(ev) => onChange({ checked: ev.currentTarget.checked })} />
    case "some":
      return (
        <Checkbox.Group {...common} inputWrapperOrder={[...common.inputWrapperOrder]} value={filled.picked ?? []} onChange={(picked) => onChange({ picked })}>
          <Stack gap={10} mt={6}>
            {e.choices?.map((c) => (
              <Checkbox key={c.value} value={c.value} label={visible(c.label)} disabled={disabled} />
            ))}
          </Stack>
        </Checkbox.Group>
      )
  }
  if (e.choices?.length) {
    if (e.kind === "one" && !e.decides && e.group !== "scores")
      return (
        <NativeSelect
          {...common}
          inputWrapperOrder={[...common.inputWrapperOrder]}
          className={classes.short}
          value={filled.picked?.[0] ?? ""}
          onChange={(ev) => onChange({ picked: ev.currentTarget.value === "" ? [] : [ev.currentTarget.value] })}
        >
          <ChooseOption />
          {e.choices.map((c) => (
            <option key={c.value} value={c.value}>
              {visible(c.label)}
            </option>
          ))}
        </NativeSelect>
      )
    return <Choices entry={e} filled={filled} wrong={wrong} disabled={disabled} onChange={onChange} />
  }
  return <TextInput {...text} inputMode={e.kind === "number" ? "decimal" : undefined} className={e.kind === "number" || e.kind === "score" ? classes.short : undefined} autoComplete="off" />
}

function ChooseOption() {
  const { t } = useTranslation("question")
  return <option value="">{t("choose")}</option>
}

// Choices are one of several, side by side where they are short; an open entry takes something else as well.
function Choices({ entry: e, filled, wrong, disabled, onChange }: Props) {
  const { t } = useTranslation("question")
  const short = (e.choices ?? []).every((c) => c.label.length <= 8)
  const options = e.choices?.map((c) => <Radio key={c.value} value={c.value} label={visible(c.label)} disabled={disabled} />)
  return (
    <Stack gap={6}>
      <Radio.Group
        label={visible(e.label ?? e.name ?? "")}
        description={hintOf(e) && visible(hintOf(e)!)}
        error={wrong}
        withAsterisk={e.required}
        inputWrapperOrder={["label", "description", "error", "input"]}
        value={filled.other?.trim() ? "" : (filled.picked?.[0] ?? "")}
        onChange={(value) => onChange({ picked: [value] })}
      >
        {short ? (
          <Group gap={18} mt={6}>
            {options}
          </Group>
        ) : (
          <Stack gap={10} mt={6}>
            {options}
          </Stack>
        )}
      </Radio.Group>
      {e.open && <TextInput label={t("other")} aria-label={`${e.label ?? e.name}: ${t("other")}`} size="xs" className={classes.short} disabled={disabled} value={filled.other ?? ""} onChange={(ev) => onChange({ ...filled, other: ev.currentTarget.value })} />}
    </Stack>
  )
}

function FileField({ entry: e, filled, wrong, disabled, onChange }: Props) {
  const { t } = useTranslation("question")
  const [refused, setRefused] = useState("")
  const id = useId()
  const take = async (file: File | null) => {
    if (!file) return
    if (file.size > maxFile) return setRefused(t("fileTooLarge", { name: file.name }))
    setRefused("")
    onChange({ file: await fileOf(file) })
  }
  return (
    <Input.Wrapper id={id} label={visible(e.label ?? e.name ?? "")} description={hintOf(e) && visible(hintOf(e)!)} error={refused || wrong} withAsterisk={e.required} inputWrapperOrder={["label", "description", "error", "input"]} labelElement="div">
      <Group gap="sm" mt={6}>
        <FileButton onChange={(f) => void take(f)} inputProps={{ "aria-label": e.label ?? e.name }}>
          {(props) => (
            <Button {...props} id={id} variant="default" disabled={disabled} leftSection={<IconPaperclip size={16} />}>
              {filled.file ? t("fileOther") : t("fileChoose")}
            </Button>
          )}
        </FileButton>
        {filled.file && (
          <>
            <Text fz="sm" className={classes.wrap}>
              {visible(filled.file.name)} · {t("fileSize", { size: Math.max(1, Math.round(filled.file.size / 1024)) })}
            </Text>
            <Button variant="subtle" color="gray" size="compact-sm" disabled={disabled} leftSection={<IconX size={14} />} onClick={() => onChange({})}>
              {t("fileRemove")}
            </Button>
          </>
        )}
      </Group>
    </Input.Wrapper>
  )
}
