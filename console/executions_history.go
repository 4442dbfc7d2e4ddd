package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/console/table"
	"tandem/store"
)

// maxHistoryText is how much of an input or output is shown on a line.
const maxHistoryText = 300

// PrintHistory tells what happened to an execution, in order.
func PrintHistory(w *tabwriter.Writer, indent string, h *api.History) {
	line := func(format string, args ...any) { fmt.Fprintln(w, indent+fmt.Sprintf(format, args...)) } // Flush has the error
	line("%s  %s  %s", h.ExecutionID, cmp.Or(h.WorkflowName, h.WorkflowID), h.Status)
	started := table.Time(h.StartTime) + " by " + cmp.Or(h.TriggerInfo.UserID, h.TriggerInfo.TriggerType)
	line("started %s, took %s%s", byToken(started, h.TriggerInfo.TokenMadeBy), table.Milliseconds(h.DurationMS),
		costOf(h.CreditsConsumed, h.TokensUsed))
	if h.Error != nil {
		line("error %s [%s]", table.OneLine(h.Error.ErrorMessage), h.Error.ErrorCode)
	}
	for _, f := range slices.Backward(h.Forks) {
		line("forked as %s, %s", f.ExecutionID, byToken(table.Time(f.At)+" by "+f.By, f.TokenMadeBy))
	}
	for _, r := range h.History {
		inherited := ""
		if r.InheritedFrom != "" {
			inherited = "  (in " + r.InheritedFrom + ")"
		}
		if a := r.Action; a != nil {
			line("%s  %-9s  %s%s", table.Time(r.Time), a.Action, table.OneLine(strings.TrimPrefix(actLine(a), table.Time(a.At)+" ")), inherited)
			continue
		}
		s := r.Step
		name := s.StepName
		if s.Iteration != nil && s.InnerStep == "" {
			name = s.StepID
		}
		line("%s  %-9s  %s (%s)%s%s%s", table.Time(r.Time), s.StepStatus, name, s.StepType, historyTook(s),
			costOf(s.CreditsConsumed, s.TokensUsed), inherited)
		detail := func(name, text string) { line("    %-9s %s", name, text) }
		for _, retry := range s.Retries {
			detail("retry", fmt.Sprintf("after attempt %d, %s%s", retry.Attempt, table.Time(retry.At), problemOf(retry.Error)))
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
			PrintHistory(w, indent+"    ", &s.Children[i])
		}
	}
	if h.Next != "" {
		line("there is more: --after %s", h.Next)
	}
}

func printHistoryQuestion(detail func(name, text string), q *api.HistoryQuestion) {
	about := table.OneLine(gjson.GetBytes(q.Shown, "title").String())
	for _, name := range []string{"description", "content", "arguments"} {
		if part := gjson.GetBytes(q.Shown, name); part.Exists() && part.Raw != `""` {
			about += " | " + historyText(json.RawMessage(part.Raw))
		}
	}
	risk := ""
	if q.Risk != "" {
		risk = ", risk " + q.Risk
	}
	detail("asked", fmt.Sprintf("%s of %s (%s%s): %s", table.Time(q.AskedAt), cmp.Or(strings.Join(q.Asked, ", "), "nobody"), q.Purpose, risk, about))
	for _, d := range q.Delegations {
		detail("delegated", fmt.Sprintf("%s from %s to %s%s", table.Time(d.At), d.From, d.To, because(d.Note)))
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
		text := table.Time(a.ReceivedAt) + " by " + who
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
		detail(q.Status, table.Time(q.EndedAt))
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ", because: " + table.OneLine(reason)
}

func problemOf(e *api.NodeError) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf(": %s [%s]", table.OneLine(e.ErrorMessage), e.ErrorCode)
}

func historyTook(s *api.HistoryStep) string {
	if s.EndTime == 0 || s.StartTime == 0 {
		return ""
	}
	return "  " + table.Milliseconds(s.DurationMS)
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
	text := []rune(table.OneLine(line.String()))
	if len(text) > maxHistoryText {
		return string(text[:maxHistoryText]) + "…"
	}
	return string(text)
}
