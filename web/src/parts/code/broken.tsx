import { Component, type ReactNode } from "react"
import classes from "./code.module.css"

type Props = { text: string; label: string; onChange?: (value: string) => void; children: ReactNode }

/** Broken stands in when the editor cannot be loaded, as while the server is away: the text can still be read and changed. */
export class Broken extends Component<Props, { broken: boolean }> {
  state = { broken: false }
  static getDerivedStateFromError() {
    return { broken: true }
  }
  render() {
    const { text, label, onChange, children } = this.props
    if (!this.state.broken) return children
    return <textarea className={classes.plain} aria-label={label} value={text} readOnly={!onChange} rows={Math.min(20, text.split("\n").length + 1)} onChange={(e) => onChange?.(e.currentTarget.value)} />
  }
}
