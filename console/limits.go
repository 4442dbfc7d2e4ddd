package console

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"tandem/api"
)

// PrintLimits shows what a workspace may use and uses, and how long it keeps things.
func PrintLimits(w *tabwriter.Writer, l api.Limits) {
	s, u := l.Settings, l.Usage
	fmt.Fprintln(w, "LIMIT\tUSED\tOF")
	for _, line := range []struct {
		name string
		used string
		of   int64
		unit func(int64) string
	}{
		{"running executions", fmt.Sprintf("%d (%d wait)", u.Running, u.Waiting), s.Running, number},
		{"running executions of one user", "", s.RunningPerUser, number},
		{"executions started today (UTC)", number(u.ExecutionsToday), s.ExecutionsPerDay, number},
		{"executions started this month", number(u.ExecutionsThisMonth), s.ExecutionsPerMonth, number},
		{"storage", fmt.Sprintf("%s (journals %s, files and large values %s)", Bytes(u.StorageBytes), Bytes(u.JournalBytes),
			Bytes(u.BlobBytes)), s.StorageBytes, Bytes},
	} {
		of := "unlimited"
		if line.of > 0 {
			of = line.unit(line.of)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", line.name, line.used, of)
	}
	fmt.Fprintf(w, "starts by requests\t\t%s\nstarts by requests of one user\t\t%s\n", windowText(s.Starts), windowText(s.StartsPerUser))
	fmt.Fprintln(w, "\nKEPT\tNOW\tHOW LONG")
	fmt.Fprintf(w, "executions that have ended\t%d in all\t%s\n", u.Executions, keptText(s.Retention.Executions))
	fmt.Fprintf(w, "deliveries of triggers\t\t%s\n", keptText(s.Retention.Deliveries))
	fmt.Fprintf(w, "audit log\t\t%s\n", keptText(s.Retention.Audit))
	blobs := "for ever"
	if s.Retention.BlobDays > 0 {
		blobs = fmt.Sprintf("%d days", s.Retention.BlobDays)
	}
	fmt.Fprintf(w, "files that nothing has ever named\t\t%s\n", blobs)
	if l.Space != nil {
		fmt.Fprintln(w, "\nON DISK\tSIZE")
		printSpace(w, *l.Space)
	}
}

func printSpace(w *tabwriter.Writer, s api.Space) {
	fmt.Fprintf(w, "database\t%s, of which %s are free\n", Bytes(s.DatabaseBytes), Bytes(s.FreeBytes))
	fmt.Fprintf(w, "log of the database\t%s\nfiles and large values\t%s\n", Bytes(s.LogBytes), Bytes(s.BlobBytes))
	if s.CopyBytes > 0 {
		fmt.Fprintf(w, "copies from before upgrades\t%s\n", Bytes(s.CopyBytes))
	}
}

// PrintTidied shows what was removed.
func PrintTidied(w *tabwriter.Writer, r api.TidyReport) {
	fmt.Fprintf(w, "removed\t%d executions, %d deliveries, %d entries of the audit log, %d files and large values (%s), %d others\n", r.Executions, r.Deliveries, r.Audit, r.Blobs, Bytes(r.BlobBytes), r.Others)
	printSpace(w, r.Space)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// Bytes is a number of bytes as people read it.
func Bytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size {
			return strconv.FormatFloat(float64(n)/float64(unit.size), 'f', 1, 64) + " " + unit.name
		}
	}
	return number(n) + " bytes"
}

func windowText(w api.StartWindow) string {
	if w.Count == 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%d in %d s", w.Count, w.Seconds)
}

func keptText(k api.Retained) string {
	switch {
	case k.Days > 0 && k.Count > 0:
		return fmt.Sprintf("%d days, and the newest %d at most", k.Days, k.Count)
	case k.Days > 0:
		return fmt.Sprintf("%d days", k.Days)
	case k.Count > 0:
		return fmt.Sprintf("the newest %d", k.Count)
	}
	return "for ever"
}

// ParseBytes reads a number of bytes as people write it: 500, 20MiB, 1.5GB; 0 or off means no limit.
func ParseBytes(text string) (int64, error) {
	if text == "off" {
		return 0, nil
	}
	factor, digits := int64(1), strings.ToLower(strings.ReplaceAll(text, " ", ""))
	for _, unit := range []struct {
		name string
		size int64
	}{{"tib", 1 << 40}, {"gib", 1 << 30}, {"mib", 1 << 20}, {"kib", 1 << 10}, {"tb", 1e12}, {"gb", 1e9},
		{"mb", 1e6}, {"kb", 1e3}, {"b", 1}} {
		if rest, ok := strings.CutSuffix(digits, unit.name); ok {
			factor, digits = unit.size, rest
			break
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 || n*float64(factor) > 1e18 {
		return 0, fmt.Errorf("%q is not a size; write it as 500MiB or 20GB, or off", text)
	}
	return int64(n * float64(factor)), nil
}

// ParseWindow reads how many starts fit into a time: 100/60s, or 100 for a minute; 0 or off means no limit.
func ParseWindow(text string) (w api.StartWindow, err error) {
	if text == "off" {
		return w, nil
	}
	count, within, given := strings.Cut(text, "/")
	if w.Count, err = strconv.ParseInt(count, 10, 64); err == nil && given {
		var d time.Duration
		d, err = time.ParseDuration(within)
		w.Seconds = int64(d / time.Second)
	}
	if err != nil || w.Count < 0 || given && w.Seconds < 1 {
		return w, fmt.Errorf("%q is not a number of starts in a time; write it as 100/60s, or off", text)
	}
	return w, nil
}

// ParseKept reads how long something is kept: 30d, 1000 of it, or 30d,1000; off is for ever.
func ParseKept(text string) (k api.Retained, err error) {
	if text == "off" {
		return k, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		into := &k.Count
		digits, days := strings.CutSuffix(strings.TrimSpace(part), "d")
		if days {
			into = &k.Days
		}
		if *into, err = strconv.ParseInt(digits, 10, 64); err != nil || *into < 0 {
			return k, fmt.Errorf("%q does not say how long; write it as 30d, as 1000 for so many, as 30d,1000, or off", text)
		}
	}
	return k, nil
}
