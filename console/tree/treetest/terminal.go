// Package treetest has a terminal for tests: it understands what is drawn on it and tells what a person would see. Tests import it.
package treetest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// Terminal shows what a terminal would show after what was written to it. Narrower, it breaks long lines in two, as
// most terminals do.
type Terminal struct {
	t             testing.TB
	width, height int
	rows          []string // from the first that ever was
	x, y          int
	// Hidden says that the cursor is, Writes how many writes there were.
	Hidden bool
	Writes int
}

// NewTerminal returns an empty terminal.
func NewTerminal(t testing.TB, width, height int) *Terminal {
	return &Terminal{t: t, width: width, height: height, rows: []string{""}}
}

// Size is how many columns and rows it has.
func (f *Terminal) Size() (int, int) { return f.width, f.height }

// Write implements io.Writer.
func (f *Terminal) Write(b []byte) (int, error) {
	f.Writes++
	text := string(b)
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			f.control(rest[:end], rest[end])
			text = rest[end+1:]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		f.put(r)
	}
	return len(b), nil
}

func (f *Terminal) control(args string, code byte) {
	n, err := strconv.Atoi(args)
	if err != nil {
		n = 1
	}
	switch {
	case code == 'A':
		f.y = max(f.y-n, max(len(f.rows)-f.height, 0))
	case code == 'K':
		f.rows[f.y] = cells(f.rows[f.y], f.x)
	case code == 'J':
		f.rows[f.y] = cells(f.rows[f.y], f.x)
		f.rows = f.rows[:f.y+1]
	case args == "?25":
		f.Hidden = code == 'l'
	case code == 'm', args == "?2026":
	default:
		f.t.Errorf("the terminal was sent an unknown control %q%c", args, code)
	}
}

func (f *Terminal) put(r rune) {
	switch {
	case r == '\r':
		f.x = 0
		return
	case r == '\n':
		f.y++
	case r < ' ' || r == 0x7f:
		f.t.Errorf("the terminal was sent the control character %q", r)
		return
	default:
		w := ansi.StringWidth(string(r))
		if f.x+w > f.width {
			f.x, f.y = 0, f.y+1
			for f.y >= len(f.rows) {
				f.rows = append(f.rows, "")
			}
		}
		row := f.rows[f.y]
		f.rows[f.y] = cells(row, f.x) + string(r) + ansi.Cut(row, f.x+w, ansi.StringWidth(row))
		f.x += w
		return
	}
	for f.y >= len(f.rows) {
		f.rows = append(f.rows, "")
	}
}

// cells is a row up to a column.
func cells(row string, n int) string {
	cut := ansi.Truncate(row, n, "")
	return cut + strings.Repeat(" ", n-ansi.StringWidth(cut))
}

// Resize changes the width.
func (f *Terminal) Resize(width int) {
	var rows []string
	y := f.y
	for i, row := range f.rows {
		for ansi.StringWidth(row) > width {
			rows = append(rows, ansi.Truncate(row, width, ""))
			row = ansi.Cut(row, width, ansi.StringWidth(row))
			if i < f.y {
				y++
			}
		}
		rows = append(rows, row)
	}
	f.rows, f.y, f.width = rows, y, width
}

// Shown is everything on the screen and above it.
func (f *Terminal) Shown() string {
	var b strings.Builder
	for _, row := range f.rows {
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
