import { Table } from "@mantine/core"
import type { ReactNode } from "react"
import classes from "./settings.module.css"

/** Rows is a table of settings: the names of its columns, and rows of 32 pixels. It scrolls sideways where there is no room. */
export function Rows({ label, head, children, width = 620 }: { label: string; head: string[]; children: ReactNode; width?: number }) {
  return (
    <Table.ScrollContainer minWidth={width} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": label, role: "region" } }}>
      <Table verticalSpacing={5} highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {head.map((h) => (
              <Table.Th key={h}>{h}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

/** Row is one line of it. */
export function Row({ cells }: { cells: ReactNode[] }) {
  return (
    <Table.Tr>
      {cells.map((c, i) => (
        <Table.Td key={i} className={classes.cell}>
          {c}
        </Table.Td>
      ))}
    </Table.Tr>
  )
}
