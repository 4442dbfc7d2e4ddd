package benchmark

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes the figures as a table and says how to read them.
func (r Report) Print(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s/%s, %d processors; rounds: %d, medians are shown; %d bytes per row\n", r.Go, r.OS, r.Arch, r.CPUs, r.Rounds, r.RowBytes)
	if r.Server != "" {
		fmt.Fprintf(&text, "on %s\n", r.Server)
	}
	fmt.Fprintln(&text)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "durable nodes per second\tTandem\tbare journal\tratio\tlow-high\tgoal\tµs/node\tbare\tCPU µs\tbare\trunning ahead\tratio\t")
	line := func(name string, f Figures, goal string) {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.2f\t%.2f-%.2f\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.2f\t\n",
			name, f.TandemPerSecond, f.BarePerSecond, f.Ratio, f.RatioLow, f.RatioHigh, goal, f.TandemMicros, f.BareMicros, f.TandemCPU,
			f.BareCPU, f.AheadPerSecond, f.AheadRatio)
	}
	for _, c := range r.Chains {
		goal := ""
		if c.Goal > 0 {
			goal = verdict(c.Ratio >= c.Goal, fmt.Sprintf("%.2f", c.Goal))
		}
		line(fmt.Sprintf("chain of %d, %d at once", c.Nodes, c.Concurrency), c.Figures, goal)
	}
	bareGoal := ""
	if r.FanOut.BareGoal > 0 {
		bareGoal = verdict(r.FanOut.Ratio >= r.FanOut.BareGoal, fmt.Sprintf("%.2f", r.FanOut.BareGoal))
	}
	line(fmt.Sprintf("fan-out to %d and back", r.FanOut.Width), r.FanOut.Figures, bareGoal)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(&text)
	for i, c := range r.Chains {
		goal := ""
		if i == 0 && r.FanOut.Goal > 0 {
			goal = fmt.Sprintf(" (%s)", verdict(r.FanOut.ToChain[i] <= r.FanOut.Goal, fmt.Sprintf("goal: at most %.0f", r.FanOut.Goal)))
		}
		fmt.Fprintf(&text, "a node of the fan-out takes %.2f times as long as one of the chain, %d at once%s\n", r.FanOut.ToChain[i], c.Concurrency, goal)
	}
	fmt.Fprintln(&text, "\nThe ratio is the share of the bare journal's speed that is left with the engine. It can be compared\nbetween machines; nodes per second cannot. The goals are for rows that are on disk before the next\nnode runs; running ahead, as Tandem does unless told otherwise, pure nodes do not wait for that, and\ntheir rows are written together before anything that can be seen follows.")
	_, err := io.WriteString(out, text.String())
	return err
}

// verdict marks a goal that was missed.
func verdict(met bool, goal string) string {
	if met {
		return goal
	}
	return goal + " missed"
}

// Print writes the figures as tables and says how to read them.
func (r APIReport) Print(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s/%s, %d processors; rounds: %d, medians are shown; %d executions to begin with; an execution writes %d rows of %d bytes; load before: %s\n",
		r.Go, r.OS, r.Arch, r.CPUs, r.Rounds, r.Executions, r.Rows, r.RowBytes, cmp.Or(r.LoadBefore, "unknown"))
	if r.Server != "" {
		fmt.Fprintf(&text, "on %s\n", r.Server)
	}
	if r.Engine != "" {
		fmt.Fprintf(&text, "executions run on %s, by a worker in the process of the server\n", r.Engine)
	}
	fmt.Fprintf(&text, "an execution that has ended has %.0f bytes on disk\n\n", r.ExecutionBytes)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "requests\tclients\tTandem/s\tbare/s\tratio\tlow-high\tgoal\tp50 ms\tbare\tp99 ms\tbare\tCPU µs\tbare\t")
	for _, f := range r.Requests {
		goal := ""
		if f.Goal > 0 {
			goal = verdict(f.Ratio >= f.Goal, fmt.Sprintf("%.2f", f.Goal))
		}
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.2f-%.2f\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t\n", f.Name, f.Clients, f.Tandem.PerSecond, f.Bare.PerSecond,
			f.Ratio, f.RatioLow, f.RatioHigh, goal, f.Tandem.P50MS, f.Bare.P50MS, f.Tandem.P99MS, f.Bare.P99MS, f.Tandem.CPUMicros,
			f.Bare.CPUMicros)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(&text)
	fmt.Fprintln(table, "stream\treaders\tsignals\tp50 ms\tp99 ms\tlast ms\tCPU µs per reader and row\tkB per reader\t")
	for _, s := range r.Streams {
		fmt.Fprintf(table, "%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t\n", s.Side, s.Readers, s.Signals, s.P50MS, s.P99MS, s.LastMS, s.CPUMicros, s.MemoryKB)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(&text, "\nThe ratio is the share of the bare server's speed that is left with Tandem. It can be compared between\nmachines; requests per second cannot. CPU is processor time of the server per request.")
	_, err := io.WriteString(out, text.String())
	return err
}

// PrintScale writes the figures of all phases as a table.
func PrintScale(out io.Writer, reports []ScaleReport) error {
	if len(reports) > 0 && reports[0].Server != "" {
		on := reports[0].Server
		if engine := reports[0].Engine; engine != "" {
			on += ", executions run on " + engine
		}
		if _, err := fmt.Fprintf(out, "on %s\n", on); err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "phase\tcount\tper second\tCPU µs\tdisk bytes\tready after s\tready MB\tpeak MB\twake p50 ms\twake p99 ms\tlongest stall ms\tlate p50 ms\tlate max ms\t")
	for _, r := range reports {
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.3f\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t\n",
			r.Phase, r.Count, r.PerSecond, r.CPUMicros, r.DiskBytes, r.ReadySecond, r.ReadyMB, r.PeakMB, r.WakeP50MS, r.WakeP99MS,
			r.StallMS, r.LateP50MS, r.LateMaxMS)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	speed := map[string]float64{}
	for _, r := range reports {
		speed[r.Phase] = r.PerSecond
	}
	if beside := speed["wake"+besideOthers]; beside > 0 {
		if _, err := fmt.Fprintf(out, "In turns with those beside them, executions were woken at %.2f of the speed of those.\n", speed["wake"]/beside); err != nil {
			return err
		}
	}
	return nil
}
