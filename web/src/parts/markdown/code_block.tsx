import { ActionIcon, CopyButton, Tooltip } from "@mantine/core"
import { IconCheck, IconCopy } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import { plain } from "../plain"
import classes from "./markdown.module.css"

/** CodeBlock shows code as it was written, with a button that copies it. */
export function CodeBlock({ code, language }: { code: string; language?: string }) {
  const { t } = useTranslation("markdown")
  return (
    <div className={classes.block}>
      <pre tabIndex={0} aria-label={language ? t("codeIn", { language: plain(language) }) : t("code")} role="group">
        <code>{plain(code)}</code>
      </pre>
      <CopyButton value={code}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? t("copied") : t("copy")}>
            <ActionIcon className={classes.copy} size="sm" variant="default" aria-label={copied ? t("copied") : t("copy")} onClick={copy}>
              {copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </div>
  )
}
