// The measures of what is drawn. Cards know their size without being measured, so that a graph of 500 nodes is laid out before it is shown.
export const card = { width: 232, height: 66, port: 20, top: 58 }
export const small = { width: 176, height: 44, gap: 12 }
export const frame = { header: 66, left: 56, right: 56, top: 26, bottom: 22, width: 300, height: 170 }

/** plain says that a card has no port that needs a label: none, or just the usual one, which stands beside the head. */
export function plain(ports: string[]): boolean {
  return ports.length === 0 || (ports.length === 1 && ["result", "completed"].includes(ports[0]!))
}

/** cardHeight has room for the labelled ports below the head of a card. */
export function cardHeight(ports: string[]): number {
  return plain(ports) ? card.height : card.top + 6 + ports.length * card.port
}

/** portTop is where the middle of a port stands on the right edge. */
export function portTop(i: number, ports: string[]): number {
  return plain(ports) ? card.height / 2 : card.top + card.port * (i + 0.5)
}

/** frameExit is where the middle of an exit of a frame stands, on the right edge of its head. */
export function frameExit(i: number, ports: number): number {
  return (frame.header * (i + 1)) / (ports + 1)
}
