package console

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"tandem/api"
	"tandem/console/table"
)

// budgetTexts are the limits of a profile in a few words.
func budgetTexts(list []api.ProfileBudget) string {
	var parts []string
	for _, b := range list {
		if b.Tokens > 0 {
			parts = append(parts, fmt.Sprintf("%d tokens per %s", b.Tokens, b.Per))
		}
		if b.Cost > 0 {
			parts = append(parts, fmt.Sprintf("%s per %s", table.Amount(b.Cost), b.Per))
		}
	}
	return strings.Join(parts, ", ")
}

// PrintProfileTest shows how the call of a model went.
func PrintProfileTest(w *tabwriter.Writer, t api.ProfileTest) {
	if t.Error != nil {
		table.Row(w, "failed", fmt.Sprintf("%s [%s]", t.Error.Message, t.Error.Code))
		table.Row(w, "after", table.Milliseconds(t.LatencyMS))
		return
	}
	table.Row(w, "model", t.Model)
	table.Row(w, "reply", t.Reply)
	table.Row(w, "took", fmt.Sprintf("%s, the first token %s", table.Milliseconds(t.LatencyMS), table.Milliseconds(t.FirstTokenMS)))
	if u := t.Usage; u != nil {
		guess := ""
		if u.Estimated {
			guess = ", estimated"
		}
		table.Row(w, "tokens", fmt.Sprintf("%d in, %d out%s", u.InputTokens, u.OutputTokens, guess))
		table.Row(w, "cost", table.Amount(u.Cost))
	}
	for _, warning := range t.Warnings {
		table.Row(w, "warning", warning)
	}
}

// PrintProfiles lists profiles of models.
func PrintProfiles(w *tabwriter.Writer, list api.Profiles, wide bool) {
	head := []string{"PROFILE", "PROVIDER", "MODEL", "FALLBACKS", "BUDGETS", "UPDATED"}
	if wide {
		head = append(head, "NAME", "BASE URL", "CREDENTIAL", "PRICE IN/OUT")
	}
	table.Row(w, head...)
	for _, p := range list.Profiles {
		cells := []string{p.ID, p.Provider, p.Model, strings.Join(p.Fallbacks, ","), budgetTexts(p.Budget), table.Time(p.UpdatedTime)}
		if wide {
			cells = append(cells, p.Name, p.BaseURL, p.CredentialID, table.Amount(p.Price.Input)+"/"+table.Amount(p.Price.Output))
		}
		table.Row(w, cells...)
	}
}
