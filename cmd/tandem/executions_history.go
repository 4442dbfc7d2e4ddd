package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/store"
)

func newExecutionsHistory(at *connectFlags) *cobra.Command {
	var q client.HistoryQuery
	var show listing
	cmd := &cobra.Command{
		Use: "history EXECUTION", Short: "Tell what happened, in order, and who decided it",
		Long: `History tells each step with its status, input and output, its retries and what it cost; each question
with who was asked, what they were shown, who answered, when and by which means; and whatever operators
did, with their reasons. A fork begins with what it shares with its source, and executions that a node
has started are told below it.`,
		Example: "  tandem executions history exec_abc\n  tandem executions history exec_abc --json",
		Args:    one("execution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				h, err := c.History(ctx, args[0], q)
				if err != nil {
					return err
				}
				return show.show(cmd.OutOrStdout(), h, func(w *tabwriter.Writer) { printHistory(w, "", &h) })
			})
		},
	}
	show.add(cmd, false)
	cmd.Flags().StringVar(&q.After, "after", "", "go on behind the part before, as its last line says")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "how many records; 100 if it is not said")
	return cmd
}

// maxHistoryText is how much of an input or output is shown on a line.
const maxHistoryText = 300

func printHistory(w *tabwriter.Writer, indent string, h *api.History) {
	line := func(format string, args ...any) { fmt.Fprintln(w, indent+fmt.Sprintf(format, args...)) } // Flush has the error
	line("%s  %s  %s", h.ExecutionID, cmp.Or(h.WorkflowName, h.WorkflowID), h.Status)
	started := stamp(h.StartTime) + " by " + cmp.Or(h.TriggerInfo.UserID, h.TriggerInfo.TriggerType)
	if made := h.TriggerInfo.TokenMadeBy; made != "" {
		started += ", with a token that " + made + " made"
	}
	line("started %s, took %s%s", started, lasted(h.DurationMS), costOf(h.CreditsConsumed, h.TokensUsed))
	if h.Error != nil {
		line("error %s [%s]", oneLine(h.Error.ErrorMessage), h.Error.ErrorCode)
	}
	for _, r := range h.History {
		inherited := ""
		if r.InheritedFrom != "" {
			inherited = "  (in " + r.InheritedFrom + ")"
		}
		if a := r.Action; a != nil {
			line("%s  %-9s  %s%s", stamp(r.Time), a.Action, oneLine(strings.TrimPrefix(actLine(a), stamp(a.At)+" ")), inherited)
			continue
		}
		s := r.Step
		name := s.StepName
		if s.Iteration != nil && s.InnerStep == "" {
			name = s.StepID
		}
		line("%s  %-9s  %s (%s)%s%s%s", stamp(r.Time), s.StepStatus, name, s.StepType, historyTook(s), costOf(s.CreditsConsumed, s.TokensUsed), inherited)
		detail := func(name, text string) { line("    %-9s %s", name, text) }
		for _, retry := range s.Retries {
			detail("retry", fmt.Sprintf("after attempt %d, %s%s", retry.Attempt, stamp(retry.At), problemOf(retry.Error)))
		}
		if len(s.InputData) > 0 {
			detail("input", historyText(s.InputData))
		}
		for _, q := range s.Questions {
			printHistoryQuestion(detail, &q)
		}
		for _, key := range slices.Sorted(maps.Keys(s.OutputData)) {
			detail("output", strings.TrimPrefix(key+": ", "result: ")+historyText(s.OutputData[key]))
		}
		if s.Error != nil {
			detail("error", strings.TrimPrefix(problemOf(s.Error), ": "))
		}
		for i := range s.Children {
			printHistory(w, indent+"    ", &s.Children[i])
		}
	}
	if h.Next != "" {
		line("there is more: --after %s", h.Next)
	}
}

func printHistoryQuestion(detail func(name, text string), q *api.HistoryQuestion) {
	about := oneLine(gjson.GetBytes(q.Shown, "title").String())
	for _, name := range []string{"description", "content", "arguments"} {
		if part := gjson.GetBytes(q.Shown, name); part.Exists() && part.Raw != `""` {
			about += " | " + historyText(json.RawMessage(part.Raw))
		}
	}
	risk := ""
	if q.Risk != "" {
		risk = ", risk " + q.Risk
	}
	detail("asked", fmt.Sprintf("%s of %s (%s%s): %s", stamp(q.AskedAt), cmp.Or(strings.Join(q.Asked, ", "), "nobody"), q.Purpose, risk, about))
	for _, d := range q.Delegations {
		detail("delegated", fmt.Sprintf("%s from %s to %s%s", stamp(d.At), d.From, d.To, because(d.Note)))
	}
	for _, a := range q.Answers {
		word := "answered"
		if !a.Accepted {
			word = "replied"
		}
		said := historyText(a.ResponseData)
		if len(a.ResponseData) == 0 {
			said = historyText(json.RawMessage(a.Raw))
		}
		who := cmp.Or(a.UserID, a.Address, "somebody")
		text := stamp(a.ReceivedAt) + " by " + who
		if means := a.Means.Describe(who); means != "" {
			text += ", with " + means
		}
		switch a.Ground {
		case store.GroundOverride:
			text += ", an override"
		case store.GroundNobodyLeft:
			text += ", as nobody who was asked is left"
		case store.GroundReading:
			text += ", as " + a.ReadBy + " reads the reply"
		}
		if a.OverruledBy != "" {
			text += ", overruled by " + a.OverruledBy + because(a.OverruleReason)
		}
		detail(word, text+": "+said+because(a.Reason))
	}
	if q.EndedAt != 0 && q.Status != "completed" {
		detail(q.Status, stamp(q.EndedAt))
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ", because: " + oneLine(reason)
}

func problemOf(e *api.NodeError) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf(": %s [%s]", oneLine(e.ErrorMessage), e.ErrorCode)
}

func historyTook(s *api.HistoryStep) string {
	if s.EndTime == 0 || s.StartTime == 0 {
		return ""
	}
	return "  " + lasted(s.DurationMS)
}

func costOf(credits float64, tokens *api.TokenUsage) string {
	text := ""
	if tokens != nil {
		text = fmt.Sprintf(", %d tokens", tokens.TotalTokens)
	}
	if credits != 0 {
		text += fmt.Sprintf(", %.6g credits", credits)
	}
	return text
}

// historyText is a value on one line, cut where it is long.
func historyText(raw json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		line.Reset()
		line.Write(raw) // a text; it is shown as it is
	}
	text := []rune(oneLine(line.String()))
	if len(text) > maxHistoryText {
		return string(text[:maxHistoryText]) + "…"
	}
	return string(text)
}
