// Package table shows values on a terminal: tables, times, durations, texts made safe, JSON. It knows nothing of the API. The packages of
// the console and the command import it.
package table

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"tandem/payload"
)

// Listing is how lists and single things are shown: as JSON or as a table, and with how many columns.
type Listing struct {
	JSON bool
	// Output is "wide" for more columns, or empty.
	Output string
}

// Show prints a value as JSON, or as the table says.
func (l *Listing) Show(out io.Writer, value any, table func(w *tabwriter.Writer)) error {
	if l.JSON {
		return JSON(out, value)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// JSON prints a value as JSON, indented.
func JSON(out io.Writer, value any) error {
	raw, err := payload.Marshal(value)
	if err == nil {
		_, err = fmt.Fprintln(out, payload.Indented(raw))
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// Row writes a line of a table. Cells are made safe: what people and nodes wrote must not break the table.
func Row(w io.Writer, cells ...string) {
	for i, c := range cells {
		if cells[i] = OneLine(c); c == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(w, strings.Join(cells, "\t")) // the tabwriter keeps the error for Flush
}

// Time is a time of the API, in milliseconds, as people read it; zero is empty.
func Time(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).Local().Format(time.DateTime)
}

// TimeIn is [Time] as clocks show it in a time zone; empty if this machine does not know the zone.
func TimeIn(ms int64, zone string) string {
	place, err := time.LoadLocation(zone)
	if ms == 0 || err != nil {
		return ""
	}
	return time.UnixMilli(ms).In(place).Format(time.DateTime)
}

// Milliseconds is a duration of the API as people say it.
func Milliseconds(ms int64) string { return Duration(time.Duration(ms) * time.Millisecond) }

// Took is how long something took, and nothing for what has not ended.
func Took(at, ms int64) string {
	if at == 0 && ms == 0 {
		return ""
	}
	return Milliseconds(ms)
}

// OneLine makes a text safe to show in one line: what nodes say must not move the cursor.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, s)
}

// Duration is a duration as people say it.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Count is a number of things in words: 1 retry, 2 retries.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Amount is a number without an exponent.
func Amount(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// More says that a list goes on.
func More(w io.Writer, shown, total int) {
	if total > shown {
		fmt.Fprintf(w, "%d of %d; --page shows others\n", shown, total)
	}
}

// Cell is a value in a table.
func Cell(raw json.RawMessage) string {
	const most = 100
	text := []rune(OneLine(payload.JSON(raw)))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
